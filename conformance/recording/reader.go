package recording

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/conformance"
)

// DefaultMaxLine is the default of ReaderOptions.MaxLine in bytes. It is enough for a message of the maximum length in
// which every other byte is escaped.
const DefaultMaxLine = 2 * rpc.DefaultMaxMessage

// ReaderOptions configures a Reader.
type ReaderOptions struct {
	// MaxLine is the maximum length of a line in bytes. 0 means DefaultMaxLine.
	MaxLine int
	// Hop selects the hop of a conductor's trace to read: the messages between this component ("client", "proxy:0", …),
	// as the client, and the next one. Empty means "client". MCP messages in the trace are skipped.
	Hop string
}

// Reader reads recordings in any of the formats that the package documentation lists. It continues after a bad line. It
// holds one line of the file, and a bounded state to determine the senders of messages.
type Reader struct {
	options ReaderOptions
	in      *bufio.Reader
	number  int    // of the line being read
	buf     []byte // for a line that is longer than the bufio.Reader's buffer
	err     error

	entry      Entry
	pending    []Entry // after entry
	text       []byte  // the Line of an Entry, if it is not part of the file's line
	connection int
	ours       bool // the recording has a header of this package's format, so an end must follow
	ended      bool // the end was read
	base       time.Time
	last       time.Time
	messages   int // of all connections
	unreadable int // the number of lines without a message before the first one
	teller     teller
	conductor  conductor
	decoder    *codec.Decoder
	skipped    []Skipped
}

// Skipped describes lines that a Reader skipped. It does not count bad lines, which are entries with an error.
type Skipped struct {
	// Reason is a reason such as "text without a message".
	Reason string
	// Lines is the number of these lines, and First the number of the first one.
	Lines, First int
}

// String returns a text of the form "3 lines skipped, from line 7: text without a message".
func (s Skipped) String() string {
	lines := "lines"
	if s.Lines == 1 {
		lines = "line"
	}
	return fmt.Sprintf("%d %s skipped, from line %d: %s", s.Lines, lines, s.First, s.Reason)
}

// NewReader returns a Reader. Options may be nil.
func NewReader(from io.Reader, options *ReaderOptions) *Reader {
	r := &Reader{in: bufio.NewReaderSize(from, 64<<10), decoder: codec.NewDecoder(nil), connection: 1,
		options: *cmp.Or(options, &ReaderOptions{})}
	r.options.MaxLine = cmp.Or(max(r.options.MaxLine, 0), DefaultMaxLine)
	if r.options.Hop == "" {
		r.options.Hop = "client"
	}
	return r
}

// Skipped describes the lines that were skipped so far.
func (r *Reader) Skipped() []Skipped { return append([]Skipped(nil), r.skipped...) }

func (r *Reader) skip(reason string) {
	for i := range r.skipped {
		if r.skipped[i].Reason == reason {
			r.skipped[i].Lines++
			return
		}
	}
	r.skipped = append(r.skipped, Skipped{reason, 1, r.number})
}

// Read returns the next entry, which is valid until the next Read. A bad line is an entry with an Err, and reading can
// continue. The error of Read itself is io.EOF at the end of the file, or an *Error if the file cannot be read any
// further.
func (r *Reader) Read() (*Entry, error) {
	for {
		if len(r.pending) > 0 {
			r.entry = r.pending[0]
			r.pending = r.pending[1:]
			return &r.entry, nil
		}
		if r.err != nil {
			return nil, r.err
		}
		if cap(r.buf) > maxKept {
			r.buf = nil
		}
		if cap(r.text) > maxKept {
			r.text = nil
		}
		line, err := r.line()
		switch {
		case errors.Is(err, ErrTooLong):
			r.bad(ErrTooLong, fmt.Sprintf("more than %d bytes", r.options.MaxLine))
		case err == nil, err == io.EOF && len(line) > 0:
			if r.number == 1 && !r.begin(&line) {
				r.err = io.EOF
				continue
			}
			r.take(line, err == io.EOF)
		}
		if err != nil && !errors.Is(err, ErrTooLong) {
			r.finish(err)
		}
	}
}

// bad adds an entry that consists only of an error.
func (r *Reader) bad(problem error, detail string) {
	r.add(Entry{Number: r.number, Err: &Error{r.number, problem, detail}})
}

