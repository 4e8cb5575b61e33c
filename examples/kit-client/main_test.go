package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/tier"
)

// runAs makes the test binary another program; stats is the file in which the relay says what it saw.
const (
	runAs = "KIT_CLIENT_TEST_RUN_AS"
	stats = "KIT_CLIENT_TEST_STATS"
)

// exampleAgent is the reference agent, and kitAgent the small one, built for the tests.
var exampleAgent, kitAgent string

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(runAs) {
	case "client":
		os.Setenv(runAs, "relay") // what it starts
		main()
		return
	case "relay":
		os.Setenv(runAs, "mortal") // if it starts this binary
		err = relay()
	case "mortal":
		err = mortal()
	default:
		buildtest.Main(m, map[string]*string{"../../internal/test/actor/actor": &exampleAgent, "../kit-agent": &kitAgent})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// relay starts the agent of its arguments, and judges what it and the client say to each other. At the prompt "Crash." it
// kills the agent.
func relay() (err error) {
	var mu sync.Mutex
	var found []string
	var dies atomic.Bool // the agent dies, and leaves a prompt without an answer
	dies.Store(os.Args[1] == os.Args[0])
	note := func(findings []conformance.Finding) {
		mu.Lock()
		defer mu.Unlock()
		for _, f := range findings {
			found = append(found, f.String())
		}
	}
	monitor := conformance.NewMonitor(conformance.Negotiated(conformance.V1(), conformance.V2()), &conformance.MonitorOptions{
		OnMessage: func(m conformance.Message) { note(m.Findings) }, OnEnd: note,
		Ignore: func(f conformance.Finding) bool { return dies.Load() && strings.HasSuffix(f.String(), unanswered) },
	})
	defer func() {
		file, e := os.OpenFile(os.Getenv(stats), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if e == nil {
			_, e = fmt.Fprintf(file, "%s\n", strings.Join(append(found, monitor.Stats().String()), "\n"))
			e = errors.Join(e, file.Close())
		}
		err = errors.Join(err, e)
	}()
	ctx := context.Background()
	client, err := acp.Stdio().Connect(ctx)
	if err != nil {
		return err
	}
	process := acp.Exec(os.Args[1], os.Args[2:]...)
	agent, err := monitor.WrapClient(process).Connect(ctx)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		err := pass(client, agent, func(message []byte) error {
			if !bytes.Contains(message, []byte(`"Crash."`)) {
				return nil
			}
			dies.Store(true)
			return process.Cmd.Process.Kill()
		})
		done <- errors.Join(err, agent.(rpc.HalfCloser).CloseWrite())
	}()
	err = pass(agent, client, func([]byte) error { return nil })
	err = errors.Join(err, agent.Close(), client.Close())
	return errors.Join(err, <-done)
}

// pass passes messages on until there are no more, and calls seen with each.
func pass(from, to rpc.Stream, seen func(message []byte) error) error {
	for {
		message, err := from.Read()
		if err == nil {
			err = errors.Join(to.Write(message), seen(message))
		}
		if errors.Is(err, io.EOF) || errors.Is(err, acp.ErrClosed) || errors.Is(err, os.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// mortal is an agent that dies when it is told to, and can load its session.
func mortal() error {
	say := func(ctx context.Context, s *acp.AgentSession, text string) error {
		return s.Update(ctx, acp.AgentMessageText(text))
	}
	return acp.ServeAgent(context.Background(), acp.Stdio(), acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: "s"}, nil
		},
		LoadSession: func(ctx context.Context, s *acp.AgentSession, _ *acp.LoadSessionRequest) (*acp.LoadSessionResponse, error) {
			err := errors.Join(s.Update(ctx, acp.UserMessageText("Die.")), say(ctx, s, "I was dying."))
			return &acp.LoadSessionResponse{}, err
		},
		Prompt: func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			text := req.Prompt[0].Text()
			if text == "Die." {
				fmt.Fprintln(os.Stderr, "alas")
				os.Exit(3)
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, say(ctx, s, "You said: "+text)
		},
	}, &acp.AgentOptions{Info: acp.Implementation{Name: "mortal", Version: "1"}})
}

// unanswered is what the death of an agent leaves.
const unanswered = "the prompt was never answered"

// talk runs the client in a directory, and returns what it prints.
func talk(t *testing.T, dir, rules, input string, agent ...string) string {
	t.Helper()
	c, seen := command(t, dir, rules, agent...)
	c.Stdin = strings.NewReader(input)
	out, err := c.Output()
	if err != nil {
		t.Errorf("the client: %v, %s", err, c.Stderr)
	}
	checkStats(t, seen)
	return string(out)
}

// command is the client, with an agent that the relay starts, and the file in which the relay says what it saw.
func command(t *testing.T, dir, rules string, agent ...string) (c *exec.Cmd, seen string) {
	t.Helper()
	tier.Need(t, tier.Normal)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rules.json")
	seen = file + ".stats"
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	c = exec.CommandContext(ctx, self, append([]string{file, self}, agent...)...)
	c.Dir, c.Stderr = dir, &strings.Builder{}
	c.Env = append(os.Environ(), runAs+"=client", stats+"="+seen, "GORACE=atexit_sleep_ms=0")
	return c, seen
}

// checkStats checks that the relay has found nothing.
func checkStats(t *testing.T, seen string) {
	t.Helper()
	judged, err := os.ReadFile(seen)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", judged)
	for line := range strings.Lines(string(judged)) {
		if !strings.HasSuffix(strings.TrimSpace(line), " messages, 0 findings") {
			t.Errorf("%s", line)
		}
	}
}

// inOrder checks that texts are printed one after the other.
func inOrder(t *testing.T, out string, texts ...string) {
	t.Helper()
	rest := out
	for _, text := range texts {
		_, after, ok := strings.Cut(rest, text)
		if !ok {
			t.Fatalf("no %q in what follows the text before in\n%s", text, out)
		}
		rest = after
	}
}

// A whole conversation with the reference agent, in which rules decide, and the user.
func TestConversation(t *testing.T) {
	tier.Need(t, tier.Normal)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := talk(t, dir, `{"rules": [
		{"effect": "allow", "kind": ["read", "edit"], "path": ["./**"]},
		{"effect": "allow", "command": ["echo *"], "path": ["./**"]},
		{"effect": "reject", "path": ["**/.env"]}
	]}`, "Make a plan: think, edit notes.txt, then run `echo Hello`.\nedit .env\npermission\n9\n2\nrefuse\n",
		exampleAgent, "-state", t.TempDir())
	inOrder(t, out, "Edit", "(edit): completed", "echo Hello", "exit status 0\n  Hello", "completed", "agent: ", "(end_turn)",
		".env (edit): failed", "(end_turn)",
		"1: ", "2: ", "(end_turn)", "(refusal)")
	text, err := os.ReadFile(filepath.Join(dir, "notes.txt"))
	if err != nil || !strings.HasPrefix(string(text), "one\n") || strings.Count(string(text), "\n") != 2 {
		t.Errorf("notes.txt: %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(dir, ".env")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf(".env: %v", err)
	}
}

// An agent that dies is started again, and the session loaded; the turn is not said again. The user sees its log.
func TestAgentDies(t *testing.T) {
	tier.Need(t, tier.Normal)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c, seen := command(t, t.TempDir(), `{"rules": []}`, self)
	c.Stdin = strings.NewReader("Hello.\nDie.\nStill there?\n")
	printed, err := c.Output()
	log := fmt.Sprint(c.Stderr)
	if err != nil || !strings.Contains(log, "alas") {
		t.Errorf("the client: %v, and on standard error %s", err, log)
	}
	checkStats(t, seen)
	out := string(printed)
	inOrder(t, out, "You said: Hello.", "(end_turn)", "[lost", "[replaying s", "agent: I was dying.", "[restored s", "You said: Still there?", "(end_turn)")
	inOrder(t, out, "error: ", "may be done in part")
}

// Any agent can call the tool of the client, also when it has crashed and the session is restored.
func TestTool(t *testing.T) {
	tier.Need(t, tier.Normal)
	out := talk(t, t.TempDir(), `{"rules": []}`, ":mode all\n/mcp\n/mcp kit-client__notify {\"Text\":\"Tea.\"}\nCrash.\n"+
		"/mcp kit-client__notify {\"Text\":\"More tea.\"}\n", kitAgent, "-state", t.TempDir())
	inOrder(t, out, "notify", "note: Tea.", "completed", "(end_turn)", "[lost", "[restored", "note: More tea.", "completed", "(end_turn)")
	inOrder(t, out, "error: ", "may be done in part")
}

// Ctrl-C cancels the turn, and the conversation continues.
func TestInterrupt(t *testing.T) {
	tier.Need(t, tier.Normal)
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be interrupted alone")
	}
	c, seen := command(t, t.TempDir(), `{"rules": []}`, exampleAgent, "-state", t.TempDir())
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, "Write a very long poem.\n"); err != nil {
		t.Fatal(err)
	}
	printed, part := "", make([]byte, 4096)
	for !strings.Contains(printed, "agent: ") && err == nil {
		var n int
		n, err = out.Read(part)
		printed += string(part[:n])
	}
	err = errors.Join(err, c.Process.Signal(os.Interrupt))
	_, e := io.WriteString(in, "Hello.\n")
	e = errors.Join(e, in.Close())
	rest, e2 := io.ReadAll(out)
	if err := errors.Join(err, e, e2, c.Wait()); err != nil {
		t.Errorf("%v, %s", err, c.Stderr)
	}
	inOrder(t, printed+string(rest), "agent: ", "(cancelled)", "(end_turn)")
	checkStats(t, seen)
}

