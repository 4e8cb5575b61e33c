package tui

// This file owns tests of things that are done while others happen.

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/acpgo/sdk/acp"
)

// gated is an agent whose turns end one by one, and which notes the prompts.
type gated struct {
	library
	next    chan struct{} // made in the world of the test
	mu      sync.Mutex
	prompts []string
}

func (g *gated) handlers() acp.AgentHandlers {
	h := g.library.handlers()
	h.Prompt = func(ctx context.Context, _ *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
		text, _ := req.Prompt[0].Text()
		g.mu.Lock()
		g.prompts = append(g.prompts, text)
		g.mu.Unlock()
		select {
		case <-g.next:
			return done, nil
		case <-ctx.Done():
			return &acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
		}
	}
	return h
}

func (g *gated) want(t *testing.T, prompts ...string) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if strings.Join(g.prompts, "|") != strings.Join(prompts, "|") {
		t.Fatalf("the agent was asked %q, want %q", g.prompts, prompts)
	}
}

// TestQueueMarkStays: a turn ends while the user looks at what waits. The mark stays at the same prompt.
func TestQueueMarkStays(t *testing.T) {
	g := &gated{}
	inWorld(t, g.handlers(), nil, func(w *world) {
		g.next = make(chan struct{})
		w.settle()
		for _, p := range []string{"one", "two", "three", "four"} {
			w.say(p)
		}
		w.key("alt+q", "down") // at "three"
		g.next <- struct{}{}   // "two" is sent
		w.sleep(time.Second)
		w.key("x")
		for range 3 {
			select {
			case g.next <- struct{}{}:
				w.sleep(time.Second)
			case <-time.After(time.Second):
			}
		}
		g.want(t, "one", "two", "four")
	})
}

// TestQueueSentMeanwhile: the prompt at the mark was sent when the key comes, and the screen has not shown that yet.
func TestQueueSentMeanwhile(t *testing.T) {
	g := &gated{}
	inWorld(t, g.handlers(), nil, func(w *world) {
		g.next = make(chan struct{})
		w.settle()
		for _, p := range []string{"one", "two", "three"} {
			w.say(p)
		}
		w.key("alt+q") // at "two"
		c := w.m.chat
		c.queue = c.queue[1:]
		w.m.key(pressed("x")) // before it is drawn
		if len(c.queue) != 1 || c.queue[0].text != "three" {
			t.Errorf("another prompt was removed: %v", c.queue)
		}
	})
}

// TestDeletedSessionSendsNothing: what waits in a session that is deleted is not sent.
func TestDeletedSessionSendsNothing(t *testing.T) {
	g := &gated{}
	h := g.handlers()
	h.NewSession = nil // each session has another ID
	inWorld(t, h, nil, func(w *world) {
		g.next = make(chan struct{})
		w.settle()
		w.say("one")
		w.say("two")
		w.do(w.m.deleteChat())
		w.settle()
		w.key("down", "enter")
		w.sleep(time.Second)
		g.library.want(t, &g.deleted, "s1")
		g.want(t, "one")
	})
}

// TestLastIsOpen: the last session of the directory is open already: it is shown, and not loaded a second time.
func TestLastIsOpen(t *testing.T) {
	g := &gated{}
	inWorld(t, g.handlers(), func(o *Options) {
		g.store(o.Talk.Cwd, time.Now())
		o.Start.Continue = true
	}, func(w *world) {
		g.next = make(chan struct{})
		w.settle()
		w.say("one")
		w.key("ctrl+n")
		w.key("alt+l")
		w.want("Old answer of newer.")
		if n := strings.Count(w.screen(), "Old answer"); n != 1 || w.m.chat.cancel == nil {
			t.Errorf("the session is there %d times, its turn is in progress: %v", n, w.m.chat.cancel != nil)
		}
		g.library.want(t, &g.loaded, "newer in "+w.m.opts.Talk.Cwd)
	})
}

// TestHistoryKeepsPasted: long texts that were pasted stay what they are, in the draft and in earlier prompts.
func TestHistoryKeepsPasted(t *testing.T) {
	long := func(word string) string { return strings.TrimSuffix(strings.Repeat(word+"\n", 30), "\n") }
	var prompts []string
	h := acp.AgentHandlers{Prompt: func(_ context.Context, _ *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
		text, _ := req.Prompt[0].Text()
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

// TestManyOptions: of more answers than fit, those around the mark are shown, and no key gives one that is not shown.
func TestManyOptions(t *testing.T) {
	a := &asker{}
	for i := range 40 {
		a.options = append(a.options, acp.AllowOnce(acp.PermissionOptionID(fmt.Sprintf("o%d", i+1)), fmt.Sprintf("Answer %d.", i+1)))
	}
	inWorld(t, acp.AgentHandlers{Prompt: a.prompt}, nil, func(w *world) {
		w.settle()
		w.say("go")
		w.sleep(time.Second)
		w.want("rm -rf build", "Answer 1.")
		for range 31 {
			w.key("down")
		}
		w.want("rm -rf build", "Answer 31.")
		w.wantNot("Answer 1.")
		w.key("y", "1")
		w.sleep(time.Second)
		a.want(t)
		w.key("enter")
		w.settle()
		a.want(t, "o31")
	})
}

// TestCancelAnotherSession: Ctrl-C in a question that is answered from the overview cancels the turn that asks.
func TestCancelAnotherSession(t *testing.T) {
	a := &asker{}
	inWorld(t, acp.AgentHandlers{Prompt: a.prompt}, nil, func(w *world) {
		w.settle()
		first := w.m.chat
		w.say("go")
		w.sleep(time.Second)
		w.key("esc", "ctrl+n")
		w.key("ctrl+s", "up", "a")
		w.want("Remove the build of s1")
		w.key("ctrl+c")
		w.sleep(time.Second)
		a.want(t, "cancelled")
		if len(w.m.questions) > 0 || first.cancel != nil {
			t.Errorf("the turn goes on")
		}
	})
}

// TestAnswerTen: in the plain mode every answer can be chosen.
func TestAnswerTen(t *testing.T) {
	a := &asker{}
	for i := range 12 {
		a.options = append(a.options, acp.AllowOnce(acp.PermissionOptionID(fmt.Sprintf("o%d", i+1)), fmt.Sprintf("Answer %d.", i+1)))
	}
	s := plainly(t, acp.AgentHandlers{Prompt: a.prompt}, nil)
	s.want("> ")
	s.typ("go")
	s.want("12. Answer 12.", "Number: ")
	s.typ("11")
	s.want("Thank you.")
	a.want(t, "o11")
}
