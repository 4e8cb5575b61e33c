package codec_test

import (
	"cmp"
	"reflect"
	"testing"

	"github.com/acpgo/sdk/codec"
)

// choice is a union of two variants, of which one has a type of its own, beside a member that both have.
type choice struct {
	ID      string `json:"id" codec:"required"`
	Variant any    `json:"-"`
}

type (
	choicePart  taggedInner
	choiceEmpty struct {
		Text codec.Opt[string] `json:"text,omitzero"`
	}
	choiceUnknown codec.Unknown
)

var choices = codec.Variants{Of: "choice", Tag: "type", Names: []string{"id"}, Unknown: (*choiceUnknown)(nil), List: []codec.Variant{
	{Tag: "part", As: (*choicePart)(nil), By: (*taggedInner)(nil)},
	{Tag: "empty", As: (*choiceEmpty)(nil), Off: 2},
}}

func (x *choice) EncodeJSON(e *codec.Encoder) { choices.Encode(e, x, x.Variant) }
func (x *choice) DecodeJSON(d *codec.Decoder) { x.Variant = choices.Decode(d, x) }

func TestVariants(t *testing.T) {
	for _, c := range []struct {
		text, err string
		off       uint64
		want      any
		written   string // if it is not the text
	}{
		{text: `{"id":"a","type":"part","n":1}`, want: &choicePart{N: codec.Some(uint32(1))}},
		{text: `{"id":"a","type":"empty","text":"t"}`, want: &choiceEmpty{Text: codec.Some("t")}},
		{text: `{"id":"a","type":"other","b":[]}`, want: &choiceUnknown{Tag: "other", Raw: []byte(`{"id":"a","type":"other","b":[]}`)}},
		{text: `{"text":"t","type":"empty","id":"a"}`, want: &choiceEmpty{Text: codec.Some("t")}, written: `{"id":"a","type":"empty","text":"t"}`},
		{text: `{"type":"new","n":[ 1 ],"id":"a"}`, want: &choiceUnknown{Tag: "new", Raw: []byte(`{"type":"new","n":[ 1 ],"id":"a"}`)},
			written: `{"id":"a","type":"new","n":[1]}`},
		{text: `{"id":"a","type":"empty","text":5}`, err: "/text: expected string, got number"},
		{text: `{"id":"a","type":"empty","text":5}`, off: 2, want: &choiceUnknown{Tag: "empty", Raw: []byte(`{"id":"a","type":"empty","text":5}`)}},
		{text: `{"id":"a","type":"part"}`, err: `missing member "n"`},
		{text: `{"id":"a"}`, err: `missing member "type"`},
		{text: `{"type":"part","n":1}`, err: `missing member "id"`},
		{text: `{"id":"a","type":"part","n":1,"type":"x"}`, err: `/type: duplicate member "type"`},
		{text: `[]`, err: `expected object, got array`},
	} {
		var got choice
		d := codec.NewDecoder([]byte(c.text))
		d.SetOff(c.off)
		got.DecodeJSON(d)
		if err := d.End(); err != nil || c.err != "" {
			if err == nil || err.Error() != c.err {
				t.Errorf("%s: the error is %v, want %s", c.text, err, c.err)
			}
			continue
		}
		if want := (choice{"a", c.want}); !reflect.DeepEqual(got, want) {
			t.Errorf("%s is read as %+v, want %+v", c.text, got, want)
		}
		out, err := codec.Append(nil, &got)
		if c.off == 0 && (err != nil || string(out) != cmp.Or(c.written, c.text)) {
			t.Errorf("%s is written as %s, error %v", c.text, out, err)
		}
	}
	for _, v := range []any{nil, (*choicePart)(nil), (*choiceEmpty)(nil), (*choiceUnknown)(nil), &choiceUnknown{Tag: "empty", Raw: []byte(`{"id":"a","type":"empty","text":5}`)}} {
		if out, err := codec.Append(nil, &choice{Variant: v}); err == nil {
			t.Errorf("%#v is written as %s", v, out)
		}
	}
}
