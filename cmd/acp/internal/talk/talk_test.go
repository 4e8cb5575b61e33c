package talk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/launch"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/acp/reconnect"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/report"
	"github.com/acpgo/sdk/internal/test/must"
)

// runAs makes the test binary run another program.
const runAs = "TALK_TEST_RUN_AS"

// exampleAgent is the reference agent, built for the tests.
var exampleAgent string

func TestMain(m *testing.M) {
	if os.Getenv(runAs) == "mortal" {
		if err := mortal(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	dir, err := os.MkdirTemp("", "talk")
	if err == nil {
		exampleAgent = filepath.Join(dir, "agent.exe")
		build := exec.Command("go", "build", "-o", exampleAgent, "../../../../internal/test/actor/actor")
		build.Stderr = os.Stderr
		err = build.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "building the agent:", err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// mortal is an agent that dies when told to, and can load its session.
func mortal() error {
	return acp.ServeAgent(context.Background(), acp.Stdio(), acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: "s"}, nil
		},
		LoadSession: func(ctx context.Context, s *acp.AgentSession, _ *acp.LoadSessionRequest) (*acp.LoadSessionResponse, error) {
			err := errors.Join(s.Update(ctx, acp.UserMessageText("Die.")), s.Update(ctx, acp.AgentMessageText("I was dying.")))
			return &acp.LoadSessionResponse{}, err
		},
		Prompt: func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			text := req.Prompt[0].Text()
			switch text {
			case "Die.":
				fmt.Fprintln(os.Stderr, "alas")
				os.Exit(3)
			case "Leave it open.":
				if _, err := s.CreateTerminal(ctx, &acp.CreateTerminalRequest{Command: "sleep", Args: []string{"1000"}}); err != nil {
					return nil, err
				}
				if _, err := s.RequestPermission(ctx, acp.ToolCallUpdate{ToolCallID: "t"}, acp.AllowOnce("yes", "Yes")); err != nil {
					return nil, err
				}
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, s.Update(ctx, acp.AgentMessageText("You said: "+text))
		},
	}, &acp.AgentOptions{Info: acp.Implementation{Name: "mortal", Version: "1"}})
}

// served returns an agent in this process.
func served(t *testing.T, handlers acp.AgentHandlers, opts *acp.AgentOptions) Agent {
	t.Helper()
	if opts == nil {
		opts = &acp.AgentOptions{}
	}
	opts.Info = acp.Implementation{Name: "served", Version: "1"}
	return Agent{Name: "served", Trusted: true, Connect: func(context.Context) (acp.Transport, error) {
		ours, theirs := acp.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			if err := acp.ServeAgent(context.Background(), theirs, handlers, opts); err != nil {
				t.Errorf("the agent: %v", err)
			}
		}()
		t.Cleanup(func() { <-done })
		return ours, nil
	}}
}

// open opens a client, and judges its connection.
func open(t *testing.T, o *Options) *Client {
	t.Helper()
	if o.Cwd == "" {
		dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
		o.Cwd = dir
	}
	if o.Findings == nil {
		o.Findings = func(f conformance.Finding) { t.Errorf("%s", f) }
	}
	c := must.Get(Open(t.Context(), o))(t)
	t.Cleanup(func() { must.Do(t, c.Close()) })
	return c
}

func example(t *testing.T, args ...string) Agent {
	t.Helper()
	return Agent{Name: "example", Command: launch.New(exampleAgent, append([]string{"-state", t.TempDir()}, args...)...)}
}

func newSession(t *testing.T, c *Client) *Session {
	t.Helper()
	s := must.Get(c.NewSession(t.Context(), ""))(t)
	return s
}

// said returns what the agent has said.
func said(s *view.State) string {
	var b strings.Builder
	for item := range s.Snapshot().Items() {
		if m, ok := item.Variant.(*view.Message); ok && m.Role == view.Agent {
			b.WriteString(m.Text())
		}
	}
	return b.String()
}

// A conversation with the reference agent: rules and the user decide, terminals show their output, the recording is
// complete.
func TestConversation(t *testing.T) {
	rules, err := policy.New([]policy.Rule{{Effect: policy.Allow, Kinds: []acp.ToolKind{acp.ToolKindEdit}, Paths: []string{"./**"}}}, nil)
	must.Do(t, err)
	var file bytes.Buffer
	var mu sync.Mutex
	var asked []*Question
	var decided []Event
	var output []acp.TerminalID
	c := open(t, &Options{
		Agent: example(t), Rules: rules, Record: &file,
		Ask: func(_ context.Context, q *Question) (acp.PermissionOptionID, error) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, q)
			return optionOf(q, acp.PermissionOptionKindAllowOnce), nil
		},
		Event: func(e Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.Kind == Decided {
				decided = append(decided, e)
			}
		},
		Output: func(_ acp.SessionID, id acp.TerminalID) {
			mu.Lock()
			defer mu.Unlock()
			output = append(output, id)
		},
	})
	s := newSession(t, c)
	res, err := s.Prompt(t.Context(), acp.TextBlock("edit notes.txt, then run `echo Hello`."))
	if err != nil || res.StopReason != acp.StopReasonEndTurn {
		t.Fatalf("%v, %v", res, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(asked) != 1 || asked[0].Call.Kind != acp.ToolKindExecute || asked[0].Call.ToolCallID == "" || !strings.Contains(asked[0].Call.Title, "echo Hello") || asked[0].Decision.Why == "" {
		t.Errorf("asked: %v", asked)
	}
	if len(decided) != 2 || decided[0].Decision.By.Effect != policy.Allow || decided[1].Decision.By.Effect != policy.Ask || decided[1].Decision.Option == nil {
		t.Errorf("decided: %+v", decided)
	}
	if len(output) == 0 {
		t.Fatal("no output of a terminal")
	}
	term, ok := c.Terminal(output[0])
	if !ok || strings.TrimSpace(string(term.Output)) != "Hello" || !term.Ended || !strings.Contains(term.Command, "echo") {
		t.Errorf("terminal: %+v %s", term, term.Output)
	}
	if text, err := os.ReadFile(filepath.Join(c.opts.Cwd, "notes.txt")); err != nil || len(text) == 0 {
		t.Errorf("notes.txt: %q, %v", text, err)
	}
	must.Do(t, c.Close())
	checkRecording(t, file.Bytes(), `"exit":{"code":0`)
}

// checkRecording checks that a recording has no findings.
func checkRecording(t *testing.T, file []byte, end string) {
	t.Helper()
	r := must.Get(report.New(report.Options{}))(t)
	must.Do(t, r.Source("recording").Check(bytes.NewReader(file), nil))
	if r.Findings() > 0 || !r.Readable() || !strings.Contains(string(file), end) {
		var text strings.Builder
		err := r.WriteText(&text, nil)
		t.Errorf("%s %v\n%s", text.String(), err, file)
	}
}

// agentHandlers returns an agent with one session whose prompts call a function.
func agentHandlers(prompt func(ctx context.Context, s *acp.AgentSession, text string) error) acp.AgentHandlers {
	return acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: "s"}, nil
		},
		Prompt: func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			text := req.Prompt[0].Text()
			if err := prompt(ctx, s, text); err != nil {
				return nil, err
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
	}
}

