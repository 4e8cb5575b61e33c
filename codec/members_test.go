package codec_test

import (
	"testing"

	"github.com/acpgo/sdk/codec"
)

type kind string

func (k kind) Known() bool { return k == "new" }

type shape interface{ isShape() }

type (
	union struct {
		Variant shape `json:"-" codec:"features"`
	}
	circle struct {
		Kind kind `json:"kind" codec:"features"`
	}
	square struct{}
	drawn  struct {
		ID     string             `json:"id" codec:"required,id"`
		Shapes codec.Opt[[]union] `json:"shapes,omitzero" codec:"features"`
		Off    codec.Opt[bool]    `json:"off,omitzero" codec:"null,feature=3"`
		Flag   bool               `json:"flag" codec:"feature=4"`
		Other  map[string][]int   `json:"-"`
	}
)

func (*circle) isShape()                     {}
func (*square) isShape()                     {}
func (x *union) EncodeJSON(e *codec.Encoder) { e.Null() }
func (x *union) DecodeJSON(d *codec.Decoder) { d.Skip() }

func TestFeatures(t *testing.T) {
	of := func(x any) uint64 {
		switch x := x.(type) {
		case *square:
			return 1
		case kind:
			if x == "new" {
				return 2
			}
		}
		return 0
	}
	shapes := func(all ...union) codec.Opt[[]union] { return codec.Some(all) }
	for _, test := range []struct {
		x    drawn
		want uint64
	}{
		{drawn{}, 0},
		{drawn{Off: codec.Null[bool]()}, 0},
		{drawn{Off: codec.Some(false)}, 1 << 3},
		{drawn{Flag: true}, 1 << 4},
		{drawn{Shapes: shapes(union{}, union{&circle{"old"}}, union{(*circle)(nil)})}, 0},
		{drawn{Shapes: shapes(union{&circle{"old"}}, union{&circle{"new"}})}, 2},
		{drawn{Shapes: shapes(union{&circle{"new"}}, union{(*square)(nil)}), Flag: true}, 1 | 2 | 1<<4},
	} {
		if got := codec.Features(&test.x, of); got != test.want {
			t.Errorf("%+v uses %b, want %b", test.x, got, test.want)
		}
	}
	if got := codec.Features((*drawn)(nil), of); got != 0 {
		t.Errorf("nil uses %b", got)
	}
	if got := codec.Features(kind("new"), of); got != 2 {
		t.Errorf("a value that is no struct uses %b", got)
	}
}

func TestEmptyID(t *testing.T) {
	for x, want := range map[any]string{&drawn{}: "/id", &drawn{ID: "a"}: "", &square{}: "", kind("new"): ""} {
		if got := codec.EmptyID(x); got != want {
			t.Errorf("%T: got %q, want %q", x, got, want)
		}
	}
}