func TestUsage(t *testing.T) {
	tier.Need(t, tier.Normal)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"usage: kit-client": {"rules"},
		"line 1: ":          {"main.go", "agent"},
	} {
		c := exec.Command(self, args...)
		c.Env = append(os.Environ(), runAs+"=client")
		out, err := c.CombinedOutput()
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 || !strings.Contains(string(out), want) {
			t.Errorf("%q: %v, %s", args, err, out)
		}
	}
}

// Everything else that an agent has: a login, modes, options, commands, a plan, a form, and sessions of before.
func TestEverything(t *testing.T) {
	tier.Need(t, tier.Full)
	dir, agent := t.TempDir(), []string{kitAgent, "-state", t.TempDir(), "-login"}
	out := talk(t, dir, `{"rules": []}`, "1\n:mode all\n:mode none\n:set style loud\nplan, name\nAda\n:sessions\n", agent...)
	inOrder(t, out, "1: As a guest", "mode: ask", "ask: Ask", "style = plain (plain, loud)", "mode: all", "error: ", "not a mode",
		"style = loud", "plan:", "in_progress: Ask for the user's name", "Who are you?", "Name", "agent: Hello Ada.", "plan:", "completed: Ask",
		"You said: plan, name!", "title: plan, name", "(end_turn)", "plan, name <nil>")
	inOrder(t, out, "/think: Think about it") // at any time: it follows the answer of session/new, as the next requests do
	_, id, _ := strings.Cut(out, "(end_turn)\n")
	id, _, _ = strings.Cut(id, ":")
	out = talk(t, dir, `{"rules": []}`, "1\n:load "+id+"\nname\n\n", agent...)
	inOrder(t, out, "mode: ask", "user: plan, name", "Hello Ada.", "mode: all", "style = loud", "Name (required) [Ada]", "Hello Ada. You said: name!", "(end_turn)")
}

// The example stays as small as it is said to be.
func TestLines(t *testing.T) {
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), "\n"); n > 150 {
		t.Errorf("main.go has %d lines, more than 150", n)
	}
}
