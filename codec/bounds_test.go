package codec_test

import (
	"testing"

	"github.com/acpgo/sdk/codec"
)

// even lists the even numbers.
type even int32

func (x even) Known() bool { return x%2 == 0 }

type small int8

func TestBounds(t *testing.T) {
	for _, test := range []struct {
		value         any
		options, text string
		want          string
	}{
		{new(string), "minLength=2", `"éa"`, ""},
		{new(string), "minLength=2", `"é"`, "length is 1, expected 2 or more"},
		{new(string), "maxLength=2", `"éa"`, ""},
		{new(string), "maxLength=2", `"éab"`, "length is 3, expected 2 at most"},
		{new([]int32), "minItems=1", `[1]`, ""},
		{new([]int32), "minItems=1", `[]`, "0 items, expected 1 or more"},
		{new([]int32), "maxItems=1", `[1]`, ""},
		{new([]int32), "maxItems=1", `[1,2]`, "2 items, expected 1 at most"},
		{new(uint32), "minimum=1", `1`, ""},
		{new(float64), "minimum=0", `-0.5`, "-0.5 is less than 0"},
		{new(float64), "maximum=1", `1`, ""},
		{new(int64), "maximum=4", `5`, "5 is greater than 4"},
		{new(int8), "exclusiveMinimum=0", `1`, ""},
		{new(float64), "exclusiveMinimum=0.5", `0.5`, "0.5 is not greater than 0.5"},
		{new(int64), "exclusiveMaximum=9007199254740993", `9007199254740992`, ""},
		{new(int64), "exclusiveMaximum=9007199254740993", `9007199254740993`, "9007199254740993 is not less than 9007199254740993"},
		{new(map[string]int32), "member=a", `{"a":0}`, ""},
		{new(map[string]int32), `member=a\u002cb`, `{"a,b":0}`, ""},
		{new(map[string]int32), "member=a,member=b", `{"a":0}`, `missing member "b"`},
		{new(map[string]int32), "minProperties=1", `{}`, "0 members, expected 1 or more"},
		{new(map[string]int32), "minProperties=1", `{"a":0}`, ""},
		{new(map[string]int32), "maxProperties=1", `{"a":0,"b":1}`, "2 members, expected 1 at most"},
		{new(map[string]int32), "maxProperties=1", `{"a":0}`, ""},
		{new([][]string), "item.minItems=1,item.item.maxLength=1", `[["a"],["b"]]`, ""},
		{new([][]string), "item.minItems=1,item.item.maxLength=1", `[["a"],[]]`, "/1: 0 items, expected 1 or more"},
		{new([][]string), "item.minItems=1,item.item.maxLength=1", `[["a"],["bc"]]`, "/1/0: length is 2, expected 1 at most"},
		{new([]codec.Opt[string]), "item.minLength=1", `[null,"a"]`, ""},
		{new([]codec.Opt[string]), "item.minLength=1", `[null,""]`, "/1: length is 0, expected 1 or more"},
		{new(map[string]string), "item.minLength=1", `{"a":""}`, "/a: length is 0, expected 1 or more"},
		{new(small), "", `127`, ""},
		{new(small), "", `128`, "128 is out of range for 8 bits"},
		{new(int8), "", `-128`, ""},
		{new(int16), "", `32767`, ""},
		{new(int32), "", `-2147483648`, ""},
		{new(int64), "", `-9223372036854775808`, ""},
		{new(uint8), "", `255`, ""},
		{new(uint16), "", `65535`, ""},
		{new(uint16), "", `-1`, "-1 is out of range for 16 bits"},
		{new(uint32), "", `4294967295`, ""},
		{new(uint64), "", `18446744073709551615`, ""},
		{new(even), "", `4`, ""},
		{new(even), "", `3`, "3 is not one of the values of codec_test.even"},
		{new(even), "open", `3`, ""},
		{new(codec.ID), "requestID", `"a"`, ""},
		{new(codec.ID), "requestID", `7.0`, ""},
		{new(codec.ID), "requestID", `-9223372036854775808`, ""},
		{new(codec.ID), "requestID", `9223372036854775808`, "an id here must be a string or an integer of 64 bits"},
		{new(codec.ID), "requestIDOrNull", `1.5`, "an id here must be a string or an integer of 64 bits"},
		{new(codec.ID), "requestIDOrNull", `null`, ""},
		{new(codec.ID), "requestID", `null`, "an id here must not be null"},
	} {
		d := codec.NewDecoder([]byte(test.text))
		codec.DecodeAs(d, test.value, test.options)
		if err := d.End(); err == nil && test.want != "" || err != nil && err.Error() != test.want {
			t.Errorf("%s, %s: got %v, want %q", test.options, test.text, err, test.want)
		}
		again := codec.NewDecoder([]byte(test.text))
		codec.DecodeAs(again, test.value, "open") // without bounds
		if codec.Decode(codec.NewDecoder([]byte(test.text)), test.value); again.End() != nil {
			continue // the value is bad by its type
		}
		out, err := codec.Append(nil, encoderFunc(func(e *codec.Encoder) { codec.EncodeAs(e, test.value, test.options) }))
		if err == nil && (test.want != "" || string(out) != test.text) || err != nil && err.Error() != test.want {
			t.Errorf("%s, %s: it is written as %s, %v, want %q", test.options, test.text, out, err, test.want)
		}
	}
}
