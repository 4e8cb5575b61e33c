package tui

import (
	"context"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/cmd/acp/internal/history"
	"github.com/acpgo/sdk/internal/test/must"
)

// TestTimes: tool calls and turns show their duration while they run and afterwards; that of a call begins when it is
// allowed. Short ones show nothing.
func TestTimes(t *testing.T) {
	prompt := func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		set := func(id acp.ToolCallID, status acp.ToolCallStatus) error {
			return s.Update(ctx, acp.NewSessionUpdateToolCallUpdate(acp.ToolCallUpdate{ToolCallID: id, Status: acp.Some(status)}))
		}
		for _, call := range []acp.ToolCall{
			{ToolCallID: "quick", Title: "Read a file", Status: acp.ToolCallStatusPending},
			{ToolCallID: "slow", Title: "Run the tests " + strings.Repeat("again and ", 20), Status: acp.ToolCallStatusPending},
		} {
			if err := s.Update(ctx, acp.NewSessionUpdateToolCall(call)); err != nil {
				return nil, err
			}
		}
		if err := set("quick", acp.ToolCallStatusCompleted); err != nil {
			return nil, err
		}
		if _, err := s.RequestPermission(ctx, acp.ToolCallUpdate{ToolCallID: "slow"}, fourOptions...); err != nil {
			return nil, err
		}
		if err := set("slow", acp.ToolCallStatusInProgress); err != nil {
			return nil, err
		}
		time.Sleep(75 * time.Second)
		if err := set("slow", acp.ToolCallStatusCompleted); err != nil {
			return nil, err
		}
		return done, s.Update(ctx, acp.AgentMessageText("Tested."))
	}
	inWorld(t, acp.AgentHandlers{Prompt: prompt}, nil, func(w *world) {
		w.settle()
		w.say("test")
		w.sleep(20 * time.Second)
		w.wantNot("running") // the question stopped the clock
		w.key("y")
		w.sleep(11 * time.Second)
		w.want("…  running 10s", "working 3")
		w.sleep(time.Second)
		w.want("…  running 11s")
		w.sleep(69 * time.Second)
		w.want("…  ran 1m15s", "Tested.", "worked 1m35s", "ready")
		for l := range strings.SplitSeq(w.screen(), "\n") {
			if strings.Contains(l, "Read a file") && strings.ContainsAny(l, "0123456789") {
				t.Errorf("the time of a call that was over at once: %q", l)
			}
		}
	})
}

// TestBell: the bell rings at the end of a turn and at a question, either if the terminal has reported that its window
// does not have the focus, or always, or never; not for a turn that the user cancelled, nor before the queue is empty.
func TestBell(t *testing.T) {
	for _, test := range []struct {
		when                                           Notify
		unknown, focused, unfocused, queued, cancelled int
	}{
		{NotifyUnfocused, 0, 0, 2, 2, 0},
		{NotifyAlways, 2, 2, 2, 2, 0},
		{NotifyNever, 0, 0, 0, 0, 0},
	} {
		t.Run(string(test.when), func(t *testing.T) {
			a := &asker{}
			inWorld(t, acp.AgentHandlers{Prompt: func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
				if text := req.Prompt[0].Text(); strings.HasPrefix(text, "ask") {
					return a.prompt(ctx, s, req)
				}
				return slow(ctx, s, req)
			}}, func(o *Options) { o.Notify = test.when }, func(w *world) {
				w.settle()
				if w.m.View().ReportFocus != (test.when == NotifyUnfocused) {
					t.Error("focus is reported, or not")
				}
				rings := func(what string, want int, do func()) {
					t.Helper()
					w.bells = 0
					do()
					w.sleep(3 * time.Second)
					if w.bells != want {
						t.Errorf("%s: %d bells, want %d", what, w.bells, want)
					}
				}
				ask := func() {
					w.say("ask")
					w.sleep(3 * time.Second)
					w.key("y")
				}
				rings("nothing is known of the focus", test.unknown, ask)
				w.update(focus(true))
				rings("focus", test.focused, ask)
				w.update(focus(false))
				rings("no focus", test.unfocused, ask)
				rings("a queue", test.queued, func() {
					w.say("slow")
					w.say("ask")
					w.sleep(62 * time.Second)
					w.key("y")
				})
				rings("cancelled", test.cancelled, func() {
					w.say("slow")
					w.sleep(time.Second)
					w.key("ctrl+c")
				})
			})
		})
	}
}

// TestEarlierPrompts: the prompts of earlier runs in the directory come before those of this one.
func TestEarlierPrompts(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	file, err := history.For("/work")
	must.Do(t, err)
	long := strings.Repeat("line\n", 30)
	keep := func(o *Options) { o.Prompts = file }
	inWorld(t, acp.AgentHandlers{}, keep, func(w *world) {
		w.settle()
		w.say("first")
		w.sleep(time.Second)
		w.typ("second ")
		w.m.paste(long)
		w.key("enter")
	})
	inWorld(t, acp.AgentHandlers{}, keep, func(w *world) {
		w.update(tea.WindowSizeMsg{Width: 80, Height: 60})
		w.settle()
		w.say("third")
		w.sleep(time.Second)
		w.typ("draft")
		w.key("up")
		w.want("> third")
		w.key("up")
		w.want("> second [pasted text 1: 31 lines]")
		w.key("up")
		w.want("> first")
		w.key("up", "down", "enter")
		w.sleep(time.Second)
		w.want("You said: second line") // pasted text is included
	})
	got, err := file.Load()
	must.Do(t, err)
	if len(got) != 4 || got[3].Text != got[1].Text || len(got[3].Pasted) != 1 || got[3].Pasted[0] != long {
		t.Errorf("kept: %.60q", got)
	}
}

func focus(has bool) tea.Msg {
	if has {
		return tea.FocusMsg{}
	}
	return tea.BlurMsg{}
}
