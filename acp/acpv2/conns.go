package acpv2

import (
	"sync"
	"sync/atomic"

	"github.com/acpgo/sdk/acp/rpc"
)

// AgentConn is an agent's connection to its client, with a typed call for every method that clients serve. A call fails
// with ErrUnsupported if the client did not advertise it, with ErrInvalidParams if the checks of this package refuse
// it, and with ErrInvalidRequest before initialize; it is then not sent. Its methods are safe for concurrent use.
type AgentConn struct {
	rpc        *rpc.Conn
	handshake  atomic.Pointer[InitializeRequest]
	background func(SessionID) []BackgroundWork // nil: background work is not reported
	steer      bool                             // prompts are not held
	enabled    Features
	urls       urlIDs

	mu          sync.Mutex
	foregrounds map[SessionID]*foreground // of sessions that are not idle
}

// ClientConn is a client's connection to an agent, with a typed call for every method that agents serve. A call fails
// with ErrUnsupported if the agent did not advertise it, and with ErrInvalidParams if the checks of this package refuse
// it; it is then not sent. Its methods are safe for concurrent use.
type ClientConn struct {
	rpc       *rpc.Conn
	handshake atomic.Pointer[InitializeResponse]
	sessions  sessionHandles
	enabled   Features
	urls      urlIDs
	seen      seen
}

// foreground is the work in progress in a session. The client sees it as a whole: the session is running while there is
// any work, and idle otherwise.
type foreground struct {
	session *AgentSession

	mu        sync.Mutex // also held while a state is sent, so that states are sent in order
	turns     int        // accepted turns that are not over
	questions int        // open questions to the user
	running   bool       // the client knows that the session is running
}
