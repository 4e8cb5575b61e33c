package acpv2

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
const Version ProtocolVersion = 2

// ErrUnsupportedVersion is the error with which an agent answers initialize if it supports no version as old as the
// client's.
var ErrUnsupportedVersion = &Error{Code: -32022, Message: "Unsupported protocol version"}

// AgentOptions configures what an agent advertises besides its handlers, and tunes its connection.
//
// The capabilities session and session.delete follow from the handlers that are set and have no option.
type AgentOptions struct {
	// Info names the agent and its version; it must be set.
	Info Implementation
	// AuthMethods are the authentication methods, each with its own id. Methods of type terminal are offered only to
	// clients that can run them: those that advertise auth.terminal or, as the registry of agents does, set the member
	// "terminal-auth" of the capabilities' _meta to true. An agent with any methods needs the handlers LoginAuth and
	// LogoutAuth.
	AuthMethods []AuthMethod
	// Prompt advertises the content that prompts may have beyond text and resource links. Clients must not send other
	// content; if they do, it still reaches the handler.
	Prompt PromptCapabilities
	// MCP advertises the kinds of MCP servers that the agent connects to.
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
	// Steer makes the runtime accept prompts that arrive while their session is working, so that they steer the work.
	// Otherwise they are held until the work is done.
	Steer bool
	// Background, if set, returns the work that runs in a session independently of its foreground work; if it returns
	// nil, no background work is reported. It is called for each state that the runtime reports.
	Background func(id SessionID) []BackgroundWork
	// Initialize, if set, may edit the answer to initialize before it is sent, or refuse the client
	// with an error. It must be quick and must not call the client.
	Initialize func(ctx context.Context, req *InitializeRequest, res *InitializeResponse) error
	// Conn tunes the connection; its ConcurrentTurns has no effect.
	Conn ConnOptions
}

// advertise adds the capabilities that the options set.
func (o *AgentOptions) advertise(caps *AgentCapabilities) {
	session, ok := caps.Session.Get()
	if !ok {
		return
	}
	if p := o.Prompt; p.Image.Present() || p.Audio.Present() || p.EmbeddedContext.Present() || p.Meta != nil {
		session.Prompt = Some(p)
	}
	if m := o.MCP; m.Stdio.Present() || m.HTTP.Present() || m.ACP.Present() || m.Meta != nil {
		session.MCP = Some(m)
	}
	if o.AdditionalDirectories {
		session.AdditionalDirectories = Some(SessionAdditionalDirectoriesCapabilities{})
	}
	session.SystemPrompt = o.SystemPrompt
	caps.Session = Some(session)
}

// ClientOptions configures what a client advertises besides its handlers, and tunes its connection.
type ClientOptions struct {
	// Info names the client and its version; it must be set.
	Info Implementation
	// Elicitation advertises the modes of elicitation/create that the client's handler serves.
	Elicitation ElicitationCapabilities
	// TerminalAuth advertises that the client can run an agent's terminal authentication methods.
	TerminalAuth bool
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
	if e := o.Elicitation; e.Form.Present() || e.URL.Present() || e.Meta != nil {
		caps.Elicitation = Some(e)
	}
	if o.TerminalAuth {
		caps.Auth = Some(ClientAuthCapabilities{Terminal: Some(TerminalAuthCapabilities{})})
	}
}

func (x *InitializeRequest) serves(method string) bool { return x.Capabilities.serves(method) }

func (x *InitializeResponse) serves(method string) bool {
	switch method {
	case MethodLoginAuth, MethodLogoutAuth:
		return len(x.AuthMethods) > 0
	}
	return x.Capabilities.serves(method)
}

func (x *ClientCapabilities) runsTerminals() bool { return x.Auth.Value().Terminal.Present() }

var errNoInfo = errors.New("acp: version 2 requires Info.Name in the options")

