package agentkit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// What a turn sends by any of its methods keeps its order, and the store has it in that order.
func TestTurnKeepsTheOrder(t *testing.T) {
	const rounds = 50
	store := open(t, t.TempDir())
	sessions := agentkit.NewSessions(agentkit.Config[state]{Store: store, Prompt: func(ctx context.Context, turn *agentkit.Turn[state], _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		message, thought := turn.NewMessage(ctx), turn.NewThought(ctx)
		for i := range rounds {
			fmt.Fprint(message, "m", i)
			if err := turn.Update(ctx, acp.ModeUpdate(acp.SessionModeID(fmt.Sprint(i)))); err != nil {
				return nil, err
			}
			fmt.Fprint(thought, "t", i)
			if err := turn.Update(ctx, acp.UpdatePlan()); err != nil {
				return nil, err
			}
			fmt.Fprint(message, "a", i)
			_, err := turn.RequestPermission(ctx, acp.ToolCallRef("x"), acp.AllowOnce("yes", "Yes"))
			if err != nil {
				return nil, err
			}
		}
		turn.AtEnd(func(ctx context.Context) error {
			_, err := fmt.Fprint(turn.NewMessage(ctx), "at the end")
			return err
		})
		return endTurn, nil
	}})
	var order []string
	theirs, ours := acp.Pipe()
	agent := must.Get(acp.StartAgent(t.Context(), theirs, sessions.Handlers(), sessions.Options(nil)))(t)
	conn, err := acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, ours, nil), acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
			order = append(order, line(n.Update))
			return nil
		},
		RequestPermission: func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			order = append(order, "asked")
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected("yes")}, nil
		},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := must.Get(conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/w"}))(t)
	must.Get(s.Prompt(t.Context(), acp.TextBlock("go")))(t)
	var want, kept []string
	for i := range rounds {
		want = append(want, fmt.Sprint("agent: m", i), fmt.Sprint("mode: ", i), fmt.Sprint("thought: t", i), "*acp.SessionUpdatePlan", fmt.Sprint("agent: a", i), "asked")
	}
	want = append(want, "agent: at the end", "title: go")
	wantLines(t, "the client was told", order, want...)
	must.Do(t, errors.Join(conn.Close(), agent.Wait()))
	sessions.Close()
	for u, err := range store.Updates(t.Context(), s.ID()) {
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, line(u))
	}
	stored := []string{"user: go"}
	for i, text := range want { // what is said in one message is stored as one
		text, isAgent := strings.CutPrefix(text, "agent: ")
		last := len(stored) - 1
		switch {
		case isAgent && i > 0 && strings.HasPrefix(stored[last], "agent: ") && text != "at the end":
			stored[last] += text
		case isAgent:
			stored = append(stored, "agent: "+text)
		case !strings.HasPrefix(text, "mode: ") && text != "asked" && !strings.HasPrefix(text, "title: "):
			stored = append(stored, text)
		}
	}
	wantLines(t, "the store has", kept, stored...)
}

// A turn closes what it leaves open, after what AtEnd does, and the store has that too.
func TestTurnClosesWhatIsOpen(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		t.Run(fmt.Sprint("cancelled ", cancelled), func(t *testing.T) {
			began := make(chan struct{})
			store := open(t, t.TempDir())
			sessions := agentkit.NewSessions(agentkit.Config[state]{Store: store, Prompt: func(ctx context.Context, turn *agentkit.Turn[state], _ *acp.PromptRequest) (*acp.PromptResponse, error) {
				call, err := turn.StartToolCall(ctx, "Tool", agentkit.WithToolCallID("c"))
				if err != nil {
					return nil, err
				}
				turn.AtEnd(func(context.Context) error {
					if call.State().Status == acp.ToolCallStatusFailed {
						t.Error("the call was closed before AtEnd")
					}
					return nil
				})
				if cancelled {
					close(began)
					<-ctx.Done()
				}
				return endTurn, nil
			}})
			c := connect(t, sessions, nil, nil)
			s := must.Get(c.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/w"}))(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if cancelled {
				go func() {
					<-began
					cancel()
				}()
			}
			res, err := s.Prompt(ctx, acp.TextBlock("go"))
			if want := (map[bool]acp.StopReason{true: "cancelled", false: "end_turn"})[cancelled]; err != nil || res.StopReason != want {
				t.Fatalf("the turn ended with %v, %v", res, err)
			}
			wantLines(t, "the client was told", c.heard(), "call: c Tool pending", "call: c failed", "title: go")
			must.Get(c.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: "/w"}))(t)
			wantLines(t, "the replay", c.heard(), "user: go", "call: c Tool pending", "call: c failed", "title: go")
		})
	}
}

