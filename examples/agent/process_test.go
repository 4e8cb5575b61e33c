package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/tier"
)

// A whole turn over real pipes, and a second process that loads it.
func TestProcess_WholeTurn(t *testing.T) {
	state, dir := t.TempDir(), t.TempDir()
	h := connect(t, setup{state: state, dir: dir, transport: asProcess()})
	s := h.session(t)
	say(t, s, "plan and think, edit demo.txt, run `echo hello`", acp.StopReasonEndTurn)
	ledger(t, h, 1)
	if got := get(t, filepath.Join(dir, "demo.txt")); got != "The agent was here.\n" {
		t.Errorf("the file holds %q", got)
	}
	turn := s.Stream(t.Context(), acp.TextBlock("Write a very long poem"))
	for range turn.Updates() {
		turn.Cancel()
	}
	if res, err := turn.Result(); err != nil || res.StopReason != acp.StopReasonCancelled {
		t.Errorf("got %v, %v, want cancelled", res, err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if err := h.Wait(); err != nil { // TRN-10: it has ended by itself, with status 0
		t.Errorf("the agent ended with %v", err)
	}

	again := connect(t, setup{state: state, dir: dir, transport: asProcess()})
	if _, err := again.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: dir}); err != nil {
		t.Fatal(err)
	}
	if got := spoken(again.seen(s.ID())); !strings.Contains(got, "You said: plan") || !strings.Contains(got, "On and on") {
		t.Errorf("replayed %q", got)
	}
}

