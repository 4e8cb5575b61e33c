package codec_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/acpgo/sdk/codec"
)

// retried is read in one way and, where that fails, in another one that has it as a part, too.
type retried struct{ reads *int }

func (x *retried) DecodeJSON(d *codec.Decoder) {
	at := d.Mark()
	x.part(d)
	if d.RetryFitting(at) {
		x.part(d)
	}
}

func (x *retried) part(d *codec.Decoder) {
	*x.reads++
	for o := d.Object(); o.Next(); {
		x.DecodeJSON(d)
	}
}

// A mistake inside of values that are each read in two ways does not double the time with each level.
func TestRetriesAreBounded(t *testing.T) {
	const levels = 60
	reads := 0
	d := codec.NewDecoder([]byte(strings.Repeat(`{"x":`, levels) + "1" + strings.Repeat("}", levels)))
	(&retried{&reads}).DecodeJSON(d)
	if _, ok := errors.AsType[*codec.Error](d.End()); !ok {
		t.Errorf("got %v", d.Err())
	}
	if reads < levels || reads > 100_000 {
		t.Errorf("%d objects were read, of %d", reads, levels)
	}
}
