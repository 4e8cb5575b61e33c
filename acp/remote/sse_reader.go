package remote

import (
	"bytes"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
)

const (
	smallEvents  = 8 << 10  // initial size of the reader's buffer: most streams are idle
	eventChunk   = 64 << 10 // its size once much data is read
	longField    = 4 << 10  // longer fields other than data are ignored, so that there is always room to read
	longEnds     = 4 << 10  // how much of each end of an overlong event is kept, see rpc.TooLongError
	enoughEvents = 256      // memory for an event over eventChunk is released after this many small events
)

// event is a complete event, ended by a blank line.
type event struct {
	name []byte // "" means message
	data []byte // the data lines, joined by \n
	err  error  // *rpc.TooLongError: the data was discarded
}

// eventReader reads a text/event-stream as the HTML standard says: lines end with LF, CRLF or CR; a byte order mark,
// comments and unknown fields are ignored; an event that is not ended by a blank line is dropped. An event whose data
// is longer than max is skipped and reported.
//
// fill reads data, and next returns the events in it. The result of next is valid until either is called again.
// Different goroutines may call the two, one at a time.
type eventReader struct {
	r   io.Reader
	max int

	buf  []byte // room for one read
	rest []byte // of buf: what next has not taken yet

	begun   bool // past the position of a byte order mark
	afterCR bool // the last line ended with CR, so a following LF belongs to it
	dropped bool // the rest of the current line is ignored
	inData  bool // the rest of the current line is data
	few     int  // number of small events in a row

	// The event so far.
	over    bool // it was returned
	name    []byte
	data    []byte
	hasData bool
	id      []byte
	hasID   bool
	long    *rpc.TooLongError // set if the data is too long

	lastID []byte        // the id of the last event that had one
	retry  time.Duration // the last retry time that the server asked for; 0 if none
}

func newEventReader(r io.Reader, max int) *eventReader {
	return &eventReader{r: r, max: max, buf: make([]byte, smallEvents)}
}

// reset prepares the reader for another stream. It keeps the id of the last event.
func (r *eventReader) reset(in io.Reader) {
	*r = eventReader{r: in, max: r.max, buf: r.buf, data: r.data[:0], name: r.name[:0], id: r.id[:0], lastID: r.lastID,
		retry: r.retry}
}

// fill reads once, after next has returned false. It invalidates the result of next.
func (r *eventReader) fill() error {
	kept := copy(r.buf, r.rest)
	n, err := r.r.Read(r.buf[kept:])
	r.rest = r.buf[:kept+n]
	if len(r.rest) == len(r.buf) && len(r.buf) < eventChunk {
		r.buf = make([]byte, eventChunk) // much data arrives
	}
	return err
}

// next returns the next event. If ok is false, more data must be read first.
func (r *eventReader) next() (ev event, ok bool) {
	const mark = "\ufeff"
	if r.over {
		r.over, r.name, r.data, r.hasData, r.long = false, r.name[:0], r.data[:0], false, nil
		if cap(r.data) > eventChunk && r.few > enoughEvents {
			r.data = nil
		}
	}
	if !r.begun {
		if len(r.rest) < len(mark) && string(r.rest) == mark[:len(r.rest)] {
			return event{}, false
		}
		r.begun, r.rest = true, bytes.TrimPrefix(r.rest, []byte(mark))
	}
	for len(r.rest) > 0 {
		if r.afterCR {
			r.afterCR, r.rest = false, bytes.TrimPrefix(r.rest, []byte("\n"))
			continue
		}
		line, ended := r.rest, false
		if i := bytes.IndexByte(line, '\n'); i >= 0 {
			line, ended = line[:i], true
		}
		if i := bytes.IndexByte(line, '\r'); i >= 0 {
			line, ended, r.afterCR = line[:i], true, true
		}
		if !ended {
			if r.partial(line) {
				r.rest = nil
			}
			return event{}, false
		}
		r.rest = r.rest[len(line)+1:]
		switch {
		case r.dropped:
			r.dropped = false
		case r.inData:
			r.inData = false
			r.addData(line)
		case len(line) > 0:
			r.field(line)
		case r.dispatch():
			return event{name: r.name, data: r.data, err: r.failure()}, true
		}
	}
	return event{}, false
}

// partial takes the beginning of a line whose end has not been read, and reports whether it did.
func (r *eventReader) partial(line []byte) bool {
	value, isData := bytes.CutPrefix(line, []byte("data:"))
	switch {
	case r.dropped:
	case r.inData:
		r.addData(line)
	case isData && len(value) > 0:
		r.beginData()
		r.addData(bytes.TrimPrefix(value, []byte(" ")))
		r.inData = true
	case line[0] == ':', len(line) > longField:
		r.dropped = true
	default:
		return false
	}
	return true
}

// field takes a whole line.
func (r *eventReader) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte(" "))
	switch {
	case string(name) == "data":
		r.beginData()
		r.addData(value)
	case len(line) > longField:
	case string(name) == "event":
		r.name = append(r.name[:0], value...)
	case string(name) == "id" && bytes.IndexByte(value, 0) < 0:
		r.id, r.hasID = append(r.id[:0], value...), true
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

// beginData begins a line of data.
func (r *eventReader) beginData() {
	if r.hasData {
		r.addData([]byte{'\n'})
	}
	r.hasData = true
}

// addData adds to the data, or records the ends of data that is too long.
func (r *eventReader) addData(more []byte) {
	if r.long == nil && len(r.data)+len(more) <= r.max {
		r.data = append(r.data, more...)
		return
	}
	if r.long == nil {
		r.long = &rpc.TooLongError{Limit: r.max}
		r.addLong(r.data)
		r.data = r.data[:0]
	}
	r.addLong(more)
}

func (r *eventReader) addLong(more []byte) {
	head := more[:min(len(more), longEnds-len(r.long.Head))]
	r.long.Head = append(r.long.Head, head...)
	r.long.Tail = append(r.long.Tail, more[max(0, len(more)-longEnds):]...)
	r.long.Tail = r.long.Tail[max(0, len(r.long.Tail)-longEnds):]
}

// dispatch ends an event, and reports whether it has data. One without is ignored.
func (r *eventReader) dispatch() bool {
	if r.hasID {
		r.lastID = append(r.lastID[:0], r.id...)
		r.hasID = false
	}
	if !r.hasData {
		r.name = r.name[:0]
		return false
	}
	if r.few++; len(r.data) > eventChunk {
		r.few = 0
	}
	r.over = true
	return true
}

// failure returns the error of an event.
func (r *eventReader) failure() error {
	if r.long != nil {
		return r.long
	}
	return nil
}
