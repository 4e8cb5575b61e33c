// This file owns middleware: what the owner of a connection has put round its handlers and calls. Without any
// nothing here runs.

package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
		return result, err
	}
	call := &Call{Method: in.req.Method, Incoming: true, Session: in.session.id, Meta: in.meta, Params: plainParams(in.params)}
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
	return call.Result, err
}

// replacing is what a handler is given when the middleware has let params pass.
func (in *inbound) replacing(params any) any {
	if p, ok := in.params.(*fallbackParams); ok {
		return p.replaced(params)
	}
	return params
}

// serveNotification runs the handler of a notification.
func (c *Conn) serveNotification(ctx context.Context, s *session, route *Route, params any, method string) error {
	if c.opts.Serve == nil {
		return c.guard(method, func() error { return route.notify(ctx, params) })
	}
	kept := params.(*withMeta)
	call := &Call{
		Method: method, Incoming: true, Notification: true, Session: s.id, Meta: kept.meta, Params: plainParams(kept.params),
	}
	return c.guard(method, func() error {
		return c.opts.Serve(ctx, call, func(ctx context.Context) error {
			params := call.Params
			if p, ok := kept.params.(*fallbackParams); ok {
				params = p.replaced(params)
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

// withMeta are the parameters of a notification in a queue, and their _meta.
type withMeta struct {
	params any
	meta   map[string]json.RawMessage
}

// keepMeta keeps the _meta of a notification's parameters for the middleware, if there is any. The reader calls
// it.
func (c *Conn) keepMeta(value any, params []byte) any {
	if c.opts.Serve == nil {
		return value
	}
	return &withMeta{value, c.metaOf(params)}
}

// withoutMeta are the parameters of a notification in a queue.
func withoutMeta(params any) any {
	if kept, ok := params.(*withMeta); ok {
		return kept.params
	}
	return params
}

// metaOf is the _meta in parameters, for middleware, which may be none. The reader calls it.
func (c *Conn) metaOf(params []byte) (meta map[string]json.RawMessage) {
	if c.opts.Serve == nil || !bytes.Contains(params, []byte(memberMeta)) {
		return nil
	}
	d := c.decode
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

// sessionIn is the id of the session that parameters name which are about to be sent.
func (c *Conn) sessionIn(params any) string {
	if params == nil {
		return ""
	}
	raw, err := codec.Append(nil, encodable(params))
	if err != nil {
		return "" // which sending them will say
	}
	return sessionOf(codec.NewDecoder(nil), raw)
}

// around makes a call within its middleware.
func around[R any](ctx context.Context, t *typed[R], params any) (*R, error) {
	c := t.conn
	call := &Call{Method: t.method, Session: c.sessionIn(params), Params: params}
	return replaced[R](call, c.opts.Call(ctx, call, func(ctx context.Context) error {
		if err := t.run(ctx, call.outgoing()); err != nil {
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

// outgoing are the parameters to send.
func (call *Call) outgoing() wire.Encodable {
	params := encodable(call.Params)
	if len(call.Meta) == 0 {
		return params
	}
	return wire.Authored(&adding{params, call.Meta})
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
