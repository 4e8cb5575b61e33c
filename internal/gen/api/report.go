package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/types"
	"maps"
	"slices"
	"strings"

	"github.com/acpgo/sdk/internal/gen/model"
	"github.com/acpgo/sdk/internal/gen/text"
)

// Version is one of the two compared versions.
type Version struct {
	Name  string // of its schema
	Go    *types.Package
	Model *model.Package
	// Experimental is the package with experimental features beside Go, or nil.
	Experimental *types.Package
	Todo
}

// Todo says what the maintainers of the overrides have to do.
type Todo struct {
	Stale     []string `json:"staleOverrides"`   // the schema does not use them
	Moves     []string `json:"movedOverrides"`   // what they are about has become stable
	Lacks     []string `json:"missingOverrides"` // of experimental things without a feature
	Questions []string `json:"questions"`        // only an override can answer them
	Idle      []string `json:"idle"`             // what is generated without behavior
}

// Report has the differences between two versions of a package.
type Report struct {
	Old, New string // names of the schemas
	Changes  []Change
	// Described is the number of definitions, members, values and methods whose descriptions differ.
	Described int
	Todo
}

// Compare compares two versions.
func Compare(old, new Version) *Report {
	todo := new.Todo
	todo.Idle, todo.Moves = without(todo.Idle, old.Idle), without(todo.Moves, old.Moves)
	wire, described := compareWire(old.Model, new.Model, old.Experimental)
	changes := merge(compare(old.Go, new.Go, old.Experimental, mirrors(old.Model, new.Model)), wire)
	slices.SortStableFunc(changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.Subject, b.Subject))
	})
	return &Report{Old: old.Name, New: new.Name, Changes: changes, Described: described, Todo: todo}
}

// without returns the texts that are not among the old ones.
func without(texts, old []string) (out []string) {
	for _, s := range texts {
		if !slices.Contains(old, s) {
			out = append(out, s)
		}
	}
	return out
}

// mirrors maps the variants that both versions define as the same other type to that type.
func mirrors(old, new *model.Package) map[string]string {
	of := func(pkg *model.Package) map[string]string {
		out := map[string]string{}
		for _, d := range pkg.Decls {
			u, ok := d.(*model.Union)
			if !ok {
				continue
			}
			for _, v := range u.Variants {
				if v.Payload != nil && !v.Inline && !v.Self {
					out[v.Go] = v.Payload.Base().Go
				}
			}
		}
		return out
	}
	before, after := of(old), of(new)
	maps.DeleteFunc(before, func(variant, payload string) bool { return after[variant] != payload })
	return before
}

// merge adds each change on the wire to the Go change of the same subject, or else to the list. The worst level counts.
func merge(changes, wire []Change) []Change {
	for _, w := range wire {
		i := slices.IndexFunc(changes, func(c Change) bool { return c.Subject == w.Subject })
		if i < 0 {
			changes = append(changes, w)
			continue
		}
		changes[i].Level = min(changes[i].Level, w.Level)
		if !strings.HasSuffix(changes[i].Text, w.Text) {
			changes[i].Text += "; " + w.Text
		}
	}
	return changes
}

// Breaks reports whether there are breaking changes, including silent ones.
func (r *Report) Breaks() bool {
	return slices.ContainsFunc(r.Changes, func(c Change) bool { return c.Level <= Silent })
}

// MarshalJSON implements json.Marshaler. The result has the report's fields, and whether something breaks.
func (r *Report) MarshalJSON() ([]byte, error) {
	todo := r.Todo
	for _, list := range []*[]string{&todo.Stale, &todo.Moves, &todo.Lacks, &todo.Questions, &todo.Idle} {
		*list = append([]string{}, *list...)
	}
	return json.Marshal(struct {
		Old       string   `json:"old"`
		New       string   `json:"new"`
		Breaks    bool     `json:"breaks"`
		Changes   []Change `json:"changes"`
		Described int      `json:"descriptionsChanged"`
		Todo
	}{r.Old, r.New, r.Breaks(), append([]Change{}, r.Changes...), r.Described, todo})
}

// Markdown returns the report as Markdown for people, with the worst changes first.
func (r *Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# API changes from %s to %s\n", text.Markdown(r.Old), text.Markdown(r.New))
	for _, s := range []struct {
		level Level
		title string
	}{{Promoted, "Became stable"}, {Breaking, "Breaking"}, {Silent, "Breaking, though it compiles"},
		{Notable, "Compiles, but look at it"}, {Addition, "Added"}, {OnWire, "On the wire only"}} {
		var items []string
		for _, c := range r.Changes {
			if c.Level == s.level {
				items = append(items, text.Code(c.Subject)+": "+c.Text)
			}
		}
		section(&b, s.title, items)
	}
	b.WriteString(r.Todo.String())
	if len(r.Changes) == 0 {
		b.WriteString("\nNothing changes for programs.\n")
	}
	if r.Described > 0 {
		fmt.Fprintf(&b, "\nDescriptions changed: %d.\n", r.Described)
	}
	return b.String()
}

// String returns the sections of a report for the maintainers.
func (t Todo) String() string {
	var b strings.Builder
	for _, s := range []struct {
		title string
		texts []string
	}{{"Overrides to be removed", t.Stale},
		{"Overrides to be moved from the unstable schema to the stable one", t.Moves},
		{"Overrides to be added", t.Lacks}, {"Questions to be answered by an override", t.Questions},
		{"Generated without behavior", t.Idle}} {
		var items []string
		for _, line := range s.texts {
			items = append(items, text.Markdown(line))
		}
		section(&b, s.title, items)
	}
	return b.String()
}

// section writes a list with a title and the number of items, unless there are none.
func section(b *strings.Builder, title string, items []string) {
	if len(items) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s (%d)\n\n", title, len(items))
	for _, item := range items {
		fmt.Fprintf(b, "- %s\n", item)
	}
}
