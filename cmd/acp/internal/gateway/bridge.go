package gateway

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/wire"
)

// batch is the maximum number of bytes of messages passed on in one write, except for a single longer message.
const batch = 64 << 10

// bridge passes messages in both directions between a client and an agent. Each direction keeps the order, and reads
// nothing while what it has read is not written yet.
type bridge struct {
	client, agent *end
	// noise is called for each line of the agent that is not a message, which is not passed on. It may be nil.
	noise func(line []byte)

	up, down chan struct{} // closed when nothing more is passed to the agent or the client
}

func newBridge(client, agent rpc.Stream) *bridge {
	return &bridge{client: newEnd("client", client), agent: newEnd("agent", agent), up: make(chan struct{}),
		down: make(chan struct{})}
}

// end is the stream of one side. Both directions write to it: the one that leads to it, and the other one with the
// responses to messages that were too long.
type end struct {
	rpc.FastStream
	name string
	mu   sync.Mutex // held while writing
}

func newEnd(name string, s rpc.Stream) *end { return &end{FastStream: wire.Fast(s), name: name} }

// send writes lines.
func (e *end) send(lines []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.WriteLines(lines)
}

// run passes messages until one side or ctx ends. It returns the side that ended, and its error: io.EOF, possibly
// wrapped, is an orderly end. The caller must then close both streams and wait for up and down.
func (b *bridge) run(ctx context.Context) (ended *end, err error) {
	type result struct {
		from *end
		err  error
	}
	results := make(chan result, 2)
	for _, d := range []struct {
		from, to *end
		done     chan struct{}
	}{{b.client, b.agent, b.up}, {b.agent, b.client, b.down}} {
		go func() {
			defer close(d.done)
			from, err := b.pass(d.from, d.to)
			results <- result{from, err}
		}()
	}
	select {
	case r := <-results:
		return r.from, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// finish ends the agent's input, and passes its remaining output to the client for a limited time.
func (b *bridge) finish(ctx context.Context, d time.Duration) {
	if half, ok := b.agent.FastStream.(rpc.HalfCloser); !ok || half.CloseWrite() != nil {
		return // closing the stream ends it
	}
	select {
	case <-b.down:
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// pass passes messages until a side ends, and returns that side.
func (b *bridge) pass(from, to *end) (ended *end, err error) {
	var lines []byte
	var failed error
	flush := func() {
		if len(lines) > 0 && failed == nil {
			failed = to.send(lines)
		}
		if lines = lines[:0]; cap(lines) > 2*batch {
			lines = nil
		}
	}
	for {
		line, err := from.ReadLine(flush)
		dropped, goesOn := wire.AsUnread(err)
		switch {
		case goesOn && dropped.ID.IsNull(): // a notification, or indistinguishable from one
		case goesOn && dropped.Response:
			lines = append(append(lines, dropped.Answer()...), '\n')
		case goesOn:
			if err := from.send(append(dropped.Answer(), '\n')); err != nil {
				return from, err
			}
		case err != nil:
			flush()
			if failed != nil {
				return to, failed
			}
			return from, err
		case from == b.agent && wire.IsNoise(line):
			if b.noise != nil {
				b.noise(line)
			}
		default:
			lines = append(wire.AppendLine(lines, line), '\n')
			if len(lines) >= batch {
				flush()
			}
		}
		if failed != nil {
			return to, failed
		}
	}
}

// orderly reports whether an error of a stream is its usual end.
func orderly(err error) bool { return err == nil || errors.Is(err, io.EOF) }
