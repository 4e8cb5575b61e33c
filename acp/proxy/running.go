package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/hop"
	"github.com/acpgo/sdk/internal/wire"
)

// running is a hook that runs for one message.
type running struct {
	p    *relay
	from *end
	item

	// Guarded by p.mu.
	lane   *lane  // held with the message
	after  *lane  // held with the answer to it
	sent   bool   // next has been called, and has sent a notification
	over   bool   // the hook has returned
	calls  int    // that it waits for
	latest answer // of next
}

// call is a request of a hook, to either side.
type call struct {
	by   *running
	own  bool // of Call, and not of next
	id   wire.ID
	time uint64 // relay.clock
	done chan answer
	to   *end

	// Guarded by p.mu.
	over bool  // it has been answered, or given up
	lane *lane // whose holder waits for it
}

// end ends the call, once. The caller holds p.mu.
func (c *call) end(a answer) {
	if c.over {
		return
	}
	c.over = true
	c.by.calls--
	if l := c.lane; l != nil && l.holder == c.by {
		l.waits--
	}
	c.done <- a
}

func (p *relay) start(e *end, l *lane, it *item) {
	h := &running{p: p, from: e, item: *it, lane: l}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		it.cancel(nil)
		p.release(l)
		return // the connection is about to be closed
	}
	p.running++
	if l != nil {
		l.holder = h
		e.held += it.size()
	}
	p.mu.Unlock()
	go h.run()
}

func (h *running) run() {
	defer h.cancel(nil)
	result, err := h.protected()
	p := h.p
	p.mu.Lock()
	h.over = true
	after := h.after
	latest := h.latest
	h.after = nil
	if r, ok := h.from.requests[wire.Canonical(h.msg.ID)]; ok && r.ctx == h.ctx {
		delete(h.from.requests, wire.Canonical(h.msg.ID))
		p.bytes -= h.size()
	}
	p.mu.Unlock()
	switch {
	case h.hook.request:
		// If this fails, the connection has ended, which its reader reports.
		_ = h.from.send(h.reply(result, err, latest))
	case err != nil:
		p.log.Warn("acp/proxy: a hook of a notification has failed", "method", h.hook.method, "error", err)
	}
	h.leave()
	p.release(after)
	p.mu.Lock()
	p.running--
	p.changed.Broadcast()
	p.mu.Unlock()
}

func (h *running) protected() (result json.RawMessage, err error) {
	defer func() {
		if r := recover(); r != nil {
			h.p.log.Error("acp/proxy: a hook has panicked", "method", h.hook.method, "panic", r, "stack", string(debug.Stack()))
			result, err = nil, rpc.ErrInternal
		}
	}()
	return h.hook.run(context.WithValue(h.ctx, runningKey{}, h), &Message{
		From: h.from.side, Method: h.hook.method, Notification: !h.hook.request, Params: h.msg.Params,
	}, h.next)
}

// errCancelled is the cause of a hook's context when the sender has cancelled the request.
var errCancelled = fmt.Errorf("acp/proxy: the request was cancelled: %w", context.Canceled)

func (h *running) reply(result json.RawMessage, err error, latest answer) []byte {
	if err == nil && h.p.conductor && h.hook.method == acp.MethodInitialize {
		err = checkInitialized(result, latest)
	}
	if err == nil && len(result) == 0 {
		result = json.RawMessage("null")
	}
	if err == nil && !same(result, latest.result) && !json.Valid(result) {
		err = errors.New("the result is not JSON")
	}
	if err == nil {
		if same(result, latest.result) && latest.line != nil {
			return latest.line
		}
		return append(append(h.begin(nil, `,"result":`), result...), '}')
	}
	failure := rpc.ErrorOf(err)
	if errors.Is(err, context.Canceled) && context.Cause(h.ctx) == errCancelled {
		failure = rpc.ErrorOf(rpc.ErrRequestCancelled)
	} else if _, meant := errors.AsType[*rpc.Error](err); !meant && failure.Message != err.Error() {
		h.p.log.Warn("acp/proxy: a hook has failed", "method", h.hook.method, "error", err)
	}
	if failure == latest.err && latest.line != nil {
		return latest.line
	}
	line, err := codec.Append(h.begin(nil, `,"error":`), failure)
	if err != nil { // its data is not JSON
		return h.reply(nil, rpc.ErrInternal, latest)
	}
	return append(line, '}')
}

