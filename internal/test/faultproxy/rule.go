package faultproxy

import (
	"context"
	"io"
	"net/http"
	"time"
)

// A Rule does something to requests.
type Rule struct {
	// Match reports whether the rule applies to a request; nil means all. It is called with the proxy's lock held.
	Match func(Request) bool
	// Skip is the number of matching requests that pass before the rule applies.
	Skip int
	// Times is the number of requests that the rule then applies to; 0 means all.
	Times int
	// Do is the fault.
	Do Fault

	seen int // of those that match
}

// takes says whether the rule is about a request; the proxy's lock is held.
func (r *Rule) takes(req Request) bool {
	if r.Match != nil && !r.Match(req) {
		return false
	}
	r.seen++
	return r.seen > r.Skip && (r.Times == 0 || r.seen <= r.Skip+r.Times)
}

// RPC matches the POSTs of messages with a method.
func RPC(method string) func(Request) bool {
	return func(r Request) bool { return r.RPC == method }
}

// Method matches requests by their HTTP method, except upgrades.
func Method(method string) func(Request) bool {
	return func(r Request) bool { return r.Method == method && r.Header.Get("Upgrade") == "" }
}

// Upgrade matches the requests that begin a WebSocket.
func Upgrade(r Request) bool { return r.Header.Get("Upgrade") != "" }

// Stream matches the GET of a session's stream, or with "" that of the connection's stream.
func Stream(session string) func(Request) bool {
	get := Method(http.MethodGet)
	return func(r Request) bool { return get(r) && r.Header.Get("Acp-Session-Id") == session }
}

// Responses matches the POSTs of messages without a method.
func Responses(r Request) bool { return r.Method == http.MethodPost && r.RPC == "" }

// A Fault is the effect of a rule on a request.
type Fault func(*exchange)

// Pass passes on the request and the response.
func Pass(x *exchange) { x.pass() }

// Answer answers in place of the server, which does not see the request.
func Answer(status int, header http.Header, text string) Fault {
	return func(x *exchange) { x.answer(status, header, text) }
}

// AnswerAfter passes the request on, and replaces the server's response.
func AnswerAfter(status int, text string) Fault {
	return func(x *exchange) {
		x.swallow(x.req.Context())
		x.answer(status, nil, text)
	}
}

// swallow passes the request on, and drops the response.
func (x *exchange) swallow(ctx context.Context) {
	res := x.send(ctx)
	_, err := io.Copy(io.Discard, res.Body)
	_ = res.Body.Close() // of what nobody wants
	if err != nil {
		x.abort()
	}
}

// Reset breaks the connection. The server does not see the request.
func Reset(x *exchange) { x.abort() }

// ResetAfter passes the request on, and breaks the connection after the server has answered.
func ResetAfter(x *exchange) {
	x.swallow(x.req.Context())
	x.abort()
}

// Hold passes the request on after release is closed. Tests use it to reorder requests of several connections.
func Hold(release <-chan struct{}) Fault {
	return func(x *exchange) {
		x.wait(release)
		x.pass()
	}
}

// Delay passes the request on after a time.
func Delay(d time.Duration) Fault {
	return func(x *exchange) {
		after := make(chan struct{})
		defer time.AfterFunc(d, func() { close(after) }).Stop()
		x.wait(after)
		x.pass()
	}
}

// Double passes the request on twice, one after the other, and answers with the second response.
func Double(x *exchange) {
	x.swallow(x.req.Context())
	x.pass()
}

// CutAfter breaks the connection when n bytes of the response's body have passed, or after an upgrade n bytes of what
// the server sends.
func CutAfter(n int) Fault { return bound(exchange{limit: n, then: breaks}) }

// CutWhen is like CutAfter, at an event.
func CutWhen(event <-chan struct{}) Fault {
	return bound(exchange{limit: -1, when: event, then: breaks})
}

// EndAfter ends the response cleanly when n bytes of its body have passed.
func EndAfter(n int) Fault { return bound(exchange{limit: n, then: ends}) }

// EndWhen is like EndAfter, at an event.
func EndWhen(event <-chan struct{}) Fault { return bound(exchange{limit: -1, when: event, then: ends}) }

// StallAfter stops the response after n bytes of its body, and keeps the connection open.
func StallAfter(n int) Fault { return bound(exchange{limit: n, then: stalls}) }

// IdleCut breaks the response, or the upgraded connection, when nothing of it passes for a time.
func IdleCut(d time.Duration) Fault { return bound(exchange{limit: -1, idle: d, then: breaks}) }

// bound passes the request on; the response ends as the exchange given says.
func bound(end exchange) Fault {
	return func(x *exchange) {
		x.limit, x.idle, x.when, x.then = end.limit, end.idle, end.when, end.then
		x.pass()
	}
}

// Buffer keeps the response, its header too, until release is closed.
func Buffer(release <-chan struct{}) Fault {
	return func(x *exchange) {
		x.buffer = release
		x.pass()
	}
}

// BodyLimit answers with 413 if the request's body has more than n bytes.
func BodyLimit(n int) Fault {
	return func(x *exchange) {
		if len(x.req.Body) > n {
			x.answer(http.StatusRequestEntityTooLarge, nil, "the body is too large")
			return
		}
		x.pass()
	}
}
