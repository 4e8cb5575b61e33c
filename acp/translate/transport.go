package translate

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/wire"
)

// tick is the time between calls of State.Tick.
const tick = 250 * time.Millisecond

// Transport returns a transport for a program that is at the given side and speaks the given version, 1 or 2, whose
// peer at the other end of t may speak either. A client's version may be 0; see [New]. Options may be nil; if they have
// no Unique, each connection gets a random one.
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
	s := &stream{state: New(t.program, t.version, &o), program: t.program, second: o.Again}
	s.use(inner)
	s.changed = sync.NewCond(&s.mu)
	if o.Host != nil {
		if s.host, err = o.Host.Transport.Connect(ctx); err != nil {
			return nil, errors.Join(err, inner.Close())
		}
		s.running.Go(s.readHost)
		s.running.Go(s.writeHost)
	}
	again, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	s.running.Go(func() { s.read(again) })
	s.running.Go(s.write)
	return s, nil
}

// maxWait is how much waits for the program, in bytes, before the peer's next message is read, and how much waits for
// either side because of its own messages, before the next one of these is taken. Other messages never stop a side: it
// may have to take them to read on.
const maxWait = 1 << 20

// stream is the stream of a program. Until the version is known, and where it is translated, a goroutine reads from the
// peer and another one writes to it, because each message may result in messages in both directions.
type stream struct {
	program Side
	second  rpc.Transport // Options.Again
	host    rpc.Stream    // of Options.Host, or nil
	cancel  context.CancelFunc
	running sync.WaitGroup
	read1   atomic.Bool // reads are direct
	write1  atomic.Bool // writes are direct

	mu      sync.Mutex
	changed *sync.Cond // broadcast at every change of what follows
	inner   rpc.FastStream
	state   *State
	timer   *time.Timer // for the next tick, or nil
	in      []arrived   // messages for the program
	inSize  int         // bytes of those from the peer
	inOwn   int         // bytes of answers to the program's own messages
	out     [][]byte    // messages for the peer
	outSize int         // their bytes, with those that are being written
	outOwn  int         // bytes of answers to the peer's own messages
	waiting int         // bytes of outOwn that are not being written yet
	toHost  [][]byte    // messages for the host
	hostOut int         // their bytes, with those that are being written
	writing bool        // somebody writes to the peer
	reader  bool        // the goroutine that reads has ended: its error is in, or messages pass
	writer  bool        // the goroutine that writes has ended
	passes  bool        // reads and writes become direct when those that wait are done
	err     error       // of writing
	closed  bool
}

// arrived is the result of a Read.
type arrived struct {
	line []byte
	own  bool // an answer to the program's own message
	err  error
}

func (s *stream) use(inner rpc.Stream) {
	s.inner = rpc.Wrap(inner, rpc.Wrapper{}).(rpc.FastStream) // which is also a HalfCloser
}

// translated queues what results from a message of one side. It is called with mu held.
func (s *stream) translated(from Side, messages []Message) {
	for _, m := range messages {
		line, own := m.Line, m.To == from
		switch {
		case m.To == HostSide:
			s.toHost = append(s.toHost, line)
			s.hostOut += len(line)
			continue
		case m.To != s.program:
			s.out = append(s.out, line)
			if s.outSize += len(line); own {
				s.outOwn += len(line)
				s.waiting += len(line)
			}
			continue
		case own:
			s.inOwn += len(line)
		default:
			s.inSize += len(line)
		}
		s.in = append(s.in, arrived{line: line, own: own})
	}
	switch waiting := s.state.Waiting() && !s.closed; {
	case waiting && s.timer == nil:
		s.running.Add(1)
		s.timer = time.AfterFunc(tick, s.tick)
	case !waiting:
		s.stopTimer()
	}
	s.passes = s.state.Passes()
	s.changed.Broadcast()
}

