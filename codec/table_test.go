package codec_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/acpgo/sdk/codec"
)

type hue string

func (c hue) Known() bool { return c == "red" }

type plainName string

// tagged has a field of each kind that a struct without code of its own can have.
type tagged struct {
	Text    string                     `json:"text" codec:"required"`
	Name    plainName                  `json:"name,omitzero"`
	Color   hue                        `json:"hue,omitzero" codec:"lenient"`
	Open    hue                        `json:"open,omitzero" codec:"open"`
	Yes     bool                       `json:"yes,omitzero"`
	Small   codec.Opt[int8]            `json:"small,omitzero"`
	Big     codec.Opt[uint64]          `json:"big,omitzero" codec:"null,lenient"`
	Float   codec.Opt[float64]         `json:"float" codec:"required,null"`
	Raw     json.RawMessage            `json:"raw,omitzero"`
	Meta    codec.Meta                 `json:"_meta,omitzero" codec:"null,lenient"`
	Strings map[string]string          `json:"strings,omitzero"`
	Raws    map[string]json.RawMessage `json:"raws,omitzero"`
	List    []string                   `json:"list,omitzero" codec:"empty"`
	Colors  []hue                      `json:"colors,omitzero" codec:"items"`
	Inner   taggedInner                `json:"inner,omitzero"`
	Inners  codec.Opt[[]taggedInner]   `json:"inners,omitzero" codec:"lenient,items"`
	ID      codec.Opt[codec.ID]        `json:"id,omitzero"`
	Short   codec.Opt[string]          `json:"short,omitzero" codec:"minLength=2,maxLength=3"`
	Few     []string                   `json:"few,omitzero" codec:"minItems=1,maxItems=2"`
	Degrees codec.Opt[float64]         `json:"degrees,omitzero" codec:"lenient,exclusiveMinimum=-0.5,exclusiveMaximum=9"`
	Count   codec.Opt[uint8]           `json:"count,omitzero" codec:"minimum=2,maximum=4"`
	Offset  codec.Opt[int16]           `json:"offset,omitzero" codec:"null,minimum=-2"`
	Named   map[string]taggedInner     `json:"named,omitzero" codec:"minProperties=1,maxProperties=2"`
	Extra   map[string]json.RawMessage `json:"-" codec:"extra"`
	No      func()                     `json:"-"`
}

func (x *tagged) UnmarshalJSON(data []byte) error { return codec.Unmarshal(data, x) }

// taggedInner contains itself.
type taggedInner struct {
	N    codec.Opt[uint32] `json:"n" codec:"required"`
	More []taggedInner     `json:"more,omitzero"`
}

