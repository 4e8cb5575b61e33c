package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// notify sends a notification.
func (c *Conn) notify(ctx context.Context, method string, params any) error {
	if c.opts.Call == nil {
		return c.tell(ctx, method, encodable(params))
	}
	call := newOutgoing(method, params)
	call.Notification = true
	return c.opts.Call(ctx, &call.Call, func(ctx context.Context) error { return c.tell(ctx, method, call.encodable()) })
}

func (c *Conn) tell(ctx context.Context, method string, params wire.Encodable) error {
	if in, ok := ctx.Value(inboundKey{}).(*inbound); ok && in.conn == c {
		switch {
		case in.route.Opens:
			if held, err := in.hold(method, params); held || err != nil {
				return err
			}
		case in.used.Load() && ctx.Err() != nil && TurnOver(ctx): // a context that nobody has used has not ended
			return unsent(method, context.Cause(ctx))
		}
	}
	sent, err := c.wire.TryNotify(method, params)
	if !sent {
		// Sending waits for the peer, as a call does, and the peer may be waiting for us to empty our queues.
		var f *nestedCall
		ctx, f = c.calls.begin(ctx)
		defer c.calls.end(f)
		err = c.wire.Notify(ctx, method, params)
	}
	if err != nil {
		_, err = c.failure(ctx, err)
		return unsent(method, err)
	}
	return nil
}

// hold keeps a notification for after the answer, if it is about a session that the answer may name. It is encoded now,
// because the author may change the parameters afterwards. As much is kept as may wait in a queue.
func (in *inbound) hold(method string, params wire.Encodable) (held bool, _ error) {
	c := in.conn
	in.mu.Lock()
	through := in.through
	in.mu.Unlock()
	if params == nil || through {
		return false, nil
	}
	params = wire.Ready(wire.Authored(params))
	text, err := codec.Append(nil, params)
	if err != nil {
		return false, unsent(method, err)
	}
	id := sessionOf(codec.NewDecoder(nil), text)
	c.mu.Lock()
	known := id == "" || id == in.session.id || c.sessions[id] != nil && len(c.sessions[id].incoming) > 0
	c.mu.Unlock()
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case known || in.through:
		return false, nil
	case in.held+len(text) > c.opts.QueueBytes:
		return false, fmt.Errorf("%s: more than %d bytes before the answer to %s: %w", method, c.opts.QueueBytes,
			in.req.Method, ErrOverflow)
	}
	in.held += len(text)
	in.then = append(in.then, func(ctx context.Context) {
		if in.refused {
			return
		}
		if err := c.tell(ctx, method, params); err != nil { // the connection is over
			c.opts.Logger.Debug("notification not sent", "method", method, "error", err)
		}
	})
	return true, nil
}

// unsent returns the error of sending a message of a method, which is an UnsentError if the message cannot be encoded.
func unsent(method string, err error) error {
	if _, ok := errors.AsType[*codec.Error](err); ok {
		return &UnsentError{method, err}
	}
	return fmt.Errorf("%s: %w", method, err)
}

// failure translates an error of sending or waiting. ended reports whether ctx ended, and the error is its cause;
// otherwise the value was invalid, or the connection is over.
func (c *Conn) failure(ctx context.Context, err error) (ended bool, _ error) {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return true, context.Cause(ctx)
	}
	if _, ok := errors.AsType[*codec.Error](err); ok {
		return false, err
	}
	return false, cmp.Or(closedErr(err), error(ErrClosed))
}

// run sends the request and waits for its answer.
func (p *pending) run(ctx context.Context, params wire.Encodable) error {
	ctx, f := p.conn.calls.begin(ctx)
	defer p.conn.calls.end(f)
	err := p.start(ctx, params)
	if err != nil {
		return unsent(p.method, err)
	}
	ended, err := p.response(ctx)
	if ended {
		p.giveUp()
	}
	if err == nil {
		p.barrier(ctx)
		err = p.err
	}
	return named(p.method, err)
}

// named adds the method to an error that does not include it.
func named(method string, err error) error {
	switch e := err.(type) {
	case nil:
		return nil
	case *answered:
		return e.error
	}
	return fmt.Errorf("%s: %w", method, err)
}

