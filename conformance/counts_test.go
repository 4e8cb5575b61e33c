package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestCounts counts by page what judges the requirements, and lists those that only people can judge.
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
	for _, r := range allRules() {
		judged[r.ID] = true
		bySchemaAlone[r.ID] = r.check == nil && r.end == nil
	}
	var people []string
	row(cellsOf(columns)...)
	for _, p := range pages {
		counts := make([]int, len(sum))
		for _, r := range p.requirements {
			column := 0
			switch {
			case judged[r.id] && !bySchemaAlone[r.id]:
				column = 1
			case bySchemaAlone[r.id] || r.as == agreed:
				column = 3
			case r.as != "":
				column = 2
			case r.how == byScenario:
				column = 4
			case r.how == byPeople:
				column = 5
				people = append(people, fmt.Sprintf("%-7s %s", r.id, r.text))
			default:
				t.Errorf("%s: nothing judges it, and the table does not say why", r.id)
			}
			counts[0]++
			counts[column]++
		}
		row(slices.Concat([]any{p.name}, cellsOf(counts))...)
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
