// This file owns the turns of version 1: a prompt, the updates that come meanwhile, and the answer that
// ends it.

package acp

import (
	"context"

	"github.com/acpgo/sdk/acp/rpc"
)

// Update sends an update (session/update). Updates arrive in the order in which they were sent, and
// before the answer to the prompt if they are sent before its handler returns. With the context of a
// turn that was cancelled it still sends, and waits ten seconds at most while too much is unsent.
func (s *AgentSession) Update(ctx context.Context, update SessionUpdate) error {
	ctx, done := lasting(ctx)
	defer done()
	return s.conn.SessionUpdate(ctx, &SessionNotification{SessionID: s.id, Update: update})
}

// Prompt runs a turn and waits for its end (session/prompt). When ctx ends, the turn is cancelled as
// the protocol says: session/cancel is sent, open permission requests of the session are answered as
// cancelled, and the agent's answer, stop reason cancelled, is waited for, for at most
// ConnOptions.CancelGrace; only then the cause of ctx is returned.
func (c *ClientConn) Prompt(ctx context.Context, req *PromptRequest) (*PromptResponse, error) {
	if missing := c.capabilities().lacksForPrompt(req); missing != "" {
		return nil, unsupported(MethodPrompt, missing)
	}
	return rpc.RunTurn(ctx, c.rpc, methodPrompt, req, turnSpec(req.SessionID))
}

// Cancel cancels the session's turns (session/cancel): those of this connection's own go on as Prompt
// says when its context ends. Without any the client's open permission requests of the session are
// answered as cancelled all the same, and to the agent it is harmless.
func (c *ClientConn) Cancel(ctx context.Context, n *CancelNotification) error {
	spec := turnSpec(n.SessionID)
	spec.CancelParams = n
	return c.rpc.CancelSession(ctx, spec)
}

func turnSpec(id SessionID) rpc.TurnSpec {
	return rpc.TurnSpec{
		Session:      string(id),
		CancelMethod: MethodCancel,
		CancelParams: &CancelNotification{SessionID: id},
	}
}

// Prompt runs a turn and waits for its end; updates go to the client's handler. See ClientConn.Prompt
// for what happens when ctx ends.
func (s *ClientSession) Prompt(ctx context.Context, prompt ...ContentBlock) (*PromptResponse, error) {
	return s.conn.Prompt(ctx, &PromptRequest{SessionID: s.id, Prompt: prompt})
}

// Turn is a prompt in progress: Updates yields its updates as they come, Result waits for its end, and
// Cancel cancels it.
type Turn = rpc.Turn[SessionUpdate, PromptResponse]

// Stream starts a turn whose updates are read as they come. They also go to the client's handler, if it
// has one; a loop over the updates inside that handler would wait for itself. The turn is over when
// Result returns.
func (s *ClientSession) Stream(ctx context.Context, prompt ...ContentBlock) *Turn {
	req := &PromptRequest{SessionID: s.id, Prompt: prompt}
	if missing := s.conn.capabilities().lacksForPrompt(req); missing != "" {
		return rpc.FailedTurn[SessionUpdate, PromptResponse](s.conn.rpc, unsupported(MethodPrompt, missing))
	}
	return rpc.StartTurn(ctx, s.conn.rpc, methodPrompt, req, turnSpec(s.id), func(params any) (SessionUpdate, bool) {
		n, ok := params.(*SessionNotification)
		if !ok {
			return SessionUpdate{}, false
		}
		return n.Update, true
	})
}

// Cancel cancels the session's turns (session/cancel) and does not wait for their end. Without a turn
// it is harmless.
func (s *ClientSession) Cancel(ctx context.Context) error {
	return s.conn.Cancel(ctx, &CancelNotification{SessionID: s.id})
}
