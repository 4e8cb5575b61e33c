package otelacp_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/contrib/otelacp"
	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/must"
)

func TestMain(m *testing.M) {
	if kind := os.Getenv(childVariable); kind != "" {
		if err := child(kind, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, kind+":", err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		installed.Remove()
		buildtest.Remove()
		os.Exit(code)
	}))
}

// observer collects the telemetry of one side.
type observer struct {
	spans  *tracetest.InMemoryExporter
	tracer *sdktrace.TracerProvider
	reader *sdkmetric.ManualReader
	meter  *sdkmetric.MeterProvider
}

func newObserver() *observer {
	o := &observer{spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	o.tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(o.spans))
	o.meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(o.reader))
	return o
}

func (o *observer) options() *otelacp.Options {
	return &otelacp.Options{TracerProvider: o.tracer, MeterProvider: o.meter}
}

func (o *observer) hooks() rpc.Hooks { return otelacp.Instrument(rpc.Hooks{}, o.options()) }

// find returns the only span with a name.
func (o *observer) find(t *testing.T, name string) tracetest.SpanStub {
	t.Helper()
	var found []tracetest.SpanStub
	for _, s := range o.spans.GetSpans() {
		if s.Name == name {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d spans %s", len(found), name)
	}
	return found[0]
}

// attr is an attribute of a span as text, or "".
func attr(s tracetest.SpanStub, key string) string {
	for _, a := range s.Attributes {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

// measured are the metrics of one side as text: for each instrument and set of attributes the sum, or of a histogram
// the count and the sum.
func (o *observer) measured(t *testing.T) map[string]string {
	t.Helper()
	var all metricdata.ResourceMetrics
	must.Do(t, o.reader.Collect(context.Background(), &all))
	found := map[string]string{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				sums(found, m, data)
			case metricdata.Sum[float64]:
				sums(found, m, data)
			case metricdata.Histogram[int64]:
				histograms(found, m, data)
			case metricdata.Histogram[float64]:
				histograms(found, m, data)
			default:
				t.Errorf("%s is a %T", m.Name, data)
			}
		}
	}
	return found
}

func note(found map[string]string, m metricdata.Metrics, attrs attribute.Set, value ...any) {
	found[m.Name+" "+attrs.Encoded(attribute.DefaultEncoder())] = fmt.Sprint(value...) + " " + m.Unit
}

func sums[N int64 | float64](found map[string]string, m metricdata.Metrics, data metricdata.Sum[N]) {
	for _, p := range data.DataPoints {
		note(found, m, p.Attributes, p.Value)
	}
}

func histograms[N int64 | float64](found map[string]string, m metricdata.Metrics, data metricdata.Histogram[N]) {
	for _, p := range data.DataPoints {
		note(found, m, p.Attributes, fmt.Sprint(p.Count)+": ", p.Sum)
	}
}

// secret is in everything that must not reach telemetry: prompts, answers, paths, tool input, errors.
const secret = "hunter2"

// agentHandlers are those of an agent that takes its time as it is told to: it thinks, speaks, asks, and reads a file.
// The first word of a prompt says how the turn ends.
func agentHandlers(pause time.Duration) acp.AgentHandlers {
	return acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: "s1"}, nil
		},
		LoadSession: func(ctx context.Context, s *acp.AgentSession, _ *acp.LoadSessionRequest) (*acp.LoadSessionResponse, error) {
			return &acp.LoadSessionResponse{}, s.Update(ctx, costUpdate(5))
		},
		Prompt: func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			text := req.Prompt[0].Text()
			switch strings.Fields(text)[0] {
			case "fail":
				return nil, fmt.Errorf("no model for %s", secret)
			case "login":
				return nil, acp.ErrAuthRequired
			case "wait":
				if err := s.Update(ctx, acp.AgentMessageText("waiting")); err != nil {
					return nil, err
				}
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}
			return work(ctx, s, pause)
		},
	}
}

func costUpdate(amount float64) acp.SessionUpdate {
	return acp.NewSessionUpdateUsageUpdate(acp.UsageUpdate{Used: 1200, Size: 200_000, Cost: acp.Some(acp.Cost{Amount: amount, Currency: "USD"})})
}

// work is a turn.
func work(ctx context.Context, s *acp.AgentSession, pause time.Duration) (*acp.PromptResponse, error) {
	update := func(u acp.SessionUpdate) error { return s.Update(ctx, u) }
	time.Sleep(pause)
	err := update(acp.NewSessionUpdatePlan(acp.Plan{Entries: []acp.PlanEntry{}}))
	time.Sleep(pause)
	err = errors.Join(err,
		update(acp.AgentThoughtText(secret)),
		update(acp.AgentMessageText(secret)),
		update(acp.AgentMessageText(secret)),
		update(acp.StartToolCall("c1", "edit "+secret)),
	)
	if err != nil {
		return nil, err
	}
	chosen, err := s.RequestPermission(ctx, acp.ToolCallRef("c1"), acp.PermissionOption{OptionID: "yes", Name: "Yes", Kind: acp.PermissionOptionKindAllowOnce})
	if err != nil {
		return nil, err
	}
	if _, ok := chosen.Selected(); !ok {
		return nil, errors.New("not allowed")
	}
	if _, err := s.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: "/" + secret}); err != nil {
		return nil, err
	}
	return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, update(costUpdate(7))
}

// clientHandlers are those of a client that takes its time to allow everything.
func clientHandlers(pause time.Duration) acp.ClientHandlers {
	return acp.ClientHandlers{
		RequestPermission: func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			time.Sleep(pause)
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected("yes")}, nil
		},
		ReadTextFile: func(context.Context, *acp.ClientSession, *acp.ReadTextFileRequest) (*acp.ReadTextFileResponse, error) {
			return &acp.ReadTextFileResponse{Content: secret}, nil
		},
	}
}

