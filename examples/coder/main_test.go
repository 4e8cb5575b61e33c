package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/modelstub"
	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/tier"
)

const runAs = "CODER_TEST_RUN_AS"

func TestMain(m *testing.M) {
	switch os.Getenv(runAs) {
	case "agent":
		main()
		return
	case "server":
		serveMCP()
		return
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		buildtest.Remove()
		os.Exit(code)
	}))
}

// The APIs, which the tests use alike.
var apis = []string{"openai", "anthropic"}

type script func(modelstub.Request) *modelstub.Answer

// say and use are answers of the model.
func say(text ...string) *modelstub.Answer { return &modelstub.Answer{Text: text} }

func use(tool, args string) *modelstub.Answer {
	return &modelstub.Answer{Calls: []modelstub.Call{{ID: "call", Name: tool, Args: args}}}
}

// steps is a script that gives one answer after the other to a prompt, and then says what the last result was.
func steps(answers ...*modelstub.Answer) script {
	return func(r modelstub.Request) *modelstub.Answer {
		if n := len(r.Results); n < len(answers) {
			return answers[n]
		} else if n > 0 {
			return say("Result: " + r.Results[n-1])
		}
		return say("OK")
	}
}

// setup is how a host starts the agent.
type setup struct {
	api    string   // default: openai
	script script   // of the model; may be nil
	args   []string // for the agent
	env    []string
	state  string                   // directory; default: a new one
	bare   bool                     // the client has no files, terminals, notices and compactions
	dir    string                   // of the session; default: a new one
	accept map[string]string        // rules that the test breaks
	file   func(name string) string // the text that the client has for a file; nil is that on disk
	killed bool                     // the test kills the agent
	within []string                 // a program that starts the agent, with its arguments
}

// host is a client that drives the agent as a process of its own. What passes is judged, advice included.
type host struct {
	*acp.ClientConn
	setup
	model     *modelstub.Server
	recording conformance.Recording
	cmd       *exec.Cmd
	stderr    bytes.Buffer // complete when the agent has ended

	mu      sync.Mutex
	answer  acp.PermissionOptionID // to questions; "" dismisses them
	waiting chan<- struct{}        // if it is not nil, it gets each question, which is not answered
	asked   []acp.ToolCallUpdate
	updates []acp.SessionUpdate
	usage   *acp.UsageUpdate // the last one
}

// command is the agent as a process, with the model's address in its environment.
func (s *setup) command(t *testing.T, url string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := slices.Concat(s.within, []string{self, "-state", s.state, "-api", s.api}, s.args)
	cmd := exec.Command(args[0], args[1:]...)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "OPENAI_") && !strings.HasPrefix(variable, "ANTHROPIC_") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, runAs+"=agent", "GORACE=atexit_sleep_ms=0", "NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost")
	if s.env == nil {
		s.env = []string{"OPENAI_BASE_URL=" + url + "/v1", "OPENAI_API_KEY=secret", "ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=secret"}
	}
	cmd.Env = append(cmd.Env, s.env...)
	return cmd
}

func start(t *testing.T, s setup) *host {
	t.Helper()
	tier.Need(t, tier.Normal)
	if s.api == "" {
		s.api = "openai"
	}
	for _, dir := range []*string{&s.state, &s.dir} {
		if *dir == "" {
			*dir = t.TempDir()
		}
	}
	h := &host{setup: s, answer: "once"}
	ignored := func(conformance.Finding) bool { return s.killed }
	h.model = modelstub.New(&modelstub.Options{Strict: true, Pace: time.Millisecond, Script: s.script})
	server := httptest.NewServer(h.model)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	cmd := h.command(t, server.URL)
	h.cmd = cmd
	cmd.Stderr = io.MultiWriter(t.Output(), &h.stderr)
	handlers := acp.ClientHandlers{SessionUpdate: h.take, RequestPermission: h.permit}
	opts := &acp.ClientOptions{Info: acp.Implementation{Name: "test", Version: "0"}, TerminalAuth: true, Experimental: acp.FeatureFork}
	if !s.bare {
		machine, err := local.Serve(&handlers, local.Trusted(), s.dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := machine.Close(); err != nil {
				t.Error(err)
			}
		})
		if s.file != nil {
			handlers.ReadTextFile = func(_ context.Context, _ *acp.ClientSession, req *acp.ReadTextFileRequest) (*acp.ReadTextFileResponse, error) {
				return &acp.ReadTextFileResponse{Content: s.file(filepath.Base(req.Path))}, nil
			}
		}
		opts.Session.Notices = acp.Some(acp.NoticeCapabilities{})
		opts.Session.Compaction = acp.Some(acp.CompactionCapabilities{})
	}
	transport := conformance.Tap(t, conformance.Client, acp.Command(cmd), &conformance.TapOptions{
		Level: conformance.Advice, Schema: conformance.V1Unstable(), Accept: s.accept, OnMessage: h.recording.Add, Ignore: ignored,
	})
	var err error
	if h.ClientConn, err = acp.Connect(t.Context(), transport, handlers, opts); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.stop(t) })
	return h
}

