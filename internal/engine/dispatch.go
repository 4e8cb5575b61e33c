package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/acpgo/sdk/acp/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// methodCancelRequest is the protocol's own notification, which either side may send.
const methodCancelRequest = "$/cancel_request"

// memberSession is the member of parameters, and of the result of session/new, that names a session.
const memberSession = "sessionId"

// reader is the connection as the wire sees it. Its methods run on the reader.
type reader struct{ c *Conn }

// emptyObject stands for parameters that were left out.
var emptyObject = []byte("{}")

func (r *reader) HandleRequest(id ID, method string, params []byte) {
	if err := r.c.receive(id, method, params); err != nil {
		r.c.refuse(id, method, err)
	}
}

// TryRequest is HandleRequest for parameters that are the last member of a message. It leaves alone what
// is not known, or not as it should be.
func (r *reader) TryRequest(id ID, method, rest []byte) bool {
	c := r.c
	route := c.requests[string(method)]
	if !route.handled() {
		return false
	}
	value, _, params, ok := c.tryDecode(route, rest)
	if !ok {
		return false
	}
	if err := c.admit(id, route, route.Method, value, params); err != nil {
		c.refuse(id, route.Method, err)
	}
	return true
}

func (c *Conn) refuse(id ID, method string, err error) {
	c.opts.Logger.Debug("request refused", "method", method, "error", err)
	e, _ := c.opts.Errors.Visible(err)
	c.wire.Refuse(id, e)
}

// receive takes a request up, or says why it is refused.
func (c *Conn) receive(id ID, method string, params []byte) error {
	route := c.requests[method]
	if fallback := c.requests[""]; !route.handled() && fallback != nil {
		route = fallback
	}
	if refused := route.gated(); refused != nil {
		return refused
	}
	if !route.handled() {
		return MethodNotFound(method)
	}
	value, _, err := c.decodeParams(route, method, params)
	if err != nil {
		return invalidParams(err)
	}
	if refused := route.checked(value); refused != nil {
		return refused
	}
	return c.admit(id, route, method, value, params)
}

// admit is receive for a request that has been decoded.
func (c *Conn) admit(id ID, route *Route, method string, value any, params []byte) (err error) {
	in := &inbound{conn: c, route: route, params: value, meta: c.metaOf(params), length: len(params)}
	in.Context, in.cancel = context.WithCancelCause(c.base)
	if route.Turn {
		in.done = make(chan struct{})
		if c.opts.ConcurrentTurns {
			in.entered = make(chan struct{})
		}
	}
	session := sessionOf(c.decode, params)

	size := requestSize(id, method, params, c.items)

	c.mu.Lock()
	s := c.sessionLocked(session)
	in.session = s
	var do effects
	if c.serving >= c.opts.MaxRequests {
		err = refusal(codeInternalError, "too many requests in progress", nil)
	} else if !c.takes(size) {
		err = refusal(codeInternalError, "the requests in progress are too long together", nil)
	} else if do = s.step(event{kind: requestRead, in: in}); do.refuse != nil {
		err = refusal(codeInvalidRequest, "the session is busy with another turn",
			map[string]string{memberSession: echoed(session)})
	}
	if err != nil {
		c.mu.Unlock()
		in.cancel(err)
		c.release(s)
		return err
	}
	c.wire.Accept(&in.req, id, method)
	c.serving++
	in.size = size
	c.requested.Add(int64(size))
	if key := wire.Canonical(id); c.inbound[key] == nil {
		c.inbound[key] = in
	}
	c.mu.Unlock()

	in.after = s.position()
	c.carryOut(effects{end: do.end}, nil)
	switch {
	case len(do.withdraw) > 0 && in.withdraw():
		c.wire.AwaitFlood(c.base)
		in.answerCancelled()
		in.discharge()
		return nil
	case route.Inline:
		in.after = 0 // it does not wait
		done := make(chan struct{})
		if c.spawn(taskFunc(func() { defer close(done); in.run() })) {
			select {
			case <-done:
			case <-c.base.Done(): // or Close would wait for it without end
			}
			return nil
		}
	}
	if !c.spawn(in) {
		in.finish(nil, ErrClosed)
		in.markDone()
	}
	return nil
}

// decodeParams decodes the parameters of a request or notification; see Route.decode.
func (c *Conn) decodeParams(route *Route, method string, params []byte) (any, *notificationContext, error) {
	if params == nil || string(params) == "null" {
		params = emptyObject
	}
	c.decode.Reset(params)
	value, h := route.decode(c.decode)
	c.items = c.decode.Items()
	if err := c.decode.End(); err != nil {
		return nil, nil, err
	}
	if p, ok := value.(*fallbackParams); ok {
		p.method = method
	}
	c.repaired(method, c.decode)
	return value, h, nil
}