func (s *stream) tick() {
	defer s.running.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = nil
	if !s.closed {
		s.translated(AgentSide, s.state.Tick())
	}
}

func (s *stream) stopTimer() {
	if s.timer != nil && s.timer.Stop() {
		s.running.Done()
	}
	s.timer = nil
}

// read reads from the peer until the connection ends or its messages pass as they are.
func (s *stream) read(ctx context.Context) {
	for done := false; !done; {
		line, err := s.inner.Read()
		dropped, goesOn := wire.AsUnread(err)
		s.mu.Lock()
		peer := s.program.other()
		switch {
		case err == nil:
			s.translated(peer, s.state.Message(peer, line))
		case goesOn && dropped.Response && !dropped.ID.IsNull():
			s.translated(peer, s.state.Message(peer, dropped.Answer()))
		case !goesOn && s.again(ctx):
		default:
			s.in = append(s.in, arrived{err: err})
			s.reader = !goesOn
			s.changed.Broadcast()
		}
		for !s.closed && !s.passes && (s.inSize > maxWait || s.outOwn > maxWait || s.hostOut > maxWait) {
			s.changed.Wait()
		}
		if s.passes || s.closed {
			s.reader = true
			s.changed.Broadcast()
		}
		done = s.reader
		s.mu.Unlock()
	}
}

// again connects a second time if the agent has ended the stream instead of answering initialize.
func (s *stream) again(ctx context.Context) bool {
	if s.second == nil || s.closed || !s.state.canAskAgain() {
		return false
	}
	old := s.inner
	s.mu.Unlock()
	next, err := s.second.Connect(ctx)
	if err == nil {
		_ = old.Close() // what it says is the reason for all this
	}
	s.mu.Lock()
	switch {
	case err != nil:
		return false
	case s.closed:
		_ = next.Close()
		return false
	}
	s.use(next)
	s.out, s.outSize, s.outOwn, s.waiting, s.err = nil, 0, 0, 0, nil
	s.translated(ClientSide, s.state.askAgain())
	return true
}

// write writes to the peer what the program does not write itself.
func (s *stream) write() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.closed && (len(s.out) > 0 || s.writing || !s.passes) {
		if len(s.out) == 0 || s.writing || s.err != nil {
			s.changed.Wait()
		} else {
			s.send()
		}
	}
	s.writer = true
	s.changed.Broadcast()
}

// send writes what waits, with mu held except while it writes.
func (s *stream) send() {
	lines, size, own, inner := s.out, s.outSize, s.waiting, s.inner
	s.out, s.waiting, s.writing = nil, 0, true
	s.mu.Unlock()
	err := inner.WriteLines(append(bytes.Join(lines, []byte("\n")), '\n'))
	s.mu.Lock()
	s.writing = false
	if inner == s.inner {
		s.outSize -= size
		s.outOwn -= own
		if err != nil {
			s.err, s.out, s.outSize, s.outOwn, s.waiting = err, nil, 0, 0, 0
		}
	}
	s.changed.Broadcast()
}

// Unwrap returns the stream of the peer, for rpc.ProcessOutputOf.
func (s *stream) Unwrap() wire.Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inner
}

func (s *stream) Read() ([]byte, error) { return s.ReadLine(nil) }

func (s *stream) ReadLine(beforeWait func()) ([]byte, error) {
	if s.read1.Load() {
		return s.readInner(beforeWait)
	}
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
	switch {
	case len(s.in) > 0:
	case !s.passes: // what the peer still sends is not translated
		s.mu.Unlock()
		return nil, io.ErrClosedPipe
	default:
		s.read1.Store(true)
		s.mu.Unlock()
		return s.readInner(beforeWait)
	}
	first := s.in[0]
	if first.err == nil || !s.reader || len(s.in) > 1 {
		s.in = s.in[1:]
		if first.own {
			s.inOwn -= len(first.line)
		} else {
			s.inSize -= len(first.line)
		}
	} // otherwise the error is final
	s.changed.Broadcast()
	s.mu.Unlock()
	return first.line, first.err
}

