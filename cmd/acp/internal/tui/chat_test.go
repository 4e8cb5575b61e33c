package tui

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
	"github.com/acpgo/sdk/internal/test/must"
)

// slow responds with two chunks and waits for a minute between them.
func slow(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
	text := req.Prompt[0].Text()
	if err := s.Update(ctx, acp.AgentMessageText("Begun: "+text+". ")); err != nil {
		return nil, err
	}
	select {
	case <-time.After(time.Minute):
	case <-ctx.Done():
		return &acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
	}
	return done, s.Update(ctx, acp.AgentMessageText("Done: "+text+"."))
}

// TestTypedEarly: nothing typed while the agent starts is lost, neither sent prompts nor the draft.
func TestTypedEarly(t *testing.T) {
	inWorld(t, acp.AgentHandlers{NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
		time.Sleep(time.Second)
		return &acp.NewSessionResponse{SessionID: "s"}, nil
	}}, nil, func(w *world) {
		w.want("starting", "Starting tester")
		w.say("first")
		w.typ("draft")
		w.want("⏳ first", "> draft")
		w.sleep(2 * time.Second)
		w.want("You said: first", "> draft")
	})
}

// TestQueue: prompts sent while a turn is in progress are queued and visible, and the last one can be edited.
func TestQueue(t *testing.T) {
	inWorld(t, acp.AgentHandlers{Prompt: slow}, nil, func(w *world) {
		w.settle()
		for _, text := range []string{"one", "two", "three", "four"} {
			w.say(text)
		}
		w.want("⏳ two", "⏳ three", "⏳ four")
		w.key("alt+q")
		w.want("> four")
		w.wantNot("⏳ four")
		w.key("alt+q") // what was typed is in the history
		w.want("> three")
		w.typ("!")
		w.key("enter")
		w.want("⏳ two", "⏳ three!")
		w.sleep(61 * time.Second)
		w.want("Done: one.", "Begun: two.", "⏳ three!")
		w.sleep(3 * time.Minute)
		w.want("Done: three!.", "ready")
		w.wantNot("⏳", "four")
		w.key("alt+q")
		w.want("No prompts are queued.")
		w.key("up", "up")
		w.want("> four")
	})
}

func TestInterruptTwiceLeaves(t *testing.T) {
	inWorld(t, acp.AgentHandlers{Prompt: slow}, nil, func(w *world) {
		w.settle()
		w.key("ctrl+c")
		w.want("Press Ctrl-C again to quit.")
		w.sleep(3 * time.Second)
		w.key("ctrl+c")
		if w.quit {
			t.Fatal("left after one Ctrl-C, long after another")
		}
		w.say("one")
		w.sleep(3 * time.Second)
		w.key("ctrl+c", "ctrl+c")
		if !w.quit {
			t.Fatal("did not leave")
		}
	})
}

func TestEndOfInput(t *testing.T) {
	inWorld(t, acp.AgentHandlers{}, nil, func(w *world) {
		w.settle()
		w.typ("a")
		w.key("ctrl+d")
		if w.quit {
			t.Fatal("left with something in the editor")
		}
		w.key("backspace", "ctrl+d")
		if !w.quit {
			t.Fatal("did not leave")
		}
	})
}

func TestMultiLine(t *testing.T) {
	said := make(chan string, 1)
	inWorld(t, acp.AgentHandlers{Prompt: func(_ context.Context, _ *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
		text := req.Prompt[0].Text()
		said <- text
		return done, nil
	}}, nil, func(w *world) {
		w.settle()
		w.typ("one")
		w.key("ctrl+j")
		w.typ("two")
		w.key("alt+enter")
		w.update(tea.PasteMsg{Content: "three\r\nfour\tq\x1b[2J"})
		w.key("enter")
		if got := <-said; got != "one\ntwo\nthree\nfour    q[2J" {
			t.Errorf("said %q", got)
		}
	})
}

// TestLongPaste: a long text is shown as a placeholder, and sent in full.
func TestLongPaste(t *testing.T) {
	said := make(chan string, 1)
	inWorld(t, acp.AgentHandlers{Prompt: func(_ context.Context, _ *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
		text := req.Prompt[0].Text()
		said <- text
		return done, nil
	}}, nil, func(w *world) {
		w.settle()
		long := strings.Repeat("line\n", 100) + "end"
		w.typ("see ")
		w.update(tea.PasteMsg{Content: long})
		w.want("[pasted text 1: 101 lines]")
		w.key("enter")
		if got := <-said; got != "see "+long {
			t.Errorf("said %q", got)
		}
	})
}

// TestCompletions: commands of the agent and files are completed.
func TestCompletions(t *testing.T) {
	blocks := make(chan []acp.ContentBlock, 1)
	inWorld(t, acp.AgentHandlers{
		NewSession: func(ctx context.Context, c *acp.AgentConn, _ *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			acp.AfterResponse(ctx, func(ctx context.Context) {
				_ = c.Session("s").Update(ctx, acp.CommandsUpdate(acp.AvailableCommand{Name: "review", Description: "Reviews it."}, acp.AvailableCommand{Name: "explain", Description: "Explains it."}))
			})
			return &acp.NewSessionResponse{SessionID: "s"}, nil
		},
		Prompt: func(_ context.Context, _ *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			blocks <- req.Prompt
			return done, nil
		},
	}, nil, func(w *world) {
		dir := w.m.opts.Talk.Cwd
		for _, name := range []string{"main.go", "with space.txt", "picture.png", ".hidden"} {
			must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte("\x89PNG\r\n\x1a\n"), 0o600))
		}
		w.sleep(time.Second)
		w.typ("/rv")
		w.want("/review", "Reviews it.")
		w.wantNot("/explain")
		w.key("tab")
		w.want("> /review")
		w.typ("@mgo")
		w.sleep(time.Second)
		w.want("@main.go")
		w.wantNot("hidden")
		w.key("enter")
		w.typ("@space")
		w.sleep(time.Second)
		w.key("tab")
		w.typ("@nothing")
		w.key("enter")
		got := <-blocks
		var names []string
		for _, b := range got[1:] {
			if link, ok := b.Variant.(*acp.ContentBlockResourceLink); ok {
				names = append(names, link.Name)
			}
		}
		if text := got[0].Text(); text != `/review @main.go @"with space.txt" @nothing` || strings.Join(names, ",") != "main.go,with space.txt" {
			t.Errorf("sent %q with %q", text, names)
		}
	})
}

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