// The agent dies during a turn: the error has the exit status and the agent's last output, the session is loaded again,
// its history is present once, and the recording has both connections.
func TestAgentDies(t *testing.T) {
	restored := make(chan struct{})
	var file bytes.Buffer
	var mu sync.Mutex
	var kinds []Kind
	c := open(t, &Options{Agent: mortalAgent(t), Record: &file,
		Findings: func(f conformance.Finding) {
			if f.Rule != "PRM-5" { // the prompt was not answered
				t.Errorf("%s", f)
			}
		},
		Event: func(e Event) {
			mu.Lock()
			kinds = append(kinds, e.Kind)
			mu.Unlock()
			if e.Kind == reconnect.Restored && e.Session == "" {
				close(restored)
			}
		}})
	s := newSession(t, c)
	_, err := s.Prompt(t.Context(), acp.TextBlock("Die."))
	interrupted, ok := errors.AsType[*reconnect.InterruptedError](err)
	if !ok || !strings.Contains(interrupted.Error(), "exit status 3") || !strings.Contains(interrupted.Error(), "alas") {
		t.Errorf("error: %v", err)
	}
	if exit, ok := errors.AsType[*acp.ExitError](err); !ok || exit.State.ExitCode() != 3 {
		t.Errorf("error: %v", err)
	}
	<-restored
	if res, err := s.Prompt(t.Context(), acp.TextBlock("Still there?")); err != nil || res.StopReason != acp.StopReasonEndTurn {
		t.Errorf("%v, %v", res, err)
	}
	if got := said(s.State()); got != "I was dying.You said: Still there?" {
		t.Errorf("said %q", got)
	}
	must.Do(t, c.Close())
	mu.Lock()
	defer mu.Unlock()
	for _, want := range []Kind{Stderr, reconnect.Lost, reconnect.Waiting, reconnect.Replaying, reconnect.Restored} {
		if !slices.Contains(kinds, want) {
			t.Errorf("no event %s in %v", want, kinds)
		}
	}
	if n := strings.Count(file.String(), `{"recording":1`); n != 2 || strings.Count(file.String(), `"exit":{"code":3`) != 1 {
		t.Errorf("%d recordings: %s", n, file.String())
	}
}

func mortalAgent(t *testing.T) Agent {
	t.Helper()
	self := must.Get(os.Executable())(t)
	return Agent{Name: "mortal", Command: &launch.Command{Program: self, Env: map[string]string{runAs: "mortal"}}}
}

// What is open when the agent dies ends: questions and commands.
func TestDeathEndsAll(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs sleep")
	}
	asked := make(chan error, 1)
	ended := make(chan acp.TerminalID, 10)
	kill := make(chan struct{}, 1)
	var c *Client
	c = open(t, &Options{Agent: mortalAgent(t), NoReconnect: true, Findings: func(conformance.Finding) {},
		Ask: func(ctx context.Context, _ *Question) (acp.PermissionOptionID, error) {
			kill <- struct{}{}
			<-ctx.Done()
			asked <- context.Cause(ctx)
			return "", context.Cause(ctx)
		},
		Output: func(_ acp.SessionID, id acp.TerminalID) {
			if term, _ := c.Terminal(id); term.Ended {
				ended <- id
			}
		},
	})
	s := newSession(t, c)
	go func() {
		<-kill
		c.mu.Lock()
		process := c.process.Process
		c.mu.Unlock()
		_ = process.Kill()
	}()
	_, err := s.Prompt(t.Context(), acp.TextBlock("Leave it open."))
	if exit, ok := errors.AsType[*acp.ExitError](err); !ok || exit.State.Success() {
		t.Errorf("error: %v", err)
	}
	if err := <-asked; !errors.Is(err, acp.ErrClosed) {
		t.Errorf("the question ended with %v", err)
	}
	<-ended
}

// Without reconnecting, the Client is over when the agent dies.
func TestNoReconnect(t *testing.T) {
	c := open(t, &Options{Agent: mortalAgent(t), NoReconnect: true, Findings: func(conformance.Finding) {}})
	s := newSession(t, c)
	if _, err := s.Prompt(t.Context(), acp.TextBlock("Die.")); !errors.Is(err, acp.ErrClosed) {
		t.Errorf("error: %v", err)
	}
	if err := c.Wait(); !errors.Is(err, errNoReconnect) {
		t.Errorf("over: %v", err)
	}
	if n := c.starts.Load(); n != 2 { // the second was refused
		t.Errorf("%d starts", n)
	}
}

