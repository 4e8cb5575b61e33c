package api

import (
	"go/types"
	"slices"
	"strings"
)

// Level is the effect of a change on a program that was written for the old version.
type Level int

// The levels, the worst first.
const (
	// Breaking changes prevent programs that use the subject from compiling.
	Breaking Level = iota
	// Silent changes let such programs compile, but what they send is not understood as before.
	Silent
	// Promoted things were experimental and became stable.
	Promoted
	// Notable changes let programs compile that may have to handle something new.
	Notable
	// Additions are available to programs that want them.
	Addition
	// OnWire changes affect what is read, but nothing that a program sees.
	OnWire
)

// String returns the name of a level in JSON.
func (l Level) String() string {
	return [...]string{Breaking: "breaking", Silent: "silent", Promoted: "promoted", Notable: "notable",
		Addition: "addition", OnWire: "wire"}[l]
}

// MarshalText implements encoding.TextMarshaler.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Change is one difference.
type Change struct {
	Level Level `json:"level"`
	// Subject is a Go name of the package: Type, Type.Field, Type.Method or Func.
	Subject string `json:"subject"`
	Text    string `json:"text"` // a line of Markdown
}

// A comparison compares two versions of a package.
type comparison struct {
	old, new Printer
	// mirrors maps types that are defined as another type of the package, and so have its fields, to that type.
	mirrors map[string]string
	// tried is the old package with experimental features, or nil.
	tried *types.Package
	// variants has the new variants of interfaces, which are reported there.
	variants map[string]bool
	changes  []Change
}

// compare returns the differences between two versions of a package. If only one of them has a type, the resulting
// differences in its fields, methods, constants and constructors are left out.
func compare(old, new, tried *types.Package, mirrors map[string]string) []Change {
	c := &comparison{old: Printer{old}, new: Printer{new}, mirrors: mirrors, tried: tried,
		variants: map[string]bool{}}
	for _, o := range Exported(old) {
		if n := new.Scope().Lookup(o.Name()); n != nil {
			c.object(o, n)
		} else if !c.follows(o, new) && !byHand(o) {
			c.add(Breaking, o.Name(), c.old.describe(o)+" is gone")
		}
	}
	for _, n := range Exported(new) {
		if old.Scope().Lookup(n.Name()) == nil && !c.follows(n, old) && !c.variants[n.Name()] && !byHand(n) {
			level := Addition
			if _, isConst := n.(*types.Const); isConst && namedType(n.Type()) != nil {
				level = Notable
			}
			c.added(level, n.Name(), "new "+c.new.describe(n), n.Name())
		}
	}
	return c.changes
}

func (c *comparison) add(level Level, subject, text string) {
	c.changes = append(c.changes, Change{level, subject, text})
}

// added adds a change for something new, which may have been experimental under a name.
func (c *comparison) added(level Level, subject, text, name string) {
	if has(c.tried, name) {
		level, text = Promoted, text+", which was experimental"
	}
	c.add(level, subject, text)
}

// has reports whether a package has a declaration, or a type has a field or method: Type.Field.
func has(pkg *types.Package, name string) bool {
	if pkg == nil {
		return false
	}
	name, part, _ := strings.Cut(name, ".")
	obj := pkg.Scope().Lookup(name)
	if obj == nil || part == "" {
		return obj != nil
	}
	found, _, _ := types.LookupFieldOrMethod(obj.Type(), true, pkg, part)
	return found != nil
}

// namedType returns the defined type that t is or points to.
func namedType(t types.Type) *types.Named {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	n, _ := t.(*types.Named)
	return n
}

// follows reports whether obj is a constant or a constructor of a type that the other version lacks.
func (c *comparison) follows(obj types.Object, other *types.Package) bool {
	var of *types.Named
	switch obj := obj.(type) {
	case *types.Const:
		of = namedType(obj.Type())
	case *types.Func:
		if results := obj.Signature().Results(); results.Len() > 0 {
			of = namedType(results.At(0).Type())
		}
	}
	return of != nil && of.Obj().Pkg() == obj.Pkg() && other.Scope().Lookup(of.Obj().Name()) == nil
}

// describe returns a description of an object.
func (p Printer) describe(obj types.Object) string {
	switch obj := obj.(type) {
	case *types.Const:
		return "constant " + code(strings.TrimSpace(p.Constant(obj)))
	case *types.Var:
		return "variable " + code(p.Type(obj.Type()))
	case *types.Func:
		return "function " + code(p.Type(obj.Type()))
	}
	shape := p.Shape(obj.Type())
	if shape == structs || shape == interfaces {
		return shape
	}
	return "type " + code(shape) + p.values(obj)
}

