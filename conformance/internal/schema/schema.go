// Package schema checks messages against the protocol's JSON schema, and parses them for the rules.
//
// A line becomes a document, whose values are in the order of the text. A Connection reads the envelope and finds the
// definition of the content, by which the schema library judges it. The keywords for which the library is too slow
// (unions, and lists of many faults) are replaced.
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

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/acpgo/sdk/conformance/internal/finding"
)

// Schema is one published version of the protocol's JSON schema. Each definition is compiled when a message first needs
// it. A Schema is safe for concurrent use.
type Schema struct {
	definitions map[string]any
	methods     map[methodKey]string // the definition of the params or the result
	failure     string               // the definition of a response's error, "" if there is none
	id          string               // the definition of a request's id, "" if there is none
	versions    map[int]*Schema      // instead of all the above: the schemas that initialize chooses from
	Version     int                  // of the protocol; 0 if unknown

	mu        sync.Mutex             // guards the following fields
	compiled  map[string]*definition // the definitions compiled so far, by name
	compiler  *jsonschema.Compiler
	prepared  map[*jsonschema.Schema]bool
	openNames map[string]*OpenNames // built so far, by definition

	unevaluated bool // a definition restricts what others leave unevaluated
}

// methodKey identifies a type of message. Both sides may have the same method, and a method may be both a request and a
// notification.
type methodKey struct {
	handler finding.Side // the side that receives the method
	method  string
	kind    finding.Kind // Request, Response or Notification
}

// Parse parses the schema of a version of the protocol, which is 0 if unknown; see conformance.NewSchema.
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
	return &Schema{
		definitions: definitions,
		methods:     map[methodKey]string{},
		compiled:    map[string]*definition{},
		compiler:    newCompiler(definitions),
		prepared:    map[*jsonschema.Schema]bool{},
		openNames:   map[string]*OpenNames{},
		unevaluated: restrictsUnevaluated(definitions),
	}
}

// findMethods fills the method table. It determines the kind of message of each definition from the envelopes that the
// schema's root lists: an envelope with a method and an id holds requests, one with only a method holds notifications,
// and one with a result holds responses.
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
			s.methods[key] = name
		}
	}
	if len(s.methods) == 0 {
		return errors.New("no definition has x-method")
	}
	return nil
}

// kindByName is for older schemas, whose envelopes leave out the protocol's own notifications.
func kindByName(name string) (finding.Kind, bool) {
	for suffix, kind := range map[string]finding.Kind{"Request": finding.Request, "Response": finding.Response,
		"Notification": finding.Notification} {
		if strings.HasSuffix(name, suffix) {
			return kind, true
		}
	}
	return "", false
}

// envelopes yields the types of messages below the schema's root: every object with properties that is reachable
// through anyOf, oneOf, allOf and references.
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

// mark assigns a kind to every definition that the schema of a params or result member refers to.
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

// firstRef returns the name of the definition that a schema refers to, directly or by an allOf with one element.
func firstRef(schema any) string {
	o := object(schema)
	if list, ok := o["allOf"].([]any); ok && len(list) == 1 && o["$ref"] == nil {
		o = object(list[0])
	}
	ref, _ := o["$ref"].(string)
	return definitionName(ref)
}

// restrictsUnevaluated reports whether unevaluatedProperties or unevaluatedItems occurs anywhere with a value other
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

// detach copies a definition so that it is a separate document: references name documents. It leaves out descriptions,
// which are most of the bytes.
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

// definition is a compiled definition.
type definition struct {
	schema *jsonschema.Schema
	err    error // the reason why it cannot be compiled
}

// definition returns a compiled definition. It compiles each definition once.
func (s *Schema) definition(name string) *definition {
	if _, known := s.definitions[name]; !known {
		return &definition{err: fmt.Errorf("schema: no definition %s", name)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.compiled[name]
	if d == nil {
		d = s.compile(name)
		s.compiled[name] = d
	}
	return d
}

func (s *Schema) compile(name string) (d *definition) {
	defer func() {
		if r := recover(); r != nil { // the library panics on some references
			d = &definition{err: fmt.Errorf("schema definition %s: %v", name, r)}
		}
	}()
	c, err := s.compiler.Compile(locationOf(name))
	if err != nil {
		return &definition{err: fmt.Errorf("schema definition %s: %w", name, err)}
	}
	s.prepare(c)
	return &definition{schema: c}
}

// roles lists the sides that handle a method, and the kinds of its messages.
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

// extension reports whether a method is an extension, which the schema does not define.
func (s *Schema) extension(method string) bool {
	return (strings.HasPrefix(method, "_") || strings.HasPrefix(method, "$/")) && len(s.roles(method)) == 0
}

// MethodInitialize is the method that negotiates the version. It is the same in all versions.
const MethodInitialize = "initialize"