// add adds an entry.
func (r *Reader) add(e Entry) {
	if e.Number == 0 {
		e.Number = r.number
	}
	e.Connection = r.connection
	if !e.Time.IsZero() && (e.Kind == KindMessage || e.Kind == KindStderr || e.Kind == KindEnd) {
		if e.Time.Before(r.last) && e.Err == nil {
			e.Err = &Error{e.Number, ErrClock, fmt.Sprintf("by %v", r.last.Sub(e.Time))}
		}
		r.last = e.Time
	}
	r.pending = append(r.pending, e)
}

// note sets the error of an entry, unless it has one.
func (r *Reader) note(e *Entry, problem error, detail string) {
	if e.Err == nil {
		e.Err = &Error{r.number, problem, detail}
	}
}

// line returns the next line without its newline. Together with io.EOF, it may return a last line that had no newline.
func (r *Reader) line() ([]byte, error) {
	r.pending = r.pending[:0]
	r.buf = r.buf[:0]
	long := false
	for first := true; ; first = false {
		part, err := r.in.ReadSlice('\n')
		if first && (len(part) > 0 || err == nil) {
			r.number++
		}
		switch {
		case err == nil || err == io.EOF:
			part = bytes.TrimSuffix(part, []byte("\n"))
			if long || len(r.buf)+len(part) > r.options.MaxLine {
				if err == io.EOF {
					r.finish(err)
				}
				return nil, ErrTooLong
			}
			if len(r.buf) == 0 {
				return part, err
			}
			r.buf = append(r.buf, part...)
			return r.buf, err
		case errors.Is(err, bufio.ErrBufferFull):
			if long = long || len(r.buf)+len(part) > r.options.MaxLine; long {
				r.buf = nil
			} else {
				r.buf = append(r.buf, part...)
			}
		default:
			return nil, err
		}
	}
}

// begin checks the first line of the file, and reports whether the file may be text.
func (r *Reader) begin(line *[]byte) bool {
	b := *line
	for _, known := range []struct{ magic, what string }{
		{"\x1f\x8b", "compressed with gzip"},
		{"\x28\xb5\x2f\xfd", "compressed with zstd"},
		{"PK\x03\x04", "a zip archive"},
		{"\xff\xfe", "UTF-16: convert it to UTF-8"},
		{"\xfe\xff", "UTF-16: convert it to UTF-8"},
	} {
		if bytes.HasPrefix(b, []byte(known.magic)) {
			r.bad(ErrBinary, known.what)
			return false
		}
	}
	if bytes.IndexByte(b[:min(len(b), 4096)], 0) >= 0 {
		r.bad(ErrBinary, "contains NUL bytes")
		return false
	}
	*line = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	return true
}

// maxUnreadable is the maximum number of lines to read before the first message.
const maxUnreadable = 100_000

// take reads one line of the file.
func (r *Reader) take(line []byte, last bool) {
	trimmed := bytes.TrimSpace(line)
	if len(trimmed) == 0 {
		return
	}
	r.takeLine(trimmed, last)
	if r.messages == 0 {
		if r.unreadable++; r.unreadable >= maxUnreadable && r.err == nil {
			r.number = 1
			r.bad(ErrUnknown, fmt.Sprintf("%d lines were read", maxUnreadable))
			r.err = io.EOF
		}
	}
}

// finish ends the reading, with io.EOF or because the file cannot be read any further.
func (r *Reader) finish(err error) {
	if r.err != nil {
		return
	}
	if err != io.EOF {
		r.err = &Error{r.number + 1, fmt.Errorf("reading: %w", err), ""}
		return
	}
	r.err = io.EOF
	switch {
	case r.number == 0:
		r.number = 1
		r.bad(ErrEmpty, "")
	case r.ours && !r.ended:
		r.bad(ErrNoEnd, "")
	case r.messages == 0 && !r.ours:
		r.number = 1
		r.bad(ErrUnknown, "")
	}
}

// ReadAll reads the messages of a whole recording into memory, without their errors. The returned error joins all
// problems of the file, each an *Error; the recording then has everything that could be read.
func ReadAll(from io.Reader) (*conformance.Recording, error) {
	all, reader := &conformance.Recording{}, NewReader(from, nil)
	var problems []error
	for {
		entry, err := reader.Read()
		if err != nil {
			if err != io.EOF {
				problems = append(problems, err)
			}
			return all, errors.Join(problems...)
		}
		if entry.Err != nil {
			problems = append(problems, entry.Err)
		}
		if entry.Kind == KindMessage {
			all.Add(entry.Message())
		}
	}
}
