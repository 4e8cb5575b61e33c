package schema

import (
	"testing"

	"github.com/acpgo/sdk/internal/test/must"
)

func TestDefinitionOf(t *testing.T) {
	tests := []struct {
		ref, name string
		ok        bool
	}{
		{"#/$defs/A", "A", true},
		{"#/%24defs/A", "A", true},
		{"#/$defs/a~1b", "a/b", true},
		{"#/$defs/a~0b", "a~b", true},
		{"#/$defs/a~01", "a~1", true},
		{"#/$defs/100%25", "100%", true},
		{"#/$defs/a%7E1b", "a/b", true},
		{"#/$defs/%C3%84", "Ä", true},
		{"#/$defs/a/b", "", false},
		{"#/$defs/a%2Fb", "", false},
		{"#/$defs/a~2", "", false},
		{"#/$defs/a~", "", false},
		{"#/$defs/a%zz", "", false},
		{"#/definitions/A", "A", true},
		{"#/definitions/a/b", "", false},
		{"other.json#/$defs/A", "", false},
		{"A", "", false},
	}
	for _, test := range tests {
		if name, _, ok := DefinitionOf(test.ref); name != test.name || ok != test.ok {
			t.Errorf("DefinitionOf(%q) = %q, %t, want %q, %t", test.ref, name, ok, test.name, test.ok)
		}
	}
	doc := must.Get(Parse([]byte(`{"$defs":{"a/b%":{"type":"string"},"T":{"$ref":"#/$defs/a~1b%25"}}}`), nil))(t)
	if got := NewCanonical(doc).Full(doc.Def("T")); len(got.types) != 1 || got.types[0] != "string" {
		t.Errorf("the reference has the types %v", got.types)
	}
}
