package engine

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// inbound is a request of the peer in progress, and the context of its handler.
type inbound struct {
	incoming

	conn    *Conn
	req     wire.Request
	session *session
	params  any
	meta    map[string]json.RawMessage // of the parameters, for middleware
	length  int                        // length of their text
	size    int                        // size of the message, as counted by limits
	after   uint64                     // position: the notifications of the session that come first

	reserved atomic.Int64 // for the answer; changed only according to reserving

	mu        answerLock  // held while the answer is written
	answered  atomic.Bool // set with mu held
	withdrawn atomic.Bool // taken from its handler, which no longer answers it; set with mu held
	goesOn    bool        // it has been answered, and continues
	then      []func(context.Context)
	held      int           // size of the notifications in then
	refused   bool          // the answer is an error
	through   bool          // the functions in then have been called
	followed  *session      // the session whose next turn waits for the functions in then,
	follows   chan struct{} // until this is closed

	// For a turn that continues after its answer, see KeepTurn.
	rest func(ctx context.Context, free func())
	drop func()
}

// inboundKey is the context key of a handler's request.
type inboundKey struct{}

// Value returns in itself under inboundKey.
func (in *inbound) Value(key any) any {
	if key == (inboundKey{}) {
		return in
	}
	return in.lateContext.Value(key)
}

// insideRequest reports whether ctx belongs to a request handler.
func insideRequest(ctx context.Context) bool { return ctx.Value(inboundKey{}) != nil }

// run serves the request. Its handler runs even if the request has been cancelled, if only to see that, but not if it
// has been answered.
func (in *inbound) run() {
	defer in.markDone()
	defer in.finish(nil, errHandlerEnded) // for a handler that ends its goroutine, as a test's FailNow does
	if in.after > 0 {
		select {
		case <-in.session.reached(in.after, true):
		case <-in.conn.base.Done():
		}
	}
	if in.conn.base.Err() != nil {
		in.finish(nil, ErrClosed)
		return
	}
	for _, turn := range in.ends {
		select {
		case <-turn.done:
		case <-in.Done():
			in.finish(nil, context.Cause(in))
			return
		}
	}
	for _, sent := range in.behind {
		select {
		case <-sent:
		case <-in.Done():
			in.finish(nil, context.Cause(in))
			return
		}
	}
	if in.wasAnswered() {
		return
	}
	in.finish(in.serve())
}

// markDone records that the request is over, unless it was withdrawn and has yet to be answered.
func (in *inbound) markDone() {
	in.discharge()
	if !in.wasWithdrawn() {
		in.req.Done()
	}
}

// withdraw takes a question of a cancelled turn from its handler, and reports whether the caller must answer it.
func (in *inbound) withdraw() bool {
	in.mu.Lock()
	first := !in.answered.Load()
	in.answered.Store(true)
	if first {
		in.withdrawn.Store(true)
	}
	in.mu.Unlock()
	in.cancel(ErrTurnCancelled)
	return first
}

// wasWithdrawn reports whether the request was taken from its handler, and is answered as cancelled.
func (in *inbound) wasWithdrawn() bool { return in.withdrawn.Load() }

// answerCancelled answers a question that was withdrawn.
func (in *inbound) answerCancelled() {
	defer in.req.Done()
	in.forget()
	err := in.req.Answer(wire.Answer{Result: encodable(in.route.Cancelled(nil))})
	in.sent(err)
	in.reportUnsent(err)
	in.conn.tasks.spawn(taskFunc(in.followUp))
}

// wasAnswered reports whether the request has been answered.
func (in *inbound) wasAnswered() bool { return in.answered.Load() }

// finish answers the request, if it has not been answered, and runs what must follow the answer. It calls functions of
// the author, such as methods of a result, an error or a logger, without the lock.
func (in *inbound) finish(result any, err error) {
	if in.wasAnswered() {
		return
	}
	first, err := in.conclude(result, err)
	in.reportUnsent(err)
	if !first {
		in.unfollow()
		return
	}
	in.followUp()
	in.carryOn()
}

// conclude waits until there is room for the answer, and answers; see answer. The handler's reservation for it is kept
// until then. Functions of the author, which may wait for other answers, are called while no room is taken.
func (in *inbound) conclude(result any, err error) (first bool, _ error) {
	defer in.conn.reserving.free(&in.reserved, false)
	if in.route.Inline { // the reader is waiting
		in.conn.wire.AwaitFlood(in.conn.base)
		answer := in.prepare(result, err)
		in.follow(answer)
		return in.answer(answer)
	}
	in.req.AwaitRoom(in.conn.base)
	cancelled := in.cancelled.Load()
	if err == nil {
		result = wire.Ready(encodable(result))
	}
	answer := in.prepare(result, err)
	in.follow(answer)
	room := in.req.TakeRoom(in.conn.base, int(in.reserved.Load()))
	defer in.req.LeaveRoom(room)
	if in.cancelled.Load() != cancelled && in.route.Cancelled != nil {
		answer = in.prepare(result, err)
	}
	return in.answer(answer)
}

