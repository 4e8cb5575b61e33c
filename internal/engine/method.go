package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/acpgo/sdk/acp/codec"
)

// A RequestMethod is a method with parameters of type P and a result of type R: generated types, or
// any types that encoding/json can handle.
type RequestMethod[P, R any] struct {
	// Name is the method's name on the wire.
	Name string
	// NullResult means that R has no required members, so null, which peers send for it, is accepted, and a handler's
	// nil result is sent as {}.
	NullResult bool
}

// Call sends the request and waits for the answer. It returns the peer's *Error, an error that matches ErrClosed, an
// error that describes what is wrong with the answer, or, if ctx ends first, its cause; then $/cancel_request is sent
// to the peer, and a late answer is dropped.
func (m RequestMethod[P, R]) Call(ctx context.Context, c *Conn, params *P) (*R, error) {
	return m.CallThen(ctx, c, params, nil)
}

// CallThen is Call with a function that the reader calls with the result, before anything after it is handled; it may
// be nil.
func (m RequestMethod[P, R]) CallThen(ctx context.Context, c *Conn, params *P, then func(*R)) (*R, error) {
	if params == nil {
		params = new(P)
	}
	return call(ctx, c, m.Name, params, m.NullResult, then)
}

// Handle returns a route. If fn is nil, the route answers that the method does not exist.
func (m RequestMethod[P, R]) Handle(fn func(context.Context, *P) (*R, error)) Route {
	r := Route{Method: m.Name}
	if fn == nil {
		return r
	}
	_, r.enters = any((*P)(nil)).(Enterer)
	r.decode = decodeParams[P]
	r.serve = func(ctx context.Context, params any) (any, error) {
		p, err := paramsAs[P](params)
		if err != nil {
			return nil, err
		}
		res, err := fn(ctx, p)
		switch {
		case err != nil:
			return nil, err
		case res == nil && m.NullResult:
			return new(R), nil
		case res == nil:
			return nil, errNilResult
		}
		return res, nil
	}
	return r
}

// A NotificationMethod is a notification with parameters of type P.
type NotificationMethod[P any] struct {
	// Name is the method's name on the wire.
	Name string
}

// Notify sends the notification. It returns once the notification is on its way. While too much is unsent, it blocks
// until ctx ends. If there is room, the notification is sent even if ctx has already ended.
func (m NotificationMethod[P]) Notify(ctx context.Context, c *Conn, params *P) error {
	if params == nil {
		params = new(P)
	}
	return c.notify(ctx, m.Name, params)
}

// Handle returns a route. If fn is nil, the route ignores the notification. An error of fn is logged.
func (m NotificationMethod[P]) Handle(fn func(context.Context, *P) error) Route {
	r := Route{Method: m.Name, Notification: true}
	r.decode = decodeNotification[P]
	if fn != nil {
		r.notify = func(ctx context.Context, params any) error {
			p, err := paramsAs[P](params)
			if err != nil {
				return err
			}
			return fn(ctx, p)
		}
	}
	return r
}

// paramsAs returns the parameters for a handler, which middleware may have replaced.
func paramsAs[P any](params any) (*P, error) {
	p, ok := params.(*P)
	if !ok {
		return nil, fmt.Errorf("acp: the parameters are %T, and were replaced by %T", p, params)
	}
	return p, nil
}

// decodeParams decodes into a new P.
func decodeParams[P any](d *codec.Decoder) (any, holder) {
	p := new(P)
	decodeInto(d, p)
	return p, nil
}

// decodeNotification is decodeParams for a notification; it makes a single allocation for everything that it needs.
func decodeNotification[P any](d *codec.Decoder) (any, holder) {
	n := new(struct {
		params   P
		handling notificationContext
	})
	decodeInto(d, &n.params)
	return &n.params, &n.handling
}

// typed is a call whose result is an R.
type typed[R any] struct {
	pending
	value *R
	null  bool     // accept null too
	then  func(*R) // called by the reader with the result; may be nil
}

func (t *typed[R]) decode(raw []byte) error {
	d := t.conn.decode
	d.Reset(raw)
	value := t.read(d)
	if err := d.End(); err != nil {
		return fmt.Errorf("result of %s: %w", t.method, err)
	}
	t.take(value)
	return nil
}

func (t *typed[R]) tryDecode(rest []byte) bool {
	d := t.conn.decode
	d.ResetLast(rest)
	value := t.read(d)
	_, ok := d.EndLast()
	if ok {
		t.take(value)
	}
	return ok
}

func (t *typed[R]) read(d *codec.Decoder) *R {
	value := new(R)
	if !t.null || !d.Null() {
		decodeInto(d, value)
	}
	return value
}

// take keeps the result, which t.conn.decode has just read.
func (t *typed[R]) take(value *R) {
	t.conn.repaired(t.method, t.conn.decode)
	t.value = value
	if t.then != nil {
		t.then(value)
	}
}

// CallRaw sends a request with any parameters that encoding/json can encode, and decodes the result into an R. If
// params is nil, the member is left out. See RequestMethod.Call for the errors.
func CallRaw[R any](ctx context.Context, c *Conn, method string, params any) (*R, error) {
	return call[R](ctx, c, method, params, false, nil)
}

// call is the common part of all typed calls.
func call[R any](ctx context.Context, c *Conn, method string, params any, null bool, then func(*R)) (*R, error) {
	t := &typed[R]{null: null, then: then}
	// Not a literal, which uses so much stack that the stacks of new goroutines must grow: 256 calls from as many
	// goroutines take a fifth more time.
	t.conn, t.method, t.result = c, method, t
	if c.opts.Call != nil {
		return around(ctx, t, params)
	}
	if err := t.run(ctx, encodable(params)); err != nil {
		return nil, err
	}
	return t.value, nil
}

// NotifyRaw sends a notification with any parameters that encoding/json can encode; see
// NotificationMethod.Notify.
func NotifyRaw(ctx context.Context, c *Conn, method string, params any) error {
	return c.notify(ctx, method, params)
}

// around makes a call with its middleware.
func around[R any](ctx context.Context, t *typed[R], params any) (*R, error) {
	c := t.conn
	call := newOutgoing(t.method, params)
	return replaced[R](&call.Call, c.opts.Call(ctx, &call.Call, func(ctx context.Context) error {
		err := t.run(ctx, call.encodable())
		call.ID = t.id()
		if err != nil {
			return err
		}
		call.Result = t.value
		return nil
	}))
}

// Fallback returns the route of requests that nothing else serves; to refuse one, fn returns an error that the peer
// sees as method not found.
func Fallback(fn func(ctx context.Context, method string, params json.RawMessage) (any, error)) Route {
	return Route{
		decode: decodeRaw,
		serve: func(ctx context.Context, params any) (any, error) {
			p := params.(*fallbackParams)
			return fn(ctx, p.method, p.raw)
		},
	}
}

// FallbackNotification is Fallback for notifications.
func FallbackNotification(fn func(ctx context.Context, method string, params json.RawMessage) error) Route {
	return Route{
		Notification: true,
		decode:       decodeRaw,
		notify: func(ctx context.Context, params any) error {
			p := params.(*fallbackParams)
			return fn(ctx, p.method, p.raw)
		},
	}
}

func decodeRaw(d *codec.Decoder) (any, holder) {
	return &fallbackParams{raw: d.Raw()}, new(notificationContext)
}
