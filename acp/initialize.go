package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/engine"
)

// Version is the protocol version that this package speaks.
const Version ProtocolVersion = 1

// AgentOptions configures what an agent advertises besides its handlers, and tunes its connection. Nil is the same as
// the zero value.
//
// The capabilities loadSession, sessionCapabilities.list, delete, resume and close, and auth.logout follow from the
// handlers that are set and have no option.
type AgentOptions struct {
	// Info names the agent and its version.
	Info Implementation
	// AuthMethods are the authentication methods, each with its own id. Methods of type terminal are offered only to
	// clients that can run them: those that advertise auth.terminal or, as the registry of agents does, set the member
	// "terminal-auth" of clientCapabilities._meta to true.
	AuthMethods []AuthMethod
	// Prompt advertises the content that prompts may have beyond text and resource links. Clients must not send other
	// content; if they do, it still reaches the handler.
	Prompt PromptCapabilities
	// MCP advertises the kinds of MCP servers that the agent connects to beyond those on stdio.
	MCP MCPCapabilities
	// AdditionalDirectories advertises that sessions may have more roots than their working directory. Otherwise
	// clients must not send any; if they do, the directories still reach the handler.
	AdditionalDirectories bool
	// SystemPrompt, if it has a value, advertises that sessions may be given a system prompt, and how. Others are refused,
	// except in modes of the agent's own, whose names begin with an underscore: the handler must know them.
	//
	// Experimental: any minor release may change or remove it. It needs [FeatureSystemPrompt].
	SystemPrompt Opt[SessionSystemPromptCapabilities]
	// Experimental enables experimental features. Handlers and options of features that are not enabled must not be
	// set, and calls and results that use such a feature fail with ErrExperimental.
	Experimental Features
	// Initialize, if set, may edit the answer to initialize before it is sent, or refuse the client
	// with an error. It must be quick and must not call the client.
	Initialize func(ctx context.Context, req *InitializeRequest, res *InitializeResponse) error
	// Conn tunes the connection.
	Conn ConnOptions
}

// advertise adds the capabilities that the options set.
func (o *AgentOptions) advertise(caps *AgentCapabilities) {
	caps.PromptCapabilities = o.Prompt
	caps.MCPCapabilities = o.MCP
	if o.AdditionalDirectories {
		caps.SessionCapabilities.AdditionalDirectories = Some(SessionAdditionalDirectoriesCapabilities{})
	}
	caps.SessionCapabilities.SystemPrompt = o.SystemPrompt
}

// ClientOptions configures what a client advertises besides its handlers, and tunes its connection. Nil is the same as
// the zero value.
//
// The capabilities fs.readTextFile, fs.writeTextFile and terminal follow from the handlers that are set and have no
// option.
type ClientOptions struct {
	// Info names the client and its version.
	Info Implementation
	// Elicitation advertises the modes of elicitation/create that the client's handler serves.
	Elicitation ElicitationCapabilities
	// Forms advertises that the handler of elicitation/create serves forms. It is shorthand for Elicitation.Form.
	Forms bool
	// BooleanConfig advertises that the client understands boolean config options, which agents must not send
	// otherwise. It is shorthand for Session.ConfigOptions.Boolean.
	BooleanConfig bool
	// Session advertises the session features that the client understands: boolean config options, notices, compaction.
	Session ClientSessionCapabilities
	// TerminalAuth advertises that the client can run an agent's terminal authentication methods.
	TerminalAuth bool
	// Plans advertises that the client understands plans with ids: the updates plan_update and plan_removed.
	//
	// Experimental: any minor release may change or remove it. It needs [FeaturePlans].
	Plans bool
	// Subagents advertises that the client understands sessions of subagents.
	//
	// Experimental: any minor release may change or remove it. It needs [FeatureSubagents].
	Subagents bool
	// Experimental enables experimental features. Handlers and options of features that are not enabled must not be
	// set, and calls and results that use such a feature fail with ErrExperimental.
	Experimental Features
	// Initialize, if set, may edit the initialize request before it is sent.
	Initialize func(req *InitializeRequest)
	// ConnectTimeout bounds the time to connect, up to the answer to initialize, if the context of Connect has no
	// deadline. 0 means two minutes; a negative value means no bound.
	ConnectTimeout time.Duration
	// Conn tunes the connection.
	Conn ConnOptions
}

