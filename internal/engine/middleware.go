// Middleware: what the owner of a connection has put round its handlers and calls. Without any nothing here runs.

package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/acpgo/sdk/acp/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// memberMeta is the member of parameters that carries what is not part of the protocol.
const memberMeta = "_meta"

var errNextTwice = errors.New("acp: middleware called next more than once")

// once is a middleware whose second call of next fails, because a call and its result are used once.
func (m Middleware) once() Middleware {
	if m == nil {
		return nil
	}
	return func(ctx context.Context, call *Call, next func(context.Context) error) error {
		var called atomic.Bool
		return m(ctx, call, func(ctx context.Context) error {
			if called.Swap(true) {
				return errNextTwice
			}
			return next(ctx)
		})
	}
}

// serveRequest runs the handler of a request.
func (c *Conn) serveRequest(in *inbound) (result any, err error) {
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
	null := false // the handler's result, of a fallback
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

// verified returns what a handler returned, unless the route refuses the result.
func (in *inbound) verified(result any, err error) (any, error) {
	if err == nil && in.route.Verify != nil {
		err = in.route.Verify(result)
	}
	return result, err
}

// replacing is what a handler is given when the middleware has let params pass.
func (in *inbound) replacing(params any) any {
	if p, ok := in.params.(*fallbackParams); ok {
		return p.replaced(params)
	}
	return params
}

// serveNotification runs the handler of a notification, or gives it to the loop that wants it, within the middleware. It
// returns the notification's name too.
func (c *Conn) serveNotification(
	ctx context.Context, s *session, route *Route, kept *withMeta, size int,
) (method string, err error) {
	method = route.Method
	if p, ok := kept.params.(*fallbackParams); ok {
		method = p.method
	}
	call := &Call{
		Method: method, Incoming: true, Notification: true, Session: s.id,
		Size: kept.length, Meta: kept.meta, Params: plainParams(kept.params),
	}
	return method, c.guard(method, func() error {
		return c.opts.Serve(ctx, call, func(ctx context.Context) error {
			params := call.Params
			if p, ok := kept.params.(*fallbackParams); ok {
				params = p.replaced(params)
			}
			if route.Feeds && c.feed(s, params, size) || route.notify == nil {
				return nil
			}
			return c.guard(method, func() error { return route.notify(ctx, params) })
		})
	})
}

// plainParams are parameters as middleware sees them.
func plainParams(params any) any {
	if p, ok := params.(*fallbackParams); ok {
		return p.raw
	}
	return params
}

// replaced are the parameters for the fallback when middleware has made params of them.
func (p *fallbackParams) replaced(params any) any {
	raw, ok := params.(json.RawMessage)
	if !ok {
		return params
	}
	return &fallbackParams{method: p.method, raw: raw}
}

// withMeta are the parameters of a notification in a queue, their _meta, and how long their text is.
type withMeta struct {
	params any
	meta   map[string]json.RawMessage
	length int
}

// keepMeta keeps what the middleware, if there is any, is told of a notification's parameters. The reader calls it.
func (c *Conn) keepMeta(value any, params []byte) any {
	if c.opts.Serve == nil {
		return value
	}
	return &withMeta{value, c.metaOf(params), len(params)}
}

// metaOf is the _meta in parameters, for middleware, which may be none. The reader calls it.
func (c *Conn) metaOf(params []byte) map[string]json.RawMessage {
	if c.opts.Serve == nil {
		return nil
	}
	return metaIn(c.decode, params)
}

// metaIn is the _meta in parameters.
func metaIn(d *codec.Decoder, params []byte) (meta map[string]json.RawMessage) {
	if !bytes.Contains(params, []byte(memberMeta)) {
		return nil
	}
	d.Reset(params)
	if d.Kind() != '{' {
		return nil
	}
	for o := d.Object(); o.Next(); {
		if string(o.Name()) == memberMeta && d.Kind() == '{' {
			meta = codec.DecodeRawMap(d)
		} else {
			d.Skip()
		}
	}
	return meta
}

// outgoing is a call of this side within its middleware.
type outgoing struct {
	Call
	had map[string]json.RawMessage // the _meta of the parameters
}

// outgoing says of a call what its parameters say.
func (c *Conn) outgoing(method string, params any) *outgoing {
	o := &outgoing{Call: Call{Method: method, Params: params}}
	if params == nil {
		return o
	}
	l := looks.Get().(*look)
	defer l.done()
	raw, err := codec.Append(l.text[:0], encodable(params))
	if err != nil {
		return o // which sending them will say
	}
	l.text = raw
	o.Size = len(raw)
	l.decoder.Reset(raw)
	kind := l.decoder.Kind()
	o.NoMeta = kind != '{' && kind != 'n'
	o.Session = sessionOf(l.decoder, raw)
	o.had = metaIn(l.decoder, raw)
	o.Meta = maps.Clone(o.had)
	return o
}

// look is what it takes to look into parameters that are about to be sent.
type look struct {
	text    []byte
	decoder *codec.Decoder
}

var looks = sync.Pool{New: func() any { return &look{decoder: codec.NewDecoder(nil)} }}

// maxLook is how much memory is kept for the next look, in bytes.
const maxLook = 64 << 10

func (l *look) done() {
	l.decoder.Reset(nil)
	if cap(l.text) > maxLook {
		l.text = nil
	}
	looks.Put(l)
}

// around makes a call within its middleware.
func around[R any](ctx context.Context, t *typed[R], params any) (*R, error) {
	c := t.conn
	call := c.outgoing(t.method, params)
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

// replaced is the result of a call within its middleware.
func replaced[R any](call *Call, err error) (*R, error) {
	if err != nil {
		return nil, err
	}
	result, ok := call.Result.(*R)
	if !ok || result == nil {
		return nil, fmt.Errorf("%s: acp: the result is %T, and was replaced by %T", call.Method, result, call.Result)
	}
	return result, nil
}

// encodable are the parameters to send, with the members of _meta that the middleware has set.
func (o *outgoing) encodable() wire.Encodable {
	params := encodable(o.Params)
	var set map[string]json.RawMessage
	for name, value := range o.Meta {
		if had, ok := o.had[name]; ok && bytes.Equal(had, value) {
			continue
		}
		if set == nil {
			set = make(map[string]json.RawMessage, len(o.Meta))
		}
		set[name] = value
	}
	if set == nil {
		return params
	}
	return wire.Authored(&adding{params, set})
}

// adding is parameters whose _meta is to have more members.
type adding struct {
	params wire.Encodable
	meta   map[string]json.RawMessage
}

// EncodeJSON implements wire.Encodable.
func (a *adding) EncodeJSON(e *codec.Encoder) {
	raw := emptyObject
	if a.params != nil {
		var err error
		if raw, err = codec.Append(nil, a.params); err != nil {
			e.Fail(err)
			return
		}
	}
	d := codec.NewDecoder(raw)
	if d.Kind() == 'n' { // null is no parameters
		raw = emptyObject
		d.Reset(raw)
	}
	if d.Kind() != '{' {
		e.Failf("no place for _meta: the parameters are not an object")
		return
	}
	meta := map[string]json.RawMessage{}
	for o := d.Object(); o.Next(); {
		if string(o.Name()) == memberMeta && d.Kind() == '{' {
			meta = codec.DecodeRawMap(d)
		} else {
			d.Skip()
		}
	}
	if err := d.End(); err != nil {
		e.Fail(err)
		return
	}
	maps.Copy(meta, a.meta)
	e.BeginObject()
	e.Members(raw, memberMeta)
	e.Name(memberMeta)
	codec.EncodeRawMap(e, meta)
	e.EndObject()
}
