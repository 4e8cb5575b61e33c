// This file owns what a connection runs on: the Transport and Stream interfaces, the errors that a
// Stream may return, and the in-memory Pipe.

package rpc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/acpgo/sdk/internal/wire"
)

// A Transport knows how to reach a peer. Stdio, Command and Pipe make the ones of this package;
// anything that can carry whole messages both ways is another (a WebSocket, say, or a wrapper that
// looks at the messages of an inner Transport).
type Transport interface {
	// Connect opens the stream. ctx bounds opening it and nothing afterwards. Connect is called once
	// for each connection; whether a second call gives a second, independent stream or an error is
	// the transport's to say.
	Connect(ctx context.Context) (Stream, error)
}

// A Stream carries whole JSON-RPC messages. One goroutine calls Read, one at a time calls Write, and
// any goroutine may call Close.
type Stream interface {
	// Read returns the next message without its newline. The slice is valid until the next Read.
	// io.EOF, possibly wrapped, says that the peer has ended the stream; a *TooLongError says that
	// one message was thrown away and the next Read goes on behind it; any other error is final.
	Read() ([]byte, error)

	// Write sends one or more whole messages, each ended by a newline. It does not keep lines.
	Write(lines []byte) error

	// Close ends the stream in both directions, unblocks Read and Write, and releases what the
	// stream holds (for a subprocess: waits for it, by force in the end). Further calls do nothing.
	Close() error
}

// A HalfCloser is a Stream that can end its writing alone, so that the peer sees the end of its input
// while what it still sends is read. The streams of Stdio, Command, IO and Pipe are; a wrapper of a
// Stream should pass the method on.
type HalfCloser interface {
	// CloseWrite ends the writing side. Further calls do nothing; writing afterwards is an error.
	CloseWrite() error
}

// TooLongError is what a Stream's Read returns for a message over its limit. The message was skipped
// without being held in memory, and the stream goes on with the next one.
type TooLongError = wire.TooLongError

// DefaultMaxMessage is the longest message, in bytes, that Stdio, Command and IO streams accept
// unless told otherwise.
const DefaultMaxMessage = 64 << 20

// IO returns a Transport over one reader and one writer, one message a line: the framing of ACP's
// stdio transport on anything else (a socket, an SSH channel). Closing the stream closes r and w.
// Messages longer than maxMessage bytes are refused; 0 means DefaultMaxMessage. It connects once.
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

// Pipe returns the two ends of an in-memory connection, for tests and for agents that live in the
// client's process. Each end connects once. Messages are handed over synchronously: a Write returns
// when the other end has read everything.
func Pipe() (Transport, Transport) {
	r1, w1 := io.Pipe()
	r2, w2 := io.Pipe()
	return IO(r1, w2, 0), IO(r2, w1, 0)
}

// once lets a transport be connected a single time.
type once struct{ used atomic.Bool }

func (o *once) use() error {
	if o.used.Swap(true) {
		return errConnected
	}
	return nil
}

// lineStream frames messages by newlines over a reader and a writer. It is a HalfCloser.
type lineStream struct {
	lines      *wire.LineReader
	w          io.Writer
	closeWrite func() error // safe to call again
	close      func() error // safe to call again
}

// newLineStream frames r and w. A nil end closes both.
func newLineStream(r io.ReadCloser, w io.WriteCloser, maxMessage int, end func() error) *lineStream {
	if maxMessage <= 0 {
		maxMessage = DefaultMaxMessage
	}
	closeWrite := sync.OnceValue(w.Close)
	if end == nil {
		end = func() error { return errors.Join(closeWrite(), r.Close()) }
	}
	return &lineStream{
		lines:      wire.NewLineReader(r, maxMessage),
		w:          w,
		closeWrite: closeWrite,
		close:      sync.OnceValue(end),
	}
}

func (s *lineStream) Read() ([]byte, error) { return s.lines.Next() }

// BeforeWait has f called when Read has no whole message and may have to wait for one.
func (s *lineStream) BeforeWait(f func()) { s.lines.BeforeWait = f }

func (s *lineStream) Write(lines []byte) error {
	_, err := s.w.Write(lines)
	return err
}

func (s *lineStream) CloseWrite() error { return s.closeWrite() }

func (s *lineStream) Close() error { return s.close() }

// EachLine calls f with every message of a Write's argument, without its newline. It is for wrappers
// of a Stream that look at single messages; it stops at the first error.
func EachLine(lines []byte, f func(message []byte) error) error {
	for line := range bytes.Lines(lines) {
		if err := f(bytes.TrimSuffix(line, []byte{'\n'})); err != nil {
			return err
		}
	}
	return nil
}
