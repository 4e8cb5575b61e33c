package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"time"

	"github.com/acpgo/sdk/internal/wire"
)

// reader is the connection as a wire.Handler. Its methods run on the reader goroutine.
type reader struct {
	*Conn
	gathered gathered
	items    int      // number of items in the parameters read last
	warned   []string // the kinds of dropped messages that have been reported
}

func (r *reader) HandleRequest(id ID, method string, params []byte) {
	if err := r.receive(id, method, params); err != nil {
		r.refuse(id, method, err)
	}
}

// TryRequest is HandleRequest for parameters that are the last member of a message. It does not handle anything unknown
// or unusual.
func (r *reader) TryRequest(id ID, method, rest []byte) bool {
	route := r.requests[string(method)]
	if !route.handled() {
		return false
	}
	value, _, params, ok := r.tryDecode(route, rest)
	if !ok {
		return false
	}
	if err := r.admit(id, route, route.Method, value, params); err != nil {
		r.refuse(id, route.Method, err)
	}
	return true
}

func (r *reader) refuse(id ID, method string, err error) {
	r.opts.Logger.Debug("request refused", "method", method, "error", err)
	e, _ := r.opts.Errors.Visible(err)
	r.wire.Refuse(id, e)
}

// receive accepts a request, or returns the reason for refusing it.
func (r *reader) receive(id ID, method string, params []byte) error {
	route := r.requests[method]
	if fallback := r.requests[""]; !route.handled() && fallback != nil {
		route = fallback
	}
	if refused := route.gated(); refused != nil {
		return refused
	}
	if !route.handled() {
		return MethodNotFound(method)
	}
	value, _, err := r.decodeParams(route, method, params)
	if err != nil {
		return invalidParams(err)
	}
	if refused := route.checked(value); refused != nil {
		return refused
	}
	return r.admit(id, route, method, value, params)
}

// admit is receive for a decoded request.
func (r *reader) admit(id ID, route *Route, method string, value any, params []byte) (err error) {
	in := &inbound{conn: r.Conn, params: value, meta: r.metaOf(params), length: len(params)}
	in.route, in.question = route, in
	in.parent = r.base
	if route.Turn || route.enters {
		in.done = make(chan struct{})
		if r.opts.ConcurrentTurns {
			in.entered = make(chan struct{})
		}
	}
	session := sessionOf(r.decode, params)

	size := requestSize(id, method, params, r.items)

	r.mu.Lock()
	s := &r.sessionLocked(session).session
	in.session = s
	var do effects
	if r.serving >= r.opts.MaxRequests {
		err = refusal(codeInternalError, "too many requests in progress", nil)
	} else if !r.takes(size) {
		err = refusal(codeInternalError, "the requests in progress are too long together", nil)
	} else if do = s.step(event{kind: requestRead, in: &in.incoming}); do.refuse != nil {
		err = refusal(codeInvalidRequest, "the session is busy with another turn",
			map[string]string{memberSession: echoed(session)})
	}
	if err != nil {
		r.mu.Unlock()
		in.cancel(err)
		r.release(s)
		return err
	}
	r.wire.Accept(&in.req, id, method)
	r.serving++
	in.size = size
	r.requested.Add(int64(size))
	if key := wire.Canonical(id); r.inbound[key] == nil {
		r.inbound[key] = &in.incoming
	}
	r.mu.Unlock()

	if !r.load.none() {
		in.after = s.position()
	}
	r.carryOut(effects{end: do.end}, nil)
	switch {
	case len(do.withdraw) > 0 && in.withdraw():
		r.wire.AwaitFlood(r.base)
		in.answerCancelled()
		in.discharge()
		return nil
	case route.Inline:
		in.after = 0 // it does not wait
		done := make(chan struct{})
		if r.tasks.spawn(taskFunc(func() { defer close(done); in.run() })) {
			select {
			case <-done:
			case <-r.base.Done(): // otherwise Close would wait for it forever
			}
			return nil
		}
	}
	if !r.tasks.spawn(in) {
		in.finish(nil, ErrClosed)
		in.markDone()
	}
	return nil
}

// decodeParams decodes the parameters of a request or notification; see Route.decode.
func (r *reader) decodeParams(route *Route, method string, params []byte) (any, holder, error) {
	if params == nil || string(params) == "null" {
		params = emptyObject
	}
	r.decode.Reset(params)
	value, h := route.decode(r.decode)
	r.items = r.decode.Items()
	if err := r.decode.End(); err != nil {
		return nil, nil, err
	}
	if p, ok := value.(*fallbackParams); ok {
		p.method = method
	}
	r.repaired(method, r.decode)
	return value, h, nil
}

// tryDecode decodes parameters that are the last member of a message, if there is nothing unusual about them and the
// route.
func (r *reader) tryDecode(route *Route, rest []byte) (value any, h holder, params []byte, ok bool) {
	if route.gated() != nil {
		return nil, nil, nil, false
	}
	d := r.decode
	d.ResetLast(rest)
	if d.Kind() == 'n' {
		return nil, nil, nil, false // null means no parameters
	}
	value, h = route.decode(d)
	r.items = d.Items()
	params, ok = d.EndLast()
	if !ok || route.checked(value) != nil {
		return nil, nil, nil, false
	}
	r.repaired(route.Method, d)
	return value, h, params, true
}

