package schema

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/acpgo/sdk/internal/gen/model"
)

// MaxSize is the maximum size of a document for Parse in bytes, forty times the size of the largest published one.
const MaxSize = 16 << 20

// maxCount is the maximum number of schemas in a document plus the values that they list: twenty times as many as in
// the largest published one.
const maxCount = 50_000

// maxDepth is the maximum nesting depth of schemas. The published ones stay below twenty.
const maxDepth = 100

const refPrefix = "#/$defs/"

// Errors that Parse wraps if it refuses a document as a whole.
var (
	ErrSize    = errors.New("larger than 16 MiB")
	ErrCount   = errors.New("more than 50,000 schemas and listed values")
	ErrDepth   = errors.New("schemas nested deeper than 100 levels")
	ErrKeyword = errors.New("unknown keyword")
)

type role int

const (
	unknown   role = iota
	asserts        // restricts the values that the schema accepts
	annotates      // describes them
)

// keywords has every keyword that the published schemas use, except the old ones that only their metaschema used, and
// the annotations of draft 2020-12. A keyword that is not listed stops the generator, unless roleOf knows it.
var keywords = withBounds(map[string]role{
	"$schema": annotates, "$comment": annotates, "$defs": annotates, "definitions": annotates, "$id": annotates,
	"$vocabulary": annotates,
	"examples":    annotates, "readOnly": annotates, "writeOnly": annotates, "contentMediaType": annotates,
	"contentSchema": annotates,
	"propertyNames": annotates, // not checked
	"title":         annotates, "description": annotates, "default": annotates, "deprecated": annotates,
	"x-docs-ignore": annotates, "x-method": annotates, "x-side": annotates,
	"x-deserialize-default-on-error":   annotates,
	"x-deserialize-default-on-null":    annotates,
	"x-deserialize-skip-invalid-items": annotates,
	"format":                           annotates, "contentEncoding": annotates, "discriminator": annotates,

	"$ref": asserts, "type": asserts, "const": asserts, "enum": asserts,
	"properties": asserts, "required": asserts, "additionalProperties": asserts,
	"unevaluatedProperties": asserts, "items": asserts, "prefixItems": asserts,
	"oneOf": asserts, "anyOf": asserts, "allOf": asserts, "not": asserts,
})

// fields has the fields for the values of keywords. The other values are kept as they are.
var fields = map[string]func(n *Node) any{
	"properties":                       func(n *Node) any { return &n.Properties },
	"items":                            func(n *Node) any { return &n.Items },
	"additionalProperties":             func(n *Node) any { return &n.AdditionalProperties },
	"unevaluatedProperties":            func(n *Node) any { return &n.UnevaluatedProperties },
	"prefixItems":                      func(n *Node) any { return &n.PrefixItems },
	"oneOf":                            func(n *Node) any { return &n.OneOf },
	"anyOf":                            func(n *Node) any { return &n.AnyOf },
	"allOf":                            func(n *Node) any { return &n.AllOf },
	"not":                              func(n *Node) any { return &n.not },
	"const":                            func(n *Node) any { return &n.Const },
	"enum":                             func(n *Node) any { return &n.Enum },
	"default":                          func(n *Node) any { return &n.Default },
	"deprecated":                       func(n *Node) any { return &n.Deprecated },
	"x-method":                         func(n *Node) any { return &n.Method },
	"x-side":                           func(n *Node) any { return &n.Side },
	"x-deserialize-default-on-error":   func(n *Node) any { return &n.DefaultOnError },
	"x-deserialize-default-on-null":    func(n *Node) any { return &n.DefaultOnNull },
	"x-deserialize-skip-invalid-items": func(n *Node) any { return &n.SkipInvalidItems },
}

// roleOf returns the role of a keyword. Keywords of other tools begin with x-. Unknown x-deserialize- keywords of ACP
// could change how values are read.
func roleOf(keyword string) role {
	if r := keywords[keyword]; r != unknown || !strings.HasPrefix(keyword, "x-") ||
		strings.HasPrefix(keyword, "x-deserialize-") {
		return r
	}
	return annotates
}

var isType = map[string]bool{"null": true, "boolean": true, "object": true, "array": true, "number": true,
	"string": true, "integer": true}

func withBounds(keywords map[string]role) map[string]role {
	for _, b := range model.BoundKeywords {
		keywords[b.Keyword] = asserts
	}
	return keywords
}

// Parse parses a schema document as if it did not have the keywords and members of objects for which ignore returns
// true. The arguments of ignore are the JSON pointer and, for a keyword, its name; ignore can be nil. Every problem is
// an *Error. Problems that do not stop the walk are all reported, joined.
func Parse(data []byte, ignore func(is ...string) bool) (*Document, error) {
	if len(data) > MaxSize {
		return nil, &Error{Msg: "not read", Err: ErrSize}
	}
	if !utf8.Valid(data) {
		return nil, &Error{Msg: "not JSON: invalid UTF-8"}
	}
	if ignore == nil {
		ignore = func(...string) bool { return false }
	}
	w := &walker{dec: json.NewDecoder(bytes.NewReader(data)), ignore: ignore}
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

	doc := &Document{Root: root, Defs: w.defs, Digest: sha256.Sum256(data), byName: map[string]*Node{}}
	for _, def := range doc.Defs {
		if other := doc.byName[def.Name]; other != nil {
			return nil, &Error{Pointer: def.Pointer, Msg: fmt.Sprintf("%s is a definition of the same name", other.Pointer)}
		}
		doc.byName[def.Name] = def.Node
	}
	return doc, doc.resolve()
}

