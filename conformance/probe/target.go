// What is probed: a launch of the program.

package probe

import (
	"context"

	"github.com/acpgo/sdk/acp/rpc"
)

// Target is one fresh launch of the program under test.
type Target struct {
	// Stream carries the lines of both directions, also those that are not a message. It should be a [rpc.FastStream] and a
	// [rpc.HalfCloser], as the streams of package rpc are: then lines are sent byte for byte, and the end of the input can
	// come before the end of the connection. Its Close must end the program and all that it started.
	Stream rpc.Stream
	// Raw writes bytes that are no line. It is called between writes of Stream. Nil: no scenario sends any.
	Raw func(text []byte) error
	// Stderr is what the program writes to standard error. Nil: there is none.
	Stderr *Stderr
	// Process says that it is a process, whose Read ends with an [*rpc.ExitError] when it has ended; it may close its output
	// and go on. In memory, the end of the output is all that can be known.
	Process bool
	// Log writes to the standard error of the agent that a client has started. Nil: there is none.
	Log func(text []byte) error
	// User has the user of a client do something. It returns a channel that is closed when that is done, as far as the
	// client says that, and nil if there is no way to have it done. A nil User can do nothing.
	User func(action Action) (done <-chan struct{})
	// Next waits until the client starts its agent once more, as that of this launch: target is the probe's end of it, or nil
	// for a login in a terminal, which has ended then. Nil: it cannot, or that cannot be known.
	Next func(ctx context.Context) (target *Target, login bool, err error)

	person bool // does what the user does, and needs time for it
}

// Launch starts the program under test, in a directory of the scenario's own and with the home that [Home] says, as far as
// it is a program that keeps something there. The context bounds the start alone.
type Launch func(ctx context.Context, dir string) (*Target, error)

// InMemory returns a Launch for a program that runs in this process: connect returns the transport to a new instance.
func InMemory(connect func() rpc.Transport) Launch {
	return func(ctx context.Context, _ string) (*Target, error) {
		stream, err := connect().Connect(ctx)
		if err != nil {
			return nil, err
		}
		return &Target{Stream: stream}, nil
	}
}
