// This file owns what the peer sends: the reader's decisions, and the requests in progress.

package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/acpgo/sdk/acp/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// methodCancelRequest is the protocol's own notification, which either side may send.
const methodCancelRequest = "$/cancel_request"

// memberSession is the member of parameters, and of the result of session/new, that names a session.
const memberSession = "sessionId"

// reader is the connection as the wire sees it. Its methods run on the reader.
type reader struct {
	c       *Conn
	started <-chan struct{} // closed when c is complete
}

// emptyObject stands for parameters that were left out.
var emptyObject = []byte("{}")

func (r *reader) HandleRequest(req *wire.Request, params []byte) {
	<-r.started
	if err := r.c.receive(req, params); err != nil {
		r.c.opts.Logger.Debug("request refused", "method", req.Method, "error", err)
		if err := req.Refuse(toWire(err)); err != nil {
			r.c.opts.Logger.Debug("refusal not sent", "method", req.Method, "error", err)
		}
	}
}

// receive takes a request up, or says why it is refused.
func (c *Conn) receive(req *wire.Request, params []byte) error {
	route := c.requests[req.Method]
	if fallback := c.requests[""]; !route.handled() && fallback != nil {
		route = fallback
	}
	if route != nil && route.Gate != nil {
		if refused := route.Gate(); refused != nil {
			return refused
		}
	}
	if !route.handled() {
		return MethodNotFound(req.Method)
	}
	value, err := c.decodeParams(route, req.Method, params)
	if err != nil {
		return InvalidParams(err)
	}
	if route.Check != nil {
		if refused := route.Check(value); refused != nil {
			return refused
		}
	}
	in := &inbound{conn: c, req: req, route: route, params: value, done: make(chan struct{})}
	in.ctx, in.cancel = context.WithCancelCause(context.WithValue(c.base, inboundKey{}, in))
	id := sessionOf(c.decode, params)

	c.mu.Lock()
	s := c.sessionLocked(id)
	in.session = s
	switch {
	case c.serving >= c.opts.MaxRequests:
		err = Errorf(CodeInternalError, "too many requests in progress")
	case route.Turn && len(s.turns) > 0 && !c.opts.ConcurrentTurns:
		err = ErrInvalidRequest.WithMessage("the session is busy with another turn").
			WithData(map[string]string{memberSession: id})
	}
	if err != nil {
		c.mu.Unlock()
		in.cancel(err)
		c.release(s)
		return err
	}
	c.serving++
	if _, taken := c.inbound[req.ID]; !taken {
		c.inbound[req.ID] = in
	}
	moot := false
	switch {
	case route.EndsTurn:
		in.ends = slices.Clone(s.turns)
	case route.Turn:
		s.turns = append(s.turns, in)
	case route.Cancelled != nil:
		s.asks = append(s.asks, in)
		moot = s.cancelling > 0
	}
	c.mu.Unlock()

	in.after = s.position()
	for _, turn := range in.ends {
		turn.cancelTurn()
	}
	switch {
	case moot:
		in.cancelTurn()
	case route.Inline:
		in.after = 0 // it does not wait
		in.run()
		return nil
	}
	if !c.spawn(in.run) {
		in.finish(nil, ErrClosed)
		req.Done()
	}
	return nil
}

// decodeParams decodes the parameters of a request or notification.
func (c *Conn) decodeParams(route *Route, method string, params []byte) (any, error) {
	if params == nil || string(params) == "null" {
		params = emptyObject
	}
	c.decode.Reset(params)
	value := route.decode(c.decode)
	if err := c.decode.End(); err != nil {
		return nil, err
	}
	if p, ok := value.(*fallbackParams); ok {
		p.method = method
	}
	c.repaired(method, c.decode)
	return value, nil
}

// repaired reports the leniencies of the last decoding.
func (c *Conn) repaired(method string, d *codec.Decoder) {
	repairs := d.Repairs()
	for _, r := range repairs {
		c.opts.Logger.Debug("repaired", "method", method, "at", r.Pointer, "what", r.Msg)
		if c.opts.Hooks.Repair != nil {
			c.opts.Hooks.Repair(method, r)
		}
	}
}

// sessionOf peeks at the session id in parameters or a result.
func sessionOf(d *codec.Decoder, raw []byte) string {
	if len(raw) == 0 {
		return ""
	}
	d.Reset(raw)
	id, _ := d.Tag(memberSession)
	return string(id)
}

