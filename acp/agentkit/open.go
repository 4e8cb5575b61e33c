package agentkit

import (
	"context"
	"errors"

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

// HandlePrompt wraps a handler of prompts so that it leaves nothing open, for acp.AgentHandlers.Prompt:
//
//	acp.AgentHandlers{NewSession: a.newSession, Prompt: agentkit.HandlePrompt(a.prompt)}
//
// Texts and tool calls started with the handler's context, or one derived from it, belong to the turn. When the handler
// returns, and before the prompt is answered, open texts are closed, and then open tool calls are closed as failed.
// This also happens if the turn was cancelled or the handler panics. Nothing can be started with that context
// afterwards. An error that matches ErrDismissed ends the turn with the stop reason cancelled. Sessions does all of
// this itself, without HandlePrompt.
func HandlePrompt(
	prompt func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error),
) func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error) {
	return func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (res *acp.PromptResponse, err error) {
		ctx, o := turns.With(ctx)
		defer func() {
			if ended := o.End(ctx); ended != nil {
				res, err = nil, errors.Join(err, ended)
			}
		}()
		return undismissed(prompt(ctx, s, req))
	}
}
