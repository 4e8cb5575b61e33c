package engine

import (
	"context"
	"encoding/json"

	"github.com/acpgo/sdk/acp/codec"
)

// A Route says how one method of this side is served. RequestMethod, NotificationMethod, Fallback and
// FallbackNotification make routes; their fields may be set before the connection starts. A Route that is none of
// theirs serves nothing, but is gated.
type Route struct {
	// Method is the method's name.
	Method string
	// Notification says that the method is one; a route serves one kind only.
	Notification bool
	// Gate, if set, is asked before the parameters are looked at; an error refuses a request, and
	// drops a notification. The reader calls it, for a message that is refused perhaps twice: it must
	// be quick.
	Gate func() error
	// Check, if set, is given the decoded parameters; an error refuses a request, and drops a
	// notification. The reader calls it as it does Gate.
	Check func(params any) error
	// Verify, if set, is given the result of a request's handler; an error is answered instead.
	Verify func(result any) error
	// Inline serves a request before anything after it is read. Its handler must be quick and must not call the
	// peer.
	Inline bool
	// Cancelled, if set, is what a request is answered with when its session's turn was cancelled, made from its
	// handler's result, which is nil if that failed or was not awaited. It makes the request part of the
	// session's turn.
	Cancelled func(result any) any
	// Turn marks a request whose progress is its session's turn: one at a time, ended by
	// CancelsTurn.
	Turn bool
	// CancelsTurn marks the notification with which the peer cancels its session's turn.
	CancelsTurn bool
	// EndsTurn marks a request that cancels its session's turn as CancelsTurn does, and is handled
	// when that turn has been answered.
	EndsTurn bool
	// Feeds marks the notification whose parameters go to the session's Turn of this side, and to the handler only
	// what no Turn takes: what came before the oldest turn in progress was begun, or after it has ended, and all
	// while that turn's updates are not read.
	Feeds bool

	// decode decodes the parameters, and of a notification makes the context of its handler, a *notificationContext.
	decode func(d *codec.Decoder) (any, holder)
	serve  func(ctx context.Context, params any) (any, error)
	notify func(ctx context.Context, params any) error
}

// handled reports whether there is a handler.
func (r *Route) handled() bool { return r != nil && (r.serve != nil || r.notify != nil) }

// gated asks the gate, if there is one.
func (r *Route) gated() error {
	if r == nil || r.Gate == nil {
		return nil
	}
	return r.Gate()
}

// checked has the parameters checked, if there is a check.
func (r *Route) checked(params any) error {
	if r.Check == nil {
		return nil
	}
	return r.Check(params)
}

// fallbackParams are the parameters of a method that only a fallback knows. The reader fills in method.
type fallbackParams struct {
	method string
	raw    json.RawMessage
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
