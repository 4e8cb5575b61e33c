package gen

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/acpgo/sdk/internal/gen/model"
	"github.com/acpgo/sdk/internal/gen/text"
)

// Describe returns tables that show how a schema is understood: the types with their members, the unions and how their
// variants are distinguished, the methods and the capabilities that gate them, and whether values that the schema does
// not describe are kept or dropped. Unused overrides and open questions follow.
func Describe(c Config) (string, error) {
	c.keepStale = true
	out, err := generate(c)
	if err != nil {
		return "", err
	}
	d := &description{}
	d.types(out.pkg)
	d.unions(out.pkg)
	d.methods(out.pkg)
	d.unknown(out.pkg)
	if len(out.pkg.Runtime) > 0 {
		d.section("Left to the runtime", "DEFINITION")
		for _, name := range out.pkg.Runtime {
			d.row(name)
		}
	}
	if out.stale != nil {
		d.section("Overrides to be removed")
		for _, problem := range Problems(out.stale) {
			d.row(strings.TrimPrefix(problem.Error(), "/: "))
		}
	}
	if len(out.questions) > 0 {
		d.section("Questions to be answered by an override")
		for _, q := range out.questions {
			d.row(q.String())
		}
	}
	d.flush()
	return d.out.String(), nil
}

// description builds the text with the tables.
type description struct {
	out   strings.Builder
	table [][]string
}

// section ends the current table and begins another one.
func (d *description) section(title string, columns ...string) {
	d.flush()
	if d.out.Len() > 0 {
		d.out.WriteByte('\n')
	}
	d.out.WriteString(title + "\n\n")
	if len(columns) > 0 {
		d.row(columns...)
	}
}

// row adds a row. The last cells may be left out.
func (d *description) row(cells ...string) {
	for i, cell := range cells {
		cells[i] = text.Line(cell)
	}
	d.table = append(d.table, cells)
}

