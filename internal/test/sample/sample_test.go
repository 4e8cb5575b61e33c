package sample

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/acpgo/sdk/internal/test/must"
)

const text = `{"$defs":{
	"Id": {"type":"string"},
	"Thing": {"type":"object","required":["id","items"],"properties":{
		"id": {"allOf":[{"$ref":"#/$defs/Id"}]},
		"items": {"type":"array","items":{"$ref":"#/$defs/Id"},"x-deserialize-default-on-error":true,"x-deserialize-skip-invalid-items":true},
		"args": {"type":"array","items":{"type":"string"},"x-deserialize-default-on-null":true},
		"on": {"type":"boolean","default":false},
		"note": {"type":["string","null"]},
		"_meta": {"type":["object","null"],"additionalProperties":true,"x-deserialize-default-on-error":true}}},
	"Choice": {"anyOf":[
		{"type":"object","properties":{"type":{"type":"string","const":"thing"}},"required":["type"],"allOf":[{"$ref":"#/$defs/Thing"}]},
		{"type":"object","properties":{"type":{"type":"string","const":"none"}},"required":["type"]}]},
	"Method": {"anyOf":[
		{"type":"object","properties":{"type":{"type":"string","const":"thing"}},"required":["type"],"allOf":[{"$ref":"#/$defs/Thing"}]},
		{"type":"object","properties":{"id":{"$ref":"#/$defs/Id"}},"required":["id"]}]}}}`

func load(t *testing.T) *Schema {
	t.Helper()
	return must.Get(Load(text))(t)
}

func parse(t *testing.T, text string) any {
	t.Helper()
	return must.Get(Parse([]byte(text)))(t)
}

func TestSame(t *testing.T) {
	s := load(t)
	tests := []struct {
		definition, want, got, differs string
	}{
		{"Thing", `{"id":"a","items":[],"on":false,"_meta":null,"other":1}`, `{"id":"a","items":[]}`, ""},
		{"Thing", `{"id":"a","items":[]}`, `{"id":"a"}`, "/items: got nothing, want []"},
		{"Thing", `{"id":"a","items":[],"note":null}`, `{"id":"a","items":[]}`, "/note: got nothing, want null"},
		{"Thing", `{"id":"a","items":["x"]}`, `{"id":"a","items":["y"]}`, `/items/0: got "y", want "x"`},
		{"Thing", `{"id":"a","items":[],"_meta":{"n":1e1}}`, `{"id":"a","items":[],"_meta":{"n":10}}`, ""},
		{"Thing", `{"id":"a","items":[],"_meta":{"n":12345678901234567890}}`, `{"id":"a","items":[],"_meta":{"n":12345678901234567891}}`, `/_meta/n: got 12345678901234567891, want 12345678901234567890`},
		{"Choice", `{"type":"thing","id":"a","items":[],"other":1}`, `{"type":"thing","id":"a","items":[]}`, ""},
		{"Choice", `{"type":"future","other":1}`, `{"type":"future"}`, `/other: got nothing, want 1`},
	}
	for _, test := range tests {
		err := s.Same(test.definition, parse(t, test.want), parse(t, test.got))
		if got := ""; err != nil && err.Error() != test.differs || err == nil && got != test.differs {
			t.Errorf("%s %s %s: got %v, want %s", test.definition, test.want, test.got, err, test.differs)
		}
	}
}

func TestMutations(t *testing.T) {
	s := load(t)
	found := map[string]Mutation{}
	for m := range s.Mutations("Choice", parse(t, `{"type":"thing","id":"a","items":["x","y"],"args":["z"],"note":"n","on":true,"_meta":{}}`)) {
		found[m.What] = m
	}
	for m := range s.Mutations("Method", parse(t, `{"type":"thing","id":"a","items":["x"]}`)) {
		found["method: "+m.What] = m
	}
	tests := []struct{ what, pointer, result string }{ // result is the repaired value, or "" if the value is refused
		{"/id := 42", "/id", ""},
		{"/type := null", "/type", ""},
		{" without id", "", ""},
		{"/note := 42", "/note", ""},
		{"/items := 42", "/items", `{"type":"thing","id":"a","items":[],"args":["z"],"note":"n","on":true,"_meta":{}}`},
		{"/items/0 := 42", "/items/0", `{"type":"thing","id":"a","items":["y"],"args":["z"],"note":"n","on":true,"_meta":{}}`},
		{"/args := null", "/args", `{"type":"thing","id":"a","items":["x","y"],"note":"n","on":true,"_meta":{}}`},
		{"/args := 42", "/args", ""},
		{"/_meta := 42", "/_meta", `{"type":"thing","id":"a","items":["x","y"],"args":["z"],"note":"n","on":true}`},
		// A required list that is not read is empty, even if another branch has no such member.
		{"method: /items := 42", "/items", `{"type":"thing","id":"a","items":[]}`},
	}
	for _, test := range tests {
		m, ok := found[test.what]
		if !ok {
			t.Errorf("%s: not tried", test.what)
			continue
		}
		if m.Pointer != test.pointer || m.Fails != (test.result == "") || m.Repairs == m.Fails {
			t.Errorf("%s: got %+v", test.what, m)
		}
		if test.result != "" && !reflect.DeepEqual(m.Result, parse(t, test.result)) {
			t.Errorf("%s: got %s, want %s", test.what, show(m.Result), test.result)
		}
	}
	if m := found["/note := null"]; m.Fails || m.Repairs {
		t.Errorf("null is a valid note, got %+v", m)
	}
}

// Equal seeds produce equal values, and the check that judges mutations accepts the values.
func TestMaker(t *testing.T) {
	s := load(t)
	a, b := NewMaker(s, 7), NewMaker(s, 7)
	for range 500 {
		v := a.Value("Choice")
		if w := b.Value("Choice"); !reflect.DeepEqual(v, w) {
			t.Fatalf("got %s and %s", show(v), show(w))
		}
		if !s.Valid("Choice", v) && !s.Tolerated("Choice", v) {
			t.Errorf("%s is not accepted", show(v))
		}
		if _, err := json.Marshal(v); err != nil {
			t.Error(err)
		}
	}
}
