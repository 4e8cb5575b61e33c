package repo_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// The problems in docs/troubleshooting.md. Its text must contain the results that these tests see.

// troublePage fails the test unless the page contains a text.
func troublePage(t *testing.T, text string) {
	t.Helper()
	if !strings.Contains(readFile(t, "docs/troubleshooting.md"), text) {
		t.Errorf("docs/troubleshooting.md does not say %q", text)
	}
}

// troubled prompts an agent once, and returns the client's result and the agent's log.
func troubled(t *testing.T, handlers acp.ClientHandlers, prompt func(context.Context, *agentkit.Turn[any]) error) (res *acp.PromptResponse, log string, err error) {
	t.Helper()
	var logged bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&logged, nil))
	sessions := agentkit.NewSessions(agentkit.Config[any]{Logger: logger, Prompt: func(ctx context.Context, t *agentkit.Turn[any], _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		return nil, prompt(ctx, t)
	}})
	agentEnd, clientEnd := acp.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- sessions.Serve(t.Context(), agentEnd, &acp.AgentOptions{Conn: acp.ConnOptions{Logger: logger}})
	}()
	tapped := conformance.Tap(t, conformance.Client, clientEnd, nil)
	client, err := acp.Connect(t.Context(), tapped, handlers, &acp.ClientOptions{Conn: acp.ConnOptions{Logger: slog.New(slog.DiscardHandler)}})
	if err != nil {
		t.Fatal(err)
	}
	session := must.Get(client.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: t.TempDir()}))(t)
	res, err = session.Prompt(t.Context(), acp.TextBlock("go"))
	if err := errors.Join(client.Close(), <-served); err != nil {
		t.Error(err)
	}
	return res, logged.String(), err
}

// TestTroubleToolFailed: the client sees that a tool failed, and the log shows why.
func TestTroubleToolFailed(t *testing.T) {
	var shown strings.Builder
	update := func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
		if u, ok := n.Update.Variant.(*acp.SessionUpdateToolCallUpdate); ok {
			for _, c := range u.Content.Value() {
				if content, ok := c.Variant.(*acp.ToolCallContentContent); ok {
					text := content.Content.Text()
					shown.WriteString(text)
				}
			}
		}
		return nil
	}
	_, log, err := troubled(t, acp.ClientHandlers{SessionUpdate: update}, func(ctx context.Context, t *agentkit.Turn[any]) error {
		return t.Tool(ctx, acp.ToolKindEdit, "Edit main.go", func(*agentkit.ToolCall) error { return errors.New("disk is full") })
	})
	if err != nil || shown.String() != "The tool failed." {
		t.Errorf("the client got %v and %q", err, shown.String())
	}
	if !strings.Contains(log, "disk is full") || !strings.Contains(log, "Edit main.go") {
		t.Errorf("the agent logged %s", log)
	}
	troublePage(t, "The tool failed.")
}

// TestTroubleInternalError: a handler's error appears only in the log, unless it is public.
func TestTroubleInternalError(t *testing.T) {
	_, log, err := troubled(t, acp.ClientHandlers{}, func(context.Context, *agentkit.Turn[any]) error { return errors.New("no key for the model") })
	if call, ok := errors.AsType[*acp.CallError](err); !ok || call.Err.Code != -32603 || strings.Contains(err.Error(), "key") || !strings.Contains(log, "no key for the model") {
		t.Errorf("the client got %v, the log %s", err, log)
	}
	_, _, err = troubled(t, acp.ClientHandlers{}, func(context.Context, *agentkit.Turn[any]) error {
		return acp.Public(errors.New("no key for the model"))
	})
	if err == nil || !strings.Contains(err.Error(), "no key for the model") {
		t.Errorf("the client got %v", err)
	}
	troublePage(t, "-32603")
}

// TestTroubleNothingHappens: a client without handlers cannot be asked for permission, and does not see the output that
// a client with handlers sees.
func TestTroubleNothingHappens(t *testing.T) {
	var asked error
	var seen string
	prompt := func(ctx context.Context, t *agentkit.Turn[any]) error {
		call, err := t.StartToolCall(ctx, "Edit main.go")
		if err != nil {
			return err
		}
		_, asked = call.Ask(ctx)
		return errors.Join(call.End(asked), t.Sayf(ctx, "hello"))
	}
	handlers := acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
			text := n.Update.AgentText()
			seen += text
			return nil
		},
		RequestPermission: func(_ context.Context, _ *acp.ClientSession, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(req.Options[0].OptionID)}, nil
		},
	}
	res, _, err := troubled(t, handlers, prompt)
	if err != nil || res.StopReason != acp.StopReasonEndTurn || asked != nil || seen != "hello" {
		t.Errorf("with handlers: the turn ended with %v, %v, the question with %v, and the client saw %q", res, err, asked, seen)
	}
	handlers.RequestPermission = nil
	for name, handlers := range map[string]acp.ClientHandlers{"": {}, "hello": handlers} {
		seen = ""
		res, _, err := troubled(t, handlers, prompt)
		if err != nil || res.StopReason != acp.StopReasonEndTurn || seen != name {
			t.Errorf("the turn ended with %v, %v, and the client saw %q, want %q", res, err, seen, name)
		}
		if answer, ok := errors.AsType[*acp.CallError](asked); !ok || answer.Err.Code != acp.ErrMethodNotFound {
			t.Errorf("the question was answered with %v", asked)
		}
	}
	troublePage(t, "answers \"method not found\"")
}

// TestTroubleAgentInTerminal: an agent that is started without a client prints nothing, and ends when its input ends.
func TestTroubleAgentInTerminal(t *testing.T) {
	tier.Need(t, tier.Normal)
	out, err := exec.CommandContext(t.Context(), "go", "run", "./examples/hello").CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("the agent printed %q, %v", out, err)
	}
}

// TestTroubleModuleProxy: a proxy that refuses an unpublished module returns 403, and the replace line needs no proxy.
func TestTroubleModuleProxy(t *testing.T) {
	tier.Need(t, tier.Normal)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer proxy.Close()
	root := must.Get(filepath.Abs("."))(t)
	dir := t.TempDir()
	run := func(script string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod", "GONOSUMDB=*", "GOPROXY="+proxy.URL, "GONOPROXY=none", "GOPRIVATE=")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("go mod init example.com/hello\ngo get github.com/acpgo/sdk/acp@latest"); err == nil || !strings.Contains(out, "403 Forbidden") {
		t.Errorf("go get printed %s, %v", out, err)
	}
	setUp := shown(t, readFile(t, "README.md"), "sh\n(go mod init [^`]*)")
	_, replace, _ := strings.Cut(strings.ReplaceAll(setUp, "/path/to/clone", root), "\n")
	if out, err := run(replace + "go list -m -f '{{.Dir}}' github.com/acpgo/sdk"); err != nil || !strings.Contains(out, root) {
		t.Errorf("%v\n%s", err, out)
	}
	troublePage(t, "403 Forbidden")

	writeFile(t, filepath.Join(dir, "main.go"), "package main\n\nimport _ \"github.com/acpgo/sdk/acp\"\n\nfunc main() {}\n")
	if out, err := run("GOFLAGS=-mod=readonly go build ."); err == nil || !strings.Contains(out, "missing go.sum entry") {
		t.Errorf("go build printed %s, %v", out, err)
	}
	troublePage(t, "missing go.sum entry")
}
