package acp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
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

// The ways in which a value may change when it is read and written again, as docs/reference/leniency.md lists them.
const (
	unknownMember = "a member that the schema does not define, outside of `_meta` and unknown variants"
	saysNothing   = "a member that means the same as its absence: `false` or `{}` where that is the default, or a null `_meta`"
	otherForm     = "a number in another form, such as `1.0` or `1e2`"
	rounded       = "a number that need not be an integer, such as a price, with more digits than a `float64` has"
	stated        = "the capabilities in `initialize`, if they are absent"
	wasRepaired   = "a value that was repaired"
)

// A change is a difference between a value and what is written of it.
type change struct {
	pointer string
	is      string // one of the ways above, or "" for none of them
}

// changes returns how the value that data is differs when it was read as the definition and written.
func changes(t *testing.T, definition string, data []byte) (out []change) {
	t.Helper()
	write := func(data []byte) (v any, text []byte, repairs []codec.Repair, err error) {
		d := codec.NewDecoder(data)
		v = definitions[definition]()
		codec.Decode(d, v)
		if err := d.End(); err != nil {
			return nil, nil, nil, err
		}
		text, err = codec.Append(nil, v)
		return v, text, d.Repairs(), err
	}
	parse := func(data []byte) any {
		v := must.Get(sample.Parse(data))(t)
		return v
	}
	want := parse(data)
	value, text, repairs, err := write(mustMarshal(t, want)) // in one order, for what is written with other members
	if err != nil {
		t.Errorf("%s: %v: %s", definition, err, data)
		return nil
	}
	// missing tells why a member is not written: with another value, one that is not known makes no difference.
	missing := func(in map[string]any, name string) string {
		was := in[name]
		in[name] = []any{[]any{}}
		_, textIfOdd, repairsIfOdd, err := write(mustMarshal(t, want))
		delete(in, name)
		without, _, _, err2 := write(mustMarshal(t, want))
		in[name] = was
		empty, _ := was.(map[string]any)
		switch {
		case err2 != nil:
			return ""
		case err == nil && string(textIfOdd) == string(text) && len(repairsIfOdd) == len(repairs):
			return unknownMember
		case name == "_meta" && was == nil, reflect.DeepEqual(value, without) && (was == false || empty != nil):
			return saysNothing
		}
		return ""
	}
	// fraction reports whether a member, which put sets, may be a fraction.
	fraction := func(was any, put func(v any)) bool {
		put(0.5)
		_, _, repairsIfFraction, err := write(mustMarshal(t, want))
		put(was)
		return err == nil && len(repairsIfFraction) <= len(repairs)
	}
	var compare func(pointer string, a, b any, put func(v any))
	compare = func(pointer string, a, b any, put func(v any)) {
		add := func(pointer, is string) {
			if slices.ContainsFunc(repairs, func(r codec.Repair) bool { return pointer == r.Pointer || strings.HasPrefix(pointer, r.Pointer+"/") }) {
				is = wasRepaired
			}
			out = append(out, change{pointer, is})
		}
		switch was := a.(type) {
		case map[string]any:
			is, ok := b.(map[string]any)
			if !ok {
				add(pointer, "")
				return
			}
			for _, name := range slices.Sorted(maps.Keys(was)) {
				at := pointer + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
				if kept, ok := is[name]; ok {
					compare(at, was[name], kept, func(v any) { was[name] = v })
				} else {
					add(at, missing(was, name))
				}
			}
			for name, v := range is {
				if _, ok := was[name]; ok {
					continue
				}
				if empty, ok := v.(map[string]any); ok && len(empty) == 0 && (name == "clientCapabilities" || name == "agentCapabilities") {
					add(pointer+"/"+name, stated)
				} else {
					add(pointer+"/"+name, "")
				}
			}
		case []any:
			is, ok := b.([]any)
			if !ok || len(was) != len(is) {
				add(pointer, "")
				return
			}
			for i := range was {
				compare(fmt.Sprintf("%s/%d", pointer, i), was[i], is[i], func(v any) { was[i] = v })
			}
		case json.Number:
			x, ok := new(big.Rat).SetString(was.String())
			y, ok2 := new(big.Rat).SetString(fmt.Sprint(b))
			f, _ := strconv.ParseFloat(was.String(), 64)
			g, _ := strconv.ParseFloat(fmt.Sprint(b), 64)
			switch {
			case a == b:
			case ok && ok2 && x.Cmp(y) == 0:
				add(pointer, otherForm)
			case ok && ok2 && f == g && fraction(a, put):
				add(pointer, rounded)
			default:
				add(pointer, "")
			}
		default:
			if a != b {
				add(pointer, "")
			}
		}
	}
	compare("", want, parse(text), func(v any) { want = v })
	return out
}

