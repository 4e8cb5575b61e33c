package codec_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/acpgo/sdk/codec"
)

func TestOptPrints(t *testing.T) {
	type point struct{ X, Y codec.Opt[int] }
	long := strings.Repeat("é", 1000)
	for _, test := range []struct {
		value any
		want  string
	}{
		{codec.Opt[int]{}, "absent"},
		{codec.Null[int](), "null"},
		{codec.Some("a b"), "a b"},
		{codec.Some(point{X: codec.Some(1)}), "{X:1 Y:absent}"},
		{point{X: codec.Null[int]()}, "{X:null Y:absent}"},
		{codec.Some(long), long[:1024] + "… (2000 bytes)"},
	} {
		if got := fmt.Sprintf("%+v", test.value); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}

func TestText(t *testing.T) {
	if got := codec.Text(members("a")); got != `{"a":1}` {
		t.Errorf("got %s", got)
	}
	if got := codec.Text((raw("1"))); got != "!(an unknown variant must be an object)" {
		t.Errorf("got %s", got)
	}
	long := `{"a":"` + strings.Repeat("x", 2000) + `"}`
	if got := codec.Text(raw(long)); got != long[:1024]+"… (2008 bytes)" {
		t.Errorf("got %s", got)
	}
}
