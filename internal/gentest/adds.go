package gentest

import (
	"go/types"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/acpgo/sdk/gen/api"
)

// onlyAdds requires that everything which Base exports the package exports too, in the same shape: names, constants,
// signatures, fields with their tags, and methods. What is of the one package in the first is of the other in the
// second: a program goes from one to the other, and back, by changing an import. It logs how much was compared.
func (p *Package) onlyAdds(t *testing.T) {
	base, more := p.Base, p.Base+"/unstable"
	imports, err := api.Importer(".", base, more)
	if err != nil {
		t.Fatal(err)
	}
	old, err := imports.Import(base)
	if err != nil {
		t.Fatal(err)
	}
	new, err := imports.Import(more)
	if err != nil {
		t.Fatal(err)
	}
	c := &comparison{old: shape{old}, new: shape{new}}
	for _, name := range old.Scope().Names() {
		if o := old.Scope().Lookup(name); o.Exported() {
			c.object(name, o, new.Scope().Lookup(name))
		}
	}
	for _, problem := range c.problems {
		t.Error(problem)
	}
	t.Logf("%d names, fields and methods of %s are in %s; %d types are the same", c.count, base, more, c.shared)
}

// shape writes what is in a package, so that it does not say which.
type shape struct{ pkg *types.Package }

func (s shape) of(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == s.pkg {
			return "."
		}
		return p.Path()
	})
}

type comparison struct {
	old, new shape
	count    int
	shared   int // types that are the same in both
	problems []string
}

func (c *comparison) problem(parts ...string) {
	c.problems = append(c.problems, strings.Join(parts, " "))
}

// same compares the texts of two things.
func (c *comparison) same(name, old, new string) {
	c.count++
	// A name of the first package that the second has an alias of.
	new = regexp.MustCompile(regexp.QuoteMeta(c.old.pkg.Path())+`\.\w+`).ReplaceAllStringFunc(new, func(text string) string {
		name := text[strings.LastIndexByte(text, '.')+1:]
		o, n := c.old.pkg.Scope().Lookup(name), c.new.pkg.Scope().Lookup(name)
		if o != nil && n != nil && types.Identical(o.Type(), n.Type()) {
			return ".." + name
		}
		return text
	})
	if old != new {
		c.problem(name+": was", old+", is", new)
	}
}

func (c *comparison) object(name string, old, new types.Object) {
	if new == nil || reflect.TypeOf(old) != reflect.TypeOf(new) {
		c.count++
		c.problem(name, "is missing, or something else")
		return
	}
	c.same(name, c.old.of(old.Type()), c.new.of(new.Type()))
	switch old := old.(type) {
	case *types.Const:
		// The version of what a package speaks, the name of a method, a value of an enum.
		c.same(name, old.Val().ExactString(), new.(*types.Const).Val().ExactString())
	case *types.TypeName:
		switch named, ok := types.Unalias(new.Type()).(*types.Named); {
		case old.IsAlias():
		case types.Identical(old.Type(), new.Type()):
			c.shared++
		case !ok:
			c.problem(name, "is another type")
		default:
			c.named(name, old.Type().(*types.Named), named)
		}
	}
}

func (c *comparison) named(name string, old, new *types.Named) {
	methods := types.NewMethodSet(types.NewPointer(new))
	for m := range types.NewMethodSet(types.NewPointer(old)).Methods() {
		if !m.Obj().Exported() {
			continue
		}
		other := methods.Lookup(c.new.pkg, m.Obj().Name())
		if other == nil {
			c.count++
			c.problem(name+"."+m.Obj().Name(), "is missing")
			continue
		}
		c.same(name+"."+m.Obj().Name(), c.old.of(m.Type()), c.new.of(other.Type()))
	}
	oldStruct, ok := old.Underlying().(*types.Struct)
	if !ok {
		c.same(name, c.old.of(old.Underlying()), c.new.of(new.Underlying()))
		return
	}
	newStruct, ok := new.Underlying().(*types.Struct)
	if !ok {
		c.problem(name, "is not a struct any more")
		return
	}
	fields := map[string]string{}
	for i := range newStruct.NumFields() {
		fields[newStruct.Field(i).Name()] = c.new.of(newStruct.Field(i).Type()) + " " + newStruct.Tag(i)
	}
	for i := range oldStruct.NumFields() {
		if f := oldStruct.Field(i); f.Exported() {
			c.same(name+"."+f.Name(), c.old.of(f.Type())+" "+oldStruct.Tag(i), fields[f.Name()])
		}
	}
}
