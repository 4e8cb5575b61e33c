package schema

import (
	"slices"
	"testing"

	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/internal/test/must"
)

// TestOpenNames finds open names in a schema that refers to itself.
func TestOpenNames(t *testing.T) {
	schema := must.Get(Parse([]byte(`{
		"anyOf": [{"properties": {"method": {}, "params": {"$ref": "#/$defs/Tree"}}}],
		"$defs": {
			"Tree": {
				"x-method": "tree", "x-side": "agent", "type": "object",
				"properties": {
					"name": {"type": "string"},
					"color": {"$ref": "#/$defs/Color"},
					"trees": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
					"named": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Tree"}},
					"free": {"anyOf": [{"const": "a"}, {"type": "string"}]}
				}
			},
			"Color": {"anyOf": [{"type": "string", "const": "red"}, {"type": "string", "description": "Others are reserved for later."}]},
			"Leaf": {"type": "object", "properties": {"name": {"type": "string"}}}
		}
	}`), 0))(t)
	for _, test := range []struct {
		value string
		want  []string
	}{
		{`{"name":"x","color":"red","free":"x"}`, nil},
		{`{"color":"_blue"}`, nil},
		{`{"color":"blue"}`, []string{"/color blue Color"}},
		{`{"color":null}`, nil},
		{`{"trees":[{"color":"red"},{"trees":[{"color":"blue"}]}],"named":{"color":{"color":"green"}}}`, []string{"/trees/1/trees/0/color blue Color", "/named/color/color green Color"}},
		{`{"color":"_blue","trees":[{"color":"blue"}]}`, nil}, // a custom value may have custom members
		{`[]`, nil},
	} {
		v := decode(t, []byte(test.value))
		var got []string
		schema.OpenNamesOf(finding.Agent, "tree", finding.Notification).Walk(v, "", func(where, name, definition string) {
			got = append(got, where+" "+name+" "+definition)
		})
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.value, got, test.want)
		}
	}
}
