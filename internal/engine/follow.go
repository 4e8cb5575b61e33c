package engine

import (
	"context"
	"log/slog"
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

// RunTurnUntil is RunTurn for a turn that goes on after its answer, until end says that it is over.
// An error that the peer answers ends it too.
func RunTurnUntil[P, A, R any](
	ctx context.Context, c *Conn, m RequestMethod[P, A], params *P, spec TurnSpec, end TurnEnd[A, R],
) (*R, error) {
	turn := &outgoingTurn{spec: spec}
	return runTurn(ctx, c, m, params, turn, expect(turn, end))
}

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
func (turn *outgoingTurn) answered(isEnd func() bool) {
	switch {
	case turn.endRead != nil && turn.notified == nil: // it has ended before
	case isEnd():
		turn.end()
	default:
		_ = turn.session.conn.step(turn.session, event{kind: turnAccepted, turn: turn}) // which refuses nothing
	}
}

// failed notes that the answer was an error, or could not be decoded, which ends every turn. Only the reader calls it.
func (turn *outgoingTurn) failed() {
	if turn.endRead == nil || turn.notified != nil {
		turn.end()
	}
}

// end notes that the turn is over with what was queued so far. Only the reader calls it.
func (turn *outgoingTurn) end() {
	turn.notified = nil
	_ = turn.session.conn.step(turn.session, event{kind: turnEnded, turn: turn}) // which refuses nothing
	if turn.endRead != nil {
		close(turn.endRead)
	}
}

// follow shows a notification to the turns of its session that may end with it. Only the reader calls it.
func (c *Conn) follow(id string, params any) {
	if c.following.Load() == 0 {
		return
	}
	c.enqueue() // what ends a turn is the last of it
	c.mu.Lock()
	var turns []*outgoingTurn
	if s := c.sessions[id]; s != nil {
		turns = slices.Clone(s.outgoing)
	}
	c.mu.Unlock()
	for _, turn := range turns {
		if turn.notified != nil && turn.notified(params) {
			turn.end()
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

// KeepTurn has run called after the answer to the turn's request that ctx belongs to was sent, as the rest
// of that turn: what cancels the turn ends the context of run, with the cause ErrTurnCancelled, and what
// ends the turn waits for run to return. run calls free before it tells the peer that the turn is over,
// because the peer may react with its next one; until then the session is busy. If the request is answered
// with an error, drop is called instead. Outside the handler of a turn's request KeepTurn returns false and
// does nothing.
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

// OpenTurn begins a turn in a session of the peer's that no request has asked for. The context that it
// returns ends when the peer cancels the turn, with the cause ErrTurnCancelled, when ctx ends, or the
// connection. free and end must be called, as in KeepTurn, free before end. It fails when the session is
// busy.
func (c *Conn) OpenTurn(ctx context.Context, id string) (turn context.Context, free, end func(), err error) {
	in := &inbound{conn: c, route: &Route{Turn: true}, done: make(chan struct{})}
	in.answered.Store(true)
	in.Context, in.cancel = context.WithCancelCause(ctx)
	c.mu.Lock()
	s := c.sessionLocked(id)
	in.session = s
	if err = ErrClosed; c.base.Err() == nil {
		err = s.step(event{kind: turnOpened, in: in}).refuse
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

// AwaitTurn waits until the turns are over that began in their session before the one that ctx belongs to,
// for agents that hold prompts until their turn comes; see Options.ConcurrentTurns. It returns the cause of
// ctx if that ends first.
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

// EnterTurn calls enter for the turn that ctx belongs to, after it was called for all turns of the session that came
// before, or those were over: handlers run at the same time, and with it they know in which order their turns came. It
// returns the cause of ctx if that ends first. It is called once for a turn, when Options.ConcurrentTurns is set, and
// enter must be quick.
func EnterTurn(ctx context.Context, enter func()) error {
	in, ok := ctx.Value(inboundKey{}).(*inbound)
	if !ok || in.entered == nil {
		enter()
		return nil
	}
	for _, turn := range in.earlier() {
		if turn.entered == nil { // one that no request has asked for
			continue
		}
		select {
		case <-turn.entered:
		case <-turn.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	enter()
	close(in.entered)
	return nil
}

// earlier are the turns of the session that came before this one and are not over, the first one first.
func (in *inbound) earlier() []*inbound {
	in.conn.mu.Lock()
	defer in.conn.mu.Unlock()
	turns := slices.Clone(in.session.incoming)
	return turns[:max(0, slices.Index(turns, in))]
}

// TakesConcurrentTurns reports whether a session may have more than one turn of the peer's at a time.
func (c *Conn) TakesConcurrentTurns() bool { return c.opts.ConcurrentTurns }

// Logger returns the logger of the connection's owner.
func (c *Conn) Logger() *slog.Logger { return c.opts.Logger }

// carryOn runs what is left of a turn that was answered.
func (in *inbound) carryOn() {
	if !in.goesOn {
		if in.drop != nil {
			_ = in.conn.guard(in.req.Method, func() error { in.drop(); return nil })
		}
		return
	}
	defer func() {
		in.conn.mu.Lock()
		in.conn.serving--
		in.conn.mu.Unlock()
		in.end()
	}()
	// guard reports a panic; there is no caller to return an error to.
	_ = in.conn.guard(in.req.Method, func() error { in.rest(in, in.free); return nil })
}

// free lets the session take its next turn.
func (in *inbound) free() { _ = in.conn.step(in.session, event{kind: turnFreed, in: in}) }

// end ends a turn that was longer than its request.
func (in *inbound) end() {
	in.free()
	in.cancel(context.Canceled)
	in.leave()
	close(in.done)
}
