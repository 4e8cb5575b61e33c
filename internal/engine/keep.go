package engine

import (
	"context"
	"slices"
)

// KeepTurn arranges for run to be called after the answer to the turn's request that ctx belongs to has been sent, as
// the rest of that turn: cancelling the turn ends the context of run, with the cause ErrTurnCancelled, and ending the
// turn waits until run has returned. run must call free before it tells the peer that the turn is over, because the
// peer may respond with its next one; until then the session is busy. If the request is answered with an error, drop is
// called instead. Outside the handler of a turn's request KeepTurn returns false and does nothing.
func KeepTurn(ctx context.Context, run func(ctx context.Context, free func()), drop func()) bool {
	in, ok := ctx.Value(inboundKey{}).(*inbound)
	if !ok || !in.route.Turn {
		return false
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.answered.Load() || in.rest != nil {
		return false
	}
	in.rest, in.drop = run, drop
	return true
}

// OpenTurn begins a turn in a session of the peer that no request has asked for. The context that it returns ends when
// the peer cancels the turn, with the cause ErrTurnCancelled, and when ctx or the connection ends. free and end must be
// called, free first, as in KeepTurn. OpenTurn fails if the session is busy.
func (c *Conn) OpenTurn(ctx context.Context, id string) (turn context.Context, free, end func(), err error) {
	in := &inbound{conn: c, incoming: incoming{route: &Route{Turn: true}, done: make(chan struct{})}}
	in.answered.Store(true)
	in.parent = ctx
	c.mu.Lock()
	s := &c.sessionLocked(id).session
	in.session = s
	if err = ErrClosed; c.base.Err() == nil {
		err = s.step(event{kind: turnOpened, in: &in.incoming}).refuse
	}
	c.mu.Unlock()
	if err != nil {
		in.cancel(err)
		c.release(s)
		return nil, nil, nil, err
	}
	stop := context.AfterFunc(c.base, func() { in.cancel(context.Cause(c.base)) })
	return in, in.free, func() { stop(); in.end() }, nil
}

// TurnOver reports whether ctx belongs to a turn of the peer that has been answered and does not continue.
func TurnOver(ctx context.Context) bool {
	in, ok := ctx.Value(inboundKey{}).(*inbound)
	if !ok || !in.route.Turn {
		return false
	}
	in.mu.Lock() // which is held while the answer is written
	defer in.mu.Unlock()
	return isClosed(in.done)
}

// AwaitTurn waits until all turns that began in their session before the one that ctx belongs to are over, for agents
// that hold prompts until it is their turn; see Options.ConcurrentTurns. It returns the cause of ctx if that ends
// first.
func AwaitTurn(ctx context.Context) error {
	in, ok := ctx.Value(inboundKey{}).(*inbound)
	if !ok {
		return nil
	}
	for _, turn := range in.earlier() {
		select {
		case <-turn.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// An Enterer is the parameters of requests that EnterTurn orders among the turns of their session, although they are no
// turns themselves.
type Enterer interface{ EntersTurn() }

// EnterTurn calls enter for the request that ctx belongs to, a turn or an Enterer, after it has been called for all
// earlier ones of the session, or those are over: handlers run concurrently, and learn from it in which order their
// requests arrived. It returns the cause of ctx if that ends first. It is called once for a request, if
// Options.ConcurrentTurns is set, and enter must be quick.
func EnterTurn(ctx context.Context, enter func()) error {
	in, ok := ctx.Value(inboundKey{}).(*inbound)
	if !ok || in.entered == nil {
		enter()
		return nil
	}
	in.conn.mu.Lock()
	earlier := slices.Clone(in.session.entering)
	in.conn.mu.Unlock()
	for _, other := range earlier[:max(0, slices.Index(earlier, &in.incoming))] {
		select {
		case <-other.entered:
		case <-other.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	enter()
	close(in.entered)
	in.conn.mu.Lock()
	defer in.conn.mu.Unlock()
	in.session.entering = slices.DeleteFunc(in.session.entering,
		func(other *incoming) bool { return other == &in.incoming })
	return nil
}

// earlier returns the turns of the session that came before this one and are not over, the first one first.
func (in *inbound) earlier() []*incoming {
	in.conn.mu.Lock()
	defer in.conn.mu.Unlock()
	turns := slices.Clone(in.session.incoming)
	return turns[:max(0, slices.Index(turns, &in.incoming))]
}
