package engine

import (
	"context"
	"slices"
)

// A TurnEnd says when a turn is over that its answer only begins, and with what result. The reader calls
// its methods, one at a time and in the order of the wire, from before the request is sent until one of
// them has returned a result. They must be quick.
type TurnEnd[A, R any] interface {
	// Answered is given the answer. It returns the result if the turn is over with that, else nil.
	Answered(answer *A) *R
	// Notified is given the parameters of a notification that feeds the session's turns (see
	// Route.Feeds). It returns the result if the turn is over with that, else nil.
	Notified(params any) *R
}

// byAnswer is the end of a turn that its answer ends.
type byAnswer[R any] struct{}

func (byAnswer[R]) Answered(answer *R) *R { return answer }
func (byAnswer[R]) Notified(any) *R       { return nil }

// outcome is the result of a turn, from its end.
type outcome[A, R any] struct {
	end    TurnEnd[A, R]
	result *R // the reader's until the turn is over
}

// expect prepares a turn for its end, before it enters its session.
func expect[A, R any](turn *outgoingTurn, end TurnEnd[A, R]) *outcome[A, R] {
	out := &outcome[A, R]{end: end}
	if _, short := any(end).(byAnswer[R]); !short {
		turn.endRead = make(chan struct{})
		turn.notified = out.notified
	}
	return out
}

func (out *outcome[A, R]) answered(answer *A) bool {
	out.result = out.end.Answered(answer)
	return out.result != nil
}

func (out *outcome[A, R]) notified(params any) bool {
	out.result = out.end.Notified(params)
	return out.result != nil
}

// answered shows the answer to the turn, which may be over with it. Only the reader calls it.
func (turn *outgoingTurn) answered(c *Conn, isEnd func() bool) {
	switch {
	case turn.endRead != nil && turn.notified == nil: // it has ended before
	case isEnd():
		turn.end(c)
	default:
		_ = c.step(turn.session, event{kind: turnAccepted, turn: turn}) // which refuses nothing
	}
}

// failed notes that the answer was an error, or could not be decoded, which ends every turn. Only the reader calls it.
func (turn *outgoingTurn) failed(c *Conn) {
	if turn.endRead == nil || turn.notified != nil {
		turn.end(c)
	}
}

// end notes that the turn is over with what was queued so far. Only the reader calls it.
func (turn *outgoingTurn) end(c *Conn) {
	turn.notified = nil
	_ = c.step(turn.session, event{kind: turnEnded, turn: turn}) // which refuses nothing
	if turn.endRead != nil {
		close(turn.endRead)
	}
}

// follow shows a notification to the turns of its session that may end with it. Only the reader calls it, when all that
// came up to the notification is queued: what ends a turn is the last of it.
func (c *Conn) follow(id string, params any) {
	c.mu.Lock()
	var turns []*outgoingTurn
	if s := c.sessions[id]; s != nil {
		turns = slices.Clone(s.outgoing)
	}
	c.mu.Unlock()
	for _, turn := range turns {
		if turn.notified != nil && turn.notified(params) {
			turn.end(c)
		}
	}
}

// await waits for the end of a turn: for its answer, and then, if it goes on after that, for what ends it.
// It says whether ctx ended first.
func (turn *outgoingTurn) await(ctx context.Context, p *pending) (cancelled bool, err error) {
	cancelled, err = p.response(ctx) // at once, if it has come
	if cancelled || err != nil || p.err != nil || turn.endRead == nil {
		return cancelled, err
	}
	select {
	case <-turn.endRead:
		return false, nil
	case <-ctx.Done():
		return true, context.Cause(ctx)
	case <-p.conn.wire.Done():
	}
	select {
	case <-turn.endRead:
		return false, nil
	default:
		return p.conn.failure(ctx, p.conn.wire.Err())
	}
}

// giveUp gives the turn's request up, and tells the peer so, unless the answer has come or that was said.
func (turn *outgoingTurn) giveUp(p *pending) {
	c := p.conn
	c.mu.Lock()
	said := turn.accepted || turn.recalled != nil
	c.mu.Unlock()
	p.call.Abandon()
	if !said {
		p.cancel()
	}
}
