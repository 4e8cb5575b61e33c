package faultpipe

import (
	"bytes"
	"io"
	"sync"
)

// End is one end of a Pipe. After W is closed the other end reads to the end; after R is closed the other
// end's writes fail with io.ErrClosedPipe. Closing again does nothing. Reading, writing and closing may
// happen concurrently.
type End struct {
	R io.ReadCloser
	W io.WriteCloser
}

// Pipe returns the two ends of an in-memory connection. The scripts say what happens to the bytes that a
// reads and to those that b reads.
func Pipe(toA, toB Script) (a, b End) {
	mu := &sync.Mutex{}
	forA, forB := newDirection(mu, toA), newDirection(mu, toB)
	forA.back, forB.back = forB, forA
	mu.Lock()
	defer mu.Unlock()
	forA.act()
	forB.act()
	return End{reader{forA}, writer{forB}}, End{reader{forB}, writer{forA}}
}

// direction is one direction of a pipe.
type direction struct {
	mu     *sync.Mutex // of both directions
	script Script
	back   *direction

	faults []Fault     // those to come
	starts map[int]int // where the lines begin that faults name, or -1
	line   int         // lines that were written
	offset int         // bytes that were written

	losing    int    // bytes still to be dropped
	cutting   bool   // the rest of the line is dropped
	repeating bool   // the line is kept, to be passed again
	repeated  []byte // the line so far
	parts     []part // on their way
	size      int    // bytes in parts
	end       error  // what the reader gets after parts; nil while the direction is open
	deaf      bool   // the reader was closed
	change    chan struct{}
}

// part is bytes, or a wait before the next part.
type part struct {
	data []byte
	gate <-chan struct{}
	wait bool
}

func newDirection(mu *sync.Mutex, script Script) *direction {
	d := &direction{mu: mu, script: script, faults: script.Faults, starts: map[int]int{}, change: make(chan struct{})}
	for _, f := range d.faults {
		d.starts[f.Line] = -1
	}
	d.starts[0] = 0
	return d
}

// changed wakes all waiting goroutines; mu is held.
func (d *direction) changed() {
	close(d.change)
	d.change = make(chan struct{})
}

// wait waits for a change or for gate. It is called with mu held, and releases mu while it waits.
func (d *direction) wait(gate <-chan struct{}) {
	change := d.change
	d.mu.Unlock()
	select {
	case <-change:
	case <-gate:
	}
	d.mu.Lock()
}

// until returns the number of bytes that may pass before the next fault or the end of the line.
func (d *direction) until(next []byte) int {
	n := len(next)
	if i := bytes.IndexByte(next, '\n'); i >= 0 {
		n = i + 1
	}
	if len(d.faults) > 0 {
		if start := d.starts[d.faults[0].Line]; start >= 0 {
			n = min(n, start+d.faults[0].Byte-d.offset)
		}
	}
	return n
}

// act applies the faults whose place has been reached; mu is held.
func (d *direction) act() {
	for len(d.faults) > 0 && d.end == nil {
		f := d.faults[0]
		if start := d.starts[f.Line]; start < 0 || start+f.Byte > d.offset {
			return
		}
		d.faults = d.faults[1:]
		f.Do(d)
	}
}

// pass takes the bytes of a line up to the next fault; mu is held.
func (d *direction) pass(b []byte) {
	ended := b[len(b)-1] == '\n'
	d.offset += len(b)
	if d.repeating {
		d.repeated = append(d.repeated, b...)
	}
	lost := min(d.losing, len(b))
	d.losing -= lost
	b = b[lost:]
	if d.cutting && ended {
		d.cutting = false
		b = b[max(0, len(b)-1):]
	} else if d.cutting {
		b = nil
	}
	d.put(b)
	if !ended {
		return
	}
	d.line++
	if _, named := d.starts[d.line]; named {
		d.starts[d.line] = d.offset
	}
	if d.repeating {
		d.put(d.repeated)
		d.repeating, d.repeated = false, nil
	}
}

// put appends bytes to those that can be read; mu is held.
func (d *direction) put(b []byte) {
	if len(b) == 0 {
		return
	}
	if n := len(d.parts); n == 0 || d.parts[n-1].wait {
		d.parts = append(d.parts, part{})
	}
	last := &d.parts[len(d.parts)-1]
	last.data = append(last.data, b...)
	d.size += len(b)
	d.changed()
}

// finish ends the direction: the reader gets what was written, and then err; mu is held.
func (d *direction) finish(err error) {
	if d.end == nil {
		d.end = err
		d.changed()
	}
}

type writer struct{ d *direction }

// Write returns when all bytes are in the pipe.
func (w writer) Write(b []byte) (int, error) {
	d := w.d
	d.mu.Lock()
	defer d.mu.Unlock()
	written := 0
	for written < len(b) {
		for d.size >= capacity && d.end == nil && !d.deaf {
			d.wait(nil)
		}
		if d.end != nil || d.deaf {
			return written, io.ErrClosedPipe
		}
		n := d.until(b[written:min(len(b), written+capacity-d.size)])
		d.pass(b[written : written+n])
		written += n
		d.act()
	}
	return written, nil
}

// Close ends the direction.
func (w writer) Close() error {
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	w.d.finish(io.EOF)
	return nil
}

type reader struct{ d *direction }

// Read returns bytes from the pipe, at most as many as Script.Chunks allows.
func (r reader) Read(b []byte) (int, error) {
	d := r.d
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		switch {
		case d.deaf:
			return 0, io.ErrClosedPipe
		case len(d.parts) == 0 && d.end != nil:
			return 0, d.end
		case len(d.parts) == 0:
			d.wait(nil)
		case d.parts[0].wait:
			gate := d.parts[0].gate
			select {
			case <-gate:
				d.parts = d.parts[1:]
			default:
				d.wait(gate)
			}
		default:
			return d.take(b), nil
		}
	}
}

// take copies bytes to b; mu is held.
func (d *direction) take(b []byte) int {
	data := d.parts[0].data
	n := min(len(data), len(b))
	if chunk := d.script.Chunks; chunk != nil && n > 0 {
		n = min(n, max(1, chunk()))
	}
	copy(b, data[:n])
	d.parts[0].data = data[n:]
	if n == len(data) {
		d.parts = d.parts[1:]
	}
	d.size -= n
	d.changed()
	return n
}

// Close discards the bytes in the pipe, and makes reading and writing fail.
func (r reader) Close() error {
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	if !r.d.deaf {
		r.d.deaf, r.d.parts, r.d.size = true, nil, 0
		r.d.changed()
	}
	return nil
}