// prepare returns the answer, and reports a failure.
func (in *inbound) prepare(result any, err error) wire.Answer {
	result, err = in.outcome(result, err)
	if err == nil {
		return wire.Answer{Result: wire.Ready(encodable(result))}
	}
	e, hidden := in.conn.opts.Errors.Visible(err)
	in.conn.reportFailure(in, "request failed", in.req.Method, err, hidden)
	return wire.Answer{Failure: e}
}

// answer answers the request and returns true, unless it has been answered; the error is the reason why the answer was
// not sent unchanged. The lock is held until the answer is on its way, so that it precedes a cancellation that finds
// the request answered.
func (in *inbound) answer(answer wire.Answer) (first bool, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.answered.Load() {
		return false, nil
	}
	in.answered.Store(true)
	in.goesOn = answer.Failure == nil && in.rest != nil
	// This is done before the answer is on its way, because the peer may react to the answer with its next turn.
	in.forget()
	err = in.req.Answer(answer)
	in.refused = answer.Failure != nil || err != nil
	in.sent(err)
	return true, err
}

// outcome returns the answer to a request whose handler has returned result and err.
func (in *inbound) outcome(result any, err error) (any, error) {
	if in.route.Cancelled != nil && (in.cancelled.Load() || in.wasWithdrawn()) {
		if err != nil {
			result = nil
		}
		answer := in.route.Cancelled(result)
		if result != nil {
			if _, err := codec.Append(nil, encodable(answer)); err != nil { // the peer must learn of the cancellation
				in.reportUnsent(err)
				answer = in.route.Cancelled(nil)
			}
		}
		return answer, nil
	}
	errs := &in.conn.opts.Errors
	if err == nil {
		return result, nil
	}
	if in.Err() != nil { // by the peer, or because this side ends the connection
		if e, _ := errs.Visible(err); e.Code == codeInternalError {
			err = requestCancelled
		}
	}
	return result, err
}

// follow makes the next turn of the request's session, or of the one that it has created, wait for the functions to be
// called after the answer: what they send would otherwise arrive in that turn.
func (in *inbound) follow(answer wire.Answer) {
	in.mu.Lock()
	some := len(in.then) > 0
	in.mu.Unlock()
	if !some {
		return
	}
	id := in.session.id
	if id == "" && answer.Failure == nil && answer.Result != nil {
		// A result that cannot be encoded names no session.
		text, _ := codec.Append(nil, answer.Result)
		id = sessionOf(codec.NewDecoder(nil), text)
	}
	in.conn.mu.Lock()
	defer in.conn.mu.Unlock()
	in.follows, in.followed = make(chan struct{}), &in.conn.sessionLocked(id).session
	in.followed.following = append(in.followed.following, in.follows)
}

// unfollow undoes follow. It may be called more than once.
func (in *inbound) unfollow() {
	c := in.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	s := in.followed
	if s == nil {
		return
	}
	in.followed = nil
	s.following = slices.DeleteFunc(s.following, func(other chan struct{}) bool { return other == in.follows })
	c.releaseLocked(s)
	close(in.follows)
}

// followUp runs the functions to be called after the answer. Notifications that are sent with the request's context in
// the meantime are added to them, so that they do not overtake those that wait.
func (in *inbound) followUp() {
	defer in.unfollow()
	for {
		in.mu.Lock()
		then := in.then
		in.then, in.through = nil, len(then) == 0
		in.mu.Unlock()
		if len(then) == 0 {
			return
		}
		for _, f := range then {
			// guard reports a panic; there is no caller to return an error to.
			_ = in.conn.guard(in.req.Method, func() error { f(in.conn.base); return nil })
		}
	}
}

// forget removes the request from those in progress.
func (in *inbound) forget() {
	if !in.goesOn {
		in.cancel(context.Canceled)
	}
	c := in.conn
	c.mu.Lock()
	if key := wire.Canonical(in.req.ID); c.inbound[key] == &in.incoming {
		delete(c.inbound, key)
	}
	if in.goesOn {
		c.mu.Unlock()
		return
	}
	c.serving--
	in.session.step(event{kind: turnFreed, in: &in.incoming})
	c.mu.Unlock()
}

// leave removes the request from its session once its answer is on its way. Until then, anything that must follow that
// answer has to find the request there.
func (in *inbound) leave() {
	c := in.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	in.session.step(event{kind: answerSent, in: &in.incoming}) // which has no effects
	c.releaseLocked(in.session)
}

