package otelacp

import (
	"context"
	"encoding/json"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
)

// The members of _meta that the protocol reserves for the trace context.
const (
	memberParent  = "traceparent"
	memberState   = "tracestate"
	memberBaggage = "baggage"
)

// inject adds the trace context of ctx to a call, beside the members that its caller has set. A traceparent and a
// tracestate belong together, so if the caller has set one, neither is added.
func (t *telemetry) inject(ctx context.Context, call *rpc.CallInfo) {
	if call.NoMeta {
		return
	}
	members := propagation.MapCarrier{}
	t.propagator.Inject(ctx, members)
	_, parent := call.Meta[memberParent]
	_, state := call.Meta[memberState]
	_, baggage := call.Meta[memberBaggage]
	for name, taken := range map[string]bool{memberParent: parent || state, memberState: parent || state,
		memberBaggage: baggage} {
		if value := members[name]; value != "" && !taken {
			_ = call.Meta.Set(name, value) // encoding a string cannot fail
		}
	}
}

// parent returns the context for a served call, with the span that is the parent of its own, or none.
func (c *connection) parent(ctx context.Context, call *rpc.CallInfo) context.Context {
	parent, sent := c.remote(ctx, call)
	if _, malformed := call.Meta[memberParent]; sent || malformed {
		return parent
	}
	if turn := c.turn(call.Session); turn != nil {
		return trace.ContextWithSpan(parent, turn.span)
	}
	return parent
}

// remote returns ctx with the trace context that was received with a call, and without that of the trace in which the
// connection was made. It reports whether there was any.
func (t *telemetry) remote(ctx context.Context, call *rpc.CallInfo) (parent context.Context, sent bool) {
	if len(call.Meta) > 0 {
		parent = t.propagator.Extract(trace.ContextWithSpanContext(ctx, trace.SpanContext{}), received(call.Meta))
		return parent, trace.SpanContextFromContext(parent).IsValid()
	}
	if trace.SpanContextFromContext(ctx).IsValid() {
		ctx = trace.ContextWithSpanContext(ctx, trace.SpanContext{})
	}
	return ctx, false
}

// maxMember is the longest member that is examined, in bytes: W3C allows baggage of 8192.
const maxMember = 16 << 10

// received returns the members of _meta that propagators may read.
func received(meta codec.Meta) propagation.MapCarrier {
	members := propagation.MapCarrier{}
	for _, name := range []string{memberParent, memberState, memberBaggage} {
		var value string
		if raw := meta[name]; len(raw) <= maxMember && json.Unmarshal(raw, &value) == nil && value != "" {
			members[name] = value
		}
	}
	return members
}
