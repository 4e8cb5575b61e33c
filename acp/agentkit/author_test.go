package agentkit_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/rpc"
)

type anyTurn = agentkit.Turn[struct{}]

// playing is an agent whose turns do what do does, and a client with an open session. What the agent logs is in the house.
func playing(t *testing.T, h *house, config agentkit.Config[struct{}], do func(context.Context, *anyTurn) error) (*client, *acp.ClientSession) {
	t.Helper()
	config.Prompt = func(ctx context.Context, t *anyTurn, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		return nil, do(ctx, t)
	}
	config.Logger = slog.New(slog.NewTextHandler(h, nil))
	config.Title = func([]acp.ContentBlock) string { return "" }
	c := connect(t, agentkit.NewSessions(config), &acp.AgentOptions{Conn: acp.ConnOptions{Logger: config.Logger}}, tapped)
	return c, begin(t, c, "/w")
}

func wantStop(t *testing.T, s *acp.ClientSession, text string, want acp.StopReason) {
	t.Helper()
	if res, err := s.Prompt(t.Context(), acp.TextBlock(text)); err != nil || res.StopReason != want {
		t.Errorf("%s: the turn ended with %+v, %v, want %s", text, res, err, want)
	}
}

// A handler without a result ends the turn.
func TestNoResult(t *testing.T) {
	_, s := playing(t, newHouse(), agentkit.Config[struct{}]{}, func(ctx context.Context, t *anyTurn) error {
		return t.Sayf(ctx, "%d of %s", 1, t.Request().Prompt[0].Variant.(*acp.ContentBlockText).Text)
	})
	wantStop(t, s, "two", acp.StopReasonEndTurn)
}

// A tool runs as a call of its kind. One that fails does not end the turn, and the author learns why.
func TestTool(t *testing.T) {
	h := newHouse()
	command := exec.Command(os.Args[0], "-no-such-flag")
	failed := command.Run()
	if _, ok := errors.AsType[*exec.ExitError](failed); !ok {
		t.Fatal(failed)
	}
	_, s := playing(t, h, agentkit.Config[struct{}]{
		ToolError: func(call acp.ToolCall, err error) string {
			if call.Title == "mine" {
				return "my own words for " + err.Error()
			}
			return ""
		},
	}, func(ctx context.Context, t *anyTurn) error {
		for _, tool := range []struct {
			title string
			err   error
		}{
			{"fine", nil},
			{"secret", errors.New("disk sda1 is broken")},
			{"mine", errors.New("sda2")},
			{"status", fmt.Errorf("make: %w", failed)},
			{"rejected", agentkit.ErrRejected},
		} {
			do := func(*agentkit.ToolCall) error { return tool.err }
			if err := t.Tool(ctx, acp.ToolKindEdit, tool.title, do); err != nil {
				return err
			}
		}
		_, err := t.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: "/w/a"})
		return t.Tool(ctx, acp.ToolKindRead, "unsupported", func(*agentkit.ToolCall) error { return err })
	})
	turn, calls := s.Stream(t.Context(), acp.TextBlock("go")), []acp.ToolCall(nil)
	for u := range turn.Updates() {
		switch u := u.Variant.(type) {
		case *acp.SessionUpdateToolCall:
			calls = append(calls, acp.ToolCall(*u))
		case *acp.SessionUpdateToolCallUpdate:
			calls[len(calls)-1].Apply(acp.ToolCallUpdate(*u))
		}
	}
	if res, err := turn.Result(); err != nil || res.StopReason != acp.StopReasonEndTurn || len(calls) != 6 || calls[0].Kind != acp.ToolKindEdit {
		t.Fatalf("the turn ended with %+v, %v, after %+v", res, err, calls)
	}
	wantShows(t, calls[0], acp.ToolCallStatusCompleted)
	for i, want := range []string{"The tool failed.", "my own words for sda2", "exit status 2", "the user did not allow it", "The tool failed."} {
		wantShows(t, calls[i+1], acp.ToolCallStatusFailed, want)
	}
	for _, want := range []string{"title=secret", "disk sda1 is broken", "title=mine", "sda2", "title=status", "title=unsupported"} {
		if !strings.Contains(h.log(), want) {
			t.Errorf("the log lacks %q:\n%s", want, h.log())
		}
	}
	if strings.Contains(h.log(), "title=rejected") {
		t.Errorf("that the user has rejected a call is a warning:\n%s", h.log())
	}
}

