package unstable

import (
	"context"

	"github.com/acpgo/sdk/internal/engine"
)

// AgentOptions say what an agent tells about itself.
//
// The capabilities that methods stand for follow from which handlers are set and have no option.
type AgentOptions struct {
	// Info names the agent and its version; it must be set.
	Info Implementation
	// AuthMethods are the ways to authenticate, each with an id of its own. Those of type terminal are offered only to clients
	// that can run them: that advertise auth.terminal, or, as the registry of agents does, have the
	// member "terminal-auth" of the capabilities' _meta true. An agent that has any needs the handlers
	// LoginAuth and LogoutAuth.
	AuthMethods []AuthMethod
	// Prompt says which content prompts may have beyond text and resource links.
	Prompt PromptCapabilities
	// MCP says which MCP servers the agent connects to.
	MCP MCPCapabilities
	// AdditionalDirectories says that sessions may have more roots than their working directory.
	AdditionalDirectories bool
	// SystemPrompt, if it has a value, says that sessions may be given a system prompt, and how.
	SystemPrompt Opt[SessionSystemPromptCapabilities]
	// Steer takes prompts that come while their session works at once, to steer that work. Otherwise
	// they are held until it is done.
	Steer bool
	// Background, if set, says what runs in a session independently of its foreground work; nil says
	// nothing of it. It is asked for each state that the runtime reports.
	Background func(id SessionID) []BackgroundWork
	// Initialize, if set, may edit the answer to initialize before it is sent, or refuse the client
	// with an error. It must be quick and must not call the client.
	Initialize func(ctx context.Context, req *InitializeRequest, res *InitializeResponse) error
	// Conn tunes the connection; its ConcurrentTurns has no meaning here.
	Conn ConnOptions
}

// advertise adds to what follows from the handlers.
func (o *AgentOptions) advertise(caps *AgentCapabilities) {
	o.baseAdvertise(caps)
	if session, ok := caps.Session.Get(); ok {
		session.SystemPrompt = o.SystemPrompt
		caps.Session = Some(session)
	}
}

// configureRoute is that of the draft's stable features, and looks at forks too.
func (a *agentSide) configureRoute(r *engine.Route) {
	a.baseConfigureRoute(r)
	if r.Method == MethodForkSession {
		r.Check = asParams(a.checkSetup(r.Method))
	}
}

// verify is that of the draft's stable features, and looks at forks too.
func (a *agentSide) verify() {
	a.baseVerify()
	h := &a.handlers
	h.ForkSession = verified(&a.opts.Conn, MethodForkSession, h.ForkSession, func(_ *ForkSessionRequest, res *ForkSessionResponse) *flaw {
		return a.checkSession(res.ConfigOptions)
	})
}
