package otelacp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/proto"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/contrib/otelacp"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

var update = flag.Bool("update", false, "write api.txt and the traces of testdata anew")

// childVariable names what kind of process this program is to be.
const childVariable = "ACP_TEST_CHILD"

// child is the agent or the proxy of a test. It is set up as a program of its own would be: the exporter reads the
// OTEL_* environment.
func child(kind string, args []string) (err error) {
	ctx := context.Background()
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return err
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
	defer func() { err = errors.Join(err, provider.Shutdown(ctx)) }()
	hooks := otelacp.Instrument(rpc.Hooks{}, &otelacp.Options{TracerProvider: provider})
	switch kind {
	case "agent":
		handlers := agentHandlers(0)
		prompt := handlers.Prompt
		handlers.Prompt = func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			trace.SpanFromContext(ctx).AddEvent("baggage " + baggage.FromContext(ctx).String())
			return prompt(ctx, s, req)
		}
		return acp.ServeAgent(ctx, acp.Stdio(), handlers, &acp.AgentOptions{Info: agentInfo, Conn: acp.ConnOptions{Hooks: hooks}})
	case "proxy":
		return proxy(ctx, exec.Command(args[0], args[1:]...), hooks)
	}
	return fmt.Errorf("no child %q", kind)
}

// proxy stands between its client, on standard input and output, and an agent, and forwards everything, its parameters
// as they are.
func proxy(ctx context.Context, agent *exec.Cmd, hooks rpc.Hooks) error {
	agent.Stderr = os.Stderr
	agent.Env = append(os.Environ(), childVariable+"=agent", "OTEL_SERVICE_NAME=agent")
	opts := &rpc.Options{Hooks: hooks}
	up, down := make(chan *rpc.Conn, 1), make(chan *rpc.Conn, 1)
	client, err := rpc.Connect(ctx, rpc.Stdio(), forward(down), opts)
	if err != nil {
		return err
	}
	server, err := rpc.Connect(ctx, rpc.Command(agent), forward(up), opts)
	if err != nil {
		return errors.Join(err, client.Close())
	}
	up <- client
	down <- server
	return errors.Join(client.Wait(), server.Close())
}

// forward passes on what comes to the connection in other.
func forward(other chan *rpc.Conn) *rpc.Extensions[rpc.Conn] {
	to := sync.OnceValue(func() *rpc.Conn { return <-other })
	return &rpc.Extensions[rpc.Conn]{
		Fallback: func(ctx context.Context, _ *rpc.Conn, method string, params json.RawMessage) (any, error) {
			result, err := rpc.Call[json.RawMessage](ctx, to(), method, params)
			if answer, ok := errors.AsType[*rpc.CallError](err); ok {
				return nil, answer.Err
			}
			return result, err
		},
		FallbackNotification: func(ctx context.Context, _ *rpc.Conn, method string, params json.RawMessage) error {
			return rpc.Notify(ctx, to(), method, params)
		},
	}
}

// receiver is an OTLP receiver.
type receiver struct {
	mu    sync.Mutex
	spans []span
	about map[string]map[string]string // of each service, what it says of itself
	notes map[string][]string          // the events of each service's spans
}

