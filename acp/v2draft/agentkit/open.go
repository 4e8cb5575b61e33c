package agentkit

import (
	"context"
	"errors"

	"github.com/acpgo/sdk/acp/v2draft"
	"github.com/acpgo/sdk/internal/turns"
)

// Sender sends the updates of one session. *v2draft.AgentSession is one, and so is Session.
type Sender interface {
	// Update sends an update. Updates arrive in the order of the calls.
	Update(ctx context.Context, update v2draft.SessionUpdate) error
}

// Asker sends the updates of one session, and asks its user. *v2draft.AgentSession and Session are such.
type Asker interface {
	Sender
	// RequestPermission asks whether something may be done; see v2draft.AgentSession.
	RequestPermission(ctx context.Context, req *v2draft.RequestPermissionRequest) (v2draft.RequestPermissionOutcome, error)
}

// Errors to match with errors.Is. The peer may read the text of each: a handler may return one, and ToolCall.Fail
// shows it.
var (
	// ErrEnded says that the tool call, the terminal, the text or the turn has ended already.
	ErrEnded = turns.ErrEnded
	// ErrRejected says that the user was asked and did not allow the tool call.
	ErrRejected = turns.ErrRejected
	// ErrDismissed says that the user, or the client in their place, left the question unanswered. It is v2draft.ErrDismissed.
	ErrDismissed = turns.ErrDismissed
	// ErrTooLarge says that a tool call cannot show all that; see ToolCall.
	ErrTooLarge = turns.ErrTooLarge
)

// HandleWork makes of the work of a turn one that leaves nothing open, for v2draft.AgentSession.StartTurn:
//
//	return session.StartTurn(ctx, req, agentkit.HandleWork(work))
//
// What is started with the work's context, or one derived from it, belongs to the turn. When the work returns, and before
// the session is idle, texts that are open are closed, then tool calls as failed, or as cancelled if the turn was, and
// terminals as exited; this also when the work panics. Nothing can be started with that context afterwards. Sessions do
// this by themselves.
func HandleWork(work v2draft.Work) v2draft.Work {
	return func(ctx context.Context) (idle v2draft.IdleStateUpdate, err error) {
		ctx, turn := turns.With(ctx)
		defer func() {
			if ended := turn.End(ctx); ended != nil {
				err = errors.Join(err, ended)
			}
		}()
		return work(ctx)
	}
}
