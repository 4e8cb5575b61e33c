package codec_test

import (
	"encoding/json"
	"testing"

	"github.com/acpgo/sdk/acp/codec"
)

// color lists some names, and mood lists the empty one too.
type (
	color string
	mood  string
)

func (x color) Known() bool { return x == "red" }
func (x mood) Known() bool  { return x == "" || x == "calm" }

// The empty name says that nothing is set, unless it is listed.
func TestEmptyNames(t *testing.T) {
	d := codec.NewDecoder([]byte(`{"kind":""}`))
	for o := d.Object(); o.Next(); {
		codec.DecodeEnum[color](d)
	}
	if err := d.End(); err == nil || err.Error() != "/kind: empty name" {
		t.Errorf("got %v", err)
	}
	if _, err := codec.Append(nil, new(encoding(func(e *codec.Encoder) { codec.EncodeEnum(e, color("")) }))); err == nil || err.Error() != "empty codec_test.color" {
		t.Errorf("got %v", err)
	}
	d.Reset([]byte(`""`))
	if got, err := codec.DecodeEnum[mood](d), d.End(); got != "" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if text, err := codec.Append(nil, new(encoding(func(e *codec.Encoder) { codec.EncodeEnum(e, mood("")) }))); err != nil || string(text) != `""` {
		t.Errorf("got %s, %v", text, err)
	}
}

// A member that was read with a name that is not listed knows it, however deep the name stands.
func TestKept(t *testing.T) {
	colors := func(d *codec.Decoder) []color { return codec.DecodeSliceFunc(d, codec.DecodeEnum[color]) }
	for text, want := range map[string]bool{`["red"]`: false, `[]`: false, `null`: false, `["red","teal"]`: true} {
		d := codec.NewDecoder([]byte(text))
		got := codec.DecodeOpt(d, func(d *codec.Decoder) codec.Opt[[]color] { return codec.DecodeSome(d, colors) })
		if err := d.End(); err != nil || got.Kept() != want || want && !got.Value().Kept() {
			t.Errorf("%s: got %v, %v, want %v", text, got.Kept(), err, want)
		}
		if want && (!got.Present() || got.IsZero() || got.IsNull() || len(got.Value().Or(nil)) != 2) {
			t.Errorf("%s: what is kept is not like any other value", text)
		}
		if own := codec.Some(got.Value()); own.Kept() {
			t.Error("what a program sets is kept")
		}
	}
	d := codec.NewDecoder([]byte(`"teal"`))
	got := codec.DecodeSome(d, codec.DecodeEnum[color])
	if own := codec.Some(color("teal")); !got.Equal(own) || !own.Equal(got) || got.Equal(codec.Some(color("red"))) {
		t.Error("what is kept is not equal to the same of a program's own")
	}
	if text, err := json.Marshal(got); err != nil || string(text) != `"teal"` {
		t.Errorf("got %s, %v", text, err)
	}
	d.Reset([]byte(`"red"`))
	if got := codec.DecodeSome(d, codec.DecodeEnum[color]); got.Kept() {
		t.Error("a later text is kept")
	}
}
