package translate

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/wire"
)

// acceptTime is how long the answer to a prompt is held for an agent of version 1 that shows no sign of it.
const acceptTime = 500 * time.Millisecond

// Transport returns a transport for a program that is at the given side and speaks the given version, 1 or 2, whose peer
// at the other end of t may speak either. The version of a client may be 0, as in New: such a transport is for programs
// that pass on the messages of a client of any version. Options may be nil; if they have no Unique, each connection gets a random one.
//
// Once both sides have agreed on the program's version, messages pass as they are, without a copy. Otherwise two
// goroutines per connection translate; Close waits for them.
func Transport(t rpc.Transport, program Side, version int, options *Options) rpc.Transport {
	return transport{t, program, version, options}
}

// Agent returns a transport for an agent that is written in version 1, whose clients may speak either version.
func Agent(t rpc.Transport) rpc.Transport { return Transport(t, AgentSide, 1, nil) }

// Client returns a transport for a client that is written in version 1. It asks for version 2 first, and again for
// version 1 if the agent refuses that.
func Client(t rpc.Transport) rpc.Transport { return Transport(t, ClientSide, 1, nil) }

type transport struct {
	rpc.Transport
	program Side
	version int
	options *Options
}

func (t transport) Connect(ctx context.Context) (rpc.Stream, error) {
	inner, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	o := Options{}
	if t.options != nil {
		o = *t.options
	}
	if o.Unique == "" {
		o.Unique = rand.Text()
	}
	s := &stream{inner: rpc.Wrap(inner, rpc.Wrapper{}).(rpc.FastStream), state: New(t.program, t.version, &o), program: t.program}
	s.changed = sync.NewCond(&s.mu)
	s.running.Go(s.read)
	s.running.Go(s.write)
	return s, nil
}

// Bounds on what waits in a stream, in bytes. A side that reads slowly stops the other one.
const (
	maxIn  = 1 << 20
	maxOut = 16 << 20 // answers of the translation's own, mostly: the program waits for each of its messages
)

// stream is the stream of a program. Until the version is known, and where it is translated, a goroutine reads from the
// peer and another one writes to it, because each message may result in messages in both directions.
type stream struct {
	inner   rpc.FastStream
	program Side
	running sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond // broadcast at every change of what follows
	state   *State
	timer   *time.Timer // waits to accept prompts, or nil
	in      []arrived   // messages for the program
	inSize  int
	out     [][]byte // messages for the peer
	outSize int
	reader  bool  // the goroutine that reads has ended: its error is in, or messages pass
	writer  bool  // the goroutine that writes has ended
	passes  bool  // and reads and writes are direct
	err     error // of writing
	closed  bool
}

// arrived is the result of a Read.
type arrived struct {
	line []byte
	err  error
}

// translated queues what results from a message. It is called with mu held.
func (s *stream) translated(messages []Message) {
	for _, m := range messages {
		if line := bytes.Clone(m.Line); m.To == s.program {
			s.in = append(s.in, arrived{line: line})
			s.inSize += len(line)
		} else {
			s.out = append(s.out, line)
			s.outSize += len(line)
		}
	}
	switch waiting := s.state.Waiting() && !s.closed; {
	case waiting && s.timer == nil:
		s.timer = time.AfterFunc(acceptTime, s.accept)
	case !waiting && s.timer != nil:
		s.timer.Stop()
		s.timer = nil
	}
	s.passes = s.state.Passes()
	s.changed.Broadcast()
}

func (s *stream) accept() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = nil
	s.translated(s.state.Accept())
}

// read reads from the peer until the connection ends or its messages pass as they are.
func (s *stream) read() {
	for {
		line, err := s.inner.Read()
		lost, isLost := errors.AsType[*rpc.CallLostError](err)
		long, isLong := errors.AsType[*rpc.TooLongError](err)
		s.mu.Lock()
		peer := s.program.other()
		switch {
		case err == nil:
			s.translated(s.state.Message(peer, line))
		case isLost:
			s.translated(s.state.Message(peer, lost.Response()))
		case isLong && s.lost(long):
		default:
			s.in = append(s.in, arrived{err: err})
			s.reader = !isLong
			s.changed.Broadcast()
		}
		for !s.closed && !s.passes && (s.inSize > maxIn || s.outSize > maxOut) {
			s.changed.Wait()
		}
		if s.passes || s.closed {
			s.reader = true
			s.changed.Broadcast()
		}
		done := s.reader
		s.mu.Unlock()
		if done {
			return
		}
	}
}