// reportUnsent reports to the owner why an answer was not sent unchanged.
func (in *inbound) reportUnsent(err error) {
	if err == nil {
		return
	}
	level := slog.LevelDebug // the connection is over
	if _, ok := errors.AsType[*codec.Error](err); ok {
		level = slog.LevelWarn
	}
	in.conn.opts.Logger.Log(in, level, "answer not sent as it was", "method", in.req.Method, "error", err)
}

// sent records that the answer was sent, or why it was not sent unchanged.
func (in *inbound) sent(err error) {
	if err != nil && in.goesOn {
		in.goesOn = false
		in.forget()
	}
	if in.goesOn {
		return
	}
	in.leave()
	if in.done != nil {
		close(in.done)
	}
}

// AfterResponse calls fn after the answer to the request that ctx belongs to has been handed to the writer, so messages
// that fn sends always follow it: available commands after session/new, for example. fn's context ends with the
// connection. The next turn of the request's session, or of the session that the request creates, begins when fn has
// returned. Outside the handler of a request AfterResponse does nothing and returns false.
func AfterResponse(ctx context.Context, fn func(ctx context.Context)) bool {
	in, ok := ctx.Value(inboundKey{}).(*inbound)
	if !ok {
		return false
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.answered.Load() {
		return false
	}
	in.then = append(in.then, fn)
	return true
}

// serve runs the handler.
func (in *inbound) serve() (result any, err error) {
	c := in.conn
	if c.opts.Serve == nil {
		err = c.guard(in.req.Method, func() (err error) {
			result, err = in.route.serve(in, in.params)
			return err
		})
		return in.verified(result, err)
	}
	call := &Call{
		Method: in.req.Method, ID: in.req.ID, Incoming: true, Session: in.session.id,
		Size: in.length, Meta: in.meta, Params: plainParams(in.params),
	}
	null := false // the result of a fallback's handler
	err = c.guard(in.req.Method, func() error {
		return c.opts.Serve(in, call, func(ctx context.Context) error {
			var result any
			err := c.guard(in.req.Method, func() (err error) {
				result, err = in.route.serve(ctx, in.replacing(call.Params))
				return err
			})
			if err == nil && result != nil {
				_, err = codec.Append(nil, encodable(result))
			}
			call.Result, err = in.outcome(result, err)
			null = err == nil && call.Result == nil
			return err
		})
	})
	if err == nil && call.Result == nil && !null {
		err = errNilResult
	}
	return in.verified(call.Result, err)
}

// verified returns a handler's result, unless the route refuses it.
func (in *inbound) verified(result any, err error) (any, error) {
	if err == nil && in.route.Verify != nil {
		err = in.route.Verify(result)
	}
	return result, err
}

// replacing returns the parameters for the handler after middleware has passed params on.
func (in *inbound) replacing(params any) any {
	if p, ok := in.params.(*fallbackParams); ok {
		return p.replaced(params)
	}
	return params
}

// discharge removes a request from the budget when its handler, and what the handler left for afterwards, has returned.
func (in *inbound) discharge() {
	in.conn.reserving.free(&in.reserved, true)
	in.conn.requested.Add(int64(-in.size))
}

// Reserve waits until the handler of the request that ctx belongs to may produce an answer that takes n bytes. The
// reservation is released when the answer has been handed to the writer, or the request is over. Calling Reserve again
// replaces the request's reservation: this never waits, because two requests that each hold a part would wait for each
// other, and fails if there is no room for more. Reserve returns the cause of ctx if that ends first. Outside the
// handler of a request it does nothing.
func Reserve(ctx context.Context, n int) error {
	in, ok := ctx.Value(inboundKey{}).(*inbound)
	switch {
	case !ok:
		return nil
	case n <= 0:
		in.conn.reserving.free(&in.reserved, false)
		return nil
	}
	b, r := &in.conn.reserving, &reservation{&in.reserved, int64(n), make(chan struct{})}
	if done, err := b.reserve(r); done {
		return err
	}
	select {
	case <-r.ready:
		return nil
	case <-ctx.Done():
	case <-in.conn.base.Done():
		ctx = in.conn.base
	}
	b.withdraw(r)
	return context.Cause(ctx)
}

// carryOn runs the rest of a turn that has been answered.
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

// free lets the session accept its next turn.
func (in *inbound) free() { _ = in.conn.step(in.session, event{kind: turnFreed, in: &in.incoming}) }

// end ends a turn that was longer than its request.
func (in *inbound) end() {
	in.free()
	in.cancel(context.Canceled)
	in.leave()
	close(in.done)
}
