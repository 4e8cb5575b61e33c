package agentkit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/acp/acpv2/agentkit"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/tier"
)

// story is what a client was told, a line an update.
func story(told []acpv2.SessionUpdate) (lines []string) {
	for _, update := range told {
		line := ""
		switch u := update.Variant.(type) {
		case *acpv2.SessionUpdateAgentMessageChunk:
			text, _ := u.Content.Text()
			line = "message " + text
		case *acpv2.SessionUpdateAgentThoughtChunk:
			text, _ := u.Content.Text()
			line = "thought " + text
		case *acpv2.SessionUpdateToolCallUpdate:
			line = strings.Join(strings.Fields(fmt.Sprint("call ", u.Title.Value(), " ", u.Status.Value())), " ")
			if u.Content.Present() {
				line += fmt.Sprintf(" with %d", len(u.Content.Value()))
			}
		case *acpv2.SessionUpdateToolCallContentChunk:
			line = "shows " + shownContent(u.Content)
		case *acpv2.SessionUpdateTerminalUpdate:
			line = "terminal " + u.Command.Value()
			if exit, ok := u.ExitStatus.Get(); ok {
				line = fmt.Sprint("exit ", exit.ExitCode.Value(), exit.ExitCode.Present())
			}
		case *acpv2.SessionUpdateTerminalOutputChunk:
			line = "output"
		case *acpv2.SessionUpdatePlanUpdate:
			line = "plan"
		default:
			continue
		}
		lines = append(lines, line)
	}
	return lines
}

func shownContent(content acpv2.ToolCallContent) string {
	switch v := content.Variant.(type) {
	case *acpv2.ToolCallContentContent:
		text, _ := v.Content.Text()
		return text
	case *acpv2.ToolCallContentDiff:
		return "diff"
	case *acpv2.ToolCallContentTerminal:
		return "terminal"
	}
	return "?"
}

// play plays one turn with a client that answers questions by choose, and returns what it was told.
func playTurn(
	t *testing.T, choose func(*acpv2.RequestPermissionRequest) acpv2.RequestPermissionOutcome, turn func(context.Context, *session) error,
) ([]string, *acpv2.TurnResult) {
	t.Helper()
	config := parrot(open(t, t.TempDir(), nil))
	config.Prompt = func(ctx context.Context, s *session, _ *acpv2.PromptRequest) (acpv2.IdleStateUpdate, error) {
		return acpv2.EndTurn(), turn(ctx, s)
	}
	c, _ := connect(t, config, acpv2.AgentOptions{})
	c.choose = choose
	s := c.create(t, "/w")
	res, err := s.Prompt(t.Context(), acpv2.TextBlock("x"))
	if err != nil {
		t.Fatal(err)
	}
	told, live := c.heard()
	if _, err := c.resume(t, s.ID()); err != nil { // who resumes it sees the same
		t.Fatal(err)
	}
	if _, again := c.heard(); !cmp.Equal(live, again) {
		t.Errorf("resumed (-live +again):\n%s", cmp.Diff(live, again))
	}
	return story(told), res
}

func wantStory(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the client was told (-want +got):\n%s", diff)
	}
}

// What a turn says by its texts, calls, terminals and updates comes in the order in which it was said.
func TestOrderOfTurn(t *testing.T) {
	got, _ := playTurn(t, nil, func(ctx context.Context, s *session) error {
		message, thought := s.NewMessage(ctx), s.NewThought(ctx)
		fmt.Fprint(message, "Hello ")
		fmt.Fprint(thought, "hm")
		call, err := s.StartToolCall(ctx, "Build", acpv2.WithKind(acpv2.ToolKindExecute))
		if err != nil {
			return err
		}
		fmt.Fprint(message, "now")
		terminal, err := s.StartTerminal(ctx, "make", s.Cwd())
		if err != nil {
			return err
		}
		fmt.Fprint(message, "this")
		_, err = io.WriteString(terminal, "\xff made")
		if err := errors.Join(err, call.Terminal(terminal), call.Terminal(terminal), terminal.Exited(0)); err != nil {
			return err
		}
		fmt.Fprint(message, "plan")
		if err := s.Update(ctx, acpv2.WholePlan("p")); err != nil {
			return err
		}
		fmt.Fprint(message, "end\xf0\x9f")
		return errors.Join(call.Progress("one"), call.Done(acpv2.WithOutput(1)))
	})
	wantStory(t, got, "message Hello ", "thought hm", "call Build pending", "message now", "terminal make", "message this",
		"output", "call in_progress", "shows terminal", "exit 0 true", "message plan", "plan", "message end", "shows one", "call completed",
		"message \uFFFD\uFFFD")
}