var agentInfo = acp.Implementation{Name: "parrot", Version: "1.2"}

// connect connects a client with an agent, under the tap. The connections end with the test, or with stop.
func connect(t *testing.T, agent acp.AgentHandlers, agentHooks rpc.Hooks, client acp.ClientHandlers, clientHooks rpc.Hooks) (conn *acp.ClientConn, stop func()) {
	t.Helper()
	near, far := acp.Pipe()
	served := must.Get(acp.StartAgent(t.Context(), conformance.Tap(t, conformance.Agent, far, nil), agent, &acp.AgentOptions{
		Info: agentInfo, Conn: acp.ConnOptions{Hooks: agentHooks, Logger: slog.New(slog.DiscardHandler)},
	}))(t)
	conn = must.Get(acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, near, nil), client, &acp.ClientOptions{
		Info: acp.Implementation{Name: "editor", Version: "1"},
		Conn: acp.ConnOptions{Hooks: clientHooks},
	}))(t)
	stop = sync.OnceFunc(func() {
		if err := errors.Join(conn.Close(), served.Wait()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return conn, stop
}

// newSession opens a session.
func newSession(t *testing.T, conn *acp.ClientConn) *acp.ClientSession {
	t.Helper()
	return must.Get(conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/" + secret}))(t)
}

// pair is a client with a session of an agent, and the telemetry of both.
type pair struct {
	*acp.ClientConn
	session           *acp.ClientSession
	stop              func()
	ofClient, ofAgent *observer
}

// observed connects a pair. It may change the options of the client's telemetry, or hooks.
func observed(t *testing.T, agent acp.AgentHandlers, client acp.ClientHandlers, change func(*otelacp.Options, *rpc.Hooks)) *pair {
	t.Helper()
	p := &pair{ofClient: newObserver(), ofAgent: newObserver()}
	opts, hooks := p.ofClient.options(), rpc.Hooks{}
	if change != nil {
		change(opts, &hooks)
	}
	p.ClientConn, p.stop = connect(t, agent, p.ofAgent.hooks(), client, otelacp.Instrument(hooks, opts))
	p.session = newSession(t, p.ClientConn)
	return p
}

func (p *pair) sides() map[string]*observer {
	return map[string]*observer{"client": p.ofClient, "agent": p.ofAgent}
}

// reset forgets the spans.
func (p *pair) reset() {
	p.ofAgent.spans.Reset()
	p.ofClient.spans.Reset()
}

// prompt has a turn.
func (p *pair) prompt(ctx context.Context, text string) error {
	_, err := p.session.Prompt(ctx, acp.TextBlock(text))
	return err
}

// span is what of a span is shown, or checked.
type span struct {
	Service, Name string
	Kind          trace.SpanKind
	ID, Parent    string
	TraceID       string
	Start         int64
	Attributes    []string
	Status        string
	Events        []string
	About         string // what the process says of itself
}

// tree draws spans as a tree, with attributes of times or without. Each root is a trace.
func tree(spans []span, times bool) string {
	var out strings.Builder
	children := map[string][]span{}
	ids := map[string]bool{}
	for _, s := range spans {
		ids[s.ID] = true
	}
	for _, s := range spans {
		if !ids[s.Parent] {
			s.Parent = ""
		}
		children[s.Parent] = append(children[s.Parent], s)
	}
	var draw func(parent, indent string)
	draw = func(parent, indent string) {
		siblings := children[parent]
		slices.SortStableFunc(siblings, func(a, b span) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Name, b.Name)) })
		for _, s := range siblings {
			fmt.Fprintf(&out, "%s%s %s %s%s\n", indent, s.Service, strings.ToUpper(s.Kind.String()), s.Name, s.Status)
			slices.Sort(s.Attributes)
			for _, a := range s.Attributes {
				key, value, _ := strings.Cut(a, "=")
				switch {
				case strings.HasPrefix(key, "acp.time_to_") && !times:
					value = "…"
				case key == "rpc.system" && value == "jsonrpc", key == "rpc.method" && value == s.Name:
					continue
				}
				fmt.Fprintf(&out, "%s    %s=%s\n", indent, key, value)
			}
			draw(s.ID, indent+"  ")
		}
	}
	draw("", "")
	return out.String()
}

// golden compares a tree with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		must.Do(t, os.WriteFile(file, []byte(got), 0o644))
	}
	if diff := gocmp.Diff(strings.Split(string(must.Get(os.ReadFile(file))(t)), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s is another trace; go test -update writes it (-old +new):\n%s", file, diff)
	}
}

// shape is a tree without attributes.
func shape(tree string) string {
	return regexp.MustCompile("(?m)^.*=.*\n").ReplaceAllString(tree, "")
}

// shown are the spans that an observer has collected, as tree takes them.
func (o *observer) shown(service string) []span {
	var all []span
	for _, s := range o.spans.GetSpans() {
		one := span{
			Service: service, Name: s.Name, Kind: s.SpanKind, ID: s.SpanContext.SpanID().String(), Parent: s.Parent.SpanID().String(),
			TraceID: s.SpanContext.TraceID().String(), Start: s.StartTime.UnixNano(), About: s.Resource.String(),
		}
		for _, a := range s.Attributes {
			one.Attributes = append(one.Attributes, string(a.Key)+"="+a.Value.String())
		}
		if s.Status.Code.String() == "Error" {
			one.Status = strings.TrimSuffix(" ERROR "+s.Status.Description, " ")
		}
		for _, e := range s.Events {
			one.Events = append(one.Events, e.Name)
		}
		all = append(all, one)
	}
	return all
}