func (r *reader) HandleNotification(method, params []byte) {
	<-r.started
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
	if route.Gate != nil {
		if refused := route.Gate(); refused != nil {
			c.invalid(nil, fmt.Errorf("notification %s: %w", method, refused))
			return
		}
	}
	value, err := c.decodeParams(route, string(method), params)
	if err != nil {
		c.invalid(params, fmt.Errorf("params of %s: %w", method, err))
		return
	}
	id := sessionOf(c.decode, params)
	if route.CancelsTurn {
		c.cancelTurns(id)
	}
	if route.notify != nil || route.Feeds {
		c.enqueue(id, item{route: route, params: value, size: len(params)})
	}
}

// handleNotification runs on a session's worker.
func (c *Conn) handleNotification(ctx context.Context, s *session, it *item) {
	if it.route.notify != nil {
		name := it.route.Method
		if p, ok := it.params.(*fallbackParams); ok {
			name = p.method
		}
		err := c.bracket(ctx, CallInfo{Method: name, Incoming: true, Notification: true, Session: s.id},
			func(ctx context.Context) error { return it.route.notify(ctx, it.params) })
		if err != nil {
			c.opts.Logger.Warn("notification handler failed", "method", name, "error", err)
		}
	}
	if it.route.Feeds {
		c.feed(s, it)
	}
}

func (r *reader) HandleEnd(err error) {
	<-r.started
	r.c.opts.Logger.Debug("the stream has ended", "error", err)
}

func (r *reader) HandleDrained() {
	<-r.started
	c := r.c
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, in := range c.inbound {
		in.cancel(ErrClosed)
	}
}

func (r *reader) HandleInvalid(line []byte, reason error) {
	<-r.started
	r.c.invalid(line, reason)
}

func (c *Conn) invalid(line []byte, reason error) {
	c.opts.Logger.Debug("invalid message", "reason", reason)
	if c.opts.Hooks.Invalid != nil {
		c.opts.Hooks.Invalid(line, reason)
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
	if in := c.inbound[id]; in != nil {
		in.cancel(ErrRequestCancelled)
	}
}

// cancelTurns cancels the turns of the peer's that a session has in progress.
func (c *Conn) cancelTurns(id string) {
	c.mu.Lock()
	var turns []*inbound
	if s := c.sessions[id]; s != nil {
		turns = slices.Clone(s.turns)
	}
	c.mu.Unlock()
	for _, in := range turns {
		in.cancelTurn()
	}
}

// inbound is a request of the peer's in progress.
type inbound struct {
	conn    *Conn
	req     *wire.Request
	route   *Route
	session *session
	params  any
	after   uint64     // the notifications of the session that come first
	ends    []*inbound // the turns that end first
	ctx     context.Context
	cancel  context.CancelCauseFunc
	done    chan struct{} // closed when the answer was sent

	mu        sync.Mutex
	cancelled bool // the turn was
	answered  bool
	then      []func(context.Context)
}

// inboundKey is the context key under which a handler's request is found.
type inboundKey struct{}

// run serves the request. Its handler runs even if the request was cancelled before, if only to see
// that, but not if it was answered.
func (in *inbound) run() {
	defer in.req.Done()
	defer in.finish(nil, ErrInternal) // for a handler that ends its goroutine, as a test's FailNow does
	select {
	case <-in.session.reached(in.after, true):
	case <-in.conn.base.Done():
		in.finish(nil, ErrClosed)
		return
	}
	for _, turn := range in.ends {
		select {
		case <-turn.done:
		case <-in.ctx.Done():
			in.finish(nil, context.Cause(in.ctx))
			return
		}
	}
	in.mu.Lock()
	answered := in.answered
	in.mu.Unlock()
	if answered {
		return
	}
	var result any
	err := in.conn.bracket(in.ctx, CallInfo{Method: in.req.Method, Incoming: true, Session: in.session.id},
		func(ctx context.Context) (err error) {
			result, err = in.route.serve(ctx, in.params)
			return err
		})
	in.finish(result, err)
}

// cancelTurn ends a request because its session's turn was cancelled. A turn is still answered by its
// handler; what a turn only waits for is answered now.
func (in *inbound) cancelTurn() {
	in.mu.Lock()
	in.cancelled = true
	in.mu.Unlock()
	in.cancel(ErrTurnCancelled)
	if !in.route.Turn && in.claim() {
		in.forget()
		in.sent(in.req.AnswerNow(wire.Answer{Result: encodable(in.route.Cancelled())}))
		in.conn.spawn(in.followUp)
	}
}

// claim reports whether the caller is to answer the request.
func (in *inbound) claim() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	first := !in.answered
	in.answered = true
	return first
}