// walker reads schemas from a stream of tokens.
type walker struct {
	dec      *json.Decoder
	ignore   func(is ...string) bool
	defs     []Property
	count    int // of schemas and listed values
	problems []error
}

func (w *walker) problem(at, format string, args ...any) {
	w.problems = append(w.problems, &Error{Pointer: at, Msg: fmt.Sprintf(format, args...)})
}

// counted records that more schemas or listed values were read.
func (w *walker) counted(more int) error {
	if w.count += more; w.count > maxCount {
		return &Error{Msg: "not read", Err: ErrCount}
	}
	return nil
}

// schema reads the next schema. It returns an error only if reading cannot continue.
func (w *walker) schema(at string, depth int) (*Node, error) {
	if depth > maxDepth {
		return nil, &Error{Pointer: at, Msg: "not read", Err: ErrDepth}
	}
	if err := w.counted(1); err != nil {
		return nil, err
	}
	n := &Node{Pointer: at}
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
	if n.ignoresPatterns { // the members that these allow are kept as they are
		n.AdditionalProperties = &Node{Pointer: at + "/patternProperties", Bool: new(true)}
		n.say("additionalProperties", at+"/additionalProperties")
	}
	if err := n.read(); err != nil {
		w.problems = append(w.problems, &Error{Pointer: at, Msg: "not a JSON Schema", Err: err})
	}
	for i, name := range n.types {
		if !isType[name] || slices.Contains(n.types[:i], name) {
			w.problem(at+"/type", "must be types of JSON, each once")
			break
		}
	}
	if n.Has("type") && len(n.types) == 0 {
		w.problem(at+"/type", "must not be empty")
	}
	ignored := func(name string) bool { return w.ignore(at + "/properties/" + Escape(name)) }
	if kept := slices.DeleteFunc(slices.Clone(n.Required), ignored); len(kept) < len(n.Required) {
		if n.Required = kept; len(kept) == 0 {
			n.forget("required")
		}
	}
	seen := map[string]bool{}
	for i, name := range n.Required {
		if seen[name] {
			w.problem(fmt.Sprintf("%s/required/%d", at, i), "%q is listed twice", name)
		}
		seen[name] = true
	}
	return n, nil
}

// keyword reads the value of one keyword into n.
func (w *walker) keyword(n *Node, name string, depth int) (err error) {
	at := n.Pointer + "/" + Escape(name)
	if w.ignore(at, name) {
		n.ignoresPatterns = n.ignoresPatterns || name == "patternProperties"
		return w.value(at, new(json.RawMessage))
	}
	n.say(name, at)
	switch name {
	case "$defs", "definitions":
		defs, err := w.properties(at, depth)
		w.defs = append(w.defs, defs...)
		return err
	case "not":
		n.not = []*Node{nil}
		n.not[0], err = w.schema(at, depth+1)
		return err
	case "propertyNames":
		_, err = w.schema(at, depth+1)
		return err
	case "discriminator":
		return w.discriminator(at, n)
	}
	switch field := n.field(name).(type) {
	case *[]Property:
		*field, err = w.properties(at, depth)
	case **Node:
		*field, err = w.schema(at, depth+1)
	case *[]*Node:
		*field, err = w.list(at, depth)
	case *json.RawMessage:
		err = w.raw(at, field)
	case *[]json.RawMessage:
		if err = w.value(at, field); err != nil {
			return err
		}
		if *field != nil && len(*field) == 0 {
			w.problem(at, "must not be empty")
		}
		err = w.counted(len(*field))
	case nil:
		err = w.plain(at, n, name)
	default:
		err = w.value(at, field)
	}
	return err
}

// field returns a pointer to the field for a keyword, or nil if there is none.
func (n *Node) field(keyword string) any {
	if field := fields[keyword]; field != nil {
		return field(n)
	}
	return nil
}

// plain reads the value of a keyword that has no field. It reports a value that the keyword cannot have, even in a
// branch that has no effect.
func (w *walker) plain(at string, n *Node, keyword string) error {
	report := func(err error) {
		if err != nil {
			w.problems = append(w.problems, &Error{Pointer: at, Err: err})
		}
	}
	if roleOf(keyword) == unknown {
		report(ErrKeyword)
	}
	var value json.RawMessage
	err := w.value(at, &value)
	if n.word(keyword).raw = value; err != nil {
		return err
	}
	if limit, ok := limitOf(keyword); ok {
		report(checkLimit(limit, value))
	} else if isText := keyword == "contentEncoding" || keyword == "$comment" || keyword == "$schema"; isText &&
		KindOfValue(value) != "string" {
		report(errors.New("must be a string"))
	}
	if keyword == "$id" && n.Pointer != "" {
		w.problem(at, "an id within the document would change what references mean")
	}
	return nil
}

