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
	smallEvents  = 4 << 10  // initial size of the reader's buffer: most streams are idle
	eventChunk   = 64 << 10 // its size once much data is read
	longField    = 4 << 10  // longer fields other than data are ignored
	longEnds     = 4 << 10  // how much of each end of an overlong event is kept, see rpc.TooLongError
	enoughEvents = 256      // a buffer over eventChunk is released after this many small events
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

	buf  []byte
	line int // start of the current line
	scan int // the line does not end before this position
	end  int // end of the data
	lf   int // there is no \n in buf[scan:lf]

	begun   bool // past the position of a byte order mark
	afterCR bool // the last line ended with CR, so a following LF belongs to it
	dropped bool // the rest of the current line is ignored
	few     int  // number of small events in a row

	// The event so far.
	hasData       bool
	data, dataEnd int // positions in buf, before line
	name          []byte
	id            []byte
	hasID         bool
	long          *rpc.TooLongError // set if the data is too long
	longLine      bool              // the rest of the current line belongs to that data

	lastID []byte        // the id of the last event that had one
	retry  time.Duration // the last retry time that the server asked for; 0 if none
}

func newEventReader(r io.Reader, max int) *eventReader {
	return &eventReader{r: r, max: max, buf: make([]byte, smallEvents)}
}

// reset prepares the reader for another stream. It keeps the id of the last event.
func (r *eventReader) reset(in io.Reader) {
	*r = eventReader{r: in, max: r.max, buf: r.buf, name: r.name[:0], id: r.id[:0], lastID: r.lastID, retry: r.retry}
}

// next returns the next event. If ok is false, more data must be read first.
func (r *eventReader) next() (ev event, ok bool) {
	if !r.begun && !r.begin() {
		return event{}, false
	}
	for {
		if r.afterCR && r.line < r.end {
			r.afterCR = false
			if r.buf[r.line] == '\n' {
				r.line++
				r.scan = r.line
			}
		}
		i := r.lineEnd()
		if i < 0 {
			r.partial()
			return event{}, false
		}
		line := r.buf[r.line:i]
		r.afterCR = r.buf[i] == '\r'
		r.line, r.scan = i+1, i+1
		switch {
		case r.dropped:
			r.dropped = false
		case r.longLine:
			r.longLine = false
			r.addLong(line)
		case len(line) == 0:
			if ev, ok := r.dispatch(); ok {
				return ev, true
			}
		default:
			r.field(line, i)
		}
	}
}

// begin skips a byte order mark. It returns false if more data is needed to tell.
func (r *eventReader) begin() bool {
	const mark = "\ufeff"
	have := r.buf[r.line:r.end]
	if len(have) < len(mark) && string(have) == mark[:len(have)] {
		return false
	}
	if bytes.HasPrefix(have, []byte(mark)) {
		r.line += len(mark)
		r.scan = r.line
	}
	r.begun = true
	return true
}

// lineEnd returns the end of the current line, or -1 if it has not been read yet.
func (r *eventReader) lineEnd() int {
	if r.lf < r.scan {
		r.lf = r.scan
	}
	if r.lf < r.end && r.buf[r.lf] != '\n' || r.lf == r.scan {
		if i := bytes.IndexByte(r.buf[r.lf:r.end], '\n'); i >= 0 {
			r.lf += i
		} else {
			r.lf = r.end
		}
	}
	if i := bytes.IndexByte(r.buf[r.scan:r.lf], '\r'); i >= 0 {
		return r.scan + i
	}
	r.scan = r.lf
	if r.lf < r.end {
		return r.lf
	}
	return -1
}

// partial consumes the part of an incomplete line that need not be kept.
func (r *eventReader) partial() {
	line := r.buf[r.line:r.end]
	switch {
	case len(line) == 0:
		return
	case r.dropped:
	case r.longLine:
		r.addLong(line)
	case line[0] == ':':
		r.dropped = true
	case bytes.HasPrefix(line, []byte("data:")):
		// The value may be preceded by a space, which does not count.
		if r.long == nil && len(line)-len("data: ")+r.size() <= r.max {
			return
		}
		r.addData(bytes.TrimPrefix(line[len("data:"):], []byte(" ")), r.end)
		r.longLine = true
	case len(line) > longField:
		r.dropped = true
	default:
		return
	}
	r.line, r.scan = r.end, r.end
}