// begin appends the beginning of the answer to the sender.
func (h *running) begin(dst []byte, member string) []byte {
	return append(appendID(append(dst, `{"jsonrpc":"2.0","id":`...), h.msg.ID), member...)
}

func appendID(dst []byte, id wire.ID) []byte {
	dst, _ = codec.Append(dst, &id) // an id can always be written
	return dst
}

// same reports whether two texts are the same memory.
func same(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// leave releases the lane that the hook holds with its message.
func (h *running) leave() {
	h.p.mu.Lock()
	l := h.lane
	if h.lane = nil; l != nil {
		h.from.held -= h.size()
	}
	h.p.mu.Unlock()
	h.p.release(l)
}

// next sends the message on. It returns the answer to a request.
func (h *running) next(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	to, line := h.from.other, h.line
	if !same(params, h.msg.Params) {
		if len(params) > 0 && !json.Valid(params) {
			return nil, fmt.Errorf("params of %s are not JSON", h.hook.method)
		}
		line = nil
	}
	if !h.hook.request {
		h.p.mu.Lock()
		over := h.over
		h.p.mu.Unlock()
		if over {
			return nil, errOver
		}
		if line == nil {
			line = hop.AppendMessage(nil, nil, h.hook.method, params)
		}
		err := to.send(line)
		h.p.mu.Lock()
		h.sent = true // not before: a call of the hook lets later messages go first then
		h.p.mu.Unlock()
		return nil, err
	}
	c, err := h.call(ctx, to, false)
	if err != nil {
		return nil, err
	}
	if line == nil || c.id != h.msg.ID {
		line = hop.AppendMessage(nil, &c.id, h.hook.method, params)
	}
	a, err := h.wait(ctx, c, line)
	if err != nil {
		return nil, err
	}
	if c.id != h.msg.ID {
		a.line = nil
	}
	h.p.mu.Lock()
	h.latest = a
	h.p.mu.Unlock()
	return a.result, a.err
}

var errOver = errors.New("acp/proxy: next was called after its hook has returned")

func (h *running) call(ctx context.Context, to *end, own bool) (*call, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p := h.p
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case to.gone != nil:
		return nil, to.gone
	case h.over && !own:
		return nil, errOver
	case len(to.calls) >= maxRequests:
		return nil, errors.New("acp/proxy: too many calls wait for their answers")
	}
	p.clock++
	c := &call{by: h, own: own, to: to, time: p.clock, done: make(chan answer, 1)}
	if id := wire.Canonical(h.msg.ID); !own && !h.sent && to.calls[id] == nil {
		c.id = h.msg.ID
	} else {
		p.lastID++
		c.id = codec.StringID(fmt.Sprintf("%s-%d", to.prefix, p.lastID))
	}
	h.sent = h.sent || !own
	h.calls++
	to.calls[wire.Canonical(c.id)] = c
	if l := h.lane; own && l != nil {
		c.lane = l
		if l.waits++; l.waits == 1 {
			l.since, l.same = p.clock, false
		}
		l.same = l.same || to == h.from
		p.changed.Broadcast() // for a reader that waits for room
	}
	return c, nil
}

