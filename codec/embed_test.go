package codec_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/acpgo/sdk/codec"
)

// encoding is a value that is written by a function.
type encoding func(e *codec.Encoder)

func (x *encoding) EncodeJSON(e *codec.Encoder) { (*x)(e) }

func members(names ...string) *encoding {
	x := encoding(func(e *codec.Encoder) {
		e.BeginObject()
		for _, name := range names {
			e.Name(name)
			e.Int(1)
		}
		e.EndObject()
	})
	return &x
}

func raw(text string) *encoding {
	x := encoding(func(e *codec.Encoder) { e.RawObject(json.RawMessage(text)) })
	return &x
}

func TestEmbed(t *testing.T) {
	object := func(write func(e *codec.Encoder)) encoding {
		return func(e *codec.Encoder) {
			e.BeginObject()
			write(e)
			e.EndObject()
		}
	}
	inner := object(func(e *codec.Encoder) {
		e.Name("b")
		e.Int(1)
		codec.Embed(e, raw(`{ "z": [ {"a":1} ], "a": 1, "b": 1, "c": 1 }`), "b")
	})
	nested := object(func(e *codec.Encoder) {
		e.Name("list")
		raw(`{"a":1}`).EncodeJSON(e)
		e.Name("deep")
		o := object(func(e *codec.Encoder) { e.Members(json.RawMessage(`{"a":1,"list":1}`)) })
		o.EncodeJSON(e)
	})
	tests := []struct {
		name  string
		write encoding
		want  string // the text, or the error after a !
	}{
		{"into an empty object", object(func(e *codec.Encoder) { codec.Embed(e, members("a", "b")) }), `{"a":1,"b":1}`},
		{"an empty object", object(func(e *codec.Encoder) { codec.Embed(e, members()) }), `{}`},
		{"an empty object behind a member", object(func(e *codec.Encoder) { e.Tag("t", "v"); codec.Embed(e, members()) }), `{"t":"v"}`},
		{"between members", object(func(e *codec.Encoder) {
			e.Tag("t", "v")
			codec.Embed(e, members("a"))
			e.Tag("u", "w")
		}), `{"t":"v","a":1,"u":"w"}`},
		{"names that are there", object(func(e *codec.Encoder) {
			e.Name("a")
			e.Int(0)
			codec.Embed(e, &inner, "a")
		}), `{"a":0,"b":1,"z":[{"a":1}],"c":1}`},
		{"names are of one object", object(func(e *codec.Encoder) {
			codec.Embed(e, &nested, "a", "list")
			e.Members(json.RawMessage(`{"a":2}`))
		}), `{"list":{"a":1},"deep":{"a":1,"list":1},"a":2}`},
		{"what is not an object", object(func(e *codec.Encoder) {
			x := encoding(func(e *codec.Encoder) { e.Int(1) })
			codec.Embed(e, &x)
		}), `!expected an object`},
		{"an array", object(func(e *codec.Encoder) {
			x := encoding(func(e *codec.Encoder) { e.BeginArray(); e.EndArray() })
			codec.Embed(e, &x)
		}), `!expected an object`},
		{"raw that is not an object", object(func(e *codec.Encoder) { codec.Embed(e, raw("1")) }), `!an unknown variant must be an object`},
		{"nil", object(func(e *codec.Encoder) { codec.Embed(e, (*encoding)(nil)) }), `!a variant that is a nil *codec_test.encoding`},
		{"an error inside", object(func(e *codec.Encoder) {
			e.Tag("t", "v")
			codec.Embed(e, raw(`{"a":1,"b":x}`))
		}), "!/b: invalid JSON: offset 11: 'x', expected value"},
		{"an error at a member", object(func(e *codec.Encoder) {
			e.Tag("t", "v")
			x := object(func(e *codec.Encoder) { e.Name("m"); e.Float(1); e.Failf("bad") })
			codec.Embed(e, &x)
		}), "!/m: bad"},
		{"a variant", func(e *codec.Encoder) { codec.EncodeVariant(e, "t", "v", members("a")) }, `{"t":"v","a":1}`},
		{"a variant without members", func(e *codec.Encoder) { codec.EncodeVariant(e, "t", "v", members()) }, `{"t":"v"}`},
		{"a variant in an object", object(func(e *codec.Encoder) {
			e.Tag("s", "u")
			x := encoding(func(e *codec.Encoder) { codec.EncodeVariant(e, "t", "v", members("a")) })
			codec.Embed(e, &x)
		}), `{"s":"u","t":"v","a":1}`},
		{"a variant that is not an object", func(e *codec.Encoder) {
			x := encoding(func(e *codec.Encoder) { e.Int(1) })
			codec.EncodeVariant(e, "t", "v", &x)
		}, `!/t: expected an object`},
		{"no variant", func(e *codec.Encoder) { codec.EncodePayload(e, (*encoding)(nil)) }, `!a variant that is a nil *codec_test.encoding`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			out, err := codec.Append(nil, &test.write)
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
		x := encoding(func(e *codec.Encoder) {
			for range test.levels - 1 {
				e.BeginArray()
			}
			codec.EncodeVariant(e, "t", "v", members("a"))
			for range test.levels - 1 {
				e.EndArray()
			}
		})
		if _, err := codec.Append(nil, &x); !errors.Is(err, test.want) {
			t.Errorf("%d levels: got %v, want %v", test.levels, err, test.want)
		}
	}
}

func TestSliceFuncs(t *testing.T) {
	x := encoding(func(e *codec.Encoder) {
		e.BeginArray()
		e.Elem()
		codec.EncodeSliceFunc(e, []color{"a", "b"}, codec.EncodeEnum)
		e.Elem()
		codec.EncodeSliceFunc(e, []color(nil), codec.EncodeEnum)
		e.Elem()
		codec.EncodeMapFunc(e, map[string]int32{"b": 2, "a": 1}, codec.EncodeInt)
		e.EndArray()
	})
	out, err := codec.Append(nil, &x)
	if want := `[["a","b"],[],{"a":1,"b":2}]`; err != nil || string(out) != want {
		t.Errorf("got %s, %v, want %s", out, err, want)
	}

	d := codec.NewDecoder([]byte(`[["a","b"],["a",1,"b"],["a",1],{"a":1}]`))
	a := d.Array()
	next := func() { a.Next() }
	next()
	if got := codec.DecodeSliceFunc(d, codec.DecodeIntern[color]); fmt.Sprint(got) != "[a b]" {
		t.Errorf("got %v", got)
	}
	next()
	if got := codec.DecodeSliceFuncLenient(d, codec.DecodeIntern[color]); fmt.Sprint(got) != "[a b]" {
		t.Errorf("got %v", got)
	}
	if got := fmt.Sprint(d.Repairs()); got != "[{/1/1 expected string, got number}]" {
		t.Errorf("got repairs %v", got)
	}
	next()
	m := d.Mark()
	if got := codec.DecodeSliceFunc(d, codec.DecodeIntern[color]); got != nil || !d.Retry(m) {
		t.Errorf("got %v, want a failure", got)
	}
	d.Skip()
	next()
	if got := codec.DecodeMapFunc(d, codec.DecodeInt[int8]); fmt.Sprint(got) != "map[a:1]" {
		t.Errorf("got %v", got)
	}
	if next(); d.End() != nil {
		t.Error(d.Err())
	}
}

func TestEncodeDefault(t *testing.T) {
	for _, test := range []struct {
		tag  codec.Opt[string]
		want string
	}{
		{codec.Opt[string]{}, `{"a":1}`},
		{codec.Some(""), `{"t":"","a":1}`},
		{codec.Some("x\"\n"), `{"t":"x\"\n","a":1}`},
	} {
		x := encoding(func(e *codec.Encoder) { codec.EncodeDefault(e, "t", test.tag, members("a")) })
		if out, err := codec.Append(nil, &x); err != nil || string(out) != test.want {
			t.Errorf("%v: got %s, %v, want %s", test.tag, out, err, test.want)
		}
	}
}

func TestFits(t *testing.T) {
	for _, test := range []struct {
		text string
		want bool
	}{
		{`{"s":"x","n":1,"any":null}`, true},
		{` { "more" : {} , "any" : [], "n" : -1.5 , "s" : "" } `, true},
		{`{"s":"x","n":1}`, false},
		{`{"s":"x","n":"1","any":1}`, false},
		{`{"s":null,"n":1,"any":1}`, false},
		{`{"S":"x","n":1,"any":1}`, false},
		{`["s","n","any"]`, false},
		{`null`, false},
		{`{"s":"x","n":1,"any":1`, false},
	} {
		d := codec.NewDecoder([]byte(test.text))
		if got := d.Fits("s", `"`, "n", `0`, "any", ``); got != test.want {
			t.Errorf("%s fits: %v", test.text, got)
		}
		if d.Err() == nil { // it did not read on
			if d.Skip(); d.End() != nil {
				t.Errorf("%s: %v", test.text, d.Err())
			}
		}
	}
}