// size returns the length of the data if the current line adds an empty one.
func (r *eventReader) size() int {
	if !r.hasData {
		return 0
	}
	return r.dataEnd - r.data + 1
}

// field processes a line that ends before end.
func (r *eventReader) field(line []byte, end int) {
	name, value, _ := bytes.Cut(line, []byte{':'})
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	if len(line) > longField && string(name) != "data" {
		return
	}
	switch string(name) {
	case "data":
		r.addData(value, end)
	case "event":
		r.name = append(r.name[:0], value...)
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			r.id, r.hasID = append(r.id[:0], value...), true
		}
	case "retry":
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

// addData adds a line, or the beginning of one, to the data. It is in buf, before end.
func (r *eventReader) addData(value []byte, end int) {
	if r.long == nil && r.size()+len(value) > r.max {
		r.long = &rpc.TooLongError{Limit: r.max}
		if r.hasData {
			r.addLong(r.buf[r.data:r.dataEnd])
		}
	}
	switch {
	case r.long != nil:
		if r.hasData {
			r.addLong([]byte{'\n'})
		}
		r.addLong(value)
	case r.hasData:
		// There is room: at least the end of a line and a field's name are in between.
		r.buf[r.dataEnd] = '\n'
		r.dataEnd += 1 + copy(r.buf[r.dataEnd+1:], value)
	default:
		r.data, r.dataEnd = end-len(value), end
	}
	r.hasData = true
}

// addLong records the ends of data that is too long.
func (r *eventReader) addLong(more []byte) {
	head := more[:min(len(more), longEnds-len(r.long.Head))]
	r.long.Head = append(r.long.Head, head...)
	r.long.Tail = append(r.long.Tail, more[max(0, len(more)-longEnds):]...)
	r.long.Tail = r.long.Tail[max(0, len(r.long.Tail)-longEnds):]
}

// dispatch ends an event. An event without data is ignored.
func (r *eventReader) dispatch() (ev event, ok bool) {
	if r.hasID {
		r.lastID = append(r.lastID[:0], r.id...)
		r.hasID = false
	}
	if ok = r.hasData; ok {
		ev = event{name: r.name}
		if r.long != nil {
			ev.err = r.long
		} else {
			ev.data = r.buf[r.data:r.dataEnd:r.dataEnd]
		}
		r.few++
		if len(ev.data) > eventChunk {
			r.few = 0
		}
	}
	r.name, r.hasData, r.long = r.name[:0], false, nil
	return ev, ok
}

// fill reads once. It invalidates the result of next.
func (r *eventReader) fill() error {
	r.room()
	n, err := r.r.Read(r.buf[r.end:])
	r.end += n
	if r.end == len(r.buf) && len(r.buf) < eventChunk {
		r.grow(eventChunk) // much data arrives
	}
	return err
}

// room makes room in buf for more data.
func (r *eventReader) room() {
	if !r.hasData && r.line == r.end {
		if len(r.buf) > eventChunk && r.few > enoughEvents {
			r.buf = make([]byte, eventChunk)
		}
		r.line, r.scan, r.end, r.lf = 0, 0, 0, 0
	}
	if r.end < len(r.buf) {
		return
	}
	used := r.end - r.line
	if r.kept() {
		used += r.dataEnd - r.data
	}
	if used > len(r.buf)/2 {
		r.grow(2 * len(r.buf))
		return
	}
	r.move(r.buf)
}

// kept reports whether buf holds data of the event.
func (r *eventReader) kept() bool { return r.hasData && r.long == nil }

func (r *eventReader) grow(size int) { r.move(make([]byte, size)) }

// move moves the data that is needed to the beginning of a buffer: the data of the event, and the current line.
func (r *eventReader) move(to []byte) {
	n := 0
	if r.kept() {
		n = copy(to, r.buf[r.data:r.dataEnd])
		r.data, r.dataEnd = 0, n
	}
	shift := r.line - n
	r.end = n + copy(to[n:], r.buf[r.line:r.end])
	r.line, r.scan = n, r.scan-shift
	r.lf = max(r.lf-shift, 0)
	r.buf = to
}
