package interop

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/acp/negotiate"
	"github.com/acpgo/sdk/conformance"
)

const greeting = "Good morning ✓\n"

// greetingRoot returns a directory that contains only a greeting.
func greetingRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "greeting.txt"), []byte(greeting), 0o600); err != nil {
		t.Fatal(err)
	}
	return root
}

// summaryV2 is the report of v2-client.mjs.
type summaryV2 struct {
	Agent       string
	StopReasons map[string]string
	States      map[string][]string
	Updates     map[string]int
	Text        map[string]string
	Echoed      map[string]bool
	ToolCalls   map[string]string
	Terminals   []struct {
		Output string
		Exit   int
	}
	Permissions map[string][]string
	Listed      bool
	Replayed    map[string]int
	Unknown     int
	Exit        any
}

// TestTypeScriptClientV2 drives agents with the TypeScript client of version 2 through a relay.
func TestTypeScriptClientV2(t *testing.T) {
	dir := installed.Dir(t)
	for _, test := range []struct {
		name, output string // what the terminal shows
		agent        func(t *testing.T) []string
	}{
		{"go", "greeting.txt\n", func(t *testing.T) []string { return []string{build(t, "dual/agent")} }},
		{"typescript", greeting, func(*testing.T) []string { return []string{"node", filepath.Join(dir, "v2-agent.mjs")} }},
	} {
		t.Run(test.name, func(t *testing.T) {
			trace := filepath.Join(t.TempDir(), "trace.jsonl")
			root := greetingRoot(t)
			var s summaryV2
			drive(t, filepath.Join(dir, "v2-client.mjs"), root, trace, test.agent(t), &s)
			keepClean(t, "v2-typescript-client-"+test.name, root, validate(t, trace, conformance.V2()))
			s.check(t, test.output)
		})
	}
}

func (s summaryV2) check(t *testing.T, output string) {
	t.Helper()
	same := func(what string, got, want any) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	same("stop reasons", s.StopReasons, map[string]string{"allow": "end_turn", "reject": "end_turn", "long": "cancelled"})
	same("states", s.States, map[string][]string{
		"allow":  {"running", "requires_action", "running", "idle"},
		"reject": {"running", "requires_action", "running", "idle"},
		"long":   {"running", "idle"},
	})
	same("messages echoed", s.Echoed, map[string]bool{"allow": true, "reject": true, "long": true})
	same("permissions", s.Permissions, map[string][]string{"allow": {"allow_once"}, "reject": {"reject_once"}})
	for _, kind := range []string{
		"user_message", "agent_message_chunk", "plan_update", "tool_call_update", "terminal_update", "terminal_output_chunk",
	} {
		if s.Updates[kind] == 0 || s.Replayed[kind] == 0 {
			t.Errorf("%d updates %s, %d replayed: want some of both", s.Updates[kind], kind, s.Replayed[kind])
		}
	}
	for _, prompt := range []string{"allow", "reject", "long"} {
		if s.Text[prompt] == "" {
			t.Errorf("%s: no text", prompt)
		}
	}
	if len(s.Terminals) != 1 || s.Terminals[0].Output != output || s.Terminals[0].Exit != 0 {
		t.Errorf("got terminals %+v, want one that shows %q", s.Terminals, output)
	}
	for _, status := range []string{"completed", "failed"} {
		found := false
		for _, got := range s.ToolCalls {
			found = found || got == status
		}
		if !found {
			t.Errorf("no tool call is %s: %v", status, s.ToolCalls)
		}
	}
	if s.Agent == "" || !s.Listed || s.Unknown != -32002 || s.Exit != 0.0 {
		t.Errorf("got %+v", s)
	}
}

// goClientV2 is the state of this module's client of version 2.
type goClientV2 struct {
	mu      sync.Mutex
	choose  string        // the option
	asked   chan struct{} // if set, a question closes it and is left open
	updates []v2draft.SessionUpdate
}

func (c *goClientV2) handlers() v2draft.ClientHandlers {
	return v2draft.ClientHandlers{RequestPermission: c.requestPermission, SessionUpdate: c.sessionUpdate}
}

