package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/tier"
)

// runAs makes the test binary another program: the client, or one of the agents below.
const runAs = "EXAMPLE_CLIENT_TEST_RUN_AS"

// exampleAgent is the reference agent, built for the tests.
var exampleAgent string

func TestMain(m *testing.M) {
	role := os.Getenv(runAs)
	if role == "client" {
		os.Unsetenv(runAs) // agents are other programs
		main()
		return
	}
	if act, ok := agents[role]; ok {
		act()
		return
	}
	buildtest.Main(m, map[string]*string{"../agent": &exampleAgent})
}

// agents are agents that misbehave, or want something unusual.
var agents = map[string]func(){
	// ignores that its turn is cancelled
	"stubborn": func() {
		serveFake(nil, func(ctx context.Context, session *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			err := session.Update(ctx, acp.AgentMessageText("Never!"))
			<-session.Conn().RPC().Done()
			return nil, err
		})
	},
	// sends what is no update
	"sloppy": func() {
		serveFake(nil, func(ctx context.Context, session *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			err := rpc.Notify(ctx, session.Conn().RPC(), acp.MethodSessionUpdate, map[string]any{
				"sessionId": req.SessionID, "update": map[string]any{"sessionUpdate": "agent_message_chunk"},
			})
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, err
		})
	},
	// sends what only newer schemas have
	"modern": func() {
		serveFake(nil, func(ctx context.Context, session *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			err := rpc.Notify(ctx, session.RPC(), acp.MethodSessionUpdate, map[string]any{
				"sessionId": req.SessionID, "modern": true,
				"update": map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": "Hi"}},
			})
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, err
		})
	},
	// says where it is
	"lost": func() {
		serveFake(nil, func(ctx context.Context, session *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			dir, err := os.Getwd()
			if err != nil {
				return nil, err
			}
			err = session.Update(ctx, acp.AgentMessageText("I am in "+dir))
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, err
		})
	},
	// has whole command lines run
	"terse": func() {
		serveFake(nil, func(ctx context.Context, session *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			terminal, err := session.CreateTerminal(ctx, &acp.CreateTerminalRequest{Command: "echo abc | tr a-z A-Z"})
			if err != nil {
				return nil, acp.Public(err)
			}
			if _, err := terminal.Wait(ctx); err != nil {
				return nil, err
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, terminal.Close(ctx)
		})
	},
	// writes and runs without asking, whatever the client offers
	"pushy": func() {
		serveFake(nil, func(ctx context.Context, session *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			dir, err := os.Getwd()
			if err != nil {
				return nil, err
			}
			_, wrote := rpc.Call[acp.WriteTextFileResponse](ctx, session.RPC(), acp.MethodWriteTextFile,
				&acp.WriteTextFileRequest{SessionID: req.SessionID, Path: filepath.Join(dir, "written"), Content: "x"})
			self, err := os.Executable()
			if err != nil {
				return nil, err
			}
			_, ran := rpc.Call[acp.CreateTerminalResponse](ctx, session.RPC(), acp.MethodCreateTerminal, &acp.CreateTerminalRequest{
				SessionID: req.SessionID, Command: self, Env: []acp.EnvVariable{{Name: runAs, Value: "touch"}},
			})
			err = session.Update(ctx, acp.AgentMessageText(fmt.Sprintf("wrote: %v, ran: %v\n", wrote == nil, ran == nil)))
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, err
		})
	},
	// is the command that pushy runs
	"touch": func() {
		if err := os.WriteFile("touched", nil, 0o600); err != nil {
			panic(err)
		}
	},
	// puts what a terminal obeys, and lines like those of the client, wherever it can
	"loud": func() {
		fmt.Fprint(os.Stderr, hostile)
		serveFake(nil, func(ctx context.Context, session *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			about := acp.ToolCallRef(hostile, acp.WithTitle(hostile), acp.WithContent(acp.ToolText(hostile)))
			_, err := session.RequestPermission(ctx, about, acp.RejectOnce(hostile, hostile))
			if err != nil {
				return nil, err
			}
			if err := session.Update(ctx, acp.AgentMessageText(hostile)); err != nil {
				return nil, err
			}
			return nil, acp.ErrInvalidParams.WithMessagef("%s", hostile)
		})
	},
	// dies in the middle of a turn
	"mortal": func() {
		serveFake(nil, func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error) {
			fmt.Fprintln(os.Stderr, "alas")
			os.Exit(3)
			return nil, nil
		})
	},
	// refuses every other prompt
	"moody": func() {
		n := 0
		serveFake(nil, func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error) {
			if n++; n%2 == 1 {
				return nil, acp.ErrInvalidParams.WithMessagef("not today")
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		})
	},
	// speaks a version of the future
	"futuristic": func() {
		serveFake(&acp.AgentOptions{
			Initialize: func(_ context.Context, _ *acp.InitializeRequest, res *acp.InitializeResponse) error {
				res.ProtocolVersion = 99
				return nil
			},
		}, nil)
	},
	// can only be authenticated in a terminal
	"terminal-only": func() {
		serveFake(&acp.AgentOptions{
			Initialize: func(_ context.Context, _ *acp.InitializeRequest, res *acp.InitializeResponse) error {
				res.AuthMethods = []acp.AuthMethod{acp.NewAuthMethodTerminal(acp.AuthMethodTerminal{ID: "t", Name: "Terminal"})}
				return nil
			},
		}, nil)
	},
	// wants a login in a terminal
	"login": loginAgent,
	// loses its authentication after the first prompt
	"forgetful": func() {
		authenticated := 0
		methods := []acp.AuthMethod{acp.NewAuthMethodAgent(acp.AuthMethodAgent{ID: "a", Name: "Again"})}
		runFake(&acp.AgentOptions{AuthMethods: methods}, acp.AgentHandlers{
			Authenticate: func(context.Context, *acp.AgentConn, *acp.AuthenticateRequest) (*acp.AuthenticateResponse, error) {
				authenticated++
				return nil, nil
			},
			NewSession: newSession,
			Prompt: func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error) {
				if authenticated--; authenticated < 0 {
					authenticated = 0
					return nil, acp.ErrAuthRequired
				}
				return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
			},
		})
	},
}

