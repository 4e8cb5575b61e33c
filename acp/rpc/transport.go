package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acpgo/sdk/internal/wire"
)

// A Transport opens the stream to a peer. [Stdio], [Command], [IO] and [Pipe] return one. Other implementations are
// possible: anything that carries whole messages in both directions, such as a WebSocket, or a wrapper that inspects
// the messages of another Transport.
type Transport interface {
	// Connect opens the stream. ctx is used only while it is opened. Connect is called once for each
	// connection. A second call returns a second, independent stream, or an error if the transport has only one.
	Connect(ctx context.Context) (Stream, error)
}

// A Stream carries whole JSON-RPC messages. One goroutine at a time reads, one at a time writes, and any goroutine may
// call Close. A Stream may also be a [HalfCloser] and a [FastStream]. Use [Wrap] to wrap a stream around another one:
// it keeps these methods.
type Stream interface {
	// Read returns the next message without its newline. The slice is valid until the next Read. io.EOF, possibly
	// wrapped, reports that the peer has ended the stream. A *TooLongError reports that one message was dropped, and a
	// *CallLostError that one call will not be answered; the next Read returns the message after that. Any other error
	// is final.
	Read() ([]byte, error)

	// Write sends one message, without a newline at its end. It may block until the peer takes the message. It must not
	// modify or retain message. An error is final: nothing more can be sent.
	Write(message []byte) error

	// Close ends the stream in both directions, unblocks Read and Write, and releases the stream's resources. The
	// stream of a subprocess waits for the process, and kills it if it does not end. Later calls are no-ops.
	Close() error
}

// A HalfCloser is a Stream that can end its writing side alone: the peer sees the end of its input, and messages that
// the peer still sends are read. The streams of Stdio, Command, IO and Pipe are HalfClosers.
type HalfCloser interface {
	// CloseWrite ends the writing side. Later calls are no-ops; writing afterwards is an error. It
	// returns errors.ErrUnsupported if the stream cannot end its writing side alone.
	CloseWrite() error
}

// A FastStream is a Stream that carries many small messages with less work. A connection uses these methods, if the
// stream has them, instead of Read and Write. The streams of this package do. The same rules apply: one goroutine at a
// time reads, one at a time writes.
//
// A line is a message and the newline after it. A message contains no newline.
type FastStream interface {
	Stream

	// ReadLine is like Read, but calls beforeWait each time before it may have to wait for the peer. It does not call
	// it while it has a whole message.
	ReadLine(beforeWait func()) ([]byte, error)

	// WriteLines is like Write, but for one or more lines, which should be sent in one write.
	WriteLines(lines []byte) error
}

// Wrap returns a stream that reads and writes through inner, changed as w says. It is a FastStream and a HalfCloser,
// and as fast as inner. Each message passes through the functions of w, whichever method reads or writes it.
func Wrap(inner Stream, w Wrapper) Stream { return wire.Wrap(inner, wire.Wrapper(w)) }

// A Wrapper defines how a stream made by [Wrap] differs from the inner stream. A nil function changes nothing. Read is
// called by the goroutine that reads, Write by the one that writes.
type Wrapper struct {
	// Read reads the next message, usually by calling next, which reads it from the inner stream. To change a message
	// it returns another one, valid until the next call; to drop one it calls next again. Before it waits for anything
	// other than next, it must call beforeWait.
	Read func(next func() ([]byte, error), beforeWait func()) ([]byte, error)

	// Write receives each message, without newline, before it is sent, and returns the message to send instead, usually
	// message itself. An empty result is not sent. An error ends the writing: the messages before this one are sent,
	// and then the stream's method returns the error. The result must be valid until the next call; message must be
	// neither changed nor kept.
	Write func(message []byte) ([]byte, error)

	// CloseWrite is called instead of the inner stream's CloseWrite.
	CloseWrite func() error

	// Close is called instead of the inner stream's Close.
	Close func() error
}

// TooLongError is what a Stream's Read returns for a message over its limit. The message was skipped without being held
// in memory, and the stream continues with the next one. The connection looks for the message's id in Head and Tail, to
// answer the request or to end the call.
type TooLongError struct {
	// Limit is the longest message accepted, in bytes.
	Limit int
	// Head and Tail are the beginning and the end of the message, at most 4 KiB each. Later Reads do not change them.
	Head, Tail []byte
}

// Error implements the error interface.
func (e *TooLongError) Error() string {
	return fmt.Sprintf("acp: message longer than %d bytes", e.Limit)
}

// Ends returns Head and Tail. A connection recognises the error by this method.
func (e *TooLongError) Ends() (head, tail []byte) { return e.Head, e.Tail }

// ID returns the id of the message if Head and Tail show it, and whether the message is a response. Code that forwards
// messages can use it to find the call that waits for this one. A notification has no id, and the ids of some requests
// are not found.
func (e *TooLongError) ID() (id ID, response, known bool) { return wire.RecoverID(e.Head, e.Tail) }

// CallLostError is what a stream's Read returns for a request that was written to it, if the stream knows that no
// answer will arrive, for example because a server has refused the request. That call fails with Err, and the stream
// stays usable.
type CallLostError struct {
	// ID is the id of the request.
	ID ID
	// Err is the reason.
	Err error
}

// Error returns the reason.
func (e *CallLostError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *CallLostError) Unwrap() error { return e.Err }

// LostCall returns the id and the reason. A connection recognises the error by this method.
func (e *CallLostError) LostCall() (id ID, reason error) { return e.ID, e.Err }

