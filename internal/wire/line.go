package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

const (
	readChunk        = 64 << 10 // the reader's buffer if no line is longer
	keepEnds         = 4 << 10  // how much of each end of a refused line is kept, to find its id
	enoughSmallLines = 256      // a buffer over readChunk is released after this many small lines
)

// A LongLine is a line over the limit, which was discarded; see rpc.TooLongError, which has the same fields.
type LongLine struct {
	Limit      int
	Head, Tail []byte
}

// Error implements the error interface.
func (e *LongLine) Error() string {
	return fmt.Sprintf("acp: message longer than %d bytes", e.Limit)
}

// Ends returns Head and Tail.
func (e *LongLine) Ends() (head, tail []byte) { return e.Head, e.Tail }

// LineReader splits a stream of bytes into lines of bounded length. It is for one goroutine.
type LineReader struct {
	r          io.Reader
	max        int
	buf        []byte
	start, end int  // unread bytes
	scanned    int  // there is no newline in buf[start:scanned]
	smallLines int  // number of small lines in a row
	begun      bool // the first line has been read
	err        error
}

// NewLineReader returns a LineReader that reads lines of up to max bytes from r.
func NewLineReader(r io.Reader, max int) *LineReader {
	return &LineReader{r: r, max: max, buf: make([]byte, readChunk)}
}

// byteOrderMark may precede the first line, as some systems write it before every text.
var byteOrderMark = []byte("\ufeff")

// Next returns the next line that is not blank, without its newline; it is valid until the next call. beforeWait is
// called before each read that this needs, which happens only if there is no whole line. The last line needs no
// newline; but if the input ends within an object, that object is discarded and the error is io.ErrUnexpectedEOF. A
// line over the limit is skipped and reported as *LongLine; any other error, including io.EOF, is final.
func (l *LineReader) Next(beforeWait func()) ([]byte, error) {
	for {
		if !l.begun {
			l.begin(beforeWait)
		}
		if i := bytes.IndexByte(l.buf[l.scanned:l.end], '\n'); i >= 0 {
			line := l.buf[l.start : l.scanned+i]
			l.start = l.scanned + i + 1
			l.scanned = l.start
			if len(line) > l.max {
				return nil, l.tooLong(line)
			}
			if blank(line) {
				continue
			}
			l.smallLines++
			if len(line) > readChunk {
				l.smallLines = 0
			}
			return line, nil
		}
		l.scanned = l.end
		if l.end-l.start > l.max {
			return nil, l.skip(beforeWait)
		}
		if l.err != nil {
			line := l.buf[l.start:l.end]
			l.start = l.end
			switch {
			case blank(line):
				return nil, l.err
			case cut(line):
				if l.err == io.EOF {
					l.err = fmt.Errorf("%w within a message", io.ErrUnexpectedEOF)
				}
				return nil, l.err
			}
			return line, nil
		}
		l.fill(beforeWait)
	}
}

// begin skips a byte order mark.
func (l *LineReader) begin(beforeWait func()) {
	for l.end < len(byteOrderMark) && bytes.HasPrefix(byteOrderMark, l.buf[:l.end]) && l.err == nil {
		l.fill(beforeWait)
	}
	l.begun = true
	if bytes.HasPrefix(l.buf[:l.end], byteOrderMark) {
		l.start = len(byteOrderMark)
		l.scanned = l.start
	}
}

func (l *LineReader) tooLong(line []byte) *LongLine {
	err := &LongLine{Limit: l.max, Head: bytes.Clone(line[:min(len(line), keepEnds)])}
	err.end(line)
	return err
}

// end records the end of the message so far.
func (e *LongLine) end(more []byte) {
	e.Tail = append(e.Tail, more[max(0, len(more)-keepEnds):]...)
	e.Tail = e.Tail[max(0, len(e.Tail)-keepEnds):]
}

// skip drops input up to the end of an overlong line.
func (l *LineReader) skip(beforeWait func()) error {
	err := l.tooLong(l.buf[l.start:l.end])
	for l.err == nil {
		l.start, l.end, l.scanned = 0, 0, 0
		l.fill(beforeWait)
		if i := bytes.IndexByte(l.buf[:l.end], '\n'); i >= 0 {
			err.end(l.buf[:i])
			l.start, l.scanned = i+1, i+1
			return err
		}
		err.end(l.buf[:l.end])
	}
	l.start = l.end
	l.scanned = l.end
	return err
}

// fill reads once, after making room.
func (l *LineReader) fill(beforeWait func()) {
	if l.start == l.end {
		if letGo(l.buf) || len(l.buf) > readChunk && l.smallLines > enoughSmallLines {
			l.buf = make([]byte, readChunk)
		}
		l.start, l.end, l.scanned = 0, 0, 0
	}
	if l.end == len(l.buf) {
		buf := l.buf
		if l.start == 0 || l.end-l.start > len(buf)/2 {
			buf = newBuffer(min(2*len(buf), max(l.max+readChunk, len(buf)+readChunk)))
		}
		n := copy(buf, l.buf[l.start:l.end])
		l.buf, l.start, l.end, l.scanned = buf, 0, n, n
	}
	if beforeWait != nil {
		beforeWait()
	}
	n, err := l.r.Read(l.buf[l.end:])
	l.end += n
	if err != nil {
		l.err = err
	}
}

// cut reports whether a line is the beginning of an object. A line that is wrong in another way is not.
func cut(line []byte) bool {
	line = bytes.TrimLeft(line, " \t\r")
	var v json.RawMessage
	return bytes.HasPrefix(line, []byte("{")) && json.NewDecoder(bytes.NewReader(line)).Decode(&v) == io.ErrUnexpectedEOF
}

// blank reports whether a line contains only white space.
func blank(line []byte) bool {
	return (len(line) == 0 || line[0] <= ' ') && len(bytes.TrimLeft(line, " \t\r")) == 0
}