// failing is a store to which nothing can be appended.
type failing struct{ sessionstore.Store }

var errDisk = errors.New("the disk is full")

func (f failing) Append(_ context.Context, _ acp.SessionID, updates ...acp.SessionUpdate) error {
	if _, ok := updates[0].Variant.(*acp.SessionUpdateUserMessageChunk); ok {
		return nil
	}
	return errDisk
}

// What cannot be stored is sent all the same, and the error says so.
func TestNotStored(t *testing.T) {
	sessions := agentkit.NewSessions(agentkit.Config[state]{Store: failing{open(t, t.TempDir())}, Prompt: func(ctx context.Context, turn *agentkit.Turn[state], _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		want := func(what string, err error) {
			if !errors.Is(err, agentkit.ErrNotStored) || !errors.Is(err, errDisk) {
				t.Errorf("%s: %v", what, err)
			}
		}
		call, err := turn.StartToolCall(ctx, "Tool", agentkit.WithToolCallID("c"))
		want("StartToolCall", err)
		want("Progress", call.Progress("x"))
		message := turn.NewMessage(ctx)
		for range 3 {
			if _, err := fmt.Fprint(message, strings.Repeat("x", 50_000)); err != nil {
				t.Errorf("Write: %v", err)
			}
		}
		want("Close", errors.Join(message.Close(), call.Done()))
		return endTurn, nil
	}})
	c := connect(t, sessions, nil, nil)
	s := must.Get(c.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/w"}))(t)
	must.Get(s.Prompt(t.Context(), acp.TextBlock("go")))(t)
	told := c.heard()
	text := 0
	calls := slices.DeleteFunc(slices.Clone(told), func(line string) bool {
		said, ok := strings.CutPrefix(line, "agent: ")
		text += len(said)
		return ok
	})
	wantLines(t, "the client was told", calls, "call: c Tool pending", "call: c in_progress", "call: c completed", "title: go")
	if text < 150_000 {
		t.Errorf("got %d bytes of text", text)
	}
}

// Run runs a command, shows its terminal, and says what came of it.
func TestToolCallRun(t *testing.T) {
	tier.Need(t, tier.Normal)
	handlers := acp.ClientHandlers{}
	dir := t.TempDir()
	machine := must.Get(local.Serve(&handlers, local.Trusted(), dir))(t)
	t.Cleanup(func() {
		if err := machine.Close(); err != nil {
			t.Error(err)
		}
	})
	c := converse(t, func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		run := func(ctx context.Context, title, script string) (*acp.TerminalOutputResponse, error) {
			call, err := agentkit.StartToolCall(ctx, s, title)
			if err != nil {
				return nil, err
			}
			res, err := call.Run(ctx, &acp.CreateTerminalRequest{Command: "sh", Args: []string{"-c", script}, Cwd: acp.Some(dir)})
			return res, errors.Join(err, call.End(err))
		}
		res, err := run(ctx, "fine", "echo out; exit 3")
		if err != nil || res.Output != "out\n" || res.ExitStatus.Value().ExitCode.Value() != 3 {
			t.Errorf("fine: %+v, %v", res, err)
		}
		if res, err := run(ctx, "absent", "exec /no/such/command"); err != nil || res.ExitStatus.Value().ExitCode.Value() == 0 {
			t.Errorf("absent: %+v, %v", res, err)
		}
		call, err := agentkit.StartToolCall(ctx, s, "slow")
		if err != nil {
			return nil, err
		}
		late := errors.New("too late")
		soon, cancel := context.WithTimeoutCause(ctx, 300*time.Millisecond, late)
		defer cancel()
		res, err = call.Run(soon, &acp.CreateTerminalRequest{Command: "sh", Args: []string{"-c", "echo begun; sleep 100"}})
		if !errors.Is(err, late) || res == nil || !res.ExitStatus.Present() {
			t.Errorf("slow: %+v, %v", res, err)
		}
		if err := call.Progress("It took too long."); err != nil {
			return nil, err
		}
		return endTurn, call.Fail(nil)
	}, handlers)
	all := c.turn(acp.StopReasonEndTurn)
	released, gone := 0, map[string]bool{}
	for _, m := range c.Messages() {
		if bytes.Contains(m.Line, []byte(`"terminal/release"`)) {
			released++
			_, id, _ := strings.Cut(string(m.Line), `"terminalId":"`)
			id, _, _ = strings.Cut(id, `"`)
			gone[id] = true
		} else if bytes.Contains(m.Line, []byte(`"session/update"`)) {
			for id := range gone {
				if bytes.Contains(m.Line, []byte(id)) {
					t.Errorf("shown after its release: %s", m.Line)
				}
			}
		}
	}
	if released != 3 {
		t.Errorf("%d terminals were released", released)
	}
	for _, call := range all {
		want := acp.ToolCallStatusCompleted
		if call.Title == "slow" {
			want = acp.ToolCallStatusFailed
		}
		if shown := shows(call); call.Status != want || !strings.HasPrefix(shown[0], "terminal ") {
			t.Errorf("%s is %s and shows %q", call.Title, call.Status, shown)
		}
	}

	call := must.Get(agentkit.StartToolCall(t.Context(), &sink{}, "Tool"))(t)
	if _, err := call.Run(t.Context(), &acp.CreateTerminalRequest{Command: "x"}); !errors.Is(err, acp.ErrUnsupported) {
		t.Errorf("a session without terminals: %v", err)
	}
	must.Do(t, call.Close())
}