// What a turn leaves open is closed at its end, and nothing can be said with it afterwards.
func TestLeftOpen(t *testing.T) {
	for name, test := range map[string]struct {
		wait bool
		want []string
	}{
		"done":      {false, []string{"call A in_progress", "terminal sleep", "message bye", "shows this did not end", "call failed", "exit 0 false"}},
		"cancelled": {true, []string{"call A in_progress", "terminal sleep", "message bye", "call cancelled", "exit 0 false"}},
	} {
		t.Run(name, func(t *testing.T) {
			config := parrot(open(t, t.TempDir(), nil))
			var call *agentkit.ToolCall
			var terminal *agentkit.Terminal
			var message *agentkit.Text
			var turn context.Context
			var again *session
			begun := make(chan struct{})
			config.Prompt = func(ctx context.Context, s *session, _ *acpv2.PromptRequest) (idle acpv2.IdleStateUpdate, err error) {
				turn, again = ctx, s
				call, err = s.StartToolCall(ctx, "A", acpv2.WithStatus(acpv2.ToolCallStatusInProgress))
				if err == nil {
					terminal, err = s.StartTerminal(ctx, "sleep", "/w")
				}
				if err == nil {
					message = s.NewMessage(ctx)
					_, err = io.WriteString(message, "bye")
				}
				close(begun)
				if test.wait {
					<-ctx.Done()
				}
				return acpv2.EndTurn(), err
			}
			c, _ := connect(t, config, acpv2.AgentOptions{})
			s := c.create(t, "/w")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if test.wait {
				go func() {
					<-begun
					cancel()
				}()
			}
			res, err := s.Prompt(ctx, acpv2.TextBlock("x"))
			if err != nil {
				t.Fatal(err)
			}
			if want := map[bool]string{false: "end_turn", true: "cancelled"}[test.wait]; res.Idle.StopReason() != want {
				t.Errorf("the turn ended with %s", res.Idle.StopReason())
			}
			told, _ := c.heard()
			got := story(told)
			wantStory(t, got, test.want...)
			_, written := io.WriteString(message, "x")
			_, put := io.WriteString(terminal, "x")
			for what, err := range map[string]error{"progress": call.Progress("x"), "done": call.Done(), "terminal": put, "exit": terminal.Exited(1)} {
				if !errors.Is(err, agentkit.ErrEnded) && turn.Err() == nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			if written == nil || call.Close() != nil || terminal.Close() != nil {
				t.Errorf("%v, %v, %v", written, call.Close(), terminal.Close())
			}
			if _, err := again.StartToolCall(turn, "late"); err == nil {
				t.Error("a call was started in a turn that is over")
			}
			if _, err := again.StartTerminal(turn, "late", "/w"); err == nil {
				t.Error("a terminal was started in a turn that is over")
			}
		})
	}
}

// The question has the whole call, and its answer says how to go on.
func TestAsk(t *testing.T) {
	selected := func(id acpv2.PermissionOptionID) acpv2.RequestPermissionOutcome {
		return acpv2.PermissionSelected(id)
	}
	for name, test := range map[string]struct {
		outcome acpv2.RequestPermissionOutcome
		want    error
		status  string
	}{
		"allow":     {selected("allow"), nil, "in_progress"},
		"reject":    {selected("reject"), agentkit.ErrRejected, ""},
		"dismissed": {acpv2.PermissionCancelled(), agentkit.ErrDismissed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var asked *acpv2.RequestPermissionRequest
			_, res := playTurn(t, func(req *acpv2.RequestPermissionRequest) acpv2.RequestPermissionOutcome {
				asked = req
				return test.outcome
			}, func(ctx context.Context, s *session) error {
				call, err := s.StartToolCall(ctx, "Edit", acpv2.WithKind(acpv2.ToolKindEdit), acpv2.WithInput(map[string]int{"n": 1}))
				if err != nil {
					return err
				}
				if err := call.Diff("/w/a", "one\n", "two\n"); err != nil {
					return err
				}
				_, err = call.Ask(ctx)
				if !errors.Is(err, test.want) {
					t.Errorf("got %v", err)
				}
				if got := call.State().Status.Value(); test.status != "" && string(got) != test.status {
					t.Errorf("the call is %s", got)
				}
				return call.End(err)
			})
			subject, ok := asked.Subject.Value().Variant.(*acpv2.RequestPermissionSubjectToolCall)
			if !ok || asked.Title != "Edit" || len(asked.Options) != 2 {
				t.Fatalf("asked was %+v", asked)
			}
			call := subject.ToolCall
			if call.Kind.Value() != acpv2.ToolKindEdit || string(call.RawInput) != `{"n":1}` || len(call.Content.Value()) != 1 || len(call.Locations.Value()) != 1 {
				t.Errorf("asked about %v", call)
			}
			if _, failed := res.Idle.Variant.(*acpv2.IdleStateUpdateError); failed != (name == "dismissed") {
				t.Errorf("the turn ended with %T", res.Idle.Variant)
			}
		})
	}
}

