package codec_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/test/must"
)

func TestOpt(t *testing.T) {
	for _, c := range []struct {
		name            string
		o               codec.Opt[int]
		value           int
		present, isNull bool
	}{
		{"absent", codec.Opt[int]{}, 0, false, false},
		{"null", codec.Null[int](), 0, false, true},
		{"zero", codec.Some(0), 0, true, false},
		{"value", codec.Some(3), 3, true, false},
	} {
		value, ok := c.o.Get()
		if ok != c.present || value != c.value || c.o.Value() != c.value || c.o.Present() != c.present || c.o.IsNull() != c.isNull ||
			c.o.IsZero() != (!c.present && !c.isNull) {
			t.Errorf("%s: got %v, %v of %+v", c.name, value, ok, c.o)
		}
		want := 7
		if c.present {
			want = c.value
		}
		if got := c.o.Or(7); got != want {
			t.Errorf("%s: Or(7) is %d, want %d", c.name, got, want)
		}
	}
}

// folded is equal to others by the sign of its value alone.
type folded int

func (f folded) Equal(g folded) bool { return (f < 0) == (g < 0) }

func TestOptEqual(t *testing.T) {
	states := []codec.Opt[[]int]{{}, codec.Null[[]int](), codec.Some([]int(nil)), codec.Some([]int{1}), codec.Some([]int{2})}
	for i, a := range states {
		for j, b := range states {
			if got := a.Equal(b); got != (i == j) {
				t.Errorf("%+v equals %+v: %v", a, b, got)
			}
		}
	}
	if !codec.Some([]int{1}).Equal(codec.Some([]int{1})) || !codec.Some("a").Equal(codec.Some("a")) {
		t.Error("same values are not equal")
	}
	if !codec.Some(folded(1)).Equal(codec.Some(folded(2))) || codec.Some(folded(1)).Equal(codec.Some(folded(-1))) {
		t.Error("the method Equal of the value is not used")
	}
}

// shouting has its methods on the pointer.
type shouting struct{ text string }

func (s *shouting) MarshalJSON() ([]byte, error) { return json.Marshal(s.text + "!") }

func TestOptJSON(t *testing.T) {
	type object struct {
		A codec.Opt[string]   `json:"a,omitzero"`
		B codec.Opt[[]int]    `json:"b,omitzero"`
		C codec.Opt[shouting] `json:"c,omitzero"`
		D codec.Opt[int]      `json:"d"`
	}
	for _, c := range []struct {
		v    object
		want string
	}{
		{object{}, `{"d":null}`},
		{object{codec.Null[string](), codec.Null[[]int](), codec.Null[shouting](), codec.Null[int]()}, `{"a":null,"b":null,"c":null,"d":null}`},
		{object{codec.Some(""), codec.Some([]int{}), codec.Some(shouting{"x"}), codec.Some(1)}, `{"a":"","b":[],"c":"x!","d":1}`},
	} {
		if got, err := json.Marshal(c.v); err != nil || string(got) != c.want {
			t.Errorf("got %s, %v, want %s", got, err, c.want)
		}
	}

	var got object
	must.Do(t, json.Unmarshal([]byte(`{"a":null,"b":[1,2],"d":4}`), &got))
	want := object{A: codec.Null[string](), B: codec.Some([]int{1, 2}), D: codec.Some(4)}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	o := codec.Some("kept")
	if err := o.UnmarshalJSON([]byte(`1`)); err == nil || o.Value() != "kept" {
		t.Errorf("got %+v, %v", o, err)
	}
	if err := o.UnmarshalJSON([]byte(" null\n")); err != nil || !o.IsNull() {
		t.Errorf("got %+v, %v", o, err)
	}
}

// number is a type that writes and reads itself.
type number struct{ n int32 }

func (x *number) EncodeJSON(e *codec.Encoder) { write(e, x.n) }
func (x *number) DecodeJSON(d *codec.Decoder) { x.n = read[int32](d) }

// options has a member of each kind that is an Opt.
type options struct {
	Text         codec.Opt[string]   `json:"text,omitzero" codec:"null"`
	List         codec.Opt[[]number] `json:"list,omitzero" codec:"null"`
	Value        codec.Opt[number]   `json:"value,omitzero" codec:"null"`
	Lenient      codec.Opt[string]   `json:"lenient,omitzero" codec:"null,lenient"`
	LenientValue codec.Opt[number]   `json:"lenientValue,omitzero" codec:"null,lenient"`
	Meta         codec.Meta          `json:"_meta,omitzero" codec:"null,lenient"`
	Some         codec.Opt[string]   `json:"some,omitzero"`
	SomeValue    codec.Opt[number]   `json:"someValue,omitzero"`
	SomeLenient  codec.Opt[string]   `json:"someLenient,omitzero" codec:"lenient"`
}

