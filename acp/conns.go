package acp

import (
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/acpgo/sdk/acp/rpc"
)

// AgentConn is an agent's connection to its client, with a typed call for every method that clients serve. A call fails
// with ErrUnsupported if the client did not advertise it, with ErrInvalidParams if the checks of this package refuse
// it, and with ErrInvalidRequest before initialize; it is then not sent. Its methods are safe for concurrent use.
type AgentConn struct {
	rpc       *rpc.Conn
	handshake atomic.Pointer[InitializeRequest]
	enabled   Features
	urls      urlIDs
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
}

// ProxyConn is one end of a connection between a proxy and its conductor, with a typed call for every method
// that either of them serves. Its methods are safe for concurrent use.
//
// Experimental: any minor release may change or remove it.
type ProxyConn struct {
	rpc *rpc.Conn
}

// AgentSession is an agent's handle of one session: it sends the session's updates and calls to the client. Its methods
// fill in the session's id, and are safe for concurrent use. It holds nothing else: the agent itself stores anything it
// knows about a session, such as its working directory, under the session's ID.
type AgentSession struct {
	conn *AgentConn
	id   SessionID
}

// ClientSession is a client's handle of one session: it sends the session's prompts and other calls to the agent. Its
// methods fill in the session's id, and are safe for concurrent use.
type ClientSession struct {
	conn  *ClientConn
	id    SessionID
	state atomic.Pointer[sessionState] // nil until something is known; only the reader goroutine changes it
}

// RPC returns the raw connection, for methods outside the protocol: rpc.Call, rpc.Notify.
func (c *AgentConn) RPC() *rpc.Conn { return c.rpc }

// Close ends the connection and waits for the handlers; see rpc.Conn.Close.
func (c *AgentConn) Close() error { return c.rpc.Close() }

// Wait waits until the connection is over and returns the reason; see rpc.Conn.Wait.
func (c *AgentConn) Wait() error { return c.rpc.Wait() }

// Done returns a channel that is closed when the connection is over.
func (c *AgentConn) Done() <-chan struct{} { return c.rpc.Done() }

// Initialized returns the client's initialize request, or nil if it has not arrived yet. The result must not be
// changed.
func (c *AgentConn) Initialized() *InitializeRequest { return c.handshake.Load() }

// Capabilities returns the capabilities that the client advertised; before initialize, none.
func (c *AgentConn) Capabilities() ClientCapabilities { return *c.capabilities() }

func (c *AgentConn) capabilities() *ClientCapabilities {
	if handshake := c.handshake.Load(); handshake != nil {
		return handshake.capabilities()
	}
	return &noClientCapabilities
}

// The capabilities before initialize. They are variables so that reading them needs no stack; they are never changed.
var (
	noClientCapabilities ClientCapabilities
	noAgentCapabilities  AgentCapabilities
)

// RPC returns the raw connection of the session; see AgentConn.RPC.
func (s *AgentSession) RPC() *rpc.Conn { return s.conn.rpc }

// Session returns a handle of one session. It sends nothing, and does not check that the session exists.
func (c *AgentConn) Session(id SessionID) *AgentSession { return &AgentSession{conn: c, id: id} }

// RPC returns the raw connection, for methods outside the protocol: rpc.Call, rpc.Notify.
func (c *ClientConn) RPC() *rpc.Conn { return c.rpc }

// Close ends the connection, and the agent if it is a subprocess, and waits for both; see rpc.Conn.Close.
func (c *ClientConn) Close() error { return c.rpc.Close() }

// Wait waits until the connection is over and returns the reason; see rpc.Conn.Wait.
func (c *ClientConn) Wait() error { return c.rpc.Wait() }

// Done returns a channel that is closed when the connection is over.
func (c *ClientConn) Done() <-chan struct{} { return c.rpc.Done() }

// Initialized returns the agent's answer to initialize, or nil if it has not arrived yet. The result must not be
// changed.
func (c *ClientConn) Initialized() *InitializeResponse { return c.handshake.Load() }

// Capabilities returns the capabilities that the agent advertised; before initialize, none.
func (c *ClientConn) Capabilities() AgentCapabilities { return *c.capabilities() }

func (c *ClientConn) capabilities() *AgentCapabilities {
	if handshake := c.handshake.Load(); handshake != nil {
		return handshake.capabilities()
	}
	return &noAgentCapabilities
}