// The error of an agent that does not start gives the reason.
func TestStartError(t *testing.T) {
	for name, test := range map[string]struct {
		command *launch.Command
		words   []string
	}{
		"missing": {launch.New("no-such-program-anywhere"), []string{"agent missing does not start", "no-such-program-anywhere", "not found"}},
		"exits":   {launch.New("sh", "-c", "echo 'no key' >&2; exit 4"), []string{"agent exits does not start", "exit status 4", "no key"}},
		"node": {launch.New("sh", "-c", "echo 'npm error code E404' >&2; echo 'npm error 404 Not Found - GET https://registry.npmjs.org/nothing' >&2; exit 1"),
			[]string{"agent node does not start", string(launch.NotPublished)}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(t.Context(), &Options{Agent: Agent{Name: name, Command: test.command}, Cwd: t.TempDir()})
			if _, ok := errors.AsType[*StartError](err); !ok {
				t.Fatalf("error: %v", err)
			}
			for _, word := range test.words {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("no %q in %v", word, err)
				}
			}
		})
	}
}

// The error for an agent at a URL does not say that it does not start.
func TestStartErrorRemote(t *testing.T) {
	refused := errors.New("connection refused")
	_, err := Open(t.Context(), &Options{Cwd: t.TempDir(), Agent: Agent{Name: "far", Connect: func(context.Context) (acp.Transport, error) {
		return nil, refused
	}}, NoReconnect: true})
	if !errors.Is(err, refused) || !strings.HasPrefix(fmt.Sprint(err), "agent far cannot be reached: ") {
		t.Error(err)
	}
}

// A command of a cancelled turn ends even if the agent never ends it; one of an earlier turn continues until the
// session is closed.
func TestTerminalsEnd(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs sleep")
	}
	made := make(chan acp.TerminalID, 2)
	handlers := agentHandlers(func(ctx context.Context, s *acp.AgentSession, text string) error {
		res, err := s.CreateTerminal(ctx, &acp.CreateTerminalRequest{Command: "sleep", Args: []string{"1000"}})
		if err != nil {
			return err
		}
		made <- res.ID()
		if text == "wait" {
			<-ctx.Done()
		}
		return nil
	})
	ended := make(chan acp.TerminalID, 10)
	var c *Client
	c = open(t, &Options{Agent: served(t, handlers, nil), Output: func(_ acp.SessionID, id acp.TerminalID) {
		if term, _ := c.Terminal(id); term.Ended {
			ended <- id
		}
	}})
	s := newSession(t, c)
	must.Get(s.Prompt(t.Context(), acp.TextBlock("start")))(t)
	first := <-made
	done := make(chan error)
	go func() {
		_, err := s.Prompt(t.Context(), acp.TextBlock("wait"))
		done <- err
	}()
	second := <-made
	s.Cancel()
	must.Do(t, <-done)
	if id := <-ended; id != second {
		t.Errorf("%s ended, not %s", id, second)
	}
	if term, _ := c.Terminal(first); term.Ended {
		t.Error("the command of the earlier turn has ended")
	}
	must.Do(t, c.memory.Add(s.ID(), policy.Rule{Effect: policy.Allow, Tools: []string{"look"}}))
	must.Do(t, s.Close(t.Context()))
	if id := <-ended; id != first {
		t.Errorf("%s ended, not %s", id, first)
	}
	if rules, err := c.memory.Rules(s.ID()); len(rules) > 0 || err != nil {
		t.Errorf("the closed session has the rules %v, %v", rules, err)
	}
	if c.owner(s.ID()) != nil {
		t.Error("the closed session is still known")
	}
}

// Sessions are listed page by page, loaded, resumed and deleted.
func TestSessions(t *testing.T) {
	agent := example(t)
	c := open(t, &Options{Agent: agent})
	var ids []acp.SessionID
	for i := range 3 {
		s := newSession(t, c)
		must.Get(s.Prompt(t.Context(), acp.TextBlock(fmt.Sprint("Hello ", i))))(t)
		ids = append(ids, s.ID())
	}
	cwd := c.opts.Cwd
	must.Do(t, c.Close())
	c = open(t, &Options{Agent: agent, Cwd: cwd})
	found := 0
	for info, err := range c.Sessions(t.Context(), cwd) {
		must.Do(t, err)
		if slices.Contains(ids, info.SessionID) {
			found++
		}
	}
	if found != len(ids) {
		t.Errorf("%d sessions found", found)
	}
	if runtime.GOOS != "windows" { // where links need a privilege
		link := filepath.Join(t.TempDir(), "link")
		must.Do(t, os.Symlink(cwd, link))
		again := map[acp.SessionID]int{}
		for info, err := range c.Sessions(t.Context(), link) {
			must.Do(t, err)
			again[info.SessionID]++
		}
		if len(again) != found || again[ids[0]] != 1 {
			t.Errorf("through a link: %v", again)
		}
	}
	s, err := c.Load(t.Context(), ids[0], "")
	must.Do(t, err)
	if got := said(s.State()); !strings.Contains(got, "Hello 0") {
		t.Errorf("loaded: %q", got)
	}
	if s, err = c.Resume(t.Context(), ids[1], ""); err != nil {
		t.Fatal(err)
	}
	if got := said(s.State()); got != "" {
		t.Errorf("resumed: %q", got)
	}
	must.Do(t, c.Delete(t.Context(), ids[2]))
	if _, err := c.Load(t.Context(), ids[2], ""); err == nil {
		t.Error("a deleted session was loaded")
	}
	if err := c.Rename(t.Context(), ids[0], "New"); !errors.Is(err, acp.ErrUnsupported) {
		t.Errorf("rename: %v", err)
	}
}

