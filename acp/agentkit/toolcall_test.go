package agentkit_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance/acptest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// shows are the texts of content, with names for what is not text.
func shows(call acp.ToolCall) []string {
	var all []string
	for _, content := range call.Content {
		switch v := content.Variant.(type) {
		case *acp.ToolCallContentContent:
			text := v.Content.Text()
			all = append(all, text)
		case *acp.ToolCallContentDiff:
			old := "new"
			if text, ok := v.OldText.Get(); ok {
				old = text
			}
			all = append(all, fmt.Sprintf("diff %s %s>%s", v.Path, old, v.NewText))
		case *acp.ToolCallContentTerminal:
			all = append(all, "terminal "+string(v.TerminalID))
		}
	}
	return all
}

func wantShows(t *testing.T, call acp.ToolCall, status acp.ToolCallStatus, want ...string) {
	t.Helper()
	if call.Status != status {
		t.Errorf("%s is %s, want %s", call.Title, call.Status, status)
	}
	if diff := cmp.Diff(want, shows(call)); diff != "" {
		t.Errorf("%s shows (-want +got):\n%s", call.Title, diff)
	}
}

type terminal acp.TerminalID

func (t terminal) ID() acp.TerminalID { return acp.TerminalID(t) }

// stranger answers questions with what nobody offered.
type stranger struct {
	sink
	outcome acp.RequestPermissionOutcome
}

func (s *stranger) RequestPermission(context.Context, acp.ToolCallUpdate, ...acp.PermissionOption) (acp.RequestPermissionOutcome, error) {
	return s.outcome, nil
}

// What was not offered, what has a kind that nobody knows, and an answer of an unknown kind allow nothing.
func TestToolCallStrangeAnswers(t *testing.T) {
	odd := acp.PermissionOption{OptionID: "odd", Name: "Odd", Kind: "allow_sometimes"}
	for _, outcome := range []acp.RequestPermissionOutcome{
		acp.PermissionSelected("other"), acp.PermissionSelected("odd"), acp.PermissionSelected(""), {},
		{Variant: &acp.RequestPermissionOutcomeUnknown{Tag: "allowed", Raw: []byte(`{"outcome":"allowed","optionId":"yes"}`)}},
	} {
		s := &stranger{outcome: outcome}
		call := must.Get(agentkit.StartToolCall(t.Context(), s, "Run"))(t)
		if _, err := call.Ask(t.Context(), acp.AllowOnce("yes", "Yes"), odd); !errors.Is(err, agentkit.ErrRejected) {
			t.Errorf("%+v: got %v", outcome, err)
		}
		if got := call.State().Status; got != acp.ToolCallStatusPending {
			t.Errorf("%+v: the call is %s", outcome, got)
		}
		must.Do(t, call.Close())
	}
}