// The race detector also checks uses of unsafe pointers.
func TestTags(t *testing.T) {
	inner := taggedInner{N: codec.Some(uint32(1)), More: []taggedInner{{N: codec.Some(uint32(2))}, {N: codec.Some(uint32(3))}}}
	full := tagged{
		Text: "a", Name: "b", Color: "red", Open: "blue", Yes: true, Small: codec.Some(int8(-5)), Big: codec.Some(uint64(1 << 63)),
		Float: codec.Some(1.5), Raw: json.RawMessage(`[1]`), Meta: codec.Meta{"m": json.RawMessage(`2`)}, Strings: map[string]string{"s": "t"},
		Raws: map[string]json.RawMessage{"r": json.RawMessage(`3`)}, List: []string{"x", "y"}, Colors: []hue{"red", "green"},
		Short: codec.Some("äöü"), Few: []string{"a"}, Degrees: codec.Some(8.5), Count: codec.Some(uint8(4)), Offset: codec.Some(int16(-2)),
		Named: map[string]taggedInner{"b": {N: codec.Some(uint32(2))}, "a": {N: codec.Some(uint32(1))}},
		Extra: map[string]json.RawMessage{"z": json.RawMessage(`{}`), "y": json.RawMessage(`0`)},
		Inner: inner, Inners: codec.Some([]taggedInner{inner, inner, inner, inner, inner}), ID: codec.Some(codec.IntID(7)),
	}
	for _, c := range []struct {
		name, in, out, err string
		repairs            int
		want               tagged
	}{
		{name: "full", want: full,
			out: `{"text":"a","name":"b","hue":"red","open":"blue","yes":true,"small":-5,"big":9223372036854775808,"float":1.5,"raw":[1],"_meta":{"m":2},` +
				`"strings":{"s":"t"},"raws":{"r":3},"list":["x","y"],"colors":["red","green"],"inner":{"n":1,"more":[{"n":2},{"n":3}]},` +
				`"inners":[{"n":1,"more":[{"n":2},{"n":3}]},{"n":1,"more":[{"n":2},{"n":3}]},{"n":1,"more":[{"n":2},{"n":3}]},{"n":1,"more":[{"n":2},{"n":3}]},{"n":1,"more":[{"n":2},{"n":3}]}],"id":7,` +
				`"short":"äöü","few":["a"],"degrees":8.5,"count":4,"offset":-2,"named":{"a":{"n":1},"b":{"n":2}},"y":0,"z":{}}`},
		{name: "least", in: `{"text":"","float":null,"unknown":{}}`, out: `{"text":"","float":null,"unknown":{}}`,
			want: tagged{Float: codec.Null[float64](), Extra: map[string]json.RawMessage{"unknown": json.RawMessage(`{}`)}}},
		{name: "repaired", in: `{"float":0,"big":-1,"hue":{},"list":null,"colors":["red",5,"green"],"inners":[{"n":1},{}],"_meta":[],"text":"a"}`,
			out: `{"text":"a","float":0,"colors":["red","green"],"inners":[{"n":1}]}`, repairs: 6,
			want: tagged{Text: "a", Float: codec.Some(0.0), Colors: []hue{"red", "green"}, Inners: codec.Some([]taggedInner{{N: codec.Some(uint32(1))}})}},
		{name: "null", in: `{"text":"a","float":null,"big":null,"_meta":null}`, out: `{"text":"a","big":null,"float":null}`,
			want: tagged{Text: "a", Float: codec.Null[float64](), Big: codec.Null[uint64]()}},
		{name: "missing", in: `{"text":"a"}`, err: `missing member "float"`},
		{name: "twice", in: `{"text":"a","float":1,"text":"a"}`, err: `/text: duplicate member "text"`},
		{name: "out of range", in: `{"text":"a","float":1,"small":128}`, err: `/small: 128 is out of range for 8 bits`},
		{name: "too short", in: `{"text":"a","float":1,"short":"ä"}`, err: `/short: length is 1, expected 2 or more`},
		{name: "too long", in: `{"text":"a","float":1,"short":"abcd"}`, err: `/short: length is 4, expected 3 at most`},
		{name: "too few", in: `{"text":"a","float":1,"few":[]}`, err: `/few: 0 items, expected 1 or more`},
		{name: "too many", in: `{"text":"a","float":1,"few":["","",""]}`, err: `/few: 3 items, expected 2 at most`},
		{name: "dropped", in: `{"text":"a","float":1,"degrees":-0.5}`, out: `{"text":"a","float":1}`, repairs: 1, want: tagged{Text: "a", Float: codec.Some(1.0)}},
		{name: "too large", in: `{"text":"a","float":1,"count":5}`, err: `/count: 5 is greater than 4`},
		{name: "too small", in: `{"text":"a","float":1,"offset":-3}`, err: `/offset: -3 is less than -2`},
		{name: "no bound for null", in: `{"text":"a","float":1,"offset":null}`, out: `{"text":"a","float":1,"offset":null}`,
			want: tagged{Text: "a", Float: codec.Some(1.0), Offset: codec.Null[int16]()}},
		{name: "no members", in: `{"text":"a","float":1,"named":{}}`, err: `/named: 0 members, expected 1 or more`},
		{name: "many members", in: `{"text":"a","float":1,"named":{"a":{"n":1},"b":{"n":1},"c":{"n":1}}}`, err: `/named: 3 members, expected 2 at most`},
		{name: "member twice", in: `{"text":"a","float":1,"named":{"a":{"n":1},"a":{"n":1}}}`, err: `/named/a: duplicate member "a"`},
		{name: "unnamed twice", in: `{"text":"a","float":1,"x":1,"x":2}`, err: `/x: duplicate member "x"`},
		{name: "inside", in: `{"text":"a","float":1,"inner":{"more":[{"n":1},{"n":null}]}}`, err: `/inner/more/1/n: expected integer, got null`},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := c.in
			if in == "" {
				in = c.out
			}
			got := tagged{Text: "before", List: []string{"before"}}
			d := codec.NewDecoder([]byte(in))
			codec.Decode(d, &got)
			if err := d.End(); err != nil || c.err != "" {
				if err == nil || err.Error() != c.err {
					t.Fatalf("the error is %v, want %s", err, c.err)
				}
				return
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
			if len(d.Repairs()) != c.repairs {
				t.Errorf("the repairs are %v, want %d", d.Repairs(), c.repairs)
			}
			if out, err := codec.Append(nil, &got); err != nil || string(out) != c.out {
				t.Errorf("it is written as\n%s, want\n%s, error %v", out, c.out, err)
			}
		})
	}
	for x, want := range map[any]bool{&full: true, &inner: false, (*tagged)(nil): true, "text": false, new(codec.ID): false, nil: false,
		new(forest): false, new(tree): false} {
		if codec.IsTagged(x) != want {
			t.Errorf("IsTagged(%T) is %v", x, !want)
		}
	}
	for want, x := range map[string]*tagged{
		`the extra member "raw" is one that has a field`: {Extra: map[string]json.RawMessage{"raw": json.RawMessage(`1`)}},
		`/few: 3 items, expected 2 at most`:              {Few: []string{"", "", ""}},
		`/degrees: 9 is not less than 9`:                 {Degrees: codec.Some(9.0)},
	} {
		if out, err := codec.Append(nil, x); err == nil || err.Error() != want {
			t.Errorf("%s: it is written as %s, error %v", want, out, err)
		}
	}
	if !codec.IsZero(&tagged{}) || codec.IsZero(&full) || codec.IsZero(&tagged{Float: codec.Null[float64]()}) ||
		codec.IsZero(&tagged{Extra: map[string]json.RawMessage{"a": nil}}) {
		t.Error("IsZero is wrong")
	}
}