// stop ends the agent, which must end on its own.
func (h *host) stop(t *testing.T) {
	t.Helper()
	if err := h.Close(); err != nil && !h.killed {
		t.Errorf("closing: %v", err)
	}
	if err := h.Wait(); err != nil && !h.killed {
		t.Errorf("the agent ended with %v", err)
	}
}

func (h *host) take(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if usage, ok := n.Update.Variant.(*acp.SessionUpdateUsageUpdate); ok {
		h.usage = (*acp.UsageUpdate)(usage)
	}
	h.updates = append(h.updates, n.Update)
	return nil
}

func (h *host) permit(ctx context.Context, _ *acp.ClientSession, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(h.asked, req.ToolCall)
	if waiting := h.waiting; waiting != nil {
		h.mu.Unlock()
		defer h.mu.Lock()
		waiting <- struct{}{}
		<-ctx.Done()
		return &acp.RequestPermissionResponse{Outcome: acp.PermissionCancelled()}, nil
	}
	if h.answer == "" {
		return &acp.RequestPermissionResponse{Outcome: acp.PermissionCancelled()}, nil
	}
	return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(h.answer)}, nil
}

func (h *host) answers(option acp.PermissionOptionID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = option
}

// told is what the client was told since the last call, as the user sees it: a line for each message, notice, plan, compaction and
// tool call, as it is in the end. questions are the calls that it was asked about.
func (h *host) told() (lines string, questions []acp.ToolCallUpdate) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var b strings.Builder
	var calls []acp.ToolCall
	last := ""
	chunk := func(who string, content acp.ContentBlock) {
		if text := content.Text(); text != "" && who == last {
			b.WriteString(text)
		} else if text != "" {
			b.WriteString("\n" + who + ": " + text)
		} else {
			b.WriteString("\n" + who + ": " + agentkit.ContentText(content))
		}
		last = who
	}
	for _, u := range h.updates {
		switch u := u.Variant.(type) {
		case *acp.SessionUpdateUserMessageChunk:
			chunk("user", u.Content)
			continue
		case *acp.SessionUpdateAgentMessageChunk:
			chunk("agent", u.Content)
			continue
		case *acp.SessionUpdateAgentThoughtChunk:
			chunk("thought", u.Content)
			continue
		case *acp.SessionUpdateToolCall:
			calls = append(calls, acp.ToolCall(*u))
			fmt.Fprintf(&b, "\n<%s>", u.ToolCallID)
		case *acp.SessionUpdateToolCallUpdate:
			i := slices.IndexFunc(calls, func(c acp.ToolCall) bool { return c.ToolCallID == u.ToolCallID })
			calls[i].Apply(acp.ToolCallUpdate(*u))
		case *acp.SessionUpdateNotice:
			fmt.Fprintf(&b, "\nnotice: %s", u.Title)
		case *acp.SessionUpdateCompactionUpdate:
			fmt.Fprintf(&b, "\ncompaction: %s", u.Status)
		case *acp.SessionUpdatePlan:
			b.WriteString("\nplan:")
			for _, e := range u.Entries {
				fmt.Fprintf(&b, " %s (%s)", e.Content, e.Status)
			}
		default:
			continue
		}
		last = ""
	}
	text := b.String()
	for _, call := range calls {
		text = strings.Replace(text, fmt.Sprintf("<%s>", call.ToolCallID), h.describe(call), 1)
	}
	questions = h.asked
	h.updates, h.asked = nil, nil
	return strings.TrimPrefix(text, "\n"), questions
}

func (h *host) describe(call acp.ToolCall) string {
	var line strings.Builder
	line.WriteString(fmt.Sprintf("%s: %s, %s", call.Kind, call.Title, call.Status))
	for _, content := range call.Content {
		switch v := content.Variant.(type) {
		case *acp.ToolCallContentContent:
			text := v.Content.Text()
			line.WriteString(fmt.Sprintf(" %q", text))
		case *acp.ToolCallContentDiff:
			line.WriteString(fmt.Sprintf(" diff %s from %q to %q", filepath.Base(v.Path), v.OldText.Value(), v.NewText))
		case *acp.ToolCallContentTerminal:
			line.WriteString(" terminal")
		}
	}
	return strings.ReplaceAll(line.String(), h.dir+string(filepath.Separator), "")
}

func (h *host) session(t *testing.T) *acp.ClientSession {
	t.Helper()
	s, err := h.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: h.dir})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// prompt sends a prompt that ends the turn, and returns what the client received.
func (h *host) prompt(t *testing.T, s *acp.ClientSession, text string) string {
	t.Helper()
	h.told()
	res, err := s.Prompt(t.Context(), acp.TextBlock(text))
	if err != nil || res.StopReason != acp.StopReasonEndTurn {
		t.Fatalf("the prompt %q ended with %+v, %v", text, res, err)
	}
	lines, _ := h.told()
	return lines
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Error(err)
	}
	return string(text)
}
