package agentkit

import (
	"context"
	"errors"

	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/internal/turns"
)

// Sender sends the updates of one session. *acpv2.AgentSession and Session implement it.
type Sender interface {
	// Update sends an update. Updates arrive in the order of the calls.
	Update(ctx context.Context, update acpv2.SessionUpdate) error
}

// Asker sends the updates of one session, and asks its user. *acpv2.AgentSession and Session implement it.
type Asker interface {
	Sender
	// RequestPermission asks the user for permission; see acpv2.AgentSession.
	RequestPermission(ctx context.Context, req *acpv2.RequestPermissionRequest) (acpv2.RequestPermissionOutcome, error)
}

// Errors to match with errors.Is. Their texts may reach the peer: a handler may return one, and ToolCall.Fail shows it.
var (
	// ErrEnded reports that the tool call, the terminal, the text or the turn has already ended.
	ErrEnded = turns.ErrEnded
	// ErrRejected reports that the user was asked and did not allow the tool call.
	ErrRejected = turns.ErrRejected
	// ErrDismissed reports that the user, or the client on the user's behalf, left the question unanswered. It is
	// acpv2.ErrDismissed.
	ErrDismissed = turns.ErrDismissed
	// ErrTooLarge reports that the content is too large for a tool call to show; see ToolCall.
	ErrTooLarge = turns.ErrTooLarge
)

// HandleWork wraps the work of a turn so that it leaves nothing open, for acpv2.AgentSession.StartTurn:
//
//	return session.StartTurn(ctx, req, agentkit.HandleWork(work))
//
// Texts, tool calls and terminals started with the work's context, or one derived from it, belong to the turn. When the
// work returns, and before the session is idle, open texts are closed, then tool calls are closed as failed, or as
// cancelled if the turn was cancelled, and terminals as exited. This also happens if the work panics. Nothing can be
// started with that context afterwards. Sessions does all of this itself, without HandleWork.
func HandleWork(work acpv2.Work) acpv2.Work {
	return func(ctx context.Context) (idle acpv2.IdleStateUpdate, err error) {
		ctx, turn := turns.With(ctx)
		defer func() {
			if ended := turn.End(ctx); ended != nil {
				err = errors.Join(err, ended)
			}
		}()
		return work(ctx)
	}
}