// advertise adds the capabilities that the options set.
func (o *ClientOptions) advertise(caps *ClientCapabilities) {
	caps.Auth.Terminal = o.TerminalAuth
	e := o.Elicitation
	if o.Forms && !e.Form.Present() {
		e.Form = Some(ElicitationFormCapabilities{})
	}
	if e.Form.Present() || e.URL.Present() {
		caps.Elicitation = Some(e)
	}
	s := o.Session
	if o.BooleanConfig && !s.ConfigOptions.Value().Boolean.Present() {
		options := s.ConfigOptions.Value()
		options.Boolean = Some(BooleanConfigOptionCapabilities{})
		s.ConfigOptions = Some(options)
	}
	if s.Compaction.Present() || s.ConfigOptions.Present() || s.Notices.Present() || s.Meta != nil {
		caps.Session = Some(s)
	}
	if o.Plans {
		caps.Plan = Some(PlanCapabilities{})
	}
	if o.Subagents {
		caps.Subagents = Some(SubagentCapabilities{})
	}
}

func (x *InitializeRequest) serves(method string) bool { return x.ClientCapabilities.serves(method) }

func (x *InitializeResponse) serves(method string) bool { return x.AgentCapabilities.serves(method) }

func (x *ClientCapabilities) runsTerminals() bool { return x.Auth.Terminal }

// prepare checks the handlers and derives the capabilities from them and the options.
func (a *agentSide) prepare() (err error) {
	if a.handlers.NewSession == nil || a.handlers.Prompt == nil {
		return errors.New("acp: an agent needs the handlers NewSession and Prompt")
	}
	if err := checkAuthMethods(a.opts.AuthMethods); err != nil {
		return err
	}
	if a.caps, err = a.handlers.capabilities(); err != nil {
		return err
	}
	a.opts.advertise(&a.caps)
	if err := checkTogether(&a.caps); err != nil {
		return err
	}
	a.verify()
	return a.opts.Experimental.lacks("AgentOptions", &a.handlers, &a.caps)
}

// checkTogether refuses capabilities of which one needs another.
func checkTogether(caps *AgentCapabilities) error {
	if s := &caps.SessionCapabilities; s.Archive.Present() && !s.List.Present() {
		return errors.New("acp: an agent that archives sessions needs the handler ListSessions")
	}
	return nil
}

// verify wraps handlers so that their results are checked before they are sent.
func (a *agentSide) verify() {
	h, opts := &a.handlers, &a.opts.Conn
	h.NewSession = verified(opts, MethodNewSession, h.NewSession,
		func(_ *NewSessionRequest, res *NewSessionResponse) *flaw {
			return a.checkSession(res.Modes, res.ConfigOptions)
		})
	h.LoadSession = verified(opts, MethodLoadSession, h.LoadSession,
		func(_ *LoadSessionRequest, res *LoadSessionResponse) *flaw {
			return a.checkSession(res.Modes, res.ConfigOptions)
		})
	h.ResumeSession = verified(opts, MethodResumeSession, h.ResumeSession,
		func(_ *ResumeSessionRequest, res *ResumeSessionResponse) *flaw {
			return a.checkSession(res.Modes, res.ConfigOptions)
		})
	h.SetSessionConfigOption = verified(opts, MethodSetSessionConfigOption, h.SetSessionConfigOption,
		func(_ *SetSessionConfigOptionRequest, res *SetSessionConfigOptionResponse) *flaw {
			return a.conn.checkConfigOptions("/configOptions", res.ConfigOptions)
		})
	h.ListSessions = verified(opts, MethodListSessions, a.statesArchived(h.ListSessions), checkListed)
	h.ForkSession = verified(opts, MethodForkSession, h.ForkSession,
		func(_ *ForkSessionRequest, res *ForkSessionResponse) *flaw {
			return a.checkSession(res.Modes, res.ConfigOptions)
		})
	h.Prompt = verified(opts, MethodPrompt, stopped(h.Prompt), func(_ *PromptRequest, res *PromptResponse) *flaw {
		return checkKnown("/stopReason", res.StopReason)
	})
}

// checkSession refuses invalid modes and options in a handler's result for a session that it has opened, and warns if
// the session offers something without a handler for it.
func (a *agentSide) checkSession(modes Opt[SessionModeState], options Opt[[]SessionConfigOption]) *flaw {
	warnUnserved(&a.opts.Conn, modes.Present(), "modes", MethodSetSessionMode, a.handlers.SetSessionMode != nil)
	warnUnserved(&a.opts.Conn, len(options.Value()) > 0, "config options", MethodSetSessionConfigOption,
		a.handlers.SetSessionConfigOption != nil)
	return cmp.Or(checkModes(modes), a.conn.checkConfigOptions("/configOptions", options.Value()))
}