// lost fails the call whose answer is too long.
func (s *stream) lost(long *rpc.TooLongError) bool {
	id, response, known := long.ID()
	if !known || !response {
		return false
	}
	s.translated(s.state.Message(s.program.other(), (&rpc.CallLostError{ID: id, Err: long}).Response()))
	return true
}

// write writes to the peer.
func (s *stream) write() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for len(s.out) == 0 && !s.passes && !s.closed {
			s.changed.Wait()
		}
		if len(s.out) == 0 || s.closed {
			s.writer = true
			s.changed.Broadcast()
			return
		}
		lines := s.out
		s.out = nil
		s.mu.Unlock()
		err := s.inner.WriteLines(append(bytes.Join(lines, []byte("\n")), '\n'))
		s.mu.Lock()
		for _, line := range lines {
			s.outSize -= len(line)
		}
		if err != nil {
			s.err, s.writer, s.out, s.outSize = err, true, nil, 0
		}
		s.changed.Broadcast()
		if err != nil {
			return
		}
	}
}

// Unwrap returns the stream of the peer, for rpc.ProcessOutputOf.
func (s *stream) Unwrap() wire.Stream { return s.inner }

func (s *stream) Read() ([]byte, error) { return s.ReadLine(nil) }

func (s *stream) ReadLine(beforeWait func()) ([]byte, error) {
	s.mu.Lock()
	for waited := false; len(s.in) == 0 && !s.reader; {
		if !waited && beforeWait != nil {
			waited = true
			s.mu.Unlock()
			beforeWait()
			s.mu.Lock()
			continue
		}
		s.changed.Wait()
	}
	if len(s.in) == 0 {
		s.mu.Unlock()
		if beforeWait == nil {
			return s.inner.Read()
		}
		return s.inner.ReadLine(beforeWait)
	}
	first := s.in[0]
	if first.err == nil || !s.reader || s.passes {
		s.in = s.in[1:]
		s.inSize -= len(first.line)
	} // otherwise the error is final
	s.changed.Broadcast()
	s.mu.Unlock()
	return first.line, first.err
}

func (s *stream) Write(message []byte) error {
	if s.direct() {
		return s.inner.Write(message)
	}
	return s.take(message)
}

// direct reports whether messages pass as they are, when those that waited have been written.
func (s *stream) direct() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.passes && !s.writer {
		s.changed.Wait()
	}
	return s.passes && s.err == nil
}

// take translates a message of the program, and waits until what results has been written.
func (s *stream) take(message []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && !s.closed {
		s.translated(s.state.Message(s.program, message))
	}
	for s.outSize > 0 && s.err == nil && !s.closed {
		s.changed.Wait()
	}
	if s.closed && s.err == nil {
		return io.ErrClosedPipe
	}
	return s.err
}

func (s *stream) WriteLines(lines []byte) error {
	if s.direct() {
		return s.inner.WriteLines(lines)
	}
	for line := range bytes.Lines(lines) {
		if err := s.Write(bytes.TrimSuffix(line, []byte("\n"))); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) TryWriteLines(lines []byte) bool {
	s.mu.Lock()
	direct := s.passes && s.writer && s.err == nil
	s.mu.Unlock()
	return direct && s.inner.TryWriteLines(lines)
}

// CloseWrite ends the writing side when all that waits has been written.
func (s *stream) CloseWrite() error {
	s.mu.Lock()
	for s.outSize > 0 && s.err == nil && !s.closed {
		s.changed.Wait()
	}
	s.mu.Unlock()
	return s.inner.(rpc.HalfCloser).CloseWrite()
}

func (s *stream) Close() error {
	s.mu.Lock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.changed.Broadcast()
	s.mu.Unlock()
	err := s.inner.Close()
	s.running.Wait()
	return err
}
