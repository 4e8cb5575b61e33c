package remote

import (
	"bytes"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
)

const (
	smallEvents = 8 << 10  // initial size of the reader's buffer: most streams are idle
	eventChunk  = 64 << 10 // its size once much data is read
	longField   = 4 << 10  // longer fields other than data are ignored
	longEnds    = 4 << 10  // how much of each end of an overlong event is kept, see rpc.TooLongError
)

// event is a complete event, ended by a blank line.
type event struct {
	name []byte // "" means message
	data []byte // the data lines, joined by \n
	err  error  // *rpc.TooLongError: the data is not complete
}

// eventReader reads a text/event-stream as the HTML standard says: lines end with LF, CRLF or CR; a byte order mark,
// comments and unknown fields are ignored; an event that is not ended by a blank line is dropped. An event whose data
// is longer than max is reported instead of returned.
//
// fill reads data, and next returns the events in it. The result of next is valid until either is called again.
// Different goroutines may call the two, one at a time.
type eventReader struct {
	r   io.Reader
	max int

	buf  []byte // room for one read
	rest []byte // of buf: what next has not taken yet

	begun   bool   // the first line, which may have a byte order mark, has ended
	afterCR bool   // the last line ended with CR, so a following LF belongs to it
	line    []byte // the current line so far

	// The event so far.
	over    bool // it was returned
	name    []byte
	data    []byte
	hasData bool
	id      []byte

	lastID []byte        // the id at the end of the last event
	retry  time.Duration // the last retry time that the server asked for; 0 if none
}

func newEventReader(r io.Reader, max int) *eventReader {
	return &eventReader{r: r, max: max, buf: make([]byte, smallEvents)}
}

// reset prepares the reader for another stream. It keeps the id of the last event.
func (r *eventReader) reset(in io.Reader) {
	*r = eventReader{r: in, max: r.max, buf: r.buf, id: bytes.Clone(r.lastID), lastID: r.lastID, retry: r.retry}
}

// fill reads once, after next has returned false. It invalidates the result of next.
func (r *eventReader) fill() error {
	n, err := r.r.Read(r.buf)
	r.rest = r.buf[:n]
	if n == len(r.buf) && n < eventChunk {
		r.buf = make([]byte, eventChunk) // much data arrives
	}
	return err
}

// next returns the next event. If ok is false, more data must be read first.
func (r *eventReader) next() (ev event, ok bool) {
	if r.over {
		r.over, r.hasData = false, false
		r.name, r.data = r.name[:0], emptied(r.data)
	}
	for len(r.rest) > 0 {
		if r.afterCR {
			r.afterCR, r.rest = false, bytes.TrimPrefix(r.rest, []byte("\n"))
			continue
		}
		line := r.rest
		if i := bytes.IndexByte(line, '\n'); i >= 0 {
			line = line[:i]
		}
		if i := bytes.IndexByte(line, '\r'); i >= 0 {
			line, r.afterCR = line[:i], true
		}
		r.line = r.grow(r.line, line)
		if len(line) == len(r.rest) {
			r.rest = nil
			break
		}
		r.rest = r.rest[len(line)+1:]
		line = r.line
		r.line = emptied(r.line)
		if !r.begun {
			r.begun, line = true, bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if len(line) > 0 {
			r.field(line)
		} else if r.dispatch() {
			return event{name: r.name, data: r.data, err: r.tooLong()}, true
		}
	}
	return event{}, false
}

// emptied returns a buffer for the next text. It drops a long one.
func emptied(buf []byte) []byte {
	if cap(buf) > 2*eventChunk {
		return nil
	}
	return buf[:0]
}

// grow appends to a text. Of one that is too long it drops a part between its ends.
func (r *eventReader) grow(text, more []byte) []byte {
	text = append(text, more...)
	if first, last := r.max+2*longEnds, len(text)-longEnds; first < last {
		text = slices.Delete(text, first, last)
	}
	return text
}

// field takes a line that is not blank.
func (r *eventReader) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte(" "))
	switch {
	case string(name) == "data":
		if r.hasData {
			r.data = append(r.data, '\n')
		}
		r.hasData, r.data = true, r.grow(r.data, value)
	case len(line) > longField:
	case string(name) == "event":
		r.name = append(r.name[:0], value...)
	case string(name) == "id" && bytes.IndexByte(value, 0) < 0:
		r.id = append(r.id[:0], value...)
	case string(name) == "retry":
		if ms, ok := digits(value); ok {
			r.retry = time.Duration(ms) * time.Millisecond
		}
	}
}

// digits parses a number that consists only of ASCII digits.
func digits(s []byte) (n int64, ok bool) {
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(string(s), 10, 64)
	return min(n, int64(math.MaxInt64/time.Millisecond)), err == nil
}

// dispatch ends an event, and reports whether it has data. One without is ignored.
func (r *eventReader) dispatch() bool {
	r.lastID = append(r.lastID[:0], r.id...)
	if !r.hasData {
		r.name = r.name[:0]
	}
	r.over = r.hasData
	return r.over
}

// tooLong returns the error of an event whose data is too long.
func (r *eventReader) tooLong() error {
	if len(r.data) <= r.max {
		return nil
	}
	return &rpc.TooLongError{
		Limit: r.max,
		Head:  bytes.Clone(r.data[:min(len(r.data), longEnds)]),
		Tail:  bytes.Clone(r.data[max(0, len(r.data)-longEnds):]),
	}
}
