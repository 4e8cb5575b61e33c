package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"time"

	"github.com/acpgo/sdk/internal/wire"
)

// CancelSession cancels the turns that this side has in progress in a session, as ending their contexts would, and
// answers the questions to this side's user as cancelled. The peer is notified even if there is no turn. The
// cancellation is on its way when CancelSession returns.
func (c *Conn) CancelSession(ctx context.Context, spec TurnSpec) (err error) {
	c.mu.Lock()
	var do effects
	var cancels []context.CancelCauseFunc
	if s := c.sessions[spec.Session]; s != nil {
		do = s.step(event{kind: sessionCancelled})
		for _, turn := range do.told {
			cancels = append(cancels, turn.cancel)
		}
	}
	c.mu.Unlock()
	for _, cancel := range cancels {
		cancel(ErrTurnCancelled)
	}
	c.carryOut(do, func() { err = c.tellCancel(ctx, spec) })
	return err
}

// tellCancel sends a cancellation that a user asked for, with the middleware.
func (c *Conn) tellCancel(ctx context.Context, spec TurnSpec) error {
	var err error
	if c.opts.Call == nil {
		err = c.postCancel(spec.CancelMethod, spec.CancelParams)
	} else {
		call := newOutgoing(spec.CancelMethod, spec.CancelParams)
		call.Notification = true
		err = c.opts.Call(ctx, &call.Call,
			func(context.Context) error { return c.postCancel(spec.CancelMethod, call.encodable()) })
	}
	if err != nil {
		_, err = c.failure(ctx, err)
		return fmt.Errorf("%s: %w", spec.CancelMethod, err)
	}
	return nil
}

// RunTurn sends the request and waits for its answer, which it returns after all updates of the turn have been handled.
// When ctx ends, or CancelSession is called, the turn is cancelled: the peer is notified, the requests of the session
// that wait for this side's user are answered as cancelled, updates are still accepted, and RunTurn waits for the
// answer for at most Config.CancelGrace; only after that does it give up the request and return the cause.
func RunTurn[P, R any](ctx context.Context, c *Conn, m RequestMethod[*P, *R], params *P, spec TurnSpec) (*R, error) {
	return RunTurnUntil(ctx, c, m, params, spec, byAnswer[R]{})
}

// RunTurnUntil is RunTurn for a turn that continues after its answer, until end reports that it is over. An error
// answered by the peer also ends it.
func RunTurnUntil[P, A, R any](
	ctx context.Context, c *Conn, m RequestMethod[*P, *A], params *P, spec TurnSpec, end TurnEnd[A, R],
) (*R, error) {
	turn := &outgoingTurn{spec: spec}
	return runTurn(ctx, c, m, params, turn, expect(turn, end))
}

func runTurn[P, A, R any](
	ctx context.Context, c *Conn, m RequestMethod[*P, *A], params *P, turn *outgoingTurn, out *outcome[A, R],
) (*R, error) {
	answer := &typed{of: reflect.TypeFor[*A](), null: m.NullResult, then: taker[*A](func(answer *A) {
		turn.answered(c, func() bool { return out.answered(answer) })
	})}
	answer.conn, answer.method, answer.result = c, m.Name, answer
	answer.failed = func() { turn.failed(c) }
	run := func(ctx context.Context, params wire.Encodable) error {
		err := c.turn(ctx, &answer.pending, params, turn)
		if turn.unsent && turn.spec.Cancelled != nil && errors.Is(err, ErrTurnCancelled) {
			out.result, err = turn.spec.Cancelled(nil).(*R), nil
		}
		return named(m.Name, err)
	}
	if c.opts.Call == nil {
		if err := run(ctx, encodable(params)); err != nil {
			return nil, err
		}
		return out.result, nil
	}
	call := newOutgoing(m.Name, params)
	return replaced[R](&call.Call, c.opts.Call(ctx, &call.Call, func(ctx context.Context) error {
		err := run(ctx, call.encodable())
		call.ID = answer.id()
		if err != nil {
			return err
		}
		call.Result = out.result
		return nil
	}))
}

// begin adds a turn to its session, where CancelSession finds it.
func (c *Conn) begin(ctx context.Context, cancel context.CancelCauseFunc, turn *outgoingTurn) {
	c.mu.Lock()
	turn.ctx, turn.cancel = ctx, cancel
	turn.session = &c.sessionLocked(turn.spec.Session).session
	do := turn.session.step(event{kind: turnBegun, turn: turn})
	c.mu.Unlock()
	if turn.endRead != nil {
		c.following.Add(1)
	}
	if turn.feed != nil {
		c.feeding.Add(1)
	}
	c.carryOut(do, nil)
}

// leave removes it, unless that has been done.
func (c *Conn) leave(turn *outgoingTurn) {
	if turn.left {
		return
	}
	turn.left = true
	for c.step(turn.session, event{kind: turnDone, turn: turn}) != nil {
		continue // a cancellation was being sent
	}
	if turn.endRead != nil {
		c.following.Add(-1)
	}
	if turn.feed != nil {
		c.feeding.Add(-1)
	}
	c.release(turn.session)
}

