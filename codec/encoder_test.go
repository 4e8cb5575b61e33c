package codec_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// encoderFunc writes what a test says.
type encoderFunc func(e *codec.Encoder)

func (f encoderFunc) EncodeJSON(e *codec.Encoder) { f(e) }

// array is an array whose items are written by functions.
func array(items ...func(e *codec.Encoder)) encoderFunc {
	return func(e *codec.Encoder) {
		e.BeginArray()
		for _, item := range items {
			e.Elem()
			item(e)
		}
		e.EndArray()
	}
}

// deep is a value inside of so many arrays.
func deep(levels int, value func(e *codec.Encoder)) encoderFunc {
	return func(e *codec.Encoder) {
		for range levels {
			e.BeginArray()
		}
		value(e)
		for range levels {
			e.EndArray()
		}
	}
}

func TestEncode(t *testing.T) {
	for _, c := range []struct {
		name string
		v    any
		want string
	}{
		{"chunk", &notification{SessionID: "s1", Update: update{&messageChunk{Content: content{&contentText{Text: "hé\n"}}}}}, chunkText},
		{"meta", &notification{Update: update{&updateUnknown{Raw: json.RawMessage(" { \"sessionUpdate\" :\n\"a\" } ")}}, Meta: map[string]json.RawMessage{"b\n": json.RawMessage("[ ]"), "a": json.RawMessage("1")}},
			`{"sessionId":"","update":{"sessionUpdate":"a"},"_meta":{"a":1,"b\n":[]}}`},
		{"empty meta", &notification{Update: update{&updateUnknown{Raw: json.RawMessage(`{"sessionUpdate":"a"}`)}}, Meta: map[string]json.RawMessage{}}, `{"sessionId":"","update":{"sessionUpdate":"a"},"_meta":{}}`},
		{"tool", &update{&toolCall{
			ID: "c", Status: "s", Content: []content{}, Locations: []location{{Path: "p"}, {Path: "q", Line: codec.Some(uint32(3))}}, RawInput: json.RawMessage("null"),
			Limits: map[string]location{"z": {}, "a": {}},
		}}, `{"sessionUpdate":"tool_call","toolCallId":"c","title":"","status":"s","args":[],"content":[],"locations":[{"path":"p"},{"path":"q","line":3}],"rawInput":null,"limits":{"a":{"path":""},"z":{"path":""}}}`},
		{"nil collections", array(
			func(e *codec.Encoder) { write(e, []string(nil)) },
			func(e *codec.Encoder) { write(e, []location(nil)) },
			func(e *codec.Encoder) { write(e, map[string]location(nil)) },
			func(e *codec.Encoder) { write(e, map[string]string(nil)) },
			func(e *codec.Encoder) { codec.EncodeRawMap(e, nil) },
		), `[[],[],{},{},{}]`},
		{"scalars", array(
			func(e *codec.Encoder) { e.Null() },
			func(e *codec.Encoder) { e.Bool(true) },
			func(e *codec.Encoder) { e.Bool(false) },
			func(e *codec.Encoder) { e.Int(math.MinInt64) },
			func(e *codec.Encoder) { e.Uint(math.MaxUint64) },
			func(e *codec.Encoder) { write(e, int8(-1)) },
			func(e *codec.Encoder) { write(e, status("s")) },
			func(e *codec.Encoder) { write(e, []status{"a", "b"}) },
			func(e *codec.Encoder) { codec.EncodeStringMap(e, map[string]string{"b": "2", "a": "1"}) },
		), `[null,true,false,-9223372036854775808,18446744073709551615,-1,"s",["a","b"],{"a":"1","b":"2"}]`},
		{"members", &choice{"me", &choiceUnknown{Raw: json.RawMessage(`{ "id" : "you", "type":"x", "a\u0062" : [ 1 ], "id":2 }`)}}, `{"id":"me","type":"x","ab":[1]}`},
		{"no members", splice(`{ }`), `{"first":null,"last":null}`},
		{"within bounds", encoderFunc(func(e *codec.Encoder) { codec.EncodeAs(e, new(string), "maxLength=2") }), `""`},
		{"separators are no structure", object(func(e *codec.Encoder) { e.Key("{"); e.Str("["); e.Key(","); e.Str(":") }), `{"{":"[",",":":"}`},
	} {
		for _, prefix := range []string{"", "{", "x,", "kept\n"} {
			got, err := codec.Append([]byte(prefix), c.v)
			if err != nil || string(got) != prefix+c.want {
				t.Errorf("%s: got %s, %v\nwant %s", c.name, got, err, prefix+c.want)
			}
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	float := func(v float64) content { return content{&contentText{Priority: v}} }
	raw := func(s string) *notification {
		return &notification{Update: update{&toolCall{Status: "s", RawInput: json.RawMessage(s)}}}
	}
	for _, c := range []struct {
		name string
		v    any
		want string
	}{
		{"empty union", &notification{}, `/update: update without a variant`},
		{"empty union deep", &notification{Update: update{&toolCall{Status: "s", Content: []content{float(1), {}}}}}, `/update/content/1: content without a variant`},
		{"empty enum", &notification{Update: update{&toolCall{}}}, `/update/status: empty codec_test.status`},
		{"NaN", &notification{Update: update{&toolCall{Status: "s", Content: []content{float(math.NaN())}}}}, `/update/content/0/priority: NaN is not a JSON number`},
		{"infinity", &notification{Update: update{&messageChunk{Content: float(math.Inf(-1))}}}, `/update/content/priority: -Inf is not a JSON number`},
		{"empty raw", raw(""), `/update/rawInput: invalid JSON: unexpected end, expected value`},
		{"bad raw", raw(`{"a":[1,2 3]}`), `/update/rawInput/a/1: invalid JSON: offset 10: '3', expected comma or ]`},
		{"two raw", raw(`1 2`), `/update/rawInput: invalid JSON: offset 2: '2', expected end`},
		{"raw UTF-8", raw("\"\xff\""), `/update/rawInput: invalid JSON: string is not UTF-8`},
		{"deep raw", raw(strings.Repeat("[", 255) + strings.Repeat("]", 255)), `/update/rawInput` + strings.Repeat("/0", 254) + `: invalid JSON: nested too deeply`},
		{"raw in map", &notification{Update: update{&updateUnknown{Raw: json.RawMessage(`{"sessionUpdate":"a"}`)}}, Meta: map[string]json.RawMessage{"a": json.RawMessage("1"), "b/~": nil}},
			`/_meta/b~1~0: invalid JSON: unexpected end, expected value`},
		{"members of no object", splice("[]"), `expected object, got array`},
		{"members of bad object", splice(`{"a":{"b":tru}}`), `/a/b: invalid JSON: offset 10: 't', expected true`},
		{"unknown without tag", &update{&toolCall{Status: "s", Content: []content{{&contentUnknown{}}}}}, `/content/0: an unknown variant must be an object with the string "type"`},
		{"first of two", encoderFunc(func(e *codec.Encoder) { e.Failf("first"); e.Failf("second"); e.Null() }), `first`},
		{"nothing", encoderFunc(func(*codec.Encoder) {}), `incomplete value`},
		{"open", encoderFunc(func(e *codec.Encoder) { e.BeginObject() }), `incomplete value`},
		{"no value", object(func(e *codec.Encoder) { e.Name("a") }), `/a: missing value`},
		{"no value between", object(func(e *codec.Encoder) { e.Name("a"); e.Name("b"); e.Null() }), `/a: missing value`},
		{"no element", encoderFunc(func(e *codec.Encoder) { e.BeginArray(); e.Elem(); e.Null(); e.Elem(); e.EndArray() }), `/1: missing value`},
		{"bad name", object(func(e *codec.Encoder) { e.Name(`a\q`); e.Failf("why") }), `/a\q: why`},
		{"short", object(func(e *codec.Encoder) { e.Name("a"); codec.EncodeAs(e, new(string), "minLength=2") }), `/a: length is 0, expected 2 or more`},
		{"deep", deep(257, func(*codec.Encoder) {}), strings.Repeat("/0", 256) + `: invalid JSON: nested too deeply`},
	} {
		dst := append(make([]byte, 0, 100), "kept"...)
		got, err := codec.Append(dst, c.v)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: got %s, %v\nwant %s", c.name, got, err, c.want)
		}
		checkError(t, err)
		if string(got) != "kept" {
			t.Errorf("%s: buffer became %q", c.name, got)
		}
	}
}

func TestEncoderErr(t *testing.T) {
	cause := errors.New("cause")
	_, err := codec.Append(nil, encoderFunc(func(e *codec.Encoder) {
		if e.Err() != nil {
			t.Errorf("a failure was left over: %v", e.Err())
		}
		e.BeginObject()
		e.Name("a")
		e.Fail(cause)
		if err := e.Err(); !errors.Is(err, cause) || err.Error() != "/a: cause" {
			t.Errorf("got %v", err)
		}
	}))
	if !errors.Is(err, cause) || err.Error() != "/a: cause" {
		t.Errorf("got %v", err)
	}
}

// Floats are written as encoding/json does, and read back the same.
func TestFloats(t *testing.T) {
	tier.Need(t, tier.Normal)
	random := rand.New(rand.NewPCG(1, 2))
	values := []float64{0, math.Copysign(0, -1), 1, -1, 0.1, 1e-6, 9.99e-7, 1e-9, 1e20, 1e21, 1e22, 1e-10, 123456789, math.MaxFloat64, math.SmallestNonzeroFloat64, 1 << 53}
	for range 100000 {
		values = append(values, math.Float64frombits(random.Uint64()))
	}
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		got, err := codec.Append(nil, encoderFunc(func(e *codec.Encoder) { e.Float(v) }))
		want, _ := json.Marshal(v)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%v: got %s, %v, want %s", v, got, err, want)
		}
		d := codec.NewDecoder(got)
		if back := d.Float(); d.End() != nil || math.Float64bits(back) != math.Float64bits(v) {
			t.Fatalf("%s: read back %v, %v", got, back, d.Err())
		}
	}
}

