package unstable

import (
	"context"
	"time"

	"github.com/acpgo/sdk/internal/engine"
)

// AgentOptions say what an agent advertises besides its handlers, and tune its connection. Nil is the same as the zero
// value.
//
// The capabilities that methods stand for follow from which handlers are set and have no option.
type AgentOptions struct {
	// Info names the agent and its version.
	Info Implementation
	// AuthMethods are the ways to authenticate, each with an id of its own. Those of type terminal are offered only to clients
	// that can run them: that advertise auth.terminal, or, as the registry of agents does, have the
	// member "terminal-auth" of the capabilities' _meta true.
	AuthMethods []AuthMethod
	// Prompt says which content prompts may have beyond text and resource links.
	Prompt PromptCapabilities
	// MCP says which MCP servers the agent connects to beyond those on stdio.
	MCP MCPCapabilities
	// AdditionalDirectories says that sessions may have more roots than their working directory.
	AdditionalDirectories bool
	// SystemPrompt, if it has a value, says that sessions may be given a system prompt, and how.
	SystemPrompt Opt[SessionSystemPromptCapabilities]
	// Initialize, if set, may edit the answer to initialize before it is sent, or refuse the client
	// with an error. It must be quick and must not call the client.
	Initialize func(ctx context.Context, req *InitializeRequest, res *InitializeResponse) error
	// Conn tunes the connection.
	Conn ConnOptions
}

// advertise adds to what follows from the handlers.
func (o *AgentOptions) advertise(caps *AgentCapabilities) {
	o.baseAdvertise(caps)
	caps.SessionCapabilities.SystemPrompt = o.SystemPrompt
}

// ClientOptions say what a client advertises besides its handlers, and tune its connection. Nil is the same as the
// zero value.
//
// The capabilities that methods stand for follow from which handlers are set and have no option.
type ClientOptions struct {
	// Info names the client and its version.
	Info Implementation
	// Elicitation says which modes of elicitation/create the client's handler serves.
	Elicitation ElicitationCapabilities
	// BooleanConfig says that the client understands boolean config options, which agents must not send otherwise.
	// It is short for Session.ConfigOptions.Boolean.
	BooleanConfig bool
	// Session says which session features the client understands: boolean config options, notices,
	// compaction.
	Session ClientSessionCapabilities
	// TerminalAuth says that the client can run an agent's terminal authentication methods.
	TerminalAuth bool
	// Plans says that the client understands plans with ids: the updates plan_update and plan_removed.
	Plans bool
	// Subagents says that the client understands sessions of subagents.
	Subagents bool
	// Initialize, if set, may edit the initialize request before it is sent.
	Initialize func(req *InitializeRequest)
	// ConnectTimeout bounds how long connecting may take, up to the answer to initialize, if the context of
	// Connect has no deadline. 0 means two minutes; less than 0 means no bound.
	ConnectTimeout time.Duration
	// Conn tunes the connection.
	Conn ConnOptions
}

// advertise adds to what follows from the handlers.
func (o *ClientOptions) advertise(caps *ClientCapabilities) {
	o.baseAdvertise(caps)
	if o.Plans {
		caps.Plan = Some(PlanCapabilities{})
	}
	if o.Subagents {
		caps.Subagents = Some(SubagentCapabilities{})
	}
}

// configureRoute is that of the stable features, and looks at forks too.
func (a *agentSide) configureRoute(r *engine.Route) {
	a.baseConfigureRoute(r)
	if r.Method == MethodForkSession {
		r.Check = asParams(a.checkSetup(r.Method))
	}
}

// verify is that of the stable features, and looks at forks too.
func (a *agentSide) verify() {
	a.baseVerify()
	h := &a.handlers
	h.ForkSession = verified(&a.opts.Conn, MethodForkSession, h.ForkSession, func(_ *ForkSessionRequest, res *ForkSessionResponse) *flaw {
		return a.checkSession(res.Modes, res.ConfigOptions)
	})
}

// checkPlan refuses a plan whose entries are wrong.
func checkPlan(plan *PlanUpdateContent) *flaw {
	if items, ok := plan.Variant.(*PlanUpdateContentItems); ok && items != nil {
		return checkEntries("/update/plan/entries", items.Entries)
	}
	return nil
}
