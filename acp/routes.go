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

// errNotInitialized refuses messages that arrive, or would be sent, before initialize has been answered.
var errNotInitialized = ErrInvalidRequest.WithMessagef("Invalid request: initialize comes first")

// orEmpty is params, or, in place of nil, an empty object.
func orEmpty[P any](params *P) *P {
	if params == nil {
		return new(P)
	}
	return params
}

// verified wraps a request handler: a result that check, or checkIDs, finds wrong is not sent. The peer gets an
// internal error that names the mistake, and the owner of the connection a warning.
func verified[P, R, Of any](
	opts *ConnOptions, method string, fn func(context.Context, *Of, *P) (*R, error), check func(*P, *R) *flaw,
) func(context.Context, *Of, *P) (*R, error) {
	if fn == nil {
		return nil
	}
	return func(ctx context.Context, of *Of, params *P) (*R, error) {
		res, err := fn(ctx, of, params)
		if err != nil || res == nil {
			return res, err
		}
		wrong := checkIDs(res)
		if wrong == nil {
			wrong = check(params, res)
		}
		if wrong == nil {
			return res, nil
		}
		loggerOf(opts).WarnContext(ctx, "the result of a handler is not valid and was not sent", "method", method, "error", wrong)
		return nil, rpc.Errorf(rpc.ErrInternal, "Internal error: the result of %s is not valid: %v", method, wrong)
	}
}

// warnUnserved warns the owner of an agent that a result offers something that a client cannot choose, because the
// handler of the method for it is not set.
func warnUnserved(opts *ConnOptions, offers bool, what, method string, served bool) {
	if offers && !served {
		loggerOf(opts).Warn("the result of a handler offers what no handler serves: clients that choose one are told that the method does not exist",
			"offers", what, "method", method)
	}
}

// loggerOf is where warnings for the owner go.
func loggerOf(opts *ConnOptions) *slog.Logger {
	if opts.Logger == nil {
		return slog.Default()
	}
	return opts.Logger
}

// noExtraCheck is a check for verified, which checks ids on its own.
func noExtraCheck[P, R any](*P, *R) *flaw { return nil }

// rawID is the id of an object of a type that is not known, or "".
func rawID(raw json.RawMessage, member string) string {
	var members map[string]json.RawMessage
	var id string
	if json.Unmarshal(raw, &members) != nil || json.Unmarshal(members[member], &id) != nil {
		return ""
	}
	return id
}

// request makes the route of a request handler. The handler receives the result of of: the session that the parameters
// name, or the connection.
func request[P, R, Of any](
	m rpc.RequestMethod[P, R], of func(*P) *Of, fn func(context.Context, *Of, *P) (*R, error),
) engine.Route {
	if fn == nil {
		return handle(m, nil)
	}
	return handle(m, func(ctx context.Context, params *P) (*R, error) { return fn(ctx, of(params), params) })
}

// notification makes the route of a notification handler, as request does.
func notification[P, Of any](
	m rpc.NotificationMethod[P], of func(*P) *Of, fn func(context.Context, *Of, *P) error,
) engine.Route {
	if fn == nil {
		return engine.NotificationMethod[P](m).Handle(nil)
	}
	return engine.NotificationMethod[P](m).Handle(func(ctx context.Context, params *P) error { return fn(ctx, of(params), params) })
}

// handle makes the route of a request handler.
func handle[P, R any](m rpc.RequestMethod[P, R], fn func(context.Context, *P) (*R, error)) engine.Route {
	return engine.RequestMethod[P, R](m).Handle(fn)
}

// callThen calls a method of the peer. The reader calls then with the result, before any later message is handled.
func callThen[P, R any](
	ctx context.Context, conn *rpc.Conn, m rpc.RequestMethod[P, R], params *P, then func(*R),
) (*R, error) {
	return engine.RequestMethod[P, R](m).CallThen(ctx, (*engine.Conn)(conn), params, then)
}

// unsupported says that a call was not sent because its capability was not advertised.
func unsupported(method, capability string) error {
	return fmt.Errorf("%s: %w: capability %s", method, ErrUnsupported, capability)
}

// unsent is the error of a call that was refused here. The peer does not see it if a handler returns it, because it is
// about this side's call and not about the peer's request.
func unsent(method string, err error) error { return &engine.UnsentError{Method: method, Err: err} }

// handler is a handler's name, and whether it is set.
type handler struct {
	name string
	set  bool
}

// allOrNone reports whether the handlers of a capability are set. It is an error if only some are.
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
		return false, fmt.Errorf("acp: the handlers of the capability %s go together: %s is set, %s is not",
			capability, strings.Join(set, ", "), strings.Join(missing, ", "))
	}
	return len(set) > 0, nil
}