// tryDecode decodes parameters that are the last member of a message, if they and the route are as usual.
func (c *Conn) tryDecode(route *Route, rest []byte) (value any, h *notificationContext, params []byte, ok bool) {
	if route.gated() != nil {
		return nil, nil, nil, false
	}
	d := c.decode
	d.ResetLast(rest)
	if d.Kind() == 'n' {
		return nil, nil, nil, false // null is no parameters
	}
	value, h = route.decode(d)
	c.items = d.Items()
	params, ok = d.EndLast()
	if !ok || route.checked(value) != nil {
		return nil, nil, nil, false
	}
	c.repaired(route.Method, d)
	return value, h, params, true
}

// repaired reports the leniencies of the last decoding.
func (c *Conn) repaired(method string, d *codec.Decoder) {
	for _, r := range d.Repairs() {
		c.ReportRepair(method, r)
	}
}

// ReportRepair tells the owner of a connection what was wrong in a message and dropped, replaced or kept all the same.
func (c *Conn) ReportRepair(method string, r codec.Repair) {
	c.opts.Logger.Debug("repaired", "method", method, "at", r.Pointer, "what", r.Msg)
	if c.opts.Repair != nil {
		c.opts.Repair(method, r)
	}
}

// sessionOf peeks at the session id in parameters or a result.
func sessionOf(d *codec.Decoder, raw []byte) string {
	if len(raw) == 0 {
		return ""
	}
	d.Reset(raw)
	id, _ := d.Tag(memberSession)
	return d.Interned(id)
}

func (r *reader) HandleNotification(method, params []byte) {
	c := r.c
	if string(method) == methodCancelRequest {
		c.cancelRequest(params)
		return
	}
	route := c.notifications[string(method)]
	if route == nil {
		route = c.notifications[""]
	}
	if route == nil {
		c.opts.Logger.Debug("unknown notification", "method", string(method))
		return
	}
	if refused := route.gated(); refused != nil {
		c.invalid(nil, fmt.Errorf("notification %s: %w", method, refused))
		return
	}
	name := route.Method
	if name == "" { // of the fallback
		name = string(method)
	}
	value, h, err := c.decodeParams(route, name, params)
	if err != nil {
		c.drop("a notification that cannot be read", params, fmt.Errorf("params of %s: %w", method, err))
		return
	}
	if refused := route.checked(value); refused != nil {
		c.drop("a notification that is not valid", params, fmt.Errorf("notification %s: %w", method, refused))
		return
	}
	c.accept(route, value, h, params)
}

// TryNotification is HandleNotification for parameters that are the last member of a message. It leaves
// alone what is not known, or not as it should be.
func (r *reader) TryNotification(method, rest []byte) bool {
	c := r.c
	route := c.notifications[string(method)]
	if route == nil || string(method) == methodCancelRequest {
		return false
	}
	value, h, params, ok := c.tryDecode(route, rest)
	if ok {
		c.accept(route, value, h, params)
	}
	return ok
}

// accept takes up a notification.
func (c *Conn) accept(route *Route, value any, h *notificationContext, params []byte) {
	id := sessionOf(c.decode, params)
	if route.CancelsTurn {
		c.cancelTurns(id)
	}
	if route.notify != nil || route.Feeds {
		size := itemSize + len(params) + c.items*itemWeight
		c.gather(id, item{route: route, params: c.keepMeta(value, params), handling: h, size: size})
	}
	if route.Feeds {
		c.follow(id, value)
	}
}

// handleNotification runs on a session's worker.
func (c *Conn) handleNotification(ctx context.Context, s *session, it *item) {
	route, params, size := it.route, it.params, it.size // it does not escape to the heap
	name := route.Method
	var err error
	switch {
	case c.opts.Serve != nil:
		name, err = c.serveNotification(ctx, s, route, params.(*withMeta), size)
	case route.Feeds && c.feed(s, params, size), route.notify == nil:
		return
	default:
		if p, ok := params.(*fallbackParams); ok {
			name = p.method
		}
		err = c.guard(name, func() error { return route.notify(ctx, params) })
	}
	if err != nil {
		c.reportFailure(ctx, "notification handler failed", name, err, true)
	}
}

func (r *reader) Flush() { r.c.enqueue() }

func (r *reader) ReleaseMessage() { r.c.decode.Reset(nil) }

