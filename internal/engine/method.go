package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/acpgo/sdk/codec"
)

// A RequestMethod is a method with parameters of type P and a result of type R: pointers to generated types, or to any
// types that encoding/json can handle. They are pointers because the compiler makes generic code once for all pointers,
// but again for each struct; package acp has sixty of them.
type RequestMethod[P, R any] struct {
	// Name is the method's name on the wire.
	Name string
	// NullResult means that the result has no required members, so null, which peers send for it, is accepted, and a
	// handler's nil result is sent as {}.
	NullResult bool
}

// Call sends the request and waits for the answer. It returns the peer's *Error, an error that matches ErrClosed, an
// error that describes what is wrong with the answer, or, if ctx ends first, its cause; then $/cancel_request is sent
// to the peer, and a late answer is dropped.
func (m RequestMethod[P, R]) Call(ctx context.Context, c *Conn, params P) (R, error) {
	return Request[R](ctx, c, m.Name, OrNew(params), m.NullResult)
}

// Handle is HandleRequest for the method.
func (m RequestMethod[P, R]) Handle(fn func(context.Context, P) (R, error)) Route {
	return HandleRequest(m.Name, m.NullResult, fn)
}

// OrNew returns p, a pointer, or a pointer to a zero value if p is nil.
func OrNew[P any](p P) P {
	if !isNil(p) {
		return p
	}
	return reflect.New(reflect.TypeFor[P]().Elem()).Interface().(P)
}

// isNil reports whether a pointer is nil. If P were comparable, the compiler would make code for each P.
func isNil[P any](p P) bool {
	var none P
	return any(p) == any(none)
}

// A NotificationMethod is a notification with parameters of type *P.
type NotificationMethod[P any] struct {
	// Name is the method's name on the wire.
	Name string
}

// Notify sends the notification. It returns once the notification is on its way. While too much is unsent, it blocks
// until ctx ends. If there is room, the notification is sent even if ctx has already ended.
func (m NotificationMethod[P]) Notify(ctx context.Context, c *Conn, params *P) error {
	return c.notify(ctx, m.Name, OrNew(params))
}

// Handle is HandleNotification for the method.
func (m NotificationMethod[P]) Handle(fn func(context.Context, *P) error) Route {
	return HandleNotification(m.Name, fn)
}

// HandleRequest returns the route of a request; see RequestMethod. If fn is nil, the route answers that the method does
// not exist.
func HandleRequest[P, R any](method string, nullResult bool, fn func(context.Context, P) (R, error)) Route {
	r := Route{Method: method}
	if fn == nil {
		return r
	}
	var params P
	_, r.enters = any(params).(Enterer)
	of, result := reflect.TypeFor[P]().Elem(), reflect.TypeFor[R]().Elem()
	r.decode = func(d *codec.Decoder) (any, holder) {
		p := reflect.New(of).Interface()
		decodeInto(d, p)
		return p, nil
	}
	r.serve = func(ctx context.Context, params any) (any, error) {
		p, ok := params.(P)
		if !ok {
			return nil, errParams(p, params)
		}
		res, err := fn(ctx, p)
		switch {
		case err != nil:
			return nil, err
		case isNil(res) && nullResult:
			return reflect.New(result).Interface(), nil
		case isNil(res):
			return nil, errNilResult
		}
		return res, nil
	}
	return r
}

// HandleNotification returns the route of a notification. If fn is nil, the route ignores it. An error of fn is logged.
func HandleNotification[P any](method string, fn func(context.Context, *P) error) Route {
	return Route{Method: method, Notification: true, decode: decodeNotification[P], notify: notifier(fn)}
}

// notifier returns fn, whose parameters are pointers, for a route.
func notifier[P any](fn func(context.Context, P) error) func(context.Context, any) error {
	if fn == nil {
		return nil
	}
	return func(ctx context.Context, params any) error {
		p, ok := params.(P)
		if !ok {
			return errParams(p, params)
		}
		return fn(ctx, p)
	}
}

// errParams is the error for parameters that middleware has replaced by ones of another type.
func errParams(want, params any) error {
	return fmt.Errorf("acp: the parameters are %T, and were replaced by %T", want, params)
}

