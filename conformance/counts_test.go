package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/conformance/internal/requirement"
	"github.com/acpgo/sdk/conformance/internal/rules"
	"github.com/acpgo/sdk/conformance/internal/schema"
)

// TestCounts counts, for each page, how the requirements are judged, and lists those that only people can judge.
func TestCounts(t *testing.T) {
	columns := []string{"page", "requirements", "by a rule", "by the rule of another", "by the schema or JSON-RPC", "in a scenario", "by people"}
	sum := make([]int, len(columns)-1)
	var table strings.Builder
	row := func(cells ...any) {
		for i, cell := range cells {
			width := 22
			if i > 0 {
				width = len(columns[i])
			}
			fmt.Fprintf(&table, "%-*v  ", width, cell)
		}
		table.WriteByte('\n')
	}
	judged, bySchemaAlone := map[string]bool{}, map[string]bool{}
	for _, r := range rules.All() {
		judged[r.ID] = true
		bySchemaAlone[r.ID] = r.Check == nil && r.End == nil
	}
	var people []string
	row(cellsOf(columns)...)
	for _, p := range requirement.Pages {
		counts := make([]int, len(sum))
		for _, r := range p.Requirements {
			column := 0
			switch {
			case judged[r.ID] && !bySchemaAlone[r.ID]:
				column = 1
			case bySchemaAlone[r.ID] || r.As == schema.Agreed:
				column = 3
			case r.As != "":
				column = 2
			case r.How == requirement.ByScenario:
				column = 4
			case r.How == requirement.ByPeople:
				column = 5
				people = append(people, fmt.Sprintf("%-7s %s", r.ID, r.Text))
			default:
				t.Errorf("%s: it is not judged, and the table does not explain why", r.ID)
			}
			counts[0]++
			counts[column]++
		}
		row(slices.Concat([]any{p.Name}, cellsOf(counts))...)
		for i, n := range counts {
			sum[i] += n
		}
	}
	row(slices.Concat([]any{"all"}, cellsOf(sum))...)
	if total := sum[1] + sum[2] + sum[3] + sum[4] + sum[5]; total != sum[0] {
		t.Errorf("%d requirements, %d of them counted", sum[0], total)
	}
	t.Logf("%d rules judge requirements:\n%s\nOnly people judge:\n%s", len(judged), &table, strings.Join(people, "\n"))
}

func cellsOf[T any](list []T) (cells []any) {
	for _, v := range list {
		cells = append(cells, v)
	}
	return cells
}
