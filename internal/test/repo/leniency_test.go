package repo_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	sdk "github.com/acpgo/sdk"
	"github.com/acpgo/sdk/internal/gen/text"
	"github.com/acpgo/sdk/internal/test/must"
)

// The keywords with which a schema marks members that are read leniently, and their descriptions in the table.
const (
	onError = "x-deserialize-default-on-error"
	onNull  = "x-deserialize-default-on-null"
	skip    = "x-deserialize-skip-invalid-items"
)

type lenientKind struct {
	title string
	is    func(marks map[string]bool) bool
}

var lenientKinds = []lenientKind{
	{"A wrong value is read as if the member were missing", func(m map[string]bool) bool { return m[onError] && !m[skip] }},
	{"A wrong element of the array is left out; what is not an array is read as if the member were missing", func(m map[string]bool) bool { return m[skip] }},
	{"Null is read as the empty array", func(m map[string]bool) bool { return m[onNull] }},
}

// TestLeniencyTable compares the table with the schemas; -update writes it.
func TestLeniencyTable(t *testing.T) {
	expectTable(t, "docs/reference/leniency.md", "\n"+leniencyTable(t))
}

// expectTable compares the part of a page between its two marks with the table from the code; -update writes it.
func expectTable(t *testing.T, path, want string) {
	t.Helper()
	const begin, end = "<!-- table -->\n", "<!-- end of table -->\n"
	page := must.Get(os.ReadFile(path))(t)
	before, rest, found := strings.Cut(string(page), begin)
	got, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no %s and %s", path, begin, end)
	}
	if *update {
		must.Do(t, os.WriteFile(path, []byte(before+begin+want+end+after), 0o644))
		return
	}
	if diff := cmp.Diff(strings.Split(got, "\n"), strings.Split(want, "\n")); diff != "" {
		t.Errorf("the table of %s is out of date; make generate writes it (-old +new):\n%s", path, diff)
	}
}

// leniencyTable lists the marked members of all four schemas, by the schemas that mark them.
func leniencyTable(t *testing.T) string {
	t.Helper()
	schemas := []struct {
		name string
		text string
	}{
		{"1", sdk.SchemaV1()}, {"1 unstable", sdk.SchemaV1Unstable()}, {"2", sdk.SchemaV2()}, {"2 unstable", sdk.SchemaV2Unstable()},
	}
	found := make([]map[string][]string, len(lenientKinds)) // the schemas, by the member
	meta := 0
	for kind := range found {
		found[kind] = map[string][]string{}
	}
	for _, s := range schemas {
		var schema struct {
			Defs map[string]any `json:"$defs"`
		}
		must.Do(t, json.Unmarshal([]byte(s.text), &schema))
		marked := 0
		for definition, content := range schema.Defs {
			eachMember(content, func(name string, required bool, keywords map[string]any) {
				marks := map[string]bool{}
				for keyword, value := range keywords {
					if strings.HasPrefix(keyword, "x-deserialize-") {
						marks[keyword] = value == true
						marked++
					}
				}
				kind := slices.IndexFunc(lenientKinds, func(k lenientKind) bool { return k.is(marks) })
				switch {
				case kind < 0 && len(marks) > 0:
					t.Errorf("%s.%s: unknown combination of marks %v", definition, name, slices.Collect(maps.Keys(marks)))
				case kind < 0:
				case name == "_meta":
					meta++
				default:
					member := strings.ReplaceAll(text.Code(definition+"."+name), "|", `\|`)
					if required {
						member += " (required)"
					}
					found[kind][member] = append(found[kind][member], s.name)
				}
			})
		}
		if all := strings.Count(s.text, `"x-deserialize-`); marked != all {
			t.Errorf("schema %s: %d of %d marks are at members", s.name, marked, all)
		}
	}
	if meta == 0 {
		t.Error("no _meta is marked")
	}
	var b strings.Builder
	for kind, members := range found {
		fmt.Fprintf(&b, "### %s\n\n| schemas | members |\n| --- | --- |\n", lenientKinds[kind].title)
		in := map[string][]string{} // the members, by the schemas
		for _, member := range slices.Sorted(maps.Keys(members)) {
			names := strings.Join(members[member], ", ")
			if len(members[member]) == len(schemas) {
				names = "all"
			}
			in[names] = append(in[names], member)
		}
		for _, names := range slices.Sorted(maps.Keys(in)) {
			fmt.Fprintf(&b, "| %s | %s |\n", names, strings.Join(in[names], ", "))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// eachMember calls f for every member of the objects that a schema describes, including those of variants.
func eachMember(schema any, f func(name string, required bool, keywords map[string]any)) {
	switch schema := schema.(type) {
	case []any:
		for _, s := range schema {
			eachMember(s, f)
		}
	case map[string]any:
		properties, _ := schema["properties"].(map[string]any)
		required, _ := schema["required"].([]any)
		for name, property := range properties {
			if keywords, ok := property.(map[string]any); ok {
				f(name, slices.Contains(required, any(name)), keywords)
			}
		}
		for _, s := range schema {
			eachMember(s, f)
		}
	}
}
