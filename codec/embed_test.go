package codec_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/acpgo/sdk/codec"
)

// object is an object whose members are written by a function.
func object(members func(e *codec.Encoder)) encoderFunc {
	return func(e *codec.Encoder) {
		e.BeginObject()
		members(e)
		e.EndObject()
	}
}

func members(names ...string) encoderFunc {
	return object(func(e *codec.Encoder) {
		for _, name := range names {
			e.Name(name)
			e.Int(1)
		}
	})
}

func raw(text string) encoderFunc {
	return func(e *codec.Encoder) { e.RawObject(json.RawMessage(text)) }
}

func TestEmbed(t *testing.T) {
	variant := func(v encoderFunc) encoderFunc {
		return func(e *codec.Encoder) { codec.EncodeVariant(e, "t", "v", v) }
	}
	one := encoderFunc(func(e *codec.Encoder) { e.Int(1) })
	inner := object(func(e *codec.Encoder) {
		e.Name("b")
		e.Int(1)
		codec.Embed(e, raw(`{ "z": [ {"a":1} ], "a": 1, "b": 1, "c": 1 }`), "b")
	})
	nested := object(func(e *codec.Encoder) {
		e.Name("list")
		raw(`{"a":1}`).EncodeJSON(e)
		e.Name("deep")
		object(func(e *codec.Encoder) { e.Members(json.RawMessage(`{"a":1,"list":1}`)) }).EncodeJSON(e)
	})
	tests := []struct {
		name  string
		write encoderFunc
		want  string // the text, or the error after a !
	}{
		{"into an empty object", object(func(e *codec.Encoder) { codec.Embed(e, members("a", "b")) }), `{"a":1,"b":1}`},
		{"an empty object", object(func(e *codec.Encoder) { codec.Embed(e, members()) }), `{}`},
		{"an empty object behind a member", object(func(e *codec.Encoder) { e.Name("t"); e.Str("v"); codec.Embed(e, members()) }), `{"t":"v"}`},
		{"between members", object(func(e *codec.Encoder) {
			e.Name("t")
			e.Str("v")
			codec.Embed(e, members("a"))
			e.Name("u")
			e.Str("w")
		}), `{"t":"v","a":1,"u":"w"}`},
		{"names that are there", object(func(e *codec.Encoder) {
			e.Name("a")
			e.Int(0)
			codec.Embed(e, inner, "a")
		}), `{"a":0,"b":1,"z":[{"a":1}],"c":1}`},
		{"names are of one object", object(func(e *codec.Encoder) {
			codec.Embed(e, nested, "a", "list")
			e.Members(json.RawMessage(`{"a":2}`))
		}), `{"list":{"a":1},"deep":{"a":1,"list":1},"a":2}`},
		{"what is not an object", object(func(e *codec.Encoder) { codec.Embed(e, one) }), `!expected an object`},
		{"an array", object(func(e *codec.Encoder) { codec.Embed(e, array()) }), `!expected an object`},
		{"raw that is not an object", object(func(e *codec.Encoder) { codec.Embed(e, raw("1")) }), `!an unknown variant must be an object`},
		{"an error inside", object(func(e *codec.Encoder) {
			e.Name("t")
			e.Str("v")
			codec.Embed(e, raw(`{"a":1,"b":x}`))
		}), "!/b: invalid JSON: offset 11: 'x', expected value"},
		{"an error at a member", object(func(e *codec.Encoder) {
			e.Name("t")
			e.Str("v")
			codec.Embed(e, object(func(e *codec.Encoder) { e.Name("m"); e.Float(1); e.Failf("bad") }))
		}), "!/m: bad"},
		{"a variant", variant(members("a")), `{"t":"v","a":1}`},
		{"a variant without members", variant(members()), `{"t":"v"}`},
		{"a variant in an object", object(func(e *codec.Encoder) {
			e.Name("s")
			e.Str("u")
			codec.Embed(e, variant(members("a")))
		}), `{"s":"u","t":"v","a":1}`},
		{"a variant that is not an object", variant(one), `!/t: expected an object`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			out, err := codec.Append(nil, test.write)
			if want, fails := strings.CutPrefix(test.want, "!"); fails {
				if err == nil || err.Error() != want {
					t.Errorf("got %s, %v, want the error %s", out, err, want)
				}
			} else if err != nil || string(out) != want {
				t.Errorf("got %s, %v, want %s", out, err, want)
			}
		})
	}
}

// An object that stands in another one is not one level deeper.
func TestEmbedDepth(t *testing.T) {
	for _, test := range []struct {
		levels int
		want   error
	}{{codec.MaxDepth, nil}, {codec.MaxDepth + 1, codec.ErrDepth}} {
		if _, err := codec.Append(nil, deep(test.levels-1, func(e *codec.Encoder) { codec.EncodeVariant(e, "t", "v", members("a")) })); !errors.Is(err, test.want) {
			t.Errorf("%d levels: got %v, want %v", test.levels, err, test.want)
		}
	}
}
