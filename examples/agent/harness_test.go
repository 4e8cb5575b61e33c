package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
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
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/tier"
	"github.com/acpgo/sdk/internal/test/ways"
)

// runAs makes the test binary another program.
const runAs = "EXAMPLE_AGENT_TEST_RUN_AS"

func TestMain(m *testing.M) {
	switch os.Getenv(runAs) {
	case "agent":
		main()
	case "mcp":
		serveMCP()
	default:
		slog.SetDefault(slog.New(slog.DiscardHandler)) // passing tests print nothing
		goleak.VerifyTestMain(m)
	}
}

// patience bounds what should happen soon.
const patience = 2 * time.Minute

// message is one message, as it was on the wire.
type message struct {
	From   conformance.Side `json:"-"`
	ID     json.RawMessage  `json:"id"`
	Method string           `json:"method"`
	Params json.RawMessage  `json:"params"`
	Result json.RawMessage  `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
	line string
}

// wire is the record of a connection.
type wire struct{ conformance.Recording }

// parse reads a message; one that is not JSON has a finding, and nothing else.
func parse(m conformance.Message) message {
	got := message{From: m.Direction.Sender(), line: string(m.Line)}
	_ = json.Unmarshal(m.Line, &got)
	return got
}

func (w *wire) all() []message {
	var all []message
	for _, m := range w.Messages() {
		all = append(all, parse(m))
	}
	return all
}

// await waits until a message matches, from index from on, and returns where.
func (w *wire) await(t *testing.T, from int, what string, match func(message) bool) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	at, err := w.Await(ctx, from, func(m conformance.Message) bool { return match(parse(m)) })
	if err != nil {
		t.Fatalf("waited in vain for %s", what)
	}
	return at
}

// index is where the first message is that matches, from index from on, or -1.
func (w *wire) index(from int, match func(message) bool) int {
	all := w.all()
	if i := slices.IndexFunc(all[from:], match); i >= 0 {
		return from + i
	}
	return -1
}

// kind is the tag of a session/update, or "".
func (m message) kind() string {
	var p struct {
		Update struct {
			Tag string `json:"sessionUpdate"`
		} `json:"update"`
	}
	if m.Method == acp.MethodSessionUpdate {
		_ = json.Unmarshal(m.Params, &p)
	}
	return p.Update.Tag
}

func isUpdate(kind string) func(message) bool {
	return func(m message) bool { return m.kind() == kind }
}

func calls(method string) func(message) bool {
	return func(m message) bool { return m.Method == method }
}

// answerTo matches the answer to the first request of a method at or after an index.
func (w *wire) answerTo(t *testing.T, from int, method string) int {
	t.Helper()
	at := w.index(from, calls(method))
	if at < 0 {
		t.Fatalf("no %s", method)
	}
	request := w.all()[at]
	return w.await(t, at+1, "the answer to "+method, func(m message) bool {
		return m.Method == "" && m.From != request.From && bytes.Equal(m.ID, request.ID)
	})
}

// host is the client of a test.
type host struct {
	*acp.ClientConn
	wire *wire
	dir  string // the session's directory, which the client serves files of

	mu      sync.Mutex
	updates []acp.SessionNotification
}

// setup says what differs from a client that can do everything.
type setup struct {
	state       string // the agent's; default: a new one
	dir         string // default: a new one
	requireAuth bool
	pageSize    int
	commandTime time.Duration
	maxSessions int
	maxServers  int
	expect      []string          // findings to expect
	breaks      map[string]string // rules that the test breaks on purpose, with the reasons
	handlers    func(*acp.ClientHandlers)
	options     func(*acp.ClientOptions)
	transport   func(t *testing.T, state string) acp.Transport // default: an agent in memory
}

// connect starts an agent and connects a client to it.
func connect(t *testing.T, s setup) *host {
	t.Helper()
	if s.state == "" {
		s.state = t.TempDir()
	}
	if s.dir == "" {
		s.dir = t.TempDir()
	}
	transport := s.transport
	if transport == nil {
		transport = func(t *testing.T, state string) acp.Transport { return inMemory(t, s, state) }
	}
	h := &host{wire: &wire{}, dir: s.dir}
	tapped := conformance.Tap(t, conformance.Client, transport(t, s.state),
		&conformance.TapOptions{Expect: s.expect, Accept: s.breaks, OnMessage: h.wire.Add})

	handlers := acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.updates = append(h.updates, *n)
			return nil
		},
		RequestPermission: choose("allow"),
		CreateElicitation: func(context.Context, *acp.ClientConn, *acp.CreateElicitationRequest) (*acp.CreateElicitationResponse, error) {
			res := acp.NewCreateElicitationResponseDecline()
			return &res, nil
		},
	}
	machine, err := local.Serve(&handlers, local.Trusted(), s.dir)
	if err != nil {
		t.Fatal(err)
	}
	if s.handlers != nil {
		s.handlers(&handlers)
	}
	options := &acp.ClientOptions{
		Info:        acp.Implementation{Name: "test", Version: "0"},
		Elicitation: acp.ElicitationCapabilities{Form: acp.Some(acp.ElicitationFormCapabilities{}), URL: acp.Some(acp.ElicitationURLCapabilities{})},
		Session: acp.ClientSessionCapabilities{
			Compaction: acp.Some(acp.CompactionCapabilities{}),
			Notices:    acp.Some(acp.NoticeCapabilities{}),
		},
		BooleanConfig: true,
		TerminalAuth:  true,
	}
	if s.options != nil {
		s.options(options)
	}
	h.ClientConn, err = acp.Connect(t.Context(), tapped, handlers, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
		if err := machine.Close(); err != nil {
			t.Errorf("closing the files and terminals: %v", err)
		}
	})
	return h
}

// modest are options of a client that can do nothing beyond what it must.
func modest(o *acp.ClientOptions) {
	o.Elicitation, o.Session = acp.ElicitationCapabilities{}, acp.ClientSessionCapabilities{}
	o.BooleanConfig, o.TerminalAuth = false, false
}

// bare leaves a client without files and terminals.
func bare(h *acp.ClientHandlers) {
	h.ReadTextFile, h.WriteTextFile = nil, nil
	h.CreateTerminal, h.TerminalOutput, h.WaitForTerminalExit, h.KillTerminal, h.ReleaseTerminal = nil, nil, nil, nil, nil
}

// inMemory is an agent in this process.
func inMemory(t *testing.T, s setup, state string) acp.Transport {
	t.Helper()
	logs := slog.New(slog.NewTextHandler(t.Output(), nil))
	a, err := newAgent(config{
		state: state, requireAuth: s.requireAuth, log: logs,
		pageSize: s.pageSize, commandTime: s.commandTime, maxSessions: s.maxSessions, maxServers: s.maxServers,
	})
	if err != nil {
		t.Fatal(err)
	}
	agentEnd, clientEnd := ways.Pipe(t)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- acp.ServeAgent(ctx, agentEnd, a.handlers(), a.options()) }()
	t.Cleanup(func() {
		time.AfterFunc(patience, cancel)
		if err := <-served; err != nil {
			t.Errorf("serving: %v", err)
		}
		cancel()
		if err := a.close(); err != nil {
			t.Errorf("closing the agent: %v", err)
		}
	})
	return clientEnd
}

// asProcess is an agent that is this binary in another process.
func asProcess(args ...string) func(t *testing.T, state string) acp.Transport {
	return func(t *testing.T, state string) acp.Transport {
		t.Helper()
		return acp.Command(agentCommand(t, state, args...))
	}
}

func agentCommand(t *testing.T, state string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(self(t), append([]string{"-state", state}, args...)...)
	// The race detector's sleep at exit is not what is tested.
	cmd.Env = append(os.Environ(), runAs+"=agent", "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = t.Output()
	return cmd
}

func self(t *testing.T) string {
	t.Helper()
	tier.Need(t, tier.Normal)
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// choose answers permission requests with an option.
func choose(option acp.PermissionOptionID) func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
	return func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
		return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(option)}, nil
	}
}

// session opens a session in the client's directory.
func (h *host) session(t *testing.T, change ...func(*acp.NewSessionRequest)) *acp.ClientSession {
	t.Helper()
	req := &acp.NewSessionRequest{Cwd: h.dir}
	for _, f := range change {
		f(req)
	}
	s, err := h.NewSession(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// say prompts with a text and checks how the turn ends.
func say(t *testing.T, s *acp.ClientSession, text string, want acp.StopReason) {
	t.Helper()
	res, err := s.Prompt(t.Context(), acp.TextBlock(text))
	if err != nil {
		t.Fatalf("prompt %q: %v", text, err)
	}
	if res.StopReason != want {
		t.Errorf("prompt %q: got stop reason %s, want %s", text, res.StopReason, want)
	}
}

// seen are the updates that the client got so far, of one session.
func (h *host) seen(id acp.SessionID) []acp.SessionUpdate {
	h.mu.Lock()
	defer h.mu.Unlock()
	var updates []acp.SessionUpdate
	for _, n := range h.updates {
		if n.SessionID == id {
			updates = append(updates, n.Update)
		}
	}
	return updates
}

// variants are the updates of one kind.
func variants[V acp.SessionUpdateVariant](updates []acp.SessionUpdate) []V {
	var vs []V
	for _, u := range updates {
		if v, ok := u.Variant.(V); ok {
			vs = append(vs, v)
		}
	}
	return vs
}

// spoken is the text of all messages of the agent.
func spoken(updates []acp.SessionUpdate) string {
	var text strings.Builder
	for _, chunk := range variants[*acp.SessionUpdateAgentMessageChunk](updates) {
		part := chunk.Content.Text()
		text.WriteString(part)
	}
	return text.String()
}

// wantCode checks the code of an error.
func wantCode(t *testing.T, err error, want acp.Code) *acp.Error {
	t.Helper()
	e := asError(err)
	if e == nil || e.Code != want {
		t.Fatalf("got error %v, want code %d", err, want)
	}
	return e
}

func put(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func get(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// serveMCP is an MCP server: it writes down how it was started and what it was asked, in the file named
// by its argument.
func serveMCP() {
	note := func(text string) {
		file, err := os.OpenFile(os.Args[1], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = io.WriteString(file, text+"\n")
			file.Close()
		}
		if err != nil {
			panic(err)
		}
	}
	dir, _ := os.Getwd()
	note("started with " + os.Getenv("MCP_TEST") + " in " + dir)
	var ext rpc.Extensions[rpc.Conn]
	rpc.Handle(&ext, "initialize", func(_ context.Context, _ *rpc.Conn, p *map[string]any) (*map[string]any, error) {
		note("initialize " + (*p)["protocolVersion"].(string))
		return &map[string]any{"protocolVersion": (*p)["protocolVersion"], "capabilities": struct{}{}}, nil
	})
	rpc.HandleNotification(&ext, "notifications/initialized", func(context.Context, *rpc.Conn, *struct{}) error {
		note("initialized")
		return nil
	})
	rpc.Handle(&ext, "tools/list", func(context.Context, *rpc.Conn, *struct{}) (*map[string]any, error) {
		return &map[string]any{"tools": []map[string]string{{"name": "hammer"}, {"name": "saw"}}}, nil
	})
	conn, err := rpc.Connect(context.Background(), rpc.Stdio(), &ext, nil)
	if err == nil {
		err = conn.Wait()
	}
	if err != nil {
		panic(err)
	}
	note("ended")
}

// running waits until the turn has said something; an update may also be one from before it.
func running(t *testing.T, turn *acp.Turn) {
	t.Helper()
	for update := range turn.Updates() {
		if _, ok := update.Variant.(*acp.SessionUpdateAgentMessageChunk); ok {
			return
		}
	}
	t.Fatal("the turn said nothing")
}
