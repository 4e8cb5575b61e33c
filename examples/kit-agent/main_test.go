package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/tier"
)

const runAs = "KIT_AGENT_TEST_RUN_AS"

func TestMain(m *testing.M) {
	switch os.Getenv(runAs) {
	case "agent":
		main()
		return
	case "server":
		serveMCP()
		return
	}
	goleak.VerifyTestMain(m)
}

// serveMCP serves one tool on standard input and output.
func serveMCP() {
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	type input struct {
		Name string `json:"name"`
	}
	greet := func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Hello " + in.Name}}}, nil, nil
	}
	mcp.AddTool(server, &mcp.Tool{Name: "greet", Title: "Greet"}, greet)
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}

// host is a client that drives the agent as a process of its own. What passes is judged, advice included.
type host struct {
	*acp.ClientConn
	dir    string       // of the session
	name   string       // of the user; "" declines to say it
	stderr bytes.Buffer // complete when the agent has ended

	mu      sync.Mutex
	answer  acp.PermissionOptionID // to questions; "" dismisses them
	asked   []acp.ToolCallUpdate
	updates []acp.SessionUpdate
}

func start(t *testing.T, state, dir string, args ...string) *host {
	t.Helper()
	tier.Need(t, tier.Normal)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, append([]string{"-state", state}, args...)...)
	cmd.Env = append(os.Environ(), runAs+"=agent", "GORACE=atexit_sleep_ms=0")
	return connect(t, cmd, dir)
}

func connect(t *testing.T, cmd *exec.Cmd, dir string) *host {
	h := &host{dir: dir, answer: "once"}
	cmd.Stderr = io.MultiWriter(t.Output(), &h.stderr)
	handlers := acp.ClientHandlers{SessionUpdate: h.take, RequestPermission: h.permit, CreateElicitation: h.fill}
	machine, err := local.Serve(&handlers, local.Trusted(), dir)
	if err != nil {
		t.Fatal(err)
	}
	transport := conformance.Tap(t, conformance.Client, acp.Command(cmd), &conformance.TapOptions{Level: conformance.Advice})
	opts := &acp.ClientOptions{Info: acp.Implementation{Name: "test", Version: "0"}}
	opts.Elicitation.Form = acp.Some(acp.ElicitationFormCapabilities{})
	h.ClientConn, err = acp.Connect(t.Context(), transport, handlers, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.stop(t)
		if err := machine.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// stop ends the agent, which must end by itself.
func (h *host) stop(t *testing.T) {
	t.Helper()
	if err := h.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
	if err := h.Wait(); err != nil {
		t.Errorf("the agent ended with %v", err)
	}
}

func (h *host) take(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.updates = append(h.updates, n.Update)
	return nil
}

func (h *host) permit(_ context.Context, _ *acp.ClientSession, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(h.asked, req.ToolCall)
	if h.answer == "" {
		return &acp.RequestPermissionResponse{Outcome: acp.PermissionCancelled()}, nil
	}
	return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(h.answer)}, nil
}

// fill fills in the form: with its first default, or declines it.
func (h *host) fill(_ context.Context, _ *acp.ClientConn, req *acp.CreateElicitationRequest) (*acp.CreateElicitationResponse, error) {
	form := req.Variant.(*acp.CreateElicitationRequestForm)
	name := form.RequestedSchema.Properties["Name"].Variant.(*acp.ElicitationPropertySchemaString).Default.Or(h.name)
	res := acp.NewCreateElicitationResponseDecline()
	if name != "" {
		content := map[string]acp.ElicitationContentValue{"Name": acp.NewElicitationContentValueString(name)}
		res = acp.NewCreateElicitationResponseAccept(acp.ElicitationAcceptAction{Content: acp.Some(content)})
	}
	return &res, nil
}

func (h *host) answers(option acp.PermissionOptionID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = option
}

// told is what the client was told since the last call: a line for each message, tool call (as it is in the end), plan (the last
// one) and title. questions are the tool calls that it was asked about.
func (h *host) told() (lines []string, questions []acp.ToolCallUpdate) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var calls []acp.ToolCall
	plan := ""
	say := func(who string, c acp.ContentChunk) {
		text := c.Content.Text()
		if last := len(lines) - 1; last >= 0 && strings.HasPrefix(lines[last], who+": ") {
			lines[last] += text
			return
		}
		lines = append(lines, who+": "+text)
	}
	for _, u := range h.updates {
		switch u := u.Variant.(type) {
		case *acp.SessionUpdateUserMessageChunk:
			say("user", acp.ContentChunk(*u))
		case *acp.SessionUpdateAgentMessageChunk:
			say("agent", acp.ContentChunk(*u))
		case *acp.SessionUpdateAgentThoughtChunk:
			say("thought", acp.ContentChunk(*u))
		case *acp.SessionUpdateToolCall:
			calls = append(calls, acp.ToolCall(*u))
			lines = append(lines, "call")
		case *acp.SessionUpdateToolCallUpdate:
			i := slices.IndexFunc(calls, func(c acp.ToolCall) bool { return c.ToolCallID == u.ToolCallID })
			calls[i].Apply(acp.ToolCallUpdate(*u))
		case *acp.SessionUpdatePlan:
			plan = "plan:"
			for _, e := range u.Entries {
				plan += fmt.Sprintf(" %s (%s)", e.Content, e.Status)
			}
		case *acp.SessionUpdateSessionInfoUpdate:
			lines = append(lines, "title: "+u.Title.Value())
		}
	}
	for i := range lines {
		if lines[i] == "call" {
			lines[i] = h.describe(calls[0])
			calls = calls[1:]
		}
	}
	if plan != "" {
		lines = append(lines, plan)
	}
	questions = h.asked
	h.updates, h.asked = nil, nil
	return lines, questions
}

