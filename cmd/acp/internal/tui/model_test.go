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
			inWorld(t, (&cast{}).handlers(), func(o *Options) { o.Notify = test.when }, func(w *world) {
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