// A command whose time is over when its terminal is there is shown and killed all the same.
func TestRunIsLateAtOnce(t *testing.T) {
	handlers := acp.ClientHandlers{}
	machine := must.Get(local.Serve(&handlers, local.Trusted(), t.TempDir()))(t)
	t.Cleanup(func() {
		if err := machine.Close(); err != nil {
			t.Error(err)
		}
	})
	late := errors.New("too late")
	soon, end := context.WithCancelCause(t.Context())
	defer end(nil)
	create := handlers.CreateTerminal
	handlers.CreateTerminal = func(ctx context.Context, s *acp.ClientSession, req *acp.CreateTerminalRequest) (*acp.CreateTerminalResponse, error) {
		end(late)
		return create(ctx, s, req)
	}
	c := converse(t, func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		call, err := agentkit.StartToolCall(ctx, s, "slow")
		if err != nil {
			return nil, err
		}
		res, err := call.Run(soon, &acp.CreateTerminalRequest{Command: "sleep", Args: []string{"100"}})
		if !errors.Is(err, late) || res == nil || !res.ExitStatus.Present() {
			t.Errorf("got %+v, %v", res, err)
		}
		return endTurn, call.End(err)
	}, handlers)
	call := c.turn(acp.StopReasonEndTurn)[0]
	if shown := shows(call); call.Status != acp.ToolCallStatusFailed || !strings.HasPrefix(shown[0], "terminal ") {
		t.Errorf("the call is %s and shows %q", call.Status, shown)
	}
}