func (r *reader) HandleEnd(err error) {
	r.c.opts.Logger.Debug("the stream has ended", "error", err)
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	r.c.readEnd = time.Now()
}

func (r *reader) HandleDrained() {
	c, why := r.c, r.c.ending()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, in := range c.inbound {
		in.cancel(why)
	}
}

// HandleInvalid implements wire.Handler. It warns of what no answer tells the peer about.
func (r *reader) HandleInvalid(line []byte, reason error) {
	c := r.c
	text := bytes.TrimSpace(line)
	switch {
	case len(text) > 0 && text[0] != '{' && !c.opts.SkipNoise:
		c.drop("a line that is not a message", line, reason) // usually output that should not be there
	case errors.Is(reason, wire.ErrUnknownResponse), errors.Is(reason, wire.ErrPeerComplains):
		c.drop("a response that belongs to no request", line, reason)
	default:
		c.invalid(line, reason)
	}
}

// drop is invalid for a kind of message of which the peer is not told. The first of a kind is a warning: nobody else
// would say why something is missing.
func (c *Conn) drop(kind string, came []byte, reason error) {
	if c.opts.Invalid == nil && !slices.Contains(c.warned, kind) {
		c.warned = append(c.warned, kind)
		c.opts.Logger.Warn("dropped "+kind+"; more of these are logged at level debug", "reason", echoed(reason.Error()),
			"message", echoed(string(came[:min(len(came), maxEcho+1)])))
	}
	c.invalid(came, reason)
}

// invalid reports what was refused, ignored or skipped. The reason repeats the beginning of what came.
func (c *Conn) invalid(came []byte, reason error) {
	logged := c.opts.Logger.Enabled(c.base, slog.LevelDebug)
	if !logged && c.opts.Invalid == nil {
		return
	}
	if len(came) > 0 {
		reason = fmt.Errorf("%w: %q", reason, echoed(string(came[:min(len(came), maxEcho+1)])))
	}
	if logged {
		c.opts.Logger.Debug("invalid message", "reason", reason)
	}
	if c.opts.Invalid != nil {
		c.opts.Invalid(came, reason)
	}
}