// What was read is written as it was, but for what was repaired.
func TestOptMembers(t *testing.T) {
	for _, c := range []struct {
		text   string
		want   options
		repair string
		out    string // if it is not the text
		err    string
	}{
		{text: `{}`},
		{text: `{"text":null,"list":null,"value":null}`, want: options{Text: codec.Null[string](), List: codec.Null[[]number](), Value: codec.Null[number]()}},
		{text: `{"text":"a","list":[],"value":0}`, want: options{Text: codec.Some("a"), List: codec.Some([]number{}), Value: codec.Some(number{})}},
		{text: `{"lenient":null,"lenientValue":null}`, want: options{Lenient: codec.Null[string](), LenientValue: codec.Null[number]()}},
		{text: `{"lenient":1}`, repair: "/lenient expected string, got number", out: "{}"},
		{text: `{"lenientValue":"1"}`, repair: "/lenientValue expected integer, got string", out: "{}"},
		{text: `{"some":"a","someValue":2}`, want: options{Some: codec.Some("a"), SomeValue: codec.Some(number{2})}},
		{text: `{"someLenient":"a"}`, want: options{SomeLenient: codec.Some("a")}},
		{text: `{"someLenient":null}`, repair: "/someLenient expected string, got null", out: "{}"},
		{text: `{"_meta":null}`, out: "{}"},
		{text: `{"_meta":{}}`, want: options{Meta: codec.Meta{}}},
		{text: `{"_meta":{"a":[1]}}`, want: options{Meta: codec.Meta{"a": json.RawMessage("[1]")}}},
		{text: `{"_meta":"x"}`, repair: "/_meta expected object, got string", out: "{}"},
		{text: `{"text":1}`, err: "/text: expected string, got number"},
		{text: `{"value":1.5}`, err: "/value: 1.5 is not an integer"},
		{text: `{"some":null}`, err: "/some: expected string, got null"},
		{text: `{"someValue":null}`, err: "/someValue: expected integer, got null"},
		{text: `{"_meta":{"a":1,]}`, err: "/_meta: invalid JSON: offset 16: ']', expected member name"},
	} {
		d := codec.NewDecoder([]byte(c.text))
		var got options
		codec.Decode(d, &got)
		if err := d.End(); (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%s: got %v, want %s", c.text, err, c.err)
			continue
		} else if err != nil {
			continue
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", c.text, got, c.want)
		}
		if repair := strings.Trim(fmt.Sprint(d.Repairs()), "[{}]"); repair != c.repair {
			t.Errorf("%s: got repair %q, want %q", c.text, repair, c.repair)
		}
		if out, err := codec.Append(nil, &got); err != nil || string(out) != cmp.Or(c.out, c.text) {
			t.Errorf("%s: written as %s, %v", c.text, out, err)
		}
	}
}

func TestMeta(t *testing.T) {
	var m codec.Meta
	var text string
	if ok, err := m.Get("a", &text); ok || err != nil {
		t.Errorf("got %v, %v of nothing", ok, err)
	}
	must.Do(t, m.Set("a", "b<"))
	if ok, err := m.Get("a", &text); !ok || err != nil || text != "b<" {
		t.Errorf("got %q, %v, %v", text, ok, err)
	}
	var n int
	if ok, err := m.Get("a", &n); !ok || err == nil {
		t.Errorf("got %d, %v, %v", n, ok, err)
	}
	if err := m.Set("a", math.NaN()); err == nil || string(m["a"]) == "" {
		t.Errorf("got %v, and %s", err, m["a"])
	}
}

// Null among the items of an array is an Opt; a pointer holds what would contain itself.
func TestNullableItems(t *testing.T) {
	type items = []codec.Opt[string]
	d := codec.NewDecoder([]byte(`["a",null,""]`))
	got := read[items](d)
	if err := d.End(); err != nil || !reflect.DeepEqual(got, items{codec.Some("a"), codec.Null[string](), codec.Some("")}) {
		t.Errorf("got %v, %v", got, err)
	}
	got = append(got, codec.Opt[string]{})
	if text, err := codec.Append(nil, &got); err != nil || string(text) != `["a",null,"",null]` {
		t.Errorf("got %s, %v", text, err)
	}
	id := new(codec.ID)
	must.Do(t, json.Unmarshal([]byte(`7`), id))
	if text, err := codec.Append(nil, &id); err != nil || string(text) != "7" {
		t.Errorf("got %s, %v", text, err)
	}
	if _, err := codec.Append(nil, new(*codec.ID)); err == nil || err.Error() != "a nil *codec.ID" {
		t.Errorf("got %v", err)
	}
}

// node may contain itself, and then cannot be written.
type node struct {
	Next *node `json:"next,omitzero"`
}

func TestCycle(t *testing.T) {
	x := &node{}
	x.Next = &node{x}
	if _, err := codec.Append(nil, x); !errors.Is(err, codec.ErrDepth) {
		t.Errorf("got %v", err)
	}
}