// decodeNotification decodes into a new P, with a single allocation for everything that a notification needs.
func decodeNotification[P any](d *codec.Decoder) (any, holder) {
	n := new(struct {
		params   P
		handling notificationContext
	})
	decodeInto(d, &n.params)
	return &n.params, &n.handling
}

// typed is a call whose result has a Go type. It is not generic, because the compiler would make its methods for each
// type.
type typed struct {
	pending
	of    reflect.Type // a pointer
	value any          // the result
	null  bool         // accept null too
	then  resultTaker  // called by the reader with the result, unless it is nil
}

// resultTaker is a function that takes a result.
type resultTaker interface{ take(value any) }

// taker is the resultTaker of results of type R.
type taker[R any] func(R)

func (then taker[R]) take(value any) { then(value.(R)) }

func (t *typed) decode(raw []byte) error {
	d := t.conn.decode
	d.Reset(raw)
	value := t.read(d)
	if err := d.End(); err != nil {
		return fmt.Errorf("result of %s: %w", t.method, err)
	}
	t.take(value)
	return nil
}

func (t *typed) tryDecode(rest []byte) bool {
	d := t.conn.decode
	d.ResetLast(rest)
	value := t.read(d)
	_, ok := d.EndLast()
	if ok {
		t.take(value)
	}
	return ok
}

func (t *typed) read(d *codec.Decoder) any {
	value := reflect.New(t.of.Elem()).Interface()
	if !t.null || !d.Null() {
		decodeInto(d, value)
	}
	return value
}

// take keeps the result, which t.conn.decode has just read.
func (t *typed) take(value any) {
	t.conn.repaired(t.method, t.conn.decode)
	t.value = value
	if t.then != nil {
		t.then.take(value)
	}
}

// CallRaw sends a request with any parameters that encoding/json can encode, and decodes the result into a new R. If
// params is nil, the member is left out. See RequestMethod.Call for the errors.
func CallRaw[R any](ctx context.Context, c *Conn, method string, params any) (*R, error) {
	return Request[*R](ctx, c, method, params, false)
}

// Request is RequestMethod.Call with any parameters. It is no method, which the compiler would make for each pair of
// types.
func Request[R any](ctx context.Context, c *Conn, method string, params any, null bool) (R, error) {
	value, err := request(ctx, c, method, params, null, nil, reflect.TypeFor[R]())
	return resultOf[R](method, value, err)
}

// RequestThen is Request with a function, or nil, that the reader calls with the result, before anything after it is
// handled.
func RequestThen[R any](
	ctx context.Context, c *Conn, method string, params any, null bool, then func(R),
) (R, error) {
	var take resultTaker
	if then != nil {
		take = taker[R](then)
	}
	value, err := request(ctx, c, method, params, null, take, reflect.TypeFor[R]())
	return resultOf[R](method, value, err)
}

func resultOf[R any](method string, value any, err error) (result R, _ error) {
	if err != nil {
		return result, err
	}
	result, ok := value.(R)
	if !ok || isNil(result) {
		return *new(R), errReplaced(method, result, value)
	}
	return result, nil
}

func request(
	ctx context.Context, c *Conn, method string, params any, null bool, then resultTaker, of reflect.Type,
) (any, error) {
	// Not a literal, which uses so much stack that the stacks of new goroutines must grow: 256 calls from as many
	// goroutines take a fifth more time.
	t := new(typed)
	t.conn, t.method, t.result = c, method, t
	t.of, t.null, t.then = of, null, then
	return t.do(ctx, params)
}

// NotifyRaw sends a notification with any parameters that encoding/json can encode; see
// NotificationMethod.Notify.
func NotifyRaw(ctx context.Context, c *Conn, method string, params any) error {
	return c.notify(ctx, method, params)
}

// do makes the call, with its middleware if there is any, which may replace the result.
func (t *typed) do(ctx context.Context, params any) (any, error) {
	c := t.conn
	if c.opts.Call == nil {
		if err := t.run(ctx, encodable(params)); err != nil {
			return nil, err // the reader may still be setting the value of a call that was given up
		}
		return t.value, nil
	}
	call := newOutgoing(t.method, params)
	err := c.opts.Call(ctx, &call.Call, func(ctx context.Context) error {
		err := t.run(ctx, call.encodable())
		call.ID = t.id()
		if err != nil {
			return err
		}
		call.Result = t.value
		return nil
	})
	return call.Result, err
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
