package codec_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/acpgo/sdk/acp/codec"
)

func TestBounds(t *testing.T) {
	const upper = "^[A-Z]{3}$"
	tests := []struct {
		err  error
		want string
	}{
		{codec.MinLength("éa", 2), ""},
		{codec.MinLength("é", 2), "length is 1, want 2 or more"},
		{codec.Pattern("EUR", upper), ""},
		{codec.Pattern("EURO", upper), `"EURO" does not match ^[A-Z]{3}$`},
		{codec.MinItems([]int{1}, 1), ""},
		{codec.MinItems([]int(nil), 1), "0 items, want 1 or more"},
		{codec.MaxItems([]int{1}, 1), ""},
		{codec.MaxItems([]int{1, 2}, 1), "2 items, want 1 at most"},
		{codec.Minimum(uint32(1), 1), ""},
		{codec.Minimum(-0.5, 0), "-0.5 is less than 0"},
		{codec.Maximum(1.0, 1), ""},
		{codec.Maximum(int64(5), 4), "5 is greater than 4"},
		{codec.URI("https://example.com/a b"), ""},
		{codec.URI("example"), `"example" is no absolute URI`},
		{codec.URI(""), `"" is no absolute URI`},
		{codec.DateTime("2026-11-02T10:00:00.5+02:00"), ""},
		{codec.DateTime("2026-11-02"), `"2026-11-02" is no RFC 3339 time`},
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
	if err := d.End(); err == nil || err.Error() != "/s: length is 1, want 2 or more" {
		t.Errorf("got %v", err)
	}
}
