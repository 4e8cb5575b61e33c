package acp

import (
	"context"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/engine"
)

// Update sends an update (session/update). Updates arrive in the order in which they were sent, and before the answer
// to the prompt if they are sent before its handler returns. Update returns once the update is on its way, and blocks
// while too much is unsent, until ctx ends. With the context of a turn that was cancelled it still sends, and blocks
// for at most ten seconds; once the turn has been answered, Update fails with the cause of its context. With the
// context of a handler of session/new or session/fork, it sends updates of the new session after the answer, or not at
// all if the answer is an error; more than ConnOptions.QueueBytes fail with ErrOverflow. A kind of update that needs a
// capability, such as a notice, fails with ErrUnsupported if the client did not advertise it.
func (s *AgentSession) Update(ctx context.Context, update SessionUpdate) error {
	ctx, done := lasting(ctx)
	defer done()
	return s.conn.SessionUpdate(ctx, &SessionNotification{SessionID: s.id, Update: update})
}

// Prompt runs a turn and waits for its end (session/prompt). When ctx ends, the turn is cancelled as the protocol
// requires: Prompt sends session/cancel, answers open permission requests of the session as cancelled, and waits for
// the agent's answer for at most ConnOptions.CancelGrace. It returns the answer, usually with StopReasonCancelled, or
// the cause of ctx if no answer arrived in time.
func (c *ClientConn) Prompt(ctx context.Context, req *PromptRequest) (*PromptResponse, error) {
	req = orEmpty(req)
	if err := c.checkPrompt(req); err != nil {
		return nil, err
	}
	m := engine.RequestMethod[*PromptRequest, *PromptResponse](methodPrompt)
	return engine.RunTurn(ctx, (*engine.Conn)(c.rpc), m, req, turnSpec(req.SessionID))
}

// cancelledPrompt returns the answer to a prompt whose turn was cancelled: it has the stop reason that the protocol
// requires, whatever the handler's result has.
func cancelledPrompt(result any) any {
	res, _ := result.(*PromptResponse)
	if res == nil {
		return &PromptResponse{StopReason: StopReasonCancelled}
	}
	changed := *res
	changed.StopReason = StopReasonCancelled
	return &changed
}

// Cancel cancels the session's turns (session/cancel) and does not wait for their end: Prompt and Turn.Result return
// the agent's answer, usually with StopReasonCancelled. Open permission requests of the session are answered as
// cancelled. If no turn is running, the agent ignores it. When Cancel returns, the cancellation is on its way, and a
// prompt sent afterwards arrives after it.
func (c *ClientConn) Cancel(ctx context.Context, n *CancelNotification) error {
	n = orEmpty(n)
	if err := c.check(MethodCancel, n); err != nil {
		return err
	}
	if _, err := codec.Append(nil, n); err != nil { // otherwise the turn would wait for an agent that knows nothing of it
		return unsent(MethodCancel, err)
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

// Prompt runs a turn and waits for its end. Updates go to the client's handler; to read them in a loop, use Stream. See
// ClientConn.Prompt for what happens when ctx ends.
func (s *ClientSession) Prompt(ctx context.Context, prompt ...ContentBlock) (*PromptResponse, error) {
	return s.conn.Prompt(ctx, &PromptRequest{SessionID: s.id, Prompt: prompt})
}

// Turn is a prompt in progress. A loop over Updates reads its updates: those updates of the session that were read
// after the turn was started and before the answer that ends it. All others go to the client's handler SessionUpdate,
// and none to both. Updates is for one goroutine; the other methods are safe for concurrent use.
//
// Handlers of requests run concurrently with the loop. A handler that asks the user, such as RequestPermission, starts
// when the updates before it have been queued for the loop, which may not have shown them yet. A client that must show
// them first uses ClientSession.Prompt and the handler SessionUpdate.
type Turn struct {
	turn *engine.Turn[SessionUpdate, PromptResponse]
}

// Result waits for the end of the turn, discarding unread updates, and returns the agent's answer or the reason why
// there is none.
func (t *Turn) Result() (*PromptResponse, error) { return t.turn.Result() }

// Stream starts a turn whose updates are read as they arrive; see [Turn]. A loop over them inside the client's handler
// of updates would deadlock. The turn is over when Result returns. When ctx ends, the turn is cancelled as with Prompt;
// a prompt sent afterwards arrives after the cancellation.
func (s *ClientSession) Stream(ctx context.Context, prompt ...ContentBlock) *Turn {
	req := &PromptRequest{SessionID: s.id, Prompt: prompt}
	if err := s.conn.checkPrompt(req); err != nil {
		return &Turn{engine.FailedTurn[SessionUpdate, PromptResponse](ctx, (*engine.Conn)(s.conn.rpc), err)}
	}
	m := engine.RequestMethod[*PromptRequest, *PromptResponse](methodPrompt)
	return &Turn{engine.StartTurn(ctx, (*engine.Conn)(s.conn.rpc), m, req, turnSpec(s.id), pickUpdate)}
}