// cancelTurn cancels a turn of this side. When it returns, the cancellation is on its way, if the request is.
func (c *Conn) cancelTurn(turn *outgoingTurn) {
	_ = c.step(turn.session, event{kind: turnCancelled, turn: turn})
}

// turn runs a turn in the calling goroutine. A turn whose updates are read has been begun before.
func (c *Conn) turn(ctx context.Context, p *pending, params wire.Encodable, turn *outgoingTurn) error {
	caller := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(context.Canceled)
	defer context.AfterFunc(c.base, func() { cancel(context.Cause(c.base)) })()
	if turn.session == nil {
		defer c.calls.end(c.calls.beginIn(holderOf(ctx), cancel))
		c.begin(ctx, cancel, turn)
	}
	defer c.leave(turn)
	if err := c.send(ctx, cancel, p, params, turn); err != nil {
		turn.unsent = true
		return err
	}
	cancelled, err := turn.await(ctx, p)
	if cancelled {
		c.cancelTurn(turn)
		if errors.Is(err, ErrOverflow) {
			turn.giveUp(p) // the caller must continue at once
			return err
		}
		grace, stop := context.WithTimeout(c.base, c.opts.CancelGrace)
		defer stop()
		late, waited := turn.await(grace, p)
		if late {
			turn.giveUp(p)
			if errors.Is(waited, ErrClosed) {
				return waited // it is not the grace that has ended, but the connection
			}
			return err
		}
		err = waited
	}
	// Everything received before the end of the turn belongs to it, even if there was no answer.
	if s := turn.session; err != nil {
		c.awaitTurn(caller, &s.queue, s.position(), c.opts.DrainTime, turn.inside)
		return err
	}
	switch {
	case turn.endRead != nil && p.err == nil:
		c.awaitTurn(caller, &turn.session.queue, turn.last, 0, turn.inside)
	case p.queue != nil:
		c.awaitTurn(caller, p.queue, p.after, 0, turn.inside)
	}
	return p.err
}