func TestIntegers(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 100000 {
		u := random.Uint64() >> random.IntN(64)
		got := must.Get(codec.Append(nil, array(
			func(e *codec.Encoder) { e.Uint(u) },
			func(e *codec.Encoder) { e.Int(int64(u)) },
			func(e *codec.Encoder) { e.Int(-int64(u)) })))(t)
		d := codec.NewDecoder(got)
		a := d.Array()
		ok := a.Next() && d.Uint(64) == u && a.Next() && d.Int(64) == int64(u) && a.Next() && d.Int(64) == -int64(u)
		if !ok || a.Next() || d.End() != nil {
			t.Fatalf("%d: written as %s, read back otherwise, %v", u, got, d.Err())
		}
	}
}

// Strings of every length and with something special at every place.
func TestStrings(t *testing.T) {
	const plain = "abcdefghijklmnopqrstuvwxyz"
	for _, special := range []string{"", "\x00", "\x1f", " ", "\"", "\\", "/", "\x7f", "\x80", "\n", "é", "€", "𝄞", "\u2028", "\xff", "\xf0\x9d"} {
		for n := range len(plain) {
			for i := range n + 1 {
				s := plain[:i] + special + plain[i:n]
				got := must.Get(codec.Append(nil, strValue(s)))(t)
				d := codec.NewDecoder(got)
				if back := d.Str(); d.End() != nil || back != string([]rune(s)) {
					t.Fatalf("%q: written as %s, read back %q, %v", s, got, back, d.Err())
				}
				if !json.Valid(got) {
					t.Fatalf("%q: written as %s", s, got)
				}
			}
		}
	}
	got, _ := codec.Append(nil, strValue("\"\\/\b\f\n\r\t\x00\x1f\u007f<>&\u2028é\xff"))
	if want := `"\"\\/\b\f\n\r\t\u0000\u001f` + "\u007f<>&\u2028é\ufffd" + `"`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Long strings, in which few or many characters are escaped, are read by words and in pieces.
func TestLongStrings(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	pieces := []string{`\n`, `\t`, `\u0001`, `\u001f`, `\"`, `\\`, `\u0041`, `\u00e9`, `\u20AC`, `\ud83d\ude39`, `\ud83d`, "é", "€", "𝄞"}
	for range 2000 {
		text := []byte{'"'}
		every := 1 + random.IntN(200)
		for range random.IntN(600) {
			if random.IntN(every) == 0 {
				text = append(text, pieces[random.IntN(len(pieces))]...)
			} else {
				text = append(text, byte('a'+random.IntN(26)))
			}
		}
		text = append(text, '"')
		var want string
		must.Do(t, json.Unmarshal(text, &want))
		d := codec.NewDecoder(text)
		if got := d.Str(); d.End() != nil || got != want {
			t.Fatalf("%s: read as %q, %v", text, got, d.Err())
		}
		prefix := append(make([]byte, 0, 1+random.IntN(1000)), '[') // with room for all of it, or not
		written := codec.AppendString(prefix, want)
		var back []string
		if json.Unmarshal(append(written, ']'), &back) != nil || len(back) != 1 || back[0] != want {
			t.Fatalf("%q: written as %s", want, written)
		}
		for _, i := range []int{random.IntN(len(text) - 1), len(text) - 1} {
			text[i] = 0x01
			if d := codec.NewDecoder(text); d.Str() != "" || !errors.Is(d.End(), codec.ErrSyntax) {
				t.Fatalf("%q: got %v", text, d.Err())
			}
		}
	}
}

// What was read does not change with the input, whose buffer is used again.
func TestRoundTrip(t *testing.T) {
	for name, v := range workloads() {
		data := must.Get(codec.Append(nil, v))(t)
		if !json.Valid(data) || bytes.ContainsRune(data, '\n') {
			t.Errorf("%s: written as %.100s", name, data)
		}
		got := new(notification)
		if err := codec.Unmarshal(data, got); err != nil || !reflect.DeepEqual(got, v) {
			t.Errorf("%s: read back otherwise, %v", name, err)
		}
		for i := range data {
			data[i] = 'x'
		}
		if !reflect.DeepEqual(got, v) {
			t.Errorf("%s: changed with the input: %+v", name, got)
		}
	}
}

// Encoders come from a pool: uses at the same time, and inside of each other, are apart.
func TestEncodeConcurrently(t *testing.T) {
	v := workloads()["toolcall"]
	want := must.Get(codec.Append(nil, v))(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			var buf []byte
			for range 100 {
				if buf, err := codec.Append(buf[:0], v); err != nil || !bytes.Equal(buf, want) {
					t.Errorf("got %s, %v", buf, err)
				}
				if err := codec.Unmarshal(want, new(notification)); err != nil {
					t.Error(err)
				}
				_, _ = codec.Append(nil, &notification{})
			}
		})
	}
	wg.Wait()
	got, err := codec.Append(nil, encoderFunc(func(e *codec.Encoder) {
		inner, _ := codec.Append(nil, strValue("a"))
		e.Raw(inner)
	}))
	if err != nil || string(got) != `"a"` {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestEncodeNestedMaps(t *testing.T) {
	many := map[string]string{}
	for i := range 2000 {
		many[strings.Repeat("k", i)] = "v"
	}
	v := encoderFunc(func(e *codec.Encoder) {
		write(e, map[string]nestedMap{"b": {many}, "a": {map[string]string{"d": "", "c": ""}}})
	})
	for range 2 {
		got, err := codec.Append(nil, v)
		if err != nil || !bytes.HasPrefix(got, []byte(`{"a":{"c":"","d":""},"b":{"":"v","k":"v",`)) || !json.Valid(got) {
			t.Errorf("got %.100s, %v", got, err)
		}
	}
}

type nestedMap struct{ m map[string]string }

func (x *nestedMap) DecodeJSON(d *codec.Decoder) { x.m = read[map[string]string](d) }
func (x *nestedMap) EncodeJSON(e *codec.Encoder) { codec.EncodeStringMap(e, x.m) }

func TestEncoderAllocs(t *testing.T) {
	tier.Need(t, tier.Normal)
	skipUnderRace(t)
	all := workloads()
	all["meta"] = &notification{
		Update: update{&toolCall{Status: "s", RawInput: json.RawMessage(`{"a": [1, 2]}`)}},
		Meta:   map[string]json.RawMessage{"b": json.RawMessage(`"\n"`), "a": json.RawMessage(`1`)},
	}
	for name, v := range all {
		buf := must.Get(codec.Append(nil, v))(t)
		if got := testing.AllocsPerRun(100, func() { buf, _ = codec.Append(buf[:0], v) }); got != 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}
