package wire

import "github.com/acpgo/sdk/codec"

// MethodCancelRequest is the notification that asks the other side to end a request soon.
const MethodCancelRequest = "$/cancel_request"

// CancelledID reads the parameters of a MethodCancelRequest with d, and returns the id of the request that they name,
// and false if they do not name exactly one.
func CancelledID(d *codec.Decoder, params []byte) (id ID, ok bool) {
	d.Reset(params)
	for o := d.Object(); o.Next(); {
		if string(o.Name()) == "requestId" {
			o.Once(0)
			id.DecodeJSON(d)
			ok = true
		} else {
			d.Skip()
		}
	}
	return id, ok && d.Err() == nil
}