// SES-25, SES-28: MCP servers are started with their arguments and environment, initialized, and ended
// with the session.
func TestSES25_SES28_MCPServers(t *testing.T) {
	h := connect(t, setup{})
	servers := make([]acp.MCPServer, 3)
	var notes []string
	for i := range servers {
		name := string(rune('a' + i))
		notes = append(notes, filepath.Join(t.TempDir(), "notes"))
		servers[i] = acp.NewMCPServerStdio(acp.MCPServerStdio{
			Name: name, Command: self(t), Args: []string{notes[i]},
			Env: []acp.EnvVariable{{Name: runAs, Value: "mcp"}, {Name: "MCP_TEST", Value: "value-" + name}},
		})
	}
	s := h.session(t, func(r *acp.NewSessionRequest) { r.MCPServers = servers })
	say(t, s, "list your mcp tools", acp.StopReasonEndTurn)
	if got := spoken(h.seen(s.ID())); !strings.Contains(got, "b: hammer, saw") {
		t.Errorf("said %q", got)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, path := range notes {
		want := "started with value-" + string(rune('a'+i)) + " in " + h.dir + "\ninitialize " + mcpVersion + "\ninitialized\nended\n"
		if got := get(t, path); got != want {
			t.Errorf("server %d noted %q, want %q", i, got, want)
		}
	}
}

// A client can name any number of MCP servers: only so many run, only a few start at once, and those of a session that is
// closed make room for others.
func TestMCPServersAreBounded(t *testing.T) {
	const most = 2*maxStarting + 1
	h := connect(t, setup{maxServers: most})
	notes := filepath.Join(t.TempDir(), "notes")
	servers := make([]acp.MCPServer, 400)
	for i := range servers {
		servers[i] = acp.NewMCPServerStdio(acp.MCPServerStdio{
			Name: "a", Command: self(t), Args: []string{notes}, Env: []acp.EnvVariable{{Name: runAs, Value: "mcp"}},
		})
	}
	open := func() *acp.ClientSession {
		return h.session(t, func(r *acp.NewSessionRequest) { r.MCPServers = servers })
	}
	s := open()
	say(t, s, "mcp", acp.StopReasonEndTurn)
	if got := strings.Count(spoken(h.seen(s.ID())), "a: hammer, saw"); got != most {
		t.Errorf("%d servers run, want %d", got, most)
	}
	notices := variants[*acp.SessionUpdateNotice](h.seen(s.ID()))
	if len(notices) != 1 || !strings.HasPrefix(notices[0].Description.Value(), "391 more are too many") {
		t.Errorf("got notices %v", notices)
	}
	starting := 0
	for line := range strings.Lines(get(t, notes)) {
		switch {
		case strings.HasPrefix(line, "started"):
			starting++
		case strings.HasPrefix(line, "initialize "):
			starting--
		}
		if starting > maxStarting {
			t.Fatalf("%d start at once", starting)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s = open()
	say(t, s, "mcp", acp.StopReasonEndTurn)
	if got := strings.Count(spoken(h.seen(s.ID())), "a: hammer, saw"); got != most {
		t.Errorf("%d servers run after others have ended, want %d", got, most)
	}
}

// Servers also end with the agent, when their session was not closed.
func TestMCPServersEndWithTheAgent(t *testing.T) {
	h := connect(t, setup{transport: asProcess()})
	notes := filepath.Join(t.TempDir(), "notes")
	h.session(t, func(r *acp.NewSessionRequest) {
		r.MCPServers = []acp.MCPServer{acp.NewMCPServerStdio(acp.MCPServerStdio{
			Name: "a", Command: self(t), Args: []string{notes}, Env: []acp.EnvVariable{{Name: runAs, Value: "mcp"}},
		})}
	})
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if got := get(t, notes); !strings.HasSuffix(got, "\nended\n") {
		t.Errorf("the server noted %q", got)
	}
}

func TestMCPServersThatDoNotStart(t *testing.T) {
	for name, change := range map[string]func(*acp.ClientOptions){"with notices": nil, "without": modest} {
		t.Run(name, func(t *testing.T) {
			h := connect(t, setup{options: change})
			s := h.session(t, func(r *acp.NewSessionRequest) {
				r.MCPServers = []acp.MCPServer{
					acp.NewMCPServerStdio(acp.MCPServerStdio{Name: "absent", Command: filepath.Join(t.TempDir(), "absent")}),
					acp.NewMCPServerStdio(acp.MCPServerStdio{Name: "fails", Command: self(t), Args: []string{"-no-such-flag"}}),
				}
			})
			say(t, s, "mcp", acp.StopReasonEndTurn)
			if got := spoken(h.seen(s.ID())); !strings.Contains(got, "no MCP servers") {
				t.Errorf("said %q", got)
			}
			want := 2
			if change != nil {
				want = 0
			}
			if got := variants[*acp.SessionUpdateNotice](h.seen(s.ID())); len(got) != want {
				t.Errorf("got %d notices, want %d", len(got), want)
			}
		})
	}
}

// SES-27, SES-30: transports that were not offered, and unknown ones, are refused.
func TestSES27_OtherMCPServers(t *testing.T) {
	h := connect(t, setup{breaks: map[string]string{"SES-27": "what the agent must refuse"}})
	for _, server := range []acp.MCPServer{
		acp.NewMCPServerSSE(acp.MCPServerSSE{Name: "s", URL: "https://example.com/mcp"}),
	} {
		_, err := rpc.Call[acp.NewSessionResponse](t.Context(), h.RPC(), acp.MethodNewSession,
			&acp.NewSessionRequest{Cwd: h.dir, MCPServers: []acp.MCPServer{server}})
		wantCode(t, err, acp.ErrInvalidParams)
	}
	if got := list(t, h, ""); len(got) != 0 {
		t.Errorf("left sessions behind: %v", got)
	}
}

// AUT-5, AUT-6, AUT-7: the arguments of the terminal method, appended to the agent's own, log in and end.
func TestAUT7_TerminalLogin(t *testing.T) {
	state := t.TempDir()
	open := func() (*host, error) {
		h := connect(t, setup{state: state, transport: asProcess("-require-auth")})
		_, err := h.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: h.dir})
		return h, err
	}
	h, err := open()
	wantCode(t, err, acp.ErrAuthRequired)
	var args []string
	for _, m := range h.Initialized().AuthMethods {
		if m, ok := m.Variant.(*acp.AuthMethodTerminal); ok {
			args = append([]string{"-require-auth"}, m.Args...)
		}
	}
	login := func(input string) error {
		cmd := agentCommand(t, state, args...)
		cmd.Stdin = strings.NewReader(input)
		return cmd.Run()
	}
	if err := login(""); err == nil {
		t.Error("nobody logged in, and that succeeded")
	}
	if err := login("Ada\n"); err != nil {
		t.Fatal(err)
	}
	if h, err = open(); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Logout(t.Context(), &acp.LogoutRequest{}); err != nil {
		t.Fatal(err)
	}
	_, err = open()
	wantCode(t, err, acp.ErrAuthRequired)
}

// TRN-5, TRN-10: standard output has messages only, and the end of standard input ends the process.
func TestTRN5_TRN10_Streams(t *testing.T) {
	cmd := agentCommand(t, t.TempDir())
	cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}` + "\n{\n")
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	lines := slices.Collect(bytes.Lines(out.Bytes()))
	if len(lines) != 2 || !bytes.Contains(lines[0], []byte(`"id":1`)) || !bytes.Contains(lines[1], []byte("-32700")) {
		t.Errorf("got %q", lines)
	}
}

// startAgent starts the agent with a state of its own, and returns its standard input and output.
func startAgent(t *testing.T) (*exec.Cmd, io.WriteCloser, io.ReadCloser) {
	t.Helper()
	cmd := agentCommand(t, t.TempDir())
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, in, out
}

// TRN-10: the end of the input in the middle of a turn ends the agent before a client that waits for two seconds loses its
// patience. A busy machine can make it late, but not each time.
func TestTRN10_EndInATurn(t *testing.T) {
	tier.Need(t, tier.Normal)
	var took time.Duration
	for range 10 {
		if took = endInATurn(t); took < 2*time.Second {
			return
		}
	}
	t.Errorf("it took %v", took)
}

// endInATurn is how long an agent takes to end after its input has in the middle of a turn.
func endInATurn(t *testing.T) time.Duration {
	t.Helper()
	cmd, in, out := startAgent(t)
	lines := bufio.NewScanner(out)
	send := func(line string) {
		if _, err := io.WriteString(in, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	until := func(text string) string {
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return lines.Text()
			}
		}
		t.Fatalf("no line has %s: %v", text, lines.Err())
		return ""
	}
	send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)
	until(`"id":1`)
	send(`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":` + strconv.Quote(t.TempDir()) + `,"mcpServers":[]}}`)
	_, rest, _ := strings.Cut(until(`"id":2`), `"sessionId":"`)
	session, _, _ := strings.Cut(rest, `"`)
	send(`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"` + session + `","prompt":[{"type":"text","text":"Write a very long poem"}]}}`)
	until("agent_message_chunk")
	began := time.Now()
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, out); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("ended with %v", err)
	}
	return time.Since(began)
}

