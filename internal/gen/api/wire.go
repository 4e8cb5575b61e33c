package api

import (
	"cmp"
	"fmt"
	"go/types"
	"strings"

	"github.com/acpgo/sdk/internal/gen/model"
	"github.com/acpgo/sdk/internal/gen/text"
)

// A rule says what it means that something Go's types do not show has a value that it had not, lost its value, or has
// another one. In a text, {new} and {old} are the values, and {name} is what they are about.
type rule struct {
	gained, lost, changed effect
	added                 bool // things without the value can be compared with those that have it
}

// An effect is the level and text of a change. A change without a text affects nobody.
type effect struct {
	level Level
	text  string
}

var (
	description  = &rule{} // only counted
	experimental = &rule{lost: effect{Promoted, "it was experimental"}}
	deprecated   = &rule{gained: effect{Notable, "it is deprecated"}, lost: effect{Addition, "it is no longer deprecated"}}
	required     = &rule{gained: effect{Notable, "the member must be there: it is always written, and refused without"},
		lost: effect{OnWire, "the member may be left out"}, added: true}
	constant = &rule{effect{Silent, "its member {name} must be there, and be {new}"},
		effect{Silent, "its member {name} is no longer always {old}"},
		effect{Silent, "its member {name} is always {new}, and was {old}"}, true}
	bounded = &rule{gained: effect{Notable, "its values are bounded by {new}"},
		lost:    effect{OnWire, "its values are not bounded any more by {old}"},
		changed: effect{Notable, "its values are bounded by {new}, and were by {old}"}}
	defaulted  = changed(Notable, "the default is {new}, and was {old}")
	jsonName   = changed(Silent, "its member is {new}, and was {old}")
	toldBy     = changed(Silent, "its variants are told apart by {new}, and were by {old}")
	variantKey = changed(Silent, "as a variant of {name} it is known by {new}, and was by {old}")
	parameters = changed(Silent, "the parameters of {name} are {new}, and were {old}")
	result     = changed(Silent, "the result of {name} is {new}, and was {old}")
	gates      = changed(Notable, "needs {new}, and needed {old}")

	open        = relaxed("other values are part of the protocol", "other values are no part of the protocol any more")
	nullable    = relaxed("null is part of the protocol", "null is not part of the protocol any more")
	nullEmpty   = relaxed("null is read as empty", "null is not read as empty any more")
	nullResult  = relaxed("null is accepted as the result", "null is not accepted as the result any more")
	badIsAbsent = relaxed("a bad value is read as if it were absent",
		"a bad value is refused, and not read as if it were absent")
	badItems = relaxed("bad items are left out", "bad items are refused, and not left out")
	anyTag   = relaxed("a tag that is not a string is read as if there were none",
		"a tag that is not a string is refused")
	ofSession = relaxed("it belongs to a session, and waits for what came before in it",
		"it belongs to no session any more")
)

// changed returns the rule for something that always has a value.
func changed(level Level, text string) *rule { return &rule{changed: effect{level, text}} }

// relaxed returns the rule for something that, if it is set, relaxes what is accepted.
func relaxed(on, off string) *rule {
	return &rule{gained: effect{OnWire, on}, lost: effect{Notable, off}}
}

// A thing is a part of the protocol, which has the same id in both versions.
type thing struct {
	id, owner string // ids
	subject   string // of changes
}

// A fact is the value that a version of the protocol has for a rule.
type fact struct {
	thing
	rule        *rule
	name, value string
}

// A key identifies a fact in both versions.
type key struct {
	id   string
	rule *rule
	name string
}

func (f fact) key() key { return key{f.id, f.rule, f.name} }

// facts has the facts of a version.
type facts struct {
	list   []fact
	things map[string]bool
	values map[key]string
}

// compareWire returns the differences between two versions of a protocol, and the number of differing descriptions.
// Declarations, fields and variants that only one of them has are left to the comparison of the Go packages.
func compareWire(old, new *model.Package, tried *types.Package) (changes []Change, described int) {
	c := &comparison{tried: tried}
	before, after := factsOf(old), factsOf(new)
	change := func(f fact, was, is string) {
		e := f.rule.changed
		switch {
		case was == is:
			return
		case f.rule == description:
			described++
		case was == "":
			e = f.rule.gained
		case is == "":
			e = f.rule.lost
		}
		if e.text != "" {
			text := strings.NewReplacer("{new}", is, "{old}", was, "{name}", code(f.name)).Replace(e.text)
			c.add(e.level, f.subject, text)
		}
	}
	for _, f := range before.list {
		if is, ok := after.values[f.key()]; ok || f.rule.added && after.things[f.id] {
			change(f, f.value, is)
		}
	}
	for _, f := range after.list {
		if _, ok := before.values[f.key()]; !ok && f.rule.added && before.things[f.owner] {
			change(f, "", f.value)
		}
	}
	for _, m := range old.Methods {
		if !after.things[methodID(m)] {
			c.add(Silent, m.Const, describe(m)+" is gone")
		}
	}
	for _, m := range new.Methods {
		if !before.things[methodID(m)] {
			c.added(Addition, m.Const, "new "+describe(m), m.Const)
		}
	}
	return c.changes, described
}

