package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/cmd/acp/internal/history"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
	"github.com/acpgo/sdk/conformance"
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

// steerable is an agent that accepts prompts in a running turn.
type steerable struct {
	t       *testing.T
	outcome string
	fails   bool

	mu   sync.Mutex
	said []string
}

type steerParams struct {
	SessionID acp.SessionID      `json:"sessionId"`
	Prompt    []acp.ContentBlock `json:"prompt"`
	Meta      struct {
		Steering struct {
			IdleBehavior string `json:"idleBehavior"`
		} `json:"steering"`
	} `json:"_meta"`
}

func (a *steerable) connect(context.Context) (acp.Transport, error) {
	client, agent := acp.Pipe()
	extensions := &acp.Extensions[acp.AgentConn]{}
	rpc.Handle(extensions, "_session/steering", func(_ context.Context, _ *acp.AgentConn, p *steerParams) (*map[string]string, error) {
		text := p.Prompt[0].Text()
		a.mu.Lock()
		defer a.mu.Unlock()
		a.said = append(a.said, fmt.Sprintf("%s: %s (%s)", p.SessionID, text, p.Meta.Steering.IdleBehavior))
		if a.fails {
			return nil, errors.New("not now")
		}
		return &map[string]string{"outcome": a.outcome}, nil
	})
	_, err := acp.StartAgent(context.Background(), agent, complete(acp.AgentHandlers{Prompt: slow, Extensions: extensions}), &acp.AgentOptions{
		Info: acp.Implementation{Name: "tester", Version: "1"},
		Initialize: func(_ context.Context, _ *acp.InitializeRequest, res *acp.InitializeResponse) error {
			return res.Meta.Set("steering", map[string]bool{"supported": true})
		},
	})
	return conformance.Tap(a.t, conformance.Client, client, &conformance.TapOptions{Schema: conformance.Negotiated(conformance.V1Unstable(), conformance.V2Unstable())}), err
}

// TestSteer: a prompt sent into a turn reaches the agent at once; if the agent does not accept it, it is queued.
func TestSteer(t *testing.T) {
	for _, test := range []struct {
		outcome string
		fails   bool
		want    string
		waits   bool
	}{
		{"injected", false, "Sent into the turn: left", false},
		{"startedNewTurn", false, "a new one has begun: left", false},
		{"promptRequired", false, "⏳ left", true},
		{"failed", false, "The agent says: failed", true},
		{"", true, "queued until its end", true},
	} {
		t.Run(test.outcome, func(t *testing.T) {
			a := &steerable{t: t, outcome: test.outcome, fails: test.fails}
			inWorld(t, acp.AgentHandlers{}, func(o *Options) { o.Talk.Agent.Connect = a.connect }, func(w *world) {
				w.settle()
				w.say("go")
				w.sleep(time.Second)
				w.typ("left")
				w.key("alt+s")
				w.sleep(time.Second)
				w.want(test.want, "Begun: go.")
				if got, want := a.said, []string{"s1: left (promptRequired)"}; !slices.Equal(got, want) {
					t.Errorf("the agent got %q, want %q", got, want)
				}
				w.say("then")
				w.key("alt+q", "alt+s") // the last queued one
				w.sleep(time.Second)
				if len(a.said) != 2 {
					t.Errorf("the agent got %q", a.said)
				}
				w.sleep(2 * time.Minute)
				if test.waits {
					w.want("Begun: left.")
				} else {
					w.wantNot("Begun: left.")
				}
			})
		})
	}
}

// TestSteerCannot: an agent that does not accept prompts in a running turn gets them afterwards.
func TestSteerCannot(t *testing.T) {
	inWorld(t, acp.AgentHandlers{Prompt: slow}, nil, func(w *world) {
		w.settle()
		w.typ("one")
		w.key("alt+s") // no turn is running
		w.sleep(time.Second)
		w.want("Begun: one.")
		w.typ("two")
		w.key("alt+s")
		w.sleep(time.Second)
		w.want("does not accept prompts in a running turn", "⏳ two")
		w.sleep(time.Minute)
		w.want("Begun: two.")
	})
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

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
