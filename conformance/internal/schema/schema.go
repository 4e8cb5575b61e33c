// Package schema checks messages by the protocol's JSON schema, and reads them for the rules.
//
// A line becomes a document, whose values are in the order of the text. A Connection reads the envelope and finds the
// definition of the content. A precheck, made of the compiled definition, says quickly that most values are right; the schema
// library judges the others. What the library does too slowly (unions, and lists of many faults) is replaced.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/acpgo/sdk/conformance/internal/finding"
)

// Schema is one published version of the protocol's JSON schema. Each definition is compiled when a
// message first needs it. A Schema is safe for concurrent use, by any number of validators.
type Schema struct {
	definitions map[string]any
	methods     map[methodKey]string // the definition of what is sent
	names       map[string]string    // the names of methods, for texts that equal them
	failure     string               // the definition of a response's error, "" if there is none
	id          string               // the definition of a request's id, "" if there is none
	versions    map[int]*Schema      // instead of all that: the schemas that initialize chooses from
	Version     int                  // of the protocol; 0 if it is not known

	compiled   map[string]*atomic.Pointer[definition] // what was compiled so far, for each name of a definition
	mu         sync.Mutex                             // guards what follows
	compiler   *jsonschema.Compiler
	prepared   map[*jsonschema.Schema]bool
	prechecker *prechecker

	openNames openNameTrees

	unevaluated bool // some definition restricts what others leave unevaluated
}

// methodKey tells messages apart: a method can be known to both sides, and be both a request and a
// notification.
type methodKey struct {
	handler finding.Side // the side that answers or takes the method
	method  string
	kind    finding.Kind // Request, Response or Notification
}

// Parse parses the schema of a version of the protocol, 0 if it is not known which; see conformance.NewSchema.
func Parse(schemaJSON []byte, version int) (*Schema, error) {
	dec := json.NewDecoder(bytes.NewReader(schemaJSON))
	dec.UseNumber()
	var root map[string]any
	if err := dec.Decode(&root); err != nil {
		return nil, fmt.Errorf("conformance: schema: %w", err)
	}
	definitions, ok := root["$defs"].(map[string]any)
	if !ok {
		return nil, errors.New("conformance: schema: no $defs")
	}
	s := newSchema(definitions)
	s.Version = version
	if err := s.findMethods(root); err != nil {
		return nil, fmt.Errorf("conformance: schema: %w", err)
	}
	return s, nil
}

// newSchema returns a schema without methods.
func newSchema(definitions map[string]any) *Schema {
	s := &Schema{
		definitions: definitions,
		methods:     map[methodKey]string{},
		names:       map[string]string{},
		compiled:    make(map[string]*atomic.Pointer[definition], len(definitions)),
		compiler:    newCompiler(definitions),
		prepared:    map[*jsonschema.Schema]bool{},
		prechecker:  newPrechecker(),
		unevaluated: restrictsUnevaluated(definitions),
	}
	for name := range definitions {
		s.compiled[name] = &atomic.Pointer[definition]{}
	}
	return s
}

// findMethods fills the method table. What kind of message a definition is for is read from the
// envelopes that the schema's root lists: an envelope with a method and an id holds requests, one
// with only a method notifications, one with a result responses.
func (s *Schema) findMethods(root map[string]any) error {
	kinds := map[string]finding.Kind{}
	for envelope := range s.envelopes(root) {
		properties := object(envelope["properties"])
		_, hasID := properties["id"]
		switch {
		case properties["result"] != nil:
			s.mark(kinds, properties["result"], finding.Response)
		case properties["error"] != nil:
			s.failure = firstRef(properties["error"])
		case properties["method"] != nil && hasID:
			s.mark(kinds, properties["params"], finding.Request)
			s.id = firstRef(properties["id"])
		case properties["method"] != nil:
			s.mark(kinds, properties["params"], finding.Notification)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.definitions)) {
		definition := object(s.definitions[name])
		method, ok := definition["x-method"].(string)
		if !ok {
			continue
		}
		kind, ok := kinds[name]
		if !ok {
			kind, ok = kindByName(name)
		}
		if !ok {
			return fmt.Errorf("/$defs/%s: method %q is in no envelope", name, method)
		}
		var sides []finding.Side
		switch side := definition["x-side"]; side {
		case "client":
			sides = []finding.Side{finding.Client}
		case "agent":
			sides = []finding.Side{finding.Agent}
		case "both", "protocol", "proxy":
			sides = []finding.Side{finding.Client, finding.Agent}
		default:
			return fmt.Errorf("/$defs/%s: unknown x-side %v", name, side)
		}
		for _, side := range sides {
			key := methodKey{side, method, kind}
			if other, ok := s.methods[key]; ok {
				return fmt.Errorf("/$defs: %s and %s are both the %s %q of the %s", other, name, kind, method, side)
			}
			s.methods[key], s.names[method] = name, method
		}
	}
	if len(s.methods) == 0 {
		return errors.New("no definition has x-method")
	}
	return nil
}

// kindByName is for older schemas, whose envelopes leave out the protocol's own notifications.
func kindByName(name string) (finding.Kind, bool) {
	for suffix, kind := range map[string]finding.Kind{"Request": finding.Request, "Response": finding.Response, "Notification": finding.Notification} {
		if strings.HasSuffix(name, suffix) {
			return kind, true
		}
	}
	return "", false
}