// serveFake serves an agent whose sessions are all the same. A nil prompt must not be reached.
func serveFake(opts *acp.AgentOptions, prompt func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error)) {
	h := acp.AgentHandlers{NewSession: newSession, Prompt: prompt}
	if prompt == nil {
		h.Prompt = func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error) {
			panic("prompted")
		}
		h.NewSession = func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			fmt.Fprintln(os.Stderr, "session/new came")
			return nil, acp.ErrAuthRequired
		}
		h.Authenticate = func(context.Context, *acp.AgentConn, *acp.AuthenticateRequest) (*acp.AuthenticateResponse, error) {
			fmt.Fprintln(os.Stderr, "authenticate came")
			return nil, nil
		}
	}
	runFake(opts, h)
}

func runFake(opts *acp.AgentOptions, h acp.AgentHandlers) {
	if err := acp.ServeAgent(context.Background(), acp.Stdio(), h, opts); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func newSession(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
	return &acp.NewSessionResponse{SessionID: "s1"}, nil
}

// patience bounds what should happen soon.
const patience = 2 * time.Minute

// process is a client that runs.
type process struct {
	*exec.Cmd
	stdin  io.WriteCloser
	stderr bytes.Buffer // to be looked at after the end

	mu     sync.Mutex
	stdout bytes.Buffer
	more   chan struct{}
}

// Write takes what the client prints.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.more)
	p.more = make(chan struct{})
	return p.stdout.Write(b)
}

// await waits until the client has printed a text.
func (p *process) await(t *testing.T, text string) {
	t.Helper()
	timeout := time.After(patience)
	for {
		p.mu.Lock()
		got, more := p.stdout.String(), p.more
		p.mu.Unlock()
		if strings.Contains(got, text) {
			return
		}
		select {
		case <-more:
		case <-timeout:
			t.Fatalf("waited in vain for %q, got %q", text, got)
		}
	}
}

// start starts a client in a directory of its own.
func start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	tier.Need(t, tier.Normal)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: exec.Command(self, args...), more: make(chan struct{})}
	p.Dir = t.TempDir()
	p.Env = append(os.Environ(), append(env, runAs+"=client", "GORACE=atexit_sleep_ms=0")...)
	p.Stdout, p.Stderr = p, &p.stderr
	if p.stdin, err = p.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(2*patience, func() { p.Process.Kill() })
	t.Cleanup(func() {
		timer.Stop()
		p.stdin.Close()
		p.Wait() // an error when the test has waited already
		if t.Failed() {
			t.Logf("the client printed:\n%s\nand to standard error:\n%s", p.stdout.String(), p.stderr.String())
		}
	})
	return p
}

