package rpc

import (
	"context"

	"github.com/acpgo/sdk/internal/engine"
)

// A RequestMethod is a method with parameters of type P and a result of type R: generated types, or
// any types that encoding/json can handle.
type RequestMethod[P, R any] struct {
	// Name is the method's name on the wire.
	Name string
	// NullResult means that R has no required members. Then null, which peers send for such a result, is accepted, and
	// a handler's nil result is sent as {}.
	NullResult bool
}

// Call sends the request and waits for the answer. The error is a *CallError, which wraps the peer's *Error; or it
// matches ErrClosed; or it describes what is wrong with the answer; or it is the cause of ctx, if ctx ended first. In
// that case $/cancel_request is sent to the peer, and a late answer is dropped.
func (m RequestMethod[P, R]) Call(ctx context.Context, c Caller, params *P) (*R, error) {
	return engine.Request[*R](ctx, c.RPC().engine(), m.Name, engine.OrNew(params), m.NullResult)
}

// A NotificationMethod is a notification with parameters of type P.
type NotificationMethod[P any] struct {
	// Name is the method's name on the wire.
	Name string
}

// Notify sends the notification. It returns once the notification is queued for sending. While too much is unsent, it
// blocks until ctx ends. If there is room, the notification is sent even if ctx has already ended.
func (m NotificationMethod[P]) Notify(ctx context.Context, c Caller, params *P) error {
	return engine.NotifyRaw(ctx, c.RPC().engine(), m.Name, engine.OrNew(params))
}

// Call sends a request with any parameters that encoding/json can encode, and decodes the result into an R. It is meant
// for extension methods, whose names begin with an underscore. If params is nil, the member params is left out. The
// error of a peer that does not know the method matches ErrMethodNotFound; see RequestMethod.Call for other errors.
func Call[R any](ctx context.Context, c Caller, method string, params any) (*R, error) {
	return engine.CallRaw[R](ctx, c.RPC().engine(), method, params)
}

// Notify sends a notification with any parameters that encoding/json can encode; see
// NotificationMethod.Notify.
func Notify(ctx context.Context, c Caller, method string, params any) error {
	return engine.NotifyRaw(ctx, c.RPC().engine(), method, params)
}
