package otelacp

import (
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
)

// scope is the name of the instrumentation.
const scope = "github.com/acpgo/sdk/contrib/otelacp"

// Options configures telemetry. A nil *Options, and the zero value of each field, mean the defaults.
type Options struct {
	// TracerProvider creates the spans. Nil means that of otel.GetTracerProvider.
	TracerProvider trace.TracerProvider
	// MeterProvider receives the metrics. Nil means that of otel.GetMeterProvider.
	MeterProvider metric.MeterProvider
	// Propagator writes and reads the trace context. Nil means W3C trace context and baggage, whatever
	// otel.SetTextMapPropagator has set; propagation.TraceContext{} alone keeps baggage from the other side. Only the
	// members traceparent, tracestate and baggage are used, because the protocol reserves other names in _meta.
	Propagator propagation.TextMapPropagator
	// ErrorMessages includes the texts of errors, at most 1 KiB, in the status of spans. They may name files, or repeat
	// text of the user.
	ErrorMessages bool
}

// Instrument returns hooks that produce spans and metrics for connections, and also call the given hooks. They may
// serve any number of connections, of agents and clients, in sequence or concurrently; the state of a connection is
// released when it ends. A program that passes messages on without an rpc.Conn calls Start with nil. Instrument cannot
// fail: an instrument that the MeterProvider refuses is reported to otel.Handle, and records nothing.
func Instrument(hooks rpc.Hooks, opts *Options) rpc.Hooks {
	if opts == nil {
		opts = &Options{}
	}
	t := &telemetry{propagator: opts.Propagator, messages: opts.ErrorMessages}
	tracers, meters := opts.TracerProvider, opts.MeterProvider
	if tracers == nil {
		tracers = otel.GetTracerProvider()
	}
	if meters == nil {
		meters = otel.GetMeterProvider()
	}
	if t.propagator == nil {
		t.propagator = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	}
	t.tracer = tracers.Tracer(scope)
	t.metrics = newMetrics(meters.Meter(scope))
	start := hooks.Start
	hooks.Start = func(conn *rpc.Conn, hooks rpc.Hooks) rpc.Hooks {
		if start != nil {
			hooks = start(conn, hooks)
		}
		return t.connect(conn, hooks)
	}
	return hooks
}

// telemetry is shared by the connections of one Instrument.
type telemetry struct {
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
	messages   bool
	metrics    *metrics
}

// connection is the state of one connection.
type connection struct {
	*telemetry
	agent atomic.Pointer[[]attribute.KeyValue] // the agent's name and version, after initialize

	mu    sync.Mutex
	turns map[string][]*turn  // turns in progress, oldest first, by session
	costs map[string]*expense // by session, for those that were opened on this connection
}

// connect wraps the hooks of one connection.
func (t *telemetry) connect(conn *rpc.Conn, hooks rpc.Hooks) rpc.Hooks {
	c := &connection{telemetry: t, turns: map[string][]*turn{}, costs: map[string]*expense{}}
	serve, call, repair, end := hooks.Serve, hooks.Call, hooks.Repair, hooks.End
	hooks.Serve, hooks.Call = around(c.serve, serve), around(c.call, call)
	hooks.Repair = func(method string, r codec.Repair) {
		t.metrics.repaired(method)
		if repair != nil {
			repair(method, r)
		}
	}
	leave := func() {}
	if conn != nil {
		leave = t.metrics.watch(conn)
	}
	hooks.End = func() {
		leave()
		if end != nil {
			end()
		}
	}
	return hooks
}
