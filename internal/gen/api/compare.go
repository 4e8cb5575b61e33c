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
	old, new printer
	// mirrors maps types that are defined as another type of the package, and so have its fields, to that type.
	mirrors map[string]string
	// tried is the old package with experimental features, or nil.
	tried   *types.Package
	changes []Change
}

// compare returns the differences between two versions of a package. If only one of them has a type, the resulting
// differences in its fields, methods, constants and constructors are left out.
func compare(old, new, tried *types.Package, mirrors map[string]string) []Change {
	c := &comparison{old: printer{old}, new: printer{new}, mirrors: mirrors, tried: tried}
	for _, o := range exported(old) {
		if n := new.Scope().Lookup(o.Name()); n != nil {
			c.object(o, n)
		} else if !c.follows(o, new) && !byHand(o) {
			c.add(Breaking, o.Name(), c.old.describe(o)+" is gone")
		}
	}
	variants := c.newVariants()
	for _, n := range exported(new) {
		if old.Scope().Lookup(n.Name()) == nil && !c.follows(n, old) && !variants[n.Name()] && !byHand(n) {
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

// newVariants returns the types that are new variants of a sealed interface, because they are reported there.
func (c *comparison) newVariants() map[string]bool {
	out := map[string]bool{}
	for _, o := range exported(c.old.pkg) {
		before, was := o.Type().Underlying().(*types.Interface)
		n := c.new.pkg.Scope().Lookup(o.Name())
		if !was || n == nil {
			continue
		}
		if after, is := n.Type().Underlying().(*types.Interface); is && sealed(before) && sealed(after) {
			for _, v := range c.new.variants(after) {
				out[strings.TrimPrefix(v, "*")] = true
			}
		}
	}
	return out
}

// describe returns a description of an object.
func (p printer) describe(obj types.Object) string {
	switch obj := obj.(type) {
	case *types.Const:
		return "constant " + code(strings.TrimSpace(p.constant(obj)))
	case *types.Var:
		return "variable " + code(p.typ(obj.Type()))
	case *types.Func:
		return "function " + code(p.typ(obj.Type()))
	}
	switch u := obj.Type().Underlying().(type) {
	case *types.Struct:
		return "struct"
	case *types.Interface:
		return "interface"
	default:
		return "type " + code(p.typ(u)) + p.values(obj)
	}
}

// values returns the constants of a type.
func (p printer) values(typ types.Object) string {
	var out []string
	for _, obj := range exported(p.pkg) {
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
	_, wasType := o.(*types.TypeName)
	_, isType := n.(*types.TypeName)
	before, after := c.old.text(o), c.new.text(n)
	switch {
	case wasType && isType:
		c.typeName(o.(*types.TypeName), n.(*types.TypeName))
	case before != after && o.Name() != "AllFeatures": // the features themselves are compared
		c.became(o.Name(), before, after)
	}
}

// text returns everything about an object that is not a type, except its name.
func (p printer) text(obj types.Object) string {
	switch obj := obj.(type) {
	case *types.Const:
		return "const" + p.constant(obj)
	case *types.Func:
		return p.typeParams(obj.Signature().TypeParams()) + p.typ(obj.Type())
	case *types.TypeName:
		return "type"
	}
	return p.typ(obj.Type())
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

func (c *comparison) typeName(o, n *types.TypeName) {
	if o.IsAlias() || n.IsAlias() {
		if before, after := types.ObjectString(o, c.old.qualify), types.ObjectString(n, c.new.qualify); before != after {
			c.became(o.Name(), before, after)
		}
		return
	}
	before, after := o.Type().(*types.Named), n.Type().(*types.Named)
	if p, q := c.old.typeParams(before.TypeParams()), c.new.typeParams(after.TypeParams()); p != q {
		c.became(o.Name(), o.Name()+p, n.Name()+q)
		return
	}
	if mirrored, ok := c.mirrors[o.Name()]; ok && c.old.pkg.Scope().Lookup(mirrored) != nil {
		return // changes are reported there
	}
	c.underlying(o.Name(), before.Underlying(), after.Underlying())
	c.methods(o.Name(), methods(before), methods(after))
}

func (c *comparison) underlying(name string, o, n types.Type) {
	switch before := o.(type) {
	case *types.Struct:
		if after, ok := n.(*types.Struct); ok {
			c.fields(name, before, after)
			if types.Comparable(before) && !types.Comparable(after) {
				c.add(Breaking, name, "its values cannot be compared by == any more")
			}
			return
		}
	case *types.Interface:
		if after, ok := n.(*types.Interface); ok {
			c.interfaces(name, before, after)
			return
		}
	}
	if before, after := c.old.kind(o), c.new.kind(n); before != after {
		c.became(name, before, after)
	}
}

// kind returns an underlying type, without the contents of a struct or interface.
func (p printer) kind(t types.Type) string {
	switch t.(type) {
	case *types.Struct:
		return "struct"
	case *types.Interface:
		return "interface"
	}
	return p.typ(t)
}

// fields compares the exported fields of a struct.
func (c *comparison) fields(name string, o, n *types.Struct) {
	before, after := fieldTypes(c.old, o), fieldTypes(c.new, n)
	for _, f := range before {
		subject := name + "." + f.name
		if i := find(after, f.name); i < 0 {
			c.add(Breaking, subject, "field "+code(f.typ)+" is gone")
		} else if g := after[i]; f.typ != g.typ {
			c.became(subject, f.typ, g.typ)
		}
	}
	for _, f := range after {
		if find(before, f.name) < 0 {
			c.added(Addition, name+"."+f.name, "new field "+code(f.typ), name+"."+f.name)
		}
	}
}

// A member is a field or method.
type member struct{ name, typ string }

func find(list []member, name string) int {
	return slices.IndexFunc(list, func(m member) bool { return m.name == name })
}

func fieldTypes(p printer, s *types.Struct) []member {
	var out []member
	for f := range s.Fields() {
		if f.Exported() {
			out = append(out, member{f.Name(), p.typ(f.Type())})
		}
	}
	return out
}

// methods compares the methods of a type that is not an interface.
func (c *comparison) methods(name string, o, n []method) {
	list := func(p printer, methods []method) []member {
		var out []member
		for _, m := range methods {
			out = append(out, member{m.Name(), p.typ(m.Type())})
		}
		return out
	}
	before, after := list(c.old, o), list(c.new, n)
	for i, m := range before {
		subject := name + "." + m.name
		switch j := find(after, m.name); {
		case j < 0:
			c.add(Breaking, subject, "method "+code(m.typ)+" is gone")
		case m.typ != after[j].typ:
			c.became(subject, m.typ, after[j].typ)
		case !o[i].pointer && n[j].pointer:
			c.add(Breaking, subject, "only pointers have this method now")
		}
	}
	for _, m := range after {
		if find(before, m.name) < 0 {
			c.added(Addition, name+"."+m.name, "new method "+code(m.typ), name+"."+m.name)
		}
	}
}

// interfaces compares the methods of an interface, and the variants of a sealed one.
func (c *comparison) interfaces(name string, o, n *types.Interface) {
	list := func(p printer, i *types.Interface) []member {
		var out []member
		for m := range i.Methods() {
			if m.Exported() {
				out = append(out, member{m.Name(), p.typ(m.Type())})
			}
		}
		return out
	}
	before, after := list(c.old, o), list(c.new, n)
	for _, m := range before {
		if j := find(after, m.name); j < 0 {
			c.add(Breaking, name+"."+m.name, "method "+code(m.typ)+" is gone")
		} else if m.typ != after[j].typ {
			c.became(name+"."+m.name, m.typ, after[j].typ)
		}
	}
	for _, m := range after {
		if find(before, m.name) >= 0 {
			continue
		}
		level := Breaking // for types that implement it
		if sealed(o) {
			level = Addition
		}
		c.add(level, name+"."+m.name, "new method "+code(m.typ))
	}
	if !sealed(o) && sealed(n) {
		c.add(Breaking, name, "other packages cannot implement it any more")
	}
	if sealed(o) && sealed(n) {
		c.variants(name, c.old.variants(o), c.new.variants(n))
	}
}

func (c *comparison) variants(name string, before, after []string) {
	for _, v := range before {
		typ := strings.TrimPrefix(v, "*")
		switch {
		case slices.Contains(after, v) || c.new.pkg.Scope().Lookup(typ) == nil:
		case slices.Contains(after, typ):
			c.add(Silent, name, "the variant "+code(v)+" became "+code(typ)+"; a case of the pointer matches nothing any more")
		default:
			c.add(Breaking, name, code(v)+" is no variant any more")
		}
	}
	for _, v := range after {
		if !slices.Contains(before, v) && !slices.Contains(before, "*"+v) {
			c.added(Notable, name, "new variant "+code(v)+", which switches should have a case for", strings.TrimPrefix(v, "*"))
		}
	}
}
