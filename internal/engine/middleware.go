// Middleware: what the owner of a connection has put round its handlers and calls. Without any nothing here runs.

package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	"github.com/acpgo/sdk/acp/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// outgoing is a call of this side within its middleware.
type outgoing struct {
	Call
	had map[string]json.RawMessage // the _meta of the parameters
}

// newOutgoing says of a call what its parameters say.
func newOutgoing(method string, params any) *outgoing {
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
