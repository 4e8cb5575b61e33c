// This file owns what this side sends: calls, notifications, and the calls in flight.

package rpc

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/acpgo/sdk/acp/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// notify sends a notification.
func (c *Conn) notify(ctx context.Context, method string, params any) error {
	return c.bracket(ctx, CallInfo{Method: method, Notification: true}, func(ctx context.Context) error {
		if err := c.wire.Notify(ctx, method, encodable(params)); err != nil {
			return fmt.Errorf("%s: %w", method, c.sendFailure(ctx, err))
		}
		return nil
	})
}

// sendFailure translates an error of sending: the context's own, or the wire's.
func (c *Conn) sendFailure(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return context.Cause(ctx)
	}
	return c.failure(err)
}

// call sends a request and waits for its answer; decode is called by the reader.
func (c *Conn) call(ctx context.Context, method string, params any, decode func([]byte) error) error {
	return c.bracket(ctx, CallInfo{Method: method}, func(ctx context.Context) error {
		f := c.flights.begin(ctx, false)
		defer c.flights.end(f)
		p, err := c.start(f.ctx, method, params, decode)
		if err != nil {
			return named(method, err)
		}
		ended, err := p.response(f.ctx)
		if ended {
			p.giveUp()
		}
		if err == nil {
			p.barrier(f.ctx)
			err = p.err
		}
		return named(method, err)
	})
}

// named adds the method to an error that does not say it.
func named(method string, err error) error {
	if _, ok := err.(*CallError); ok || err == nil {
		return err
	}
	return fmt.Errorf("%s: %w", method, err)
}

// pending is a request of ours that was sent.
type pending struct {
	conn *Conn
	call *wire.Call

	// Set by the reader before the wire's call is done.
	err     error
	session *session // nil when nothing of it is queued
	after   uint64   // the notifications of the session that come before the response
}

// start sends a request. decode is called by the reader with the result.
func (c *Conn) start(ctx context.Context, method string, params any, decode func([]byte) error) (*pending, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	p := &pending{conn: c}
	var id string
	sent := func(params []byte) { id = sessionOf(codec.NewDecoder(nil), params) }
	call, err := c.wire.Start(ctx, method, encodable(params), sent, func(resp wire.Response) {
		if id == "" {
			id = sessionOf(c.decode, resp.Result)
		}
		p.session, p.after = c.lookUp(id)
		switch e, ok := errors.AsType[*wire.Error](resp.Err); {
		case ok:
			p.err = &CallError{Method: method, Err: (*Error)(e)}
		case resp.Err != nil:
			p.err = resp.Err
		default:
			p.err = decode(resp.Result)
		}
	})
	if err != nil {
		return nil, c.sendFailure(ctx, err)
	}
	p.call = call
	return p, nil
}

// response waits for the response, and says whether ctx ended first, which is the error then.
func (p *pending) response(ctx context.Context) (ended bool, err error) {
	err = p.call.Wait(ctx)
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return true, context.Cause(ctx)
	}
	if err != nil {
		return false, p.conn.failure(err)
	}
	return false, nil
}

// barrier waits for the notifications before the response, unless ctx belongs to a notification
// handler, which would wait for itself.
func (p *pending) barrier(ctx context.Context) {
	if p.session == nil || insideHandler(ctx) {
		return
	}
	select {
	case <-p.session.reached(p.after, false):
	case <-ctx.Done(): // the response is there all the same
	}
}

// giveUp tells the peer that nobody waits for the response.
func (p *pending) giveUp() {
	p.call.Abandon()
	err := p.conn.wire.Post(methodCancelRequest, cancelParams(p.call.ID()))
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

// flights are the calls in flight.
type flights struct {
	mu     sync.Mutex
	all    map[*flight]struct{}
	count  uint64 // calls ever begun
	change chan struct{}
}

// flight is a call in flight.
type flight struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	within *handling // the notification handler that makes the call and waits for it, or nil
	apart  bool      // it runs in a goroutine of its own, so that nobody's loop waits for it
	number uint64
}

func (fs *flights) init() {
	fs.all = map[*flight]struct{}{}
	fs.change = make(chan struct{})
}

func (fs *flights) begin(ctx context.Context, apart bool) *flight {
	f := &flight{apart: apart}
	if h := handlerOf(ctx); h != nil && h.nest() {
		f.within = h
	}
	f.ctx, f.cancel = context.WithCancelCause(ctx)
	fs.mu.Lock()
	fs.count++
	f.number = fs.count
	fs.all[f] = struct{}{}
	close(fs.change)
	fs.change = make(chan struct{})
	fs.mu.Unlock()
	return f
}

func (fs *flights) end(f *flight) {
	f.cancel(context.Canceled)
	fs.mu.Lock()
	delete(fs.all, f)
	fs.mu.Unlock()
	if f.within != nil {
		f.within.unnest()
	}
}

// begun is the number of the last call begun.
func (fs *flights) begun() uint64 {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.count
}

// since reports whether a call is in flight that began after number and that a loop may wait for, and
// returns a channel that is closed when another call begins.
func (fs *flights) since(number uint64) (bool, <-chan struct{}) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for f := range fs.all {
		if f.of(number) {
			return true, fs.change
		}
	}
	return false, fs.change
}

// of reports whether the call may be one that a loop's body makes which began after number.
func (f *flight) of(number uint64) bool { return f.within == nil && !f.apart && f.number > number }

// fail ends the calls that match with ErrOverflow.
func (fs *flights) fail(match func(*flight) bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for f := range fs.all {
		if match(f) {
			f.cancel(ErrOverflow)
		}
	}
}
