// This file owns serving an agent: starting it, what initialize answers, and what is refused before.

package acp

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/acpgo/sdk/acp/rpc"
)

// Version is the protocol version that this package speaks.
const Version ProtocolVersion = 1

// AgentOptions say what an agent tells about itself. Nil, and the zero value, tell nothing.
//
// The capabilities loadSession, sessionCapabilities.list, delete, resume and close, and auth.logout
// follow from which handlers are set and have no option.
type AgentOptions struct {
	// Info names the agent and its version.
	Info Implementation
	// AuthMethods are the ways to authenticate. Those of type terminal are offered only to clients
	// that can run them.
	AuthMethods []AuthMethod
	// Prompt says which content prompts may have beyond text and resource links.
	Prompt PromptCapabilities
	// MCP says which MCP servers the agent connects to beyond those on stdio.
	MCP MCPCapabilities
	// AdditionalDirectories says that sessions may have more roots than their working directory.
	AdditionalDirectories bool
	// Initialize, if set, may edit the answer to initialize before it is sent, or refuse the client
	// with an error. It must be quick and must not call the client.
	Initialize func(ctx context.Context, req *InitializeRequest, res *InitializeResponse) error
	// Conn tunes the connection.
	Conn ConnOptions
}

// ClientConn is an agent's connection to its client. Its methods are safe for concurrent use.
type ClientConn struct {
	*ClientPeer
}

// ServeAgent serves one client over transport until the client ends the connection or ctx ends; then
// the handlers' contexts end, and it returns when they have. It returns nil when the client has closed
// the connection in an orderly way, the cause of ctx when that ended, or what broke the connection.
//
// Handlers are called by one goroutine each, except those of notifications: these are called one at a
// time for each session, in the order in which they came.
func ServeAgent(ctx context.Context, transport Transport, handlers AgentHandlers, opts *AgentOptions) error {
	conn, err := StartAgent(ctx, transport, handlers, opts)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), conn.Close())
	case <-conn.Done():
		return conn.Wait()
	}
}

// StartAgent is ServeAgent in the background. ctx bounds opening the transport; call Close, or Wait
// for the client to end the connection.
func StartAgent(ctx context.Context, transport Transport, handlers AgentHandlers, opts *AgentOptions) (*ClientConn, error) {
	if handlers.NewSession == nil || handlers.Prompt == nil {
		return nil, errors.New("acp: an agent needs the handlers NewSession and Prompt")
	}
	a := &agentSide{handlers: handlers}
	if opts != nil {
		a.opts = *opts
	}
	if _, err := rpc.Connect(ctx, transport, a.routes, &a.opts.Conn); err != nil {
		return nil, err
	}
	return &ClientConn{ClientPeer: a.client}, nil
}

// Close ends the connection and waits for the handlers; see rpc.Conn.Close.
func (c *ClientConn) Close() error { return c.conn.Close() }

// Wait waits until the connection is over and says why; see rpc.Conn.Wait.
func (c *ClientConn) Wait() error { return c.conn.Wait() }

// Done is closed when the connection is over.
func (c *ClientConn) Done() <-chan struct{} { return c.conn.Done() }

// agentSide is an agent being served.
type agentSide struct {
	handlers AgentHandlers
	opts     AgentOptions
	client   *ClientPeer
	said     atomic.Pointer[InitializeResponse] // what the agent says of itself, and is held to
}

var errNotInitialized = ErrInvalidRequest.WithMessage("Invalid request: initialize comes first")

