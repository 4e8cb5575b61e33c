package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"

	"github.com/acpgo/sdk/acp/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// A Route says how one method of this side is served. RequestMethod, NotificationMethod, Fallback and
// FallbackNotification make routes; their fields may be set before the connection starts. A Route that is none of
// theirs serves nothing, but is gated.
type Route struct {
	// Method is the method's name.
	Method string
	// Notification says that the method is one; a route serves one kind only.
	Notification bool
	// Gate, if set, is asked before the parameters are looked at; an error refuses a request, and
	// drops a notification. The reader calls it, for a message that is refused perhaps twice: it must
	// be quick.
	Gate func() error
	// Check, if set, is given the decoded parameters; an error refuses a request, and drops a
	// notification. The reader calls it as it does Gate.
	Check func(params any) error
	// Verify, if set, is given the result of a request's handler; an error is answered instead.
	Verify func(result any) error
	// Inline serves a request before anything after it is read. Its handler must be quick and must not call the
	// peer.
	Inline bool
	// Cancelled, if set, is what a request is answered with when its session's turn was cancelled, made from its
	// handler's result, which is nil if that failed or was not awaited. It makes the request part of the
	// session's turn.
	Cancelled func(result any) any
	// Turn marks a request whose progress is its session's turn: one at a time, ended by
	// CancelsTurn.
	Turn bool
	// CancelsTurn marks the notification with which the peer cancels its session's turn.
	CancelsTurn bool
	// EndsTurn marks a request that cancels its session's turn as CancelsTurn does, and is handled
	// when that turn has been answered.
	EndsTurn bool
	// Feeds marks the notification whose parameters go to the session's Turn of this side, and to the handler only
	// what no Turn takes: what came before the oldest turn in progress was begun, or after it has ended, and all
	// while that turn's updates are not read.
	Feeds bool

	// decode decodes the parameters, and of a notification brings the context of its handler.
	decode func(d *codec.Decoder) (any, *notificationContext)
	serve  func(ctx context.Context, params any) (any, error)
	notify func(ctx context.Context, params any) error
}

// handled reports whether there is a handler.
func (r *Route) handled() bool { return r != nil && (r.serve != nil || r.notify != nil) }

// gated asks the gate, if there is one.
func (r *Route) gated() error {
	if r == nil || r.Gate == nil {
		return nil
	}
	return r.Gate()
}

// checked has the parameters checked, if there is a check.
func (r *Route) checked(params any) error {
	if r.Check == nil {
		return nil
	}
	return r.Check(params)
}

// A RequestMethod is a method with parameters of type P and a result of type R: generated types, or
// any types that encoding/json can handle.
type RequestMethod[P, R any] struct {
	// Name is the method's name on the wire.
	Name string
	// NullResult says that R has no required members, so that null, which peers send for it, is
	// accepted, and a handler's nil result is sent as {}.
	NullResult bool
}

// Call sends the request and waits for the answer. It returns the peer's *Error, an error that matches
// ErrClosed, what is wrong with the answer, or, when ctx ends first, its cause; then the peer is told
// by $/cancel_request, and a late answer is dropped.
func (m RequestMethod[P, R]) Call(ctx context.Context, c *Conn, params *P) (*R, error) {
	return m.CallThen(ctx, c, params, nil)
}

// CallThen is Call with a function that the reader calls with the result, before anything behind it is
// handled; nil is none.
func (m RequestMethod[P, R]) CallThen(ctx context.Context, c *Conn, params *P, then func(*R)) (*R, error) {
	if params == nil {
		params = new(P)
	}
	return call(ctx, c, m.Name, params, m.NullResult, then)
}

