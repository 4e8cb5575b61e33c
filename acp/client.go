// This file owns connecting to an agent: starting the connection and the initialize handshake.

package acp

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/acpgo/sdk/acp/rpc"
)

// ClientOptions say what a client tells about itself. Nil, and the zero value, tell nothing.
//
// The capabilities fs.readTextFile, fs.writeTextFile and terminal follow from which handlers are set
// and have no option.
type ClientOptions struct {
	// Info names the client and its version.
	Info Implementation
	// Elicitation says which modes of elicitation/create the client's handler serves.
	Elicitation ElicitationCapabilities
	// Session says which session features the client understands: boolean config options, notices,
	// compaction.
	Session ClientSessionCapabilities
	// TerminalAuth says that the client can run an agent's terminal authentication methods.
	TerminalAuth bool
	// Initialize, if set, may edit the initialize request before it is sent.
	Initialize func(req *InitializeRequest)
	// Conn tunes the connection.
	Conn ConnOptions
}

// AgentConn is a client's connection to an agent. Besides sessions it has the typed call of every
// method of the agent's, through AgentPeer. Its methods are safe for concurrent use.
type AgentConn struct {
	*AgentPeer
}

// A VersionError says that the agent answered initialize with a protocol version that this package
// does not speak. The connection was closed.
type VersionError struct {
	// Got is the agent's version.
	Got ProtocolVersion
}

// Error implements the error interface.
func (e *VersionError) Error() string {
	return fmt.Sprintf("acp: the agent speaks protocol version %d, not %d", e.Got, Version)
}