// finish answers the request, if nobody has, and runs what is to come after the answer.
func (in *inbound) finish(result any, err error) {
	if !in.claim() {
		return
	}
	in.mu.Lock()
	cancelled := in.cancelled
	in.mu.Unlock()
	if err != nil && cancelled && in.route.Cancelled != nil {
		result, err = in.route.Cancelled(), nil
	}
	if err != nil && errors.Is(context.Cause(in.ctx), ErrRequestCancelled) {
		if e := ownError(err); e == nil || e.Code == CodeInternalError {
			err = ErrRequestCancelled
		}
	}
	// Before the answer is on its way, because the peer may react to it with its next turn.
	in.forget()
	answer := wire.Answer{Result: encodable(result)}
	if err != nil {
		in.conn.opts.Logger.Debug("request failed", "method", in.req.Method, "error", err)
		answer = wire.Answer{Failure: toWire(err)}
	}
	if in.route.Inline {
		in.sent(in.req.AnswerNow(answer)) // the reader does not wait
	} else {
		in.sent(in.req.Answer(in.conn.base, answer))
	}
	in.followUp()
}

// followUp runs what was left for after the answer.
func (in *inbound) followUp() {
	for {
		in.mu.Lock()
		then := in.then
		in.then = nil
		in.mu.Unlock()
		if len(then) == 0 {
			return
		}
		for _, f := range then {
			// A panic is reported there; a failure is nobody's.
			_ = in.conn.guard(in.req.Method, func() error { f(in.conn.base); return nil })
		}
	}
}

// forget takes the request out of those in progress.
func (in *inbound) forget() {
	in.cancel(context.Canceled)
	c := in.conn
	c.mu.Lock()
	c.serving--
	if c.inbound[in.req.ID] == in {
		delete(c.inbound, in.req.ID)
	}
	is := func(other *inbound) bool { return other == in }
	in.session.turns = slices.DeleteFunc(in.session.turns, is)
	in.session.asks = slices.DeleteFunc(in.session.asks, is)
	c.mu.Unlock()
	c.release(in.session)
}

// sent notes that the answer was sent, or why not as it was.
func (in *inbound) sent(err error) {
	if err != nil {
		in.conn.opts.Logger.Warn("answer not sent as it was", "method", in.req.Method, "error", err)
	}
	close(in.done)
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
	if in.answered {
		return false
	}
	in.then = append(in.then, fn)
	return true
}

// bracket runs a handler or a call within Hooks.Call.
func (c *Conn) bracket(ctx context.Context, info CallInfo, f func(context.Context) error) (err error) {
	if hook := c.opts.Hooks.Call; hook != nil {
		hooked, end := hook(ctx, info)
		if hooked != nil {
			ctx = hooked
		}
		if end != nil {
			defer func() { end(err) }()
		}
	}
	if !info.Incoming {
		return f(ctx)
	}
	return c.guard(info.Method, func() error { return f(ctx) })
}

// guard runs what belongs to a handler; its panic is reported and becomes an error. A handler that ends
// its goroutine ends it.
func (c *Conn) guard(method string, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			stack := debug.Stack()
			c.opts.Logger.Error("handler panicked", "method", method, "panic", v, "stack", string(stack))
			if c.opts.Hooks.Panic != nil {
				c.opts.Hooks.Panic(method, v, stack)
			}
			err = ErrInternal
		}
	}()
	return f()
}

// MethodNotFound is the answer to a request for a method that does not exist here.
func MethodNotFound(method string) *Error {
	return ErrMethodNotFound.WithData(map[string]string{"method": method})
}

// InvalidParams is the answer to parameters that do not fit. When err says where, the pointer is in the
// message and in the data.
func InvalidParams(err error) *Error {
	bad, ok := errors.AsType[*codec.Error](err)
	if !ok {
		return ErrInvalidParams.WithMessage("Invalid params: %v", err)
	}
	data, _ := json.Marshal(map[string]string{"pointer": bad.Pointer, "reason": bad.Msg})
	return &Error{Code: CodeInvalidParams, Message: "Invalid params: " + bad.Error(), Data: data}
}