// values returns the constants of a type.
func (p Printer) values(typ types.Object) string {
	var out []string
	for _, obj := range Exported(p.Package) {
		if _, isConst := obj.(*types.Const); isConst && types.Identical(obj.Type(), typ.Type()) {
			out = append(out, code(obj.Name()))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return " with " + strings.Join(out, ", ")
}

// object compares two objects with the same name.
func (c *comparison) object(o, n types.Object) {
	before, after := Defined(o), Defined(n)
	was, is := c.old.text(o), c.new.text(n)
	if _, wasType := o.(*types.TypeName); wasType && was == is {
		was, is = types.ObjectString(o, c.old.qualify), types.ObjectString(n, c.new.qualify)
	}
	switch {
	case before != nil && after != nil:
		c.defined(before, after)
	case was != is && o.Name() != "AllFeatures": // the features themselves are compared
		c.became(o.Name(), was, is)
	}
}

// text returns everything about an object that is not a type, except its name.
func (p Printer) text(obj types.Object) string {
	switch obj := obj.(type) {
	case *types.Const:
		return "const" + p.Constant(obj)
	case *types.Func:
		return p.TypeParams(obj.Signature().TypeParams()) + p.Type(obj.Type())
	case *types.TypeName:
		return "type"
	}
	return p.Type(obj.Type())
}

func (c *comparison) became(subject, before, after string) {
	text := code(before) + " became " + code(after)
	const opt = "codec.Opt["
	switch wasOpt, isOpt := strings.HasPrefix(before, opt), strings.HasPrefix(after, opt); {
	case isOpt && !wasOpt:
		text += ", which can be absent"
	case wasOpt && !isOpt:
		text += ", whose zero value is what absent was, or which is always there"
	}
	c.add(Breaking, subject, text)
}

// defined compares two defined types.
func (c *comparison) defined(o, n *types.Named) {
	name := o.Obj().Name()
	if p, q := c.old.TypeParams(o.TypeParams()), c.new.TypeParams(n.TypeParams()); p != q {
		c.became(name, name+p, name+q)
		return
	}
	if mirrored, ok := c.mirrors[name]; ok && c.old.Package.Scope().Lookup(mirrored) != nil {
		return // changes are reported there
	}
	was, is := c.old.Shape(o), c.new.Shape(n)
	if was != is {
		c.became(name, was, is)
	} else {
		c.parts(name, c.old.Parts(o), c.new.Parts(n), was == interfaces && !Sealed(o))
	}
	switch {
	case was == structs && is == structs && types.Comparable(o) && !types.Comparable(n):
		c.add(Breaking, name, "its values cannot be compared by == any more")
	case Sealed(o) && Sealed(n):
		c.parts(name, c.old.Variants(o), c.new.Variants(n), false)
	case was == interfaces && Sealed(n):
		c.add(Breaking, name, "other packages cannot implement it any more")
	}
	c.parts(name, c.old.Methods(o), c.new.Methods(n), false)
}

// parts compares the parts of two types. If other packages can implement the old one, they lack new methods.
func (c *comparison) parts(name string, before, after []Part, implemented bool) {
	find := func(list []Part, p Part) int {
		return slices.IndexFunc(list, func(q Part) bool { return q.Name() == p.Name() })
	}
	for _, p := range before {
		subject, i := name+"."+p.Name(), find(after, p)
		switch {
		case p.Kind == Variant && (i < 0 || after[i].Pointer && !p.Pointer):
			if c.new.Package.Scope().Lookup(p.Name()) != nil {
				c.add(Breaking, name, code(p.Type)+" is no variant any more")
			}
		case p.Kind == Variant && p.Pointer && !after[i].Pointer:
			c.add(Silent, name, "the variant "+code(p.Type)+" became "+code(p.Name())+
				"; a case of the pointer matches nothing any more")
		case p.Kind == Variant:
		case i < 0:
			c.add(Breaking, subject, p.Kind+" "+code(p.Type)+" is gone")
		case p.Type != after[i].Type:
			c.became(subject, p.Type, after[i].Type)
		case after[i].Pointer && !p.Pointer:
			c.add(Breaking, subject, "only pointers have this method now")
		}
	}
	for _, p := range after {
		switch subject := name + "." + p.Name(); {
		case find(before, p) >= 0:
		case p.Kind == Variant:
			c.variants[p.Name()] = true
			c.added(Notable, name, "new variant "+code(p.Type)+", which switches should have a case for", p.Name())
		case implemented:
			c.add(Breaking, subject, "new method "+code(p.Type))
		default:
			c.added(Addition, subject, "new "+p.Kind+" "+code(p.Type), subject)
		}
	}
}