// The store has the output of commands in the place of their terminals, also when more is shown later.
func TestRunIsStored(t *testing.T) {
	dir := t.TempDir()
	handlers := acp.ClientHandlers{}
	machine := must.Get(local.Serve(&handlers, local.Trusted(), dir))(t)
	defer machine.Close()
	store := open(t, t.TempDir())
	sessions := agentkit.NewSessions(agentkit.Config[state]{Store: store, Prompt: func(ctx context.Context, turn *agentkit.Turn[state], _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		call, err := turn.StartToolCall(ctx, "Tool")
		if err != nil {
			return nil, err
		}
		for _, text := range []string{"one", "``` two"} {
			if _, err := call.Run(ctx, &acp.CreateTerminalRequest{Command: "echo", Args: []string{text}, Cwd: acp.Some(dir)}); err != nil {
				return nil, err
			}
		}
		return endTurn, errors.Join(call.Progress("That was it."), call.Done())
	}})
	theirs, ours := acp.Pipe()
	agent := must.Get(acp.StartAgent(t.Context(), theirs, sessions.Handlers(), sessions.Options(nil)))(t)
	conn := must.Get(acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, ours, nil), handlers, nil))(t)
	s := must.Get(conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: dir}))(t)
	must.Get(s.Prompt(t.Context(), acp.TextBlock("go")))(t)
	must.Do(t, errors.Join(conn.Close(), agent.Wait()))
	sessions.Close()
	var call acp.ToolCall
	for u, err := range store.Updates(t.Context(), s.ID()) {
		if err != nil {
			t.Fatal(err)
		}
		switch u := u.Variant.(type) {
		case *acp.SessionUpdateToolCall:
			call = acp.ToolCall(*u)
		case *acp.SessionUpdateToolCallUpdate:
			call.Apply(acp.ToolCallUpdate(*u))
		}
	}
	wantShows(t, call, acp.ToolCallStatusCompleted, "```\none\n```", "````\n``` two\n````", "That was it.")
}

// End says whether the turn continues.
func TestToolCallEnd(t *testing.T) {
	ended, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	broken := errors.New("broken")
	for _, test := range []struct {
		ctx    context.Context
		err    error
		want   error
		status acp.ToolCallStatus
	}{
		{t.Context(), nil, nil, acp.ToolCallStatusCompleted},
		{t.Context(), broken, nil, acp.ToolCallStatusFailed},
		{t.Context(), agentkit.ErrRejected, nil, acp.ToolCallStatusFailed},
		{t.Context(), fmt.Errorf("asking: %w", agentkit.ErrDismissed), agentkit.ErrDismissed, acp.ToolCallStatusFailed},
		{ended, broken, broken, acp.ToolCallStatusFailed},
	} {
		call := must.Get(agentkit.StartToolCall(test.ctx, &sink{}, "Tool"))(t)
		if test.ctx == ended {
			cancel(acp.ErrTurnCancelled)
		}
		if err := call.End(test.err); !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
			t.Errorf("%v: got %v, want %v", test.err, err, test.want)
		}
		if got := call.State().Status; got != test.status {
			t.Errorf("%v: the call is %s", test.err, got)
		}
	}
}

// The text of a prompt is its text blocks.
func TestPromptText(t *testing.T) {
	req := &acp.PromptRequest{Prompt: []acp.ContentBlock{acp.TextBlock("one"), acp.ResourceLinkBlock("a", "file:///a"), acp.TextBlock("two\n"), {}}}
	if got := agentkit.PromptText(req); got != "one\ntwo\n" {
		t.Errorf("got %q", got)
	}
	if got := agentkit.PromptText(&acp.PromptRequest{}); got != "" {
		t.Errorf("got %q", got)
	}
}

