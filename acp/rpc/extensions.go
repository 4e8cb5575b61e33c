// This file owns handlers of methods outside the protocol.

package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/acpgo/sdk/internal/engine"
)

// Extensions are handlers of methods outside the protocol, whose names begin with an underscore. They are given the
// connection, a *C: an AgentConn or ClientConn of package acp, or a Conn. Fill it with Handle, HandleNotification,
// HandleMethod and HandleNotificationMethod before the connection starts; one may serve any number of connections.
// The zero value is empty.
type Extensions[C any] struct {
	// Fallback, if set, serves requests that nothing else does; to refuse one it returns
	// ErrMethodNotFound.
	Fallback func(ctx context.Context, conn *C, method string, params json.RawMessage) (any, error)
	// FallbackNotification is the same for notifications.
	FallbackNotification func(ctx context.Context, conn *C, method string, params json.RawMessage) error

	handlers []func(*C) engine.Route
}

// Handle serves a request method with fn, whose parameters and result are any types that encoding/json
// can handle. If a method is handled twice, the later handler serves it. A name that does not begin with an underscore
// is an error when the connection starts, because such names are the protocol's; only Connect of this package allows
// them.
func Handle[C, P, R any](ext *Extensions[C], method string, fn func(ctx context.Context, conn *C, params *P) (*R, error)) {
	HandleMethod(ext, RequestMethod[P, R]{Name: method}, fn)
}

// HandleNotification serves a notification with fn, as Handle does a request.
func HandleNotification[C, P any](ext *Extensions[C], method string, fn func(ctx context.Context, conn *C, params *P) error) {
	HandleNotificationMethod(ext, NotificationMethod[P]{Name: method}, fn)
}

// HandleMethod is Handle for a method with types, such as generated code has.
func HandleMethod[C, P, R any](ext *Extensions[C], m RequestMethod[P, R], fn func(ctx context.Context, conn *C, params *P) (*R, error)) {
	ext.handlers = append(ext.handlers, func(conn *C) engine.Route {
		return engine.RequestMethod[P, R](m).Handle(func(ctx context.Context, params *P) (*R, error) { return fn(ctx, conn, params) })
	})
}

// HandleNotificationMethod is HandleNotification for a notification with types, such as generated code has.
func HandleNotificationMethod[C, P any](
	ext *Extensions[C], m NotificationMethod[P], fn func(ctx context.Context, conn *C, params *P) error,
) {
	ext.handlers = append(ext.handlers, func(conn *C) engine.Route {
		return engine.NotificationMethod[P](m).Handle(func(ctx context.Context, params *P) error { return fn(ctx, conn, params) })
	})
}

// Routes is for the packages of this module that serve the protocol's own methods; others cannot name its types.
func (ext *Extensions[C]) Routes(conn *C) ([]engine.Route, error) {
	if ext == nil {
		return nil, nil
	}
	for _, route := range ext.handlers {
		if name := route(conn).Method; !strings.HasPrefix(name, "_") {
			return nil, fmt.Errorf("acp: the handler of %q: the name of an extension begins with an underscore", name)
		}
	}
	return ext.bind(conn), nil
}

// bind makes the routes of one connection; a nil ext has none.
func (ext *Extensions[C]) bind(conn *C) []engine.Route {
	if ext == nil {
		return nil
	}
	var routes []engine.Route
	for _, route := range ext.handlers {
		routes = append(routes, route(conn))
	}
	if f := ext.Fallback; f != nil {
		routes = append(routes, engine.Fallback(func(ctx context.Context, method string, params json.RawMessage) (any, error) {
			return f(ctx, conn, method, params)
		}))
	}
	if f := ext.FallbackNotification; f != nil {
		routes = append(routes, engine.FallbackNotification(func(ctx context.Context, method string, params json.RawMessage) error {
			return f(ctx, conn, method, params)
		}))
	}
	return routes
}
