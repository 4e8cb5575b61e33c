package tui

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/cmd/acp/internal/history"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
	"github.com/acpgo/sdk/internal/test/must"
)

// TestStderrFlood: lines of the agent's standard error that arrive fast are combined, and the last ones are kept.
func TestStderrFlood(t *testing.T) {
	inWorld(t, acp.AgentHandlers{}, nil, func(w *world) {
		w.sleep(time.Second)
		before := w.updates
		for i := range 100_000 {
			w.m.mail.put(eventMsg{Kind: talk.Stderr, Text: fmt.Sprint("line ", i)})
			w.m.mail.put(outputMsg{"s1", "t"})
		}
		w.sleep(time.Second)
		if n := w.updates - before; n > 10 {
			t.Errorf("drawn %d times", n)
		}
		w.key("alt+n")
		w.want("line 99999")
	})
}

// TestEarlierPrompts: the prompts of earlier runs in the directory come before those of this one.
func TestEarlierPrompts(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	file := must.Get(history.For("/work"))(t)
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
	got := must.Get(file.Load())(t)
	if len(got) != 4 || got[3].Text != got[1].Text || len(got[3].Pasted) != 1 || got[3].Pasted[0] != long {
		t.Errorf("kept: %.60q", got)
	}
}

// TestHistoryKeepsPasted: long pasted texts are preserved in the draft and in earlier prompts.
func TestHistoryKeepsPasted(t *testing.T) {
	long := func(word string) string { return strings.TrimSuffix(strings.Repeat(word+"\n", 30), "\n") }
	var prompts []string
	h := acp.AgentHandlers{Prompt: func(_ context.Context, _ *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
		text := req.Prompt[0].Text()
		prompts = append(prompts, text)
		return done, nil
	}}
	inWorld(t, h, nil, func(w *world) {
		w.settle()
		for _, text := range []string{"first", "second"} {
			w.update(tea.PasteMsg{Content: long(text)})
			w.key("enter")
		}
		w.update(tea.PasteMsg{Content: long("draft")})
		w.key("up", "up", "down", "down", "enter")
		w.key("up", "up", "enter")
		w.key("up", "up", "up", "up", "enter")
		want := []string{long("first"), long("second"), long("draft"), long("second"), long("first")}
		if fmt.Sprint(prompts) != fmt.Sprint(want) {
			t.Errorf("the agent got %q", prompts)
		}
	})
}

// TestMentionWithPunctuation: a file named at the end of a sentence is found.
func TestMentionWithPunctuation(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"main.go", "a b.txt", "naïve 文.txt"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	p := prompt{text: `See @main.go, @"a b.txt". Not @nobody! But @"naïve 文.txt"? And @main.go?)`}
	var names []string
	for _, b := range must.Get(p.blocks(dir, acp.PromptCapabilities{}))(t)[1:] {
		names = append(names, b.Variant.(*acp.ContentBlockResourceLink).Name)
	}
	if want := []string{"main.go", "a b.txt", "naïve 文.txt", "main.go"}; !slices.Equal(names, want) {
		t.Errorf("the files are %q, want %q", names, want)
	}
}

// Brief messages disappear after some time.
func TestTellBriefly(t *testing.T) {
	inWorld(t, acp.AgentHandlers{}, nil, func(w *world) {
		w.settle()
		w.key("ctrl+c")
		w.want("Press Ctrl-C again")
		w.sleep(twice)
		w.wantNot("Press Ctrl-C again")
		w.key("alt+r")
		w.m.tellHere("Something else.")
		w.sleep(answerShown)
		w.want("Something else.")
	})
}

// Text is copied by the terminal, and the mouse is left to the terminal.
func TestCopy(t *testing.T) {
	handlers := acp.AgentHandlers{Prompt: func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		return done, s.Update(ctx, acp.AgentMessageText("Do this:\n\n```sh\nfirst\n```\n\n- or\n\n  ```\n  second\n  third\n  ```\n\nDone.\n"))
	}}
	inWorld(t, handlers, nil, func(w *world) {
		w.settle()
		copied := func(f func(*Model) tea.Cmd) string {
			if cmd := f(w.m); cmd != nil {
				return fmt.Sprint(cmd())
			}
			return ""
		}
		if got := copied((*Model).copyMessage); got != "" {
			t.Errorf("copied %q", got)
		}
		w.want("no message")
		w.say("How?")
		if got := copied((*Model).copyMessage); !strings.HasPrefix(got, "Do this:\n") || !strings.HasSuffix(got, "\nDone.\n") {
			t.Errorf("copied %q", got)
		}
		w.key("alt+up", "alt+up")
		if got := copied((*Model).copyMessage); got != "How?" {
			t.Errorf("copied %q", got)
		}
		before := w.m.View().MouseMode
		w.key("alt+r")
		if mode := w.m.View().MouseMode; mode != tea.MouseModeNone {
			t.Errorf("the mouse is taken: %v", mode)
		}
		w.key("alt+r")
		if mode := w.m.View().MouseMode; mode != before {
			t.Errorf("the mouse is left to the terminal: %v", mode)
		}
	})
}

// An agent that ends while it starts is not confused with one that is restarted.
func TestStateOfTheAgent(t *testing.T) {
	inWorld(t, acp.AgentHandlers{}, nil, func(w *world) {
		w.want("Connecting to tester, for " + w.m.opts.Talk.Cwd)
		if got, _ := w.m.state(); got != "starting" {
			t.Errorf("before the agent is there: %q", got)
		}
		w.settle()
		w.m.connection = connecting
		if got, _ := w.m.state(); got != "starting" {
			t.Errorf("when it starts again: %q", got)
		}
		w.m.connection = dead
		w.m.started(w.m.client, nil)
		if got, _ := w.m.state(); got != "agent ended" {
			t.Errorf("after its end: %q", got)
		}
	})
}
