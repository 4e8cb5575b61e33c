// This file owns the two peers: what either side knows of the other.

package acp

import "github.com/acpgo/sdk/acp/rpc"

// Conn is the connection, for extension methods: rpc.Call, rpc.Notify.
func (c *ClientPeer) Conn() *rpc.Conn { return c.conn }

// Initialized is what the client said of itself in initialize; before that, nil. It must not be
// changed.
func (c *ClientPeer) Initialized() *InitializeRequest { return c.said.Load() }

// Session is the client scoped to one session. It costs nothing and checks nothing.
func (c *ClientPeer) Session(id SessionID) *SessionClient { return &SessionClient{peer: c, id: id} }

// Capabilities are what the client advertised; before initialize, nothing.
func (c *ClientPeer) Capabilities() ClientCapabilities { return *c.capabilities() }

func (c *ClientPeer) capabilities() *ClientCapabilities {
	if said := c.said.Load(); said != nil {
		return said.capabilities()
	}
	return &ClientCapabilities{}
}

// Conn is the connection, for extension methods: rpc.Call, rpc.Notify.
func (a *AgentPeer) Conn() *rpc.Conn { return a.conn }

// Initialized is what the agent answered to initialize; before that, nil. It must not be changed.
func (a *AgentPeer) Initialized() *InitializeResponse { return a.said.Load() }

// Session is the agent scoped to one session. It costs nothing and checks nothing.
func (a *AgentPeer) Session(id SessionID) *SessionAgent { return &SessionAgent{peer: a, id: id} }

// Capabilities are what the agent advertised; before initialize, nothing.
func (a *AgentPeer) Capabilities() AgentCapabilities { return *a.capabilities() }

func (a *AgentPeer) capabilities() *AgentCapabilities {
	if said := a.said.Load(); said != nil {
		return said.capabilities()
	}
	return &AgentCapabilities{}
}