func (r *reader) HandleNotification(method, params []byte) {
	if string(method) == wire.MethodCancelRequest {
		r.cancelRequest(params)
		return
	}
	route := r.notifications[string(method)]
	if route == nil {
		route = r.notifications[""]
	}
	if route == nil {
		r.opts.Logger.Debug("unknown notification", "method", string(method))
		return
	}
	if refused := route.gated(); refused != nil {
		r.invalid(nil, fmt.Errorf("notification %s: %w", method, refused))
		return
	}
	name := route.Method
	if name == "" { // the fallback
		name = string(method)
	}
	value, h, err := r.decodeParams(route, name, params)
	if err != nil {
		r.drop("a notification that cannot be read", params, fmt.Errorf("params of %s: %w", method, err))
		return
	}
	if refused := route.checked(value); refused != nil {
		r.drop("a notification that is not valid", params, fmt.Errorf("notification %s: %w", method, refused))
		return
	}
	r.accept(route, value, h, params)
}

// TryNotification is HandleNotification for parameters that are the last member of a message. It does not handle
// anything unknown or unusual.
func (r *reader) TryNotification(method, rest []byte) bool {
	route := r.notifications[string(method)]
	if route == nil || string(method) == wire.MethodCancelRequest {
		return false
	}
	value, h, params, ok := r.tryDecode(route, rest)
	if ok {
		r.accept(route, value, h, params)
	}
	return ok
}

// accept accepts a notification.
func (r *reader) accept(route *Route, value any, h holder, params []byte) {
	id := sessionOf(r.decode, params)
	if route.CancelsTurn {
		r.cancelTurns(id)
	}
	if route.notify != nil || route.Feeds {
		size := itemSize + len(params) + r.items*itemWeight
		r.gathered.add(id, item{
			route: route, params: r.keepMeta(value, params), handling: h.(*notificationContext), size: size,
		})
	}
	if route.Feeds && r.following.Load() > 0 {
		r.gathered.enqueue()
		r.follow(id, value)
	}
}

// Flush is called before each read. Handlers that the messages before it have woken run first, on caches that are still
// warm; the read would mostly find nothing, and only then make room for them.
func (r *reader) Flush() {
	r.gathered.enqueue()
	runtime.Gosched()
}

func (r *reader) ReleaseMessage() { r.decode.Reset(nil) }

func (r *reader) HandleEnd(err error) {
	r.opts.Logger.Debug("the stream has ended", "error", err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readEnd = time.Now()
}

func (r *reader) HandleDrained() {
	why := r.ending()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, in := range r.inbound {
		in.cancel(why)
	}
}

// HandleInvalid implements wire.Handler. It warns of input about which the peer gets no answer.
func (r *reader) HandleInvalid(line []byte, reason error) {
	text := bytes.TrimSpace(line)
	switch {
	case len(text) > 0 && text[0] != '{' && !r.opts.SkipNoise:
		r.drop("a line that is not a message, probably printed to standard output by mistake", line, reason)
	case errors.Is(reason, wire.ErrUnknownResponse), errors.Is(reason, wire.ErrPeerComplains):
		r.drop("a response that belongs to no request", line, reason)
	default:
		r.invalid(line, reason)
	}
}

// drop is invalid for messages to which the peer gets no answer. The first of each kind is logged as a warning, because
// nothing else would explain why something is missing.
func (r *reader) drop(kind string, came []byte, reason error) {
	if r.opts.Invalid == nil && !slices.Contains(r.warned, kind) {
		r.warned = append(r.warned, kind)
		r.opts.Logger.Warn("dropped "+kind+"; more of these are logged at level debug", "reason", echoed(reason.Error()),
			"message", echoed(string(came[:min(len(came), maxEcho+1)])))
	}
	r.invalid(came, reason)
}

// invalid reports input that was refused, ignored or skipped. The reason repeats the beginning of the input.
func (r *reader) invalid(came []byte, reason error) {
	logged := r.opts.Logger.Enabled(r.base, slog.LevelDebug)
	if !logged && r.opts.Invalid == nil {
		return
	}
	if len(came) > 0 {
		reason = fmt.Errorf("%w: %q", reason, echoed(string(came[:min(len(came), maxEcho+1)])))
	}
	if logged {
		r.opts.Logger.Debug("invalid message", "reason", reason)
	}
	if r.opts.Invalid != nil {
		r.opts.Invalid(came, reason)
	}
}

// cancelRequest handles $/cancel_request. It ignores ids that are unknown or answered.
func (r *reader) cancelRequest(params []byte) {
	id, ok := wire.CancelledID(r.decode, params)
	if !ok {
		r.invalid(params, fmt.Errorf("params of %s: no valid requestId", wire.MethodCancelRequest))
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if in := r.inbound[wire.Canonical(id)]; in != nil {
		in.cancel(r.opts.Errors.RequestCancelled)
	}
}

// cancelTurns cancels the peer's turns in progress in a session.
func (r *reader) cancelTurns(id string) {
	r.mu.Lock()
	var do effects
	if s := r.sessions[id]; s != nil {
		do = s.step(event{kind: cancelRead})
	}
	r.mu.Unlock()
	r.carryOut(do, nil)
}

// takes reports whether there is room for another request of the peer. A request that is alone always has room. Only
// the reader adds to the total.
func (r *reader) takes(size int) bool {
	held := r.requested.Load()
	return held == 0 || held+int64(size) <= int64(r.opts.MaxBytes/requestsPart)
}

// keepMeta keeps the data about a notification's parameters that middleware gets, if there is any. The reader calls it.
func (r *reader) keepMeta(value any, params []byte) any {
	if r.opts.Serve == nil {
		return value
	}
	return &withMeta{value, r.metaOf(params), len(params)}
}

// metaOf returns the _meta in parameters for middleware, which may be none. The reader calls it.
func (r *reader) metaOf(params []byte) map[string]json.RawMessage {
	if r.opts.Serve == nil {
		return nil
	}
	return metaIn(r.decode, params)
}