// with is the command line of an agent of this binary.
func with(t *testing.T, role string) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{"--", "env", runAs + "=" + role, self}
}

// reference is the command line of the reference agent.
func reference(t *testing.T, args ...string) []string {
	t.Helper()
	return append([]string{"--", exampleAgent, "-state", t.TempDir()}, args...)
}

// finish waits for the end of the client, and returns what it printed and its exit status.
func (p *process) finish(t *testing.T) (string, int) {
	t.Helper()
	p.stdin.Close()
	err := p.Wait()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return p.stdout.String(), p.ProcessState.ExitCode()
}

// inOrder checks that texts occur one after the other.
func inOrder(t *testing.T, got string, want ...string) {
	t.Helper()
	rest := got
	for _, w := range want {
		_, after, ok := strings.Cut(rest, w)
		if !ok {
			t.Fatalf("%q does not come in its place in\n%s", w, got)
		}
		rest = after
	}
}

var lastLine = regexp.MustCompile(`(?m)^\d+ messages, 0 findings\n\z`)

// The demonstration shows what it is there to show.
func TestDemo(t *testing.T) {
	t.Parallel()
	demo, err := filepath.Abs("testdata/demo.txt")
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, nil, append([]string{"-script", demo, "-warnings"}, reference(t)...)...)
	got, status := p.finish(t)
	if status != 0 || !lastLine.MatchString(got) {
		t.Errorf("ended with status %d and\n%s", status, got)
	}
	inOrder(t, got,
		"plan:\n  [>] Think about it\n  [ ] Edit a file\n",
		"~ The user wants something.",
		"* Edit notes.txt (edit): pending",
		"+ The agent was here.",
		"→ Allow",
		"* Edit notes.txt: in_progress",
		"* Edit notes.txt: completed",
		"* Run `echo Hello from the terminal` (execute): pending",
		"→ Allow",
		"  | Hello from the terminal\n",
		"* Run `echo Hello from the terminal`: completed",
		"[x] Answer",
		"stopReason: end_turn",
		"The agent was here.",
		"* Read notes.txt: completed",
		"stopReason: end_turn",
		"→ Reject",
		"* Edit notes.txt: failed",
		"stopReason: end_turn",
		"On and on it goes.",
		"cancelling",
		"stopReason: cancelled",
	)
	written, err := os.ReadFile(filepath.Join(p.Dir, "notes.txt"))
	if err != nil || string(written) != "The agent was here.\n" {
		t.Errorf("the file holds %q, %v", written, err)
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	p := start(t, nil, append([]string{"-check", "-allow", "-p", "edit a.txt", "-p", "edit b.txt"}, reference(t)...)...)
	got, status := p.finish(t)
	inOrder(t, got, "> edit a.txt", "→ Allow", "> edit b.txt", "→ Allow", "messages, 0 findings")
	if status != 0 {
		t.Errorf("ended with status %d", status)
	}
	p = start(t, nil, append([]string{"-reject", "-p", "edit a.txt"}, reference(t)...)...)
	got, status = p.finish(t)
	inOrder(t, got, "→ Reject", "stopReason: end_turn\n")
	if status != 0 || strings.Contains(got, "messages") {
		t.Errorf("ended with status %d and\n%s", status, got)
	}
}

func TestInteractive(t *testing.T) {
	t.Parallel()
	p := start(t, nil, append([]string{"-check"}, reference(t)...)...)
	say := func(text string) {
		t.Helper()
		if _, err := io.WriteString(p.stdin, text); err != nil {
			t.Fatal(err)
		}
	}
	say("edit a.txt\n")
	p.await(t, "number: ")
	say("nonsense\n3\n")
	p.await(t, "→ Reject")
	say("\nedit a.txt\n")
	p.await(t, "stopReason: end_turn\n> ")
	say("1\n")
	p.await(t, "→ Allow")
	say("goodbye") // the last line needs no end
	got, status := p.finish(t)
	inOrder(t, got, "* Edit a.txt: failed", "stopReason: end_turn", "* Edit a.txt: completed", "You said: goodbye", "0 findings")
	if status != 0 {
		t.Errorf("ended with status %d", status)
	}
}