func (s *ClientSession) current() *sessionState {
	if state := s.state.Load(); state != nil {
		return state
	}
	return &sessionState{}
}

// RPC returns the raw connection of the session; see ClientConn.RPC.
func (s *ClientSession) RPC() *rpc.Conn { return s.conn.rpc }

// Session returns the handle of a session. While the session is open, because this connection has created, loaded or
// resumed it, that is always the same handle, which is also passed to handlers; for any other id it may be a new one
// each time. Session sends nothing, and does not check that the session exists.
func (c *ClientConn) Session(id SessionID) *ClientSession {
	return c.sessions.handle(c, id)
}

// sessionHandles holds the handles of a client's sessions that are open or being opened, by id.
type sessionHandles struct {
	last atomic.Pointer[ClientSession] // the handle returned last; saves each update a lock and an allocation
	mu   sync.Mutex                    // also held while last is changed
	byID map[SessionID]sessionHandle
}

// sessionHandle is the handle of one session.
type sessionHandle struct {
	session *ClientSession
	open    bool // it was created, loaded or resumed, and not closed or deleted since
	opening int  // calls that load or resume it
}

// get returns the handle of a session that is open or being opened, or nil.
func (h *sessionHandles) get(id SessionID) *ClientSession {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.byID[id].session
}

// handle returns the handle of a session, creating one if the session is not known.
func (h *sessionHandles) handle(c *ClientConn, id SessionID) *ClientSession {
	if s := h.last.Load(); s != nil && s.id == id {
		return s
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.byID[id].session
	if s == nil {
		s = &ClientSession{conn: c, id: id}
	}
	h.last.Store(s)
	return s
}

// add makes s the handle of its session, which is open. The agent may have given it no id; see created.
func (h *sessionHandles) add(s *ClientSession) {
	if s.id == "" {
		return
	}
	h.change(s.id, func(e *sessionHandle) { e.session, e.open = s, true })
}

// remove forgets the handle of a session that is no longer open, unless a call is opening it again.
func (h *sessionHandles) remove(id SessionID) {
	h.change(id, func(e *sessionHandle) { e.open = false })
}

// change changes the known state of a session, and forgets the session when nothing is left.
func (h *sessionHandles) change(id SessionID, change func(*sessionHandle)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last.Store(nil)
	e := h.byID[id]
	change(&e)
	switch {
	case !e.open && e.opening == 0:
		delete(h.byID, id)
	case h.byID == nil:
		h.byID = map[SessionID]sessionHandle{id: e}
	default:
		h.byID[id] = e
	}
}

// opening calls open, which loads or resumes a session, with the session's handle. Updates that arrive before the
// answer are given the same handle.
func (c *ClientConn) opening(id SessionID, open func(*ClientSession) error) (*ClientSession, error) {
	s := c.Session(id)
	c.sessions.change(id, func(e *sessionHandle) {
		if e.session == nil {
			e.session = s
		}
		s = e.session
		e.opening++
	})
	defer c.sessions.change(id, func(e *sessionHandle) { e.opening-- })
	if err := open(s); err != nil {
		return nil, err
	}
	return s, nil
}

// created returns the session that a call of method has created, or the reason why it has not.
func (s *ClientSession) created(method string, err error) (*ClientSession, error) {
	if err == nil && s.id == "" {
		err = fmt.Errorf("%s: the agent returned an empty session id", method)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// urlIDs holds the ids of the outstanding elicitations of a connection in mode url. Those of an agent that never
// completes them are forgotten, the oldest first.
type urlIDs struct {
	mu  sync.Mutex
	ids []uint64 // hashes, because the peer chooses the length of an id
}

var urlSeed = maphash.MakeSeed()

const maxURLs = 1024

// add adds an id, and reports whether it was not there.
func (u *urlIDs) add(id ElicitationID) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	sum := maphash.String(urlSeed, string(id))
	if slices.Contains(u.ids, sum) {
		return false
	}
	if len(u.ids) == maxURLs {
		u.ids = slices.Delete(u.ids, 0, 1)
	}
	u.ids = append(u.ids, sum)
	return true
}

// remove removes an id, and reports whether it was there.
func (u *urlIDs) remove(id ElicitationID) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	i := slices.Index(u.ids, maphash.String(urlSeed, string(id)))
	if i < 0 {
		return false
	}
	u.ids = slices.Delete(u.ids, i, i+1)
	return true
}
