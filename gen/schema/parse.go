// This file owns the ordered walk over a schema document and its limits.

package schema

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/atombender/go-jsonschema/pkg/schemas"
)

// MaxSize is the largest document that Parse reads, in bytes: forty times the largest published one.
const MaxSize = 16 << 20

// maxDepth bounds the nesting of schemas. The published ones stay below twenty.
const maxDepth = 100

const refPrefix = "#/$defs/"

// The errors that Parse wraps for a document that is refused as a whole.
var (
	ErrSize    = errors.New("larger than 16 MiB")
	ErrDepth   = errors.New("schemas nested deeper than 100 levels")
	ErrKeyword = errors.New("unknown keyword")
)

type role int

const (
	unknown   role = iota
	asserts        // restricts the values that the schema accepts
	annotates      // says something about them
)

// keywords holds every keyword that the published schemas use, apart from the old ones that only
// their metaschema used. A keyword that is not here stops the generator.
var keywords = map[string]role{
	"$schema": annotates, "$comment": annotates, "$defs": annotates,
	"title": annotates, "description": annotates, "default": annotates,
	"x-docs-ignore": annotates, "x-method": annotates, "x-side": annotates,
	"x-deserialize-default-on-error":   annotates,
	"x-deserialize-default-on-null":    annotates,
	"x-deserialize-skip-invalid-items": annotates,
	"format":                           annotates, "contentEncoding": annotates, "discriminator": annotates,

	"$ref": asserts, "type": asserts, "const": asserts, "enum": asserts,
	"properties": asserts, "required": asserts, "additionalProperties": asserts,
	"unevaluatedProperties": asserts, "items": asserts, "prefixItems": asserts,
	"oneOf": asserts, "anyOf": asserts, "allOf": asserts, "not": asserts,
	"minimum": asserts, "maximum": asserts, "minLength": asserts, "minItems": asserts,
	"maxItems": asserts, "pattern": asserts,
}

// Parse reads a schema document. Every problem is an *Error; those that do not stop the walk are all
// reported, joined.
func Parse(data []byte) (*Document, error) {
	if len(data) > MaxSize {
		return nil, &Error{Msg: "not read", Err: ErrSize}
	}
	if !utf8.Valid(data) {
		return nil, &Error{Msg: "not JSON: invalid UTF-8"}
	}
	w := &walker{data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	root, err := w.schema("", 0)
	if err != nil {
		return nil, err
	}
	if _, err := w.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, &Error{Msg: "not JSON: more than one value"}
	}
	if err := errors.Join(w.problems...); err != nil {
		return nil, err
	}
	if len(w.defs) == 0 {
		return nil, &Error{Msg: "not an ACP schema: it has no $defs"}
	}

	typed, err := schemas.FromJSONReader(bytes.NewReader(data))
	if err != nil {
		return nil, &Error{Msg: "not a JSON Schema", Err: err}
	}
	if err := attach(root, (*schemas.Type)(typed.ObjectAsType)); err != nil {
		return nil, err
	}
	doc := &Document{Root: root, Defs: w.defs, Digest: sha256.Sum256(data), byName: map[string]*Node{}}
	for _, def := range doc.Defs {
		if err := attach(def.Node, typed.Definitions[def.Name]); err != nil {
			return nil, err
		}
		doc.byName[def.Name] = def.Node
	}
	return doc, doc.resolve()
}

// walker reads schemas from a stream of tokens.
type walker struct {
	data     []byte
	dec      *json.Decoder
	defs     []Property
	problems []error
}

func (w *walker) problem(at, format string, args ...any) {
	w.problems = append(w.problems, &Error{Pointer: at, Msg: fmt.Sprintf(format, args...)})
}

// schema reads the schema that comes next. The error is for what cannot be read on from.
func (w *walker) schema(at string, depth int) (*Node, error) {
	if depth > maxDepth {
		return nil, &Error{Pointer: at, Msg: "not read", Err: ErrDepth}
	}
	n := &Node{Pointer: at}
	start := w.next()
	token, err := w.dec.Token()
	if err != nil {
		return nil, notJSON(at, err)
	}
	switch token := token.(type) {
	case bool:
		n.Bool = &token
	case json.Delim:
		if token != '{' {
			return nil, &Error{Pointer: at, Msg: "a schema must be an object or a boolean, not an array"}
		}
		if err := w.members(at, func(name string) error { return w.keyword(n, name, depth) }); err != nil {
			return nil, err
		}
	default:
		return nil, &Error{Pointer: at, Msg: fmt.Sprintf("a schema must be an object or a boolean, not %v", token)}
	}
	n.raw = w.data[start:w.dec.InputOffset()]
	return n, nil
}