// A subagent's session shares the directory of the session that it works for, and its terminals end when that session's
// turn is cancelled.
func TestSubagent(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs sleep")
	}
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	ready := make(chan error, 1)
	agent := served(t, agentHandlers(func(ctx context.Context, s *acp.AgentSession, _ string) error {
		err := s.Update(ctx, acp.NewSessionUpdateSubagentUpdate(acp.SubagentUpdate{SessionID: "child"}))
		child := s.Conn().Session("child")
		if err == nil {
			_, err = child.RequestPermission(ctx, acp.ToolCallUpdate{
				ToolCallID: "t", Title: acp.Some("Edit"), Kind: acp.Some(acp.ToolKindEdit), RawInput: acp.Raw(map[string]string{"path": filepath.Join(dir, "a.txt")}),
			}, acp.AllowOnce("yes", "Yes"))
		}
		if err == nil {
			_, err = child.CreateTerminal(ctx, &acp.CreateTerminalRequest{Command: "sleep", Args: []string{"1000"}})
		}
		ready <- err
		<-ctx.Done()
		return ctx.Err()
	}), &acp.AgentOptions{Experimental: acp.FeatureSubagents})
	rules, err := policy.New([]policy.Rule{{Effect: policy.Allow, Kinds: []acp.ToolKind{acp.ToolKindEdit}, Paths: []string{"./**"}}}, nil)
	must.Do(t, err)
	decided := make(chan *Decision, 1)
	ended := make(chan acp.SessionID, 10)
	var c *Client
	c = open(t, &Options{
		Agent: agent, Plans: true, Subagents: true, Cwd: dir, Rules: rules, Findings: func(conformance.Finding) {},
		Event: func(e Event) {
			if e.Kind == Decided {
				decided <- e.Decision
			}
		},
		Output: func(session acp.SessionID, id acp.TerminalID) {
			if term, _ := c.Terminal(id); term.Ended {
				ended <- session
			}
		},
	})
	s := newSession(t, c)
	done := make(chan error, 1)
	go func() {
		_, err := s.Prompt(t.Context(), acp.TextBlock("go"))
		done <- err
	}()
	must.Do(t, <-ready)
	if d := <-decided; d.By.Effect != policy.Allow {
		t.Errorf("decided: %v", d.By)
	}
	s.Cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if id := <-ended; id != "child" {
		t.Errorf("a terminal of %s has ended", id)
	}
}

