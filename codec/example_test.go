package codec_test

import (
	"fmt"

	"github.com/acpgo/sdk/codec"
)

// point is a type that encodes and decodes itself.
type point struct {
	X, Y  int32
	Label string // optional; a bad one is dropped
}

func (x *point) EncodeJSON(e *codec.Encoder) {
	e.BeginObject()
	e.Name("x")
	e.Int(int64(x.X))
	e.Name("y")
	e.Int(int64(x.Y))
	if x.Label != "" {
		e.Name("label")
		e.Str(x.Label)
	}
	e.EndObject()
}

func (x *point) DecodeJSON(d *codec.Decoder) {
	*x = point{}
	o := d.Object()
	for o.Next() {
		switch string(o.Name()) {
		case "x":
			o.Once(0)
			x.X = int32(d.Int(32))
		case "y":
			o.Once(1)
			x.Y = int32(d.Int(32))
		case "label":
			o.Once(2)
			m := d.Mark()
			x.Label = d.Str()
			if d.Recover(m) {
				x.Label = ""
			}
		default:
			d.Skip()
		}
	}
	o.Require("x", "y")
}

func Example() {
	line, err := codec.Append(nil, &point{X: 1, Y: 2, Label: "here"})
	fmt.Printf("%s %v\n", line, err)

	var p point
	d := codec.NewDecoder([]byte(`{"x": 3, "y": 4.0, "label": ["there"], "z": null}`))
	p.DecodeJSON(d)
	fmt.Println(p, d.End(), d.Repairs())

	fmt.Println(codec.Unmarshal([]byte(`{"x": 3, "y": 4.5}`), &p))
	fmt.Println(codec.Unmarshal([]byte(`{"x": 3}`), &p))
	// Output:
	// {"x":1,"y":2,"label":"here"} <nil>
	// {3 4 } <nil> [{/label expected string, got array}]
	// /y: 4.5 is not an integer
	// missing member "y"
}
