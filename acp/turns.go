package acp

import (
	"context"
	"iter"

	"github.com/acpgo/sdk/internal/engine"
)

// Update sends an update (session/update). Updates arrive in the order in which they were sent, and before the answer
// to the prompt if they are sent before its handler returns. It returns when the update is on its way, and blocks
// while too much is unsent, up to the end of ctx. With the context of a turn that was cancelled it still sends, and
// blocks for at most ten seconds. A kind of update that needs a capability, such as a notice, fails with
// ErrUnsupported if the client did not advertise it.
func (s *AgentSession) Update(ctx context.Context, update SessionUpdate) error {
	ctx, done := lasting(ctx)
	defer done()
	return s.conn.SessionUpdate(ctx, &SessionNotification{SessionID: s.id, Update: update})
}

// Prompt runs a turn and waits for its end (session/prompt). When ctx ends, the turn is cancelled as the protocol
// says: session/cancel is sent, open permission requests of the session are answered as cancelled, and the agent's
// answer is waited for, for at most ConnOptions.CancelGrace. Prompt returns the answer, usually with
// StopReasonCancelled, or the cause of ctx if there was none in time.
func (c *ClientConn) Prompt(ctx context.Context, req *PromptRequest) (*PromptResponse, error) {
	req = orEmpty(req)
	if err := c.checkPrompt(req); err != nil {
		return nil, err
	}
	m := engine.RequestMethod[PromptRequest, PromptResponse](methodPrompt)
	return engine.RunTurn(ctx, (*engine.Conn)(c.rpc), m, req, turnSpec(req.SessionID))
}

// checkPrompt refuses what must not be sent, or what the agent did not advertise.
func (c *ClientConn) checkPrompt(req *PromptRequest) error {
	if err := c.check(MethodPrompt, req); err != nil {
		return err
	}
	if missing := c.capabilities().lacksForPrompt(req); missing != "" {
		return unsupported(MethodPrompt, missing)
	}
	return nil
}

// cancelledPrompt is the answer to a prompt whose turn was cancelled: with the stop reason that the protocol asks
// for, whatever that of its handler's result is.
func cancelledPrompt(result any) any {
	res, _ := result.(*PromptResponse)
	if res == nil {
		return &PromptResponse{StopReason: StopReasonCancelled}
	}
	changed := *res
	changed.StopReason = StopReasonCancelled
	return &changed
}

// Cancel cancels the session's turns (session/cancel) and does not wait for their end: Prompt and Turn.Result
// return the agent's answer, usually with StopReasonCancelled. Open permission requests of the session are
// answered as cancelled. If no turn runs, the agent ignores it. When Cancel returns, the cancellation is on its
// way, and a prompt sent afterwards comes behind it.
func (c *ClientConn) Cancel(ctx context.Context, n *CancelNotification) error {
	n = orEmpty(n)
	if err := c.check(MethodCancel, n); err != nil {
		return err
	}
	spec := turnSpec(n.SessionID)
	spec.CancelParams = n
	return (*engine.Conn)(c.rpc).CancelSession(ctx, spec)
}

func turnSpec(id SessionID) engine.TurnSpec {
	return engine.TurnSpec{
		Session:      string(id),
		CancelMethod: MethodCancel,
		CancelParams: &CancelNotification{SessionID: id},
		Cancelled:    cancelledPrompt,
	}
}

// Prompt runs a turn and waits for its end; updates go to the client's handler; to read them in a loop, use
// Stream. See ClientConn.Prompt for what happens when ctx ends.
func (s *ClientSession) Prompt(ctx context.Context, prompt ...ContentBlock) (*PromptResponse, error) {
	return s.conn.Prompt(ctx, &PromptRequest{SessionID: s.id, Prompt: prompt})
}

// Turn is a prompt in progress, whose updates go to a loop over Updates. Those are the updates of the session that
// were read after the turn was started and before the answer that ends it; all others go to the client's handler
// SessionUpdate, and none to both. Updates is for one goroutine; the other methods are safe for concurrent use.
//
// Handlers of requests run beside the loop. One that asks the user, such as RequestPermission, starts when the updates
// before it have been queued for the loop, which may not have shown them yet. A client that must show them first uses
// ClientSession.Prompt and the handler SessionUpdate.
type Turn struct {
	turn *engine.Turn[SessionUpdate, PromptResponse]
}

// Updates yields the turn's updates in order, and ends when the turn has. Leaving the loop early throws
// the rest away; it neither cancels the turn nor holds anything up. A loop that is slow holds up the
// agent, when ConnOptions.QueueBytes of updates are waiting for it.
//
// A call that the loop's body makes cannot be answered while the loop holds up the agent. With the turn's Context, it
// lets up to ConnOptions.QueueLimit of updates wait, at which it fails with ErrOverflow. Of any other call it is not
// known who waits for it: while there is one, as much may wait, and beyond that the loop ends, and Result fails with
// ErrOverflow.
func (t *Turn) Updates() iter.Seq[SessionUpdate] { return t.turn.Updates() }

// Context returns the context for calls that the body of a loop over Updates makes: the one with which the turn was
// started, marked so that the connection knows that the loop waits for the calls. It does not end with the turn.
func (t *Turn) Context() context.Context { return t.turn.Context() }

// Discard throws away the updates that were not read, and those to come.
func (t *Turn) Discard() { t.turn.Discard() }

// Cancel cancels the turn (session/cancel); see ClientSession.Prompt. The cancellation is on its way when Cancel
// returns. It does not wait for the turn's end: Result does.
func (t *Turn) Cancel() { t.turn.Cancel() }

// Result waits for the end of the turn, discarding what was not read, and returns the agent's answer or why
// there is none.
func (t *Turn) Result() (*PromptResponse, error) { return t.turn.Result() }

// Done is closed when the turn is over. Updates may still be there to be read. A program that waits for Done, and
// neither reads the updates nor calls Discard, holds up the agent.
func (t *Turn) Done() <-chan struct{} { return t.turn.Done() }

// Stream starts a turn whose updates are read as they come; see [Turn]. A loop over them inside the client's handler
// of updates would wait for itself. The turn is over when Result returns. When ctx ends, the turn is cancelled as
// with Prompt; a prompt sent afterwards comes behind the cancellation.
func (s *ClientSession) Stream(ctx context.Context, prompt ...ContentBlock) *Turn {
	req := &PromptRequest{SessionID: s.id, Prompt: prompt}
	if err := s.conn.checkPrompt(req); err != nil {
		return &Turn{engine.FailedTurn[SessionUpdate, PromptResponse](ctx, (*engine.Conn)(s.conn.rpc), err)}
	}
	m := engine.RequestMethod[PromptRequest, PromptResponse](methodPrompt)
	return &Turn{engine.StartTurn(ctx, (*engine.Conn)(s.conn.rpc), m, req, turnSpec(s.id), pickUpdate)}
}

func pickUpdate(params any) (SessionUpdate, bool) {
	n, ok := params.(*SessionNotification)
	if !ok {
		return SessionUpdate{}, false
	}
	return n.Update, true
}

// Cancel cancels the session's turns (session/cancel) and does not wait for their end; see ClientConn.Cancel.
func (s *ClientSession) Cancel(ctx context.Context) error {
	return s.conn.Cancel(ctx, &CancelNotification{SessionID: s.id})
}
