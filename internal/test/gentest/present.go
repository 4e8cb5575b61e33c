package gentest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/test/must"
)

// envelopes are the definitions for which no type is generated: those of whole messages and what only they
// use, which the runtime has, and those that codec.ID and rpc.Error replace.
var envelopes = []string{
	"AgentNotification", "AgentRequest", "AgentResponse",
	"ClientNotification", "ClientRequest", "ClientResponse",
	"Error", "ErrorCode",
	"ExtNotification", "ExtRequest", "ExtResponse",
	"RequestId",
}

// words are those of a definition's name.
var words = regexp.MustCompile("[A-Z][a-z0-9]*")

// inGo returns the name of a definition as Go writes it.
func inGo(name string) string {
	return words.ReplaceAllStringFunc(name, func(word string) string {
		switch word {
		case "Id", "Mcp", "Http", "Sse", "Url", "Llm", "Acp":
			return strings.ToUpper(word)
		}
		return word
	})
}

// goName returns the name of a definition's type.
func goName(definition string) string {
	if definition == "Command" { // of version 2
		return "SlashCommand"
	}
	return inGo(definition)
}

// openName is a pointer to an enum that allows any name. Its field says so where a struct holds such an enum.
type openName struct{ reflect.Value }

// EncodeJSON implements codec.Value.
func (n *openName) EncodeJSON(e *codec.Encoder) { e.Str(n.Elem().String()) }

// DecodeJSON implements codec.Value.
func (n *openName) DecodeJSON(d *codec.Decoder) { n.Elem().SetString(d.Str()) }

// MarshalJSON implements json.Marshaler.
func (n *openName) MarshalJSON() ([]byte, error) { return json.Marshal(n.Interface()) }

// UnmarshalJSON implements json.Unmarshaler.
func (n *openName) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, n.Interface()) }

// Types returns functions that make new values of the definitions in a schema. It is given pointers to the types, and
// to the enums that allow any name.
func Types(schema string, pointers, open []any) map[string]func() any {
	types := map[string]func() any{}
	for _, p := range pointers {
		t := reflect.TypeOf(p).Elem()
		types[t.Name()] = func() any { return reflect.New(t).Interface() }
	}
	for _, p := range open {
		t := reflect.TypeOf(p).Elem()
		types[t.Name()] = func() any { return &openName{reflect.New(t)} }
	}
	var doc struct {
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(schema), &doc); err != nil {
		panic(err)
	}
	out := map[string]func() any{}
	for definition := range doc.Defs {
		if create, ok := types[goName(definition)]; ok {
			out[definition] = create
		}
	}
	if len(out) < len(types) {
		panic(fmt.Sprintf("only %d of %d types are definitions", len(out), len(types)))
	}
	return out
}

// Definition is what a schema says of a definition that belongs to a method.
type Definition struct {
	Method string `json:"x-method"`
	Side   string `json:"x-side"`
}

// DefinitionsOf returns the definitions of a schema.
func DefinitionsOf(t *testing.T, schema string) map[string]Definition {
	t.Helper()
	var doc struct {
		Defs map[string]Definition `json:"$defs"`
	}
	must.Do(t, json.Unmarshal([]byte(schema), &doc))
	return doc.Defs
}

// hasDefinitions requires that the package in the working folder has a type, with its codec, for each
// definition but the envelopes.
func (p *Package) hasDefinitions(t *testing.T) {
	schema := DefinitionsOf(t, p.Schema)
	leftOut := slices.Concat(envelopes, p.LeftOut)
	count := 0
	for _, name := range slices.Sorted(maps.Keys(schema)) {
		if slices.Contains(leftOut, name) {
			if p.Definitions[name] != nil {
				t.Errorf("%s is a type of the package, and listed as left out", name)
			}
			continue
		}
		count++
		if p.Definitions[name] == nil {
			t.Errorf("%s: no type %s", name, goName(name))
		} else if _, ok := p.Definitions[name]().(interface {
			json.Marshaler
			json.Unmarshaler
		}); !ok && reflect.TypeOf(p.Definitions[name]()).Elem().Kind() == reflect.Struct {
			t.Errorf("%s does not know encoding/json", goName(name))
		}
	}
	for _, name := range leftOut {
		if _, ok := schema[name]; !ok {
			t.Errorf("%s is listed as left out, but the schema does not have it", name)
		}
	}
	if count < p.LeastTypes {
		t.Errorf("got %d definitions, want at least %d", count, p.LeastTypes)
	}
	t.Logf("%d of %d definitions are types; the others are %s", count, len(schema), strings.Join(leftOut, ", "))
}

// hasMethods requires that the package in the working folder has a name, a handler and a call for each
// method. A method that is both request and notification counts twice.
func (p *Package) hasMethods(t *testing.T) {
	constants := must.Get(os.ReadFile("methods_gen.go"))(t)
	schema := DefinitionsOf(t, p.Schema)
	count := 0
	for _, name := range slices.Sorted(maps.Keys(schema)) {
		d := schema[name]
		if d.Method == "" || strings.HasSuffix(name, "Response") {
			continue
		}
		count++
		goName := p.methodName(name, schema)
		if !bytes.Contains(constants, fmt.Appendf(nil, "\tMethod%s = %q\n", goName, d.Method)) {
			t.Errorf("%s: no constant Method%s", d.Method, goName)
		}
		side, ok := p.Sides[d.Side]
		if !ok || d.Method == "initialize" {
			continue
		}
		if _, ok := reflect.TypeOf(side.Handlers).FieldByName(goName); !ok {
			t.Errorf("%s: no handler %s", d.Method, goName)
		}
		if _, ok := reflect.TypeOf(side.Calls).MethodByName(goName); !ok {
			t.Errorf("%s: no method %s of %T", d.Method, goName, side.Calls)
		}
	}
	if count < p.LeastMethods {
		t.Errorf("got %d methods, want at least %d", count, p.LeastMethods)
	}
	t.Logf("%d methods", count)
}

// methodName returns the name of the handler of the method whose parameters have that definition. If the
// method is both, the notification's name keeps the word Notification.
func (p *Package) methodName(name string, schema map[string]Definition) string {
	if goName, ok := p.Handlers[name]; ok {
		return goName
	}
	base, notification := strings.CutSuffix(name, "Notification")
	if !notification {
		return inGo(strings.TrimSuffix(name, "Request"))
	}
	if _, both := schema[base+"Request"]; both {
		return inGo(name)
	}
	return inGo(base)
}