// send sends the request of a turn, unless the turn was cancelled.
func (c *Conn) send(
	ctx context.Context, cancel context.CancelCauseFunc, p *pending, params wire.Encodable, turn *outgoingTurn,
) error {
	for _, wait := range turn.behind {
		select {
		case <-wait:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	s := turn.session
	c.mu.Lock()
	turn.ctx, turn.cancel, turn.request = ctx, cancel, p
	do := s.step(event{kind: turnSending, turn: turn})
	c.mu.Unlock()
	switch {
	case do.refuse != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case do.refuse != nil:
		return do.refuse
	}
	err := p.start(ctx, params)
	sent := event{kind: turnSent, turn: turn}
	if err != nil {
		sent.kind = turnUnsent
	}
	_ = c.step(s, sent) // this event is never refused
	return err
}

// awaitTurn waits until the notifications of a turn have been handled: without a bound while its caller wants it to
// continue, and otherwise for bound or the grace.
func (c *Conn) awaitTurn(
	ctx context.Context, q *queue, position uint64, bound time.Duration, inside <-chan struct{},
) {
	if insideHandler(ctx) {
		return
	}
	handled := q.reached(position, insideRequest(ctx))
	if bound == 0 {
		select {
		case <-handled:
			return
		case <-inside:
			return
		case <-c.base.Done():
			return
		case <-ctx.Done():
			bound = c.opts.CancelGrace
		}
	}
	select {
	case <-handled:
	case <-inside:
	case <-c.base.Done():
	case <-time.After(bound):
	}
}

// A Turn is a request in progress whose session's updates are read as they arrive. Updates is for one goroutine; the
// other methods are safe for concurrent use.
type Turn[U, R any] struct {
	flow    // the updates that wait for the loop
	conn    *Conn
	method  string
	turn    *outgoingTurn // nil if it could not be begun
	cancel  context.CancelCauseFunc
	body    context.Context
	done    chan struct{}
	result  *R
	err     error
	inside  chan struct{} // closed when a notification handler that has started it waits for the end
	updates []update[U]   // guarded by flow.mu
}

type update[U any] struct {
	value U
	size  int
}

// StartTurn is RunTurn in the background. The notifications that are read in the meantime, and that pick accepts, are
// the turn's updates, see Route.Feeds; no handler gets them. A notification handler that starts a turn in its own
// session must not range over the turn's updates, which arrive only after the handler has returned.
func StartTurn[U, P, R any](
	ctx context.Context, c *Conn, m RequestMethod[*P, *R], params *P, spec TurnSpec, pick func(params any) (U, bool),
) *Turn[U, R] {
	return StartTurnUntil(ctx, c, m, params, spec, byAnswer[R]{}, pick)
}

// StartTurnUntil is RunTurnUntil in the background; see StartTurn. The notification that ends the turn is
// among its updates.
func StartTurnUntil[U, P, A, R any](
	ctx context.Context, c *Conn, m RequestMethod[*P, *A], params *P, spec TurnSpec, end TurnEnd[A, R],
	pick func(params any) (U, bool),
) *Turn[U, R] {
	t := newTurn[U, R](ctx, c, m.Name)
	// It runs independently of a notification handler that starts it.
	ctx, t.cancel = context.WithCancelCause(context.WithValue(ctx, holderKey{}, holder(nil)))
	t.turn = &outgoingTurn{spec: spec, inside: t.inside, feed: func(params any, size int) bool {
		u, ok := pick(params)
		if ok {
			t.deliver(u, size)
		}
		return ok
	}}
	out := expect(t.turn, end)
	c.begin(ctx, t.cancel, t.turn)
	started := c.tasks.spawn(taskFunc(func() {
		// Deferred, because middleware may end the goroutine, or refuse the turn before it is run.
		defer t.end()
		defer t.cancel(nil)
		defer c.leave(t.turn)
		t.err = named(m.Name, errTurnEnded)
		t.result, t.err = runTurn(ctx, c, m, params, t.turn, out)
	}))
	if !started {
		t.cancel(nil)
		c.leave(t.turn)
		t.err = named(m.Name, c.ending())
		t.end()
	}
	return t
}

var errTurnEnded = errors.New("acp: middleware has ended the goroutine of the turn")

// FailedTurn returns a turn that could not be started.
func FailedTurn[U, R any](ctx context.Context, c *Conn, err error) *Turn[U, R] {
	t := newTurn[U, R](ctx, c, "")
	t.err = err
	t.end()
	return t
}

func newTurn[U, R any](ctx context.Context, c *Conn, method string) *Turn[U, R] {
	t := &Turn[U, R]{conn: c, method: method, done: make(chan struct{}), inside: make(chan struct{})}
	t.flow.init(&c.loops, holderOf(ctx))
	t.body = context.WithValue(ctx, holderKey{}, holder(&t.flow))
	return t
}

// Updates yields the turn's updates in order, and ends when the turn has. Leaving the loop early discards the rest; it
// does not cancel the turn and does not block the peer. A slow loop blocks the peer once Config.QueueBytes of updates
// are waiting for it.
//
// A call made in the loop's body cannot be answered while the loop blocks the peer. A call with the turn's Context
// lets up to Config.QueueLimit of updates wait, at which it fails with ErrOverflow. For any other call, it is not known
// whether the loop waits for it: while one is in progress, the same amount may wait, and beyond that the loop ends, and
// Result fails with ErrOverflow.
func (t *Turn[U, R]) Updates() iter.Seq[U] {
	return func(yield func(U) bool) {
		for {
			u, ok := t.next()
			if !ok {
				return
			}
			if !yield(u) {
				t.Discard()
				return
			}
		}
	}
}

// Context returns the context for calls made in the body of a loop over Updates: the context with which the turn was
// started, marked to show that the loop waits for the calls. It does not end with the turn.
func (t *Turn[U, R]) Context() context.Context { return t.body }

// Discard discards the updates that have not been read, and later ones.
func (t *Turn[U, R]) Discard() {
	t.mu.Lock()
	t.updates = nil
	t.throwAway()
	t.mu.Unlock()
	t.taken()
}

// Cancel cancels the turn; see RunTurn. The cancellation is on its way when Cancel returns. It does not wait for the
// turn's end: Result does.
func (t *Turn[U, R]) Cancel() {
	if t.turn == nil {
		return
	}
	t.cancel(ErrTurnCancelled)
	t.conn.cancelTurn(t.turn)
}

// Result waits for the end of the turn, discarding unread updates, and returns the answer or the reason why there is
// none.
func (t *Turn[U, R]) Result() (*R, error) {
	t.Discard()
	if !isClosed(t.done) {
		calls := &t.conn.calls
		f := calls.beginIn(t.starter, t.cancel)
		defer calls.end(f)
		if f != nil && slices.ContainsFunc(f.holders, isHandling) {
			t.once.Do(func() { close(t.inside) })
		}
		<-t.done
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.overflow {
		return nil, named(t.method, errors.Join(ErrOverflow, t.err))
	}
	return t.result, t.err
}

// Done returns a channel that is closed when the turn is over. There may still be updates to read. Waiting for Done
// without reading them or calling Discard blocks the peer.
func (t *Turn[U, R]) Done() <-chan struct{} { return t.done }

func (t *Turn[U, R]) end() {
	t.flow.end()
	close(t.done)
}

// next waits for the next update.
func (t *Turn[U, R]) next() (u U, ok bool) {
	t.mu.Lock()
	for len(t.updates) == 0 {
		if t.ended || t.discard {
			t.mu.Unlock()
			return u, false
		}
		t.mu.Unlock()
		t.await(t.cancel)
		t.mu.Lock()
	}
	first := t.updates[0]
	t.updates[0] = update[U]{}
	t.updates = t.updates[1:]
	t.count(-first.size)
	t.mu.Unlock()
	t.taken()
	return first.value, true
}

// deliver queues an update on the session's worker.
func (t *Turn[U, R]) deliver(u U, size int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.makeRoom(size)
	if t.discard {
		t.updates = nil
	}
	if !t.discard && !t.ended {
		t.updates = append(t.updates, update[U]{u, size})
		t.more.ring()
	}
}
