package otelacp

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/acpgo/sdk/acp/rpc"
)

// Values of attributes of metrics; any other value becomes _OTHER, so that a peer cannot invent an unlimited number.
var (
	stopReasons = []string{"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"}
	outcomes    = []string{"selected", "cancelled"}
)

// knownOr returns value if it is one of values, and otherwise _OTHER.
func knownOr(values []string, value string) string {
	if slices.Contains(values, value) {
		return value
	}
	return "_OTHER"
}

// metrics holds the instruments.
type metrics struct {
	turns, firstUpdates, permissions metric.Float64Histogram
	updates, repairs                 metric.Int64Counter
	used, size                       metric.Int64Histogram
	cost                             metric.Float64Counter

	byKind [roles][]metric.MeasurementOption // of updates
	byRole [roles]metric.MeasurementOption

	meter metric.Meter
	queue metric.Int64ObservableUpDownCounter

	joining    sync.Mutex // not held by observe, which the MeterProvider calls with its own locks held
	registered metric.Registration
	mu         sync.Mutex
	conns      map[*rpc.Conn]struct{}
}

// The bucket boundaries of histograms: a turn may take an hour, and a context may have millions of tokens.
var (
	seconds = metric.WithExplicitBucketBoundaries(.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900,
		3600)
	tokens = metric.WithExplicitBucketBoundaries(1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6)
)

func newMetrics(meter metric.Meter) *metrics {
	m := &metrics{
		meter: meter,
		turns: made(meter.Float64Histogram("acp.turn.duration", metric.WithUnit("s"),
			metric.WithDescription("How long turns take."), seconds)),
		firstUpdates: made(meter.Float64Histogram("acp.turn.time_to_first_update", metric.WithUnit("s"),
			metric.WithDescription("Time from the prompt to the first update of its turn."), seconds)),
		permissions: made(meter.Float64Histogram("acp.permission.wait", metric.WithUnit("s"),
			metric.WithDescription("Time from a permission request to its answer."), seconds)),
		updates: made(meter.Int64Counter("acp.updates", metric.WithUnit("{update}"),
			metric.WithDescription("Updates of sessions that were sent or received."))),
		repairs: made(meter.Int64Counter("acp.repairs", metric.WithUnit("{repair}"),
			metric.WithDescription("What was wrong in messages and dropped, replaced or kept all the same."))),
		queue: made(meter.Int64ObservableUpDownCounter("acp.queue.size", metric.WithUnit("By"),
			metric.WithDescription("What waits in connections."))),
		used: made(meter.Int64Histogram("acp.context.used", metric.WithUnit("{token}"),
			metric.WithDescription("Tokens in the context, as agents report it."), tokens)),
		size: made(meter.Int64Histogram("acp.context.size", metric.WithUnit("{token}"),
			metric.WithDescription("Tokens that the context can hold, as agents report it."), tokens)),
		cost: made(meter.Float64Counter("acp.cost", metric.WithUnit("{unit}"),
			metric.WithDescription("Growth of the cost of sessions, as agents report it."))),
		conns: map[*rpc.Conn]struct{}{},
	}
	for r := range roles {
		m.byRole[r] = metric.WithAttributeSet(attribute.NewSet(r.attribute()))
		for _, kind := range updateKinds {
			set := attribute.NewSet(r.attribute(), attribute.String("acp.update.kind", kind.name))
			m.byKind[r] = append(m.byKind[r], metric.WithAttributeSet(set))
		}
	}
	return m
}

// made returns an instrument; if it was refused, that is reported, and the instrument does nothing.
func made[T any](instrument T, err error) T {
	if err != nil {
		otel.Handle(err)
	}
	return instrument
}

func (r role) attribute() attribute.KeyValue { return attribute.String("acp.role", r.String()) }

// turn records a turn that has ended.
func (m *metrics) turn(r role, took, first time.Duration, stop, failure string) {
	if first > 0 {
		m.firstUpdates.Record(context.Background(), first.Seconds(), m.byRole[r])
	}
	attrs := []attribute.KeyValue{r.attribute()}
	if stop != "" {
		attrs = append(attrs, attribute.String("acp.stop_reason", knownOr(stopReasons, stop)))
	}
	m.turns.Record(context.Background(), took.Seconds(), metric.WithAttributes(failed(attrs, failure)...))
}

// permission records a question that was answered or has failed.
func (m *metrics) permission(r role, wait time.Duration, outcome, failure string) {
	attrs := []attribute.KeyValue{r.attribute()}
	if outcome != "" {
		attrs = append(attrs, attribute.String("acp.permission.outcome", outcome))
	}
	m.permissions.Record(context.Background(), wait.Seconds(), metric.WithAttributes(failed(attrs, failure)...))
}

func failed(attrs []attribute.KeyValue, failure string) []attribute.KeyValue {
	if failure != "" {
		attrs = append(attrs, attribute.String("error.type", failure))
	}
	return attrs
}

func (m *metrics) update(ctx context.Context, r role, kind kindOfUpdate) {
	m.updates.Add(ctx, 1, m.byKind[r][kind])
}

func (m *metrics) repaired(method string) {
	m.repairs.Add(context.Background(), 1, metric.WithAttributes(attribute.String("rpc.method", clipped(method))))
}

// usage records the values of a usage_update, and by how much the cost of its session has grown.
func (m *metrics) usage(ctx context.Context, r role, said *usage, spent float64, currency string) {
	m.used.Record(ctx, said.Used, m.byRole[r])
	m.size.Record(ctx, said.Size, m.byRole[r])
	if spent > 0 {
		m.cost.Add(ctx, spent, metric.WithAttributes(r.attribute(), attribute.String("acp.currency", currencyCode(currency))))
	}
}

// currencyCode returns s if it has the form of ISO 4217, which leaves a peer few choices.
func currencyCode(s string) string {
	if len(s) != 3 {
		return "_OTHER"
	}
	for _, c := range []byte(s) {
		if c < 'A' || c > 'Z' {
			return "_OTHER"
		}
	}
	return s
}

var byQueue = []metric.MeasurementOption{
	metric.WithAttributes(attribute.String("acp.queue.kind", "requests")),
	metric.WithAttributes(attribute.String("acp.queue.kind", "notifications")),
	metric.WithAttributes(attribute.String("acp.queue.kind", "loops")),
}

// watch observes the queues of a connection until leave is called. While there is no connection, nothing is registered
// with the MeterProvider.
func (m *metrics) watch(conn *rpc.Conn) (leave func()) {
	m.joining.Lock()
	defer m.joining.Unlock()
	if m.change(conn, true) == 1 {
		m.registered = made(m.meter.RegisterCallback(m.observe, m.queue))
	}
	return func() {
		m.joining.Lock()
		defer m.joining.Unlock()
		if m.change(conn, false) > 0 || m.registered == nil {
			return
		}
		if err := m.registered.Unregister(); err != nil {
			otel.Handle(err)
		}
	}
}

// change adds or removes a connection, and returns how many there then are.
func (m *metrics) change(conn *rpc.Conn, add bool) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if add {
		m.conns[conn] = struct{}{}
	} else {
		delete(m.conns, conn)
	}
	return len(m.conns)
}

func (m *metrics) observe(_ context.Context, o metric.Observer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all rpc.Load
	for conn := range m.conns {
		load := conn.Load()
		all.Requests += load.Requests
		all.Queued += load.Queued
		all.Loops += load.Loops
	}
	for i, bytes := range []int{all.Requests, all.Queued, all.Loops} {
		o.ObserveInt64(m.queue, int64(bytes), byQueue[i])
	}
	return nil
}
