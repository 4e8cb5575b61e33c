// This file computes every identifier of the generated packages.
//
// A name in the schema is split into words: at everything that is neither letter nor digit, before a
// capital that follows a small letter or a digit, and before the last capital of a run of capitals that
// a small letter follows (HTTPHeader is HTTP and Header). Each word is capitalized; the initialisms ID,
// URI, URL, MCP, HTTP, SSE, JSON, LLM, FS and ACP are written in capitals. An identifier never depends on
// its neighbours, so that it does not change when they do.
//
//   - type: the definition's name (McpServerHttp → MCPServerHTTP), unless overrides.go names it. What has
//     no definition is named after its owner and the property that it belongs to; an item of an array or a
//     map that is neither an object nor a choice, and then Item.
//   - field: the property's name (_meta → Meta). A second choice in one object is called AnyOf.
//   - enum constant: the type and the value; for an integer enum, the value's title.
//   - variant: the union and the tag; without a tag, the union and the title; without that, the union
//     and the definition or member that tells the variant apart. Where that is the name of the payload's
//     definition (MCPServerHTTP), or the title is (TextResourceContents), the definition is the variant.
//     The tags unknown and variant are preceded by the name of the tag's member (StateUpdateStateUnknown).
//   - the tag that stands beside a variant without one: the tag's name (type → Type).
//   - sealed interface: the union and Variant. Unknown variant: the union and Unknown.
//   - constructor: New, the union and the tag or title, unless overrides.go names it.
//   - default accessor: the field and OrDefault.
//   - method: the definition of the parameters without Request or Notification (NewSession), unless
//     overrides.go names it; its constant begins with Method (MethodNewSession), and its
//     descriptor ends so (NewSessionMethod) or, in a facade, begins with method. Where a
//     request and a notification come to the same name, the notification keeps its last word.
//
// Two things that come to the same identifier are an error.

package gen

import (
	"errors"
	"fmt"
	"go/token"
	"slices"
	"strings"
	"unicode"

	"github.com/acpgo/sdk/gen/model"
	"github.com/acpgo/sdk/gen/schema"
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
			b.WriteString(upper[:1] + word[1:])
		}
	}
	return b.String()
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
	judgements *judgements
	taken      map[string]string // identifier → what has it
	problems   []error
}

// name sets every Go name of the package.
func name(pkg *model.Package, j *judgements) error {
	n := &namer{judgements: j, taken: map[string]string{}}
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

func (n *namer) problem(at, format string, args ...any) {
	n.problems = append(n.problems, &schema.Error{Pointer: at, Msg: fmt.Sprintf(format, args...)})
}

// take checks an identifier of the package and gives it to what stands at a pointer.
func (n *namer) take(identifier, at string) string {
	if !token.IsIdentifier(identifier) {
		n.problem(at, "%q is no Go identifier", identifier)
	} else if other, ok := n.taken[identifier]; ok {
		n.problem(at, "the name %s is taken by %s", identifier, other)
	}
	n.taken[identifier] = at
	return identifier
}

// decl names a declaration, and the constants of an enum. An owner precedes what it owns.
func (n *namer) decl(d model.Decl) {
	c := d.Base()
	switch s, ok := d.(*model.Struct); {
	case c.Schema != "":
		c.Go = exported(c.Schema)
		if name, ok := n.judgements.of(Name, c.Schema); ok {
			c.Go = name
		}
	case ok && s.Variant != nil:
		c.Go = variantName(s.Variant)
		s.Variant.Go = c.Go
	case c.Owner != nil:
		c.Go = c.Owner.Base().Go + exported(c.Part)
	default:
		c.Go = exported(c.Part)
	}
	n.take(c.Go, c.Pointer)
	if enum, ok := d.(*model.Enum); ok {
		for _, v := range enum.Values {
			v.Go = n.take(c.Go+exported(v.Part), v.Pointer)
		}
	}
}

func (n *namer) union(u *model.Union) {
	u.VariantName = n.take(u.Go+"Variant", u.Pointer)
	if u.Unknown != nil {
		u.Unknown.Go = n.take(u.Go+"Unknown", u.Unknown.Pointer)
	}
	for _, v := range u.Variants {
		full := variantName(v)
		if v.Payload != nil && !v.Inline {
			payload := v.Payload.Base()
			v.Self = full == payload.Go || v.Part == payload.Schema
			v.Go = payload.Go
		}
		if !v.Self && !v.Inline {
			v.Go = n.take(full, v.Pointer)
		}
		v.Constructor = "New" + full
		if name, ok := n.judgements.of(Constructor, u.Schema+"/"+v.Part); ok {
			v.Constructor, v.Spread = name, true
		}
		v.Spread = v.Spread || v.Inline
		n.take(v.Constructor, v.Pointer)
	}
}

// variantName returns the name of a variant's own type.
func variantName(v *model.Variant) string {
	part := exported(v.Part)
	if part == "Unknown" || part == "Variant" {
		part = exported(v.Union.Tag) + part
	}
	return v.Union.Go + part
}

// fields names the members of an object. Its methods and the field Variant are taken.
func (n *namer) fields(d model.Decl) {
	taken := map[string]string{"MarshalJSON": "a method", "UnmarshalJSON": "a method", "EncodeJSON": "a method", "DecodeJSON": "a method", "IsZero": "a method"}
	if _, ok := d.(*model.Union); ok {
		taken["Variant"] = "the field of the variant"
		taken["String"] = "a method"
	}
	take := func(identifier string, f *model.Field) string {
		if !token.IsIdentifier(identifier) {
			n.problem(f.Pointer, "%q is no Go identifier", identifier)
		} else if other, ok := taken[identifier]; ok {
			n.problem(f.Pointer, "the name %s is taken by %s", identifier, other)
		}
		taken[identifier] = f.Pointer
		return identifier
	}
	for _, f := range model.Fields(d) {
		if f.Flat {
			f.Go = take(exported(f.Type.(model.Named).Decl.Base().Part), f)
			continue
		}
		f.Go = take(exported(f.JSON), f)
		if f.Default != nil {
			f.Accessor = take(f.Go+"OrDefault", f)
		}
	}
	if u, ok := d.(*model.Union); ok && u.KeepsTag() {
		u.KeptTag = take(exported(u.Tag), &model.Field{Pointer: u.Pointer})
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
		m.Go = exported(base)
		if name, ok := n.judgements.of(Handler, definition); ok {
			m.Go = name
		}
		m.Const = n.take("Method"+m.Go, m.Pointer)
		m.Desc = n.take("method"+m.Go, m.Pointer)
		m.Var = n.take(m.Go+"Method", m.Pointer)
	}
}