// A session without terminals runs no commands.
func TestToolCallRunUnsupported(t *testing.T) {
	call := must.Get(agentkit.StartToolCall(t.Context(), &sink{}, "Tool"))(t)
	if _, err := call.Run(t.Context(), &acp.CreateTerminalRequest{Command: "x"}); !errors.Is(err, acp.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
}

// What Fail shows of an error is what a client would see if a handler returned it.
func TestToolCallFailShows(t *testing.T) {
	secret := errors.New("open /home/ada/.token: permission denied")
	exited := exec.Command(os.Args[0], "-no-such-flag").Run()
	s := &sink{}
	for _, test := range []struct {
		err  error
		want []string
	}{
		{nil, nil},
		{secret, []string{"The tool failed."}},
		{fmt.Errorf("reading: %w", secret), []string{"The tool failed."}},
		{acp.Public(errors.New("no such page")), []string{"no such page"}},
		{fmt.Errorf("secret: %w", acp.Public(errors.New("no such page"))), []string{"no such page"}},
		{acp.ErrResourceNotFound, []string{"Resource not found"}},
		{&acp.CallError{Method: "fs/read_text_file", Err: acp.ErrResourceNotFound.WithMessagef("/home/ada")}, []string{"/home/ada"}},
		{&acp.CallError{Method: "session/prompt", Err: acp.ErrResourceNotFound.WithMessagef("/home/ada")}, []string{"The tool failed."}},
		{fmt.Errorf("run: %w", acp.ErrTurnCancelled), []string{"cancelled"}},
		{agentkit.ErrRejected, []string{"the user did not allow it"}},
		{fmt.Errorf("make: %w", exited), []string{"exit status 2"}},
		{acp.TerminalExitStatus{ExitCode: acp.Some[uint32](0)}.Err(), nil},
		{acp.TerminalExitStatus{ExitCode: acp.Some[uint32](2)}.Err(), []string{"exit status 2"}},
		{acp.TerminalExitStatus{Signal: acp.Some("SIGKILL")}.Err(), []string{"signal: SIGKILL"}},
		{fmt.Errorf("reading: %w", &acp.CallError{Method: acp.MethodReadTextFile, Err: rpc.ErrInternal.WithMessagef("No such file").WithData(map[string]int{"errno": 2})}),
			[]string{`No such file: {"errno":2}`}},
	} {
		call := must.Get(agentkit.StartToolCall(t.Context(), s, "Tool"))(t)
		must.Do(t, call.Fail(test.err))
		wantShows(t, call.State(), acp.ToolCallStatusFailed, test.want...)
	}
}

// What is shown stays bounded: the last texts stay, and diffs are never cut.
func TestToolCallIsBounded(t *testing.T) {
	s := &sink{}
	start := func() *agentkit.ToolCall {
		call := must.Get(agentkit.StartToolCall(t.Context(), s, "Tool"))(t)
		return call
	}
	size := func(texts []string) (n int) {
		for _, text := range texts {
			n += len(text)
		}
		return n
	}
	call := start()
	must.Do(t, call.Diff("/a", "old", "new"))
	for i := range 1000 {
		must.Do(t, call.Progress(fmt.Sprint(i)))
	}
	texts := shows(call.State())
	if texts[0] != "diff /a old>new" || !strings.Contains(texts[1], "not shown") || texts[len(texts)-1] != "999" || len(texts) > 202 || len(texts) < 150 {
		t.Errorf("%d texts: %q", len(texts), texts)
	}
	for i, text := range texts[2:] {
		if want := fmt.Sprint(1000 - len(texts[2:]) + i); text != want {
			t.Fatalf("text %d is %s, want %s", i, text, want)
		}
	}
	call = start()
	for i := range 100 {
		must.Do(t, call.Progress(strings.Repeat("é", 5000)+fmt.Sprint(i)))
	}
	if n := size(shows(call.State())); n > 65<<10 || n < 40<<10 {
		t.Errorf("%d bytes are shown", n)
	}
	must.Do(t, call.Progress("begin"+strings.Repeat("é", 50_000)+"end"))
	texts = shows(call.State())
	if len(texts) != 2 || !strings.HasPrefix(texts[1], "…é") || !strings.HasSuffix(texts[1], "end") || len(texts[1]) > 65<<10 {
		t.Errorf("%d texts are shown, the last of %d bytes", len(texts), len(texts[len(texts)-1]))
	}

	call = start()
	large := strings.Repeat("x", 5<<20)
	must.Do(t, call.Diff("/a", "", large))
	before := len(s.sent())
	for _, err := range []error{call.Diff("/b", large, ""), call.Update(acp.WithContent(acp.ToolText(large), acp.ToolText(large)))} {
		if !errors.Is(err, agentkit.ErrTooLarge) {
			t.Errorf("got %v", err)
		}
	}
	if len(s.sent()) != before || len(call.State().Content) != 1 {
		t.Error("what was refused has changed something")
	}
	if err := call.Fail(acp.Public(errors.New(large))); err != nil {
		t.Errorf("Fail: %v", err)
	}
}

// Many goroutines use many calls at once: every update that was sent says what the one before it has left, and the
// calls that are left open are closed.
func TestToolCallsAtOnce(t *testing.T) {
	tier.Need(t, tier.Normal)
	goroutines, steps := 8, tier.Pick(0, 15, 50, 50)
	calls := recorded(t, func(ctx context.Context, s *agentkit.Turn[state]) error {
		shared, err := agentkit.StartToolCall(ctx, s, "shared")
		if err != nil {
			return err
		}
		var all sync.WaitGroup
		for g := range goroutines {
			all.Go(func() {
				own, err := agentkit.StartToolCall(ctx, s, fmt.Sprint(g))
				if err != nil {
					t.Error(err)
					return
				}
				message := agentkit.NewMessage(ctx, s)
				for i := range steps {
					if _, err := fmt.Fprintf(message, "%d ", i); err != nil {
						t.Error(err)
					}
					if err := errors.Join(shared.Diff(fmt.Sprintf("/%d", g), "", fmt.Sprint(i)), own.Progress(fmt.Sprint(i))); err != nil {
						t.Error(err)
					}
				}
				if g%2 == 0 {
					if err := own.Done(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		return shared.Done()
	})
	for _, call := range calls {
		switch {
		case call.Title == "shared":
			if len(call.Content) != goroutines || call.Status != acp.ToolCallStatusCompleted {
				t.Errorf("shared is %s and shows %q", call.Status, shows(call))
			}
			for _, text := range shows(call) {
				if !strings.HasSuffix(text, fmt.Sprintf(">%d", steps-1)) {
					t.Errorf("shared shows %q", text)
				}
			}
		case call.Title[0]%2 == 0:
			if len(call.Content) != steps || call.Status != acp.ToolCallStatusCompleted {
				t.Errorf("%s is %s and shows %q", call.Title, call.Status, shows(call))
			}
		default:
			if len(call.Content) != steps+1 || call.Status != acp.ToolCallStatusFailed {
				t.Errorf("%s is %s and shows %q", call.Title, call.Status, shows(call))
			}
		}
	}
	if len(calls) != goroutines+1 {
		t.Errorf("there are %d calls", len(calls))
	}
}

// mute is a session whose updates go nowhere, and whose user is never asked.
type mute struct{ agentkit.Asker }

func (mute) Update(context.Context, acp.SessionUpdate) error { return nil }

// Of much output, the text has the last 64 KiB, and it is not sent again for each line.
func TestTerminalOutputIsBounded(t *testing.T) {
	sessions := agentkit.NewSessions(agentkit.Config[state]{Prompt: func(
		ctx context.Context, turn *agentkit.Turn[state], _ *acp.PromptRequest,
	) (*acp.PromptResponse, error) {
		return nil, turn.Tool(ctx, acp.ToolKindExecute, "Print", func(call *agentkit.ToolCall) error {
			terminal, err := call.StartTerminal("print", "/w")
			if err != nil {
				return err
			}
			for range 10_000 {
				if _, err := terminal.Write([]byte("0123456789abcdef\n")); err != nil {
					return err
				}
			}
			_, err = terminal.Write([]byte("last"))
			if err = errors.Join(err, terminal.Close()); err != nil {
				return err
			}
			text := call.State().Content[0].Text()
			if len(text) > 65<<10 || !strings.HasPrefix(text, "```\n(Earlier output is not shown.)\n") || !strings.HasSuffix(text, "\nlast\n```") {
				t.Errorf("%d bytes of text, from %.60q", len(text), text)
			}
			if terminal, err = call.StartTerminal("cut", "/w"); err != nil {
				return err
			}
			if _, err = terminal.Write([]byte("\xc3")); errors.Join(err, terminal.Exited(0)) != nil {
				return err
			}
			if text := call.State().Content[1].Text(); text != "```\n$ cut\n\uFFFD\n```" {
				t.Errorf("output that ends within a character: %q", text)
			}
			return nil
		})
	}})
	t.Cleanup(sessions.Close)
	c := acptest.NewClient(t, sessions.Handlers(), nil, nil)
	if n := len(c.Say(t, c.StartSession(t), "go").Updates); n < 100 || n > 400 {
		t.Errorf("%d updates", n)
	}
}
