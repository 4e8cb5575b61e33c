package gen

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/gen/schema"
)

// requireErrors requires that err is an *Error, or joins several.
func requireErrors(t *testing.T, err error) {
	t.Helper()
	for _, problem := range Problems(err) {
		if _, ok := errors.AsType[*Error](problem); !ok {
			t.Errorf("%v is a %T, want an *Error", problem, problem)
		}
	}
}

// A schema that is too large for a file in testdata is also refused, and quickly.
func TestRefusals(t *testing.T) {
	nested := func(levels int) []byte {
		return []byte(`{"$defs":{"A":` + strings.Repeat(`{"items":`, levels) + `true` + strings.Repeat(`}`, levels) + `}}`)
	}
	untagged := repeat(501, `{"type":"object","properties":{"k<i>":{}},"required":["k<i>"]}`)
	members := repeat(64, `"m<i>":{"type":"string"}`)
	derived := repeat(800, `"D<i>":{"allOf":[{"$ref":"#/$defs/Base"}]}`)
	tests := []struct {
		name   string
		schema []byte
		want   string
		is     error
	}{
		{"many variants without a tag", []byte(`{"$defs":{"T":{"anyOf":[` + untagged + `]}}}`),
			"/$defs/T: more than 500 variants without a tag have no Go shape", nil},
		{"many members in all", []byte(`{"$defs":{` + derived + `,"Base":{"type":"object","properties":{` + members + `}}}}`),
			"/$defs/Base: the objects have more than 50000 members in all", nil},
		{"empty", nil, "/: not JSON: unexpected EOF", nil},
		{"not JSON", []byte("# schema"), "/: not JSON: invalid character '#' looking for beginning of value", nil},
		{"cut short", []byte(`{"$defs":{"A":`), "/$defs/A: not JSON: unexpected EOF", nil},
		{"two values", []byte(`{"$defs":{"A":{"type":"string"}}} {}`), "/: not JSON: more than one value", nil},
		{"invalid UTF-8", []byte("{\"$defs\":{\"\xff\":{}}}"), "/: not JSON: invalid UTF-8", nil},
		{"100 MB", bytes.Repeat([]byte(" "), 100<<20), "/: not read: larger than 16 MiB", schema.ErrSize},
		{"10,000 levels", nested(10_000), "", schema.ErrDepth},
		{"a million branches", []byte(`{"$defs":{"A":{"anyOf":[` + strings.Repeat("{},", 1_000_000) + `{}]}}}`), "/: not read: more than 50,000 schemas and listed values", schema.ErrCount},
		{"a million values", []byte(`{"$defs":{"A":{"enum":[` + strings.Repeat("1,", 1_000_000) + `1]}}}`), "/: not read: more than 50,000 schemas and listed values", schema.ErrCount},
		{"10,000 levels of a value", []byte(`{"$defs":{"A":{"default":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}}}`), "", nil},
		{"not an ACP schema", []byte(`{"type":"object","properties":{"a":{"type":"string"}}}`), "/: not an ACP schema: it has no $defs", nil},
		{"an array", []byte(`[]`), "/: a schema must be an object or a boolean, not an array", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			files, err := Generate(Config{Schema: test.schema, Package: "golden", Module: module})
			if err == nil || files != nil {
				t.Fatalf("got %d files, %v", len(files), err)
			}
			requireErrors(t, err)
			if test.want != "" && err.Error() != test.want {
				t.Errorf("got %q, want %q", err, test.want)
			}
			if test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("%v does not match %v", err, test.is)
			}
		})
	}
}