// Without somebody to ask, a request is answered as cancelled.
func TestNobodyToAsk(t *testing.T) {
	t.Parallel()
	p := start(t, nil, append([]string{"-check", "-p", "edit a.txt"}, reference(t)...)...)
	got, status := p.finish(t)
	inOrder(t, got, "* Edit a.txt: failed", "stopReason: cancelled", "0 findings")
	if status != 0 {
		t.Errorf("ended with status %d", status)
	}
}

func needsSignals(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("processes cannot be interrupted one by one")
	}
}

func (p *process) interrupt(t *testing.T) {
	t.Helper()
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
}

func TestPRM14_InterruptCancelsTheTurn(t *testing.T) {
	t.Parallel()
	needsSignals(t)
	p := start(t, nil, append([]string{"-check", "-p", "Write a very long song", "-p", "hello"}, reference(t)...)...)
	p.await(t, "On and on")
	p.interrupt(t)
	got, status := p.finish(t)
	inOrder(t, got, "cancelling", "stopReason: cancelled", "You said: hello", "stopReason: end_turn", "0 findings")
	if status != 0 {
		t.Errorf("ended with status %d", status)
	}
}

// PRM-8, PRM-9: what the agent asks for is answered, and shown as cancelled.
func TestPRM8_PRM9_InterruptWhileAsked(t *testing.T) {
	t.Parallel()
	needsSignals(t)
	p := start(t, nil, append([]string{"-check", "-p", "edit a.txt"}, reference(t)...)...)
	p.await(t, "number: ")
	p.interrupt(t)
	p.await(t, "stopReason: ") // the end of the input would be an answer, too
	got, status := p.finish(t)
	inOrder(t, got, "cancelling", "* Edit a.txt: cancelled", "* Edit a.txt: failed", "stopReason: cancelled", "0 findings")
	if status != 0 {
		t.Errorf("ended with status %d", status)
	}
}

func TestSecondInterruptQuits(t *testing.T) {
	t.Parallel()
	needsSignals(t)
	p := start(t, nil, append([]string{"-p", "stop"}, with(t, "stubborn")...)...)
	p.await(t, "Never!")
	p.interrupt(t)
	p.await(t, "cancelling")
	p.interrupt(t)
	if got, status := p.finish(t); status != 0 || strings.Contains(got, "stopReason") {
		t.Errorf("ended with status %d and\n%s", status, got)
	}
}

func TestInterruptWithoutATurnQuits(t *testing.T) {
	t.Parallel()
	needsSignals(t)
	p := start(t, nil, reference(t)...)
	p.await(t, "> ")
	p.interrupt(t)
	p.Wait()
	if status := p.ProcessState.ExitCode(); status != 0 {
		t.Errorf("ended with status %d", status)
	}
}

func TestAuthenticates(t *testing.T) {
	t.Parallel()
	p := start(t, nil, append([]string{"-check", "-p", "hello"}, reference(t, "-require-auth")...)...)
	got, status := p.finish(t)
	inOrder(t, got, "authenticating: Log in", "You said: hello", "0 findings")
	if status != 0 {
		t.Errorf("ended with status %d", status)
	}
}

// AUT-11: a session that has lost its authentication is authenticated again, once.
func TestAUT11_AuthenticatesAgain(t *testing.T) {
	t.Parallel()
	p := start(t, nil, append([]string{"-check", "-p", "hello"}, with(t, "forgetful")...)...)
	got, status := p.finish(t)
	inOrder(t, got, "authenticating: Again", "stopReason: end_turn", "0 findings")
	if status != 0 {
		t.Errorf("ended with status %d", status)
	}
}

// AUT-2: a terminal method is not for authenticate.
func TestAUT2_TerminalMethodsAreNotCalled(t *testing.T) {
	p := start(t, nil, append([]string{"-p", "hello"}, with(t, "terminal-only")...)...)
	if _, status := p.finish(t); status != 1 {
		t.Errorf("ended with status %d", status)
	}
	inOrder(t, p.stderr.String(), "session/new came", "client: ", "(-32000)")
	if strings.Contains(p.stderr.String(), "authenticate came") {
		t.Error("authenticate came")
	}
}

