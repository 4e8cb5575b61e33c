package engine

import (
	"context"
	"slices"
)

// A TurnEnd determines when a turn whose answer only begins it is over, and with what result. The reader calls its
// methods, one at a time and in the order of the wire, from before the request is sent until one of them has returned a
// result. They must be quick.
type TurnEnd[A, R any] interface {
	// Answered receives the answer. It returns the result if the turn is then over, and otherwise nil.
	Answered(answer *A) *R
	// Notified receives the parameters of a notification that feeds the session's turns (see Route.Feeds). It returns
	// the result if the turn is then over, and otherwise nil.
	Notified(params any) *R
}

// byAnswer is the TurnEnd of a turn that ends with its answer.
type byAnswer[R any] struct{}

func (byAnswer[R]) Answered(answer *R) *R { return answer }
func (byAnswer[R]) Notified(any) *R       { return nil }

// outcome is the result of a turn, from its end.
type outcome[A, R any] struct {
	end    TurnEnd[A, R]
	result *R // owned by the reader until the turn is over
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

// answered passes the answer to the turn, which may then be over. Only the reader calls it.
func (turn *outgoingTurn) answered(c *Conn, isEnd func() bool) {
	switch {
	case turn.endRead != nil && turn.notified == nil: // the turn has ended before
	case isEnd():
		turn.end(c)
	default:
		_ = c.step(turn.session, event{kind: turnAccepted, turn: turn}) // this event is never refused
	}
}

// failed records that the answer was an error, or could not be decoded, which ends every turn. Only the reader calls
// it.
func (turn *outgoingTurn) failed(c *Conn) {
	if turn.endRead == nil || turn.notified != nil {
		turn.end(c)
	}
}

// end records that the turn is over with the notifications queued so far. Only the reader calls it.
func (turn *outgoingTurn) end(c *Conn) {
	turn.notified = nil
	c.mu.Lock()
	do := turn.session.step(event{kind: turnEnded, turn: turn})
	c.mu.Unlock()
	for _, in := range do.withdraw {
		in.cancel(ErrTurnCancelled) // at once: when the turn's caller continues, no question waits
	}
	if len(do.withdraw) > 0 { // not here: the reader must not wait for an answer that is being written
		later := do // do itself stays off the heap
		c.tasks.spawn(taskFunc(func() { c.carryOut(later, nil) }))
	}
	if turn.endRead != nil {
		close(turn.endRead)
	}
}

// follow passes a notification to the turns of its session that may end with it. Only the reader calls it, when
// everything up to the notification has been queued: a notification that ends a turn is its last.
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

// await waits for the end of a turn: for its answer and, if it continues after that, for the event that ends it.
// cancelled reports whether ctx ended first.
func (turn *outgoingTurn) await(ctx context.Context, p *pending) (cancelled bool, err error) {
	cancelled, err = p.response(ctx) // returns at once if it has arrived
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

// giveUp gives up the turn's request, and tells the peer so, unless the answer has arrived or the peer knows already.
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