// What was refused before it was sent is not stored: it would keep the session from being loaded.
func TestRefusedIsNotStored(t *testing.T) {
	sessions := agentkit.NewSessions(agentkit.Config[state]{Store: open(t, t.TempDir()), Prompt: func(ctx context.Context, turn *agentkit.Turn[state], _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		call, err := turn.StartToolCall(ctx, "Edit", agentkit.WithToolCallID("c"))
		if err != nil {
			return nil, err
		}
		if err := call.Diff("relative", "", "x"); !errors.Is(err, acp.ErrInvalidParams) {
			t.Errorf("a relative path: %v", err)
		}
		if err := turn.Record(ctx, acp.UpdateToolCall("c", acp.WithLocation("relative", 0))); err != nil {
			t.Errorf("recording one: %v", err)
		}
		return endTurn, call.Done()
	}})
	c := connect(t, sessions, nil, nil)
	s := must.Get(c.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/w"}))(t)
	must.Get(s.Prompt(t.Context(), acp.TextBlock("go")))(t)
	c.heard()
	must.Get(c.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: "/w"}))(t)
	wantLines(t, "the replay", c.heard(), "user: go", "call: c Edit pending", "call: c completed", "title: go")
}

// A compaction that a killed process has begun is shown as failed when the session is loaded: nobody ends it any more.
func TestCompactionLeftOpen(t *testing.T) {
	store := open(t, t.TempDir())
	now := time.Now()
	must.Do(t, store.Create(t.Context(), sessionstore.Record{Info: sessionstore.Info{ID: "s", Cwd: "/w", Created: now, Updated: now}}))
	compaction := func(id acp.CompactionID, status acp.CompactionStatus) acp.SessionUpdate {
		return acp.NewSessionUpdateCompactionUpdate(acp.CompactionUpdate{CompactionID: id, Status: status})
	}
	summary := func(id acp.CompactionID) acp.SessionUpdate {
		return acp.NewSessionUpdateCompactionSummaryChunk(acp.CompactionSummaryChunk{CompactionID: id, Content: acp.TextBlock("x")})
	}
	err := store.Append(t.Context(), "s", compaction("done", acp.CompactionStatusInProgress), compaction("done", acp.CompactionStatusCompleted), summary("done"),
		compaction("killed", acp.CompactionStatusInProgress), summary("headless"))
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, agentkit.NewSessions(parrot(store)), nil, nil)
	must.Get(c.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: "s", Cwd: "/w"}))(t)
	wantLines(t, "the replay", c.heard(), "compaction: done in_progress", "compaction: done completed", "summary: done",
		"compaction: killed in_progress", "summary: headless", "compaction: headless failed", "compaction: killed failed", "commands: 1")
}

// An author's function that panics takes nobody else with it, and leaves nothing behind.
func TestHooksPanic(t *testing.T) {
	var log bytes.Buffer
	config := parrot(open(t, t.TempDir()))
	config.Logger = slog.New(slog.NewTextHandler(&log, nil))
	config.MaxSessions = 1
	var first *agentkit.Session[state]
	config.Open = func(ctx context.Context, s *agentkit.Session[state], _ *agentkit.Opening) error {
		if first != nil {
			return nil
		}
		first = s
		if err := s.Update(ctx, acp.AgentMessageText("waits")); err != nil { // with a timer
			t.Error(err)
		}
		panic("Open")
	}
	config.Close = func(*agentkit.Session[state]) { panic("Close") }
	opts := &acp.AgentOptions{Conn: acp.ConnOptions{Logger: slog.New(slog.DiscardHandler)}}
	c := connect(t, agentkit.NewSessions(config), opts, nil)
	if _, err := c.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/w"}); err == nil {
		t.Error("a session was opened whose Open has panicked")
	}
	if first.Context().Err() == nil {
		t.Error("the context of the session goes on that was not opened")
	}
	s, err := c.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/w"}) // there is room
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("closing: %v", err)
	}
	if n := strings.Count(log.String(), "Config.Close panicked"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, log.String())
	}
}
