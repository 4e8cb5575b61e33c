package gateway

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/hop"
	"github.com/acpgo/sdk/internal/wire"
)

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

// end is the stream of one side.
type end struct {
	*hop.End
	name string
}

func newEnd(name string, s rpc.Stream) *end { return &end{hop.NewEnd(s), name} }

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
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	// An agent that does not read may block CloseWrite. Closing it again reports the error.
	stop := context.AfterFunc(ctx, func() { _ = b.agent.Stream.Close() })
	defer stop()
	if b.agent.CloseWrite() != nil {
		return // closing the stream ends it
	}
	select {
	case <-b.down:
	case <-ctx.Done():
	}
}

// pass passes messages until a side ends, and returns that side.
func (b *bridge) pass(from, to *end) (ended *end, err error) {
	ignored := func(wire.Unread) {} // a notification, or indistinguishable from one
	_, err = from.Pass(to.End, ignored, func(line []byte) error {
		if from != b.agent || !wire.IsNoise(line) {
			return to.Send(line)
		}
		if b.noise != nil {
			b.noise(line)
		}
		return to.Err()
	})
	if failed := to.Err(); failed != nil {
		return to, failed
	}
	return from, err
}

// orderly reports whether an error of a stream is its usual end.
func orderly(err error) bool { return err == nil || errors.Is(err, io.EOF) }