// Connect starts a connection to an agent and initializes it. ctx bounds both, and nothing afterwards;
// ending a subprocess that does not answer takes up to its StopTime and KillTime more.
// The error matches ErrClosed when the agent ended meanwhile, and is then or wraps an *ExitError if it
// was a subprocess; it is an *Error that the agent answered, or a *VersionError.
//
// Handlers of requests are called by one goroutine each; SessionUpdate is called one at a time for
// each session, in the order in which the updates came, and before the answer to a call returns that
// came after them. A call made from SessionUpdate must use the context that it is given, or it could
// wait for itself.
func Connect(ctx context.Context, transport Transport, handlers ClientHandlers, opts *ClientOptions) (*AgentConn, error) {
	c := &clientSide{handlers: handlers}
	if opts != nil {
		c.opts = *opts
	}
	var err error
	if c.sent, err = c.request(); err != nil {
		return nil, err
	}
	conn, err := rpc.Connect(ctx, transport, c.routes, &c.opts.Conn)
	if err != nil {
		return nil, err
	}
	// Handlers of what comes right behind the answer find it.
	res, err := methodInitialize.CallThen(ctx, conn, c.sent, c.agent.said.Store)
	if err == nil && res.ProtocolVersion != Version {
		err = &VersionError{Got: res.ProtocolVersion}
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &AgentConn{AgentPeer: c.agent}, nil
}

// Close ends the connection, and the agent if it is a subprocess, and waits for both; see
// rpc.Conn.Close.
func (c *AgentConn) Close() error { return c.conn.Close() }

// Wait waits until the connection is over and says why; see rpc.Conn.Wait.
func (c *AgentConn) Wait() error { return c.conn.Wait() }

// Done is closed when the connection is over.
func (c *AgentConn) Done() <-chan struct{} { return c.conn.Done() }

// NewSession creates a session (session/new).
func (c *AgentConn) NewSession(ctx context.Context, req *NewSessionRequest) (*SessionAgent, error) {
	res, err := c.AgentPeer.NewSession(ctx, req)
	if err != nil {
		return nil, err
	}
	return &SessionAgent{c.AgentPeer, res.SessionID, res.Modes, res.ConfigOptions}, nil
}

// LoadSession loads a session, whose history comes as updates before LoadSession returns
// (session/load).
func (c *AgentConn) LoadSession(ctx context.Context, req *LoadSessionRequest) (*SessionAgent, error) {
	res, err := c.AgentPeer.LoadSession(ctx, req)
	if err != nil {
		return nil, err
	}
	return &SessionAgent{c.AgentPeer, req.SessionID, res.Modes, res.ConfigOptions}, nil
}

// ResumeSession goes on with a session without its history (session/resume).
func (c *AgentConn) ResumeSession(ctx context.Context, req *ResumeSessionRequest) (*SessionAgent, error) {
	res, err := c.AgentPeer.ResumeSession(ctx, req)
	if err != nil {
		return nil, err
	}
	return &SessionAgent{c.AgentPeer, req.SessionID, res.Modes, res.ConfigOptions}, nil
}

// Sessions yields the agent's sessions, page by page (session/list). cwd limits them to one working
// directory; "" is all. After an error it ends.
func (c *AgentConn) Sessions(ctx context.Context, cwd string) iter.Seq2[SessionInfo, error] {
	return func(yield func(SessionInfo, error) bool) {
		req := &ListSessionsRequest{}
		if cwd != "" {
			req.Cwd = Some(cwd)
		}
		for {
			res, err := c.ListSessions(ctx, req)
			if err != nil {
				yield(SessionInfo{}, err)
				return
			}
			for _, info := range res.Sessions {
				if !yield(info, nil) {
					return
				}
			}
			next, ok := res.NextCursor.Get()
			if !ok {
				return
			}
			req.Cursor = Some(next)
		}
	}
}

// clientSide is a client that is connected.
type clientSide struct {
	handlers ClientHandlers
	opts     ClientOptions
	sent     *InitializeRequest // what the client says of itself, and is held to
	agent    *AgentPeer
}

// request makes the initialize request from handlers and options.
func (c *clientSide) request() (*InitializeRequest, error) {
	h := &c.handlers
	terminals := 0
	for _, set := range []bool{
		h.CreateTerminal != nil, h.TerminalOutput != nil, h.ReleaseTerminal != nil,
		h.WaitForTerminalExit != nil, h.KillTerminal != nil,
	} {
		if set {
			terminals++
		}
	}
	if terminals != 0 && terminals != 5 {
		return nil, fmt.Errorf("acp: a client needs all five terminal handlers or none, not %d", terminals)
	}
	elicits := c.opts.Elicitation.Form.Present() || c.opts.Elicitation.URL.Present()
	if elicits && h.CreateElicitation == nil {
		return nil, errors.New("acp: a client that advertises elicitation needs the handler CreateElicitation")
	}
	req := &InitializeRequest{
		ProtocolVersion: Version,
		ClientCapabilities: ClientCapabilities{
			FS: FileSystemCapabilities{
				ReadTextFile:  h.ReadTextFile != nil,
				WriteTextFile: h.WriteTextFile != nil,
			},
			Terminal: terminals == 5,
			Auth:     AuthCapabilities{Terminal: c.opts.TerminalAuth},
		},
	}
	if elicits {
		req.ClientCapabilities.Elicitation = Some(c.opts.Elicitation)
	}
	if s := c.opts.Session; s.Compaction.Present() || s.ConfigOptions.Present() || s.Notices.Present() || s.Meta != nil {
		req.ClientCapabilities.Session = Some(s)
	}
	if c.opts.Info.Name != "" {
		req.ClientInfo = Some(c.opts.Info)
	}
	if c.opts.Initialize != nil {
		c.opts.Initialize(req)
	}
	return req, nil
}

// routes says what a client serves.
func (c *clientSide) routes(conn *rpc.Conn) []rpc.Route {
	c.agent = &AgentPeer{conn: conn}
	if ask := c.handlers.RequestPermission; ask != nil {
		c.handlers.RequestPermission = func(
			ctx context.Context, agent *AgentPeer, req *RequestPermissionRequest,
		) (*RequestPermissionResponse, error) {
			res, err := ask(ctx, agent, req)
			if err == nil && res != nil {
				err = checkOutcome(req, res)
			}
			return res, err
		}
	}
	caps := &c.sent.ClientCapabilities
	routes := append(c.handlers.routes(c.agent), c.handlers.Extensions.Routes()...)
	for i := range routes {
		r := &routes[i]
		r.Check = checkParams
		switch r.Method {
		case MethodRequestPermission:
			r.Cancelled = func() any { return &RequestPermissionResponse{Outcome: PermissionCancelled()} }
		case MethodSessionUpdate:
			r.Feeds = true
		case MethodCreateElicitation:
			r.Check = func(params any) *Error { return checkElicitation(caps, params) }
		}
		if !r.Notification && !clientServes(caps, r.Method) {
			r.Gate = func() *Error { return rpc.MethodNotFound(r.Method) }
		}
	}
	return routes
}
