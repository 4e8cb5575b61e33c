package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/acpgo/sdk/internal/engine"
)

// Extensions holds handlers for methods outside the protocol, whose names begin with an underscore. They receive the
// connection, a *C: an AgentConn or ClientConn of package acp, or a Conn. Fill it with Handle, HandleNotification,
// HandleMethod and HandleNotificationMethod, and store a pointer to it in AgentHandlers.Extensions or
// ClientHandlers.Extensions of package acp, before the connection starts. One Extensions may serve any number of
// connections. The zero value is empty.
type Extensions[C any] struct {
	// Fallback, if set, serves requests that no other handler serves; it returns ErrMethodNotFound to refuse one.
	Fallback func(ctx context.Context, conn *C, method string, params json.RawMessage) (any, error)
	// FallbackNotification is the same for notifications.
	FallbackNotification func(ctx context.Context, conn *C, method string, params json.RawMessage) error

	handlers []extension[C]
}

// extension is a handler and the function that makes its route for a connection; the function is nil if the handler is
// nil.
type extension[C any] struct {
	method string
	route  func(*C) engine.Route
}

// Handle serves a request method with fn, whose parameters and result are any types that encoding/json can handle. If a
// method is handled twice, the later handler serves it.
//
// Two mistakes are errors when the connection starts: a nil fn, and a name that does not begin with an underscore. Such
// names belong to the protocol; only Connect of this package allows them.
func Handle[C, P, R any](ext *Extensions[C], method string,
	fn func(ctx context.Context, conn *C, params *P) (*R, error)) {
	HandleMethod(ext, RequestMethod[P, R]{Name: method}, fn)
}

// HandleNotification serves a notification with fn, like Handle.
func HandleNotification[C, P any](ext *Extensions[C], method string,
	fn func(ctx context.Context, conn *C, params *P) error) {
	HandleNotificationMethod(ext, NotificationMethod[P]{Name: method}, fn)
}

// HandleMethod is Handle for a typed method, such as those of generated code.
func HandleMethod[C, P, R any](ext *Extensions[C], m RequestMethod[P, R],
	fn func(ctx context.Context, conn *C, params *P) (*R, error)) {
	handler := extension[C]{method: m.Name}
	if fn != nil {
		handler.route = func(conn *C) engine.Route {
			return engine.HandleRequest(m.Name, m.NullResult,
				func(ctx context.Context, params *P) (*R, error) { return fn(ctx, conn, params) })
		}
	}
	ext.handlers = append(ext.handlers, handler)
}

// HandleNotificationMethod is HandleNotification for a typed notification, such as those of generated code.
func HandleNotificationMethod[C, P any](
	ext *Extensions[C], m NotificationMethod[P], fn func(ctx context.Context, conn *C, params *P) error,
) {
	handler := extension[C]{method: m.Name}
	if fn != nil {
		handler.route = func(conn *C) engine.Route {
			return engine.HandleNotification(m.Name, func(ctx context.Context, params *P) error { return fn(ctx, conn, params) })
		}
	}
	ext.handlers = append(ext.handlers, handler)
}

// A router is an *Extensions[C] for any C.
type router interface {
	routes(conn any) ([]engine.Route, error)
}

// routes is bind for connections that also serve the protocol's own methods: the names must begin with an underscore.
// conn is a *C.
func (ext *Extensions[C]) routes(conn any) ([]engine.Route, error) {
	if ext == nil {
		return nil, nil
	}
	for _, handler := range ext.handlers {
		if !strings.HasPrefix(handler.method, "_") {
			return nil, fmt.Errorf("acp: the handler of %q: the name of an extension begins with an underscore", handler.method)
		}
	}
	return ext.bind(conn.(*C))
}

// bind returns the routes for one connection; a nil ext has none.
func (ext *Extensions[C]) bind(conn *C) ([]engine.Route, error) {
	if ext == nil {
		return nil, nil
	}
	var routes []engine.Route
	for _, handler := range ext.handlers {
		if handler.route == nil {
			return nil, fmt.Errorf("acp: the handler of %q is nil", handler.method)
		}
		routes = append(routes, handler.route(conn))
	}
	if f := ext.Fallback; f != nil {
		routes = append(routes, engine.Fallback(func(ctx context.Context, method string, params json.RawMessage) (any,
			error) {
			return f(ctx, conn, method, params)
		}))
	}
	if f := ext.FallbackNotification; f != nil {
		routes = append(routes, engine.FallbackNotification(func(ctx context.Context, method string,
			params json.RawMessage) error {
			return f(ctx, conn, method, params)
		}))
	}
	return routes, nil
}