func factsOf(pkg *model.Package) *facts {
	fs := &facts{things: map[string]bool{}, values: map[key]string{}}
	for _, d := range pkg.Decls {
		fs.decl(d)
	}
	for _, m := range pkg.Methods {
		fs.method(m)
	}
	for _, f := range pkg.Features {
		fs.thing(f.Go(), "", f.Go(), "", f.Experimental, false)
	}
	return fs
}

func (fs *facts) thing(id, owner, subject, doc string, isExperimental, isDeprecated bool) thing {
	t := thing{id, owner, subject}
	fs.things[id] = true
	fs.add(t, description, "", doc)
	fs.set(t, experimental, isExperimental)
	fs.set(t, deprecated, isDeprecated)
	return t
}

func (fs *facts) add(t thing, r *rule, name, value string) {
	f := fact{t, r, name, value}
	fs.list = append(fs.list, f)
	fs.values[f.key()] = value
}

func (fs *facts) set(t thing, r *rule, value bool) {
	fs.add(t, r, "", map[bool]string{true: "set"}[value])
}

func (fs *facts) decl(d model.Decl) {
	c := d.Base()
	t := fs.thing(c.Go, c.Go, c.Go, c.Doc, c.Experimental, c.Deprecated)
	for _, f := range model.Fields(d) {
		fs.field(c.Go, f)
	}
	switch d := d.(type) {
	case *model.Enum:
		fs.set(t, open, d.Open)
		for _, v := range d.Values {
			fs.thing(c.Go+" "+v.Go, c.Go, v.Go, v.Doc, v.Experimental, v.Deprecated)
		}
		fs.add(t, bounded, "", code(bounds(d.Type)))
	case *model.Newtype:
		fs.add(t, bounded, "", code(bounds(d.Type)))
	case *model.Struct:
		for _, f := range d.Fixed {
			fs.add(t, constant, f.JSON, code(string(f.Value)))
		}
	case *model.Union:
		by := "their own members or kinds"
		if d.Tag != "" {
			by = "the member " + code(d.Tag)
		}
		fs.add(t, toldBy, "", by)
		fs.set(t, anyTag, d.TagNull || d.TagLenient)
		for _, v := range d.Variants {
			its := fs.thing(c.Go+" "+v.Go, c.Go, v.Go, v.Doc, v.Experimental && !d.Experimental, v.Deprecated)
			key := cmp.Or(code(strings.TrimSpace(v.Tag+v.Key+" "+string(v.KeyValue))), "its kind")
			fs.add(its, variantKey, c.Go, key)
		}
	}
}

func (fs *facts) field(owner string, f *model.Field) {
	if f.Flat {
		return
	}
	t := fs.thing(owner+"."+f.Go, owner, owner+"."+f.Go, f.Doc, f.Experimental, f.Deprecated)
	fs.add(t, jsonName, "", code(f.JSON))
	fs.set(t, required, f.Required())
	fs.set(t, nullable, f.Nullable)
	fs.set(t, nullEmpty, f.OnNull)
	fs.set(t, badIsAbsent, f.OnError)
	fs.set(t, badItems, f.SkipItems)
	fs.add(t, defaulted, "", cmp.Or(code(string(f.Default)), "none"))
	fs.add(t, bounded, "", code(bounds(f.Type)))
}

func (fs *facts) method(m *model.Method) {
	t := fs.thing(methodID(m), "", m.Const, m.Doc, m.Experimental, false)
	fs.add(t, parameters, m.Name, code(m.Params.Base().Go))
	if m.Request() {
		fs.add(t, result, m.Name, code(m.Result.Base().Go))
		fs.set(t, nullResult, m.NullResult)
	}
	fs.add(t, gates, "", cmp.Or(needs(m), "nothing"))
	fs.set(t, ofSession, m.Session != nil)
}

// methodID identifies a method in both versions.
func methodID(m *model.Method) string {
	return fmt.Sprint("method ", m.Name, " ", m.Side, " ", m.Request())
}

// code returns s as code in Markdown, or "" if s is empty.
func code(s string) string { return text.Code(s) }

func bounds(t model.Type) string {
	var out []string
	add := func(what, limit string) {
		if limit != "" {
			out = append(out, what+" "+limit)
		}
	}
	for i, limit := range model.BoundsOf(t) {
		add(model.BoundKeywords[i].Keyword, limit)
	}
	switch t := t.(type) {
	case model.Slice:
		add("items:", bounds(t.Elem))
	case model.Map:
		add("values:", bounds(t.Elem))
	case model.Nullable:
		return bounds(t.Elem)
	}
	return strings.Join(out, ", ")
}

// describe returns a description of a method.
func describe(m *model.Method) string {
	kind, types := "notification", code(m.Params.Base().Go)
	if m.Request() {
		kind, types = "request", types+" → "+code(m.Result.Base().Go)
	}
	out := fmt.Sprintf("%s %s (side: %s), %s", kind, code(m.Name), m.Side, types)
	if needs := needs(m); needs != "" {
		out += ", needs " + needs
	}
	return out
}

// needs lists the capabilities that calls of a method need.
func needs(m *model.Method) string {
	var out []string
	if len(m.Capability) > 0 {
		out = append(out, code(model.DottedPath(m.Capability)))
	}
	for _, need := range m.Needs {
		what := code(model.DottedPath(need.Capability))
		switch {
		case need.Variant != nil:
			what += " for " + code(need.Variant.Go)
		case need.Field != nil:
			what += " for " + code(need.Field.JSON)
		}
		out = append(out, what)
	}
	return strings.Join(out, ", ")
}
