// Every identifier of the generated packages is computed here.
//
// A name in the schema is split into words: at every character that is neither a letter nor a digit, before an
// upper-case letter that follows a lower-case letter or a digit, and before the last letter of a series of upper-case
// letters if a lower-case letter follows (HTTPHeader is HTTP and Header). Each word is capitalized; the initialisms ID,
// URI, URL, MCP, HTTP, SSE, JSON, LLM, FS and ACP are written in upper case. An identifier never depends on its
// neighbours, so that it does not change when they do. A name that would not be exported, because it begins with a
// digit or a letter without upper case, gets the prefix X (3d → X3d, 名 → X名).
//
//   - type: the definition's name (McpServerHttp → MCPServerHTTP), unless an override names it. A type without a
//     definition is named after its owner and property.
//   - field: the property's name (_meta → Meta). A second choice in one object is called AnyOf,
//     the map of the members that the schema allows without naming them Extra.
//   - enum constant: the type and the value; for a number the title, or else Value or Minus and the number.
//   - variant: the union and the tag; without a tag, the union and the title; without a title, the union and the
//     definition, the member that distinguishes the variant, or the kind of value. If that is the name of the payload's
//     definition (MCPServerHTTP), or the title is (TextResourceContents), the definition itself is the variant. The
//     tags unknown and variant are preceded by the name of the tag's member (StateUpdateStateUnknown), and so is the
//     tag of a variant that has members in addition to those of a definition that already has the name
//     (ShapeTypeCircle).
//   - the tag next to a variant that has no tag itself: the tag's name (type → Type).
//   - sealed interface: the union and Variant. Unknown variant: the union and Unknown.
//   - constructor: New, the union and the tag or title, unless an override names it.
//   - default accessor: the field and OrDefault.
//   - method: the definition of the parameters without Request or Notification (NewSession), unless an override names
//     it; its constant begins with Method (MethodNewSession), and its descriptor ends with Method (NewSessionMethod)
//     or, in a facade, begins with method. The descriptor of a method named Method is MethodDescriptor. If a request
//     and a notification would have the same name, the notification keeps its last word.
//
// If two things would have the same identifier, or a name has neither a letter nor a digit, that is an error. An
// override can name each thing: Name a type, Member a field, Value a constant, Variant a variant's own type,
// Constructor its constructor, Handler a method. Names that are derived from it change too.

package gen

import (
	"errors"
	"fmt"
	"go/token"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/acpgo/sdk/internal/gen/model"
	"github.com/acpgo/sdk/internal/gen/schema"
	"github.com/acpgo/sdk/internal/gen/text"
)

var initialisms = []string{"ID", "URI", "URL", "MCP", "HTTP", "SSE", "JSON", "LLM", "FS", "ACP"}

// exported returns the exported Go identifier for a name of the schema.
func exported(name string) string {
	var b strings.Builder
	for _, word := range words(name) {
		upper := strings.ToUpper(word)
		if slices.Contains(initialisms, upper) {
			b.WriteString(upper)
		} else {
			first, size := utf8.DecodeRuneInString(word)
			b.WriteString(string(unicode.ToUpper(first)) + word[size:])
		}
	}
	return b.String()
}

// leading returns the exported Go identifier for a name of the schema, for use as the first part of a longer
// identifier. It is "" for names without letters and digits.
func leading(name string) string {
	out := exported(name)
	if out != "" && !token.IsExported(out) {
		out = "X" + out
	}
	return out
}

// words splits a name of the schema.
func words(name string) []string {
	var out []string
	var word []rune
	runes := []rune(name)
	for i, r := range runes {
		letter := unicode.IsLetter(r) || unicode.IsDigit(r)
		if len(word) > 0 && letter && unicode.IsUpper(r) {
			afterSmall := !unicode.IsUpper(runes[i-1])
			beforeSmall := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if afterSmall || beforeSmall {
				out, word = append(out, string(word)), nil
			}
		}
		switch {
		case letter:
			word = append(word, r)
		case len(word) > 0:
			out, word = append(out, string(word)), nil
		}
	}
	if len(word) > 0 {
		out = append(out, string(word))
	}
	return out
}

// namer computes names and remembers which are taken.
type namer struct {
	decisions *decisions
	facade    bool
	taken     map[string]string // identifier → the pointer of the thing that has it
	suggested map[string]int    // identifier → the number after it in the last suggestion
	subjects  map[string]string // kind and subject → the pointer of the first thing with it
	nameless  int               // the number of things without anything to derive a name from
	problems  []error
}

