package agentkit

import (
	"context"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/internal/turns"
)

// Sender sends the updates of one session. *acp.AgentSession, Session and Turn implement it.
type Sender interface {
	// Update sends an update. Updates arrive in the order of the calls.
	Update(ctx context.Context, update acp.SessionUpdate) error
}

// Asker sends the updates of one session, and asks its user. *acp.AgentSession, Session and Turn implement it.
type Asker interface {
	Sender
	// RequestPermission asks the user whether a tool call may proceed; see acp.AgentSession.
	RequestPermission(
		ctx context.Context, call acp.ToolCallUpdate, options ...acp.PermissionOption,
	) (acp.RequestPermissionOutcome, error)
}

// Errors to match with errors.Is. Their texts may reach the peer: a handler may return one, and ToolCall.Fail shows it.
var (
	// ErrEnded reports that the tool call, the text or the turn has already ended.
	ErrEnded = turns.ErrEnded
	// ErrRejected reports that the user was asked and did not allow the tool call.
	ErrRejected = turns.ErrRejected
	// ErrDismissed reports that the user, or the client on the user's behalf, left the question unanswered. It is
	// acp.ErrDismissed.
	ErrDismissed = turns.ErrDismissed
	// ErrCallCancelled reports that the client has cancelled the tool call or the terminal, but not the turn; see
	// ToolCall.Cancellable.
	ErrCallCancelled = turns.ErrCallCancelled
	// ErrTooLarge reports that the content is too large for a tool call to show, or that the answer of a model is too
	// long; see ToolCall and Turn.Stream.
	ErrTooLarge = turns.ErrTooLarge
)