func (h *host) describe(call acp.ToolCall) string {
	var line strings.Builder
	line.WriteString(fmt.Sprintf("%s: %s, %s:", call.Kind, call.Title, call.Status))
	for _, content := range call.Content {
		switch v := content.Variant.(type) {
		case *acp.ToolCallContentContent:
			text := v.Content.Text()
			line.WriteString(fmt.Sprintf(" %q", text))
		case *acp.ToolCallContentDiff:
			line.WriteString(fmt.Sprintf(" diff of %s from %q to %q", strings.TrimPrefix(v.Path, h.dir), v.OldText.Value(), v.NewText))
		case *acp.ToolCallContentTerminal:
			line.WriteString(" a terminal")
		}
	}
	return line.String()
}

func (h *host) wants(t *testing.T, what string, want ...string) (questions []acp.ToolCallUpdate) {
	t.Helper()
	got, questions := h.told()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
	return questions
}

func prompt(t *testing.T, s *acp.ClientSession, text string, want acp.StopReason) {
	t.Helper()
	res, err := s.Prompt(t.Context(), acp.TextBlock(text))
	if err != nil || res.StopReason != want {
		t.Fatalf("the prompt %q ended with %v, %v", text, res, err)
	}
}

// A conversation with everything, and what another process makes of it.
func TestConversation(t *testing.T) {
	state, dir := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("the notes"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := start(t, state, dir)
	s, err := h.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: dir})
	if err != nil {
		t.Fatal(err)
	}
	text := "plan, think, edit demo.txt, run `echo hello there`"
	prompt(t, s, text, acp.StopReasonEndTurn)
	first := []string{
		"thought: There is no model here: the prompt says what comes next.",
		fmt.Sprintf(`edit: Edit demo.txt, completed: diff of %cdemo.txt from "" to "The agent was here.\n"`, filepath.Separator),
		"execute: Run echo hello there, completed: a terminal",
		"agent: You said: " + text,
	}
	plan := "plan: Think about it (completed) Edit a file (completed) Run a command (completed)"
	asked := h.wants(t, "the first turn", append(slices.Clone(first), "title: "+text, plan)...)
	if len(asked) != 2 || asked[0].Title.Value() != "Edit demo.txt" || len(asked[0].Content.Value()) != 1 || asked[1].Kind.Value() != acp.ToolKindExecute {
		t.Errorf("asked %+v", asked)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "demo.txt")); string(got) != "The agent was here.\n" {
		t.Errorf("the file has %q, %v", got, err)
	}
	if err := s.SetMode(t.Context(), policy.ModeAll); err != nil {
		t.Fatal(err)
	}
	prompt(t, s, "edit demo.txt", acp.StopReasonEndTurn)
	prompt(t, s, "read notes.txt", acp.StopReasonEndTurn)
	second := []string{
		strings.Replace(first[1], `from ""`, `from "The agent was here.\n"`, 1),
		"agent: You said: edit demo.txt",
		`read: Read notes.txt, completed: "the notes"`,
		"agent: You said: read notes.txt",
	}
	second[0] = strings.Replace(second[0], `to "`, `to "The agent was here.\n`, 1)
	if asked := h.wants(t, "the mode all", second...); len(asked) != 0 {
		t.Errorf("asked in the mode all: %+v", asked)
	}
	h.stop(t)

	h = start(t, state, dir)
	var listed []string
	for info, err := range h.Sessions(t.Context(), dir) {
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, fmt.Sprint(info.SessionID, " ", info.Title.Value()))
	}
	if want := []string{string(s.ID()) + " " + text}; !slices.Equal(listed, want) {
		t.Errorf("listed %q, want %q", listed, want)
	}
	loaded, err := h.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: dir})
	if err != nil {
		t.Fatal(err)
	}
	first[2] = "execute: Run echo hello there, completed: \"```\\nhello there\\n```\"" // in place of the terminal
	replay := slices.Concat([]string{"user: " + text}, first, []string{"user: edit demo.txt"}, second[:2], []string{"user: read notes.txt"}, second[2:],
		[]string{"title: " + text, plan})
	h.wants(t, "the replay", replay...)
	if modes := loaded.Modes().Value(); modes.CurrentModeID != policy.ModeAll || len(modes.AvailableModes) != 4 {
		t.Errorf("loaded with the modes %+v", modes)
	}
	if err := loaded.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := h.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: dir}); err == nil {
		t.Error("a session was loaded that was deleted")
	}
}