// A failed call shows the client's own error, an exit status, and what the author says.
func TestToolErrorShows(t *testing.T) {
	answered := func(method string) error {
		return &acp.CallError{Method: method, Err: rpc.ErrInternal.WithMessagef("No such file or directory").WithData(map[string]int{"errno": 2})}
	}
	zero, two := acp.TerminalExitStatus{ExitCode: acp.Some[uint32](0)}, acp.TerminalExitStatus{ExitCode: acp.Some[uint32](2)}
	if err := zero.Err(); err != nil {
		t.Errorf("a command that ended well: %v", err)
	}
	for want, err := range map[string]error{
		`No such file or directory: {"errno":2}`: fmt.Errorf("reading: %w", answered(acp.MethodReadTextFile)),
		"The tool failed.":                       answered(acp.MethodPrompt), // of another agent
		"exit status 2":                          two.Err(),
		"signal: SIGKILL":                        acp.TerminalExitStatus{Signal: acp.Some("SIGKILL")}.Err(),
		"the user did not allow it":              agentkit.ErrRejected,
	} {
		call, started := agentkit.StartToolCall(t.Context(), &sink{}, "Tool")
		if started != nil {
			t.Fatal(started)
		}
		if err := call.Fail(err); err != nil {
			t.Fatal(err)
		}
		wantShows(t, call.State(), acp.ToolCallStatusFailed, want)
	}
}

// A message that was not sent because the author made it wrong ends the turn, and the author learns of it.
func TestMistakesEndTheTurn(t *testing.T) {
	for name, do := range map[string]func(context.Context, *anyTurn, *agentkit.ToolCall) error{
		"a relative path": func(_ context.Context, _ *anyTurn, call *agentkit.ToolCall) error {
			return call.Diff("relative.txt", "", "text")
		},
		"two options with one id": func(ctx context.Context, _ *anyTurn, call *agentkit.ToolCall) error {
			_, err := call.Ask(ctx, acp.AllowOnce("a", "A"), acp.RejectOnce("a", "B"))
			return err
		},
	} {
		h := newHouse()
		c, s := playing(t, h, agentkit.Config[struct{}]{}, func(ctx context.Context, t *anyTurn) error {
			return t.Tool(ctx, acp.ToolKindEdit, "Edit", func(call *agentkit.ToolCall) error { return do(ctx, t, call) }, agentkit.WithToolCallID("c"))
		})
		_, err := s.Prompt(t.Context(), acp.TextBlock("go"))
		wantError(t, name, err, rpc.ErrInternal)
		wantLines(t, "told", c.heard(), "call: c Edit pending", "call: c failed")
		if n := strings.Count(h.log(), "acp: not sent"); n != 2 || !strings.Contains(h.log(), "title=Edit") { // of the call, and of the turn
			t.Errorf("%s: logged %d times:\n%s", name, n, h.log())
		}
	}
}

// A plan shows its steps, and what has become of them; a nil one shows nothing.
func TestPlan(t *testing.T) {
	var none *agentkit.Plan
	if err := errors.Join(none.Start(0), none.Done(7)); err != nil {
		t.Error(err)
	}
	var shown []string
	_, s := playing(t, newHouse(), agentkit.Config[struct{}]{}, func(ctx context.Context, t *anyTurn) error {
		p := t.Plan(ctx, "Edit", "Run")
		return errors.Join(p.Start(0), p.Done(0), p.Start(1))
	})
	turn := s.Stream(t.Context(), acp.TextBlock("go"))
	for u := range turn.Updates() {
		if plan, ok := u.Variant.(*acp.SessionUpdatePlan); ok {
			line := ""
			for _, e := range plan.Entries {
				line += fmt.Sprintf("%s %s ", e.Content, e.Status)
			}
			shown = append(shown, strings.TrimSpace(line))
		}
	}
	if _, err := turn.Result(); err != nil {
		t.Fatal(err)
	}
	wantLines(t, "plans", shown, "Edit pending Run pending", "Edit in_progress Run pending", "Edit completed Run pending",
		"Edit completed Run in_progress")
}

// The error of showing a plan is that of the next call too.
func TestPlanIsNotStored(t *testing.T) {
	var first, second error
	config := agentkit.Config[struct{}]{Store: failing{open(t, t.TempDir())}}
	_, s := playing(t, newHouse(), config, func(ctx context.Context, t *anyTurn) error {
		p := t.Plan(ctx, "Edit")
		first, second = p.Start(0), p.Done(0)
		return nil
	})
	wantStop(t, s, "go", acp.StopReasonEndTurn)
	for i, err := range []error{first, second} {
		if n := strings.Count(fmt.Sprint(err), errDisk.Error()); !errors.Is(err, agentkit.ErrNotStored) || n != 2-i {
			t.Errorf("call %d: %v", i, err)
		}
	}
}
