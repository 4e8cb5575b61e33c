package hop

import (
	"errors"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// MethodSuccessor is the method whose parameters are a message from or to the successor of a proxy.
const MethodSuccessor = "proxy/successor"

// AppendMessage appends a request, or a notification if id is nil. Empty parameters are left out.
func AppendMessage(dst []byte, id *wire.ID, method string, params []byte) []byte {
	return append(appendCall(appendID(dst, id), method, params), '}')
}

// AppendWrapped is like AppendMessage, with the message in an envelope of MethodSuccessor.
func AppendWrapped(dst []byte, id *wire.ID, method string, params []byte) []byte {
	dst = append(appendID(dst, id), `"method":"`+MethodSuccessor+`","params":{`...)
	return append(appendCall(dst, method, params), "}}"...)
}

func appendID(dst []byte, id *wire.ID) []byte {
	dst = append(dst, `{"jsonrpc":"2.0",`...)
	if id == nil {
		return dst
	}
	dst, _ = codec.Append(append(dst, `"id":`...), id) // an id can always be written
	return append(dst, ',')
}

func appendCall(dst []byte, method string, params []byte) []byte {
	dst = codec.AppendString(append(dst, `"method":`...), method)
	if len(params) > 0 {
		dst = wire.AppendLine(append(dst, `,"params":`...), params)
	}
	return dst
}

// Unwrap returns the message in the parameters of MethodSuccessor. Its own parameters are nil if there are none.
func Unwrap(d *codec.Decoder, envelope []byte) (method string, params []byte, err error) {
	d.Reset(envelope)
	methods, all, named := 0, 0, false
	for o := d.Object(); o.Next(); {
		switch string(o.Name()) {
		case "method":
			methods++
			if named = d.Kind() == '"'; named {
				method = d.Str()
			} else {
				d.Skip()
			}
		case "params":
			all++
			d.Kind() // moves on to the value
			at := d.Offset()
			d.Skip()
			params = d.Slice(at)
		default:
			d.Skip()
		}
	}
	if string(params) == "null" {
		params = nil
	}
	switch {
	case d.End() != nil:
		return "", nil, errors.New("params is not an object")
	case methods > 1 || all > 1:
		return "", nil, errors.New("a member occurs twice")
	case !named:
		return "", nil, errors.New("method is not a string")
	case params != nil && params[0] != '{' && params[0] != '[':
		return "", nil, errors.New("params of the message inside is neither an object nor an array")
	}
	return method, params, nil
}
