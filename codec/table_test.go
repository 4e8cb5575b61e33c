package codec_test

import (
	"encoding/json"
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
				`"inners":[{"n":1,"more":[{"n":2},{"n":3}]},{"n":1,"more":[{"n":2},{"n":3}]},{"n":1,"more":[{"n":2},{"n":3}]},{"n":1,"more":[{"n":2},{"n":3}]},{"n":1,"more":[{"n":2},{"n":3}]}],"id":7}`},
		{name: "least", in: `{"text":"","float":null,"unknown":{}}`, out: `{"text":"","float":null}`, want: tagged{Float: codec.Null[float64]()}},
		{name: "repaired", in: `{"float":0,"big":-1,"hue":{},"list":null,"colors":["red",5,"green"],"inners":[{"n":1},{}],"_meta":[],"text":"a"}`,
			out: `{"text":"a","float":0,"colors":["red","green"],"inners":[{"n":1}]}`, repairs: 6,
			want: tagged{Text: "a", Float: codec.Some(0.0), Colors: []hue{"red", "green"}, Inners: codec.Some([]taggedInner{{N: codec.Some(uint32(1))}})}},
		{name: "null", in: `{"text":"a","float":null,"big":null,"_meta":null}`, out: `{"text":"a","big":null,"float":null}`,
			want: tagged{Text: "a", Float: codec.Null[float64](), Big: codec.Null[uint64]()}},
		{name: "missing", in: `{"text":"a"}`, err: `missing member "float"`},
		{name: "twice", in: `{"text":"a","float":1,"text":"a"}`, err: `/text: duplicate member "text"`},
		{name: "out of range", in: `{"text":"a","float":1,"small":128}`, err: `/small: 128 is out of range for 8 bits`},
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
	for x, want := range map[any]bool{&full: true, &inner: false, (*tagged)(nil): true, "text": false, new(codec.ID): false, nil: false} {
		if codec.IsTagged(x) != want {
			t.Errorf("IsTagged(%T) is %v", x, !want)
		}
	}
	if out, err := codec.Append(nil, (*tagged)(nil)); err == nil {
		t.Errorf("nil is written as %s", out)
	}
	if !codec.IsZero(&tagged{}) || codec.IsZero(&full) || codec.IsZero(&tagged{Float: codec.Null[float64]()}) {
		t.Error("IsZero is wrong")
	}
}

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
