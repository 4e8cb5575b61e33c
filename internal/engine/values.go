package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// memberSession is the member of parameters, and of the result of session/new, that names a session.
const memberSession = "sessionId"

// memberMeta is the member of parameters that carries data that is not part of the protocol.
const memberMeta = "_meta"

// emptyObject replaces parameters that were left out.
var emptyObject = []byte("{}")

// decodeInto decodes the next value, with generated code if there is any.
func decodeInto(d *codec.Decoder, v any) {
	switch g, ok := v.(interface{ DecodeJSON(*codec.Decoder) }); {
	case ok: // not by Decode, which would ask again
		g.DecodeJSON(d)
		return
	case codec.IsTagged(v):
		codec.Decode(d, v)
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
		d.Failf("got %s%s, expected %s", echoed(err.Value), in, jsonType(err.Type))
	default:
		d.Failf("the value does not fit") // the error is the author's, and not for the peer
	}
}

// jsonType names the JSON values that fit a type, in the words that json.UnmarshalTypeError uses for those that do not.
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

// separators counts the commas between values in a JSON text.
func separators(raw []byte) (n int) {
	inString := false
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '\\': // only within a string
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

// unmarshal is json.Unmarshal, which may call methods of an author that panic.
func unmarshal(raw []byte, v any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return json.Unmarshal(raw, v)
}

// encodable converts a value of any type to one that the wire can send.
func encodable(v any) wire.Encodable {
	if v == nil {
		return nil
	}
	if _, ok := v.(interface{ EncodeJSON(*codec.Encoder) }); ok || codec.IsTagged(v) {
		return v
	}
	return wire.Plain(v)
}

// sessionOf reads the session id in parameters or a result.
func sessionOf(d *codec.Decoder, raw []byte) string {
	if len(raw) == 0 {
		return ""
	}
	d.Reset(raw)
	id, _ := d.Tag(memberSession)
	return d.Interned(id)
}

// metaIn returns the _meta in parameters.
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
