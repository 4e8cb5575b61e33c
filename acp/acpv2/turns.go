package acpv2

import (
	"context"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/engine"
)

// TurnResult reports how a turn ended.
type TurnResult struct {
	// MessageID is the id of the user's message in the conversation.
	MessageID MessageID
	// Idle is the state that the agent reported at the end. Its variant says why it stopped.
	Idle IdleStateUpdate
}

// Turn is a prompt in progress. A loop over Updates reads its updates: those updates of the session that were read
// after the turn was started and before the state that ends it. All others go to the client's handler SessionUpdate,
// and none to both. Updates is for one goroutine; the other methods are safe for concurrent use.
//
// Handlers of requests run concurrently with the loop. A handler that asks the user, such as RequestPermission, starts
// when the updates before it have been queued for the loop, which may not have shown them yet. A client that must show
// them first uses ClientSession.Prompt and the handler SessionUpdate.
type Turn struct {
	turn *engine.Turn[SessionUpdate, TurnResult]
}

// Result waits for the end of the turn, discarding unread updates, and returns how it ended or the reason why it
// failed.
func (t *Turn) Result() (*TurnResult, error) { return t.turn.Result() }

// Prompt runs a turn and waits for its end; updates go to the client's handler. When ctx ends, the turn is cancelled as
// the protocol requires: Prompt sends session/cancel, answers open permission requests of the session as cancelled, and
// waits for at most ConnOptions.CancelGrace until the agent reports the turn's end, with the stop reason cancelled;
// only after that does it return the cause of ctx. If the agent answers with an error, the prompt did not become part
// of the conversation; for a prompt that was cancelled before that, the error is ErrRequestCancelled.
//
// If the session is already working, the agent may hold the prompt until the work is done. When ctx ends while another
// turn of this client blocks the prompt, $/cancel_request recalls it, and the other turn continues. Turns that are
// started afterwards wait for the answer, for at most ConnOptions.CancelGrace: if it says that the recalled turn has
// begun nevertheless, session/cancel is sent before them. The agent may also let the prompt join the work; then the
// turn ends when all of the work is done.
func (s *ClientSession) Prompt(ctx context.Context, prompt ...ContentBlock) (*TurnResult, error) {
	return s.conn.RunTurn(ctx, &PromptRequest{SessionID: s.id, Prompt: prompt})
}

// RunTurn is ClientSession.Prompt for any PromptRequest. ClientConn.Prompt, in contrast, is the plain call: it only
// waits for the answer, and is not a turn for Cancel or for the turns that are started after it.
func (c *ClientConn) RunTurn(ctx context.Context, req *PromptRequest) (*TurnResult, error) {
	req = orEmpty(req)
	if err := c.checkPrompt(req); err != nil {
		return nil, err
	}
	m := engine.RequestMethod[*PromptRequest, *PromptResponse](methodPrompt)
	return engine.RunTurnUntil(ctx, (*engine.Conn)(c.rpc), m, req, turnSpec(req.SessionID), &turnEnd{seen: &c.seen})
}

// Stream starts a turn whose updates are read as they arrive; see [Turn]. A loop over them inside the client's handler
// of updates would deadlock. The turn is over when Result returns. When ctx ends, the turn is cancelled as with Prompt;
// a prompt sent afterwards arrives after the cancellation.
func (s *ClientSession) Stream(ctx context.Context, prompt ...ContentBlock) *Turn {
	return s.conn.StreamTurn(ctx, &PromptRequest{SessionID: s.id, Prompt: prompt})
}

// StreamTurn is ClientSession.Stream for any PromptRequest.
func (c *ClientConn) StreamTurn(ctx context.Context, req *PromptRequest) *Turn {
	req = orEmpty(req)
	if err := c.checkPrompt(req); err != nil {
		return &Turn{engine.FailedTurn[SessionUpdate, TurnResult](ctx, (*engine.Conn)(c.rpc), err)}
	}
	m := engine.RequestMethod[*PromptRequest, *PromptResponse](methodPrompt)
	end := &turnEnd{seen: &c.seen}
	return &Turn{engine.StartTurnUntil(ctx, (*engine.Conn)(c.rpc), m, req, turnSpec(req.SessionID), end, pickUpdate)}
}