// prepare checks the handlers and derives the capabilities from them and the options.
func (a *agentSide) prepare() (err error) {
	h := &a.handlers
	switch {
	case a.opts.Info.Name == "":
		return errNoInfo
	case len(a.opts.AuthMethods) > 0 && (h.LoginAuth == nil || h.LogoutAuth == nil):
		return errors.New("acp: an agent with AuthMethods needs the handlers LoginAuth and LogoutAuth")
	}
	if err := cmp.Or(checkAuthMethods(a.opts.AuthMethods), checkLogins(a.opts.AuthMethods)); err != nil {
		return err
	}
	if a.caps, err = h.capabilities(); err != nil {
		return err
	}
	if a.caps.Session.Present() && h.NewSession == nil {
		return errors.New("acp: an agent with handlers for sessions, such as DeleteSession, needs those of the " +
			"capability session")
	}
	a.opts.advertise(&a.caps)
	a.opts.Conn.ConcurrentTurns = true // StartTurn holds prompts
	if resume := h.ResumeSession; resume != nil {
		h.ResumeSession = func(ctx context.Context, session *AgentSession, req *ResumeSessionRequest) (*ResumeSessionResponse,
			error) {
			res, err := resume(ctx, session, req)
			if err == nil {
				err = session.repeatState(ctx)
			}
			return res, err
		}
	}
	a.verify()
	return a.opts.Experimental.lacks("AgentOptions", h, &a.caps)
}

// verify makes the connection check the results of the handlers before they are sent.
func (a *agentSide) verify() {
	h, opts := &a.handlers, &a.opts.Conn
	h.NewSession = verified(opts, MethodNewSession, h.NewSession,
		func(_ *NewSessionRequest, res *NewSessionResponse) *flaw {
			return a.checkSession(res.ConfigOptions)
		})
	h.ResumeSession = verified(opts, MethodResumeSession, h.ResumeSession,
		func(_ *ResumeSessionRequest, res *ResumeSessionResponse) *flaw {
			return a.checkSession(res.ConfigOptions)
		})
	h.SetSessionConfigOption = verified(opts, MethodSetSessionConfigOption, h.SetSessionConfigOption,
		func(_ *SetSessionConfigOptionRequest, res *SetSessionConfigOptionResponse) *flaw {
			return checkConfigOptions("/configOptions", res.ConfigOptions)
		})
	h.ListSessions = verified(opts, MethodListSessions, a.statesArchived(h.ListSessions), checkListed)
	h.ForkSession = verified(opts, MethodForkSession, h.ForkSession,
		func(_ *ForkSessionRequest, res *ForkSessionResponse) *flaw {
			return a.checkSession(res.ConfigOptions)
		})
	h.Prompt = verified(opts, MethodPrompt, h.Prompt, noExtraCheck[*PromptRequest, *PromptResponse])
}

// checkSession refuses repeated ids of config options in a result that opens a session, and warns about options without
// a handler for them.
func (a *agentSide) checkSession(options []SessionConfigOption) *flaw {
	warnUnserved(&a.opts.Conn, len(options) > 0, "config options", MethodSetSessionConfigOption,
		a.handlers.SetSessionConfigOption != nil)
	return checkConfigOptions("/configOptions", options)
}

// configureRoute sets the turn, cancel and check options of a route.
func (a *agentSide) configureRoute(r *engine.Route) {
	a.conn.background, a.conn.steer = a.opts.Background, a.opts.Steer
	switch r.Method {
	case MethodPrompt:
		r.Turn = true
	case MethodCancel:
		r.CancelsTurn = true
	case MethodCloseSession, MethodDeleteSession:
		r.EndsTurn = true
	case MethodLoginAuth:
		r.Check = asParams(a.checkLogin)
	case MethodNewSession, MethodResumeSession, MethodForkSession:
		r.Check = asParams(a.checkSetup(r.Method))
		r.Opens = r.Method != MethodResumeSession
	}
}

// initializeRoute serves initialize.
func (a *agentSide) initializeRoute() engine.Route {
	return engine.HandleRequest(MethodInitialize, false,
		func(ctx context.Context, req *initializeQuestion) (*InitializeResponse, error) {
			return a.initialize(ctx, &req.InitializeRequest)
		})
}

// initializeQuestion holds the parameters of initialize. If the client's version is older than ours, only the version
// is decoded.
type initializeQuestion struct {
	InitializeRequest
}

