package wire

import (
	"bytes"
	"errors"

	"github.com/acpgo/sdk/internal/fastpath"
)

// Stream carries whole messages; see rpc.Stream, which has the same methods.
type Stream interface {
	Read() ([]byte, error)
	Write(message []byte) error
	Close() error
}

// FastStream is a Stream with more methods; see rpc.FastStream, which has the same methods.
type FastStream interface {
	Stream
	ReadLine(beforeWait func()) ([]byte, error)
	WriteLines(lines []byte) error
}

// halfCloser is rpc.HalfCloser.
type halfCloser interface{ CloseWrite() error }

// tooLong is a message that a stream has skipped; see rpc.TooLongError.
type tooLong interface {
	error
	Ends() (head, tail []byte)
}

// callLost reports that a stream knows that a call will not be answered; see rpc.CallLostError.
type callLost interface {
	error
	LostCall() (id ID, reason error)
}

// fast returns the stream as a FastStream: the stream itself if it is one, or a wrapper.
func fast(s Stream) FastStream {
	if f, ok := s.(FastStream); ok && fastpath.Enabled {
		return f
	}
	return slow{s}
}

// slow is a Stream without optional methods.
type slow struct{ Stream }

// ReadLine calls beforeWait before every Read, since each may block.
func (s slow) ReadLine(beforeWait func()) ([]byte, error) {
	beforeWait()
	return s.Read()
}

func (s slow) WriteLines(lines []byte) error {
	for line := range bytes.Lines(lines) {
		if err := s.Write(bytes.TrimSuffix(line, []byte{'\n'})); err != nil {
			return err
		}
	}
	return nil
}

// Wrapper defines how a wrapped stream differs; see rpc.Wrapper, which has the same fields.
type Wrapper struct {
	Read       func(next func() ([]byte, error), beforeWait func()) ([]byte, error)
	Write      func(message []byte) ([]byte, error)
	CloseWrite func() error
	Close      func() error
}

// Wrap returns a FastStream and HalfCloser around inner; see rpc.Wrap.
func Wrap(inner Stream, w Wrapper) FastStream {
	s := &wrapped{stream: inner, inner: fast(inner), w: w}
	s.next = func() ([]byte, error) { return s.inner.ReadLine(s.beforeWait) }
	return s
}

type wrapped struct {
	stream Stream // the original stream
	inner  FastStream
	w      Wrapper

	// Owned by the reader.
	next       func() ([]byte, error)
	beforeWait func()

	made []byte // the output of Wrapper.Write, if that changes the lines; owned by the writer
}

// Unwrap returns the stream inside.
func (s *wrapped) Unwrap() Stream { return s.stream }

func (s *wrapped) Read() ([]byte, error) { return s.ReadLine(func() {}) }

func (s *wrapped) ReadLine(beforeWait func()) ([]byte, error) {
	s.beforeWait = beforeWait
	if s.w.Read != nil {
		return s.w.Read(s.next, beforeWait)
	}
	return s.next()
}

func (s *wrapped) Write(message []byte) error {
	if s.w.Write != nil {
		var err error
		if message, err = s.w.Write(message); err != nil || len(message) == 0 {
			return err
		}
	}
	return s.inner.Write(message)
}

func (s *wrapped) WriteLines(lines []byte) error {
	out, refused := s.pass(lines)
	if len(out) > 0 {
		if err := s.inner.WriteLines(out); err != nil {
			return err
		}
	}
	return refused
}

// pass passes each message to Wrapper.Write, and returns the lines to be sent: lines itself if nothing has changed, and
// otherwise s.made. If a message is refused, these are the ones before it.
func (s *wrapped) pass(lines []byte) (out []byte, refused error) {
	if s.w.Write == nil {
		return lines, nil
	}
	if cap(s.made) > bigBuffer {
		s.made = nil
	}
	changed := false
	for begin := 0; begin < len(lines); {
		end := begin + bytes.IndexByte(lines[begin:], '\n')
		message := lines[begin:end:end]
		got, err := s.w.Write(message)
		if err != nil {
			lines, refused = lines[:begin], err
			break
		}
		if same := len(got) == len(message) && len(got) > 0 && &got[0] == &message[0]; !same && !changed {
			s.made, changed = append(s.made[:0], lines[:begin]...), true
		}
		if changed && len(got) > 0 {
			s.made = append(AppendLine(s.made, got), '\n')
		}
		begin = end + 1
	}
	if changed {
		return s.made, refused
	}
	return lines, refused
}

// AppendLine appends a message that must be one line: a newline, which JSON has only between tokens, becomes a space.
func AppendLine(dst, message []byte) []byte {
	n := len(dst)
	dst = append(dst, message...)
	ReplaceAll(dst[n:], '\n', ' ')
	return dst
}

// ReplaceAll replaces a byte in place.
func ReplaceAll(text []byte, old, new byte) {
	for {
		i := bytes.IndexByte(text, old)
		if i < 0 {
			return
		}
		text[i] = new
		text = text[i+1:]
	}
}

func (s *wrapped) CloseWrite() error {
	if s.w.CloseWrite != nil {
		return s.w.CloseWrite()
	}
	if h, ok := s.stream.(halfCloser); ok {
		return h.CloseWrite()
	}
	return errors.ErrUnsupported
}

func (s *wrapped) Close() error {
	if s.w.Close != nil {
		return s.w.Close()
	}
	return s.inner.Close()
}
