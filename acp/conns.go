// This file owns what the connections of both sides and of all versions have: the raw connection, its end,
// what the other side said in the handshake, and the handles of sessions.

package acp

import (
	"sync"
	"sync/atomic"

	"github.com/acpgo/sdk/acp/rpc"
)

// RPC returns the raw connection, for methods outside the protocol: rpc.Call, rpc.Notify.
func (c *AgentConn) RPC() *rpc.Conn { return c.rpc }

// Close ends the connection and waits for the handlers; see rpc.Conn.Close.
func (c *AgentConn) Close() error { return c.rpc.Close() }

// Wait waits until the connection is over and says why; see rpc.Conn.Wait.
func (c *AgentConn) Wait() error { return c.rpc.Wait() }

// Done returns a channel that is closed when the connection is over.
func (c *AgentConn) Done() <-chan struct{} { return c.rpc.Done() }

// Initialized returns the client's initialize request, or nil before it has come. It must not be changed.
func (c *AgentConn) Initialized() *InitializeRequest { return c.handshake.Load() }

// Capabilities returns what the client advertised; before initialize, nothing.
func (c *AgentConn) Capabilities() ClientCapabilities { return *c.capabilities() }

func (c *AgentConn) capabilities() *ClientCapabilities {
	if handshake := c.handshake.Load(); handshake != nil {
		return handshake.capabilities()
	}
	return &ClientCapabilities{}
}

// RPC returns the raw connection of the session; see AgentConn.RPC.
func (s *AgentSession) RPC() *rpc.Conn { return s.conn.rpc }

// Session returns a handle of one session. It sends nothing, and does not check that the session exists.
func (c *AgentConn) Session(id SessionID) *AgentSession { return &AgentSession{conn: c, id: id} }

// RPC returns the raw connection, for methods outside the protocol: rpc.Call, rpc.Notify.
func (c *ClientConn) RPC() *rpc.Conn { return c.rpc }

// Close ends the connection, and the agent if it is a subprocess, and waits for both; see rpc.Conn.Close.
func (c *ClientConn) Close() error { return c.rpc.Close() }

// Wait waits until the connection is over and says why; see rpc.Conn.Wait.
func (c *ClientConn) Wait() error { return c.rpc.Wait() }

// Done returns a channel that is closed when the connection is over.
func (c *ClientConn) Done() <-chan struct{} { return c.rpc.Done() }

// Initialized returns the agent's answer to initialize, or nil before it has come. It must not be changed.
func (c *ClientConn) Initialized() *InitializeResponse { return c.handshake.Load() }

// Capabilities returns what the agent advertised; before initialize, nothing.
func (c *ClientConn) Capabilities() AgentCapabilities { return *c.capabilities() }

func (c *ClientConn) capabilities() *AgentCapabilities {
	if handshake := c.handshake.Load(); handshake != nil {
		return handshake.capabilities()
	}
	return &AgentCapabilities{}
}

// RPC returns the raw connection of the session; see ClientConn.RPC.
func (s *ClientSession) RPC() *rpc.Conn { return s.conn.rpc }

// Session returns the handle of a session that this connection has created, loaded or resumed and not
// closed or deleted, which handlers are given too; for any other id it may be a new handle each time. It
// sends nothing, and does not check that the session exists.
func (c *ClientConn) Session(id SessionID) *ClientSession {
	if s := c.sessions.get(id); s != nil {
		return s
	}
	if s := c.sessions.other.Load(); s != nil && s.id == id {
		return s
	}
	s := &ClientSession{conn: c, id: id}
	c.sessions.other.Store(s)
	return s
}

// sessionHandles are the handles of a client's sessions that are open, by id.
type sessionHandles struct {
	mu    sync.RWMutex
	byID  map[SessionID]*ClientSession
	other atomic.Pointer[ClientSession] // the last that was made of another session, so that not each update makes one
}

func (h *sessionHandles) get(id SessionID) *ClientSession {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.byID[id]
}

// add makes s the handle of its session.
func (h *sessionHandles) add(s *ClientSession) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byID == nil {
		h.byID = map[SessionID]*ClientSession{}
	}
	h.byID[s.id] = s
}

// remove forgets s, if it is the handle of its session.
func (h *sessionHandles) remove(s *ClientSession) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.other.CompareAndSwap(s, nil)
	if h.byID[s.id] == s {
		delete(h.byID, s.id)
	}
}

// opening calls open, which creates, loads or resumes the session of s, and keeps s as the session's handle
// unless that fails. Updates that come before open's answer find the handle already.
func (c *ClientConn) opening(s *ClientSession, open func() error) (*ClientSession, error) {
	known := c.sessions.get(s.id) == s
	c.sessions.add(s)
	if err := open(); err != nil {
		if !known {
			c.sessions.remove(s)
		}
		return nil, err
	}
	return s, nil
}
