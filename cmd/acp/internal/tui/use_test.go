package tui

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/internal/test/must"
)

// gated is an agent whose turns end one by one, and which records the prompts.
type gated struct {
	library
	next    chan struct{} // created in the world of the test
	mu      sync.Mutex
	prompts []string
}

func (g *gated) handlers() acp.AgentHandlers {
	h := g.library.handlers()
	h.Prompt = func(ctx context.Context, _ *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
		text := req.Prompt[0].Text()
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

// TestDeletedSessionSendsNothing: queued prompts of a session that is deleted are not sent.
func TestDeletedSessionSendsNothing(t *testing.T) {
	g := &gated{}
	h := g.handlers()
	h.NewSession = nil // gives each session a different id
	inWorld(t, h, nil, func(w *world) {
		g.next = make(chan struct{})
		w.settle()
		w.say("one")
		w.say("two")
		w.do(w.m.deleteThis(w.m.chat))
		w.settle()
		w.key("down", "enter")
		w.sleep(time.Second)
		g.library.want(t, &g.deleted, "s1")
		g.want(t, "one")
	})
}

// TestLastIsOpen: if the last session of the directory is already open, it is shown and not loaded again.
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

// TestManyOptions: if there are more answers than fit, those around the selected one are shown, and no key gives an
// answer that is not shown.
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

// TestPromptWhileBroughtBack: prompts sent while the sessions of a restarted agent are being restored are queued.
func TestPromptWhileBroughtBack(t *testing.T) {
	l := &library{}
	h := l.handlers()
	load := h.LoadSession
	h.LoadSession = func(ctx context.Context, s *acp.AgentSession, req *acp.LoadSessionRequest) (*acp.LoadSessionResponse, error) {
		time.Sleep(10 * time.Second)
		return load(ctx, s, req)
	}
	inWorld(t, h, func(o *Options) { o.Talk.NoReconnect = true }, func(w *world) {
		w.settle()
		w.say("hello")
		w.sleep(time.Second)
		l.mu.Lock()
		conn := l.conn
		l.mu.Unlock()
		w.running.Go(func() { _ = conn.Close() })
		w.sleep(2 * time.Second)
		w.key("ctrl+g", "r")
		w.sleep(2 * time.Second)
		w.say("again")
		w.sleep(time.Second)
		w.want("⏳ again")
		w.sleep(10 * time.Second)
		w.want("Old answer of new.", "You said: again", " ready ")
	})
}

// TestQuestionShownAgain: a question that comes into view without a key takes no keys until it has been visible for
// some time, even if it was seen before.
func TestQuestionShownAgain(t *testing.T) {
	a := &asker{}
	h := acp.AgentHandlers{Prompt: a.prompt}
	h.DeleteSession = func(context.Context, *acp.AgentSession, *acp.DeleteSessionRequest) (*acp.DeleteSessionResponse, error) {
		time.Sleep(5 * time.Second)
		return &acp.DeleteSessionResponse{}, nil
	}
	inWorld(t, h, nil, func(w *world) {
		w.settle()
		w.say("go")
		w.sleep(time.Second)
		w.want("asks for permission")
		w.key("ctrl+s", "n")
		w.sleep(time.Second)
		w.do(w.m.deleteThis(w.m.chat))
		w.settle()
		w.key("down", "enter")
		for w.m.question() == nil {
			w.sleep(frame)
		}
		w.key("y")
		w.sleep(time.Second)
		a.want(t)
	})
}

// TestMentionWithPunctuation: a file named at the end of a sentence is found.
func TestMentionWithPunctuation(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"main.go", "a b.txt", "naïve 文.txt"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	p := prompt{text: `See @main.go, @"a b.txt". Not @nobody! But @"naïve 文.txt"? And @main.go.`}
	blocks, err := p.blocks(dir, acp.PromptCapabilities{})
	must.Do(t, err)
	var names []string
	for _, b := range blocks[1:] {
		if link, ok := b.Variant.(*acp.ContentBlockResourceLink); ok {
			names = append(names, link.Name)
		}
	}
	if got := strings.Join(names, "|"); got != "main.go|a b.txt|naïve 文.txt|main.go" {
		t.Errorf("the files are %s", got)
	}
}

// TestSmallScreens: a question uses the whole of a small screen when it takes keys, and takes none if there is no room
// for it.
func TestSmallScreens(t *testing.T) {
	a := &asker{}
	inWorld(t, acp.AgentHandlers{Prompt: a.prompt}, nil, func(w *world) {
		w.settle()
		w.say("go")
		w.sleep(time.Second)
		w.update(tea.WindowSizeMsg{Width: 20, Height: 8})
		w.sleep(time.Second)
		w.want("asks for", "kind execute", "y  allow once", "Y  allow always", "n  reject once", "N  reject alwa")
		w.key("y") // the command is not visible yet
		w.sleep(time.Second)
		a.want(t)
		w.update(tea.WindowSizeMsg{Width: 20, Height: 5})
		w.sleep(time.Second)
		w.want("kind execute", "y  allow once", "Up, Down: 1 to 1 of")
		w.update(tea.WindowSizeMsg{Width: 20, Height: 1})
		w.sleep(time.Second)
		w.want("asks")
		w.key("y", "1", "down", "enter")
		a.want(t)
		w.update(tea.WindowSizeMsg{Width: 1, Height: 1})
		w.screen()
	})
}

// TestWheel: the wheel scrolls the top layer, not the conversation below.
func TestWheel(t *testing.T) {
	a := &asker{call: func(acp.SessionID) acp.ToolCallUpdate {
		var text strings.Builder
		for i := range 100 {
			fmt.Fprintf(&text, "line %d\n\n", i)
		}
		return acp.ToolCallUpdate{ToolCallID: "t", Title: acp.Some("Long"), Content: acp.Some([]acp.ToolCallContent{acp.ToolText(text.String())})}
	}}
	inWorld(t, acp.AgentHandlers{Prompt: a.prompt}, nil, func(w *world) {
		w.settle()
		down := func() { w.update(tea.MouseWheelMsg{Button: tea.MouseWheelDown}) }
		w.key("?")
		w.want("1 to 21 of")
		down()
		w.want("4 to 24 of")
		w.key("esc")
		w.say("go")
		w.sleep(time.Second)
		w.want("more below")
		down()
		w.want("PgUp: 3 above")
	})
}

// TestOpenedTwice: a session that is being opened is not opened a second time.
func TestOpenedTwice(t *testing.T) {
	g := &gated{}
	h := g.handlers()
	h.NewSession = nil // gives each session a different id
	load := h.LoadSession
	h.LoadSession = func(ctx context.Context, s *acp.AgentSession, req *acp.LoadSessionRequest) (*acp.LoadSessionResponse, error) {
		time.Sleep(10 * time.Second)
		return load(ctx, s, req)
	}
	inWorld(t, h, func(o *Options) { g.store(o.Talk.Cwd, time.Now()) }, func(w *world) {
		g.next = make(chan struct{})
		w.settle()
		w.key("ctrl+r", "enter")
		w.sleep(time.Second)
		w.key("ctrl+r", "enter")
		w.sleep(30 * time.Second)
		w.want("Old answer of newer.")
		g.library.want(t, &g.loaded, "newer in "+w.m.opts.Talk.Cwd)
		w.key("ctrl+n", "ctrl+r", "enter")
		w.want("Old answer of newer.")
	})
}

// TestDeleteStoredOpen: an open session is closed when it is deleted from the list of stored ones.
func TestDeleteStoredOpen(t *testing.T) {
	g := &gated{}
	h := g.handlers()
	h.NewSession = nil // gives each session a different id
	inWorld(t, h, func(o *Options) { g.store(o.Talk.Cwd, time.Now()) }, func(w *world) {
		g.next = make(chan struct{})
		w.settle()
		w.key("ctrl+r", "enter")
		w.want("Old answer of newer.")
		w.key("ctrl+r", "ctrl+x", "down", "enter")
		w.sleep(time.Second)
		g.library.want(t, &g.deleted, "newer")
		if len(w.m.chats) != 1 || w.m.chat.id == "newer" {
			t.Errorf("%d sessions are open, and %s is shown", len(w.m.chats), w.m.chat.id)
		}
	})
}

// TestCommandsComeLate: completions of a "/" typed before the agent's commands have arrived appear when they arrive.
func TestCommandsComeLate(t *testing.T) {
	handlers := acp.AgentHandlers{NewSession: func(ctx context.Context, conn *acp.AgentConn, _ *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
		acp.AfterResponse(ctx, func(ctx context.Context) {
			if sleep(ctx, time.Second) == nil {
				conn.Session("s").Update(ctx, acp.CommandsUpdate(acp.AvailableCommand{Name: "review", Description: "Read it"})) // the client may have gone
			}
		})
		return &acp.NewSessionResponse{SessionID: "s"}, nil
	}}
	inWorld(t, handlers, nil, func(w *world) {
		w.settle()
		w.typ("/")
		w.sleep(2 * time.Second)
		w.want("/review", "Read it")
	})
}

// Prompts such as /quit name actions, unless the agent has a command of that name.
func TestSlashActions(t *testing.T) {
	g := &gated{}
	handlers := g.handlers()
	handlers.NewSession = nil // the one that gives each session a different id
	inWorld(t, handlers, nil, func(w *world) {
		g.next = make(chan struct{}, 10)
		w.settle()
		w.say("/help")
		w.want("─ Keys ─")
		w.key("esc")
		w.say("/clear")
		if n := len(w.m.chats); n != 2 {
			t.Errorf("%d sessions are open", n)
		}
		w.say("/helpful")
		g.next <- struct{}{}
		w.settle()
		g.want(t, "/helpful")
		w.m.chat.snapshot.Commands = []acp.AvailableCommand{{Name: "quit"}}
		w.say("/quit")
		g.want(t, "/helpful", "/quit")
		if w.quit {
			t.Error("the agent's own command has ended the program")
		}
		w.say("/exit")
		if !w.quit {
			t.Error("the program goes on")
		}
	})
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
		w.m.started(startedMsg{client: w.m.client})
		if got, _ := w.m.state(); got != "agent ended" {
			t.Errorf("after its end: %q", got)
		}
	})
}