// Whatever changes when a value is read and written again is documented. The values are made at random, and those of
// examples and recordings.
func TestRoundTripChanges(t *testing.T) {
	total, changed, found := 0, 0, map[string]int{}
	try := func(t *testing.T, definition string, data []byte) {
		t.Helper()
		total++
		list := changes(t, definition, data)
		if len(list) > 0 {
			changed++
		}
		for _, c := range list {
			if found[c.is]++; c.is == "" {
				t.Errorf("%s: %s changes in a way that is not documented: %.1000s", definition, c.pointer, data)
			}
		}
	}
	from := func(source string, run func(t *testing.T)) {
		t.Run(source, func(t *testing.T) {
			defer func(n, c int) { t.Logf("%d of %d values change", changed-c, total-n) }(total, changed)
			run(t)
		})
	}
	fromRecordings := func(t *testing.T, paths []string) {
		for _, path := range paths {
			eachMessage(t, path, func(_ int, definition string, data []byte) {
				if definition != "" {
					try(t, definition, data)
				}
			})
		}
	}
	defer func() {
		for _, is := range slices.Sorted(maps.Keys(found)) {
			t.Logf("%d times: %s", found[is], is)
		}
	}()
	for _, test := range []struct{ definition, text, is string }{
		{"PromptResponse", `{"stopReason":"end_turn","weather":{"a":1}}`, unknownMember},
		{"FileSystemCapabilities", `{"readTextFile":false}`, saysNothing},
		{"ClientCapabilities", `{"fs":{}}`, saysNothing},
		{"ToolCallLocation", `{"path":"/a","_meta":null}`, saysNothing},
		{"ToolCallLocation", `{"path":"/a","line":1.0}`, otherForm},
		{"Cost", `{"amount":9007199254740993,"currency":"EUR"}`, rounded},
		{"UsageUpdate", `{"size":9007199254740993,"used":18446744073709551615}`, ""},
		{"InitializeRequest", `{"protocolVersion":1}`, stated},
		{"NewSessionRequest", `{"cwd":"/","mcpServers":null}`, wasRepaired},
		{"Annotations", `{"priority":"x"}`, wasRepaired},
		{"ToolCallLocation", `{"line":null,"path":"/\u0061"}`, ""},
	} {
		got := changes(t, test.definition, []byte(test.text))
		if len(got) > 1 || len(got) == 1 && got[0].is != test.is || len(got) == 0 && test.is != "" {
			t.Errorf("%s: got %v, want %q", test.text, got, test.is)
		}
	}
	docs := must.Get(os.ReadFile("../docs/reference/leniency.md"))(t)
	for _, is := range []string{unknownMember, saysNothing, otherForm, rounded, stated, wasRepaired} {
		if !strings.Contains(string(docs), "\n| "+is+" | ") {
			t.Errorf("docs/reference/leniency.md does not say that %s may change", is)
		}
	}
	from("random values", func(t *testing.T) {
		s := loadSchema(t)
		for seed, definition := range slices.Sorted(maps.Keys(definitions)) {
			m := sample.NewMaker(s, uint64(seed))
			for range tier.Pick(2, 10, 40, 200) {
				try(t, definition, mustMarshal(t, m.Value(definition)))
			}
		}
	})
	from("recordings", func(t *testing.T) {
		paths, err := filepath.Glob("../conformance/testdata/clean/v1-*.jsonl")
		if err != nil || len(paths) == 0 {
			t.Fatalf("no recordings: %v", err)
		}
		fromRecordings(t, paths)
	})
	from("traces", func(t *testing.T) {
		paths, err := filepath.Glob(filepath.Join(gentest.Shared(t, "traces"), "*", "*.jsonl"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no traces: %v", err)
		}
		fromRecordings(t, paths)
	})
	from("examples", func(t *testing.T) {
		gentest.Examples(t, gentest.Shared(t, "examples"), 1, try)
	})
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