// Content is added where it can be, and replaced where a file is changed again.
func TestContentOfCall(t *testing.T) {
	secret := errors.New("secret")
	got, _ := playTurn(t, nil, func(ctx context.Context, s *session) error {
		call, err := s.StartToolCall(ctx, "Edit")
		if err != nil {
			return err
		}
		content := make([]acpv2.ToolCallContent, 1, 4)
		content[0] = acpv2.ToolText("mine")
		err = errors.Join(
			call.Update(acpv2.WithContent(content...)),
			call.Diff("/w/a", "", "one\n"),
			call.Diff("/w/b", "x", "y"),
			call.Diff("/w/a", "", "two\n"),
			call.Progress("done"),
		)
		if content[:2][1].Variant != nil {
			t.Error("the author's slice was written into")
		}
		state := call.State()
		var shown []string
		for _, c := range state.Content.Value() {
			shown = append(shown, shownContent(c))
		}
		if !slices.Equal(shown, []string{"mine", "diff", "diff", "done"}) || len(state.Locations.Value()) != 2 {
			t.Errorf("the call has %v, %v", shown, state.Locations)
		}
		if err := call.Diff("relative", "", "x"); err == nil || errors.Is(err, agentkit.ErrEnded) {
			t.Errorf("a relative path: %v", err)
		}
		return errors.Join(err, call.Fail(fmt.Errorf("wrapped: %w", secret)))
	})
	wantStory(t, got, "call Edit pending", "call with 1", "call", "shows diff", "call", "shows diff", "call with 3", "call in_progress", "shows done", "shows The tool failed.", "call failed")
}

// What a call shows is bounded; it can fail all the same.
func TestCallTooLarge(t *testing.T) {
	tier.Need(t, tier.Normal)
	playTurn(t, nil, func(ctx context.Context, s *session) error {
		call, err := s.StartToolCall(ctx, "Much")
		if err != nil {
			return err
		}
		text := strings.Repeat("x", 1<<20)
		n := 0
		for ; err == nil && n < 20; n++ {
			err = call.Progress(text)
		}
		if !errors.Is(err, agentkit.ErrTooLarge) || n != 8 {
			t.Errorf("after %d: %v", n, err)
		}
		if err := call.Update(acpv2.WithContent(acpv2.ToolText(strings.Repeat("x", 9<<20)))); !errors.Is(err, agentkit.ErrTooLarge) {
			t.Errorf("at once: %v", err)
		}
		if err := call.Progress(strings.Repeat("x", 1<<20-1000)); err != nil {
			t.Errorf("up to the bound: %v", err)
		}
		return call.Fail(err)
	})
}