// stopped wraps the handler of prompts: a missing result becomes the stop reason end_turn, and the result of a
// cancelled turn gets the stop reason cancelled. The runtime answers an error in a cancelled turn in the same way.
func stopped(
	prompt func(context.Context, *AgentSession, *PromptRequest) (*PromptResponse, error),
) func(context.Context, *AgentSession, *PromptRequest) (*PromptResponse, error) {
	return func(ctx context.Context, session *AgentSession, req *PromptRequest) (*PromptResponse, error) {
		res, err := prompt(ctx, session, req)
		if err == nil && res == nil {
			res = &PromptResponse{StopReason: StopReasonEndTurn}
		}
		if err == nil && res.StopReason != StopReasonCancelled && errors.Is(context.Cause(ctx), ErrTurnCancelled) {
			changed := *res // the handler may return the same result for every turn
			changed.StopReason = StopReasonCancelled
			res = &changed
		}
		return res, err
	}
}

// configureRoute sets the turn, cancel and check options of a route.
func (a *agentSide) configureRoute(r *engine.Route) {
	switch r.Method {
	case MethodPrompt:
		r.Turn = true
		r.Cancelled = cancelledPrompt
	case MethodCancel:
		r.CancelsTurn = true
	case MethodCloseSession, MethodDeleteSession:
		r.EndsTurn = true
	case MethodAuthenticate:
		r.Check = asParams(a.checkLogin)
	case MethodNewSession, MethodLoadSession, MethodResumeSession, MethodForkSession:
		r.Check = asParams(a.checkSetup(r.Method))
		r.Opens = r.Method == MethodNewSession || r.Method == MethodForkSession
	}
}

// initializeRoute serves initialize.
func (a *agentSide) initializeRoute() engine.Route {
	return engine.HandleRequest(MethodInitialize, false, a.initialize)
}

// initialize negotiates the version: if the client's version is not ours, the answer has ours, and the client decides.
func (a *agentSide) initialize(ctx context.Context, req *InitializeRequest) (*InitializeResponse, error) {
	if a.handshake.Load() != nil {
		return nil, ErrInvalidRequest.WithMessagef("Invalid request: initialized already")
	}
	res := &InitializeResponse{
		ProtocolVersion:   Version,
		AgentCapabilities: a.caps,
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
	if err := errors.Join(a.opts.Experimental.lacks("AgentOptions", res),
		checkTogether(&res.AgentCapabilities)); err != nil {
		return nil, err
	}
	// An answer that cannot be sent must not count as the handshake.
	if _, err := codec.Append(nil, res); err != nil {
		return nil, fmt.Errorf("the answer: %w", err)
	}
	a.conn.handshake.Store(req)
	a.handshake.Store(res)
	return res, nil
}

// request makes the initialize request from handlers and options.
func (c *clientSide) request() (*InitializeRequest, error) {
	caps, err := c.handlers.capabilities()
	if err != nil {
		return nil, err
	}
	c.opts.advertise(&caps)
	if caps.Elicitation.Present() && c.handlers.CreateElicitation == nil {
		return nil, errors.New("acp: a client that advertises elicitation needs the handler CreateElicitation")
	}
	c.handlers.CreateTerminal = verified(
		&c.opts.Conn, MethodCreateTerminal, c.handlers.CreateTerminal,
		noExtraCheck[*CreateTerminalRequest, *CreateTerminalResponse])
	req := &InitializeRequest{ProtocolVersion: Version, ClientCapabilities: caps}
	if c.opts.Info.Name != "" {
		req.ClientInfo = Some(c.opts.Info)
	}
	if c.opts.Initialize != nil {
		c.opts.Initialize(req)
	}
	return req, c.opts.Experimental.lacks("ClientOptions", &c.handlers, req)
}

// initialize performs the handshake.
func (c *clientSide) initialize(ctx context.Context) error {
	// Handlers of messages that arrive right after the answer must find it.
	res, err := callThen(ctx, c.conn.rpc, methodInitialize, c.handshake, c.conn.handshake.Store)
	if err == nil && res.ProtocolVersion != Version {
		err = &VersionError{Got: res.ProtocolVersion}
	}
	return err
}
