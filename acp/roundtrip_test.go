package acp

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	sdk "github.com/acpgo/sdk"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/test/gentest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/sample"
	"github.com/acpgo/sdk/internal/test/tier"
)

func loadSchema(t testing.TB) *sample.Schema {
	t.Helper()
	s := must.Get(sample.Load(sdk.SchemaV1Unstable()))(t)
	return s
}

func mustMarshal(t testing.TB, v any) []byte {
	t.Helper()
	b := must.Get(json.Marshal(v))(t)
	return b
}

var definitions = gentest.Types(sdk.SchemaV1Unstable(), types, openEnums)

// generated is this package, to be exercised.
func generated() *gentest.Package {
	return &gentest.Package{
		Schema: sdk.SchemaV1Unstable(), Definitions: definitions,
		Version: 1, LeastTypes: 200, LeastMethods: 30,
		LeftOut:  []string{"ProxyNotification", "ProxyRequest", "ProxyResponse"},
		Handlers: map[string]string{"SessionNotification": "SessionUpdate"},
		Sides: map[string]gentest.Side{
			"agent":  {Handlers: AgentHandlers{}, Calls: (*ClientConn)(nil)},
			"client": {Handlers: ClientHandlers{}, Calls: (*AgentConn)(nil)},
			"proxy":  {Handlers: ProxyHandlers{}, Calls: (*ProxyConn)(nil)},
		},
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

// The ways in which a value may change when it is read and written again are those of docs/reference/leniency.md.
// TestGenerated and TestRecordedMessages find no others.
func TestRoundTripChanges(t *testing.T) {
	const (
		unknownMember = "a member that the schema does not define, outside of `_meta` and unknown variants"
		saysNothing   = "a member that means the same as its absence: `false` or `{}` where that is the default, or a null `_meta`"
		otherForm     = "a number in another form, such as `1.0` or `1e2`"
		rounded       = "a number that need not be an integer, such as a price, with more digits than a `float64` has"
		stated        = "the capabilities in `initialize`, if they are absent"
		wasRepaired   = "a value that was repaired"
		order         = "the order of members, white space, and the escaping of strings"
	)
	docs := string(must.Get(os.ReadFile("../docs/reference/leniency.md"))(t))
	for _, test := range []struct{ definition, text, want, is string }{
		{"PromptResponse", `{"stopReason":"end_turn","weather":{"a":1}}`, `{"stopReason":"end_turn"}`, unknownMember},
		{"FileSystemCapabilities", `{"readTextFile":false}`, `{}`, saysNothing},
		{"ClientCapabilities", `{"fs":{}}`, `{}`, saysNothing},
		{"ToolCallLocation", `{"path":"/a","_meta":null}`, `{"path":"/a"}`, saysNothing},
		{"ToolCallLocation", `{"path":"/a","line":1.0}`, `{"path":"/a","line":1}`, otherForm},
		{"Cost", `{"amount":9007199254740993,"currency":"EUR"}`, `{"amount":9007199254740992,"currency":"EUR"}`, rounded},
		{"UsageUpdate", `{"size":9007199254740993,"used":18446744073709551615}`, `{"used":18446744073709551615,"size":9007199254740993}`, order},
		{"InitializeRequest", `{"protocolVersion":1}`, `{"protocolVersion":1,"clientCapabilities":{}}`, stated},
		{"NewSessionRequest", `{"cwd":"/","mcpServers":null}`, `{"cwd":"/","mcpServers":[]}`, wasRepaired},
		{"Annotations", `{"priority":"x"}`, `{}`, wasRepaired},
		{"ToolCallLocation", `{"line":null,"path":"/\u0061"}`, `{"path":"/a","line":null}`, order},
	} {
		v := definitions[test.definition]()
		must.Do(t, codec.Unmarshal([]byte(test.text), v))
		if got, err := codec.Append(nil, v); string(got) != test.want || err != nil {
			t.Errorf("%s becomes %s, %v, want %s", test.text, got, err, test.want)
		}
		if !strings.Contains(docs, "\n| "+test.is+" | ") {
			t.Errorf("docs/reference/leniency.md does not say that %s may change", test.is)
		}
	}
}

func unknownUpdate(raw string) *SessionUpdate {
	return &SessionUpdate{Variant: &SessionUpdateUnknown{Raw: json.RawMessage(raw)}}
}

// What the schema forbids is not sent: it is an error at the right place.
func TestEncodeIsStrict(t *testing.T) {
	tests := []struct {
		name    string
		value   any
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
		{"unknown variant that is not an object", &ContentBlock{Variant: &ContentBlockUnknown{Tag: "x", Raw: json.RawMessage("1")}}, ""},
		{"unknown variant without its tag", &ContentBlock{Variant: &ContentBlockUnknown{Tag: "x", Raw: json.RawMessage(`{"a":1}`)}}, ""},
		{"unknown variant with a known tag and without its members", unknownUpdate(`{"sessionUpdate":"plan"}`), ""},
		{"unknown variant with a known tag and a wrong member", unknownUpdate(`{"sessionUpdate":"tool_call","toolCallId":"c","title":1}`), "/title"},
		{"unknown variant with a known tag and a member that is repaired", unknownUpdate(`{"sessionUpdate":"tool_call","toolCallId":"c","title":"t","locations":[1]}`), ""},
		{"unknown variant of one with members", &CreateElicitationRequest{Message: "m", Variant: &CreateElicitationRequestUnknown{Raw: json.RawMessage(`{"mode":"form","sessionId":"s"}`)}}, ""},
		{"unknown login method that is known", &AuthMethod{Variant: &AuthMethodUnknown{Raw: json.RawMessage(`{"type":"terminal","id":"i"}`)}}, ""},
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

// The libraries of other languages read some messages that this one refuses, and the other way round. The schema is right.
func TestWhatOthersRead(t *testing.T) {
	gentest.Read(t, loadSchema(t), definitions, []gentest.Reading{
		{Definition: "SetSessionConfigOptionRequest", Text: `{"sessionId":"s","configId":"c","value":42}`},
		{Definition: "SetSessionConfigOptionRequest", Text: `{"sessionId":"s","configId":"c","value":true}`},
		{Definition: "SetSessionConfigOptionRequest", Text: `{"sessionId":"s","configId":"c","type":"boolean","value":true}`, Read: true},
		{Definition: "SessionConfigOption", Text: `{"type":"select","id":"o","name":"O","currentValue":"v","options":[{"group":"g","options":[]}]}`},
		{Definition: "SessionUpdate", Text: `{"sessionUpdate":"notice","severity":"warning","title":"T"}`, Read: true},
		{Definition: "CreateElicitationResponse", Text: `{"action":"accept","content":{"a":{"b":1}}}`},
		{Definition: "SessionInfoUpdate", Text: `{"updatedAt":"yesterday"}`, Read: true},
	})
}

// Required arrays and maps are never null.
func TestEncodeNilIsEmpty(t *testing.T) {
	tests := []struct {
		value any
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
		{"McpServer", `{"type":"carrier","name":"n"}`},
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
		{unknownUpdate(`{"sessionUpdate":"x","a":"\ud800","b":1e2}`), `{"sessionUpdate":"x","a":"\ud800","b":1e2}`},
		{unknownUpdate(`{"entries":[],"more":1.0,"sessionUpdate":"plan"}`), `{"entries":[],"more":1.0,"sessionUpdate":"plan"}`},
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
