// This file owns the turns of this side: a long request whose session sends updates meanwhile, and
// which is cancelled by a notification and not by giving up.

package engine

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/acpgo/sdk/internal/wire"
)

// TurnSpec says how a turn runs.
type TurnSpec struct {
	// Session is the id of the session that the turn belongs to.
	Session string
	// CancelMethod and CancelParams are the notification that cancels it.
	CancelMethod string
	CancelParams any
}

// ownTurn is a turn of this side in progress.
type ownTurn struct {
	cancel context.CancelCauseFunc    // nil until it runs; guarded by Conn.mu
	early  bool                       // it was cancelled before; guarded by Conn.mu
	feed   func(params any, size int) // nil: nobody reads updates
	inside <-chan struct{}            // closed when a notification handler waits for the end
	params any                        // of its cancellation; guarded by Conn.mu

	session *session
	// Of a turn that goes on after its answer, see TurnEnd.
	over     chan struct{}         // closed when it is over; nil: its answer ends it
	accepted bool                  // the answer has come; of who waits for the end
	notified func(params any) bool // reports the end; the reader's
	last     uint64                // the notifications of the session that come before the end
}

// feed hands a notification to the session's oldest turn that goes on; it runs on the session's worker.
func (c *Conn) feed(s *session, it *item) {
	if c.feeding.Load() == 0 {
		return
	}
	s.mu.Lock()
	position := s.handled + 1
	s.mu.Unlock()
	c.mu.Lock()
	var to func(any, int)
	for _, own := range s.own {
		if own.lasts(position) {
			to = own.feed
			break
		}
	}
	c.mu.Unlock()
	if to != nil {
		to(withoutMeta(it.params), it.size)
	}
}

// CancelSession cancels the turns that this side has in progress in a session, as ending their contexts
// would. Without any it tells the peer all the same, and answers what waits for this side's user.
func (c *Conn) CancelSession(ctx context.Context, spec TurnSpec) error {
	c.mu.Lock()
	turns := 0
	var asks []*inbound
	if s := c.sessions[spec.Session]; s != nil {
		turns, asks = len(s.own), slices.Clone(s.asks)
		for _, own := range s.own {
			own.params = spec.CancelParams
			if own.early = own.cancel == nil; !own.early {
				own.cancel(ErrTurnCancelled)
			}
		}
	}
	c.mu.Unlock()
	if turns > 0 {
		return nil
	}
	var err error
	moot(asks, func() { err = c.notify(ctx, spec.CancelMethod, spec.CancelParams) })
	return err
}

// moot answers questions of a turn that is cancelled. None is answered otherwise once tell has told the
// peer of the cancellation.
func moot(asks []*inbound, tell func()) {
	asks = slices.DeleteFunc(asks, func(in *inbound) bool { return !in.withdraw() })
	tell()
	for _, in := range asks {
		in.answerCancelled()
	}
}

// RunTurn sends the request and waits for its answer, which comes after all updates of the turn were
// handled. When ctx ends, or CancelSession is called, the turn is cancelled: the peer is told, the
// requests of the session that wait for this side's user are answered as cancelled, updates are still
// taken, and the answer is waited for, for at most Options.CancelGrace; only then is the request given
// up and the cause returned.
func RunTurn[P, R any](ctx context.Context, c *Conn, m RequestMethod[P, R], params *P, spec TurnSpec) (*R, error) {
	own := &ownTurn{}
	return runTurn(ctx, c, m, params, spec, own, expect[R, R](own, byAnswer[R]{}))
}

func runTurn[P, A, R any](
	ctx context.Context, c *Conn, m RequestMethod[P, A], params *P, spec TurnSpec, own *ownTurn, out *outcome[A, R],
) (*R, error) {
	answer := &typed[A]{null: m.NullResult, then: func(answer *A) {
		own.answered(func() bool { return out.answered(answer) })
	}}
	answer.pending = pending{conn: c, method: m.Name, result: answer}
	if c.opts.Call == nil {
		if err := c.turn(ctx, &answer.pending, encodable(params), spec, own); err != nil {
			return nil, named(m.Name, err)
		}
		return out.result, nil
	}
	call := &Call{Method: m.Name, Session: spec.Session, Params: params}
	return replaced[R](call, c.opts.Call(ctx, call, func(ctx context.Context) error {
		if err := c.turn(ctx, &answer.pending, call.outgoing(), spec, own); err != nil {
			return named(m.Name, err)
		}
		call.Result = out.result
		return nil
	}))
}

// enter puts a turn among those of its session, where CancelSession finds it.
func (c *Conn) enter(own *ownTurn, spec TurnSpec) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own.session = c.sessionLocked(spec.Session)
	own.session.own = append(own.session.own, own)
	if own.over != nil {
		c.following.Add(1)
	}
	if own.feed != nil {
		c.feeding.Add(1)
	}
}

// leave takes it out again.
func (c *Conn) leave(own *ownTurn) {
	c.mu.Lock()
	own.session.own = slices.DeleteFunc(own.session.own, func(o *ownTurn) bool { return o == own })
	if own.over != nil {
		c.following.Add(-1)
	}
	if own.feed != nil {
		c.feeding.Add(-1)
	}
	c.mu.Unlock()
	c.release(own.session)
}