// Calls, terminals and texts serve agents without Sessions.
func TestHandleWork(t *testing.T) {
	client, agent := acpv2.Pipe()
	handlers := acpv2.AgentHandlers{
		NewSession: func(context.Context, *acpv2.AgentConn, *acpv2.NewSessionRequest) (*acpv2.NewSessionResponse, error) {
			return &acpv2.NewSessionResponse{SessionID: "s"}, nil
		},
		ListSessions: func(context.Context, *acpv2.AgentConn, *acpv2.ListSessionsRequest) (*acpv2.ListSessionsResponse, error) {
			return &acpv2.ListSessionsResponse{}, nil
		},
		ResumeSession: func(context.Context, *acpv2.AgentSession, *acpv2.ResumeSessionRequest) (*acpv2.ResumeSessionResponse, error) {
			return &acpv2.ResumeSessionResponse{}, nil
		},
		CloseSession: func(context.Context, *acpv2.AgentSession, *acpv2.CloseSessionRequest) (*acpv2.CloseSessionResponse, error) {
			return &acpv2.CloseSessionResponse{}, nil
		},
		Prompt: func(ctx context.Context, s *acpv2.AgentSession, req *acpv2.PromptRequest) (*acpv2.PromptResponse, error) {
			return s.StartTurn(ctx, req, agentkit.HandleWork(func(ctx context.Context) (acpv2.IdleStateUpdate, error) {
				fmt.Fprint(agentkit.NewMessage(ctx, s), agentkit.PromptText(req))
				_, err := agentkit.StartToolCall(ctx, s, "Open")
				return acpv2.EndTurn(), err
			}))
		},
	}
	served, err := acpv2.StartAgent(t.Context(), agent, handlers, &acpv2.AgentOptions{Info: acpv2.Implementation{Name: "a", Version: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	var told []acpv2.SessionUpdate
	tapped := conformance.Tap(t, conformance.Client, client, &conformance.TapOptions{Schema: conformance.V2()})
	c, err := acpv2.Connect(t.Context(), tapped, acpv2.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acpv2.ClientSession, n *acpv2.UpdateSessionNotification) error {
			told = append(told, n.Update)
			return nil
		},
	}, &acpv2.ClientOptions{Info: acpv2.Implementation{Name: "c", Version: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.NewSession(t.Context(), &acpv2.NewSessionRequest{Cwd: "/w"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prompt(t.Context(), acpv2.TextBlock("one"), acpv2.TextBlock("two")); err != nil {
		t.Fatal(err)
	}
	wantStory(t, story(told), "message one\ntwo", "call Open pending", "shows this did not end", "call failed")
	if err := errors.Join(c.Close(), served.Wait()); err != nil {
		t.Error(err)
	}
}

// Several goroutines may use one call, one terminal and one text.
func TestCallAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		sender := &fakeSession{update: func(u acpv2.SessionUpdate) { told = append(told, story([]acpv2.SessionUpdate{u})...) }}
		call, err := agentkit.StartToolCall(t.Context(), sender, "A")
		if err != nil {
			t.Fatal(err)
		}
		terminal, err := agentkit.StartTerminal(t.Context(), sender, "a", "/w")
		if err != nil {
			t.Fatal(err)
		}
		var voices sync.WaitGroup
		for i := range 8 {
			voices.Go(func() {
				for range 25 {
					_, err := terminal.Write(make([]byte, 100_000))
					if err := errors.Join(err, call.Progress("x"), call.Diff(acpv2.AbsolutePath(fmt.Sprint("/", i)), "a", "b")); err != nil {
						t.Error(err)
					}
					call.State()
				}
			})
		}
		voices.Wait()
		if err := errors.Join(call.Done(), terminal.Exited(0)); err != nil {
			t.Error(err)
		}
		if n := len(call.State().Content.Value()); n != 8*25+8 {
			t.Errorf("the call shows %d things", n)
		}
	})
}

// fakeSession is a session without a connection. Its updates do not overlap.
type fakeSession struct {
	mu     sync.Mutex
	update func(acpv2.SessionUpdate)
}

func (s *fakeSession) Update(_ context.Context, u acpv2.SessionUpdate) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.update(u)
	return nil
}

func (s *fakeSession) RequestPermission(context.Context, *acpv2.RequestPermissionRequest) (acpv2.RequestPermissionOutcome, error) {
	return acpv2.PermissionCancelled(), nil
}

// patchOf is the patch that a call shows of a change.
func patchOf(t *testing.T, path, from, to string) string {
	t.Helper()
	call, err := agentkit.StartToolCall(t.Context(), &fakeSession{update: func(acpv2.SessionUpdate) {}}, "Edit")
	if err != nil {
		t.Fatal(err)
	}
	if err := call.Diff(acpv2.AbsolutePath(path), from, to); err != nil {
		t.Fatal(err)
	}
	diff := call.State().Content.Value()[0].Variant.(*acpv2.ToolCallContentDiff)
	return diff.Patch.Value().Text
}

// A diff has the patch that Git would show, with absolute paths.
func TestPatch(t *testing.T) {
	for name, test := range map[string]struct{ path, from, to, want string }{
		"new": {"/w/a", "", "one\ntwo\n", "diff --git /w/a /w/a\nnew file mode 100644\n--- /dev/null\n+++ /w/a\n@@ -0,0 +1,2 @@\n+one\n+two\n"},
		"no newline": {"/w/a", "one", "one\n",
			"diff --git /w/a /w/a\n--- /w/a\n+++ /w/a\n@@ -1,1 +1,1 @@\n-one\n\\ No newline at end of file\n+one\n"},
		"emptied":   {"/w/a b", "one\n", "", "diff --git /w/a b /w/a b\n--- /w/a b\t\n+++ /w/a b\t\n@@ -1,1 +0,0 @@\n-one\n"},
		"names":     {"/w/\"é\n", "1\n", "2\n", "diff --git \"/w/\\\"\\303\\251\\n\" \"/w/\\\"\\303\\251\\n\"\n--- \"/w/\\\"\\303\\251\\n\"\n+++ \"/w/\\\"\\303\\251\\n\"\n@@ -1,1 +1,1 @@\n-1\n+2\n"},
		"unchanged": {"/w/a", "one\n", "one\n", ""},
		"binary":    {"/w/a", "\x00", "\xff", ""},
	} {
		if got := patchOf(t, test.path, test.from, test.to); got != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, test.want)
		}
	}
}

