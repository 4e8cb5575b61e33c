// This file owns the two peers: what either side knows of the other, and the calls that need more than
// the generated ones.

package acp

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/acpgo/sdk/acp/rpc"
)

// ClientPeer is the client as its agent sees it, with a typed call for every method that clients
// serve. A call that the client did not advertise fails with ErrUnsupported and is not sent. Its
// methods are safe for concurrent use.
type ClientPeer struct {
	conn *rpc.Conn
	said atomic.Pointer[InitializeRequest]
}

// Conn is the connection, for extension methods: rpc.Call, rpc.Notify.
func (c *ClientPeer) Conn() *rpc.Conn { return c.conn }

// Initialized is what the client said of itself in initialize; before that, nil. It must not be
// changed.
func (c *ClientPeer) Initialized() *InitializeRequest { return c.said.Load() }

// Session is the client scoped to one session. It costs nothing and checks nothing.
func (c *ClientPeer) Session(id SessionID) *SessionClient { return &SessionClient{peer: c, id: id} }

// Capabilities are what the client advertised; before initialize, nothing.
func (c *ClientPeer) Capabilities() ClientCapabilities { return *c.capabilities() }

// SupportsBooleanConfig reports whether the client advertised that it understands boolean config
// options, which must not be sent otherwise.
func (c *ClientPeer) SupportsBooleanConfig() bool {
	return c.sessionCapabilities().ConfigOptions.Value().Boolean.Present()
}

func (c *ClientPeer) capabilities() *ClientCapabilities {
	if said := c.said.Load(); said != nil {
		return &said.ClientCapabilities
	}
	return &ClientCapabilities{}
}

func (c *ClientPeer) sessionCapabilities() ClientSessionCapabilities {
	return c.capabilities().Session.Value()
}

// checkSessionUpdate refuses updates of kinds that are sent only to clients that ask for them.
func (c *ClientPeer) checkSessionUpdate(n *SessionNotification) error {
	switch n.Update.Variant.(type) {
	case *SessionUpdateNotice:
		if !c.sessionCapabilities().Notices.Present() {
			return unsupported(MethodSessionUpdate, "session.notices")
		}
	case *SessionUpdateCompactionUpdate, *SessionUpdateCompactionSummaryChunk:
		if !c.sessionCapabilities().Compaction.Present() {
			return unsupported(MethodSessionUpdate, "session.compaction")
		}
	}
	return nil
}

// checkCreateElicitation refuses modes that the client did not advertise.
func (c *ClientPeer) checkCreateElicitation(req *CreateElicitationRequest) error {
	caps := c.capabilities().Elicitation.Value()
	switch req.Variant.(type) {
	case *CreateElicitationRequestForm:
		if !caps.Form.Present() {
			return unsupported(MethodCreateElicitation, "elicitation.form")
		}
	case *CreateElicitationRequestURL:
		if !caps.URL.Present() {
			return unsupported(MethodCreateElicitation, "elicitation.url")
		}
	}
	return nil
}

// checkCompleteElicitation refuses to complete what could not have been asked.
func (c *ClientPeer) checkCompleteElicitation(*CompleteElicitationNotification) error {
	if !c.capabilities().Elicitation.Value().URL.Present() {
		return unsupported(MethodCompleteElicitation, "elicitation.url")
	}
	return nil
}

// AgentPeer is the agent as its client sees it, with a typed call for every method that agents serve.
// A call that the agent did not advertise fails with ErrUnsupported and is not sent. Its methods are
// safe for concurrent use.
type AgentPeer struct {
	conn *rpc.Conn
	said atomic.Pointer[InitializeResponse]
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
		return &said.AgentCapabilities
	}
	return &AgentCapabilities{}
}

// Prompt runs a turn and waits for its end (session/prompt). When ctx ends, the turn is cancelled as
// the protocol says: session/cancel is sent, open permission requests of the session are answered as
// cancelled, and the agent's answer, stop reason cancelled, is waited for, for at most
// ConnOptions.CancelGrace; only then the cause of ctx is returned.
func (a *AgentPeer) Prompt(ctx context.Context, req *PromptRequest) (*PromptResponse, error) {
	if err := a.checkPrompt(req); err != nil {
		return nil, err
	}
	return rpc.RunTurn(ctx, a.conn, methodPrompt, req, turnSpec(req.SessionID))
}