func TestSignalsEndTheProcess(t *testing.T) {
	cmd, in, out := startAgent(t)
	_, err := io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`+"\n")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // it serves
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer timer.Stop()
	if _, err := io.Copy(io.Discard, out); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("ended with %v", err)
	}
}

func TestBadStateIsSaid(t *testing.T) {
	file := put(t, t.TempDir(), "file", "")
	cmd := agentCommand(t, filepath.Join(file, "state"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	exit, ok := errors.AsType[*exec.ExitError](cmd.Run())
	if !ok || exit.ExitCode() != 1 || !strings.HasPrefix(stderr.String(), "agent: opening the state: ") {
		t.Errorf("got %v, %q", exit, stderr.String())
	}
}

// The state is in a directory of the user's own, or in one that only this process knows and that ends with it.
func TestDefaultState(t *testing.T) {
	home, temp := t.TempDir(), t.TempDir()
	variables := []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"}
	for _, name := range variables {
		t.Setenv(name, home)
	}
	t.Setenv("TMPDIR", temp)
	t.Setenv("TMP", temp)
	within := func(parent string) func(string) error {
		return func(dir string) error {
			if !strings.HasPrefix(dir, parent) {
				t.Errorf("got %s, want a directory in %s", dir, parent)
			}
			return nil
		}
	}
	log := slog.New(slog.DiscardHandler)
	if err := withState("", log, within(home)); err != nil {
		t.Error(err)
	}
	for _, name := range variables {
		t.Setenv(name, "")
	}
	if err := withState("", log, within(temp)); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("%d files are left: %v", len(left), err)
	}
	// Editors start agents with a minimal environment.
	cmd := exec.Command(self(t))
	cmd.Env = []string{runAs + "=agent", "TMPDIR=" + temp}
	cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}` + "\n")
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), `"protocolVersion":1`) {
		t.Errorf("ended with %v and %q", err, out)
	}
}