// Response returns the equivalent message, for code that forwards messages: an internal error that repeats the reason.
func (e *CallLostError) Response() []byte {
	return wire.ErrorLine(e.ID, &wire.Error{Code: int(ErrInternal), Message: e.Err.Error()})
}

// DefaultMaxMessage is the longest message, in bytes, that Stdio, Command and IO streams accept by default.
const DefaultMaxMessage = 64 << 20

// IO returns a Transport over one reader and one writer, with one message per line: the framing of ACP's stdio
// transport over something else, such as a socket or an SSH channel. Closing the stream closes r and w. Messages longer
// than maxMessage bytes are refused; 0 means DefaultMaxMessage. It connects once.
//
// r and w may be one value, a net.Conn for example, which is then closed once. If w has a method CloseWrite, like a
// socket's, it is called to end the writing side: the peer reads all that was sent, and then the end of its input.
// Close then waits, for up to one second, until the peer has ended its side too, because closing a socket at once, with
// input unread, can destroy data that is still on its way to the peer.
func IO(r io.ReadCloser, w io.WriteCloser, maxMessage int) Transport {
	return &ioTransport{r: r, w: w, maxMessage: maxMessage}
}

type ioTransport struct {
	r          io.ReadCloser
	w          io.WriteCloser
	maxMessage int
	once       once
}

func (t *ioTransport) Connect(context.Context) (Stream, error) {
	if err := t.once.use(); err != nil {
		return nil, err
	}
	return newLineStream(t.r, t.w, t.maxMessage, nil), nil
}

// Pipe returns the two ends of an in-memory connection, for tests and for agents that live in the client's process.
// Each end connects once. Messages are handed over synchronously: a Write returns when the other end has read all of
// it.
func Pipe() (Transport, Transport) {
	r1, w1 := io.Pipe()
	r2, w2 := io.Pipe()
	return IO(r1, w2, 0), IO(r2, w1, 0)
}

// once ensures that a transport is connected only once.
type once struct{ used atomic.Bool }

func (o *once) use() error {
	if o.used.Swap(true) {
		return errConnected
	}
	return nil
}

// lineStream frames messages by newlines over a reader and a writer. It is a HalfCloser and a FastStream.
type lineStream struct {
	lines      *wire.LineReader
	w          io.Writer
	line       []byte       // buffer of Write
	closeWrite func() error // safe to call again
	close      func() error // safe to call again
}

// newLineStream frames messages over r and w. A nil end means that Close just closes both.
func newLineStream(r io.ReadCloser, w io.WriteCloser, maxMessage int, end func() error) *lineStream {
	maxMessage = cmp.Or(max(maxMessage, 0), DefaultMaxMessage)
	closeWrite := sync.OnceValue(w.Close)
	switch half, ok := w.(HalfCloser); {
	case ok:
		closeWrite = sync.OnceValue(half.CloseWrite)
		if end == nil {
			end = func() error { return closeSocket(r, w, closeWrite) }
		}
	case same(r, w):
		closeWrite = func() error { return errors.ErrUnsupported }
		if end == nil {
			end = r.Close
		}
	case end == nil:
		end = func() error { return errors.Join(closeWrite(), r.Close()) }
	}
	return &lineStream{
		lines:      wire.NewLineReader(r, maxMessage),
		w:          w,
		closeWrite: closeWrite,
		close:      sync.OnceValue(end),
	}
}

// closeSocket ends the writing side, lets the peer end its own, and closes r and w.
func closeSocket(r io.ReadCloser, w io.WriteCloser, closeWrite func() error) error {
	if d, ok := w.(interface{ SetWriteDeadline(time.Time) error }); ok {
		// In case a Write is blocked because the peer does not read. If the deadline cannot be set, closing fails too.
		_ = d.SetWriteDeadline(time.Now().Add(lingerTime))
	}
	// If it fails, there is nothing to end: the peer has closed the connection, or reset it.
	if closeWrite() == nil {
		if d, ok := r.(interface{ SetReadDeadline(time.Time) error }); ok &&
			d.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
			// The stream's Read may run concurrently; its remaining data is not needed, and it does not matter which of
			// the two sees the end.
			_, _ = io.Copy(io.Discard, r)
		}
	}
	err := r.Close()
	if !same(r, w) {
		err = errors.Join(err, w.Close())
	}
	return err
}

// same reports whether r and w are the same value.
func same(r io.Reader, w io.Writer) bool {
	return reflect.ValueOf(r).Comparable() && any(r) == any(w)
}

func (s *lineStream) Read() ([]byte, error) { return s.ReadLine(nil) }

func (s *lineStream) ReadLine(beforeWait func()) ([]byte, error) {
	line, err := s.lines.Next(beforeWait)
	if err != nil {
		if long, ok := errors.AsType[*wire.LongLine](err); ok {
			err = (*TooLongError)(long)
		}
	}
	return line, err
}

// maxLineKept is the largest buffer, in bytes, that Write keeps for the next message.
const maxLineKept = 64 << 10

func (s *lineStream) Write(message []byte) error {
	s.line = append(wire.AppendLine(s.line[:0], message), '\n')
	err := s.WriteLines(s.line)
	if cap(s.line) > maxLineKept {
		s.line = nil
	}
	return err
}

func (s *lineStream) WriteLines(lines []byte) error {
	_, err := s.w.Write(lines)
	return err
}

func (s *lineStream) CloseWrite() error { return s.closeWrite() }

func (s *lineStream) Close() error { return s.close() }
