package otelacp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/npmtest"
	"github.com/acpgo/sdk/internal/test/tier"
)

// interop is where the version of the SDK is pinned.
var interop = filepath.Join("..", "..", "conformance", "interop")

// installed is a folder with the TypeScript programs and the SDK beside them.
var installed = npmtest.Folder{Files: []string{
	"testdata/*.mjs", filepath.Join(interop, "package.json"), filepath.Join(interop, "package-lock.json"), filepath.Join(interop, "subprocess.mjs"),
}}

// seen is which _meta a TypeScript program was given, by method.
type seen map[string][]map[string]any

// parentOf reads the trace context of the _meta at a place.
func (s seen) parentOf(t *testing.T, method string, at int) trace.SpanContext {
	t.Helper()
	if at >= len(s[method]) {
		t.Fatalf("%s was seen %d times", method, len(s[method]))
	}
	carrier := propagation.MapCarrier{}
	for name, value := range s[method][at] {
		if text, ok := value.(string); ok {
			carrier[name] = text
		}
	}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(t.Context(), carrier))
}

// An agent in TypeScript sees the span of each call, and what it sends back is found again.
func TestTEL3_TEL4_TypeScriptAgent(t *testing.T) {
	tier.Need(t, tier.Full)
	dir := installed.Dir(t)
	o := newObserver()
	cmd := exec.Command("node", filepath.Join(dir, "echo-agent.mjs"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	handlers := clientHandlers(0)
	conn, err := acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, acp.Command(cmd), nil), handlers, &acp.ClientOptions{
		Info: acp.Implementation{Name: "editor", Version: "1"}, Conn: acp.ConnOptions{Hooks: o.hooks()},
	})
	if err != nil {
		t.Fatal(err, stderr.String())
	}
	session := newSession(t, conn)
	must.Do(t, session.Cancel(t.Context()))
	ctx := withState(t, withBaggage(t, t.Context()))
	mine := acp.Meta{"example.com/mine": json.RawMessage(`{"n":1}`)}
	req := &acp.PromptRequest{SessionID: session.ID(), Prompt: []acp.ContentBlock{acp.TextBlock("go")}, Meta: mine}
	res, err := conn.Prompt(ctx, req)
	if err != nil {
		t.Fatal(err, stderr.String())
	}
	if err := conn.Close(); err != nil {
		t.Error(err, stderr.String())
	}
	var got seen
	if ok, err := res.Meta.Get("seen", &got); !ok || err != nil {
		t.Fatal(ok, err)
	}
	for _, method := range []string{"initialize", "session/new", "session/cancel", "session/prompt"} {
		if parent := got.parentOf(t, method, 0); parent.SpanID() != o.find(t, method).SpanContext.SpanID() {
			t.Errorf("%s: the agent saw %v", method, got[method])
		}
	}
	prompt := got["session/prompt"][0]
	if prompt["baggage"] != "team=tools" || prompt["tracestate"] != "vendor=1" || fmt.Sprint(prompt["example.com/mine"]) != "map[n:1]" || len(prompt) != 4 {
		t.Errorf("the agent saw %v", prompt)
	}

	turn := o.find(t, "session/prompt")
	if attr(turn, "gen_ai.agent.name") != "echo" || attr(turn, "acp.updates.count") != "1" {
		t.Errorf("the turn is %v", turn.Attributes)
	}
	reads := 0
	for _, s := range o.spans.GetSpans() {
		if s.Name == "fs/read_text_file" && s.Parent.SpanID() == turn.SpanContext.SpanID() {
			reads++
		}
	}
	if reads != 2 {
		t.Errorf("%d of the agent's requests are in the trace of the turn, want 2", reads)
	}
}

// A client in TypeScript begins the trace in which an agent of ours is, and is given it back.
func TestTEL3_TypeScriptClient(t *testing.T) {
	tier.Need(t, tier.Full)
	dir := installed.Dir(t)
	read := collect(t)
	const meta = `{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tracestate":"vendor=1","baggage":"team=tools","mine":{"n":1}}`
	cmd := exec.Command("node", filepath.Join(dir, "echo-client.mjs"), meta, os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"=agent", "OTEL_SERVICE_NAME=agent")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err, stderr.String())
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	var got seen
	must.Do(t, json.Unmarshal([]byte(lines[len(lines)-1]), &got))
	byName := map[string]span{}
	for _, s := range read() {
		byName[s.Name] = s
	}
	if turn := byName["session/prompt"]; turn.TraceID != "0af7651916cd43dd8448eb211c80319c" || turn.Parent != "b7ad6b7169203331" {
		t.Errorf("the turn is %+v", turn)
	}
	for _, method := range []string{"session/request_permission", "fs/read_text_file"} {
		parent := got.parentOf(t, method, 0)
		if parent.SpanID().String() != byName[method].ID || parent.TraceID().String() != "0af7651916cd43dd8448eb211c80319c" ||
			parent.TraceState().String() != "vendor=1" || got[method][0]["baggage"] != "team=tools" || len(got[method][0]) != 3 {
			t.Errorf("%s: the client saw %v", method, got[method])
		}
	}
	if len(got["session/update"]) != 6 {
		t.Errorf("the client saw %d updates", len(got["session/update"]))
	}
	for _, meta := range got["session/update"] {
		if meta != nil {
			t.Errorf("an update has _meta %v", meta)
		}
	}
}
