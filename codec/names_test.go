package codec_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/acpgo/sdk/codec"
)

// color lists some names, and mood lists the empty one too.
type (
	color string
	mood  string
)

func (x color) Known() bool { return x == "red" }
func (x mood) Known() bool  { return x == "" || x == "calm" }

// The empty name says that nothing is set, unless it is listed.
func TestEmptyNames(t *testing.T) {
	d := codec.NewDecoder([]byte(`{"kind":""}`))
	for o := d.Object(); o.Next(); {
		read[color](d)
	}
	if err := d.End(); err == nil || err.Error() != "/kind: empty name" {
		t.Errorf("got %v", err)
	}
	if _, err := codec.Append(nil, encoderFunc(func(e *codec.Encoder) { write(e, color("")) })); err == nil || err.Error() != "empty codec_test.color" {
		t.Errorf("got %v", err)
	}
	d.Reset([]byte(`""`))
	if got, err := read[mood](d), d.End(); got != "" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if text, err := codec.Append(nil, encoderFunc(func(e *codec.Encoder) { write(e, mood("")) })); err != nil || string(text) != `""` {
		t.Errorf("got %s, %v", text, err)
	}
}

// A name that is not listed is known to have been read, by its type, within bounds.
func TestWasRead(t *testing.T) {
	read := func(name string) color {
		d := codec.NewDecoder([]byte(strconv.Quote(name)))
		v := read[color](d)
		if err := d.End(); err != nil || string(v) != name {
			t.Fatalf("got %q, %v", v, err)
		}
		return v
	}
	if codec.WasRead(color("teal")) {
		t.Error("teal was read before it was")
	}
	if !codec.WasRead(read("teal")) || codec.WasRead(mood("teal")) || codec.WasRead(color("blue")) {
		t.Error("want teal as a color, and nothing else")
	}
	if codec.WasRead(read("red")) {
		t.Error("a listed name is remembered")
	}
	if codec.WasRead(read(strings.Repeat("x", 65))) {
		t.Error("a long name is remembered")
	}
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for j := range 1024 {
				read(fmt.Sprint("color ", i, " ", j))
			}
		})
	}
	group.Wait()
	remembered := 0
	for i := range 8 {
		for j := range 1024 {
			if codec.WasRead(color(fmt.Sprint("color ", i, " ", j))) {
				remembered++
			}
		}
	}
	if remembered < 3000 || remembered > 4096+8 {
		t.Errorf("%d of 8,192 names are remembered, want those of 4,096 that no other test has read", remembered)
	}
}