// wait sends a call and waits for its answer.
func (h *running) wait(ctx context.Context, c *call, line []byte) (answer, error) {
	p := h.p
	p.mu.Lock()
	after := h.after // of an answer that the hook has had; the next one may arrive before send returns
	h.after = nil
	leave := !c.own || !h.hook.request && h.sent // a request: only when next has sent it
	p.mu.Unlock()
	err := c.to.send(line)
	p.release(after)
	if leave {
		h.leave()
	}
	if err != nil {
		return p.giveUpCall(c, ended(c.to.side.String(), err))
	}
	select {
	case a := <-c.done:
		return a, nil
	case <-ctx.Done():
	}
	which := append(appendID([]byte(`{"requestId":`), c.id), '}')
	cancel := hop.AppendMessage(nil, nil, wire.MethodCancelRequest, which)
	if err := c.to.send(cancel); err == nil && !c.own && context.Cause(ctx) == errCancelled {
		return <-c.done, nil
	}
	return p.giveUpCall(c, context.Cause(ctx))
}

// giveUpCall ends a call with err, unless it has been answered. A late answer is dropped.
func (p *relay) giveUpCall(c *call, err error) (answer, error) {
	p.mu.Lock()
	c.end(answer{err: err})
	p.mu.Unlock()
	a := <-c.done
	if a.line == nil {
		return a, a.err
	}
	return a, nil
}

// answer ends a call with an answer. The hook then holds the lane, or the lane is released.
func (p *relay) answer(c *call, a answer, l *lane) {
	p.mu.Lock()
	h := c.by
	hold := l != nil && !c.over && !h.over && h.calls == 1 && h.after == nil
	if hold {
		h.after, l.holder = l, h
	}
	c.end(a)
	p.mu.Unlock()
	if !hold {
		p.release(l)
	}
}

func answerOf(line []byte, m wire.Message) answer {
	switch {
	case m.Kind != wire.KindResponse:
		return answer{err: rpc.ErrInternal.WithMessagef("the answer is malformed")}
	case m.Failure != nil:
		return answer{line: line, err: &rpc.Error{Code: rpc.Code(m.Failure.Code), Message: m.Failure.Message,
			Data: m.Failure.Data}}
	}
	return answer{line: line, result: m.Result}
}

type runningKey struct{}

// Call sends a request of the proxy's own to one side and returns its result. ctx is the context of a hook, or derived
// from one. If the side answers with an error, it is an [rpc.CallError].
func Call[R any](ctx context.Context, to Side, method string, params any) (*R, error) {
	h, raw, err := own(ctx, method, params)
	if err != nil {
		return nil, err
	}
	c, err := h.call(ctx, h.p.ends[to], true)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	a, err := h.wait(ctx, c, hop.AppendMessage(nil, &c.id, method, raw))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	if failure, ok := errors.AsType[*rpc.Error](a.err); ok && a.line != nil {
		return nil, &rpc.CallError{Method: method, Err: failure}
	} else if a.err != nil {
		return nil, fmt.Errorf("%s: %w", method, a.err)
	}
	result := new(R)
	if string(bytes.TrimSpace(a.result)) == "null" {
		return result, nil
	}
	if _, ok := any(result).(codec.Value); ok || codec.IsTagged(result) {
		err = codec.Unmarshal(a.result, result)
	} else {
		err = json.Unmarshal(a.result, result)
	}
	if err != nil {
		return nil, fmt.Errorf("result of %s: %w", method, err)
	}
	return result, nil
}

// Notify sends a notification of the proxy's own to one side. ctx is the context of a hook, or derived from one.
func Notify(ctx context.Context, to Side, method string, params any) error {
	h, raw, err := own(ctx, method, params)
	if err != nil {
		return err
	}
	return h.p.ends[to].send(hop.AppendMessage(nil, nil, method, raw))
}

// own returns the hook that a context is of, and encodes parameters.
func own(ctx context.Context, method string, params any) (h *running, raw []byte, err error) {
	h, ok := ctx.Value(runningKey{}).(*running)
	if _, coded := params.(codec.Value); coded || codec.IsTagged(params) {
		raw, err = codec.Append(nil, params)
	} else if params != nil {
		raw, err = json.Marshal(params)
	}
	switch {
	case !ok:
		err = fmt.Errorf("acp/proxy: %s: the context is not of a hook", method)
	case err != nil:
		err = fmt.Errorf("params of %s: %w", method, err)
	}
	return h, raw, err
}