// Handle makes a route. A nil fn makes one that answers that the method does not exist.
func (m RequestMethod[P, R]) Handle(fn func(context.Context, *P) (*R, error)) Route {
	r := Route{Method: m.Name}
	if fn == nil {
		return r
	}
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

var errNilResult = fmt.Errorf("acp: the handler returned neither a result nor an error")

// A NotificationMethod is a notification with parameters of type P.
type NotificationMethod[P any] struct {
	// Name is the method's name on the wire.
	Name string
}

// Notify sends the notification. It returns when that is on its way, after waiting, up to the end of
// ctx, while too much is unsent. A ctx that has ended already does not keep it from being sent when
// there is room.
func (m NotificationMethod[P]) Notify(ctx context.Context, c *Conn, params *P) error {
	if params == nil {
		params = new(P)
	}
	return c.notify(ctx, m.Name, params)
}

// Handle makes a route. A nil fn makes one that ignores the notification. An error of fn is logged.
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

// paramsAs are the parameters for a handler, which middleware may have replaced.
func paramsAs[P any](params any) (*P, error) {
	p, ok := params.(*P)
	if !ok {
		return nil, fmt.Errorf("acp: the parameters are %T, and were replaced by %T", p, params)
	}
	return p, nil
}

// decodeParams decodes into a new P.
func decodeParams[P any](d *codec.Decoder) (any, *notificationContext) {
	p := new(P)
	decodeInto(d, p)
	return p, nil
}

// decodeNotification is decodeParams for a notification, with all that it needs in one allocation.
func decodeNotification[P any](d *codec.Decoder) (any, *notificationContext) {
	n := new(struct {
		params   P
		handling notificationContext
	})
	decodeInto(d, &n.params)
	return &n.params, &n.handling
}

// decodeInto decodes the next value, by generated code where there is any.
func decodeInto(d *codec.Decoder, v any) {
	if g, ok := v.(interface{ DecodeJSON(*codec.Decoder) }); ok {
		g.DecodeJSON(d)
		return
	}
	raw := d.Raw()
	if _, text := v.(*json.RawMessage); !text { // which takes no more memory than its text
		d.AddItems(separators(raw))
	}
	if d.Err() != nil {
		return
	}
	switch err := unmarshal(raw, v); err := err.(type) {
	case nil:
	case *json.UnmarshalTypeError:
		in := ""
		if err.Field != "" {
			in = " in " + strconv.Quote(echoed(err.Field))
		}
		d.Failf("got %s%s, want %s", echoed(err.Value), in, jsonType(err.Type))
	default:
		d.Failf("the value does not fit") // the error is the author's, and not for the peer
	}
}

// jsonType names the JSON values that fit a type, as json.UnmarshalTypeError names those that do not.
func jsonType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "bool"
	case reflect.String:
		return "string"
	case reflect.Slice, reflect.Array:
		return "array"
	case reflect.Struct, reflect.Map:
		return "object"
	case reflect.Pointer:
		return jsonType(t.Elem())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "integer"
	case reflect.Float32, reflect.Float64:
		return "number"
	}
	return "another value"
}

// separators counts the commas of a JSON text that stand between values.
func separators(raw []byte) (n int) {
	inString := false
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '\\': // within a string only
			i++
		case '"':
			inString = !inString
		case ',':
			if !inString {
				n++
			}
		}
	}
	return n
}

// unmarshal is json.Unmarshal, whose methods may be an author's and panic.
func unmarshal(raw []byte, v any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return json.Unmarshal(raw, v)
}

// typed is a call whose result is an R.
type typed[R any] struct {
	pending
	value *R
	null  bool     // null is accepted too
	then  func(*R) // or nil; called by the reader with the result
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

// encodable makes a value of any type one that the wire can send.
func encodable(v any) wire.Encodable {
	switch v := v.(type) {
	case nil:
		return nil
	case wire.Encodable:
		return v
	default:
		return wire.Plain(v)
	}
}

// CallRaw sends a request with any parameters that encoding/json can encode, and decodes the result into an R;
// a nil params leaves the member out. See RequestMethod.Call for the errors.
func CallRaw[R any](ctx context.Context, c *Conn, method string, params any) (*R, error) {
	return call[R](ctx, c, method, params, false, nil)
}

// call is what all typed calls share.
func call[R any](ctx context.Context, c *Conn, method string, params any, null bool, then func(*R)) (*R, error) {
	t := &typed[R]{null: null, then: then}
	// Not a literal, which takes so much stack that the stacks of new goroutines grow: 256 calls by as many take
	// a fifth more time.
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

// Fallback makes the route of requests that nothing else serves; to refuse one, fn returns what the peer sees as
// method not found.
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

// fallbackParams are the parameters of a method that only a fallback knows. The reader fills in method.
type fallbackParams struct {
	method string
	raw    json.RawMessage
}

func decodeRaw(d *codec.Decoder) (any, *notificationContext) {
	return &fallbackParams{raw: d.Raw()}, new(notificationContext)
}