// As in encoding/json, a nil pointer is written as null, and nothing can be read into one.
func TestNil(t *testing.T) {
	for _, x := range []any{nil, (*tagged)(nil), (*choice)(nil), (*hue)(nil), (*codec.ID)(nil)} {
		if out, err := codec.Append(nil, x); err != nil || string(out) != "null" {
			t.Errorf("%T is written as %s, error %v", x, out, err)
		}
		want := fmt.Sprintf("cannot read into a nil %T", x)
		if err := codec.Unmarshal([]byte(`{}`), x); err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
	if out, err := codec.Append(nil, nilMap(nil)); err != nil || string(out) != "5" {
		t.Errorf("a nil map with a method is written as %s, error %v", out, err)
	}
}

type nilMap map[string]int

func (nilMap) EncodeJSON(e *codec.Encoder) { e.Int(5) }

// Types of an author, which contain themselves.
type (
	forest []forest
	tree   struct{ Forest forest }
)

func (*forest) UnmarshalJSON([]byte) error { return nil }
func (*tree) UnmarshalJSON([]byte) error   { return nil }

// Types may be used by many goroutines for the first time.
func TestTagsAtOnce(t *testing.T) {
	type a struct {
		X string `json:"x"`
	}
	type b struct {
		X string `json:"y"`
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for _, x := range []any{&a{}, &b{}} {
				d := codec.NewDecoder([]byte(`{"x":"1","y":"2"}`))
				if codec.Decode(d, x); d.End() != nil {
					t.Error(d.Err())
				}
			}
		})
	}
	all.Wait()
}
