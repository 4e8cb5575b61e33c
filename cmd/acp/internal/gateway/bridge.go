package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/wire"
)

// batch is how many bytes of messages are passed on in one write at most, but for a message that is longer.
const batch = 64 << 10

// bridge is the two directions between a client and an agent. Each is in order, and reads nothing while what it has read
// is not taken.
type bridge struct {
	client, agent *end
	// noise is called for each line of the agent that is not a message and is not passed on. It may be nil.
	noise func(line []byte)

	up, down chan struct{} // closed when nothing more passes to the agent, to the client
}

func newBridge(client, agent rpc.Stream) *bridge {
	return &bridge{client: newEnd("client", client), agent: newEnd("agent", agent), up: make(chan struct{}), down: make(chan struct{})}
}

// end is the stream of one side. Both directions write to it: the one that leads to it, and the other one what answers a
// message that was too long.
type end struct {
	rpc.FastStream
	name string
	mu   sync.Mutex // held while writing
}

func newEnd(name string, s rpc.Stream) *end {
	f, ok := s.(rpc.FastStream)
	if !ok {
		f = rpc.Wrap(s, rpc.Wrapper{}).(rpc.FastStream) // what it returns always is one
	}
	return &end{FastStream: f, name: name}
}

// send writes lines.
func (e *end) send(lines []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.WriteLines(lines)
}

// run passes messages on until one side has ended, or ctx has. It says which one has, and with what error: io.EOF,
// possibly wrapped, is an orderly end. The caller closes both streams then, and waits for up and down.
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

// finish ends the agent's input, and lets what it still says pass to the client, for a time.
func (b *bridge) finish(ctx context.Context, d time.Duration) {
	if half, ok := b.agent.FastStream.(rpc.HalfCloser); !ok || half.CloseWrite() != nil {
		return // closing the stream ends it
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-b.down:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// pass passes messages on until a side has ended, and says which one.
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
		long, isLong := errors.AsType[*rpc.TooLongError](err)
		lost, isLost := errors.AsType[*rpc.CallLostError](err)
		switch {
		case isLong:
			if flush(); failed == nil {
				failed = b.refuse(from, to, long)
			}
		case isLost:
			lines = append(append(lines, lost.Response()...), '\n')
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

// refuse says of a message that was too long to be passed on that it was: a request is answered, and who waits for an
// answer gets an error.
func (b *bridge) refuse(from, to *end, long *rpc.TooLongError) error {
	id, response, known := long.ID()
	switch {
	case !known:
		return nil // a notification, or one that cannot be told from it
	case response:
		return to.send(refusal(id, fmt.Sprintf("the answer is longer than %d bytes", long.Limit)))
	default:
		return from.send(refusal(id, fmt.Sprintf("the request is longer than %d bytes", long.Limit)))
	}
}

// refusal is the line of an error response.
func refusal(id rpc.ID, message string) []byte {
	return append((&rpc.CallLostError{ID: id, Err: errors.New(message)}).Response(), '\n')
}

// orderly reports whether an error of a stream is its usual end.
func orderly(err error) bool { return err == nil || errors.Is(err, io.EOF) }
