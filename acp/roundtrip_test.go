package acp

// This file owns the proof that every definition survives decoding and encoding.

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	sdk "github.com/acpgo/sdk"
	"github.com/acpgo/sdk/acp/codec"
	"github.com/acpgo/sdk/gen/sample"
	"github.com/acpgo/sdk/internal/gentest"
	"github.com/acpgo/sdk/internal/test/tier"
)

func loadSchema(t testing.TB) *sample.Schema {
	t.Helper()
	s, err := sample.Load(sdk.SchemaV1())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustMarshal(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// generated is this package, to be exercised.
func generated() *gentest.Package {
	return &gentest.Package{
		Schema: sdk.SchemaV1(), Definitions: definitions,
		Version: 1, LeastTypes: 150, LeastMethods: 20,
		Handlers: map[string]string{"SessionNotification": "SessionUpdate"},
	}
}

// TestGenerated compares the package with the schema that it is generated from: nothing of the protocol is missing,
// and every definition survives decoding and encoding.
func TestGenerated(t *testing.T) { generated().Test(t) }

// Every type also works under encoding/json.
func TestRoundTripEncodingJSON(t *testing.T) {
	tier.Need(t, tier.Normal)
	s := loadSchema(t)
	for seed, definition := range slices.Sorted(maps.Keys(definitions)) {
		want := sample.NewFullMaker(s, uint64(seed)).Value(definition)
		if n, ok := want.(json.Number); ok { // encoding/json reads no 7.0 as an integer
			want = json.Number(strings.TrimSuffix(n.String(), ".0"))
		}
		v := definitions[definition]()
		if err := json.Unmarshal(mustMarshal(t, want), v); err != nil {
			t.Errorf("%s: %v", definition, err)
			continue
		}
		out, err := json.Marshal(v)
		if err != nil {
			t.Errorf("%s: %v", definition, err)
			continue
		}
		got, err := sample.Parse(out)
		if err != nil {
			t.Errorf("%s: %v", definition, err)
			continue
		}
		if err := s.Same(definition, want, got); err != nil {
			t.Errorf("%s: %v", definition, err)
		}
	}
}

// What the schema forbids is not sent: it is an error at the right place.
func TestEncodeIsStrict(t *testing.T) {
	tests := []struct {
		name    string
		value   codec.Value
		pointer string
	}{
		{"empty union", &PromptRequest{Prompt: []ContentBlock{TextBlock("x"), {}}}, "/prompt/1"},
		{"nil variant", &PromptRequest{Prompt: []ContentBlock{{Variant: (*ContentBlockText)(nil)}}}, "/prompt/0"},
		{"empty enum", &PromptResponse{}, "/stopReason"},
		{"empty string", &Notice{Severity: NoticeSeverityInfo}, "/title"},
		{"not a number", &Cost{Amount: math.NaN(), Currency: "EUR"}, "/amount"},
		{"bad raw value", &ToolCall{RawInput: json.RawMessage("{")}, "/rawInput"},
		{"bad meta", &ToolCall{Meta: Meta{"a/b": json.RawMessage("nope")}}, "/_meta/a~1b"},
		{"unknown variant without a body", &ContentBlock{Variant: &ContentBlockUnknown{Tag: "x"}}, ""},
		{"unknown variant that is no object", &ContentBlock{Variant: &ContentBlockUnknown{Tag: "x", Raw: json.RawMessage("1")}}, ""},
		{"unknown variant without its tag", &ContentBlock{Variant: &ContentBlockUnknown{Tag: "x", Raw: json.RawMessage(`{"a":1}`)}}, ""},
		{"unknown variant with another tag", &ContentBlock{Variant: &ContentBlockUnknown{Tag: "x", Raw: json.RawMessage(`{"type":"y"}`)}}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			out, err := codec.Append([]byte("before"), test.value)
			failure, ok := errors.AsType[*codec.Error](err)
			if !ok {
				t.Fatalf("got %s, %v, want a *codec.Error", out, err)
			}
			if failure.Pointer != test.pointer {
				t.Errorf("got pointer %q, want %q: %v", failure.Pointer, test.pointer, err)
			}
			if string(out) != "before" {
				t.Errorf("got %q, want what was there before", out)
			}
		})
	}
}

// Required arrays and maps are never null.
func TestEncodeNilIsEmpty(t *testing.T) {
	tests := []struct {
		value codec.Value
		want  string
	}{
		{&NewSessionRequest{Cwd: "/"}, `{"cwd":"/","mcpServers":[]}`},
		{&MCPServerStdio{Name: "n", Command: "c"}, `{"name":"n","command":"c","args":[],"env":[]}`},
		{&Plan{}, `{"entries":[]}`},
		{&AuthMethodTerminal{ID: "i", Name: "n", Env: map[string]string{}}, `{"id":"i","name":"n","env":{}}`},
	}
	for _, test := range tests {
		got, err := codec.Append(nil, test.value)
		if err != nil || string(got) != test.want {
			t.Errorf("got %s, %v, want %s", got, err, test.want)
		}
	}
}

// What a newer peer sends is kept byte for byte, wherever it stands.
func TestUnknownVariantsAreKept(t *testing.T) {
	tests := []struct{ definition, text string }{
		{"SessionUpdate", `{"sessionUpdate":"future_thing","n":12345678901234567890,"x":[1.50,{"b":1,"a":2}]}`},
		{"SessionNotification", `{"sessionId":"s","update":{"z":1e400,"sessionUpdate":"future_thing"}}`},
		{"PromptRequest", `{"sessionId":"s","prompt":[{"type":"hologram","data":"\u00e9"},{"type":"text","text":"x"}]}`},
		{"CreateElicitationRequest", `{"message":"m","mode":"_vendor","sessionId":"s","extra":{"a":0.10}}`},
		{"SessionConfigOption", `{"id":"i","name":"n","type":"slider","min":0,"max":10}`},
		{"MultiSelectItems", `{"type":"integer","enum":[1,2]}`},
		{"McpServer", `{"type":"acp","name":"n"}`},
	}
	for _, test := range tests {
		v := definitions[test.definition]()
		if err := codec.Unmarshal([]byte(test.text), v); err != nil {
			t.Errorf("%s: %v", test.definition, err)
			continue
		}
		got, err := codec.Append(nil, v)
		if err != nil || string(got) != test.text {
			t.Errorf("%s: got %s, %v, want %s", test.definition, got, err, test.text)
		}
	}
}

func TestVariantsEncodeWithTheirTags(t *testing.T) {
	tests := []struct {
		variant any
		want    string
	}{
		{&SessionUpdatePlan{}, `{"sessionUpdate":"plan","entries":[]}`},
		{&RequestPermissionOutcomeCancelled{}, `{"outcome":"cancelled"}`},
		{&SessionUpdateUnknown{Tag: "x", Raw: json.RawMessage(`{"sessionUpdate":"x"}`)}, `{"sessionUpdate":"x"}`},
		{ElicitationContentValueStringArray(nil), `[]`},
		{ElicitationContentValueInteger(1 << 60), `1152921504606846976`},
	}
	for _, test := range tests {
		got, err := json.Marshal(test.variant)
		if err != nil || string(got) != test.want {
			t.Errorf("%T: got %s, %v, want %s", test.variant, got, err, test.want)
		}
	}
}

func TestDefaults(t *testing.T) {
	var s ElicitationSchema
	if got := s.TypeOrDefault(); got != ElicitationSchemaTypeObject {
		t.Errorf("got %q", got)
	}
	var caps AgentCapabilities
	if !caps.IsZero() {
		t.Error("the zero AgentCapabilities is not zero")
	}
	caps.PromptCapabilities.Meta = Meta{}
	if caps.IsZero() {
		t.Error("an AgentCapabilities with an empty _meta is zero")
	}
}