// INI-10: a version that is not ours ends it.
func TestINI10_OtherVersions(t *testing.T) {
	p := start(t, nil, append([]string{"-p", "hello"}, with(t, "futuristic")...)...)
	if _, status := p.finish(t); status != 1 {
		t.Errorf("ended with status %d", status)
	}
	inOrder(t, p.stderr.String(), "client: ", "version 99")
	if strings.Contains(p.stderr.String(), "session/new came") {
		t.Error("session/new came")
	}
}

func TestFindingsFail(t *testing.T) {
	p := start(t, nil, append([]string{"-check", "-p", "hello"}, with(t, "sloppy")...)...)
	got, status := p.finish(t)
	inOrder(t, got, "FINDING agent → client: INI-6 MUST: session/update: /update: missing property \"content\"", "stopReason: end_turn", "messages, 1 findings (1 MUST, 0 SHOULD, 0 advice)\n")
	if status != 1 {
		t.Errorf("ended with status %d", status)
	}
}

// Warnings are findings only for those who want them.
func TestWarnings(t *testing.T) {
	t.Parallel()
	p := start(t, nil, append([]string{"-check", "-p", "hello"}, with(t, "modern")...)...)
	if got, status := p.finish(t); status != 0 || !lastLine.MatchString(got) {
		t.Errorf("ended with status %d and\n%s", status, got)
	}
	p = start(t, nil, append([]string{"-check", "-warnings", "-p", "hello"}, with(t, "modern")...)...)
	got, status := p.finish(t)
	inOrder(t, got, `unknown member "modern"`, "messages, 2 findings (1 MUST, 1 SHOULD, 0 advice)")
	if status != 1 {
		t.Errorf("ended with status %d", status)
	}
}

// The agent starts in the session's directory, wherever the client is; its program is found from there.
func TestAgentStartsInTheRoot(t *testing.T) {
	tier.Need(t, tier.Normal)
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, nil, append([]string{"-root", root, "-p", "hello"}, with(t, "lost")...)...)
	got, _ := p.finish(t)
	inOrder(t, got, "I am in "+root+"\n", "stopReason: end_turn")

	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(here, exampleAgent)
	if err != nil {
		t.Skip(err) // on another volume
	}
	command, err := agentCommand(config{workspace: workspace{root: root}, command: []string{relative, "-x"}})
	if err != nil || command.Dir != root || command.Program != exampleAgent || len(command.Args) != 1 {
		t.Errorf("got %v, %v", command, err)
	}
	if _, err := agentCommand(config{workspace: workspace{root: root}, command: []string{"no-such-agent"}}); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// Whole command lines are run, unless the user forbids it.
func TestShell(t *testing.T) {
	needsSignals(t) // the line is one for a Unix shell
	p := start(t, nil, append([]string{"-check", "-p", "hello"}, with(t, "terse")...)...)
	got, _ := p.finish(t)
	inOrder(t, got, "  | ABC\n", "stopReason: end_turn", "0 findings")
	p = start(t, nil, append([]string{"-shell=false", "-p", "hello"}, with(t, "terse")...)...)
	if got, status := p.finish(t); status != 1 || strings.Contains(got, "ABC") {
		t.Errorf("ended with status %d and\n%s", status, got)
	}
	inOrder(t, p.stderr.String(), "no such executable")
}

// Who rejects everything has no file written and no command run, also by agents that do not ask.
func TestReject(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("reject: hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	allowing := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(allowing, []byte("allow: hello\ncancel: hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args   []string
		want   string
		status int
	}{
		"-reject":     {[]string{"-reject", "-p", "hello"}, "wrote: false, ran: false", 0},
		"in a script": {[]string{"-script", script}, "wrote: false, ran: false", 0},
		// The agent asks for what the client has not stated, and a script checks.
		"-reject before the script": {[]string{"-reject", "-script", allowing}, "wrote: false, ran: false", 1},
		"-allow":                    {[]string{"-allow", "-p", "hello"}, "wrote: true, ran: true", 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, nil, append(test.args, with(t, "pushy")...)...)
			got, status := p.finish(t)
			inOrder(t, got, test.want, "stopReason: end_turn")
			if status != test.status {
				t.Errorf("ended with status %d", status)
			}
			files, err := os.ReadDir(p.Dir)
			if err != nil || strings.Contains(test.want, "false") && len(files) > 0 {
				t.Errorf("there are %v, %v", files, err)
			}
		})
	}
}

