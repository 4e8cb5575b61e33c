// This file runs the middleware that the owner of a connection has put around its handlers and calls. Without
// middleware it is not used.

package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// outgoing is a call of this side with its middleware.
type outgoing struct {
	Call
	had map[string]json.RawMessage // the _meta of the parameters
}

// newOutgoing returns a call with the data that its parameters contain.
func newOutgoing(method string, params any) *outgoing {
	o := &outgoing{Call: Call{Method: method, Params: params}}
	if params == nil {
		return o
	}
	l := looks.Get().(*look)
	defer l.done()
	raw, err := codec.Append(l.text[:0], encodable(params))
	if err != nil {
		return o // sending them reports the error
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

// look holds what is needed to inspect parameters that are about to be sent.
type look struct {
	text    []byte
	decoder *codec.Decoder
}

var looks = sync.Pool{New: func() any { return &look{decoder: codec.NewDecoder(nil)} }}

// maxLook is how many bytes of memory are kept for the next look.
const maxLook = 64 << 10

func (l *look) done() {
	l.decoder.Reset(nil)
	if cap(l.text) > maxLook {
		l.text = nil
	}
	looks.Put(l)
}

// replaced returns the result of a call, which its middleware may have replaced.
func replaced[R any](call *Call, err error) (*R, error) {
	if err != nil {
		return nil, err
	}
	result, ok := call.Result.(*R)
	if !ok || result == nil {
		return nil, errReplaced(call.Method, result, call.Result)
	}
	return result, nil
}

// errReplaced is the error for a result that middleware has replaced by one of another type.
func errReplaced(method string, want, result any) error {
	return fmt.Errorf("%s: acp: the result is %T, and was replaced by %T", method, want, result)
}

// encodable returns the parameters to send, with the members of _meta that the middleware has set.
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

// adding is parameters with members to be added to their _meta.
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
	if d.Kind() == 'n' { // null means no parameters
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
