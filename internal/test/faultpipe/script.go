package faultpipe

import (
	"io"
	"math/rand/v2"
	"slices"
	"time"
)

// capacity is the number of unread bytes at which a writer blocks, the same as that of a pipe on Linux.
const capacity = 64 << 10

// Script describes what happens to the bytes of one direction. The zero Script passes them on unchanged.
type Script struct {
	// Faults happen in this order, each at its place, or at the place of the one before it if that is
	// later.
	Faults []Fault
	// Chunks returns how many bytes one Read returns at most; nil means no limit.
	Chunks func() int
}

// A Fault does something at a place: as soon as Byte bytes were written after the beginning of line Line,
// counted from 0. Newlines count as bytes, so a Byte of line 0 is an offset into the stream. Places count
// what was written, not what earlier faults made of it.
type Fault struct {
	Line, Byte int
	Do         Action
}

// An Action is the effect of a fault.
type Action func(*direction)

// Cut ends the connection as the death of a process does. Both directions end: readers get what was already
// written and then err (nil means io.EOF), and writing fails with io.ErrClosedPipe.
func Cut(err error) Action {
	return func(d *direction) {
		HalfClose(err)(d)
		HalfClose(err)(d.back)
	}
}

// HalfClose is like Cut, for this direction only.
func HalfClose(err error) Action {
	if err == nil {
		err = io.EOF
	}
	return func(d *direction) { d.finish(err) }
}

// Insert adds bytes.
func Insert(text string) Action {
	return func(d *direction) { d.put([]byte(text)) }
}

// Drop discards the next n bytes.
func Drop(n int) Action {
	return func(d *direction) { d.losing = n }
}

// Truncate discards the rest of the line, except the newline.
func Truncate() Action {
	return func(d *direction) { d.cutting = true }
}

// Repeat makes the rest of the line arrive again after the line.
func Repeat() Action {
	return func(d *direction) { d.repeating = true }
}

// Hold holds the following bytes back until release is closed.
func Hold(release <-chan struct{}) Action {
	return func(d *direction) { d.parts = append(d.parts, part{gate: release, wait: true}) }
}

// Stall holds the following bytes back forever: the peer reads no more, and soon the pipe is full.
func Stall() Action { return Hold(nil) }

// Delay holds the following bytes back for some time.
func Delay(by time.Duration) Action {
	return func(d *direction) {
		release := make(chan struct{})
		time.AfterFunc(by, func() { close(release) })
		Hold(release)(d)
	}
}

// RandomChunks delivers 1 to most bytes at a time. Use it for one direction only.
func RandomChunks(seed uint64, most int) func() int {
	r := rand.New(rand.NewPCG(seed, 0))
	return func() int { return 1 + r.IntN(most) }
}

// Random returns n faults at random places of the lines from first up to but not including end. None of them ends the
// connection or delays it by more than a second.
func Random(seed uint64, n, first, end int) []Fault {
	r := rand.New(rand.NewPCG(seed, 1))
	places := make([]int, n)
	for i := range places {
		places[i] = first + r.IntN(end-first)
	}
	slices.Sort(places)
	faults := make([]Fault, n)
	for i, line := range places {
		faults[i] = Fault{Line: line, Byte: r.IntN(100), Do: randomAction(r)}
	}
	return faults
}

func randomAction(r *rand.Rand) Action {
	const garbage = "{}[]\",:0123456789\\abcnull \xff\x00\n"
	switch r.IntN(5) {
	case 0:
		text := make([]byte, 1+r.IntN(20))
		for i := range text {
			text[i] = garbage[r.IntN(len(garbage))]
		}
		return Insert(string(text))
	case 1:
		return Drop(1 + r.IntN(50))
	case 2:
		return Truncate()
	case 3:
		return Repeat()
	default:
		return Delay(time.Duration(r.Int64N(int64(time.Second))))
	}
}