// Git applies the patches, and makes of the old text the new one.
func TestPatchApplies(t *testing.T) {
	tier.Need(t, tier.Normal)
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git")
	}
	random := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		var b strings.Builder
		for range random.IntN(12) {
			fmt.Fprintln(&b, random.IntN(3))
		}
		all := b.String()
		if random.IntN(3) == 0 {
			all = strings.TrimSuffix(all, "\n")
		}
		return all
	}
	dir := t.TempDir()
	for range 60 {
		from, to := text(), text()
		if from == to {
			continue
		}
		patch := patchOf(t, "/a/file", from, to)
		path := filepath.Join(dir, "a", "file")
		if err := errors.Join(os.RemoveAll(filepath.Dir(path)), os.MkdirAll(filepath.Dir(path), 0o700)); err != nil {
			t.Fatal(err)
		}
		if from != "" {
			if err := os.WriteFile(path, []byte(from), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := exec.CommandContext(ctx, git, "apply", "-p0", "-")
		cmd.Dir = dir
		cmd.Stdin = strings.NewReader(strings.ReplaceAll(patch, "/a/file", "a/file")) // Git refuses absolute ones
		out, err := cmd.CombinedOutput()
		cancel()
		if err != nil {
			t.Fatalf("%v: %s\n%s", err, out, patch)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != to {
			t.Errorf("from %q: got %q, want %q, %v\n%s", from, got, to, err, patch)
		}
	}
}