// name sets every Go name of the package.
func name(pkg *model.Package, j *decisions, facade bool) error {
	n := &namer{decisions: j, facade: facade, taken: map[string]string{}, suggested: map[string]int{},
		subjects: map[string]string{}}
	for _, d := range pkg.Decls {
		n.decl(d)
	}
	for _, d := range pkg.Decls {
		if u, ok := d.(*model.Union); ok {
			n.union(u)
		}
	}
	for _, d := range pkg.Decls {
		n.fields(d)
	}
	n.methods(pkg.Methods)
	return errors.Join(n.problems...)
}

// named is something that needs a name, with its subjects in overrides.
type named struct {
	kind    Kind
	subject string // of the override
	pointer string // which is also a subject
	name    string // the assigned name
}

func (n *namer) problem(what named, format string, args ...any) {
	n.problems = append(n.problems, &schema.Error{Pointer: what.pointer, Msg: fmt.Sprintf(format, args...)})
}

// want reports that something needs an override, and suggests an override with the given name.
func (n *namer) want(what named, name, because, why string) {
	n.problems = append(n.problems,
		&schema.Error{Pointer: what.pointer, Err: &Wanted{Override{what.kind, what.subject, name, why}, errors.New(because)}})
}

// nameFor returns the name that an override gives, or else the default name.
func (n *namer) nameFor(what *named, byRule string) (name string, given bool) {
	key := fmt.Sprint(what.kind, " ", what.subject)
	if first, ok := n.subjects[key]; !ok {
		n.subjects[key] = what.pointer
	} else if first != what.pointer { // only its place says which of the two it is
		what.subject = what.pointer
	}
	name, ok := n.decisions.find(what.kind, what.subject, what.pointer)
	switch {
	case !ok:
		if name = byRule; !text.IsExported(name) {
			n.nameless++
			n.want(*what, fmt.Sprintf("X%d", n.nameless), "it has no letter or digit to name it by", "it has no letter or digit")
		}
	case !text.IsExported(name):
		n.problem(*what, "the override {%v, %q} gives the name %q, which is no exported identifier of Go", what.kind,
			what.subject, name)
	}
	what.name = name
	return name, ok
}

// take assigns an identifier of a scope to something, if it is free.
func (n *namer) take(taken map[string]string, identifier string, what named) string {
	if !text.IsExported(identifier) {
		return identifier // already reported
	}
	if other, ok := taken[identifier]; ok {
		free := func(i int) string { return strings.Replace(identifier, what.name, fmt.Sprint(what.name, i), 1) }
		i := max(2, n.suggested[identifier]+1)
		for taken[free(i)] != "" {
			i++
		}
		taken[free(i)], n.suggested[identifier] = what.pointer, i
		n.want(what, fmt.Sprint(what.name, i), fmt.Sprintf("the name %s is taken by %s", identifier, other),
			fmt.Sprintf("%s has the name %s", other, identifier))
		return identifier
	}
	taken[identifier] = what.pointer
	return identifier
}

// part is something within a declaration.
func part(kind Kind, d model.Decl, name, pointer string) named {
	return named{kind: kind, subject: pathOf(d) + "/" + schema.Escape(name), pointer: pointer}
}

// decl names a declaration, and the constants of an enum. An owner precedes what it owns.
func (n *namer) decl(d model.Decl) {
	c := d.Base()
	what := named{kind: Name, subject: pathOf(d), pointer: c.Pointer}
	switch s, ok := d.(*model.Struct); {
	case c.Schema != "":
		c.Go, _ = n.nameFor(&what, leading(c.Schema))
	case ok && s.Variant != nil:
		what = part(Variant, s.Variant.Union, s.Variant.Part, s.Variant.Pointer)
		c.Go, _ = n.nameFor(&what, variantName(s.Variant))
		s.Variant.Go = c.Go
	case c.Owner != nil:
		c.Go, _ = n.nameFor(&what, partName(c.Owner.Base().Go, c.Part))
	default:
		c.Go, _ = n.nameFor(&what, leading(c.Part))
	}
	n.take(n.taken, c.Go, what)
	if enum, ok := d.(*model.Enum); ok {
		for _, v := range enum.Values {
			what := part(Value, enum, fmt.Sprint(v.Value), v.Pointer)
			v.Go, _ = n.nameFor(&what, partName(c.Go, v.Part))
			n.take(n.taken, v.Go, what)
		}
	}
}

// partName returns the name for a part of something named, or "" if there is nothing to derive it from.
func partName(owner, part string) string {
	if part = exported(part); part == "" {
		return ""
	}
	return owner + part
}