func (c *goClientV2) requestPermission(
	ctx context.Context, _ *v2draft.ClientSession, req *v2draft.RequestPermissionRequest,
) (*v2draft.RequestPermissionResponse, error) {
	c.mu.Lock()
	asked, chosen := c.asked, v2draft.PermissionOptionID(c.choose)
	c.mu.Unlock()
	if asked != nil {
		close(asked)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &v2draft.RequestPermissionResponse{Outcome: v2draft.PermissionSelected(chosen)}, nil
}

func (c *goClientV2) sessionUpdate(_ context.Context, _ *v2draft.ClientSession, n *v2draft.UpdateSessionNotification) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.updates = append(c.updates, n.Update)
	return nil
}

// take returns the updates since the last call.
func (c *goClientV2) take() []v2draft.SessionUpdate {
	c.mu.Lock()
	defer c.mu.Unlock()
	updates := c.updates
	c.updates = nil
	return updates
}

// set sets how questions are answered.
func (c *goClientV2) set(choose string, asked chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.choose, c.asked = choose, asked
}

// seen is the sum of updates under the rules of version 2.
type seen struct {
	user, agent, thought string
	states               []string
	planned, done        int
	call                 v2draft.ToolCallUpdate
	terminal             bytes.Buffer
	exit                 int64
}

func text(blocks []v2draft.ContentBlock) (s string) {
	for _, b := range blocks {
		part, _ := b.Text()
		s += part
	}
	return s
}

func addUp(t *testing.T, updates []v2draft.SessionUpdate) (s seen) {
	t.Helper()
	s.exit = -1
	for _, u := range updates {
		switch u := u.Variant.(type) {
		case *v2draft.SessionUpdateUserMessage:
			s.user = text(u.Content.Value())
		case *v2draft.SessionUpdateAgentThought:
			s.thought = text(u.Content.Value())
		case *v2draft.SessionUpdateAgentMessage:
			s.agent = text(u.Content.Value())
		case *v2draft.SessionUpdateAgentMessageChunk:
			s.agent += text([]v2draft.ContentBlock{u.Content})
		case *v2draft.SessionUpdateStateUpdate:
			s.states = append(s.states, state(u))
		case *v2draft.SessionUpdatePlanUpdate:
			items, ok := u.Plan.Variant.(*v2draft.PlanUpdateContentItems)
			if !ok {
				t.Fatalf("got a plan %T", u.Plan.Variant)
			}
			s.planned, s.done = len(items.Entries), 0
			for _, entry := range items.Entries {
				if entry.Status == v2draft.PlanEntryStatusCompleted {
					s.done++
				}
			}
		case *v2draft.SessionUpdateToolCallUpdate:
			patch(&s.call.Title, u.Title)
			patch(&s.call.Status, u.Status)
			patch(&s.call.Content, u.Content)
		case *v2draft.SessionUpdateToolCallContentChunk:
			s.call.Content = v2draft.Some(append(s.call.Content.Value(), u.Content))
		case *v2draft.SessionUpdateTerminalUpdate:
			if status, ok := u.ExitStatus.Get(); ok {
				s.exit = status.ExitCode.Or(-1)
			}
		case *v2draft.SessionUpdateTerminalOutputChunk:
			data, err := base64.StdEncoding.DecodeString(u.Data)
			if err != nil {
				t.Error(err)
			}
			s.terminal.Write(data)
		default:
			t.Errorf("got an update %T", u)
		}
	}
	return s
}

// patch applies a member of an update: an omitted member changes nothing, and null clears it.
func patch[T any](member *v2draft.Opt[T], update v2draft.Opt[T]) {
	if !update.IsZero() {
		*member = update
	}
}

func state(u *v2draft.SessionUpdateStateUpdate) string {
	switch v := u.Variant.(type) {
	case *v2draft.StateUpdateRunning:
		return "running"
	case *v2draft.StateUpdateRequiresAction:
		return "requires_action"
	case *v2draft.StateUpdateIdle:
		return "idle " + v2draft.IdleStateUpdate(*v).StopReason()
	}
	return "unknown"
}