// flush writes the table, each column as wide as its longest cell.
func (d *description) flush() {
	var widths []int
	for _, cells := range d.table {
		for i, cell := range cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, cells := range d.table {
		var line strings.Builder
		for i, cell := range cells {
			line.WriteString(cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
		}
		d.out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	d.table = nil
}

func (d *description) types(pkg *model.Package) {
	d.section("Types", "GO", "IS", "SCHEMA")
	for _, decl := range pkg.Decls {
		c := decl.Base()
		is := ""
		switch decl := decl.(type) {
		case *model.Struct:
			is = "object"
			if decl.Variant != nil {
				is = "variant of " + decl.Variant.Union.Go + ", object"
			}
		case *model.Newtype:
			is = typeText(decl.Type)
		case *model.Enum:
			switch is = typeText(decl.Type); {
			case decl.Open:
				is += ", one of these or another"
			case decl.Names():
				is += ", one of these; others are kept"
			default:
				is += ", one of these"
			}
		case *model.Union:
			is = "union"
		}
		d.row(c.Go, is, c.Pointer)
		for _, f := range model.Fields(decl) {
			if f.Flat {
				d.row("  ."+f.Go, "second choice, "+typeText(f.Type))
				continue
			}
			d.row("  ."+f.Go, strings.Join(memberText(f), ", "), f.JSON)
		}
		if s, ok := decl.(*model.Struct); ok {
			for _, f := range s.Fixed {
				d.row("  no field", "always "+string(f.Value), f.JSON)
			}
			for _, name := range s.Without {
				d.row("  no field", "must not be there", name)
			}
			if s.Extra != nil {
				d.row("  ."+s.Extra.Go, "map of "+typeText(s.Extra.Elem), "all others")
			}
		}
		if enum, ok := decl.(*model.Enum); ok {
			for _, v := range enum.Values {
				d.row("  "+v.Go, "", fmt.Sprint(v.Value))
			}
		}
	}
}

// memberText describes a member.
func memberText(f *model.Field) []string {
	out := []string{typeText(f.Type)}
	add := func(condition bool, what string) {
		if condition {
			out = append(out, what)
		}
	}
	switch f.Presence {
	case model.Required:
		out = append(out, "required")
	case model.RequiredNull:
		out = append(out, "required or null")
	case model.Plain:
		out = append(out, "optional")
		add(f.Always, "always written")
	case model.Tri:
		out = append(out, "optional")
		if f.Nullable {
			out[1] += " or null"
		}
	}
	add(f.Default != nil, "default "+string(f.Default))
	add(f.OnError, "wrong values are read as absent")
	add(f.OnNull, "null is read as empty")
	add(f.SkipItems, "wrong items are dropped")
	return out
}

// typeText returns a type, with the bounds of its values.
func typeText(t model.Type) string {
	out := ""
	switch t := t.(type) {
	case model.Basic:
		out = t.Go()
		if t.Format != "" {
			out += " (" + string(t.Format) + ")"
		}
	case model.Any:
		out = "any JSON"
	case model.Meta:
		out = "Meta"
	case model.Null:
		out = "null"
	case model.Named:
		out = t.Decl.Base().Go
	case model.Runtime:
		out = "runtime's " + t.Name
	case model.Nullable:
		out = typeText(t.Elem) + " or null"
	case model.Pointer:
		out = "*" + typeText(t.Elem)
	case model.Slice:
		out = "[]" + typeText(t.Elem)
	case model.Map:
		out = "map of " + typeText(t.Elem)
	default:
		out = fmt.Sprintf("%T", t)
	}
	for i, limit := range model.BoundsOf(t) {
		if limit != "" {
			out += " " + model.BoundKeywords[i].Keyword + " " + limit
		}
	}
	return out
}

func (d *description) unions(pkg *model.Package) {
	d.section("Unions", "UNION", "VARIANT", "TOLD BY", "CONSISTS OF", "MADE BY")
	for _, decl := range pkg.Decls {
		u, ok := decl.(*model.Union)
		if !ok {
			continue
		}
		name := u.Go
		for _, v := range u.Variants {
			consists := ""
			switch {
			case v.Type != nil:
				consists = typeText(v.Type)
			case v.Inline:
				consists = "members of its own"
			default:
				consists = v.Payload.Base().Go
			}
			d.row(name, v.Go, toldBy(u, v), consists, v.Constructor)
			name = ""
		}
		if u.Unknown != nil {
			d.row(name, u.Unknown.Go, "any other "+u.Tag, "the object as it came")
		}
	}
}

// toldBy describes how a decoder recognizes a variant.
func toldBy(u *model.Union, v *model.Variant) string {
	switch {
	case v.Tagged && v == u.Untagged:
		return fmt.Sprintf("%s = %q, or none", u.Tag, v.Tag)
	case v.Tagged:
		return fmt.Sprintf("%s = %q", u.Tag, v.Tag)
	case v == u.Untagged && u.KeepsTag():
		return "its members, with any " + u.Tag
	case v == u.Untagged && u.TagLenient:
		return "no string as " + u.Tag
	case v == u.Untagged && u.TagNull:
		return "no " + u.Tag + ", or null"
	case v == u.Untagged:
		return "no " + u.Tag
	case v == u.Fallback:
		return "none of the others"
	case v.KeyValue != nil:
		return fmt.Sprintf("%s = %s", v.Key, v.KeyValue)
	case v.Key != "":
		return "the member " + v.Key
	case v.Rank > 0:
		return "none of the others' members"
	}
	if kinds := v.Kinds(); kinds != nil {
		return "the kind of value: " + strings.Join(kinds, " or ")
	}
	return "the kind of value: any"
}

func (d *description) methods(pkg *model.Package) {
	d.section("Methods", "METHOD", "HANDLED BY", "GO", "PARAMETERS", "RESULT", "NEEDS", "BEYOND THAT")
	for _, m := range pkg.Methods {
		result := "none: a notification"
		if m.Request() {
			if result = m.Result.Base().Go; m.NullResult {
				result += " or null"
			}
		}
		var needs []string
		if len(m.Capability) > 0 {
			needs = append(needs, capabilityText(m.Capability))
		}
		for _, need := range m.Needs {
			what := capabilityText(need.Capability)
			switch {
			case need.Variant != nil:
				what += " for " + need.Variant.Go
			case need.Field != nil:
				what += " for " + need.Field.JSON
			}
			needs = append(needs, what)
		}
		if len(needs) == 0 {
			needs = []string{"nothing"}
		}
		var beyond []string
		for _, b := range []struct {
			is   bool
			what string
		}{
			{m.Session != nil, "of a session"}, {m.Derived, "the runtime's"}, {m.ConnByHand, "called by hand"},
			{m.UsesAnswer, "answer used by hand"}, {m.SessionByHand, "called by hand on sessions"},
		} {
			if b.is {
				beyond = append(beyond, b.what)
			}
		}
		d.row(m.Name, string(m.Side), m.Go, m.Params.Base().Go, result, needs[0], strings.Join(beyond, ", "))
		for _, need := range needs[1:] {
			d.row("", "", "", "", "", need)
		}
	}
}

func capabilityText(path []*model.Field) string {
	var names []string
	for _, f := range path {
		names = append(names, f.JSON)
	}
	return strings.Join(names, ".")
}

// unknown describes what happens to values that the schema does not describe.
func (d *description) unknown(pkg *model.Package) {
	d.section("What the schema does not describe", "WHAT", "READ", "WRITTEN AGAIN")
	d.row("a member that an object does not have", "passed over, but for those below", "no")
	d.row("a name that an enum does not list", "kept", "as it came")
	for _, decl := range pkg.Decls {
		switch decl := decl.(type) {
		case *model.Struct:
			if decl.Extra != nil {
				d.row("another member of "+decl.Go, "kept in "+decl.Extra.Go, "after the others")
			}
		case *model.Union:
			if decl.Unknown != nil {
				d.row("another "+decl.Tag+" of "+decl.Go, "kept in "+decl.Unknown.Go, "as it came")
			}
			if decl.KeepsTag() {
				d.row("any "+decl.Tag+" of "+decl.Untagged.Go, "kept in "+decl.KeptTag, "as it came")
			}
		}
	}
}