// keyword reads the value of one keyword into n.
func (w *walker) keyword(n *Node, name string, depth int) (err error) {
	at := n.Pointer + "/" + escape(name)
	n.keywords = append(n.keywords, name)
	switch name {
	case "$defs":
		defs, err := w.properties(at, depth)
		if n.Pointer != "" {
			w.problem(at, "definitions are read at the root only")
		}
		w.defs = defs
		return err
	case "properties":
		n.Properties, err = w.properties(at, depth)
	case "items":
		n.Items, err = w.schema(at, depth+1)
	case "additionalProperties":
		n.AdditionalProperties, err = w.schema(at, depth+1)
	case "unevaluatedProperties":
		n.UnevaluatedProperties, err = w.schema(at, depth+1)
	case "not":
		n.Not, err = w.schema(at, depth+1)
	case "prefixItems":
		n.PrefixItems, err = w.list(at, depth)
	case "oneOf":
		n.OneOf, err = w.list(at, depth)
	case "anyOf":
		n.AnyOf, err = w.list(at, depth)
	case "allOf":
		n.AllOf, err = w.list(at, depth)
	case "const":
		err = w.raw(at, &n.Const)
	case "default":
		err = w.raw(at, &n.Default)
	case "enum":
		err = w.value(at, &n.Enum)
	case "x-method":
		err = w.value(at, &n.Method)
	case "x-side":
		err = w.value(at, &n.Side)
	case "x-deserialize-default-on-error":
		err = w.value(at, &n.DefaultOnError)
	case "x-deserialize-default-on-null":
		err = w.value(at, &n.DefaultOnNull)
	case "x-deserialize-skip-invalid-items":
		err = w.value(at, &n.SkipInvalidItems)
	case "discriminator":
		err = w.discriminator(at, n)
	default:
		if keywords[name] == unknown {
			w.problems = append(w.problems, &Error{Pointer: at, Err: ErrKeyword})
		}
		var rest json.RawMessage // modelled by go-jsonschema
		err = w.value(at, &rest)
	}
	return err
}

func (w *walker) discriminator(at string, n *Node) error {
	var value map[string]json.RawMessage
	if err := w.value(at, &value); err != nil {
		return err
	}
	if len(value) != 1 || json.Unmarshal(value["propertyName"], &n.Discriminator) != nil {
		w.problem(at, "a discriminator must have one member, propertyName")
	}
	return nil
}

func (w *walker) properties(at string, depth int) ([]Property, error) {
	if err := w.open(at, '{'); err != nil {
		return nil, err
	}
	var out []Property
	err := w.members(at, func(name string) error {
		n, err := w.schema(at+"/"+escape(name), depth+1)
		out = append(out, Property{name, n})
		return err
	})
	return out, err
}