func (s *stream) readInner(beforeWait func()) ([]byte, error) {
	if beforeWait == nil {
		return s.inner.Read()
	}
	return s.inner.ReadLine(beforeWait)
}

// direct reports whether the program's messages pass as they are. Once they do, it waits for those before.
func (s *stream) direct() bool {
	if s.write1.Load() {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.passes && !s.writer && s.err == nil {
		s.changed.Wait()
	}
	if s.passes && s.err == nil {
		s.write1.Store(true)
	}
	return s.write1.Load()
}

func (s *stream) Write(message []byte) error {
	if s.direct() {
		return s.inner.Write(message)
	}
	return s.take(message)
}

func (s *stream) WriteLines(lines []byte) error {
	if s.direct() {
		return s.inner.WriteLines(lines)
	}
	return s.take(lines)
}

// take translates messages of the program, and waits until what results has been written.
func (s *stream) take(lines []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for line := range bytes.Lines(lines) {
		for (s.inOwn > maxWait || s.hostOut > maxWait) && s.err == nil && !s.closed {
			s.changed.Wait()
		}
		if s.err == nil && !s.closed {
			s.translated(s.program, s.state.Message(s.program, bytes.TrimSuffix(line, []byte("\n"))))
		}
	}
	for s.outSize > 0 && s.err == nil && !s.closed {
		if len(s.out) > 0 && !s.writing {
			s.send()
		} else {
			s.changed.Wait()
		}
	}
	if s.second != nil && s.state.canAskAgain() {
		return nil // the goroutine that reads sees to it
	} else if s.closed && s.err == nil {
		return io.ErrClosedPipe
	}
	return s.err
}

// CloseWrite ends the writing side when all that waits has been written.
func (s *stream) CloseWrite() error {
	s.mu.Lock()
	for s.outSize > 0 && s.err == nil && !s.closed {
		s.changed.Wait()
	}
	inner := s.inner
	s.mu.Unlock()
	return inner.(rpc.HalfCloser).CloseWrite()
}

func (s *stream) Close() error {
	s.mu.Lock()
	s.closed = true
	s.stopTimer()
	inner := s.inner
	s.changed.Broadcast()
	s.mu.Unlock()
	s.cancel()
	var hostErr error
	if s.host != nil {
		s.running.Go(func() { hostErr = s.host.Close() })
	}
	err := inner.Close()
	s.running.Wait()
	return errors.Join(err, hostErr)
}

// readHost reads from the host until it ends. What it sends for a side that does not read waits.
func (s *stream) readHost() {
	for {
		line, err := s.host.Read()
		dropped, goesOn := wire.AsUnread(err)
		s.mu.Lock()
		switch {
		case goesOn && dropped.ID.IsNull():
		case goesOn && dropped.Response:
			s.translated(HostSide, s.state.Message(HostSide, dropped.Answer()))
		case goesOn:
			s.translated(HostSide, []Message{{HostSide, dropped.Answer()}})
		case err != nil:
			s.translated(HostSide, s.state.hostEnded())
			s.mu.Unlock()
			return
		default:
			s.translated(HostSide, s.state.Message(HostSide, line))
		}
		for !s.closed && (s.inSize > maxWait || s.outSize > maxWait) {
			s.changed.Wait()
		}
		s.mu.Unlock()
	}
}

// writeHost writes to the host until the stream is closed.
func (s *stream) writeHost() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.closed {
		if len(s.toHost) == 0 {
			s.changed.Wait()
			continue
		}
		line := s.toHost[0]
		s.toHost = s.toHost[1:]
		s.mu.Unlock()
		_ = s.host.Write(line) // if it fails, so does the next Read
		s.mu.Lock()
		s.hostOut -= len(line)
		s.changed.Broadcast()
	}
}