// What the client advertises to the agent. Experimental capabilities are for user interfaces that show what they allow.
func TestAdvertised(t *testing.T) {
	for _, test := range []struct {
		name string
		opts Options
		want string
	}{
		{"all", Options{
			Plans: true, Subagents: true, TerminalLogin: true,
			Form: func(context.Context, *Elicitation) (*acp.CreateElicitationResponse, error) { return nil, nil },
			URL:  func(context.Context, *Elicitation) (*acp.CreateElicitationResponse, error) { return nil, nil },
		}, `{"_meta":{"terminal_output":true},"auth":{"terminal":true},"elicitation":{"form":{},"url":{}},
			"fs":{"readTextFile":true,"writeTextFile":true},"plan":{},
			"session":{"compaction":{},"configOptions":{"boolean":{}},"notices":{}},"subagents":{},"terminal":true}`},
		{"none", Options{NoFiles: true, NoTerminals: true},
			`{"session":{"compaction":{},"configOptions":{"boolean":{}},"notices":{}}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var sent struct {
				Method string `json:"method"`
				Params struct {
					ClientCapabilities any `json:"clientCapabilities"`
				} `json:"params"`
			}
			test.opts.Agent = example(t)
			test.opts.Line = func(from conformance.Side, line []byte) {
				if from == conformance.Client && sent.Method == "" {
					if err := json.Unmarshal(line, &sent); err != nil {
						t.Error(err)
					}
				}
			}
			open(t, &test.opts)
			var want any
			must.Do(t, json.Unmarshal([]byte(test.want), &want))
			if got := sent.Params.ClientCapabilities; sent.Method != "initialize" || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %s\nwant: %s", sent.Method, acp.Raw(got), acp.Raw(want))
			}
		})
	}
}

// Each write and each command of an agent elsewhere is a question like a permission request, which ends with its turn.
func TestAsksLocal(t *testing.T) {
	dir := t.TempDir()
	write := func(ctx context.Context, s *acp.AgentSession) error {
		_, err := s.WriteTextFile(ctx, &acp.WriteTextFileRequest{Path: filepath.Join(dir, "a.txt"), Content: "new"})
		return err
	}
	run := func(ctx context.Context, s *acp.AgentSession) error {
		terminal, err := s.CreateTerminal(ctx, &acp.CreateTerminalRequest{Command: "no-such-program", Args: []string{"x"}})
		if err == nil {
			err = terminal.Close(ctx)
		}
		return err
	}
	for _, test := range []struct {
		name string
		do   func(context.Context, *acp.AgentSession) error
		kind acp.PermissionOptionKind // "": the turn is cancelled meanwhile
		want string                   // the agent's error
		call string                   // in the view
	}{
		{"written", write, acp.PermissionOptionKindAllowOnce, "", "edit completed"},
		{"not written", write, acp.PermissionOptionKindRejectOnce, "not permitted", "edit failed"},
		{"run", run, acp.PermissionOptionKindAllowOnce, "no such executable", "execute completed"},
		{"not run", run, acp.PermissionOptionKindRejectOnce, "not permitted", "execute failed"},
		{"cancelled", write, "", "cancel", "edit failed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			failed := make(chan error, 1)
			agent := served(t, agentHandlers(func(ctx context.Context, s *acp.AgentSession, _ string) error {
				failed <- test.do(context.WithoutCancel(ctx), s)
				return nil
			}), nil)
			agent.Trusted = false
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			client := open(t, &Options{Agent: agent, Cwd: dir, RemoteFiles: true, RemoteTerminals: true, Ask: func(ctx context.Context, q *Question) (acp.PermissionOptionID, error) {
				if test.kind == "" {
					cancel()
					<-ctx.Done()
					return "", context.Cause(ctx)
				}
				return optionOf(q, test.kind), nil
			}})
			session := must.Get(client.NewSession(t.Context(), ""))(t)
			if _, err := session.Prompt(ctx, acp.TextBlock("do it")); err != nil && test.kind != "" {
				t.Fatal(err)
			}
			if err := <-failed; (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("the agent gets %v, want %q", err, test.want)
			}
			for item := range client.States().Of(session.ID()).Snapshot().Items() {
				if call, ok := item.Variant.(*view.ToolCall); ok {
					if got := fmt.Sprintf("%s %s", call.Call.Kind, call.Call.Status); got != test.call {
						t.Errorf("the view has %s, want %s", got, test.call)
					}
				}
			}
		})
	}
}

// What was asked in a turn, also for a subagent, cannot be allowed when the agent has ended the turn.
func TestQuestionsEndWithTheirTurn(t *testing.T) {
	dir := t.TempDir()
	permission := func(ctx context.Context, s *acp.AgentSession) error {
		outcome, err := s.RequestPermission(ctx, acp.ToolCallUpdate{ToolCallID: "c"}, acp.AllowOnce("y", "Yes"))
		if _, selected := outcome.Selected(); err == nil && !selected {
			err = errors.New("cancelled")
		}
		return err
	}
	for name, ask := range map[string]func(context.Context, *acp.AgentSession) error{
		"permission": permission,
		"subagent": func(ctx context.Context, s *acp.AgentSession) error {
			if err := s.Update(ctx, acp.NewSessionUpdateSubagentUpdate(acp.SubagentUpdate{SessionID: "child"})); err != nil {
				return err
			}
			return permission(ctx, s.Conn().Session("child"))
		},
		"unknown session": func(ctx context.Context, s *acp.AgentSession) error {
			return permission(ctx, s.Conn().Session("unknown"))
		},
		"write": func(ctx context.Context, s *acp.AgentSession) error {
			_, err := s.WriteTextFile(ctx, &acp.WriteTextFileRequest{Path: filepath.Join(dir, "a.txt"), Content: "new"})
			return err
		},
		"command": func(ctx context.Context, s *acp.AgentSession) error {
			_, err := s.CreateTerminal(ctx, &acp.CreateTerminalRequest{Command: "touch", Args: []string{filepath.Join(dir, "a.txt")}})
			return err
		},
		"form": func(ctx context.Context, s *acp.AgentSession) error {
			res, err := s.Conn().CreateElicitation(ctx, &acp.CreateElicitationRequest{
				Message: "m", Variant: &acp.CreateElicitationRequestForm{Variant: &acp.ElicitationFormModeSession{SessionID: s.ID()}},
			})
			if err == nil {
				if _, accepted := res.Variant.(*acp.CreateElicitationResponseAccept); !accepted {
					err = errors.New("not accepted")
				}
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked, failed := make(chan struct{}), make(chan error, 1)
			var question context.Context
			agent := served(t, agentHandlers(func(ctx context.Context, s *acp.AgentSession, _ string) error {
				go func() { failed <- ask(context.WithoutCancel(ctx), s) }()
				<-asked
				return nil
			}), &acp.AgentOptions{Experimental: acp.AllFeatures})
			agent.Trusted = false
			client := open(t, &Options{Agent: agent, Cwd: dir, RemoteFiles: true, RemoteTerminals: true, Subagents: true,
				Findings: func(conformance.Finding) {}, // the agent is at fault
				Ask: func(ctx context.Context, q *Question) (acp.PermissionOptionID, error) {
					question = ctx
					close(asked)
					<-ctx.Done()
					return optionOf(q, acp.PermissionOptionKindAllowOnce), nil
				},
				Form: func(ctx context.Context, _ *Elicitation) (*acp.CreateElicitationResponse, error) {
					question = ctx
					close(asked)
					<-ctx.Done()
					res := acp.NewCreateElicitationResponseAccept(acp.ElicitationAcceptAction{})
					return &res, nil
				},
			})
			must.Get(newSession(t, client).Prompt(t.Context(), acp.TextBlock("go")))(t)
			if question.Err() == nil {
				t.Error("the turn is over, and the question still waits")
			}
			if err := <-failed; err == nil {
				t.Error("it was allowed after the end of the turn")
			}
			if _, err := os.Stat(filepath.Join(dir, "a.txt")); err == nil {
				t.Error("the file was written")
			}
		})
	}
}

// An answer that the user gives when the agent has just withdrawn its request does not count.
func TestAnswerOfEndedRequest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, over, err := askUser(ctx, &Client{alive: t.Context()}, "s", func(context.Context, string) (string, error) {
		cancel()
		return "yes", nil
	}, "really?")
	if !over || err != nil {
		t.Errorf("it counts: over %v, %v", over, err)
	}
}

// Experimental methods are called, and experimental updates are shown.
func TestExperimental(t *testing.T) {
	handlers := agentHandlers(nil)
	handlers.Prompt = func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		err := s.Update(ctx, acp.NewSessionUpdateSubagentUpdate(acp.SubagentUpdate{SessionID: "child"}))
		return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn, Usage: acp.Some(acp.Usage{TotalTokens: 7})}, err
	}
	handlers.ResumeSession = func(context.Context, *acp.AgentSession, *acp.ResumeSessionRequest) (*acp.ResumeSessionResponse, error) {
		return &acp.ResumeSessionResponse{}, nil
	}
	handlers.SetSessionMode = func(context.Context, *acp.AgentSession, *acp.SetSessionModeRequest) (*acp.SetSessionModeResponse, error) {
		return &acp.SetSessionModeResponse{}, nil
	}
	handlers.ForkSession = func(_ context.Context, s *acp.AgentSession, req *acp.ForkSessionRequest) (*acp.ForkSessionResponse, error) {
		return &acp.ForkSessionResponse{SessionID: req.SessionID + "-fork", Modes: acp.Some(acp.SessionModeState{
			CurrentModeID: "m", AvailableModes: []acp.SessionMode{{ID: "m", Name: "M"}},
		})}, nil
	}
	handlers.SetSessionTitle = func(ctx context.Context, s *acp.AgentSession, req *acp.SetSessionTitleRequest) (*acp.SetSessionTitleResponse, error) {
		return &acp.SetSessionTitleResponse{}, s.Update(ctx, acp.TitleUpdate(req.Title))
	}
	agent := served(t, handlers, &acp.AgentOptions{Experimental: acp.AllFeatures})
	c := open(t, &Options{Agent: agent, Plans: true, Subagents: true, MCPServers: []acp.MCPServer{
		acp.NewMCPServerStdio(acp.MCPServerStdio{Name: "m", Command: filepath.Join(t.TempDir(), "m"), Args: []string{}, Env: []acp.EnvVariable{}}),
	}})
	s := newSession(t, c)
	must.Get(s.Prompt(t.Context(), acp.TextBlock("go")))(t)
	subagents, tokens := 0, uint64(0)
	for item := range s.State().Snapshot().Items() {
		tokens = s.State().Snapshot().Turn(item.Turn).Usage.Value().TotalTokens
		if _, ok := item.Variant.(*view.Subagent); ok {
			subagents++
		}
	}
	if subagents != 1 || tokens != 7 {
		t.Errorf("%d subagents, %d tokens", subagents, tokens)
	}
	if err := c.Rename(t.Context(), "s", "New title"); err != nil || s.Title() != "New title" {
		t.Errorf("rename: %v, %q", err, s.Title())
	}
	fork := must.Get(c.Fork(t.Context(), "s", ""))(t)
	if fork.ID() != "s-fork" || fork.State().Snapshot().Modes.Value().CurrentModeID != "m" {
		t.Errorf("forked: %s %v", fork.ID(), fork.State().Snapshot().Modes)
	}
	if _, err := fork.Prompt(t.Context(), acp.TextBlock("go")); err != nil {
		t.Error(err)
	}
}

// The error of a session lists the login methods; the agent's own login is a call.
func TestLogin(t *testing.T) {
	c := open(t, &Options{Agent: example(t, "-require-auth"), TerminalLogin: true, Findings: func(conformance.Finding) {}})
	_, err := c.NewSession(t.Context(), "")
	login, ok := errors.AsType[*LoginError](err)
	if !ok || len(login.Methods) == 0 || !errors.Is(err, acp.ErrAuthRequired) {
		t.Fatalf("error: %v", err)
	}
	kinds := map[LoginKind]acp.AuthMethodID{}
	for _, m := range login.Methods {
		kinds[m.Kind] = m.ID
	}
	if kinds[TerminalLogin] == "" || !strings.Contains(err.Error(), "in the terminal") {
		t.Errorf("methods: %+v", login.Methods)
	}
	must.Do(t, c.Login(t.Context(), kinds[AgentLogin], launch.Terminal{}))
	newSession(t, c)
	if err := c.Login(t.Context(), "nothing", launch.Terminal{}); !errors.Is(err, acp.ErrInvalidParams) {
		t.Errorf("unknown login: %v", err)
	}
}

// A login in a terminal restarts the agent.
func TestTerminalLogin(t *testing.T) {
	c := open(t, &Options{Agent: example(t, "-require-auth"), TerminalLogin: true, NoReconnect: true, Findings: func(conformance.Finding) {}})
	var out bytes.Buffer
	for _, m := range c.LoginMethods() {
		if m.Kind == TerminalLogin {
			if got := m.String(); !strings.HasPrefix(got, "in the terminal, with the arguments -login") {
				t.Error(got)
			}
			if err := c.Login(t.Context(), m.ID, launch.Terminal{Stdin: strings.NewReader("Ada\n"), Stdout: &out, Stderr: &out}); err != nil {
				t.Fatalf("%v\n%s", err, out.String())
			}
		}
	}
	newSession(t, c)
	if n := c.starts.Load(); n != 2 {
		t.Errorf("%d starts", n)
	}
}

// The error explains which environment variables an agent needs.
func TestEnvironmentLogin(t *testing.T) {
	var method acp.AuthMethod
	must.Do(t, method.UnmarshalJSON([]byte(`{"type":"env_var","id":"key","name":"API key"}`)))
	handlers := agentHandlers(nil)
	handlers.NewSession = func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
		return nil, acp.ErrAuthRequired
	}
	agent := served(t, handlers, &acp.AgentOptions{AuthMethods: []acp.AuthMethod{method}})
	connect := agent.Connect
	agent.Connect = func(ctx context.Context) (acp.Transport, error) {
		inner, err := connect(ctx)
		return adding{inner, `"id":"key"`, `,"vars":[{"name":"MY_KEY"},{"name":"MY_URL","optional":true}],"link":"https://keys.example"`}, err
	}
	c := open(t, &Options{Agent: agent, Findings: func(conformance.Finding) {}})
	_, err := c.NewSession(t.Context(), "")
	if err == nil || !strings.Contains(err.Error(), "set MY_KEY, MY_URL (optional)") || !strings.Contains(err.Error(), "https://keys.example") {
		t.Errorf("error: %v", err)
	}
	if err := c.Login(t.Context(), "key", launch.Terminal{}); !errors.Is(err, acp.ErrUnsupported) || !strings.Contains(err.Error(), "MY_KEY") {
		t.Errorf("login: %v", err)
	}
}

// adding is a transport that inserts text after another text in what is read.
type adding struct {
	acp.Transport
	behind, text string
}

func (a adding) Connect(ctx context.Context) (rpc.Stream, error) {
	stream, err := a.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return rpc.Wrap(stream, rpc.Wrapper{Read: func(next func() ([]byte, error), _ func()) ([]byte, error) {
		line, err := next()
		return bytes.Replace(line, []byte(a.behind), []byte(a.behind+a.text), 1), err
	}}), nil
}

// Forms and URLs; those of a cancelled turn end with it.
func TestElicitation(t *testing.T) {
	asked := make(chan struct{}, 1)
	completed := make(chan acp.ElicitationID, 1)
	ended := make(chan error, 1)
	c := open(t, &Options{Agent: example(t),
		Form: func(ctx context.Context, e *Elicitation) (*acp.CreateElicitationResponse, error) {
			if e.Form == nil || len(e.Form.Properties) == 0 || e.Session == "" || e.Message == "" {
				t.Errorf("form: %+v", e)
			}
			asked <- struct{}{}
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return nil, context.Cause(ctx)
		},
		URL: func(_ context.Context, e *Elicitation) (*acp.CreateElicitationResponse, error) {
			if e.URL == "" || e.ID == "" {
				t.Errorf("URL: %+v", e)
			}
			res := acp.NewCreateElicitationResponseAccept(acp.ElicitationAcceptAction{})
			return &res, nil
		},
		Event: func(e Event) {
			if e.Kind == URLCompleted {
				completed <- e.Elicitation
			}
		},
	})
	s := newSession(t, c)
	go func() {
		<-asked
		s.Cancel()
	}()
	res, err := s.Prompt(t.Context(), acp.TextBlock("form"))
	if err != nil || res.StopReason != acp.StopReasonCancelled {
		t.Fatalf("%v, %v", res, err)
	}
	// The agent may cancel its request before the session ends the form.
	if got := <-ended; !errors.Is(got, ErrCancelled) && !errors.Is(got, rpc.ErrRequestCancelled) {
		t.Errorf("the form ended with %v", got)
	}
	if res, err = s.Prompt(t.Context(), acp.TextBlock("link")); err != nil || res.StopReason != acp.StopReasonEndTurn {
		t.Fatalf("%v, %v", res, err)
	}
	if id := <-completed; id == "" {
		t.Error("nothing was completed")
	}
}

// Modes and options are set, and shown immediately.
func TestSettings(t *testing.T) {
	c := open(t, &Options{Agent: example(t)})
	s := newSession(t, c)
	if err := s.Choose(t.Context(), "mode", "auto"); err != nil || s.State().Snapshot().Modes.Value().CurrentModeID != "auto" {
		t.Errorf("mode: %v, %v", err, s.State().Snapshot().Modes)
	}
	if err := s.Choose(t.Context(), "mode", "none"); !errors.Is(err, ErrNoSetting) {
		t.Errorf("wrong mode: %v", err)
	}
	settings := Settings(s.State().Snapshot())
	i := slices.IndexFunc(settings, func(s Setting) bool { return s.Boolean })
	if i < 0 {
		t.Fatal("the agent has no option that is on or off")
	}
	other := map[string]string{"true": "OFF", "false": "On"}[settings[i].Current]
	must.Do(t, s.ChooseOption(t.Context(), strings.ToUpper(settings[i].Name), other))
	if now := Settings(s.State().Snapshot()); now[i].Current == settings[i].Current {
		t.Error("the option was not changed")
	}
	for option, value := range map[string]string{settings[i].ID: "perhaps", "nothing": "true"} {
		if err := s.ChooseOption(t.Context(), option, value); !errors.Is(err, ErrNoSetting) {
			t.Errorf("%s=%s: %v", option, value, err)
		}
	}
	if i, err := find("option", "b", []Choice{{ID: "b", Name: "First"}, {ID: "c", Name: "B"}}); i != 0 || err != nil {
		t.Errorf("an id is not preferred to a name: %d, %v", i, err)
	}
	if err := s.Set(t.Context(), &Setting{Choice: Choice{ID: "nothing"}, Boolean: true}, "true"); err == nil {
		t.Error("the agent's error is lost")
	}
	must.Do(t, c.Close())
	if err := s.Choose(t.Context(), "mode", "ask"); !errors.Is(err, acp.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

// A failure to write a recording is reported once, and the conversation continues.
func TestRecordFails(t *testing.T) {
	warnings := make(chan error, 10)
	c, err := Open(t.Context(), &Options{Agent: served(t, agentHandlers(func(context.Context, *acp.AgentSession, string) error { return nil }), nil),
		Cwd: t.TempDir(), Record: failing{}, Event: func(e Event) { warnings <- e.Err }})
	must.Do(t, err)
	s := newSession(t, c)
	if _, err := s.Prompt(t.Context(), acp.TextBlock("go")); err != nil {
		t.Error(err)
	}
	if err := c.Close(); !errors.Is(err, errFull) {
		t.Errorf("close: %v", err)
	}
	if err := <-warnings; !errors.Is(err, errFull) || len(warnings) > 0 {
		t.Errorf("%v, and %d more", err, len(warnings))
	}
}

var errFull = errors.New("the disk is full")

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errFull }

// Kill does not wait for an agent that does not end.
func TestKill(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs sh")
	}
	c := open(t, &Options{Agent: example(t)})
	newSession(t, c)
	begun := time.Now()
	must.Do(t, c.Kill())
	t.Logf("killed in %v", time.Since(begun))
	if state := c.process.ProcessState; state == nil || state.Success() {
		t.Errorf("the process ended with %v", state)
	}
}

// A session with its own directories can access these and no others.
func TestOwnFolders(t *testing.T) {
	var read error
	handlers := agentHandlers(func(ctx context.Context, s *acp.AgentSession, text string) error {
		_, read = s.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: text})
		return nil
	})
	ours, other := t.TempDir(), t.TempDir()
	for _, dir := range []string{ours, other} {
		must.Do(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	}
	c := open(t, &Options{Agent: served(t, handlers, nil), Cwd: ours})
	s := must.Get(c.NewSession(t.Context(), other))(t)
	for dir, want := range map[string]bool{ours: false, other: true} {
		if _, err := s.Prompt(t.Context(), acp.TextBlock(filepath.Join(dir, "file"))); err != nil || (read == nil) != want {
			t.Errorf("%s: %v, %v", dir, read, err)
		}
	}
}

// Adapters send the output of their own terminals in the _meta of tool calls, to clients that advertise that they show
// it.
func TestAgentTerminals(t *testing.T) {
	meta := func(text string) (m acp.Meta) {
		must.Do(t, json.Unmarshal([]byte(text), &m))
		return m
	}
	var taken acp.TerminalID
	var advertised bool
	agent := served(t, agentHandlers(func(ctx context.Context, s *acp.AgentSession, _ string) error {
		var err error
		if advertised, err = s.Conn().Initialized().ClientCapabilities.Meta.Get("terminal_output", new(bool)); err != nil {
			return err
		}
		created, err := s.CreateTerminal(ctx, &acp.CreateTerminalRequest{Command: "echo", Args: []string{"real"}})
		if err != nil {
			return err
		}
		taken = created.ID()
		if _, err := created.Wait(ctx); err != nil {
			return err
		}
		if err := created.Close(ctx); err != nil {
			return err
		}
		for _, update := range []acp.SessionUpdate{
			acp.NewSessionUpdateToolCall(acp.ToolCall{ToolCallID: "t", Title: "Run", Meta: meta(`{"terminal_info":{"terminal_id":"own","command":"go test","cwd":"/w"}}`)}),
			acp.NewSessionUpdateToolCallUpdate(acp.ToolCallUpdate{ToolCallID: "t", Meta: meta(`{"terminal_output":{"terminal_id":"own","data":"one\n"}}`)}),
			acp.NewSessionUpdateToolCallUpdate(acp.ToolCallUpdate{ToolCallID: "t", Meta: meta(`{"terminal_output":{"terminal_id":"` + string(taken) + `","data":"forged\n"}}`)}),
			acp.NewSessionUpdateToolCallUpdate(acp.ToolCallUpdate{ToolCallID: "t", Meta: meta(`{"terminal_output":["own"],"terminal_exit":7,"terminal_info":{"terminal_id":"own","cancel":true}}`)}),
			acp.NewSessionUpdateToolCallUpdate(acp.ToolCallUpdate{ToolCallID: "t", Status: acp.Some(acp.ToolCallStatusCompleted),
				Meta: meta(`{"terminal_output":{"terminal_id":"own","data":"two\n"},"terminal_exit":{"terminal_id":"own","exit_code":3,"signal":null}}`)}),
		} {
			if err := s.Update(ctx, update); err != nil {
				return err
			}
		}
		return nil
	}), nil)
	c := open(t, &Options{Agent: agent})
	s := newSession(t, c)
	must.Get(s.Prompt(t.Context(), acp.TextBlock("go")))(t)
	if !advertised {
		t.Error("the agent was not told that its terminals are shown")
	}
	own, ok := c.Terminal("own")
	if !ok || string(own.Output) != "one\ntwo\n" || !own.Ended || own.Exit.ExitCode.Value() != 3 || own.Command != "go test" {
		t.Errorf("the agent's own terminal: %+v, %v", own, ok)
	}
	if real, _ := c.Terminal(taken); string(real.Output) != "real\n" {
		t.Errorf("the client's terminal has %q", real.Output)
	}
}

// What "always" remembers is said in words that no text of an agent can continue.
func TestAlwaysInWords(t *testing.T) {
	edit := []acp.ToolKind{acp.ToolKindEdit}
	lines := func(lines ...string) policy.Rule { return policy.Rule{Cwds: []string{"/p"}, Lines: lines} }
	for want, a := range map[string]Always{
		"`go run main.go` in /p, for this session":                         {Rule: lines("go run main.go")},
		"`sh -c 'a && b'` in /p, for this session":                         {Rule: lines(`["sh","-c","a && b"]`)},
		"exactly this, and nothing else, in /p, for this session":          {Rule: lines("ls` in /p, and `rm -rf ~")},
		"changing `a/b.go` in /p, for this session":                        {Rule: policy.Rule{Kinds: edit, Cwds: []string{"/p"}, Paths: []string{"/p/a/b.go"}}},
		"changing exactly these files in this directory, for this session": {Rule: policy.Rule{Kinds: edit, Cwds: []string{"/p\n"}, Paths: []string{"/a\n", "/b"}}},
		"using `/a`, from now on (kept in rules.json)":                     {Rule: policy.Rule{Kinds: []acp.ToolKind{"dance"}, Paths: []string{"/a"}}, File: "rules.json"},
		"the tool of this name, whatever its input, for this session":      {Rule: policy.Rule{Tools: []string{"t\u202e"}}},
	} {
		if got := a.sentence(); got != want {
			t.Errorf("%s: %q, want %q", a.Rule, got, want)
		}
	}
}

// optionOf returns the option of a kind.
func optionOf(q *Question, kind acp.PermissionOptionKind) acp.PermissionOptionID {
	return q.Options[slices.IndexFunc(q.Options, func(o acp.PermissionOption) bool { return o.Kind == kind })].OptionID
}