// receive starts a receiver, and has the environment of this process and its children name it.
func receive(t *testing.T) *receiver {
	r := &receiver{about: map[string]map[string]string{}, notes: map[string][]string{}}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment=test")
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var export collector.ExportTraceServiceRequest
	body, err := io.ReadAll(req.Body)
	if err = errors.Join(err, proto.Unmarshal(body, &export)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, from := range export.ResourceSpans {
		about := map[string]string{}
		for _, a := range from.Resource.Attributes {
			about[a.Key] = a.Value.GetStringValue()
		}
		service := about["service.name"]
		r.about[service] = about
		for _, scope := range from.ScopeSpans {
			for _, s := range scope.Spans {
				one := span{
					service: service, name: s.Name, kind: trace.SpanKind(s.Kind), id: fmt.Sprintf("%x", s.SpanId), parent: fmt.Sprintf("%x", s.ParentSpanId),
					start: int64(s.StartTimeUnixNano), traceID: fmt.Sprintf("%x", s.TraceId),
				}
				for _, a := range s.Attributes {
					one.attributes = append(one.attributes, a.Key+"="+text(a.Value))
				}
				if s.Status.GetCode() != 0 {
					one.status = " ERROR " + s.Status.GetMessage()
				}
				r.spans = append(r.spans, one)
				for _, e := range s.Events {
					r.notes[service] = append(r.notes[service], e.Name)
				}
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func text(v *common.AnyValue) string {
	switch v := v.Value.(type) {
	case *common.AnyValue_StringValue:
		return v.StringValue
	case *common.AnyValue_IntValue:
		return fmt.Sprint(v.IntValue)
	case *common.AnyValue_DoubleValue:
		return fmt.Sprint(v.DoubleValue)
	case *common.AnyValue_BoolValue:
		return fmt.Sprint(v.BoolValue)
	}
	return v.String()
}

// oneTurn is a client with a turn of an agent in other processes, the command given, and what of it came to the
// receiver.
func oneTurn(t *testing.T, cmd *exec.Cmd) *receiver {
	t.Helper()
	r := receive(t)
	t.Setenv("OTEL_SERVICE_NAME", "client")
	exporter := must.Get(otlptracehttp.New(t.Context()))(t)
	about := must.Get(resource.New(t.Context(), resource.WithFromEnv()))(t) // the default is that of the first test
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	hooks := otelacp.Instrument(rpc.Hooks{}, &otelacp.Options{TracerProvider: provider})

	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.Env = append(os.Environ(), cmd.Env...)
	conn, err := acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, acp.Command(cmd), nil), clientHandlers(0), &acp.ClientOptions{
		Info: acp.Implementation{Name: "editor", Version: "1"}, Conn: acp.ConnOptions{Hooks: hooks},
	})
	if err != nil {
		t.Fatal(err, stderr.String())
	}
	session := newSession(t, conn)
	ctx, user := provider.Tracer("test").Start(t.Context(), "user")
	turn := session.Stream(withBaggage(t, ctx), acp.TextBlock("work"))
	for range turn.Updates() {
	}
	_, err = turn.Result()
	user.End()
	// The children export what they have when they end.
	if err := errors.Join(err, conn.Close(), provider.Shutdown(t.Context())); err != nil {
		t.Fatal(err, stderr.String())
	}
	if stderr.Len() > 0 {
		t.Error(stderr.String())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r
}

// inTurn are the spans of the trace that the user has begun.
func (r *receiver) inTurn(t *testing.T) []span {
	t.Helper()
	at := slices.IndexFunc(r.spans, func(s span) bool { return s.name == "user" })
	if at < 0 {
		t.Fatalf("the user's span is missing: %+v", r.spans)
	}
	return slices.DeleteFunc(slices.Clone(r.spans), func(s span) bool { return s.traceID != r.spans[at].traceID })
}

func self(kind string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = []string{childVariable + "=" + kind, "OTEL_SERVICE_NAME=" + kind}
	return cmd
}

const oneTrace = `client INTERNAL user
  client CLIENT session/prompt
    agent SERVER session/prompt
      agent CLIENT session/request_permission
        client SERVER session/request_permission
      agent CLIENT fs/read_text_file
        client SERVER fs/read_text_file
`

// Client, proxy and agent are three processes that export to the same receiver: the turn is one trace. The proxy forwards
// parameters, and _meta in them, as they are; it has spans of its own in the same trace. What the environment says to the
// exporter reaches the agent as it is.
func TestTEL3_TEL6_TEL8_Chain(t *testing.T) {
	r := oneTurn(t, self("proxy", os.Args[0]))
	golden(t, "trace.txt", tree(r.inTurn(t), false))
	for _, service := range []string{"client", "proxy", "agent"} {
		if r.about[service]["deployment"] != "test" {
			t.Errorf("%s says of itself %v", service, r.about[service])
		}
	}
	if want := []string{"baggage team=tools"}; !slices.Equal(r.notes["agent"], want) {
		t.Errorf("the agent noted %q, want %q", r.notes["agent"], want)
	}
}

// The same with a proxy that knows nothing of telemetry: the bytes that it passes on are enough.
func TestTEL6_ChainWithAPlainProxy(t *testing.T) {
	tier.Need(t, tier.Normal)
	program := filepath.Join(t.TempDir(), "proxy.exe")
	if out, err := exec.Command("go", "build", "-o", program, "github.com/acpgo/sdk/examples/proxy").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	cmd := self("agent")
	cmd.Path, cmd.Args = program, []string{program, "--", os.Args[0]}
	r := oneTurn(t, cmd)
	if diff := gocmp.Diff(oneTrace, shape(tree(r.inTurn(t), false))); diff != "" {
		t.Errorf("the trace of the turn (-want +got):\n%s", diff)
	}
}
