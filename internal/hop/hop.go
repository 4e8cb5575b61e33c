// Package hop has what programs that pass messages on have in common. An [End] is for those between two streams,
// which write where they read: proxies, acp serve and acp connect. Conductors, which have many streams, use only the
// envelopes of the messages from and to successors. The page docs/design.md says why others have less in common.
package hop

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/acpgo/sdk/internal/wire"
)

// Batch is how much is sent at once, in bytes, if messages arrive without a pause.
const Batch = 64 << 10

// An End is one of the two streams that messages pass between. Its methods, but for Pass, may be called from several
// goroutines.
type End struct {
	Stream wire.Stream
	fast   wire.FastStream

	// rests reports that the reader of the other end waits. When it does not, it will, and before that it sends all lines.
	rests atomic.Bool

	mu    sync.Mutex
	lines []byte // not sent yet
	err   error  // of sending
}

// NewEnd returns the end of a stream, which must no longer be used by others.
func NewEnd(s wire.Stream) *End {
	e := &End{Stream: s, fast: wire.Fast(s)}
	e.rests.Store(true)
	return e
}

// Pass reads messages until the stream ends, or pass fails, and calls pass for each. Its lines are valid until pass
// returns. Before Pass waits, it sends what other has not sent yet.
//
// A request that the stream has dropped is answered with an error; an error takes the place of a dropped answer. If it
// is not known which, Pass calls lost. It returns true with an error of reading, and false with one of pass.
func (e *End) Pass(other *End, lost func(wire.Unread), pass func(line []byte) error) (ended bool, err error) {
	rest := other.Rest
	defer rest()
	for {
		line, err := e.fast.ReadLine(rest)
		dropped, goesOn := wire.AsUnread(err)
		switch {
		case goesOn && dropped.ID.IsNull():
			lost(dropped)
			continue
		case goesOn && !dropped.Response:
			_ = e.Send(dropped.Answer()) // if it fails, the stream has ended, which the next read reports
			continue
		case goesOn:
			line = dropped.Answer()
		case err != nil:
			return true, err
		}
		other.Resume()
		if err := pass(line); err != nil {
			return false, err
		}
	}
}

// Send sends a message now, or together with what the reader of the other end passes on before it waits.
func (e *End) Send(line []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lines = append(wire.AppendLine(e.lines, line), '\n')
	return e.added()
}

// SendFunc sends the message that add appends. Only one add of an end is called at a time.
func (e *End) SendFunc(add func(dst []byte) []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lines = append(add(e.lines), '\n')
	return e.added()
}

// added sends the lines unless more will follow soon. The caller holds e.mu.
func (e *End) added() error {
	if len(e.lines) >= Batch || e.rests.Load() {
		return e.write()
	}
	return e.err
}

// Rest sends what is not sent yet, before the reader of the other end waits. The next Send reports its error.
func (e *End) Rest() {
	e.rests.Store(true)
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.lines) > 0 {
		_ = e.write()
	}
}

// Resume says that the reader of the other end no longer waits.
func (e *End) Resume() { e.rests.Store(false) }

// Err returns why nothing can be sent any more, or nil.
func (e *End) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// write sends the lines. The caller holds e.mu.
func (e *End) write() error {
	if e.err == nil {
		e.err = e.fast.WriteLines(e.lines)
	}
	if e.lines = e.lines[:0]; cap(e.lines) > 2*Batch {
		e.lines = nil
	}
	return e.err
}

// CloseWrite sends what is not sent yet, and ends the writing side. It returns errors.ErrUnsupported if the stream
// cannot do that.
func (e *End) CloseWrite() error {
	e.Rest()
	if h, ok := e.Stream.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	return errors.ErrUnsupported
}