// limitOf returns the kind of value of a keyword that restricts values.
func limitOf(keyword string) (limit model.Limit, ok bool) {
	for _, k := range model.BoundKeywords {
		if k.Keyword == keyword {
			return k.Limit, true
		}
	}
	return 0, false
}

// checkLimit returns an error if the value of a keyword that restricts values is invalid.
func checkLimit(limit model.Limit, value json.RawMessage) error {
	switch limit {
	case model.Names, model.Unchecked: // the former are read elsewhere
		return nil
	}
	number, err := model.Rational(value)
	switch {
	case err != nil:
		return err
	case (limit == model.Least || limit == model.Most) && (number.Sign() < 0 || !number.IsInt()):
		return errors.New("must be a number of things")
	}
	return nil
}

func (w *walker) discriminator(at string, n *Node) error {
	var value map[string]json.RawMessage
	if err := w.value(at, &value); err != nil {
		return err
	}
	if json.Unmarshal(value["propertyName"], &n.Discriminator) != nil || n.Discriminator == "" {
		w.problem(at, "a discriminator must have the member propertyName")
	}
	if mapping, ok := value["mapping"]; ok && json.Unmarshal(mapping, &n.Mapping) != nil {
		w.problem(at+"/mapping", "must be an object of strings")
	}
	for _, name := range slices.Sorted(maps.Keys(value)) {
		if name != "propertyName" && name != "mapping" {
			w.problem(at+"/"+Escape(name), "unknown member of a discriminator")
		}
	}
	return nil
}

func (w *walker) properties(at string, depth int) ([]Property, error) {
	if err := w.open(at, '{'); err != nil {
		return nil, err
	}
	var out []Property
	err := w.members(at, func(name string) error {
		at := at + "/" + Escape(name)
		if w.ignore(at) {
			return w.value(at, new(json.RawMessage))
		}
		n, err := w.schema(at, depth+1)
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

// members reads the members of an object whose opening brace has been read. It calls read for each member's value.
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
			w.problem(at+"/"+Escape(name), "duplicate member")
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

// value decodes the next value. A value of the wrong type is a problem of that keyword only.
func (w *walker) value(at string, v any) error {
	err := w.dec.Decode(v)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		w.problem(at, "must not be a JSON %s", wrong.Value)
		return nil
	}
	return notJSON(at, err)
}

// raw reads the next value unchanged, except that it removes white space.
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

func notJSON(at string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return &Error{Pointer: at, Msg: "not JSON", Err: err}
}

// resolve checks that every $ref names a definition, and that no definition consists only of references that lead back
// to itself.
func (d *Document) resolve() error {
	var problems []error
	d.Walk(func(n *Node) {
		if n.ref == "" {
			return
		}
		name, pointer, ok := DefinitionOf(n.ref)
		n.name = name
		switch {
		case !ok:
			problems = append(problems, &Error{Pointer: n.Pointer, Msg: fmt.Sprintf("reference %q leaves $defs", n.ref)})
		case d.Def(name) == nil || d.Def(name).Pointer != pointer:
			problems = append(problems,
				&Error{Pointer: n.Pointer, Msg: fmt.Sprintf("reference to %q, which is not defined", name)})
		}
	})
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	from := map[*Node]int{} // the number of the definition from which a schema was reached first
	for i, def := range d.Defs {
		n := def.Node
		for ; n != nil && from[n] == 0; n = d.detour(n) {
			from[n] = i + 1
		}
		if n != nil && from[n] == i+1 {
			problems = append(problems, &Error{Pointer: def.Pointer, Msg: "the definition refers to nothing but itself"})
		}
	}
	return errors.Join(problems...)
}

// DefinitionOf returns the name of the definition that a reference names, and its place. A reference is a JSON pointer
// in a URI fragment.
func DefinitionOf(ref string) (name, pointer string, ok bool) {
	decoded, err := url.PathUnescape(ref)
	tokens := strings.Split(decoded, "/")
	last := len(tokens) - 1
	if err != nil || last < 2 || tokens[0] != "#" || tokens[last-1] != "$defs" && tokens[last-1] != "definitions" {
		return "", "", false
	}
	token := tokens[last]
	for _, escaped := range strings.Split(token, "~")[1:] {
		if !strings.HasPrefix(escaped, "0") && !strings.HasPrefix(escaped, "1") {
			return "", "", false
		}
	}
	return strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~"), decoded[1:], true
}

// detour returns the definition that n stands for if n is only a reference, or nil.
func (d *Document) detour(n *Node) *Node {
	if n.ref != "" {
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
	for _, w := range n.words {
		switch field := n.field(w.name).(type) {
		case *[]Property:
			for _, p := range *field {
				p.Walk(f)
			}
		case **Node:
			(*field).Walk(f)
		case *[]*Node:
			for _, m := range *field {
				m.Walk(f)
			}
		}
	}
}

// Escape returns a name as a token of a JSON pointer.
func Escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}
