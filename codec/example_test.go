package codec_test

import (
	"fmt"

	"github.com/acpgo/sdk/codec"
)

type point struct {
	X     int32  `json:"x" codec:"required"`
	Y     int32  `json:"y" codec:"required"`
	Label string `json:"label,omitzero" codec:"lenient"` // a bad one is dropped
}

func Example() {
	line, err := codec.Append(nil, &point{X: 1, Y: 2, Label: "here"})
	fmt.Printf("%s %v\n", line, err)

	var p point
	d := codec.NewDecoder([]byte(`{"x": 3, "y": 4.0, "label": ["there"], "z": null}`))
	codec.Decode(d, &p)
	fmt.Println(p, d.End(), d.Repairs())

	fmt.Println(codec.Unmarshal([]byte(`{"x": 3, "y": 4.5}`), &p))
	fmt.Println(codec.Unmarshal([]byte(`{"x": 3}`), &p))
	// Output:
	// {"x":1,"y":2,"label":"here"} <nil>
	// {3 4 } <nil> [{/label expected string, got array}]
	// /y: 4.5 is not an integer
	// missing member "y"
}