// Nothing of what an agent sends reaches the terminal as it is: neither on standard output nor on standard error.
func TestHostileText(t *testing.T) {
	p := start(t, nil, append([]string{"-check", "-reject", "-p", "hello"}, with(t, "loud")...)...)
	got, status := p.finish(t)
	checkPlain(t, got)
	checkPlain(t, p.stderr.String())
	inOrder(t, got, `? hello\x1b[2J`, `→ hello\x1b[2J`, `< hello\x1b[2J`)
	inOrder(t, p.stderr.String(), `agent: hello\x1b[2J`, "\nclient: ", `hello\x1b[2J`)
	if status != 1 {
		t.Errorf("ended with status %d", status)
	}
}

func TestAgentsThatDie(t *testing.T) {
	t.Parallel()
	p := start(t, nil, append([]string{"-check", "-p", "hello"}, with(t, "mortal")...)...)
	got, status := p.finish(t)
	inOrder(t, p.stderr.String(), "alas", "client: ", "exit status 3")
	inOrder(t, got, "FINDING client → agent: PRM-5 MUST: session/prompt request", "never answered", "1 findings")
	if status != 1 {
		t.Errorf("ended with status %d", status)
	}
}

// An error that a prompt is answered with ends a script, but not a conversation.
func TestRefusedPrompts(t *testing.T) {
	t.Parallel()
	p := start(t, nil, append([]string{"-p", "hello", "-p", "hello"}, with(t, "moody")...)...)
	if got, status := p.finish(t); status != 1 || strings.Contains(got, "stopReason") {
		t.Errorf("ended with status %d and\n%s", status, got)
	}
	inOrder(t, p.stderr.String(), "client: ", "not today")
	p = start(t, nil, with(t, "moody")...)
	if _, err := io.WriteString(p.stdin, "hello\nhello\n"); err != nil {
		t.Fatal(err)
	}
	got, status := p.finish(t)
	inOrder(t, got, "error: ", "not today", "stopReason: end_turn")
	if status != 0 {
		t.Errorf("ended with status %d", status)
	}
}

func TestCommandLines(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("# nothing but\n\n  # comments\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args string
		want string // in the error
		ok   func(config) bool
	}{
		{args: "", want: "usage"},
		{args: "-allow -reject -- agent", want: "exclude"},
		{args: "-script /no/such/file -- agent", want: "no such file"},
		{args: "-load a -resume b -- agent", want: "exclude"},
		{args: "-mcp nothing -- agent", want: flag.ErrHelp.Error()},
		{args: "-add x -mcp a=https://example.com/ -- agent", ok: func(c config) bool {
			return len(c.more) == 1 && filepath.IsAbs(c.more[0]) && len(c.servers) == 1
		}},
		{args: "-nope -- agent", want: flag.ErrHelp.Error()},
		{args: "-- agent -x", ok: func(c config) bool { return c.interactive && !c.check && len(c.command) == 2 && filepath.IsAbs(c.root) }},
		{args: "agent -x", ok: func(c config) bool { return len(c.command) == 2 }},
		{args: "-p one -reject -p two -- agent", ok: func(c config) bool {
			return !c.interactive && len(c.plays) == 2 && c.plays[0] == play{text: "one", policy: policyReject}
		}},
		{args: "-script " + script + " -- agent", ok: func(c config) bool { return !c.interactive && c.check && len(c.plays) == 0 }},
	} {
		c, err := parse(strings.Fields(test.args), io.Discard)
		if test.ok != nil && (err != nil || !test.ok(c)) {
			t.Errorf("%q: got %+v, %v", test.args, c, err)
		}
		if test.ok == nil && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%q: got %v, want %q", test.args, err, test.want)
		}
	}
}

func TestScripts(t *testing.T) {
	got, err := parseScript("allow: one: two\n\n# no\nreject:two\r\n  cancel : three\n")
	if err == nil {
		t.Errorf("a blank before the colon: got %+v", got)
	}
	got, err = parseScript("allow: one: two\n\n# no\nreject:two\r\n  cancel: three\n:mode code")
	want := []play{{text: "one: two", policy: policyAllow}, {text: "two", policy: policyReject}, {text: "three", policy: policyAllow, cancel: true}, {text: ":mode code"}}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if _, err := parseScript("allow: one\nmaybe: two"); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("got %v", err)
	}
}