// Cancel cancels the session's turns (session/cancel): those of this connection's own go on as Prompt
// says when its context ends. Without any the client's open permission requests of the session are
// answered as cancelled all the same, and to the agent it is harmless.
func (a *AgentPeer) Cancel(ctx context.Context, n *CancelNotification) error {
	spec := turnSpec(n.SessionID)
	spec.CancelParams = n
	return a.conn.CancelSession(ctx, spec)
}

func turnSpec(id SessionID) rpc.TurnSpec {
	return rpc.TurnSpec{
		Session:      string(id),
		CancelMethod: MethodCancel,
		CancelParams: &CancelNotification{SessionID: id},
	}
}

// checkPrompt refuses content that the agent did not say it takes.
func (a *AgentPeer) checkPrompt(req *PromptRequest) error {
	caps := &a.capabilities().PromptCapabilities
	for _, block := range req.Prompt {
		var capability string
		switch block.Variant.(type) {
		case *ContentBlockImage:
			if !caps.Image {
				capability = "promptCapabilities.image"
			}
		case *ContentBlockAudio:
			if !caps.Audio {
				capability = "promptCapabilities.audio"
			}
		case *ContentBlockResource:
			if !caps.EmbeddedContext {
				capability = "promptCapabilities.embeddedContext"
			}
		}
		if capability != "" {
			return unsupported(MethodPrompt, capability)
		}
	}
	return nil
}

func (a *AgentPeer) checkNewSession(req *NewSessionRequest) error {
	if err := checkParams(req); err != nil {
		return fmt.Errorf("%s: %w", MethodNewSession, err)
	}
	return a.checkSetup(MethodNewSession, req.AdditionalDirectories, req.MCPServers)
}

func (a *AgentPeer) checkLoadSession(req *LoadSessionRequest) error {
	if !a.capabilities().LoadSession {
		return unsupported(MethodLoadSession, "loadSession")
	}
	if err := checkParams(req); err != nil {
		return fmt.Errorf("%s: %w", MethodLoadSession, err)
	}
	return a.checkSetup(MethodLoadSession, req.AdditionalDirectories, req.MCPServers)
}

func (a *AgentPeer) checkResumeSession(req *ResumeSessionRequest) error {
	if !a.capabilities().SessionCapabilities.Resume.Present() {
		return unsupported(MethodResumeSession, "sessionCapabilities.resume")
	}
	if err := checkParams(req); err != nil {
		return fmt.Errorf("%s: %w", MethodResumeSession, err)
	}
	return a.checkSetup(MethodResumeSession, req.AdditionalDirectories, req.MCPServers)
}

// checkSetup refuses what a session may only be given by capability.
func (a *AgentPeer) checkSetup(method string, roots []string, servers []MCPServer) error {
	caps := a.capabilities()
	if len(roots) > 0 && !caps.SessionCapabilities.AdditionalDirectories.Present() {
		return unsupported(method, "sessionCapabilities.additionalDirectories")
	}
	for _, server := range servers {
		switch server.Variant.(type) {
		case *MCPServerHTTP:
			if !caps.MCPCapabilities.HTTP {
				return unsupported(method, "mcpCapabilities.http")
			}
		case *MCPServerSSE:
			if !caps.MCPCapabilities.SSE {
				return unsupported(method, "mcpCapabilities.sse")
			}
		}
	}
	return nil
}

var errTerminalAuth = errors.New("terminal methods are run, not passed to authenticate")

// checkAuthenticate refuses the ids of terminal methods, which are not for authenticate, and ids that
// the agent did not offer.
func (a *AgentPeer) checkAuthenticate(req *AuthenticateRequest) error {
	said := a.said.Load()
	if said == nil {
		return nil
	}
	for _, m := range said.AuthMethods {
		switch m := m.Variant.(type) {
		case *AuthMethodTerminal:
			if m.ID == req.MethodID {
				return fmt.Errorf("%s: %w", MethodAuthenticate, errTerminalAuth)
			}
		case *AuthMethodAgent:
			if m.ID == req.MethodID {
				return nil
			}
		}
	}
	return fmt.Errorf("%s: %w: the agent does not offer the method %q", MethodAuthenticate, ErrUnsupported, req.MethodID)
}