// answered is an error with which the peer answered; it includes the method itself.
type answered struct{ error }

// pending is a request of this side.
type pending struct {
	conn    *Conn
	method  string
	result  result
	call    wire.Call
	session string // the session's id
	failed  func() // if set, called by the reader when the answer is an error or could not be decoded

	// Set by the reader before the wire's call is done.
	err   error
	queue *queue // nil if nothing of the session is queued
	after uint64 // position: the notifications of the session before the response
}

// A result receives the result of a call.
type result interface {
	// The reader calls decode and tryDecode; see wire.Caller.
	decode(raw []byte) error
	tryDecode(rest []byte) bool
}

// start sends the request.
func (p *pending) start(ctx context.Context, params wire.Encodable) error {
	if ctx.Err() != nil {
		return notSentError{context.Cause(ctx)}
	}
	if err := p.conn.wire.Start(ctx, &p.call, p.method, params, p); err != nil {
		_, err = p.conn.failure(ctx, err)
		return notSentError{err}
	}
	return nil
}

// Sent records the session of the request; the wire's lock for sending is held.
func (p *pending) Sent(params []byte) {
	p.session = sessionOf(p.conn.sniff, params)
	p.conn.sniff.Reset(nil) // params may be long
}

// Answered receives the response; the reader calls it.
func (p *pending) Answered(resp wire.Response) {
	p.note(resp.Result)
	switch e, ok := errors.AsType[*wire.Error](resp.Err); {
	case ok:
		p.err = &answered{p.conn.opts.Errors.Answered(p.method, e)}
	case resp.Err != nil:
		p.err = resp.Err
	default:
		p.err = p.result.decode(resp.Result)
	}
	if p.err != nil && context.Cause(p.conn.base) == ErrClosed {
		p.err = ErrClosed // the peer may have noticed that this side is closing
	}
	if p.err != nil && p.failed != nil {
		p.failed()
	}
}

// TryAnswered receives a response whose last member is the result; the reader calls it.
func (p *pending) TryAnswered(rest []byte) bool {
	p.note(rest)
	return p.result.tryDecode(rest)
}

// note records the notifications of the session before the response. More text may follow the result.
func (p *pending) note(result []byte) {
	if p.conn.load.none() {
		return // as is usual
	}
	id := p.session
	if id == "" {
		id = sessionOf(p.conn.decode, result)
	}
	p.queue, p.after = p.conn.lookUp(id)
}

// response waits for the response. ended reports whether ctx ended first; then the error is its cause.
func (p *pending) response(ctx context.Context) (ended bool, err error) {
	if err = p.call.Wait(ctx); err != nil {
		return p.conn.failure(ctx, err)
	}
	return false, nil
}

// barrier waits for the notifications before the response, unless ctx belongs to a notification handler, which would be
// a deadlock.
func (p *pending) barrier(ctx context.Context) {
	if p.queue == nil || insideHandler(ctx) {
		return
	}
	select {
	case <-p.queue.reached(p.after, insideRequest(ctx)):
	case <-ctx.Done(): // the response is there all the same
	}
}

// giveUp tells the peer that no one waits for the response.
func (p *pending) giveUp() {
	p.call.Abandon()
	p.cancel()
}

// id returns the id with which the request was sent, or null if it was not sent.
func (p *pending) id() ID {
	if id := p.call.ID(); id != wire.IntID(0) {
		return id
	}
	return ID{}
}

// cancel asks the peer to end the request soon.
func (p *pending) cancel() {
	err := p.conn.wire.Post(wire.MethodCancelRequest, cancelParams(p.call.ID()))
	if err != nil {
		p.conn.opts.Logger.Debug("cancellation not sent", "error", err)
	}
}

// cancelParams are the parameters of $/cancel_request.
type cancelParams ID

func (p cancelParams) EncodeJSON(e *codec.Encoder) {
	id := ID(p)
	e.BeginObject()
	e.Name("requestId")
	id.EncodeJSON(e)
	e.EndObject()
}