// TestTypeScriptAgentV2 drives the TypeScript agent of version 2 with this module's client.
func TestTypeScriptAgentV2(t *testing.T) {
	dir := installed.Dir(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	root := greetingRoot(t)
	c := &goClientV2{}
	command := exec.Command("node", filepath.Join(dir, "v2-agent.mjs"))
	command.Stderr = t.Output()
	var messages conformance.Recording
	defer func() { keepClean(t, "v2-typescript-agent", root, messages.Messages()) }()
	tap := conformance.Tap(t, conformance.Client, v2draft.Command(command), &conformance.TapOptions{
		Schema: conformance.V2(), OnMessage: messages.Add,
	})
	agent, err := v2draft.Connect(ctx, tap, c.handlers(), &v2draft.ClientOptions{
		Info: v2draft.Implementation{Name: "go-client", Version: "1.0.0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := agent.Close(); err != nil {
			t.Error(err)
		}
	}()
	session, err := agent.NewSession(ctx, &v2draft.NewSessionRequest{Cwd: v2draft.AbsolutePath(root)})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("allowed", func(t *testing.T) {
		c.set("allow", nil)
		turnV2(t, ctx, session, "Read it.", "end_turn")
		s := addUp(t, c.take())
		if s.user != "Read it." || s.agent != "I read the greeting. Done." || s.thought != "It must be in the file." {
			t.Errorf("got %q, %q, %q", s.user, s.agent, s.thought)
		}
		if diff := cmp.Diff([]string{"running", "requires_action", "running", "idle end_turn"}, s.states); diff != "" {
			t.Errorf("states: %s", diff)
		}
		if s.planned != 2 || s.done != 2 || s.terminal.String() != greeting || s.exit != 0 {
			t.Errorf("%d of %d planned are done, the terminal shows %q and ended with %d", s.done, s.planned, &s.terminal, s.exit)
		}
		if !s.call.Title.IsNull() || s.call.Status.Value() != v2draft.ToolCallStatusCompleted || len(s.call.Content.Value()) != 2 {
			t.Errorf("got the tool call %+v, want it completed, its title cleared, a terminal and a text in it", s.call)
		}
	})
	t.Run("rejected", func(t *testing.T) {
		c.set("reject", nil)
		turnV2(t, ctx, session, "Read it.", "end_turn")
		if s := addUp(t, c.take()); s.agent != "Then I do not." || s.call.Status.Value() != v2draft.ToolCallStatusFailed {
			t.Errorf("got %q, tool call %+v", s.agent, s.call)
		}
	})
	t.Run("cancelled", func(t *testing.T) { cancelledV2(t, ctx, c, session) })
	t.Run("lifecycle", func(t *testing.T) { lifecycleV2(t, ctx, c, agent, session, root) })
}

func turnV2(t *testing.T, ctx context.Context, session *v2draft.ClientSession, prompt, want string) {
	t.Helper()
	res, err := session.Prompt(ctx, v2draft.TextBlock(prompt))
	if err != nil {
		t.Fatal(err)
	}
	if got := res.Idle.StopReason(); got != want {
		t.Errorf("got stop reason %q, want %q", got, want)
	}
}

// cancelledV2 ends turns in the middle: with the turn, with a context, and while a question is open.
func cancelledV2(t *testing.T, ctx context.Context, c *goClientV2, session *v2draft.ClientSession) {
	ended := func(turn *v2draft.Turn) {
		t.Helper()
		res, err := turn.Result()
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Idle.StopReason(); got != "cancelled" {
			t.Errorf("got stop reason %q", got)
		}
	}
	turn := session.Stream(ctx, v2draft.TextBlock("Write a very long story."))
	chunks := 0
	for u := range turn.Updates() {
		if _, ok := u.Variant.(*v2draft.SessionUpdateAgentMessageChunk); !ok {
			continue
		}
		if chunks++; chunks == 3 {
			turn.Cancel()
		}
	}
	ended(turn)
	if chunks < 3 {
		t.Errorf("got %d chunks", chunks)
	}

	short, cancel := context.WithCancel(ctx)
	defer cancel()
	turn = session.Stream(short, v2draft.TextBlock("Write a very long story."))
	for u := range turn.Updates() {
		if _, ok := u.Variant.(*v2draft.SessionUpdateAgentMessageChunk); ok {
			cancel()
		}
	}
	ended(turn)

	asked := make(chan struct{})
	c.set("", asked)
	turn = session.Stream(ctx, v2draft.TextBlock("Ask me."))
	<-asked
	turn.Cancel()
	ended(turn)

	c.set("reject", nil)
	turnV2(t, ctx, session, "And the next turn?", "end_turn")
}

// lifecycleV2 lists, closes, resumes and deletes a session.
func lifecycleV2(t *testing.T, ctx context.Context, c *goClientV2, agent *v2draft.ClientConn, session *v2draft.ClientSession, root string) {
	listed := func() bool {
		for info, err := range agent.Sessions(ctx, "") {
			if err != nil {
				t.Fatal(err)
			}
			if info.SessionID == session.ID() {
				return info.Cwd == v2draft.AbsolutePath(root)
			}
		}
		return false
	}
	if !listed() {
		t.Error("the session is not listed")
	}
	if err := session.Close(ctx); err != nil {
		t.Error(err)
	}
	c.take()
	req := &v2draft.ResumeSessionRequest{SessionID: session.ID(), Cwd: v2draft.AbsolutePath(root)}
	if _, err := agent.ResumeSession(ctx, req); err != nil {
		t.Fatal(err)
	}
	if got := addUp(t, c.take()); got.user != "" || !slices.Equal(got.states, []string{"idle end_turn"}) {
		t.Errorf("got %+v without a replay, want only the state", got)
	}
	req.ReplayFrom = v2draft.Some(v2draft.NewReplayFromStart(v2draft.ReplayFromStart{}))
	again, err := agent.ResumeSession(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	if got := addUp(t, c.take()); got.user != "And the next turn?" || got.terminal.String() != greeting {
		t.Errorf("got %+v, want the whole history", got)
	}
	if err := again.Delete(ctx); err != nil {
		t.Error(err)
	}
	if listed() {
		t.Error("a deleted session is listed")
	}
	if _, err := agent.ResumeSession(ctx, req); !errors.Is(err, v2draft.ErrResourceNotFound) {
		t.Errorf("got %v for a deleted session, want %v", err, v2draft.ErrResourceNotFound)
	}
}

// TestTypeScriptNegotiation connects a client that prefers version 2 to TypeScript agents of both versions. The agent
// of version 1 learns from the same request which files and terminals the client serves.
func TestTypeScriptNegotiation(t *testing.T) {
	dir := installed.Dir(t)
	for script, want := range map[string]int{"agent.mjs": 1, "v2-agent.mjs": 2} {
		t.Run(script, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			root := greetingRoot(t)
			reads := make(chan string, 1)
			command := exec.Command("node", filepath.Join(dir, script))
			command.Stderr = t.Output()
			var messages conformance.Recording
			defer func() {
				keepClean(t, fmt.Sprintf("n%d-typescript-agent", want), root, messages.Messages())
			}()
			tap := conformance.Tap(t, conformance.Client, acp.Command(command), &conformance.TapOptions{
				Schema: conformance.Negotiated(conformance.V1(), conformance.V2()), OnMessage: messages.Add,
			})
			var v1 *acp.ClientConn
			var v2 *v2draft.ClientConn
			version, err := negotiate.Client{
				V1: func(ctx context.Context, transport acp.Transport) (err error) {
					v1, err = acp.Connect(ctx, transport, filesV1(reads), nil)
					return err
				},
				V2: func(ctx context.Context, transport acp.Transport) (err error) {
					v2, err = v2draft.Connect(ctx, transport, (&goClientV2{choose: "reject"}).handlers(), &v2draft.ClientOptions{
						Info: v2draft.Implementation{Name: "go-client", Version: "1.0.0"},
					})
					return err
				},
			}.Connect(ctx, tap)
			if err != nil || version != want {
				t.Fatalf("got version %d, %v, want %d", version, err, want)
			}
			if version == 2 {
				session, err := v2.NewSession(ctx, &v2draft.NewSessionRequest{Cwd: v2draft.AbsolutePath(root)})
				if err != nil {
					t.Fatal(err)
				}
				turnV2(t, ctx, session, "Read it.", "end_turn")
				if err := v2.Close(); err != nil {
					t.Error(err)
				}
				return
			}
			session, err := v1.NewSession(ctx, &acp.NewSessionRequest{Cwd: root})
			if err != nil {
				t.Fatal(err)
			}
			// Its request for permission gets no answer.
			turn(t, ctx, &goClient{}, session, "reject", acp.StopReasonCancelled)
			if got := <-reads; got != filepath.Join(root, "greeting.txt") {
				t.Errorf("the agent has read %q", got)
			}
			if err := v1.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// filesV1 returns handlers of version 1 that serve a missing file and refuse everything.
func filesV1(reads chan<- string) acp.ClientHandlers {
	return acp.ClientHandlers{
		ReadTextFile: func(_ context.Context, _ *acp.ClientSession, req *acp.ReadTextFileRequest) (*acp.ReadTextFileResponse, error) {
			reads <- req.Path
			return nil, acp.ErrResourceNotFound.WithData(map[string]string{"uri": "file://" + req.Path})
		},
		RequestPermission: func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionCancelled()}, nil
		},
	}
}
