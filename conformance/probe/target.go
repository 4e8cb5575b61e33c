package probe

import (
	"context"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance/internal/player"
)

// Target is one fresh launch of the program under test.
type Target struct {
	// Stream carries the lines of both directions, including those that are not messages. It should implement
	// [rpc.FastStream] and [rpc.HalfCloser], like the streams of package rpc, so that lines are sent byte for byte and
	// the input can end before the connection. Its Close must end the program and everything that it started.
	Stream rpc.Stream
	// Raw writes bytes that are not a whole line. It is called between writes of Stream. If it is nil, no scenario does
	// that.
	Raw func(text []byte) error
	// Stderr has the program's standard error; for a client that is typed to, also its output, which shows when it asks
	// its user something. It may be nil.
	Stderr *Stderr
	// Process is set if the program is a process. Read then returns an [*rpc.ExitError] when the process has ended; it
	// may close its output and keep running. In memory, only the end of the output can be observed.
	Process bool
	// Log writes to the standard error of the agent that a client has started. It is nil if there is none.
	Log func(text []byte) error
	// User makes the user of a client do something. It returns a channel that is closed when this is done, as far as
	// the client reports it, or nil if it is impossible. If User is nil, the user can do nothing.
	User func(action Action) (done <-chan struct{})
	// Next waits until the client starts its agent again in this launch. It returns the probe's end of the new
	// connection as target, or nil after a login in a terminal, which has then ended. Next is nil if the client cannot
	// restart its agent, or this cannot be observed.
	Next func(ctx context.Context) (target *Target, login bool, err error)

	person bool // does what the user does, and needs time for it
}

// link is what a connection needs of a target.
func (t *Target) link() player.Link {
	return player.Link{Stream: t.Stream, Raw: t.Raw, Process: t.Process}
}

// Launch starts the program under test in the directory of a scenario. A program that keeps files in its home directory
// should get the one that [Home] returns. The context limits only the start.
type Launch func(ctx context.Context, dir string) (*Target, error)

// InMemory returns a Launch for a program that runs in this process. The function connect returns the transport to a
// new instance.
func InMemory(connect func() rpc.Transport) Launch {
	return func(ctx context.Context, _ string) (*Target, error) {
		stream, err := connect().Connect(ctx)
		if err != nil {
			return nil, err
		}
		return &Target{Stream: stream}, nil
	}
}

// Action is an action of a client's user.
type Action string

// The actions.
const (
	ActPrompt Action = "prompt" // send a prompt in the session, which is created first if necessary
	ActCancel Action = "cancel" // cancel the turn
	ActNew    Action = "new"    // create another session
	ActList   Action = "list"   // list all sessions
	ActLoad   Action = "load"   // load the session, with its history
	ActResume Action = "resume" // resume it, without its history
	ActClose  Action = "close"  // close it
	ActDelete Action = "delete" // delete it
	ActMode   Action = "mode"   // change its mode
	ActOption Action = "option" // change an option of it to another of its values
	ActToggle Action = "toggle" // switch an option of it on or off
	ActLogout Action = "logout" // log out
	ActAllow  Action = "allow"  // grant the requested permission, or accept the form or the link
	ActReject Action = "reject" // refuse it
	ActQuit   Action = "quit"   // end the client
)

// Actions lists all actions.
var Actions = []Action{ActPrompt, ActCancel, ActNew, ActList, ActLoad, ActResume, ActClose, ActDelete, ActMode,
	ActOption, ActToggle, ActLogout, ActAllow, ActReject, ActQuit}