func (n *namer) union(u *model.Union) {
	whole := named{Name, pathOf(u), u.Pointer, u.Go}
	u.VariantName = n.take(n.taken, u.Go+"Variant", whole)
	if u.Unknown != nil {
		u.Unknown.Go = n.take(n.taken, u.Go+"Unknown", whole)
	}
	n.looked(u.Pointer, u.Tag)
	for _, v := range u.Variants {
		n.looked(v.Pointer, v.Key)
		n.variant(v)
	}
}

// looked refuses member names that distinguish variants if JSON escapes them, because the decoder searches for them in
// the raw JSON text.
func (n *namer) looked(at, name string) {
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' }) {
		n.problem(named{pointer: at}, "no variant can be told by the member %q, whose name JSON escapes", name)
	}
}

func (n *namer) variant(v *model.Variant) {
	u := v.Union
	full := v.Go
	if !v.Inline {
		what := part(Variant, u, v.Part, v.Pointer)
		var given bool
		full, given = n.nameFor(&what, variantName(v))
		if own := valueOf(v); own != nil {
			c := own.Base()
			v.Self = full == c.Go || !given && v.Payload != nil && v.Part == c.Schema
			v.Go = c.Go
		}
		if !v.Self {
			v.Go = n.take(n.taken, full, what)
		}
	}
	if full == "" {
		return // already reported
	}
	what := part(Constructor, u, v.Part, v.Pointer)
	name, spread := n.nameFor(&what, "New"+full)
	v.Constructor = n.take(n.taken, name, what)
	_, members := v.Payload.(*model.Struct)
	v.Spread = v.Inline || spread && members
}

// variantName returns the default name of a variant's own type.
func variantName(v *model.Variant) string {
	part := exported(v.Part)
	named := func(definition string) bool { return leading(definition) == v.Union.Go+part }
	if part == "Unknown" || part == "Variant" || slices.ContainsFunc(v.Refs, named) {
		part = exported(v.Union.Tag) + part
	}
	if part == "" {
		return ""
	}
	return v.Union.Go + part
}

// fields names the members of an object. Its methods and the field Variant are taken.
func (n *namer) fields(d model.Decl) {
	taken := map[string]string{"MarshalJSON": "a method", "UnmarshalJSON": "a method", "EncodeJSON": "a method",
		"DecodeJSON": "a method", "IsZero": "a method"}
	if _, ok := d.(*model.Union); ok {
		taken["Variant"] = "the field of the variant"
		taken["String"] = "a method"
	}
	for _, f := range model.Fields(d) {
		name := f.JSON
		if f.Flat {
			name = f.Type.(model.Named).Decl.Base().Part
		}
		what := part(Member, d, name, f.Pointer)
		f.Go, _ = n.nameFor(&what, leading(name))
		n.take(taken, f.Go, what)
		if f.Default != nil {
			f.Accessor = n.take(taken, f.Go+"OrDefault", what)
		}
	}
	if s, ok := d.(*model.Struct); ok && s.Extra != nil {
		what := part(Member, d, "*", s.Extra.Pointer)
		s.Extra.Go, _ = n.nameFor(&what, "Extra")
		n.take(taken, s.Extra.Go, what)
	}
	if u, ok := d.(*model.Union); ok && u.KeepsTag() {
		what := part(Member, u, u.Tag, u.Pointer)
		u.KeptTag, _ = n.nameFor(&what, leading(u.Tag))
		n.take(taken, u.KeptTag, what)
	}
}

func (n *namer) methods(methods []*model.Method) {
	for _, m := range methods {
		definition := m.Params.Base().Schema
		base := strings.TrimSuffix(strings.TrimSuffix(definition, request), notification)
		if !m.Request() && slices.ContainsFunc(methods, func(o *model.Method) bool {
			return o.Request() && o.Params.Base().Schema == base+request
		}) {
			base = definition
		}
		what := named{kind: Handler, subject: schema.Escape(definition), pointer: m.Pointer}
		m.Go, _ = n.nameFor(&what, leading(base))
		if m.Go == "" {
			continue // already reported
		}
		m.Const = n.take(n.taken, "Method"+m.Go, what)
		m.Desc = "method" + m.Go
		if m.Var = m.Go + "Method"; m.Var == m.Const {
			m.Var = "MethodDescriptor"
		}
		if !n.facade && n.taken[m.Const] == what.pointer { // otherwise the clash is already reported
			n.take(n.taken, m.Var, what)
		}
	}
}
