package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/acpgo/sdk/acp/internal/serve"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/engine"
)

// ServeAgent serves one client over transport until the client ends the connection or ctx ends. It then ends the
// contexts of the handlers and returns after the handlers have. It returns nil if the client closed the connection in
// an orderly way, the cause of ctx if ctx ended, or the error that broke the connection.
//
// Each request is handled in its own goroutine. Notifications are handled one at a time for each session, in the order
// in which they arrived.
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

// StartAgent is like ServeAgent but serves in the background. ctx is used only while the transport is opened.
// Call Close to end the connection, or Wait to wait until the client ends it.
func StartAgent(ctx context.Context, transport Transport, handlers AgentHandlers, opts *AgentOptions) (*AgentConn,
	error) {
	a := &agentSide{handlers: handlers, opts: *cmp.Or(opts, &AgentOptions{})}
	if err := a.prepare(); err != nil {
		return nil, err
	}
	if _, err := serve.Connect(ctx, transport, a.routes, &a.opts.Conn); err != nil {
		return nil, err
	}
	return a.conn, nil
}

// agentSide is an agent being served.
type agentSide struct {
	handlers  AgentHandlers
	opts      AgentOptions
	caps      AgentCapabilities // derived from the handlers and the options
	conn      *AgentConn
	handshake atomic.Pointer[InitializeResponse] // the initialize response that was sent; decides what is served
	used      atomic.Bool                        // the client has sent anything after initialize
}

// routes returns the routes that an agent serves.
func (a *agentSide) routes(conn *rpc.Conn) ([]engine.Route, error) {
	a.conn = &AgentConn{rpc: conn, enabled: a.opts.Experimental}
	(*engine.Conn)(conn).SwitchOff(uint64(AllFeatures &^ a.opts.Experimental))
	extensions, err := serve.Extensions(a.handlers.Extensions, a.conn)
	if err != nil {
		return nil, err
	}
	routes := append(a.handlers.routes(a.conn), extensions...)
	if ext := a.handlers.Extensions; ext == nil || ext.Fallback == nil {
		routes = append(routes, engine.Route{}) // so that unknown methods are gated too
	}
	for i := range routes {
		r := &routes[i]
		r.Check = asParams(a.checkParams)
		r.Verify = func(result any) error { return a.opts.Experimental.lacks("AgentOptions", result) }
		r.Gate = func() error { return a.gate(r) }
		a.configureRoute(r)
	}
	initialize := a.initializeRoute()
	initialize.Inline = true
	return append(routes, initialize), nil
}

func (a *agentSide) gate(r *engine.Route) error {
	handshake := a.handshake.Load()
	switch {
	case handshake == nil:
		return errNotInitialized
	case r.Notification:
		return nil
	}
	a.used.Store(true)
	if !handshake.serves(r.Method) {
		return engine.MethodNotFound(r.Method)
	}
	return nil
}

// checkLogin refuses a client's request to authenticate with a method that was not offered, or that must not be
// requested.
func (a *agentSide) checkLogin(params any) *flaw {
	req, ok := params.(*loginRequest)
	if ok && checkOffered(a.handshake.Load().AuthMethods, req.MethodID) != nil {
		return &flaw{"/methodId", "not the id of an authentication method for " + methodLogin}
	}
	return nil
}

// checkParams is the function of that name for requests of the client. It also refuses what clients must not send of
// features that are on: system prompts and lists of archived sessions that the agent did not advertise.
func (a *agentSide) checkParams(params any) *flaw {
	if wrong := checkParams(params); wrong != nil {
		return wrong
	}
	caps, on := a.handshake.Load().capabilities(), a.opts.Experimental
	if list, ok := params.(*ListSessionsRequest); ok && on&FeatureArchive != 0 && caps.lacksForListSessions(list) != "" {
		return &flaw{"/archived", "was not advertised"}
	}
	prompt, ok := systemPromptOf(params).Get()
	switch {
	case !ok || on&FeatureSystemPrompt == 0:
		return nil
	case caps.lacksForSystemPrompt(prompt) != "":
		return &flaw{"/systemPrompt", "was not advertised: it needs " + caps.lacksForSystemPrompt(prompt)}
	}
	return checkSystemPrompt(prompt)
}

// statesArchived wraps the handler of session/list: if archiving is advertised, each session says whether it is
// archived. Those that do not say it are, if the client has asked for archived ones only.
func (a *agentSide) statesArchived(
	list func(context.Context, *AgentConn, *ListSessionsRequest) (*ListSessionsResponse, error),
) func(context.Context, *AgentConn, *ListSessionsRequest) (*ListSessionsResponse, error) {
	if list == nil || a.handlers.ArchiveSession == nil {
		return list
	}
	return func(ctx context.Context, conn *AgentConn, req *ListSessionsRequest) (*ListSessionsResponse, error) {
		res, err := list(ctx, conn, req)
		if err != nil || res == nil {
			return res, err
		}
		changed := *res // the handler may return the same result to others
		changed.Sessions = slices.Clone(res.Sessions)
		for i := range changed.Sessions {
			if s := &changed.Sessions[i]; !s.Archived.Present() {
				s.Archived = Some(req.Archived.Value() == SessionArchiveFilterOnly)
			}
		}
		return &changed, nil
	}
}

// checkSetup is checkParams for requests that set up a session. It also refuses MCP servers that the agent did not
// advertise. A command that is not an absolute path is reported and left to the agent, which may find it as a shell
// does.
func (a *agentSide) checkSetup(method string) func(params any) *flaw {
	return func(params any) *flaw {
		if wrong := a.checkParams(params); wrong != nil {
			return wrong
		}
		servers := serversOf(params)
		for i := range servers {
			_, unknown := servers[i].Variant.(*MCPServerUnknown)
			one := &NewSessionRequest{MCPServers: servers[i : i+1]}
			if unknown || a.handshake.Load().capabilities().lacksForNewSession(one) != "" {
				return &flaw{fmt.Sprintf("/mcpServers/%d/type", i), "a type of MCP servers that was not advertised"}
			}
			if wrong := checkCommands(servers[i : i+1]); wrong != nil {
				(*engine.Conn)(a.conn.rpc).ReportRepair(method, codec.Repair{
					Pointer: fmt.Sprintf("/mcpServers/%d/command", i), Msg: wrong.reason + "; kept as it came",
				})
			}
		}
		return nil
	}
}

// authMethods leaves out the terminal methods for clients that do not ask for them.
func (a *agentSide) authMethods(client *ClientCapabilities) []AuthMethod {
	methods := slices.Clone(a.opts.AuthMethods)
	if !client.runsTerminals() && !runsTerminals(client.Meta) {
		methods = slices.DeleteFunc(methods, func(m AuthMethod) bool {
			_, terminal := m.Variant.(*AuthMethodTerminal)
			return terminal
		})
	}
	return methods
}
