package codec_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

const chunkText = `{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hé\n"}}}`

func TestDecode(t *testing.T) {
	want := &notification{SessionID: "s1", Update: update{&messageChunk{Content: content{&contentText{Text: "hé\n"}}}}}
	for name, text := range map[string]string{
		"tags first": chunkText,
		"tags last":  `{"update":{"content":{"text":"hé\n","type":"text"},"sessionUpdate":"agent_message_chunk"},"sessionId":"s1"}`,
		"spaced":     " { \"sessionId\" : \"s1\" ,\r\n\t\"update\":{ \"sessionUpdate\" : \"agent_message_chunk\" , \"content\" : { \"type\" : \"text\" , \"text\" : \"hé\\n\" } } } ",
		"escaped":    `{"session\u0049d":"s\u0031","update":{"sessionUpdate":"agent_message\u005fchunk","content":{"t\u0079pe":"te\u0078t","text":"h\u00e9\n"}}}`,
		"unknown":    `{"x":{"update":[1,{}]},"sessionId":"s1","y":null,"update":{"z":0.5,"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hé\n","new":[]}},"SessionId":1}`,
	} {
		got := new(notification)
		if err := codec.Unmarshal([]byte(text), got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}

	got := new(notification)
	err := codec.Unmarshal([]byte(`{"sessionId":"s","_meta":{"n":12345678901234567890,"o":{ }},"update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"t",
		"status":"new","args":["a"],"content":[{"type":"image","data":"","size":4294967295},{"type":"later","x":[1, 2]}],
		"locations":[{"path":"p","line":7e0}],"rawInput":{"k": 1},"limits":{"":{"path":"q"}}}}`), got)
	if err != nil {
		t.Fatal(err)
	}
	want = &notification{
		SessionID: "s",
		Meta:      map[string]json.RawMessage{"n": json.RawMessage("12345678901234567890"), "o": json.RawMessage("{ }")},
		Update: update{&toolCall{
			ID: "c", Title: "t", Status: "new", Args: []string{"a"},
			Content:   []content{{&contentImage{Size: math.MaxUint32}}, {&contentUnknown{Tag: "later", Raw: json.RawMessage(`{"type":"later","x":[1, 2]}`)}}},
			Locations: []location{{Path: "p", Line: codec.Some(uint32(7))}},
			RawInput:  json.RawMessage(`{"k": 1}`),
			Limits:    map[string]location{"": {Path: "q"}},
		}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got.Update.Variant, want.Update.Variant)
	}
}

type refusal struct{ name, text, want string }

// refusals are read as a notification.
var refusals = []refusal{
	{"empty", ``, `invalid JSON: unexpected end, expected object`},
	{"other kind", `[]`, `expected object, got array`},
	{"after", `{"sessionId":"s","update":{"sessionUpdate":"x"}} x`, `invalid JSON: offset 49: 'x', expected end`},
	{"two values", `{"sessionId":"s","update":{"sessionUpdate":"x"}}{}`, `invalid JSON: offset 48: '{', expected end`},
	{"missing", `{"sessionId":"s"}`, `missing member "update"`},
	{"first missing", `{}`, `missing member "sessionId"`},
	{"missing deep", `{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text"}}}`, `/update/content: missing member "text"`},
	{"null", `{"sessionId":null}`, `/sessionId: expected string, got null`},
	{"case", `{"SessionId":"s","update":{"sessionUpdate":"x"}}`, `missing member "sessionId"`},
	{"duplicate", `{"sessionId":"s","x":0,"x":1,"sessionId":"s"}`, `/sessionId: duplicate member "sessionId"`},
	{"duplicate tag", `{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"","type":"image"}}}`, `/update/content/type: duplicate member "type"`},
	{"duplicate outer tag", `{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""},"sessionUpdate":"x"}}`, `/update/sessionUpdate: duplicate member "sessionUpdate"`},
	{"no tag", `{"update":{"content":{}}}`, `/update: missing member "sessionUpdate"`},
	{"no object", `{"update":"x"}`, `/update: expected object, got string`},
	{"tag of other kind", `{"update":{"x":0,"sessionUpdate":1}}`, `/update/sessionUpdate: expected string, got number`},
	{"element", `{"update":{"sessionUpdate":"tool_call","content":[{"type":"text","text":""},{"type":"text","text":true}]}}`, `/update/content/1/text: expected string, got boolean`},
	{"range", `{"update":{"sessionUpdate":"tool_call","content":[{"type":"image","size":4294967296}]}}`, `/update/content/0/size: 4294967296 is out of range for 32 bits`},
	{"fraction", `{"update":{"sessionUpdate":"tool_call","content":[{"type":"image","size":1.5}]}}`, `/update/content/0/size: 1.5 is not an integer`},
	{"float range", `{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","priority":1e400}}}`, `/update/content/priority: 1e400 is out of range`},
	{"duplicate in map", `{"update":{"sessionUpdate":"tool_call","limits":{"a~/b":{"path":""},"a~/b":{}}}}`, `/update/limits/a~0~1b: duplicate member "a~/b"`},
	{"syntax in lenient", `{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""},"messageId":[1,}}}`, `/update/messageId/1: invalid JSON: offset 100: '}', expected value`},
	{"syntax after lenient", `{"sessionId":"s","_meta":[],"update":{]`, `/update: invalid JSON: offset 38: ']', expected member name`},
	{"UTF-8", "{\"sessionId\":\"\xff\"}", `/sessionId: invalid JSON: string is not UTF-8`},
	{"byte", "{\"sessionId\":\xff}", `/sessionId: invalid JSON: offset 13: byte 0xff, expected string`},
	{"byte order mark", "\ufeff{}", `invalid JSON: offset 0: '\ufeff', expected object`},
	{"control character", "{\"sessionId\":\"a\nb\"}", `/sessionId: invalid JSON: offset 15: '\n', expected end of string`},
	{"literal", `{"_meta":nul}`, `/_meta: invalid JSON: offset 9: 'n', expected null`},
	{"no colon", `{"sessionId" "s"}`, `invalid JSON: offset 13: '"', expected colon`},
	{"deep", `{"x":` + strings.Repeat("[", 256) + strings.Repeat("]", 256) + `}`, `/x` + strings.Repeat("/0", 255) + `: invalid JSON: nested too deeply`},
	{"unknown variant", `{"update":{"sessionUpdate":"later","x":[1,2,]}}`, `/update/x/2: invalid JSON: offset 44: ']', expected value`},
}

func TestDecodeRefuses(t *testing.T) {
	for _, c := range refusals {
		n := new(notification)
		err := codec.Unmarshal([]byte(c.text), n)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v\nwant %s", c.name, err, c.want)
			continue
		}
		e, ok := errors.AsType[*codec.Error](err)
		if !ok || e.Offset < 0 || e.Offset > len(c.text) {
			t.Errorf("%s: got %#v", c.name, err)
		}
		if syntax := strings.Contains(c.want, "invalid JSON"); errors.Is(err, codec.ErrSyntax) != syntax {
			t.Errorf("%s: ErrSyntax is %v, want %v", c.name, !syntax, syntax)
		}
		if deep := strings.Contains(c.want, "deeply"); errors.Is(err, codec.ErrDepth) != deep {
			t.Errorf("%s: ErrDepth is %v, want %v", c.name, !deep, deep)
		}
	}
}

