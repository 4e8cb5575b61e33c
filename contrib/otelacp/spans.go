package otelacp

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
)

// The methods that are treated specially.
const (
	methodInitialize = "initialize"
	methodPrompt     = "session/prompt"
	methodUpdate     = "session/update"
	methodPermission = "session/request_permission"
	methodNew        = "session/new"
	methodFork       = "session/fork"
	methodLoad       = "session/load"
	methodResume     = "session/resume"
	methodClose      = "session/close"
	methodDelete     = "session/delete"
	methodSuccessor  = "proxy/successor"
)

var (
	rpcSystem    = attribute.String("rpc.system", "jsonrpc")
	wasCancelled = attribute.Bool("acp.cancelled", true)
)

// next continues a call.
type next = func(context.Context) error

// around wraps inner, which may be nil, in outer.
func around(outer, inner rpc.Middleware) rpc.Middleware {
	if inner == nil {
		return outer
	}
	return func(ctx context.Context, call *rpc.CallInfo, next next) error {
		return outer(ctx, call, func(ctx context.Context) error { return inner(ctx, call, next) })
	}
}

// serve is the middleware for calls that this side serves.
func (c *connection) serve(ctx context.Context, call *rpc.CallInfo, next next) error {
	switch {
	case isUpdate(call):
		turn := c.update(ctx, call)
		if parent, sent := c.remote(ctx, call); sent {
			ctx = parent
		} else if turn != nil {
			ctx = trace.ContextWithSpan(ctx, turn.span)
		}
		return next(ctx)
	case isEnvelopeOfUpdate(call):
		return next(ctx)
	}
	return c.span(c.parent(ctx, call), call, trace.SpanKindServer, next)
}

// call is the middleware of calls to the other side.
func (c *connection) call(ctx context.Context, call *rpc.CallInfo, next next) error {
	switch {
	case isUpdate(call):
		err := next(ctx)
		if err == nil {
			c.update(ctx, call)
		}
		return err
	case isEnvelopeOfUpdate(call):
		return next(ctx)
	}
	return c.span(ctx, call, trace.SpanKindClient, next)
}

func conversation(session string) attribute.KeyValue {
	return attribute.String("gen_ai.conversation.id", clipped(session))
}

func isUpdate(call *rpc.CallInfo) bool { return call.Notification && call.Method == methodUpdate }

// isEnvelopeOfUpdate reports whether a proxy forwards an update; such calls are as frequent as updates.
func isEnvelopeOfUpdate(call *rpc.CallInfo) bool {
	if !call.Notification || call.Method != methodSuccessor {
		return false
	}
	l := lookAt(call.Params, "method")
	if l == nil {
		return false
	}
	defer l.release()
	return l.decoder.Kind() == '"' && l.decoder.Str() == methodUpdate
}

// errNoReturn is the error of a handler that has ended its goroutine.
var errNoReturn = errors.New("the call did not return")

// span starts the span of a call; ctx has its parent.
func (c *connection) span(ctx context.Context, call *rpc.CallInfo, kind trace.SpanKind, next next) error {
	name := clipped(call.Method)
	attrs := append(make([]attribute.KeyValue, 0, 4), rpcSystem, attribute.String("rpc.method", name))
	if call.Session != "" {
		attrs = append(attrs, conversation(call.Session))
	}
	start := time.Now()
	spanned, span := c.tracer.Start(ctx, name, trace.WithTimestamp(start), trace.WithSpanKind(kind),
		trace.WithAttributes(attrs...))
	if !call.Incoming {
		c.inject(spanned, call)
	}
	err := errNoReturn
	ended := c.follow(call, span, start)
	defer func() {
		failure := c.conclude(ctx, call, span, err)
		ended(err == nil, failure)
		span.End()
	}()
	err = next(spanned)
	return err
}

// conclude records in the span how the call ended, and returns the type of its failure, or "".
func (c *connection) conclude(ctx context.Context, call *rpc.CallInfo, span trace.Span, err error) (failure string) {
	if !call.Notification && !call.ID.IsNull() {
		span.SetAttributes(attribute.String("jsonrpc.request.id", clipped(idText(call.ID))))
	}
	switch {
	case err == nil:
		return ""
	case cancelled(ctx, err):
		span.SetAttributes(wasCancelled)
		return ""
	}
	failure = failureType(err)
	description := ""
	if e, ok := errors.AsType[*rpc.Error](err); ok {
		failure = strconv.Itoa(int(e.Code))
		span.SetAttributes(attribute.String("rpc.response.status_code", failure))
		description = e.Code.Error()
	}
	if c.messages {
		description = cut(err.Error(), 1<<10)
	}
	span.SetAttributes(attribute.String("error.type", failure))
	span.SetStatus(codes.Error, description)
	return failure
}

// cancelled reports whether a call with ctx failed because it was cancelled.
func cancelled(ctx context.Context, err error) bool {
	if errors.Is(err, rpc.ErrClosed) {
		return false
	}
	return errors.Is(err, rpc.ErrRequestCancelled) || errors.Is(err, rpc.ErrTurnCancelled) ||
		errors.Is(err, context.Canceled) ||
		errors.Is(ctx.Err(), context.Canceled) && errors.Is(err, context.Cause(ctx))
}

// failureType returns the type of an error that is not a peer's answer.
func failureType(err error) string {
	if _, ok := errors.AsType[*codec.Error](err); ok {
		return "invalid"
	}
	switch {
	case errors.Is(err, rpc.ErrClosed):
		return "closed"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, rpc.ErrOverflow):
		return "overflow"
	case errors.Is(err, rpc.ErrUnsupported):
		return "unsupported"
	}
	return "_OTHER"
}

func idText(id rpc.ID) string {
	if s, ok := id.Str(); ok {
		return s
	}
	return id.String()
}

// resultAs reads members of the result of a call.
func resultAs[T any](call *rpc.CallInfo) (members T) {
	if raw, err := json.Marshal(call.Result); err == nil {
		// A result of another form has none of the members.
		_ = json.Unmarshal(raw, &members)
	}
	return members
}

// clipped returns text of a peer in a form for attributes.
func clipped(s string) string { return cut(s, 128) }

func cut(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "")
}
