package codec_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/acpgo/sdk/codec"
)

func TestBounds(t *testing.T) {
	tests := []struct {
		err  error
		want string
	}{
		{codec.MinLength("éa", 2), ""},
		{codec.MinLength("é", 2), "length is 1, expected 2 or more"},
		{codec.MaxLength("éa", 2), ""},
		{codec.MaxLength("éab", 2), "length is 3, expected 2 at most"},
		{codec.MinItems([]int{1}, 1), ""},
		{codec.MinItems([]int(nil), 1), "0 items, expected 1 or more"},
		{codec.MaxItems([]int{1}, 1), ""},
		{codec.MaxItems([]int{1, 2}, 1), "2 items, expected 1 at most"},
		{codec.Minimum(uint32(1), 1), ""},
		{codec.Minimum(-0.5, 0), "-0.5 is less than 0"},
		{codec.Maximum(1.0, 1), ""},
		{codec.Maximum(int64(5), 4), "5 is greater than 4"},
		{codec.Above(int8(1), 0), ""},
		{codec.Above(0.5, 0.5), "0.5 is not greater than 0.5"},
		{codec.Below(int64(9007199254740992), 9007199254740993), ""},
		{codec.Below(int64(9007199254740993), 9007199254740993), "9007199254740993 is not less than 9007199254740993"},
		{codec.Members(map[string]int{"a": 0}, "a"), ""},
		{codec.Members(map[string]int{"a": 0}, "a", "b"), `missing member "b"`},
		{codec.MinMembers(map[string]int(nil), 1), "0 members, expected 1 or more"},
		{codec.MinMembers(map[string]int{"a": 0}, 1), ""},
		{codec.MaxMembers(map[string]int{"a": 0, "b": 1}, 1), "2 members, expected 1 at most"},
		{codec.MaxMembers(map[string]int{"a": 0}, 1), ""},
		{codec.Listed(even(4)), ""},
		{codec.Listed(even(3)), "3 is not one of the values of codec_test.even"},
		{codec.IDInParams(id(`"a"`), false), ""},
		{codec.IDInParams(id("7.0"), false), ""},
		{codec.IDInParams(id("-9223372036854775808"), false), ""},
		{codec.IDInParams(id("9223372036854775808"), false), "an id here must be a string or an integer of 64 bits"},
		{codec.IDInParams(id("1.5"), true), "an id here must be a string or an integer of 64 bits"},
		{codec.IDInParams(id("null"), true), ""},
		{codec.IDInParams(id("null"), false), "an id here must not be null"},
	}
	for i, test := range tests {
		if got := fmt.Sprint(test.err); test.err == nil && test.want != "" || test.err != nil && got != test.want {
			t.Errorf("%d: got %v, want %q", i, test.err, test.want)
		}
	}
}

// even lists the even numbers.
type even int

func (x even) Known() bool { return x%2 == 0 }

// id returns the request id that is written so.
func id(text string) (id codec.ID) {
	if err := json.Unmarshal([]byte(text), &id); err != nil {
		panic(err)
	}
	return id
}

func TestCheck(t *testing.T) {
	d := codec.NewDecoder([]byte(`{"s":"é","t":1}`))
	for o := d.Object(); o.Next(); {
		d.Check(codec.MinLength(d.Str(), 2))
	}
	if err := d.End(); err == nil || err.Error() != "/s: length is 1, expected 2 or more" {
		t.Errorf("got %v", err)
	}
}

// Values are the same however they are written.
func TestAppendCanonical(t *testing.T) {
	canonical := func(text string) string { return string(codec.AppendCanonical(nil, []byte(text))) }
	for _, same := range [][2]string{
		{`1`, `1.0`}, {`100`, `1e2`}, {`0`, `-0.0e5`}, {`1e99999999999999999999`, `1e99999999999999999999`}, {`"a"`, `"\u0061"`},
		{`{"a": 1, "b": [2]}`, `{"b": [2.0], "a": 1}`}, {`[]`, `[] `},
	} {
		if canonical(same[0]) != canonical(same[1]) {
			t.Errorf("%s and %s differ", same[0], same[1])
		}
	}
	seen := map[string]string{}
	for _, text := range []string{
		`1`, `"1"`, `true`, `null`, `[1]`, `{"a": 1}`, `[1, 2]`, `[2, 1]`, `[12]`, `{"a": 1, "b": 2}`, `{}`, `[]`, `1e1000000000000`,
		`1e1000000000001`, `0.1`, `0.01`, `10`, `-1`,
	} {
		if other, ok := seen[canonical(text)]; ok {
			t.Errorf("%s and %s are the same", text, other)
		}
		seen[canonical(text)] = text
	}
}