// Every prefix of a message is refused as syntax, and each single byte of it may be anything.
func TestDecodeDamaged(t *testing.T) {
	tier.Need(t, tier.Normal)
	for _, text := range []string{chunkText, repaired[len(repaired)-1].text} {
		for i := range len(text) {
			if err := codec.Unmarshal([]byte(text[:i]), new(notification)); !errors.Is(err, codec.ErrSyntax) {
				t.Fatalf("%s: got %v, want ErrSyntax", text[:i], err)
			}
		}
		damaged := []byte(text)
		for i := range damaged {
			for c := range 256 {
				damaged[i] = byte(c)
				checkError(t, codec.Unmarshal(damaged, new(notification)))
			}
			damaged[i] = text[i]
		}
	}
}

// repaired are read as a notification.
var repaired = []struct {
	name, text string
	want       []codec.Repair
}{
	{"nothing", chunkText, nil},
	{"member", `{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""},"messageId":{"a":[1]}}}`,
		[]codec.Repair{{"/update/messageId", "expected string, got object"}}},
	{"inside", `{"sessionId":"s","_meta":{"x":1,"x":2},"update":{"sessionUpdate":"x"}}`,
		[]codec.Repair{{"/_meta", `/x: duplicate member "x"`}}},
	{"surrogates", `{"sessionId":"\ud800","_meta":{"\udc00":"\ud800"},"update":{"sessionUpdate":"\udc00\ud800"}}`,
		[]codec.Repair{{"/sessionId", surrogate}, {"/_meta/\ufffd", surrogate}, {"/update/sessionUpdate", surrogate}}},
	{"of dropped value", `{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"","audience":["\ud800",1],"priority":1},"messageId":null}}`,
		[]codec.Repair{{"/update/content/audience/0", surrogate}, {"/update/content/audience/1", "expected string, got number"}}},
	{"null as array", `{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"","status":"s","args":null}}`,
		[]codec.Repair{{"/update/args", "null read as []"}}},
	{"items", `{"sessionId":"s","update":{"sessionUpdate":"tool_call","locations":[1,{"path":"a"},{"path":"b","line":-1},{"line":2},{"path":"c"},[]],"toolCallId":"c","title":"","status":"s","args":[]}}`,
		[]codec.Repair{
			{"/update/locations/0", "expected object, got number"},
			{"/update/locations/2", "/line: -1 is out of range for 32 bits"},
			{"/update/locations/3", `missing member "path"`},
			{"/update/locations/5", "expected object, got array"},
		}},
	{"array of items", `{"sessionId":"s","update":{"sessionUpdate":"tool_call","locations":{"path":"a"},"toolCallId":"c","title":"","status":"s","args":[]}}`,
		[]codec.Repair{{"/update/locations", "expected array, got object"}}},
}