// What the user answers decides.
func TestPermission(t *testing.T) {
	h := start(t, t.TempDir(), t.TempDir())
	s, err := h.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: h.dir})
	if err != nil {
		t.Fatal(err)
	}
	run := func(want acp.StopReason) string {
		prompt(t, s, "run `echo x`", want)
		lines, _ := h.told()
		return strings.Join(lines, "\n")
	}
	h.answers("no")
	if got := run(acp.StopReasonEndTurn); !strings.HasPrefix(got, "execute: Run echo x, failed: \"the user did not allow it\"\nagent: You said") {
		t.Errorf("rejected: %s", got)
	}
	h.answers("")
	if got := run(acp.StopReasonCancelled); got != "execute: Run echo x, failed: \"the question was dismissed\"" {
		t.Errorf("dismissed: %s", got)
	}
	h.answers("always")
	run(acp.StopReasonEndTurn)
	h.answers("no")
	if got := run(acp.StopReasonEndTurn); !strings.HasPrefix(got, "execute: Run echo x, completed") {
		t.Errorf("allowed for good: %s", got)
	}
}

// The tools of an MCP server are listed and called, in the mode "all" without a question.
func TestMCP(t *testing.T) {
	h := start(t, t.TempDir(), t.TempDir())
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server := acp.MCPServerStdio{Name: "hall", Command: self, Args: []string{}, Env: []acp.EnvVariable{{Name: runAs, Value: "server"}}}
	s, err := h.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: h.dir, MCPServers: []acp.MCPServer{acp.NewMCPServerStdio(server)}})
	if err != nil {
		t.Fatal(err)
	}
	prompt(t, s, "/mcp", acp.StopReasonEndTurn)
	h.wants(t, "the list", "agent: hall__greet\n", "title: /mcp")
	prompt(t, s, `/mcp hall__greet {"name":"Ada"}`, acp.StopReasonEndTurn)
	if asked := h.wants(t, "a call", `other: hall: Greet, completed: "Hello Ada"`); len(asked) != 1 {
		t.Errorf("asked %+v", asked)
	}
	if err := s.SetMode(t.Context(), policy.ModeAll); err != nil {
		t.Fatal(err)
	}
	prompt(t, s, `/mcp hall__greet {}`, acp.StopReasonEndTurn)
	if asked := h.wants(t, "a call without input", `other: hall: Greet, failed: "validating \"arguments\": validating root: required: missing properties: [\"name\"]"`); len(asked) != 0 {
		t.Errorf("asked in the mode all: %+v", asked)
	}
	prompt(t, s, "/mcp hall__sing", acp.StopReasonEndTurn)
	h.wants(t, "an unknown tool", `other: hall__sing, failed: "there is no tool \"hall__sing\""`)
}

