package otelacp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/trace"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

var update = flag.Bool("update", false, "write api.txt and the traces of testdata anew")

// childVariable names what kind of process this program is to be.
const childVariable = "ACP_TEST_CHILD"

// spansVariable names the directory into which children write their spans.
const spansVariable = "ACP_TEST_SPANS"

// child is the agent or the proxy of a test, set up as a program of its own would be.
func child(kind string, args []string) (err error) {
	ctx, o := context.Background(), newObserver()
	defer func() {
		text, failed := json.Marshal(o.shown(kind))
		err = errors.Join(err, failed, os.WriteFile(filepath.Join(os.Getenv(spansVariable), kind+".json"), text, 0o600))
	}()
	hooks := o.hooks()
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

// collect has children write their spans, which read returns when they have ended.
func collect(t *testing.T) (read func() []span) {
	dir := t.TempDir()
	t.Setenv(spansVariable, dir)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment=test")
	return func() (all []span) {
		for _, file := range must.Get(filepath.Glob(filepath.Join(dir, "*.json")))(t) {
			var some []span
			must.Do(t, json.Unmarshal(must.Get(os.ReadFile(file))(t), &some))
			all = append(all, some...)
		}
		return all
	}
}

// oneTurn is a client with a turn of an agent in other processes, the command given. It returns the spans of the trace
// that the user has begun.
func oneTurn(t *testing.T, cmd *exec.Cmd) []span {
	t.Helper()
	read, o := collect(t), newObserver()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.Env = append(os.Environ(), cmd.Env...)
	conn, err := acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, acp.Command(cmd), nil), clientHandlers(0), &acp.ClientOptions{
		Info: acp.Implementation{Name: "editor", Version: "1"}, Conn: acp.ConnOptions{Hooks: o.hooks()},
	})
	if err != nil {
		t.Fatal(err, stderr.String())
	}
	session := newSession(t, conn)
	ctx, user := o.tracer.Tracer("test").Start(t.Context(), "user")
	turn := session.Stream(withBaggage(t, ctx), acp.TextBlock("work"))
	for range turn.Updates() {
	}
	_, err = turn.Result()
	user.End()
	if err := errors.Join(err, conn.Close()); err != nil { // the children have ended
		t.Fatal(err, stderr.String())
	}
	if stderr.Len() > 0 {
		t.Error(stderr.String())
	}
	trace := user.SpanContext().TraceID().String()
	return slices.DeleteFunc(append(o.shown("client"), read()...), func(s span) bool { return s.TraceID != trace })
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

// Client, proxy and agent are three processes: the turn is one trace. The proxy forwards parameters, and _meta in them,
// as they are; it has spans of its own in the same trace. What the environment says to OpenTelemetry reaches the agent as
// it is.
func TestTEL3_TEL6_TEL8_Chain(t *testing.T) {
	spans := oneTurn(t, self("proxy", os.Args[0]))
	golden(t, "trace.txt", tree(spans, false))
	var noted []string
	for _, s := range spans {
		if want := "deployment=test,service.name=" + s.Service; s.Service != "client" && !strings.HasPrefix(s.About, want) {
			t.Errorf("%s says of itself %s", s.Service, s.About)
		}
		if s.Service == "agent" {
			noted = append(noted, s.Events...)
		}
	}
	if want := []string{"baggage team=tools"}; !slices.Equal(noted, want) {
		t.Errorf("the agent noted %q, want %q", noted, want)
	}
}

// The same with a proxy that knows nothing of telemetry: the bytes that it passes on are enough.
func TestTEL6_ChainWithAPlainProxy(t *testing.T) {
	tier.Need(t, tier.Normal)
	program := buildtest.Program(t, "github.com/acpgo/sdk/examples/proxy")
	cmd := self("agent")
	cmd.Path, cmd.Args = program, []string{program, "--", os.Args[0]}
	if diff := gocmp.Diff(oneTrace, shape(tree(oneTurn(t, cmd), false))); diff != "" {
		t.Errorf("the trace of the turn (-want +got):\n%s", diff)
	}
}