const surrogate = "surrogate without its other half became U+FFFD"

func TestRepairs(t *testing.T) {
	d := codec.NewDecoder(nil)
	for _, c := range repaired {
		d.Reset([]byte(c.text))
		n := new(notification)
		codec.Decode(d, n)
		if err := d.End(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := d.Repairs(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
		if tool, ok := n.Update.Variant.(*toolCall); ok {
			var paths []string
			for _, l := range tool.Locations {
				paths = append(paths, l.Path)
			}
			if got := strings.Join(paths, ""); c.name == "items" && got != "ac" {
				t.Errorf("%s: kept %q, want a and c", c.name, got)
			}
			if len(tool.Args) != 0 {
				t.Errorf("%s: args are %#v, want none", c.name, tool.Args)
			}
		}
	}
}

func TestRepairsBounded(t *testing.T) {
	text := `[` + strings.Repeat(`0,"",`, 1000) + `0]`
	d := codec.NewDecoder([]byte(text))
	if got := readAs[[]string](d, "items"); len(got) != 1000 || d.End() != nil {
		t.Fatalf("got %d items, %v", len(got), d.Err())
	}
	repairs := d.Repairs()
	last := repairs[len(repairs)-1]
	if len(repairs) != 257 || repairs[255].Pointer != "/510" || last != (codec.Repair{Msg: "745 more repairs"}) {
		t.Errorf("got %d repairs, the last %q and %q", len(repairs), repairs[255], last)
	}
}

// A failure around repaired values takes their repairs with it.
func TestRecoverForgets(t *testing.T) {
	d := codec.NewDecoder([]byte(`[{"a":"\ud800","b":1},"x"]`))
	var got []string
	for a := d.Array(); a.Next(); {
		m := d.Mark()
		codec.DecodeStringMap(d)
		if d.Recover(m) {
			got = append(got, "dropped")
		}
	}
	want := []codec.Repair{{"/0", "/b: expected string, got number"}, {"/1", "expected object, got string"}}
	if err := d.End(); err != nil || len(got) != 2 || !reflect.DeepEqual(d.Repairs(), want) {
		t.Errorf("got %v, %v, %q", got, err, d.Repairs())
	}
}

// What failed before the mark, and what is not JSON, is not recovered.
func TestRecoverRefuses(t *testing.T) {
	d := codec.NewDecoder([]byte(`[1]`))
	d.Str()
	m := d.Mark()
	if d.Int(64); d.Recover(m) || d.Err() == nil {
		t.Errorf("recovered from an earlier failure")
	}
	for _, text := range []string{`"\x"`, "\"\xff\"", `[1 2]`, strings.Repeat("[", 300), `[`, ``, `nul`} {
		d.Reset([]byte(text))
		m := d.Mark()
		if d.Int(64); d.Recover(m) || !errors.Is(d.Err(), codec.ErrSyntax) {
			t.Errorf("%.20s: recovered, or %v", text, d.Err())
		}
	}
}

func TestRewind(t *testing.T) {
	d := codec.NewDecoder([]byte(`[["\ud800"],2]`))
	a := d.Array()
	a.Next()
	m := d.Mark()
	first := read[[]string](d)
	d.Rewind(m)
	second := read[[]string](d)
	a.Next()
	if two := d.Int(8); two != 2 || a.Next() || !reflect.DeepEqual(first, second) || d.End() != nil {
		t.Errorf("got %q, %q, %d, %v", first, second, two, d.Err())
	}
	if got := d.Repairs(); len(got) != 1 {
		t.Errorf("got %q, want one repair for what was read twice", got)
	}

	d.Reset([]byte(`[0]`))
	m = d.Mark()
	d.Str()
	d.Rewind(m)
	if d.Skip(); d.Err() == nil || d.Kind() != 0 {
		t.Errorf("went back over a failure")
	}
}

func TestRequire(t *testing.T) {
	for text, want := range map[string]string{
		`{"b":2,"a":1}`:       "<nil>",
		`{"b":2}`:             `missing member "a"`,
		`{"a":1}`:             `missing member "b"`,
		`{"a":1,"b":2,"a":3}`: `/a: duplicate member "a"`,
	} {
		d := codec.NewDecoder([]byte(text))
		o := d.Object()
		for ; o.Next(); d.Skip() {
			o.Once(int(o.Name()[0] - 'a'))
		}
		o.Require("a", "b")
		if got := fmt.Sprint(d.End()); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// nest is a union that holds itself.
type nest struct{ inner *nest }

func (x *nest) DecodeJSON(d *codec.Decoder) {
	if tag, _ := d.Tag("type"); string(tag) != "nest" {
		d.NoTag("type")
	}
	o := d.Object()
	for o.Next() {
		switch string(o.Name()) {
		case "inner":
			x.inner = new(nest)
			x.inner.DecodeJSON(d)
		default:
			d.Skip()
		}
	}
}

// With all tags last, time is depth times size: were it exponential, this would not end.
func TestTagLastNested(t *testing.T) {
	text := strings.Repeat(`{"inner":`, 255) + `{"type":"nest"}` + strings.Repeat(`,"type":"nest"}`, 255)
	if err := codec.Unmarshal([]byte(text), new(nest)); err != nil {
		t.Error(err)
	}
}

// Looking at a value for what distinguishes it does not read it.
func TestLook(t *testing.T) {
	tag := func(tag []byte, ok bool) string {
		if !ok {
			return "none"
		}
		return string(tag)
	}
	look := map[string]func(d *codec.Decoder) string{
		"Has":         func(d *codec.Decoder) string { return fmt.Sprint(d.Has("text")) },
		"ItemHas":     func(d *codec.Decoder) string { return fmt.Sprint(d.ItemHas("group")) },
		"Fits":        func(d *codec.Decoder) string { return fmt.Sprint(d.Fits("s", `"`, "n", `0`, "any", ``)) },
		"Tag":         func(d *codec.Decoder) string { return tag(d.Tag("type")) },
		"NullableTag": func(d *codec.Decoder) string { return tag(d.NullableTag("state")) },
		"LenientTag":  func(d *codec.Decoder) string { return tag(d.LenientTag("state")) },
	}
	for _, c := range []struct{ with, text, want string }{
		{"Has", `{"text":1}`, "true"},
		{"Has", `{"blob":"text","te":{}}`, "false"},
		{"Has", `{"a":[{}],"text":null}`, "true"},
		{"Has", `{"t\u0065xt":1}`, "true"},
		{"Has", `{}`, "false"},
		{"Has", `["text"]`, "false"},
		{"Has", `"text"`, "false"},
		{"Has", `{"a":[1,],"text":1}`, "false /a/1: invalid JSON: offset 8: ']', expected value"},
		{"ItemHas", `[{"x":1,"group":{}},{}]`, "true"},
		{"ItemHas", `[{"x":1},{"group":1}]`, "false"},
		{"ItemHas", `[]`, "false"},
		{"ItemHas", `[[{"group":1}]]`, "false"},
		{"ItemHas", `{"group":1}`, "false"},
		{"ItemHas", `"group"`, "false"},
		{"Fits", `{"s":"x","n":1,"any":null}`, "true"},
		{"Fits", ` { "more" : {} , "any" : [], "n" : -1.5 , "s" : "" } `, "true"},
		{"Fits", `{"s":"x","n":1}`, "false"},
		{"Fits", `{"s":"x","n":"1","any":1}`, "false"},
		{"Fits", `{"s":null,"n":1,"any":1}`, "false"},
		{"Fits", `{"S":"x","n":1,"any":1}`, "false"},
		{"Fits", `["s","n","any"]`, "false"},
		{"Fits", `null`, "false"},
		{"Fits", `{"s":"x","n":1,"any":1`, "false /any: invalid JSON: unexpected end, expected comma or }"},
		{"Tag", `{"type":"a"}`, "a"},
		{"Tag", ` { "type" : "a" }`, "a"},
		{"Tag", `{"types":"b","type":"a"}`, "a"},
		{"Tag", `{"x":{"type":"b"},"type":"\u0061"}`, "a"},
		{"Tag", `{"t\u0079pe":"a"}`, "a"},
		{"Tag", `{"type":""}`, ""},
		{"Tag", `{"type":"a","type":"b"}`, "a"},
		{"Tag", `{"typ":"b"}`, "none"},
		{"Tag", `{}`, "none"},
		{"Tag", `[]`, "none"},
		{"Tag", `null`, "none"},
		{"NullableTag", `{"x":1,"state":null}`, "none"},
		{"NullableTag", `{"x":1}`, "none"},
		{"NullableTag", `{"state":"idle"}`, "idle"},
		{"NullableTag", `{"state":1}`, "none /state: expected string, got number"},
		{"NullableTag", `{"state":?}`, "none /state: invalid JSON: offset 9: '?', expected string"},
		// What is not a string is no tag; it is for the reader of the object to say that it is wrong.
		{"LenientTag", `{"x":1,"state":null}`, "none"},
		{"LenientTag", `{"state":{"a":[1]}}`, "none"},
		{"LenientTag", `{"x":{},"state":"idle"}`, "idle"},
		{"LenientTag", `["state"]`, "none"},
	} {
		d := codec.NewDecoder([]byte(c.text))
		got := look[c.with](d)
		d.Skip()
		if err := d.End(); err != nil {
			got += " " + err.Error()
		}
		if got != c.want || len(d.Repairs()) > 0 {
			t.Errorf("%s of %s: got %s and repairs %v, want %s", c.with, c.text, got, d.Repairs(), c.want)
		}
	}
}

// After a failure every method returns its zero value, and loops end.
func TestDecoderSticks(t *testing.T) {
	d := codec.NewDecoder([]byte(`[1,{"a":"b"}]`))
	d.Failf("first")
	d.Failf("second")
	m := d.Mark()
	for o := d.Object(); o.Next(); {
		t.Error("a member")
	}
	for a := d.Array(); a.Next(); {
		t.Error("an element")
	}
	_, tagged := d.Tag("a")
	if d.Kind() != 0 || d.Null() || d.Bool() || d.Int(64) != 0 || d.Uint(64) != 0 || d.Float() != 0 || d.Str() != "" || d.Intern() != "" ||
		d.Raw() != nil || d.Integral() || tagged || d.Has("a") || d.NullAs("[]") || d.Recover(m) {
		t.Error("something was read")
	}
	d.Skip()
	d.NoTag("x")
	d.Missing("x")
	d.Rewind(m)
	if err := d.End(); err == nil || err.Error() != "first" {
		t.Errorf("got %v", err)
	}
	if len(d.Repairs()) != 0 {
		t.Errorf("got %q", d.Repairs())
	}
}

func TestFailWrapped(t *testing.T) {
	cause := errors.New("cause")
	inner := codec.Unmarshal([]byte(`{"sessionId":"s","update":1}`), new(notification))
	d := codec.NewDecoder([]byte(`{"a":["b"]}`))
	for o := d.Object(); o.Next(); {
		for a := d.Array(); a.Next(); {
			d.Fail(fmt.Errorf("x: %w", cause))
		}
	}
	if err := d.Err(); !errors.Is(err, cause) || err.Error() != "/a/0: x: cause" {
		t.Errorf("got %v", err)
	}
	d.Reset([]byte(`{"a":["b"]}`))
	for o := d.Object(); o.Next(); {
		d.Fail(inner)
	}
	if err := d.Err(); !errors.Is(err, inner) || err.Error() != "/a/update: expected object, got number" {
		t.Errorf("got %v", err)
	}
}

func TestMaxDepth(t *testing.T) {
	nested := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	d := codec.NewDecoder(nested(codec.MaxDepth))
	if d.Skip(); d.End() != nil {
		t.Error(d.Err())
	}
	d.SetMaxDepth(1000)
	for n, deep := range map[int]bool{1000: false, 1001: true} {
		d.Reset(nested(n))
		if d.Skip(); errors.Is(d.End(), codec.ErrDepth) != deep {
			t.Errorf("%d: %v", n, d.Err())
		}
	}
}

// What takes more memory than its text is counted, and bounded; what is kept as text, or passed over, is not.
func TestMaxItems(t *testing.T) {
	read := map[string]func(d *codec.Decoder){
		"array": func(d *codec.Decoder) { read[[]string](d) },
		"map":   func(d *codec.Decoder) { codec.DecodeRawMap(d) },
		"raw":   func(d *codec.Decoder) { d.Raw() },
		"other": func(d *codec.Decoder) { d.Raw(); d.AddItems(3) },
	}
	for _, test := range []struct {
		read, text string
		items      int
	}{
		{"array", `["","",""]`, 3},
		{"map", `{"a":[1,2,3],"b":2,"c":3}`, 3},
		{"raw", `["","",""]`, 0},
		{"other", `["","",""]`, 3},
	} {
		d := codec.NewDecoder([]byte(test.text))
		if read[test.read](d); d.End() != nil || d.Items() != test.items {
			t.Errorf("%s: %d items, %v", test.read, d.Items(), d.Err())
		}
		d.SetMaxItems(2)
		d.Reset([]byte(test.text))
		if read[test.read](d); errors.Is(d.End(), codec.ErrItems) != (test.items > 2) || test.items > 2 && !errors.Is(d.Err(), codec.ErrSyntax) {
			t.Errorf("%s: %v", test.read, d.Err())
		}
	}
}

// More siblings than levels are no problem: leaving gives a level back, and so does going back.
func TestDepthRestored(t *testing.T) {
	d := codec.NewDecoder([]byte(`[` + strings.Repeat(`[[{"a":{}}]],`, 1000) + `0]`))
	for a := d.Array(); a.Next(); {
		m := d.Mark()
		d.Has("x")
		for inner := d.Array(); inner.Next(); {
			d.Str()
		}
		d.Recover(m)
		d.Recover(m)
	}
	if err := d.End(); err != nil {
		t.Error(err)
	}
}

// FuzzNumber has the values.
func TestNumbersRefused(t *testing.T) {
	for text, want := range map[string]string{
		"9223372036854775808":      "9223372036854775808 is out of range for 64 bits",
		"-9223372036854775809":     "-9223372036854775809 is out of range for 64 bits",
		"1e19":                     "1e19 is out of range for 64 bits",
		"1e20":                     "1e20 is out of range",
		"1e99999999999999999999":   "1e99999999999999999999 is out of range",
		"-1e-99999999999999999999": "-1e-99999999999999999999 is not an integer",
		"0.1":                      "0.1 is not an integer",
		`"1"`:                      "expected integer, got string",
		strings.Repeat("9", 100):   strings.Repeat("9", 40) + " is out of range",
	} {
		d := codec.NewDecoder([]byte(text))
		if got := d.Int(64); got != 0 || d.End() == nil || d.Err().Error() != want {
			t.Errorf("%.30s: got %d, %v, want %s", text, got, d.Err(), want)
		}
	}
	for _, text := range []string{"-", "1.", "1e", "-a", ""} {
		for name, read := range map[string]func(d *codec.Decoder){
			"Int":   func(d *codec.Decoder) { d.Int(64) },
			"Uint":  func(d *codec.Decoder) { d.Uint(64) },
			"Float": func(d *codec.Decoder) { d.Float() },
		} {
			d := codec.NewDecoder([]byte(text))
			if read(d); !errors.Is(d.Err(), codec.ErrSyntax) {
				t.Errorf("%s of %q: got %v, want ErrSyntax", name, text, d.Err())
			}
		}
	}
}

func TestCollections(t *testing.T) {
	type id string
	d := codec.NewDecoder([]byte(`{"string":"s","strings":[],"lenient":[1],"map":{"b":"2","a":"1"},"empty":{},"null":null}`))
	for o := d.Object(); o.Next(); {
		switch string(o.Name()) {
		case "string":
			if got := read[id](d); got != "s" {
				t.Errorf("got %q", got)
			}
		case "strings":
			if got := read[[]id](d); got == nil || len(got) != 0 {
				t.Errorf("got %#v", got)
			}
		case "lenient":
			if got := readAs[[]id](d, "items"); got == nil || len(got) != 0 {
				t.Errorf("got %#v", got)
			}
		case "map":
			if got := codec.DecodeStringMap(d); !reflect.DeepEqual(got, map[string]string{"a": "1", "b": "2"}) {
				t.Errorf("got %v", got)
			}
		case "empty":
			if got := read[map[string]location](d); got == nil || len(got) != 0 {
				t.Errorf("got %#v", got)
			}
		case "null":
			read[[]location](d)
		}
	}
	if err := d.End(); err == nil || err.Error() != "/null: expected array, got null" {
		t.Errorf("got %v", err)
	}
}

// Elements do not see each other: each starts from its zero value.
func TestMapElementsFresh(t *testing.T) {
	d := codec.NewDecoder([]byte(`{"a":{"path":"x","line":1},"b":{"path":"y"}}`))
	if got := read[map[string]location](d); got["b"].Line.Present() || !got["a"].Line.Present() || d.End() != nil {
		t.Errorf("got %+v, %v", got, d.Err())
	}
}

func TestIntern(t *testing.T) {
	d := codec.NewDecoder(nil)
	read := func(text string) string {
		d.Reset([]byte(text))
		s := d.Intern()
		must.Do(t, d.End())
		return s
	}
	if got := read(`"session"`); got != "session" {
		t.Errorf("got %q", got)
	}
	for i := range 1000 {
		if s := fmt.Sprint("id", i); read(`"`+s+`"`) != s {
			t.Fatalf("%s changed", s)
		}
	}
	long := strings.Repeat("x", 1000)
	if read(`"`+long+`"`) != long || read(`""`) != "" || read(`"a\nb"`) != "a\nb" {
		t.Error("a string changed")
	}
}

func TestDecoderAllocs(t *testing.T) {
	tier.Need(t, tier.Normal)
	skipUnderRace(t)
	all := workloads()
	for name, budget := range map[string]float64{
		"chunk64": 3, // message, chunk with its text block, text
		"chunk1K": 3,
		"plain1M": 3,
	} {
		data := must.Get(codec.Append(nil, all[name]))(t)
		d := codec.NewDecoder(nil)
		var kept *notification
		got := testing.AllocsPerRun(100, func() {
			d.Reset(data)
			kept = new(notification)
			codec.Decode(d, kept)
		})
		if got > budget || d.End() != nil || kept.SessionID == "" {
			t.Errorf("%s: %v allocations, want %v at most; %v", name, got, budget, d.Err())
		}
	}
	data := []byte(`{"a":[1,-2.5e3,"x\n",true,false,null,{"b":"c"}],"type":"t"}`)
	d := codec.NewDecoder(data)
	if got := testing.AllocsPerRun(100, func() {
		d.Reset(data)
		d.Tag("type")
		d.Skip()
	}); got != 0 {
		t.Errorf("skipping: %v allocations", got)
	}
	if got := testing.AllocsPerRun(100, func() { _ = codec.Unmarshal(data, new(discard)) }); got != 0 {
		t.Errorf("Unmarshal: %v allocations", got)
	}
}

type discard struct{}

func (*discard) DecodeJSON(d *codec.Decoder) { d.Skip() }

func TestUnmarshalCleansUp(t *testing.T) {
	if err := codec.Unmarshal([]byte(`[`), new(discard)); err == nil {
		t.Fatal("no error")
	}
	if err := codec.Unmarshal([]byte(`[]`), new(discard)); err != nil {
		t.Errorf("a failure was left over: %v", err)
	}
}

func TestSlice(t *testing.T) {
	d := codec.NewDecoder([]byte(` { "a" : [ 1 ] , "b":2 } `))
	var got []byte
	for o := d.Object(); o.Next(); {
		from := d.Offset()
		d.Skip()
		got = append(append(got, d.Slice(from)...), '|')
	}
	if !bytes.Equal(got, []byte(`[ 1 ]|2|`)) || d.End() != nil {
		t.Errorf("got %s, %v", got, d.Err())
	}
}

// A tag that comes first need not be read twice; that it comes again is noticed nevertheless.
func TestTagIsPassedOver(t *testing.T) {
	for text, want := range map[string]string{
		`{"type":"a","x":1}`:            "x",
		`{"type":"a"}`:                  "",
		`{"type":"","x":1,"y":2}`:       "xy",
		`{ "type":"a","x":1}`:           "typex",
		`{"x":1,"type":"a"}`:            "xtype",
		`{"type":"\u0061","x":1}`:       "typex",
		`{"type":"a","x":1,"type":"a"}`: `x/type: duplicate member "type"`,
		`{"type":"a",}`:                 `invalid JSON: offset 12: '}', expected member name`,
		`{"type":null,"type":"a"}`:      `type/type: duplicate member "type"`,
	} {
		d := codec.NewDecoder([]byte(text))
		d.NullableTag("type")
		var names []byte
		for o := d.Object(); o.Next(); d.Skip() {
			names = append(names, o.Name()...)
		}
		got := string(names)
		if err := d.End(); err != nil {
			got += err.Error()
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// A value that cannot be read one way is read in another, without a trace of the first.
func TestRetry(t *testing.T) {
	for text, want := range map[string]string{
		`["a","b"]`:          `strings ["a" "b"]`,
		`["a",{"\ud800":1}]`: `raw ["a",{"\ud800":1}]`,
		`["a",{]`:            "/1: invalid JSON: offset 6: ']', expected member name",
	} {
		d := codec.NewDecoder([]byte(text))
		start := d.Mark()
		got := fmt.Sprintf("strings %q", read[[]string](d))
		if d.Retry(start) {
			got = "raw " + string(d.Raw())
		}
		if err := d.End(); err != nil {
			got = err.Error()
		}
		if got != want || len(d.Repairs()) > 0 {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// NewWith gives the room to the first New of that type inside, and to no other.
func TestNewWith(t *testing.T) {
	d := codec.NewDecoder([]byte(`{"path":"a"}`))
	if got := codec.NewWith[pair, location](d); got.first.Path != "a" || got.second.Path != "a" || got.first == got.second {
		t.Errorf("got %+v", got)
	}
	skipUnderRace(t)
	data := []byte(`{"path":""}`)
	allocs := testing.AllocsPerRun(100, func() {
		d.Reset(data)
		codec.NewWith[pair, location](d)
	})
	if allocs != 2 {
		t.Errorf("got %v allocations, want one for the pair with its first, one for the second", allocs)
	}
}

// pair reads one location twice.
type pair struct{ first, second *location }

func (x *pair) DecodeJSON(d *codec.Decoder) {
	m := d.Mark()
	x.first = codec.New[location](d)
	d.Rewind(m)
	x.second = codec.New[location](d)
}
