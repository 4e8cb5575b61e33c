package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
)

// A Request is the hook of a request with parameters P and result R. next sends the parameters on and returns the
// answer.
type Request[P, R any] func(ctx context.Context, req *P, next func(context.Context, *P) (*R, error)) (*R, error)

// A Notification is the hook of a notification with parameters P. next sends them on. If it is not called, the
// notification is dropped.
type Notification[P any] func(ctx context.Context, n *P, next func(context.Context, *P) error) error

// A Raw is the hook of a method by name: of its requests and its notifications, from both sides. The results of next
// and of the hook are ignored for a notification. Nil parameters are left out; a nil result is sent as null.
type Raw func(ctx context.Context, msg *Message, next func(context.Context, json.RawMessage) (json.RawMessage, error)) (
	json.RawMessage, error)

// Message is a message on its way.
type Message struct {
	// From is the side that has sent it.
	From Side
	// Method is its method.
	Method string
	// Notification reports that it is a notification rather than a request.
	Notification bool
	// Params are its parameters, or nil. They must not be changed in place.
	Params json.RawMessage
}

// hook is a hook of one kind of message, from one side.
type hook struct {
	from    Side
	method  string
	request bool
	run     Raw
}

func (h *Hooks) all() ([]*hook, error) {
	var out []*hook
	seen := map[string]bool{}
	for _, typed := range h.typed() {
		if typed != nil {
			out = append(out, typed)
			seen[typed.method] = true
		}
	}
	for method, run := range h.Raw {
		if seen[method] || reserved(method) {
			return nil, fmt.Errorf("acp/proxy: no raw hook is possible for %s", method)
		}
		for _, from := range []Side{Client, Agent} {
			out = append(out, &hook{from, method, true, run}, &hook{from, method, false, run})
		}
	}
	return out, nil
}

func request[P, R any](from Side, method string, f Request[P, R]) *hook {
	if f == nil {
		return nil
	}
	return &hook{from, method, true, func(
		ctx context.Context, msg *Message, next func(context.Context, json.RawMessage) (json.RawMessage, error),
	) (json.RawMessage, error) {
		req, err := decode[P](msg.Params)
		if err != nil {
			return nil, rpc.InvalidParamsf("%v", err)
		}
		var mu sync.Mutex
		var answer *given[R]
		res, err := f(ctx, req.value, func(ctx context.Context, p *P) (*R, error) {
			params, err := req.encode(p)
			if err != nil {
				return nil, err
			}
			result, err := next(ctx, params)
			if err != nil {
				return nil, err
			}
			res, err := decode[R](result)
			if err != nil {
				return nil, fmt.Errorf("result of %s: %w", method, err)
			}
			mu.Lock()
			defer mu.Unlock()
			answer = res
			return res.value, nil
		})
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		return answer.encode(res)
	}}
}

func notification[P any](from Side, method string, f Notification[P]) *hook {
	if f == nil {
		return nil
	}
	return &hook{from, method, false, func(
		ctx context.Context, msg *Message, next func(context.Context, json.RawMessage) (json.RawMessage, error),
	) (json.RawMessage, error) {
		n, err := decode[P](msg.Params)
		if err != nil { // other receivers may understand it
			return next(ctx, msg.Params)
		}
		return nil, f(ctx, n.value, func(ctx context.Context, p *P) error {
			params, err := n.encode(p)
			if err == nil {
				_, err = next(ctx, params)
			}
			return err
		})
	}}
}

// given is a value that a hook was given.
type given[T any] struct {
	raw   json.RawMessage // as it was received
	value *T
}

func decode[T any](raw json.RawMessage) (*given[T], error) {
	value, err := read[T](raw)
	return &given[T]{raw, value}, err
}

func read[T any](raw json.RawMessage) (*T, error) {
	if text := bytes.TrimSpace(raw); len(text) == 0 || string(text) == "null" {
		raw = json.RawMessage("{}") // parameters that were left out, or a result without members
	}
	value, d := new(T), decoders.Get().(*codec.Decoder)
	d.Reset(raw)
	codec.Decode(d, value)
	err := d.End()
	d.Reset(nil)
	decoders.Put(d)
	return value, err
}

// decoders are for the values of hooks. What belongs to features is between the two sides.
var decoders = sync.Pool{New: func() any {
	d := codec.NewDecoder(nil)
	d.SetOff(^uint64(0))
	return d
}}

// encode returns what a hook sends on: v, with the members that this library does not know if it is the value that the
// hook was given.
func (g *given[T]) encode(v *T) (json.RawMessage, error) {
	if v == nil {
		v = new(T)
	}
	now, err := codec.Append(nil, v)
	if g == nil || v != g.value {
		return now, err
	}
	if err == nil && bytes.Equal(now, g.raw) {
		return g.raw, nil
	}
	original, reading := read[T](g.raw)
	was, writing := codec.Append(nil, original)
	switch {
	case reading == nil && writing != nil && reflect.DeepEqual(v, original):
		return g.raw, nil // it breaks a rule for what this library sends, and is sent on all the same
	case err != nil || reading != nil || writing != nil:
		return now, err
	}
	return merge(g.raw, was, now), nil
}