func (c *Conn) turn(ctx context.Context, p *pending, params wire.Encodable, spec TurnSpec, own *ownTurn) error {
	caller := ctx
	f := c.flights.begin(ctx, own.feed != nil)
	defer c.flights.end(f)
	ctx = f.ctx
	defer context.AfterFunc(c.base, func() { f.cancel(context.Cause(c.base)) })()
	if own.session == nil {
		c.enter(own, spec)
	}
	s := own.session
	defer c.leave(own)
	c.mu.Lock()
	own.cancel = f.cancel
	if own.early {
		f.cancel(ErrTurnCancelled)
	}
	c.mu.Unlock()

	if err := p.start(ctx, params); err != nil {
		if errors.Is(err, ErrTurnCancelled) {
			c.cancelOwn(s, own, spec)() // CancelSession has left that to the turn
		}
		return err
	}
	cancelled, err := own.end(ctx, p)
	if cancelled && !errors.Is(err, ErrOverflow) && c.held(own) {
		cancelled, err = own.takeBack(p, err)
	}
	if cancelled {
		defer c.cancelOwn(s, own, spec)()
		if errors.Is(err, ErrOverflow) {
			own.giveUp(p) // the caller must go on at once
			return err
		}
		grace, cancel := context.WithTimeout(c.base, c.opts.CancelGrace)
		defer cancel()
		late, waited := own.end(grace, p)
		if late {
			own.giveUp(p)
			if errors.Is(waited, ErrClosed) {
				return waited // not the grace has ended, but the connection
			}
			return err
		}
		err = waited
	}
	// What was received before the end of the turn belongs to it, also when there was no answer.
	if err != nil {
		c.awaitTurn(caller, s, s.position(), c.opts.DrainTime, own.inside)
		return err
	}
	switch {
	case own.over != nil && p.err == nil:
		c.awaitTurn(caller, s, own.last, 0, own.inside)
	case p.queue != nil:
		c.awaitTurn(caller, p.queue, p.after, 0, own.inside)
	}
	return p.err
}

// cancelOwn cancels a turn of this side in a session: it tells the peer, and answers what waits for
// this side. The returned function is called when the turn is over.
func (c *Conn) cancelOwn(s *session, own *ownTurn, spec TurnSpec) func() {
	c.mu.Lock()
	s.cancelling++
	asks := slices.Clone(s.asks)
	params := spec.CancelParams
	if own.params != nil {
		params = own.params
	}
	c.mu.Unlock()
	moot(asks, func() {
		if err := c.wire.Post(spec.CancelMethod, encodable(params)); err != nil {
			c.opts.Logger.Debug("cancellation not sent", "error", err)
		}
	})
	return func() {
		c.mu.Lock()
		s.cancelling--
		c.mu.Unlock()
	}
}

// awaitTurn waits until the notifications of a turn were handled: without a bound while its caller
// wants it to go on, and for bound, or the grace, otherwise.
func (c *Conn) awaitTurn(
	ctx context.Context, s *session, position uint64, bound time.Duration, inside <-chan struct{},
) {
	if insideHandler(ctx) {
		return
	}
	handled := s.reached(position, insideRequest(ctx))
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
	timer := time.NewTimer(bound)
	defer timer.Stop()
	select {
	case <-handled:
	case <-inside:
	case <-c.base.Done():
	case <-timer.C:
	}
}

// A Turn is a request in progress whose session's updates are read as they come. Updates is for one
// goroutine; the other methods are safe for concurrent use.
type Turn[U, R any] struct {
	conn   *Conn
	cancel context.CancelCauseFunc
	done   chan struct{}
	result *R
	err    error

	starter *handling     // the notification handler that started it, or nil
	inside  chan struct{} // closed when that handler waits for the end
	once    sync.Once

	mu      sync.Mutex
	updates []update[U]
	bytes   int
	discard bool // nobody will read what comes
	ended   bool // nothing more comes
	reading bool // the loop's body runs
	since   uint64
	change  chan struct{} // closed and replaced whenever one of the above changes
}

type update[U any] struct {
	value U
	size  int
}

// StartTurn is RunTurn in the background. A notification handler that starts a turn in its own session
// must not range over its updates, which come only after the handler has returned. pick takes the updates
// from the parameters of the notifications that feed turns, see Route.Feeds.
func StartTurn[U, P, R any](
	ctx context.Context, c *Conn, m RequestMethod[P, R], params *P, spec TurnSpec, pick func(params any) (U, bool),
) *Turn[U, R] {
	return startTurn[U, P, R, R](ctx, c, m, params, spec, byAnswer[R]{}, pick)
}

