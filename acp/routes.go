package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/engine"
)

// errNotInitialized is the error for messages that arrive, or would be sent, before initialize has been answered.
var errNotInitialized = ErrInvalidRequest.WithMessagef("Invalid request: initialize comes first")

// The types of parameters, results and sessions in generic functions are pointers, because the compiler makes a generic
// function once for all pointers, but again for each struct.

// orEmpty returns params, or a pointer to a zero value if params is nil.
func orEmpty[P any](params P) P { return engine.OrNew(params) }

// verified wraps a request handler so that a result that check, or checkIDs, refuses is not sent. The peer gets an
// internal error that names the mistake, and a warning is logged.
func verified[P, R, Of any](
	opts *ConnOptions, method string, fn func(context.Context, Of, P) (R, error), check func(P, R) *flaw,
) func(context.Context, Of, P) (R, error) {
	if fn == nil {
		return nil
	}
	return func(ctx context.Context, of Of, params P) (R, error) {
		var none R
		res, err := fn(ctx, of, params)
		if err != nil || any(res) == any(none) {
			return res, err
		}
		wrong := checkIDs(res)
		if wrong == nil {
			wrong = check(params, res)
		}
		if wrong == nil {
			return res, nil
		}
		loggerOf(opts).WarnContext(ctx, "the result of a handler is not valid and was not sent", "method", method, "error",
			wrong)
		return none, rpc.Errorf(rpc.ErrInternal, "Internal error: the result of %s is not valid: %v", method, wrong)
	}
}

// warnUnserved logs a warning that an agent's result offers a choice that clients cannot make, because the handler of
// the method for it is not set.
func warnUnserved(opts *ConnOptions, offers bool, what, method string, served bool) {
	if offers && !served {
		loggerOf(opts).Warn("the result of a handler offers choices that no handler serves: clients that make one get the "+
			"error that the method does not exist",
			"offers", what, "method", method)
	}
}

// loggerOf returns the logger for warnings.
func loggerOf(opts *ConnOptions) *slog.Logger {
	if opts.Logger == nil {
		return slog.Default()
	}
	return opts.Logger
}

// noExtraCheck is a check for verified that accepts everything; verified checks ids itself.
func noExtraCheck[P, R any](P, R) *flaw { return nil }

// rawID returns the id of an object of an unknown type, or "".
func rawID(raw json.RawMessage, member string) string {
	var members map[string]json.RawMessage
	var id string
	if json.Unmarshal(raw, &members) != nil || json.Unmarshal(members[member], &id) != nil {
		return ""
	}
	return id
}

// request returns the route of a request handler. The handler receives the result of of: the session that the
// parameters name, or the connection.
func request[P, R, Of any](
	m requestMethod[P, R], of func(P) Of, fn func(context.Context, Of, P) (R, error),
) engine.Route {
	if fn == nil {
		return engine.HandleRequest[P, R](m.Name, m.NullResult, nil)
	}
	return engine.HandleRequest(m.Name, m.NullResult,
		func(ctx context.Context, params P) (R, error) { return fn(ctx, of(params), params) })
}

// notification returns the route of a notification handler; see request.
func notification[P, Of any](
	method string, of func(*P) Of, fn func(context.Context, Of, *P) error,
) engine.Route {
	if fn == nil {
		return engine.HandleNotification[P](method, nil)
	}
	return engine.HandleNotification(method,
		func(ctx context.Context, params *P) error { return fn(ctx, of(params), params) })
}

// call calls a method of the peer.
func call[P, R any](ctx context.Context, conn *rpc.Conn, m requestMethod[P, R], params P) (R, error) {
	return engine.Request[R](ctx, (*engine.Conn)(conn), m.Name, orEmpty(params), m.NullResult)
}

// callThen is call, except that the reader goroutine calls then with the result before any later message is handled.
func callThen[P, R any](
	ctx context.Context, conn *rpc.Conn, m requestMethod[P, R], params P, then func(R),
) (R, error) {
	return engine.RequestThen(ctx, (*engine.Conn)(conn), m.Name, orEmpty(params), m.NullResult, then)
}

// notify sends a notification to the peer.
func notify(ctx context.Context, conn *rpc.Conn, method string, params any) error {
	return engine.NotifyRaw(ctx, (*engine.Conn)(conn), method, params)
}

// unsupported returns the error for a call that was not sent because its capability was not advertised.
func unsupported(method, capability string) error {
	return fmt.Errorf("%s: %w: capability %s", method, ErrUnsupported, capability)
}

// lacking returns a capability that is needed and was not advertised, or "".
func lacking(needed, advertised bool, capability string) string {
	if needed && !advertised {
		return capability
	}
	return ""
}

// unsent returns the error for a call that was refused on this side. If a handler returns it, the peer does not see it,
// because it is about this side's call and not about the peer's request.
func unsent(method string, err error) error { return &engine.UnsentError{Method: method, Err: err} }

// handler is a handler's name, and whether it is set.
type handler struct {
	name string
	set  bool
}

// allOrNone reports whether all handlers of a capability are set. It returns an error if only some are.
func allOrNone(capability string, handlers ...handler) (bool, error) {
	var set, missing []string
	for _, h := range handlers {
		if h.set {
			set = append(set, h.name)
		} else {
			missing = append(missing, h.name)
		}
	}
	if len(set) > 0 && len(missing) > 0 {
		return false, fmt.Errorf("acp: capability %s needs both handlers: %s is set, %s is not",
			capability, strings.Join(set, ", "), strings.Join(missing, ", "))
	}
	return len(set) > 0, nil
}
