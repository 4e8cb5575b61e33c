package acp

import (
	"context"
	"iter"
)

// Updates returns an iterator over the turn's updates, in order, which ends when the turn has ended. Leaving the loop
// early discards the remaining updates; it does not cancel the turn and does not block the agent. A slow loop blocks
// the agent once ConnOptions.QueueBytes of updates are waiting for it.
//
// A call made in the body of the loop cannot be answered while the loop blocks the agent. A call with the turn's
// Context lets up to ConnOptions.QueueLimit of updates wait, at which it fails with ErrOverflow. For any other call,
// the connection does not know whether the loop waits for it: while one is in progress, the same amount may wait, and
// beyond that the loop ends and Result fails with ErrOverflow.
func (t *Turn) Updates() iter.Seq[SessionUpdate] { return t.turn.Updates() }

// Context returns the context for calls made in the body of a loop over Updates: the context with which the turn was
// started, marked so that the connection knows that the loop waits for the calls. It does not end with the turn.
func (t *Turn) Context() context.Context { return t.turn.Context() }

// Discard discards the updates that were not read, and those that arrive later.
func (t *Turn) Discard() { t.turn.Discard() }

// Cancel cancels the turn (session/cancel); see ClientSession.Prompt. The cancellation is on its way when Cancel
// returns. Cancel does not wait for the turn's end; Result does.
func (t *Turn) Cancel() { t.turn.Cancel() }

// Done returns a channel that is closed when the turn is over. There may still be updates to read. If you wait for
// Done, either read the updates or call Discard; otherwise the agent blocks.
func (t *Turn) Done() <-chan struct{} { return t.turn.Done() }

// checkPrompt refuses content that must not be sent, or that the agent did not advertise.
func (c *ClientConn) checkPrompt(req *PromptRequest) error {
	if err := c.check(MethodPrompt, req); err != nil {
		return err
	}
	if missing := c.capabilities().lacksForPrompt(req); missing != "" {
		return unsupported(MethodPrompt, missing)
	}
	return nil
}

func pickUpdate(params any) (SessionUpdate, bool) {
	n, ok := params.(*updateNotification)
	if !ok {
		return SessionUpdate{}, false
	}
	return n.Update, true
}

// Cancel cancels the session's turns (session/cancel) and does not wait for their end; see ClientConn.Cancel.
func (s *ClientSession) Cancel(ctx context.Context) error {
	return s.conn.Cancel(ctx, &cancelNotification{SessionID: s.id})
}
