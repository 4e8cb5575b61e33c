package agentkit

import "github.com/acpgo/sdk/acp"

// Decider decides about the tool calls of an agent, for [Config].Decide. It must be safe for concurrent use.
type Decider interface {
	// Decide decides about a tool call, as the client knows it. If kind allows or rejects, that is the answer, and why,
	// which the client shows for a rejected call, explains it; if kind is "", the user is asked. An error is that of
	// ToolCall.Ask.
	Decide(session Place, call acp.ToolCall) (kind acp.PermissionOptionKind, why string, err error)
}

// Rememberer is implemented by a [Decider] that remembers decisions of the user.
type Rememberer interface {
	// Remember stores a decision about a tool call: kind is allow_always or reject_always. Decide should return it for
	// such calls from then on. If Remember fails, the decision holds for this call, which shows the error.
	Remember(session Place, call acp.ToolCall, kind acp.PermissionOptionKind) error
}

// Moder is implemented by a [Decider] that decides by the mode of the session.
type Moder interface {
	// Modes returns the modes of a session; the first one is that of a new session. See Opening.Modes.
	Modes() []acp.SessionMode
}

// Place is the session of a tool call, as a [Decider] sees it: a *Session, with the author's type of state.
type Place = interface {
	ID() acp.SessionID
	Cwd() string
	Mode() acp.SessionModeID
}
