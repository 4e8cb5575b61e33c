package agentkit

import (
	"context"
	"errors"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/internal/openturn"
)

// Sender sends the updates of one session. *acp.AgentSession is one, and so are Session and Turn. An agent of acp/unstable
// makes one of its session in a few lines: see the example.
type Sender interface {
	// Update sends an update. Updates arrive in the order of the calls.
	Update(ctx context.Context, update acp.SessionUpdate) error
}

// Asker sends the updates of one session, and asks its user. *acp.AgentSession, Session and Turn are such.
type Asker interface {
	Sender
	// RequestPermission asks whether a tool call may go on; see acp.AgentSession.
	RequestPermission(
		ctx context.Context, call acp.ToolCallUpdate, options ...acp.PermissionOption,
	) (acp.RequestPermissionOutcome, error)
}

// Errors to match with errors.Is. The peer may read the text of each: a handler may return one, and ToolCall.Fail
// shows it.
var (
	// ErrEnded says that the tool call, the text or the turn has ended already.
	ErrEnded = openturn.ErrEnded
	// ErrRejected says that the user was asked and did not allow the tool call.
	ErrRejected = openturn.ErrRejected
	// ErrDismissed says that the user, or the client in their place, left the question unanswered.
	ErrDismissed = openturn.ErrDismissed
	// ErrTooLarge says that a tool call cannot show all that; see ToolCall.
	ErrTooLarge = openturn.ErrTooLarge
)

// HandlePrompt makes of a handler of prompts one that leaves nothing open, for acp.AgentHandlers.Prompt, or for that of
// acp/unstable:
//
//	acp.AgentHandlers{NewSession: a.newSession, Prompt: agentkit.HandlePrompt(a.prompt)}
//
// What is started with the handler's context, or one derived from it, belongs to the turn. When the handler returns,
// and before the prompt is answered, texts that are open are closed, and then tool calls that are open are closed as
// failed; this also when the turn was cancelled, and when the handler panics. Nothing can be started with that context
// afterwards. Sessions do this by themselves.
func HandlePrompt[Session, Request, Response any](
	prompt func(context.Context, Session, *Request) (*Response, error),
) func(context.Context, Session, *Request) (*Response, error) {
	return func(ctx context.Context, s Session, req *Request) (res *Response, err error) {
		ctx, o := openturn.With(ctx)
		defer func() {
			if ended := o.End(ctx); ended != nil {
				res, err = nil, errors.Join(err, ended)
			}
		}()
		return prompt(ctx, s, req)
	}
}