// routes says what an agent serves.
func (a *agentSide) routes(conn *rpc.Conn) []rpc.Route {
	a.client = &ClientPeer{conn: conn}
	routes := append(a.handlers.routes(a.client), a.handlers.Extensions.Routes()...)
	if ext := a.handlers.Extensions; ext == nil || ext.Fallback == nil {
		routes = append(routes, rpc.Route{}) // so that unknown methods are gated too
	}
	for i := range routes {
		r := &routes[i]
		r.Check = checkParams
		switch r.Method {
		case MethodPrompt:
			r.Turn = true
			r.Cancelled = func() any { return &PromptResponse{StopReason: StopReasonCancelled} }
		case MethodCancel:
			r.CancelsTurn = true
		case MethodCloseSession, MethodDeleteSession:
			r.EndsTurn = true
		case MethodAuthenticate:
			r.Check = a.checkAuthenticate
		}
		if !r.Notification {
			r.Gate = func() *Error { return a.gate(r.Method) }
		}
	}
	initialize := methodInitialize.Handle(a.initialize)
	initialize.Inline = true
	return append(routes, initialize)
}

// gate refuses requests before initialize, and what initialize did not advertise.
func (a *agentSide) gate(method string) *Error {
	said := a.said.Load()
	switch {
	case said == nil:
		return errNotInitialized
	case !agentServes(&said.AgentCapabilities, method):
		return rpc.MethodNotFound(method)
	}
	return nil
}

// checkAuthenticate refuses methods that were not offered, and those that are not for authenticate.
func (a *agentSide) checkAuthenticate(params any) *Error {
	req, ok := params.(*AuthenticateRequest)
	if !ok {
		return nil
	}
	for _, m := range a.said.Load().AuthMethods {
		if m, ok := m.Variant.(*AuthMethodAgent); ok && m.ID == req.MethodID {
			return nil
		}
	}
	return invalid("/methodId", "not the id of an authentication method for authenticate")
}

// initialize negotiates: a version that is not ours is answered with ours, and the client decides.
func (a *agentSide) initialize(ctx context.Context, req *InitializeRequest) (*InitializeResponse, error) {
	if a.said.Load() != nil {
		return nil, ErrInvalidRequest.WithMessage("Invalid request: initialized already")
	}
	res := &InitializeResponse{
		ProtocolVersion:   Version,
		AgentCapabilities: a.capabilities(),
		AuthMethods:       a.authMethods(&req.ClientCapabilities),
	}
	if a.opts.Info.Name != "" {
		res.AgentInfo = Some(a.opts.Info)
	}
	if a.opts.Initialize != nil {
		if err := a.opts.Initialize(ctx, req, res); err != nil {
			return nil, err
		}
	}
	a.client.said.Store(req)
	a.said.Store(res)
	return res, nil
}

// capabilities derives the agent's capabilities from its handlers and options.
func (a *agentSide) capabilities() AgentCapabilities {
	h := &a.handlers
	caps := AgentCapabilities{
		LoadSession:        h.LoadSession != nil,
		PromptCapabilities: a.opts.Prompt,
		MCPCapabilities:    a.opts.MCP,
	}
	s := &caps.SessionCapabilities
	if h.ListSessions != nil {
		s.List = Some(SessionListCapabilities{})
	}
	if h.DeleteSession != nil {
		s.Delete = Some(SessionDeleteCapabilities{})
	}
	if h.ResumeSession != nil {
		s.Resume = Some(SessionResumeCapabilities{})
	}
	if h.CloseSession != nil {
		s.Close = Some(SessionCloseCapabilities{})
	}
	if a.opts.AdditionalDirectories {
		s.AdditionalDirectories = Some(SessionAdditionalDirectoriesCapabilities{})
	}
	if h.Logout != nil {
		caps.Auth.Logout = Some(LogoutCapabilities{})
	}
	return caps
}

// authMethods leaves out the terminal methods for clients that did not advertise them.
func (a *agentSide) authMethods(client *ClientCapabilities) []AuthMethod {
	methods := slices.Clone(a.opts.AuthMethods)
	if !client.Auth.Terminal {
		methods = slices.DeleteFunc(methods, func(m AuthMethod) bool {
			_, terminal := m.Variant.(*AuthMethodTerminal)
			return terminal
		})
	}
	return methods
}
