package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/types"
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
	// Stale has the overrides that its schema does not use, Questions the questions that only an override can answer.
	Stale, Questions []string
}

// Report has the differences between two versions of a package.
type Report struct {
	Old, New string // names of the schemas
	Changes  []Change
	// Described is the number of definitions, members, values and methods whose descriptions differ.
	Described int
	// Stale has the overrides that the new schema does not use, Questions the questions that only an override can
	// answer.
	Stale, Questions []string
}

// Compare compares two versions.
func Compare(old, new Version) *Report {
	changes := merge(compare(old.Go, new.Go, mirrors(old.Model, new.Model)), compareWire(old.Model, new.Model))
	slices.SortStableFunc(changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.Subject, b.Subject))
	})
	return &Report{Old: old.Name, New: new.Name, Changes: changes, Described: described(old.Model, new.Model),
		Stale: new.Stale, Questions: new.Questions}
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
	for variant, payload := range before {
		if after[variant] != payload {
			delete(before, variant)
		}
	}
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
		changes[i].Text += "; " + w.Text
	}
	return changes
}

// Breaks reports whether there are breaking changes, including silent ones.
func (r *Report) Breaks() bool {
	return slices.ContainsFunc(r.Changes, func(c Change) bool { return c.Level <= Silent })
}

// MarshalJSON implements json.Marshaler. The result has the report's fields, and whether something breaks.
func (r *Report) MarshalJSON() ([]byte, error) {
	list := func(texts []string) []string { return append([]string{}, texts...) }
	return json.Marshal(struct {
		Old       string   `json:"old"`
		New       string   `json:"new"`
		Breaks    bool     `json:"breaks"`
		Changes   []Change `json:"changes"`
		Described int      `json:"descriptionsChanged"`
		Stale     []string `json:"staleOverrides"`
		Questions []string `json:"questions"`
	}{r.Old, r.New, r.Breaks(), append([]Change{}, r.Changes...), r.Described, list(r.Stale), list(r.Questions)})
}

// Markdown returns the report as Markdown for people, with the worst changes first.
func (r *Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# API changes from %s to %s\n", text.Markdown(r.Old), text.Markdown(r.New))
	sections := []string{Breaking: "Breaking", Silent: "Breaking, though it compiles", Notable: "Compiles, but look at it",
		Addition: "Added", OnWire: "On the wire only"}
	for level, title := range sections {
		var lines []string
		for _, c := range r.Changes {
			if c.Level == Level(level) {
				lines = append(lines, fmt.Sprintf("- %s: %s\n", text.Code(c.Subject), c.Text))
			}
		}
		section(&b, title, lines)
	}
	section(&b, "Overrides to be removed", items(r.Stale))
	section(&b, "Questions to be answered by an override", items(r.Questions))
	if len(r.Changes) == 0 {
		b.WriteString("\nNothing changes for programs.\n")
	}
	if r.Described > 0 {
		fmt.Fprintf(&b, "\nDescriptions changed: %d.\n", r.Described)
	}
	return b.String()
}

// items returns texts as list items.
func items(texts []string) []string {
	var out []string
	for _, s := range texts {
		out = append(out, "- "+text.Markdown(s)+"\n")
	}
	return out
}

func section(b *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s (%d)\n\n", title, len(lines))
	for _, line := range lines {
		b.WriteString(line)
	}
}

// described counts the descriptions that both versions have but that differ.
func described(old, new *model.Package) int {
	before, after := descriptions(old), descriptions(new)
	n := 0
	for name, text := range before {
		if other, ok := after[name]; ok && other != text {
			n++
		}
	}
	return n
}

func descriptions(pkg *model.Package) map[string]string {
	out := map[string]string{}
	for _, d := range pkg.Decls {
		name := d.Base().Go
		out[name] = d.Base().Doc
		for _, f := range model.Fields(d) {
			out[name+"."+f.Go] = f.Doc
		}
		switch d := d.(type) {
		case *model.Enum:
			for _, v := range d.Values {
				out[v.Go] = v.Doc
			}
		case *model.Union:
			for _, v := range d.Variants {
				out[name+" "+v.Go] = v.Doc
			}
		}
	}
	for _, m := range pkg.Methods {
		out[m.Const] = m.Doc
	}
	return out
}