// Cancel cancels the session's foreground work (session/cancel) and does not wait for its end. If this connection has
// turns in the session, they end as when the context of ClientSession.Prompt ends. Open permission requests of the
// session are answered as cancelled, even if there is no turn. If the session is not working, the agent ignores the
// cancellation. When Cancel returns, the cancellation is on its way, and a prompt sent afterwards arrives after it.
func (c *ClientConn) Cancel(ctx context.Context, n *CancelSessionNotification) error {
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
		CancelParams: &CancelSessionNotification{SessionID: id},
	}
}

// turnEnd finds the end of a turn: the first time that the session's work ends after the user's message has become part
// of the conversation. The agent reports the message before or after its answer, which contains the message's id; it
// may even finish the work before it answers. An idle session that reports again that it is idle ends nothing.
type turnEnd struct {
	seen     *seen
	inserted bool      // the answer has arrived,
	id       MessageID // with the id of the message
	working  bool      // the last state of the session was not idle, as far as it was reported during the turn
	// Until the answer arrives: the user's messages with the state that ended the work after each, and the size of these
	// states.
	messages map[idSum]*IdleStateUpdate
	kept     int
}

// Answered implements engine.TurnEnd.
func (e *turnEnd) Answered(answer *PromptResponse) *TurnResult {
	e.inserted, e.id = true, answer.MessageID
	idle := e.messages[sum(e.id)]
	e.messages = nil
	if idle == nil {
		return nil
	}
	return &TurnResult{e.id, *idle}
}

// Notified implements engine.TurnEnd.
func (e *turnEnd) Notified(params any) *TurnResult {
	n, ok := params.(*UpdateSessionNotification)
	if !ok {
		return nil
	}
	switch u := n.Update.Variant.(type) {
	case *SessionUpdateUserMessage:
		e.message(u.MessageID)
	case *SessionUpdateUserMessageChunk:
		e.message(u.MessageID)
	case *SessionUpdateStateUpdate:
		// The number of sessions in e.seen is bounded: this one may be missing.
		worked := e.working || e.seen.stopped
		idle, ok := u.Variant.(*StateUpdateIdle)
		if e.working = !ok; ok && worked {
			return e.stopped((*IdleStateUpdate)(idle))
		}
	default: // says nothing about the turn
	}
	return nil
}

// maxMessages bounds how many messages before the answer are remembered, and maxKept the bytes of their states.
const (
	maxMessages = 1024
	maxKept     = 1 << 20
)

func (e *turnEnd) message(id MessageID) {
	if _, known := e.messages[sum(id)]; known || e.inserted || len(e.messages) == maxMessages {
		return
	}
	if e.messages == nil {
		e.messages = map[idSum]*IdleStateUpdate{}
	}
	e.messages[sum(id)] = nil
}

func (e *turnEnd) stopped(idle *IdleStateUpdate) *TurnResult {
	if e.inserted {
		return &TurnResult{e.id, *idle}
	}
	size := 0
	for id, earlier := range e.messages {
		if earlier != nil {
			continue
		}
		if size == 0 {
			size = length(idle)
			if e.kept > 0 && e.kept+size > maxKept {
				return nil
			}
			e.kept += size
		}
		e.messages[id] = idle
	}
	return nil
}

// length returns the size of a state as JSON.
func length(idle *IdleStateUpdate) int {
	text, err := codec.Append(nil, idle)
	if err != nil {
		return maxKept // kept only if there is no other
	}
	return len(text)
}

// StopReason returns the reason why the work stopped, in the form that it has on the wire, such as "end_turn". It is ""
// if the agent gave none.
func (x IdleStateUpdate) StopReason() string {
	switch v := x.Variant.(type) {
	case *IdleStateUpdateEndTurn:
		return "end_turn"
	case *IdleStateUpdateMaxTokens:
		return "max_tokens"
	case *IdleStateUpdateMaxTurnRequests:
		return "max_turn_requests"
	case *IdleStateUpdateRefusal:
		return "refusal"
	case *IdleStateUpdateCancelled:
		return "cancelled"
	case *IdleStateUpdateError:
		return "error"
	case *IdleStateUpdateUnknown:
		return v.Tag
	default:
		return ""
	}
}
