package engine

import (
	"context"
	"encoding/json"

	"github.com/acpgo/sdk/codec"
)

// A Route defines how one method of this side is served. RequestMethod, NotificationMethod, Fallback and
// FallbackNotification return routes, whose fields may be set before the connection starts. A Route made in any other
// way serves nothing, but is gated.
type Route struct {
	// Method is the method's name.
	Method string
	// Notification reports whether the method is a notification; a route serves one kind only.
	Notification bool
	// Gate, if set, is called before the parameters are examined; an error refuses a request, and drops a notification.
	// The reader calls it, possibly twice for a message that is refused: it must be quick.
	Gate func() error
	// Check, if set, is called with the decoded parameters; an error refuses a request, and drops a notification. The
	// reader calls it, so it must be quick.
	Check func(params any) error
	// Verify, if set, is called with the result of a request's handler; an error is answered instead.
	Verify func(result any) error
	// Inline serves a request before anything after it is read. Its handler must be quick and must not call the
	// peer.
	Inline bool
	// Cancelled, if set, returns the answer to a request whose session's turn was cancelled, given the handler's
	// result, which is nil if the handler failed or was not awaited. Setting it makes the request part of the session's
	// turn.
	Cancelled func(result any) any
	// Turn marks a request that is its session's turn while it is in progress: one at a time, ended by CancelsTurn.
	Turn bool
	// CancelsTurn marks the notification with which the peer cancels its session's turn.
	CancelsTurn bool
	// EndsTurn marks a request that cancels its session's turn, as CancelsTurn does, and is handled once that turn has
	// been answered.
	EndsTurn bool
	// Opens marks a request whose answer names a new session. Notifications about other sessions than the request's that
	// its handler sends, with its context, follow the answer, unless a turn of the peer is in progress in that session;
	// they are dropped if the request fails.
	Opens bool
	// Feeds marks the notification whose parameters go to the session's Turn of this side. The handler gets only those
	// that no Turn takes: what arrived before the oldest turn in progress was begun, or after it has ended, and
	// everything while that turn's updates are not read.
	Feeds bool

	enters bool // the parameters are an Enterer

	// decode decodes the parameters; for a notification it also returns the context of its handler, a
	// *notificationContext.
	decode func(d *codec.Decoder) (any, holder)
	serve  func(ctx context.Context, params any) (any, error)
	notify func(ctx context.Context, params any) error
}

// handled reports whether there is a handler.
func (r *Route) handled() bool { return r != nil && (r.serve != nil || r.notify != nil) }

// gated calls the gate, if there is one.
func (r *Route) gated() error {
	if r == nil || r.Gate == nil {
		return nil
	}
	return r.Gate()
}

// checked calls the check, if there is one.
func (r *Route) checked(params any) error {
	if r.Check == nil {
		return nil
	}
	return r.Check(params)
}

// fallbackParams holds the parameters of a method that only a fallback serves. The reader sets method.
type fallbackParams struct {
	method string
	raw    json.RawMessage
}

// plainParams returns parameters in the form that middleware sees.
func plainParams(params any) any {
	if p, ok := params.(*fallbackParams); ok {
		return p.raw
	}
	return params
}

// replaced returns the parameters for the fallback after middleware has replaced them with params.
func (p *fallbackParams) replaced(params any) any {
	raw, ok := params.(json.RawMessage)
	if !ok {
		return params
	}
	return &fallbackParams{method: p.method, raw: raw}
}