func (w *walker) list(at string, depth int) ([]*Node, error) {
	if err := w.open(at, '['); err != nil {
		return nil, err
	}
	var out []*Node
	for w.dec.More() {
		n, err := w.schema(at+"/"+strconv.Itoa(len(out)), depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	if len(out) == 0 {
		w.problem(at, "must not be empty")
	}
	_, err := w.dec.Token()
	return out, notJSON(at, err)
}

// members reads the members of an object that was opened; read reads each one's value.
func (w *walker) members(at string, read func(name string) error) error {
	seen := map[string]bool{}
	for w.dec.More() {
		token, err := w.dec.Token()
		if err != nil {
			return notJSON(at, err)
		}
		name, ok := token.(string)
		if !ok {
			return &Error{Pointer: at, Msg: "not JSON: a member without a name"}
		}
		if seen[name] {
			w.problem(at+"/"+escape(name), "duplicate member")
		}
		seen[name] = true
		if err := read(name); err != nil {
			return err
		}
	}
	_, err := w.dec.Token()
	return notJSON(at, err)
}

func (w *walker) open(at string, want json.Delim) error {
	token, err := w.dec.Token()
	if err != nil {
		return notJSON(at, err)
	}
	if token != want {
		return &Error{Pointer: at, Msg: fmt.Sprintf("must begin with %v", want)}
	}
	return nil
}

// value decodes the value that comes next; one of the wrong type is a problem of that keyword alone.
func (w *walker) value(at string, v any) error {
	err := w.dec.Decode(v)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		w.problem(at, "must not be a JSON %s", wrong.Value)
		return nil
	}
	return notJSON(at, err)
}

// raw reads the value that comes next as it is, without spaces.
func (w *walker) raw(at string, v *json.RawMessage) error {
	if err := w.value(at, v); err != nil {
		return err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, *v); err != nil {
		return notJSON(at, err)
	}
	*v = compact.Bytes()
	return nil
}

// next returns the offset of the value that comes next.
func (w *walker) next() int64 {
	at := w.dec.InputOffset()
	rest := bytes.TrimLeft(w.data[at:], " \t\r\n:,")
	return int64(len(w.data) - len(rest))
}

func notJSON(at string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return &Error{Pointer: at, Msg: "not JSON", Err: err}
}

// attach sets Typed throughout n. What go-jsonschema drops on the way it parses from its own bytes.
func attach(n *Node, typed *schemas.Type) error {
	if typed == nil {
		typed = new(schemas.Type)
		if err := json.Unmarshal(n.raw, typed); err != nil {
			return &Error{Pointer: n.Pointer, Msg: "not a JSON Schema", Err: err}
		}
	}
	n.Typed = typed

	var err error
	child := func(n *Node, typed *schemas.Type) {
		if n != nil && err == nil {
			err = attach(n, typed)
		}
	}
	list := func(nodes []*Node, typed []*schemas.Type) {
		for i, n := range nodes {
			if i < len(typed) {
				child(n, typed[i])
			} else {
				child(n, nil)
			}
		}
	}
	for _, p := range n.Properties {
		child(p.Node, typed.Properties[p.Name])
	}
	child(n.Items, typed.Items)
	child(n.AdditionalProperties, typed.AdditionalProperties)
	child(n.UnevaluatedProperties, nil)
	child(n.Not, typed.Not)
	list(n.OneOf, typed.OneOf)
	list(n.AnyOf, typed.AnyOf)
	list(n.AllOf, typed.AllOf)
	list(n.PrefixItems, nil)
	return err
}

// resolve checks that every $ref names a definition, and that no definition is only a detour to
// itself.
func (d *Document) resolve() error {
	var problems []error
	d.Walk(func(n *Node) {
		ref := n.Typed.Ref
		switch {
		case ref == "":
		case !strings.HasPrefix(ref, refPrefix):
			problems = append(problems, &Error{Pointer: n.Pointer, Msg: fmt.Sprintf("reference %q leaves $defs", ref)})
		case d.Def(n.Ref()) == nil:
			problems = append(problems, &Error{Pointer: n.Pointer, Msg: fmt.Sprintf("reference to %q, which is not defined", n.Ref())})
		}
	})
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	for _, def := range d.Defs {
		seen := map[*Node]bool{}
		for n := def.Node; n != nil; n = d.detour(n) {
			if seen[n] {
				problems = append(problems, &Error{Pointer: def.Pointer, Msg: "the definition refers to nothing but itself"})
				break
			}
			seen[n] = true
		}
	}
	return errors.Join(problems...)
}

// detour returns the definition that n stands for when it is only a reference, or nil.
func (d *Document) detour(n *Node) *Node {
	if n.Has("properties") {
		return nil
	}
	if n.Typed.Ref != "" {
		return d.Def(n.Ref())
	}
	if len(n.AllOf) == 1 {
		return n.AllOf[0]
	}
	return nil
}

// Walk calls f for the root, for every definition and for every schema inside them, parents first.
func (d *Document) Walk(f func(*Node)) {
	d.Root.Walk(f)
	for _, def := range d.Defs {
		def.Walk(f)
	}
}

// Walk calls f for n and for every schema inside it, parents first. It does not follow references.
func (n *Node) Walk(f func(*Node)) {
	if n == nil {
		return
	}
	f(n)
	for _, p := range n.Properties {
		p.Walk(f)
	}
	for _, m := range []*Node{n.Items, n.AdditionalProperties, n.UnevaluatedProperties, n.Not} {
		m.Walk(f)
	}
	for _, list := range [][]*Node{n.PrefixItems, n.OneOf, n.AnyOf, n.AllOf} {
		for _, m := range list {
			m.Walk(f)
		}
	}
}

func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}