// A turn is cancelled while it writes, and while a command runs, which is killed.
func TestCancel(t *testing.T) {
	h := start(t, t.TempDir(), t.TempDir())
	s, err := h.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: h.dir})
	if err != nil {
		t.Fatal(err)
	}
	for text, until := range map[string]func(acp.SessionUpdate) bool{
		"long": func(u acp.SessionUpdate) bool { return u.AgentText() != "" },
		"run `sleep 100`": func(u acp.SessionUpdate) bool {
			call, ok := u.Variant.(*acp.SessionUpdateToolCallUpdate)
			return ok && call.Content.Present()
		},
	} {
		turn := s.Stream(t.Context(), acp.TextBlock(text))
		failed := false
		for u := range turn.Updates() {
			if until(u) {
				turn.Cancel()
			}
			call, ok := u.Variant.(*acp.SessionUpdateToolCallUpdate)
			failed = failed || ok && call.Status.Value() == acp.ToolCallStatusFailed
		}
		if res, err := turn.Result(); err != nil || res.StopReason != acp.StopReasonCancelled {
			t.Errorf("%s: %v, %v", text, res, err)
		}
		if failed != strings.HasPrefix(text, "run") {
			t.Errorf("%s: a call has failed: %v", text, failed)
		}
	}
}

// The example stays as small as it is said to be.
func TestLines(t *testing.T) {
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), "\n"); n > 165 {
		t.Errorf("main.go has %d lines, more than 165", n)
	}
}

// A command is advertised, and runs without an answer around it. One that fails says how.
func TestCommands(t *testing.T) {
	h := start(t, t.TempDir(), t.TempDir())
	s, err := h.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: h.dir})
	if err != nil {
		t.Fatal(err)
	}
	prompt(t, s, "/think", acp.StopReasonEndTurn)
	h.wants(t, "a command", "thought: There is no model here: the prompt says what comes next.", "title: /think")
	prompt(t, s, "/run `false`", acp.StopReasonEndTurn)
	h.wants(t, "a command that fails", `execute: Run false, failed: a terminal "exit status 1"`)
	prompt(t, s, "/run `no-such-program`", acp.StopReasonEndTurn)
	lines, _ := h.told()
	if len(lines) != 1 || !strings.Contains(lines[0], "no-such-program") {
		t.Errorf("of a command that does not exist the client shows %q", lines)
	}
	h.stop(t)
	if said := h.stderr.String(); !strings.Contains(said, "Run false") || !strings.Contains(said, "exit status 1") {
		t.Errorf("the agent said %q", said)
	}
}

// The user may decline to say a name, and one that was said is stored; so is the style.
func TestNameAndStyle(t *testing.T) {
	state, dir := t.TempDir(), t.TempDir()
	h := start(t, state, dir)
	s, err := h.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetConfigOption(t.Context(), "style", "loud"); err != nil {
		t.Fatal(err)
	}
	prompt(t, s, "/name", acp.StopReasonEndTurn)
	h.wants(t, "declined", "agent: I do not know your name. ", "title: /name")
	h.name = "Ada"
	prompt(t, s, "/name", acp.StopReasonEndTurn)
	h.wants(t, "said", "agent: Hello Ada. ")
	h.stop(t)
	h = start(t, state, dir)
	if s, err = h.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: dir}); err != nil {
		t.Fatal(err)
	}
	h.told()
	prompt(t, s, "Tell me your name", acp.StopReasonEndTurn)
	h.wants(t, "loaded", "agent: Hello Ada. You said: Tell me your name!")
}

func TestLogin(t *testing.T) {
	dir := t.TempDir()
	h := start(t, t.TempDir(), dir, "-login")
	if _, err := h.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: dir}); !errors.Is(err, acp.ErrAuthRequired) {
		t.Errorf("before the login: %v", err)
	}
	if _, err := h.Authenticate(t.Context(), &acp.AuthenticateRequest{MethodID: "guest"}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: dir}); err != nil {
		t.Error(err)
	}
}

// Some clients start agents with an empty environment, or where no state can be kept: the agent warns, and works.
func TestNoHome(t *testing.T) {
	tier.Need(t, tier.Normal)
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: no program starts with an empty environment")
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, env := range map[string][]string{"empty": nil, "file": {"HOME=" + file}, "missing": {"HOME=" + file + "/none"}} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(self)
			cmd.Env = append(env, runAs+"=agent")
			h := connect(t, cmd, t.TempDir())
			s, err := h.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: h.dir})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Prompt(t.Context(), acp.TextBlock("Hello")); err != nil {
				t.Error(err)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
			list, err := h.ListSessions(t.Context(), &acp.ListSessionsRequest{})
			if err != nil || len(list.Sessions) != 1 {
				t.Errorf("the sessions are %+v, %v", list, err)
			}
			if _, err := h.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: h.dir}); err != nil {
				t.Error(err)
			}
			h.stop(t)
			if !strings.Contains(h.stderr.String(), "sessions are kept in memory") {
				t.Errorf("standard error has %q", h.stderr.String())
			}
		})
	}
}