func startTurn[U, P, A, R any](
	ctx context.Context, c *Conn, m RequestMethod[P, A], params *P, spec TurnSpec, end TurnEnd[A, R],
	pick func(params any) (U, bool),
) *Turn[U, R] {
	starter := handlerOf(ctx)
	// It runs on its own, whatever becomes of a notification handler that starts it.
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, handlerKey{}, (*handling)(nil)))
	t := newTurn[U, R](c, cancel)
	t.starter = starter
	own := &ownTurn{inside: t.inside, feed: func(params any, size int) {
		if u, ok := pick(params); ok {
			t.deliver(u, size)
		}
	}}
	out := expect(own, end)
	c.enter(own, spec)
	started := c.spawn(taskFunc(func() {
		defer cancel(nil)
		t.result, t.err = runTurn(ctx, c, m, params, spec, own, out)
		t.end()
	}))
	if !started {
		cancel(nil)
		c.leave(own)
		t.err = named(m.Name, c.ending())
		t.end()
	}
	return t
}

// FailedTurn is a turn that could not be started.
func FailedTurn[U, R any](c *Conn, err error) *Turn[U, R] {
	t := newTurn[U, R](c, func(error) {})
	t.err = err
	t.end()
	return t
}

func newTurn[U, R any](c *Conn, cancel context.CancelCauseFunc) *Turn[U, R] {
	return &Turn[U, R]{
		conn:   c,
		cancel: cancel,
		done:   make(chan struct{}),
		inside: make(chan struct{}),
		change: make(chan struct{}),
	}
}

// Updates yields the turn's updates in order, and ends when the turn has. Leaving the loop early throws
// the rest away; it neither cancels the turn nor holds anything up. A loop that is slow holds up the
// peer, when Options.QueueBytes of updates are waiting for it.
func (t *Turn[U, R]) Updates() iter.Seq[U] {
	return func(yield func(U) bool) {
		loops := &t.conn.flights.loops
		loops.Add(1)
		defer loops.Add(-1)
		for {
			u, ok := t.next()
			if !ok {
				return
			}
			ok = yield(u)
			t.set(func() { t.reading = false })
			if !ok {
				t.Discard()
				return
			}
		}
	}
}

// Discard throws away the updates that were not read, and those to come.
func (t *Turn[U, R]) Discard() {
	t.set(func() { t.discard, t.updates, t.bytes = true, nil, 0 })
}

// Cancel cancels the turn; see RunTurn. It does not wait: Result does.
func (t *Turn[U, R]) Cancel() { t.cancel(nil) }

// Result waits for the end of the turn, discarding what was not read, and returns the answer or why
// there is none.
func (t *Turn[U, R]) Result() (*R, error) {
	t.Discard()
	if t.starter != nil {
		f := t.conn.flights.begin(t.starter, true)
		defer t.conn.flights.end(f)
		defer context.AfterFunc(f.ctx, func() { t.cancel(context.Cause(f.ctx)) })()
		if f.within != nil {
			t.once.Do(func() { close(t.inside) })
		}
	}
	<-t.done
	return t.result, t.err
}

// Done is closed when the turn is over. Updates may still be there to be read. To wait for it without
// reading them or calling Discard holds up the peer.
func (t *Turn[U, R]) Done() <-chan struct{} { return t.done }

func (t *Turn[U, R]) end() {
	t.set(func() { t.ended = true })
	close(t.done)
}

// set changes the state and wakes whoever waits for a change.
func (t *Turn[U, R]) set(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f()
	t.signal()
}

// signal wakes whoever waits for a change; mu is held.
func (t *Turn[U, R]) signal() {
	close(t.change)
	t.change = make(chan struct{})
}

// next waits for the next update.
func (t *Turn[U, R]) next() (u U, ok bool) {
	begun := t.conn.flights.begun()
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.updates) == 0 {
		if t.ended || t.discard {
			return u, false
		}
		change := t.change
		t.mu.Unlock()
		<-change
		begun = t.conn.flights.begun()
		t.mu.Lock()
	}
	first := t.updates[0]
	t.updates[0] = update[U]{}
	t.updates = t.updates[1:]
	t.bytes -= first.size
	t.reading, t.since = true, begun
	t.signal()
	return first.value, true
}

// deliver queues an update on the session's worker. When too much waits to be read, it waits, and with
// it the session and then the reader; but when the body of the loop waits for a call, which only the
// reader can end, it goes on up to the limit, at which that call fails.
func (t *Turn[U, R]) deliver(u U, size int) {
	opts, flights := &t.conn.opts, &t.conn.flights
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.bytes > 0 && t.bytes+size > opts.QueueBytes && !t.discard && !t.ended {
		change, since := t.change, t.since
		calling, call := false, (<-chan struct{})(nil)
		if t.reading {
			calling, call = flights.since(since)
		}
		if calling && t.bytes+size <= opts.QueueLimit {
			break
		}
		t.mu.Unlock()
		if calling {
			flights.fail(func(f *flight) bool { return f.of(since) })
		}
		select {
		case <-change:
		case <-call:
		case <-t.conn.base.Done():
			t.mu.Lock()
			t.discard = true // a later one must not come without this one
			return
		}
		t.mu.Lock()
	}
	if !t.discard && !t.ended {
		t.updates = append(t.updates, update[U]{u, size})
		t.bytes += size
		t.signal()
	}
}