// cancelRequest acts on $/cancel_request. Ids that are unknown, or answered, are ignored.
func (c *Conn) cancelRequest(params []byte) {
	var id ID
	found := false
	d := c.decode
	d.Reset(params)
	for o := d.Object(); o.Next(); {
		if string(o.Name()) == "requestId" {
			o.Once(0)
			id.DecodeJSON(d)
			found = true
		} else {
			d.Skip()
		}
	}
	if err := d.End(); err != nil || !found {
		c.invalid(params, fmt.Errorf("params of %s: no valid requestId", methodCancelRequest))
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if in := c.inbound[wire.Canonical(id)]; in != nil {
		in.cancel(c.opts.Errors.RequestCancelled)
	}
}

// cancelTurns cancels the turns of the peer's that a session has in progress.
func (c *Conn) cancelTurns(id string) {
	c.mu.Lock()
	var do effects
	if s := c.sessions[id]; s != nil {
		do = s.step(event{kind: cancelRead})
	}
	c.mu.Unlock()
	c.carryOut(do, nil)
}

// inbound is a request of the peer's in progress, and the context of its handler.
type inbound struct {
	context.Context

	conn    *Conn
	req     wire.Request
	route   *Route
	session *session
	params  any
	meta    map[string]json.RawMessage // of the parameters, for middleware
	length  int                        // of their text
	size    int                        // what the message counts for
	after   uint64                     // the notifications of the session that come first
	ends    []*inbound                 // the turns that are answered first
	cancel  context.CancelCauseFunc
	done    chan struct{} // of a turn: closed when the answer was sent, and the turn is over
	entered chan struct{} // of a turn beside others: closed when EnterTurn has called for it

	reserved atomic.Int64 // for the answer; changed by the rules of reserving

	// The session's, see session.step.
	freed     bool        // its session may take the next turn; guarded by Conn.mu
	cancelled atomic.Bool // the turn was; set with Conn.mu held

	mu        answerLock  // held while the answer is written
	answered  atomic.Bool // set with mu held
	withdrawn bool        // from its handler, which does not answer it any more
	then      []func(context.Context)

	// Of a turn that goes on after its answer, see KeepTurn.
	rest   func(ctx context.Context, free func())
	drop   func()
	goesOn bool // it was answered, and does
}

// inboundKey is the context key under which a handler's request is found.
type inboundKey struct{}

// Value returns in itself under inboundKey.
func (in *inbound) Value(key any) any {
	if key == (inboundKey{}) {
		return in
	}
	return in.Context.Value(key)
}

// insideRequest reports whether ctx belongs to the handler of a request.
func insideRequest(ctx context.Context) bool { return ctx.Value(inboundKey{}) != nil }

// run serves the request. Its handler runs even if the request was cancelled before, if only to see
// that, but not if it was answered.
func (in *inbound) run() {
	defer in.markDone()
	defer in.finish(nil, errHandlerEnded) // for a handler that ends its goroutine, as a test's FailNow does
	select {
	case <-in.session.reached(in.after, true):
	case <-in.conn.base.Done():
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
	if in.wasAnswered() {
		return
	}
	in.finish(in.conn.serveRequest(in))
}

// markDone says that nothing more belongs to the request, unless whoever has withdrawn it is still to answer.
func (in *inbound) markDone() {
	in.discharge()
	if !in.wasWithdrawn() {
		in.req.Done()
	}
}

// withdraw takes a question of a cancelled turn away from its handler, and reports whether the caller is
// to answer it.
func (in *inbound) withdraw() bool {
	in.mu.Lock()
	first := !in.answered.Load()
	in.answered.Store(true)
	in.withdrawn = in.withdrawn || first
	in.mu.Unlock()
	in.cancel(ErrTurnCancelled)
	return first
}

// wasWithdrawn reports whether the request was taken away from its handler, and is answered as cancelled.
func (in *inbound) wasWithdrawn() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.withdrawn
}

// answerCancelled answers a question that was withdrawn.
func (in *inbound) answerCancelled() {
	defer in.req.Done()
	in.forget()
	err := in.req.Answer(wire.Answer{Result: encodable(in.route.Cancelled(nil))})
	in.sent(err)
	in.reportUnsent(err)
	in.conn.spawn(taskFunc(in.followUp))
}

// wasAnswered reports whether the request was answered.
func (in *inbound) wasAnswered() bool { return in.answered.Load() }

// finish answers the request, if nobody has, and runs what is to come after the answer. What calls an author's
// functions, as those of a result, an error or a logger are, is done without the lock.
func (in *inbound) finish(result any, err error) {
	if in.wasAnswered() {
		return
	}
	first, err := in.conclude(result, err)
	in.reportUnsent(err)
	if first {
		in.followUp()
		in.carryOn()
	}
}

// conclude waits until there is room for the answer, and answers; see answer. Meanwhile what the handler has reserved
// for it stays reserved. An author's functions, which may wait for other answers, are called while no room is taken.
func (in *inbound) conclude(result any, err error) (first bool, _ error) {
	defer in.unreserve(false)
	if in.route.Inline { // the reader waits
		in.conn.wire.AwaitFlood(in.conn.base)
		return in.answer(in.prepare(result, err))
	}
	in.req.AwaitRoom(in.conn.base)
	cancelled := in.cancelled.Load()
	if err == nil {
		result = wire.Ready(encodable(result))
	}
	answer := in.prepare(result, err)
	room := in.req.TakeRoom(in.conn.base, int(in.reserved.Load()))
	defer in.req.LeaveRoom(room)
	if in.cancelled.Load() != cancelled && in.route.Cancelled != nil {
		answer = in.prepare(result, err)
	}
	return in.answer(answer)
}

// prepare makes the answer, and reports a failure.
func (in *inbound) prepare(result any, err error) wire.Answer {
	result, err = in.outcome(result, err)
	if err == nil {
		return wire.Answer{Result: wire.Ready(encodable(result))}
	}
	e, hidden := in.conn.opts.Errors.Visible(err)
	in.conn.reportFailure(in, "request failed", in.req.Method, err, hidden)
	return wire.Answer{Failure: e}
}

// answer answers the request and reports true, if nobody has; the error says why the answer was not sent as it was.
// The lock is held until the answer is on its way, so that it comes before a cancellation that finds the request
// answered.
func (in *inbound) answer(answer wire.Answer) (first bool, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.answered.Load() {
		return false, nil
	}
	in.answered.Store(true)
	in.goesOn = answer.Failure == nil && in.rest != nil
	// Before the answer is on its way, because the peer may react to it with its next turn.
	in.forget()
	err = in.req.Answer(answer)
	in.sent(err)
	return true, err
}

// outcome is what a request is answered with when its handler has returned this.
func (in *inbound) outcome(result any, err error) (any, error) {
	if in.route.Cancelled != nil && (in.cancelled.Load() || in.wasWithdrawn()) {
		if err != nil {
			result = nil
		}
		return in.route.Cancelled(result), nil
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

// followUp runs what was left for after the answer, when nothing more can be.
func (in *inbound) followUp() {
	for _, f := range in.then {
		// guard reports a panic; there is no caller to return an error to.
		_ = in.conn.guard(in.req.Method, func() error { f(in.conn.base); return nil })
	}
}

// forget takes the request out of those in progress.
func (in *inbound) forget() {
	if !in.goesOn {
		in.cancel(context.Canceled)
	}
	c := in.conn
	c.mu.Lock()
	if key := wire.Canonical(in.req.ID); c.inbound[key] == in {
		delete(c.inbound, key)
	}
	if in.goesOn {
		c.mu.Unlock()
		return
	}
	c.serving--
	in.session.step(event{kind: turnFreed, in: in})
	c.mu.Unlock()
}

// leave takes the request out of its session, when its answer is on its way. Before, whatever has to come
// behind that answer must find the request there.
func (in *inbound) leave() {
	_ = in.conn.step(in.session, event{kind: answerSent, in: in}) // which refuses nothing
	in.conn.release(in.session)
}

// reportUnsent tells the owner why an answer was not sent as it was.
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

// sent notes that the answer was sent, or why not as it was.
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

// AfterResponse has fn called after the answer to the request that ctx belongs to was handed to the
// writer, so that what fn sends comes strictly after it: available commands after session/new, for
// example. fn's context ends with the connection. Outside the handler of a request it returns false
// and does nothing.
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

// ReportFailure tells the owner of a connection that something has failed, once: a warning if the peer does not
// see why.
func (c *Conn) ReportFailure(ctx context.Context, message, method string, err error) {
	_, hidden := c.opts.Errors.Visible(err)
	c.reportFailure(ctx, message, method, err, hidden)
}

// reportFailure tells the owner of a connection that a handler has failed, once: a warning if nobody else hears
// why. That it was cancelled, or the connection has ended, is no news.
func (c *Conn) reportFailure(ctx context.Context, message, method string, err error, hidden bool) {
	if _, ok := errors.AsType[*panicError](err); ok {
		return // guard has
	}
	level := slog.LevelDebug
	expected := errors.Is(err, ErrClosed) ||
		ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
	if hidden && !expected {
		level = slog.LevelWarn
	}
	c.opts.Logger.Log(ctx, level, message, "method", method, "error", err)
}

// panicError is what a handler has panicked with.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprint("panic: ", e.value) }

// guard runs what belongs to a handler; its panic is reported and becomes an error. A handler that ends
// its goroutine ends it.
func (c *Conn) guard(method string, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			stack := debug.Stack()
			// Part of the message, because the default logger writes attributes on one line.
			c.opts.Logger.Error(fmt.Sprintf("handler panicked: %v\n%s", v, stack), "method", method)
			if c.opts.Panic != nil {
				c.opts.Panic(method, v, stack)
			}
			err = &panicError{v}
		}
	}()
	return f()
}

// A refusal is an Error that the engine answers with by itself.
func refusal(code int, message string, data map[string]string) *Error {
	e := &Error{Code: code, Message: message}
	if data != nil {
		e.Data, _ = json.Marshal(data) // of strings, which cannot fail
	}
	return e
}

// MethodNotFound is the answer to a request for a method that does not exist here. Of a very long name it
// has the beginning.
func MethodNotFound(method string) *Error {
	return refusal(codeMethodNotFound, "Method not found", map[string]string{"method": echoed(method)})
}

// invalidParams is the answer to parameters that do not fit: the pointer is in the message and in the data.
func invalidParams(err error) *Error {
	bad, ok := errors.AsType[*codec.Error](err)
	if !ok {
		return refusal(codeInvalidParams, "Invalid params: "+err.Error(), nil)
	}
	return refusal(codeInvalidParams, "Invalid params: "+bad.Error(),
		map[string]string{"pointer": bad.Pointer, "reason": bad.Msg})
}

var (
	// requestCancelled is the answer to a request whose handler has failed because the peer cancelled it.
	requestCancelled = refusal(codeRequestCancelled, "Request cancelled", nil)

	errHandlerEnded = errors.New("the handler has ended its goroutine")
)

// maxEcho is how many bytes of what the peer sent an error repeats.
const maxEcho = 256

// echoed is s as an error repeats it.
func echoed(s string) string {
	if len(s) <= maxEcho {
		return s
	}
	return strings.ToValidUTF8(s[:maxEcho], "") + "…"
}