// DecodeJSON implements codec.Value.
func (x *initializeQuestion) DecodeJSON(d *codec.Decoder) {
	if version, ok := versionAhead(d); ok && version < Version {
		x.ProtocolVersion = version
		d.Skip()
		return
	}
	codec.Decode(d, &x.InitializeRequest)
}

// versionAhead returns the protocol version in the next object, without consuming it.
func versionAhead(d *codec.Decoder) (version ProtocolVersion, ok bool) {
	begin := d.Mark()
	for o := d.Object(); o.Next(); {
		if string(o.Name()) == "protocolVersion" {
			version = ProtocolVersion(d.Uint(16))
			ok = true
		} else {
			d.Skip()
		}
	}
	if d.Err() != nil {
		return 0, false
	}
	d.Rewind(begin)
	return version, ok
}

// initialize negotiates the version. A client may repeat it until it makes another request.
func (a *agentSide) initialize(ctx context.Context, req *InitializeRequest) (*InitializeResponse, error) {
	if a.used.Load() {
		return nil, ErrInvalidRequest.WithMessagef("Invalid request: initialized already")
	}
	if req.ProtocolVersion < Version {
		return nil, ErrUnsupportedVersion.WithData(versions{req.ProtocolVersion, []ProtocolVersion{Version}})
	}
	res := &InitializeResponse{
		ProtocolVersion: Version,
		Info:            a.opts.Info,
		Capabilities:    a.caps,
		AuthMethods:     a.authMethods(&req.Capabilities),
	}
	if a.opts.Initialize != nil {
		if err := a.opts.Initialize(ctx, req, res); err != nil {
			return nil, err
		}
	}
	if err := a.opts.Experimental.lacks("AgentOptions", res); err != nil {
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

// versions is the data of ErrUnsupportedVersion.
type versions struct {
	Requested ProtocolVersion   `json:"requested"`
	Supported []ProtocolVersion `json:"supported"`
}

// request makes the initialize request from handlers and options.
func (c *clientSide) request() (*InitializeRequest, error) {
	if c.opts.Info.Name == "" {
		return nil, errNoInfo
	}
	caps, err := c.handlers.capabilities()
	if err != nil {
		return nil, err
	}
	c.opts.advertise(&caps)
	if caps.Elicitation.Present() && c.handlers.CreateElicitation == nil {
		return nil, errors.New("acp: a client that advertises elicitation needs the handler CreateElicitation")
	}
	if ask := c.handlers.RequestPermission; ask != nil {
		c.handlers.RequestPermission = func(
			ctx context.Context, session *ClientSession, req *RequestPermissionRequest,
		) (*RequestPermissionResponse, error) {
			res, err := ask(ctx, session, req)
			if err != nil && errors.Is(context.Cause(ctx), ErrRequestCancelled) {
				return cancelledPermission(), nil
			}
			return res, err
		}
	}
	req := &InitializeRequest{ProtocolVersion: Version, Info: c.opts.Info, Capabilities: caps}
	if c.opts.Initialize != nil {
		c.opts.Initialize(req)
	}
	return req, c.opts.Experimental.lacks("ClientOptions", &c.handlers, req)
}

// initializeAnswer holds the agent's answer to initialize. If its version is not ours, only the version is decoded.
type initializeAnswer struct {
	InitializeResponse
}

// DecodeJSON implements codec.Value.
func (x *initializeAnswer) DecodeJSON(d *codec.Decoder) {
	version, _ := versionAhead(d)
	if version != Version {
		x.ProtocolVersion = version
		d.Skip()
		return
	}
	codec.Decode(d, &x.InitializeResponse)
}

// initialize performs the handshake.
func (c *clientSide) initialize(ctx context.Context) error {
	m := requestMethod[*InitializeRequest, *initializeAnswer]{Name: MethodInitialize}
	res, err := callThen(ctx, c.conn.rpc, m, c.handshake, func(res *initializeAnswer) {
		if res.ProtocolVersion == Version {
			// Handlers of messages that arrive right after the answer must find it.
			c.conn.handshake.Store(&res.InitializeResponse)
		}
	})
	if err == nil && res.ProtocolVersion != Version {
		err = &VersionError{Got: res.ProtocolVersion}
	}
	return err
}