// envelopes yields the message shapes below the schema's root: every object that has properties,
// found through anyOf, oneOf, allOf and references.
func (s *Schema) envelopes(root map[string]any) func(yield func(map[string]any) bool) {
	return func(yield func(map[string]any) bool) {
		seen := map[string]bool{}
		var walk func(schema map[string]any) bool
		walk = func(schema map[string]any) bool {
			if name := firstRef(schema); name != "" && !seen[name] {
				seen[name] = true
				if !walk(object(s.definitions[name])) {
					return false
				}
			}
			for below := range branches(schema) {
				if !walk(below) {
					return false
				}
			}
			return schema["properties"] == nil || yield(schema)
		}
		walk(root)
	}
}

// mark gives a kind to every definition that the schema of a params or result member refers to.
func (s *Schema) mark(kinds map[string]finding.Kind, schema any, kind finding.Kind) {
	if name := firstRef(schema); name != "" {
		kinds[name] = kind
	}
	for below := range branches(object(schema)) {
		s.mark(kinds, below, kind)
	}
}

// branches yields the schemas that apply to the same value by anyOf, oneOf and allOf.
func branches(schema map[string]any) func(yield func(map[string]any) bool) {
	return func(yield func(map[string]any) bool) {
		for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
			list, _ := schema[keyword].([]any)
			for _, below := range list {
				if !yield(object(below)) {
					return
				}
			}
		}
	}
}

// firstRef is the name of the definition that a schema refers to, directly or by an allOf of one.
func firstRef(schema any) string {
	o := object(schema)
	if list, ok := o["allOf"].([]any); ok && len(list) == 1 && o["$ref"] == nil {
		o = object(list[0])
	}
	ref, _ := o["$ref"].(string)
	return definitionName(ref)
}

// restrictsUnevaluated reports whether unevaluatedProperties or unevaluatedItems stand anywhere and say more
// than true.
func restrictsUnevaluated(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for name, below := range v {
			if (name == "unevaluatedProperties" || name == "unevaluatedItems") && below != true || restrictsUnevaluated(below) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, restrictsUnevaluated)
	}
	return false
}

func object(v any) map[string]any {
	o, _ := v.(map[string]any)
	return o
}

func newCompiler(definitions map[string]any) *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	c.Draft = jsonschema.Draft2020
	c.AssertFormat = true
	c.ExtractAnnotations = true // titles name the branches of unions
	c.Formats = formats
	c.LoadURL = func(location string) (io.ReadCloser, error) {
		definition, ok := definitions[definitionOf(location)]
		if !ok {
			return nil, fmt.Errorf("no definition %s", location)
		}
		text, err := json.Marshal(detach(definition))
		if err != nil {
			return nil, err
		}
		return io.NopCloser(bytes.NewReader(text)), nil
	}
	return c
}

// detach copies a definition so that it stands alone: references name documents, and prose is left
// out, which is most of the bytes.
func detach(schema any) any {
	switch schema := schema.(type) {
	case map[string]any:
		out := make(map[string]any, len(schema))
		for keyword, value := range schema {
			text, isText := value.(string)
			switch {
			case keyword == "$ref" && isText:
				out[keyword] = locationOf(definitionName(text))
			case keyword == "description" && isText:
			case keyword == "const" || keyword == "enum" || keyword == "default" || keyword == "examples":
				out[keyword] = value
			default:
				out[keyword] = detach(value)
			}
		}
		return out
	case []any:
		out := make([]any, len(schema))
		for i, value := range schema {
			out[i] = detach(value)
		}
		return out
	}
	return schema
}

// definition is a definition that was compiled.
type definition struct {
	schema   *jsonschema.Schema
	precheck *precheck
	err      error // it cannot be
}

// definition compiles a definition, or returns what was compiled before.
func (s *Schema) definition(name string) *definition {
	known := s.compiled[name]
	if known == nil {
		return &definition{err: fmt.Errorf("schema: no definition %s", name)}
	}
	if d := known.Load(); d != nil {
		return d
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := known.Load()
	if d == nil {
		d = s.compile(name)
		known.Store(d)
	}
	return d
}

func (s *Schema) compile(name string) (d *definition) {
	defer func() {
		if r := recover(); r != nil { // the library does so for some references
			d = &definition{err: fmt.Errorf("schema definition %s: %v", name, r)}
		}
	}()
	c, err := s.compiler.Compile(locationOf(name))
	if err != nil {
		return &definition{err: fmt.Errorf("schema definition %s: %w", name, err)}
	}
	s.prepare(c)
	return &definition{schema: c, precheck: s.prechecker.precheck([]*jsonschema.Schema{c}, nil)}
}

// methodName returns the name of a method that does not depend on the message that it came in.
func (s *Schema) methodName(text string) string {
	if name, ok := s.names[text]; ok {
		return name
	}
	return strings.Clone(text)
}

// roles lists who handles a method, and as what.
func (s *Schema) roles(method string) (roles []methodKey) {
	for _, side := range []finding.Side{finding.Client, finding.Agent} {
		for _, kind := range []finding.Kind{finding.Request, finding.Notification} {
			key := methodKey{side, method, kind}
			if _, ok := s.methods[key]; ok {
				roles = append(roles, key)
			}
		}
	}
	return roles
}

// OpenNamesOf leads to the open names of a message's content, nil if it has none.
func (s *Schema) OpenNamesOf(handler finding.Side, method string, kind finding.Kind) *OpenNames {
	definition := s.methods[methodKey{handler, method, kind}]
	if definition == "" || method == MethodInitialize && kind == finding.Request { // which may be for several versions
		return nil
	}
	return s.openNames.find(s, definition)
}

// extension reports whether a method is an extension and so not defined by the schema.
func (s *Schema) extension(method string) bool {
	return (strings.HasPrefix(method, "_") || strings.HasPrefix(method, "$/")) && len(s.roles(method)) == 0
}

// MethodInitialize is the method that negotiates the version, in all of them.
const MethodInitialize = "initialize"
