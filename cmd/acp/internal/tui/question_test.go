package tui

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/acpgo/sdk/acp"
)

var fourOptions = []acp.PermissionOption{
	acp.AllowOnce("once", "Allow"), acp.AllowAlways("always", "Always allow"),
	acp.RejectOnce("no", "Reject"), acp.RejectAlways("never", "Never allow"),
}

// asker asks for permission in each turn, and records the answers.
type asker struct {
	mu      sync.Mutex
	answers []string
	call    func(session acp.SessionID) acp.ToolCallUpdate
	options []acp.PermissionOption
}

func (a *asker) prompt(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
	call := acp.ToolCallUpdate{ToolCallID: "t", Title: acp.Some("Remove the build of " + string(s.ID())), Kind: acp.Some(acp.ToolKindExecute), RawInput: json.RawMessage(`{"command":"rm -rf build"}`)}
	if a.call != nil {
		call = a.call(s.ID())
	}
	options := a.options
	if options == nil {
		options = fourOptions
	}
	outcome, err := s.RequestPermission(ctx, call, options...)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch v := outcome.Variant.(type) {
	case *acp.RequestPermissionOutcomeSelected:
		a.answers = append(a.answers, string(v.OptionID))
	default:
		a.answers = append(a.answers, "cancelled")
	}
	if err != nil {
		return &acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
	}
	return done, s.Update(ctx, acp.AgentMessageText("Thank you."))
}

func (a *asker) want(t *testing.T, answers ...string) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if strings.Join(a.answers, " ") != strings.Join(answers, " ") {
		t.Fatalf("answered %v, want %v", a.answers, answers)
	}
}

// TestPermissionKeys: each kind has its key and each option its number; Enter chooses only an option that was selected.
func TestPermissionKeys(t *testing.T) {
	for keys, want := range map[string]string{
		"y": "once", "Y": "always", "n": "no", "N": "never", "1": "once", "4": "never",
		"down enter": "once", "down down enter": "always", "enter y": "once", "x q 9 n": "no",
	} {
		t.Run(keys, func(t *testing.T) {
			a := &asker{}
			inWorld(t, acp.AgentHandlers{Prompt: a.prompt}, nil, func(w *world) {
				w.settle()
				w.say("go")
				w.sleep(2 * time.Second)
				w.want("tester asks for permission", "Remove the build", "rm -rf build", "execute", "1 or y", "Always allow", "4 or N", "asks")
				w.key(strings.Fields(keys)...)
				w.sleep(time.Second)
				a.want(t, want)
				w.want("Thank you.", "ready")
				w.wantNot("asks for permission")
			})
		})
	}
}

// TestLocalQuestion: a write of an agent elsewhere is asked about in the same dialog.
func TestLocalQuestion(t *testing.T) {
	dir := t.TempDir()
	inWorld(t, acp.AgentHandlers{Prompt: func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		_, err := s.WriteTextFile(ctx, &acp.WriteTextFileRequest{Path: filepath.Join(dir, "a.txt"), Content: "new words"})
		return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, err
	}}, func(o *Options) {
		o.Talk.Agent.Trusted, o.Talk.RemoteFiles, o.Talk.Cwd = false, true, dir
	}, func(w *world) {
		w.settle()
		w.say("go")
		w.sleep(2 * time.Second)
		w.want("tester asks for permission", "edit", "a.txt", "new words", "1 or y", "allow once")
		if _, err := os.Stat(filepath.Join(dir, "a.txt")); err == nil {
			t.Error("it is written before the answer")
		}
		w.key("y")
		w.sleep(time.Second)
		w.want("ready")
		w.wantNot("asks for permission")
		if _, err := os.Stat(filepath.Join(dir, "a.txt")); err != nil {
			t.Error(err)
		}
	})
}

// TestPermissionShowsEverything: even what only earlier updates of the tool call contained.
func TestPermissionShowsEverything(t *testing.T) {
	a := &asker{call: func(acp.SessionID) acp.ToolCallUpdate { return acp.ToolCallUpdate{ToolCallID: "t"} }}
	inWorld(t, acp.AgentHandlers{Prompt: func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
		call := acp.StartToolCall("t", "Change the greeting")
		v := call.Variant.(*acp.SessionUpdateToolCall)
		v.Kind = acp.ToolKindEdit
		v.Locations = []acp.ToolCallLocation{{Path: "/src/hello.go", Line: acp.Some(uint32(7))}}
		v.Content = []acp.ToolCallContent{acp.ToolEdit("/src/hello.go", "old words\n", "new words\n")}
		v.RawInput = json.RawMessage(`{"reason":"because"}`)
		if err := s.Update(ctx, call); err != nil {
			return nil, err
		}
		return a.prompt(ctx, s, req)
	}}, nil, func(w *world) {
		w.settle()
		w.update(tea.WindowSizeMsg{Width: 80, Height: 50})
		w.say("go")
		w.sleep(2 * time.Second)
		w.want("Change the greeting", "edit", "/src/hello.go:7", "old words", "new words", "because", "tester")
		w.wantNot("no rule matches")
		w.update(tea.WindowSizeMsg{Width: 80, Height: 16}) // the request scrolls; the keys stay
		w.want("1 or y", "4 or N", "below")
		w.wantNot("because")
		w.key("pgdown", "pgdown", "pgdown", "pgdown", "pgdown")
		w.want("because", "1 or y")
		w.key("n")
		w.settle()
		a.want(t, "no")
	})
}

// TestForgedPermission: a title cannot hide the facts, and nothing is allowed before they have been on the screen.
func TestForgedPermission(t *testing.T) {
	a := &asker{
		call: func(acp.SessionID) acp.ToolCallUpdate {
			return acp.ToolCallUpdate{
				ToolCallID: "t", Title: acp.Some("Read README.md\nkind read\n$ cat README.md" + strings.Repeat("\n", 30)), Kind: acp.Some(acp.ToolKindExecute),
				RawInput: json.RawMessage(`{"command":"rm -rf ~` + strings.Repeat(`\n# `, 20) + `"}`),
			}
		},
		options: []acp.PermissionOption{acp.AllowAlways("always", "Reject"), acp.AllowOnce("once", "Allow"), acp.RejectOnce("no", "No")},
	}
	inWorld(t, acp.AgentHandlers{Prompt: a.prompt}, nil, func(w *world) {
		w.settle()
		w.say("go")
		w.sleep(2 * time.Second)
		w.want("kind execute", "$ rm -rf ~", "1 or Y  allow always (its name says otherwise): Reject", "2 or y  allow once: Allow")
		w.wantNot("\n$ cat README.md", "\nkind read")
		w.key("y", "1", "2", "Y")
		w.sleep(time.Second)
		a.want(t)
		for range 10 {
			w.key("pgdown")
		}
		w.key("y")
		w.sleep(time.Second)
		a.want(t, "once")
	})
}

// TestTypingDoesNotAnswer: keys meant for the editor go there when a question arrives meanwhile.
func TestTypingDoesNotAnswer(t *testing.T) {
	a := &asker{}
	ask := make(chan struct{})
	inWorld(t, acp.AgentHandlers{Prompt: func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
		time.Sleep(time.Second)
		return a.prompt(ctx, s, req)
	}}, nil, func(w *world) {
		_ = ask
		w.settle()
		w.say("go")
		w.sleep(900 * time.Millisecond)
		for range 10 { // "y" every 50 ms, while the question arrives
			w.typ("y")
			w.sleep(50 * time.Millisecond)
		}
		w.want("asks for permission", "> yyyyyyyyyy", "Ctrl-G: answer")
		a.want(t)
		w.sleep(10 * time.Second) // the editor has unfinished input
		w.typ("n")
		a.want(t)
		w.want("> yyyyyyyyyyn")
		w.update(tea.PasteMsg{Content: "y"})
		w.want("> yyyyyyyyyyny")
		w.key("ctrl+g")
		w.wantNot("Ctrl-G: answer")
		w.update(tea.PasteMsg{Content: "y"}) // never an answer
		w.settle()
		a.want(t)
		w.key("y")
		w.sleep(time.Second)
		a.want(t, "once")
		w.want("> yyyyyyyyyynyy", "Thank you.")
	})
}

// TestFirstKeyAfterQuestion: with an empty editor, a key right after the question was drawn is not an answer.
func TestFirstKeyAfterQuestion(t *testing.T) {
	a := &asker{}
	inWorld(t, acp.AgentHandlers{Prompt: a.prompt}, nil, func(w *world) {
		w.settle()
		w.say("go")
		w.want("asks for permission")
		w.sleep(100 * time.Millisecond)
		w.key("y", "backspace")
		a.want(t)
		w.sleep(200 * time.Millisecond)
		w.key("y", "backspace")
		a.want(t)
		w.sleep(time.Second)
		w.key("y")
		w.settle()
		a.want(t, "once")
	})
}

// TestQuestionsOfSeveralSessions: none is lost after another, in another session, on another screen or on a resize.
func TestQuestionsOfSeveralSessions(t *testing.T) {
	a := &asker{}
	inWorld(t, acp.AgentHandlers{Prompt: a.prompt}, nil, func(w *world) {
		w.settle()
		w.say("first")
		w.sleep(time.Second)
		w.key("esc") // leave it open
		w.key("ctrl+n")
		w.sleep(time.Second)
		w.wantNot("asks for permission")
		if !strings.Contains(w.status(), "?1") {
			t.Errorf("status: %s", w.status())
		}
		w.say("second")
		w.sleep(time.Second)
		w.want("Remove the build of s2", "(1 of 2)")
		if !strings.Contains(w.status(), "?2") {
			t.Errorf("status: %s", w.status())
		}
		w.update(tea.WindowSizeMsg{Width: 40, Height: 20})
		w.update(tea.WindowSizeMsg{Width: 80, Height: 24})
		w.key("?") // the dialog handles it; it is not an answer
		w.want("Remove the build of s2")
		w.key("y")
		w.sleep(time.Second)
		a.want(t, "once")
		w.key("f1")
		w.want("Keys")
		w.key("ctrl+g") // from another screen, to another session
		w.want("Remove the build of s1")
		w.key("n")
		w.sleep(time.Second)
		a.want(t, "once", "no")
		w.wantNot("?1", "asks")
	})
}

// TestKeyPressedTwice: a key that answers one question neither answers the next one nor is typed.
func TestKeyPressedTwice(t *testing.T) {
	a := &asker{}
	inWorld(t, acp.AgentHandlers{Prompt: func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
		var asking sync.WaitGroup
		for range 2 {
			asking.Go(func() { _, _ = a.prompt(ctx, s, req) })
		}
		asking.Wait()
		return done, nil
	}}, nil, func(w *world) {
		w.settle()
		w.say("go")
		w.sleep(2 * time.Second)
		w.want("(1 of 2)")
		w.key("ctrl+g", "ctrl+g", "ctrl+g") // no other session has one
		w.wantNot("Ctrl-G")
		w.key("n", "n")
		a.want(t, "no")
		if !w.m.editor().empty() {
			t.Error("it was typed")
		}
		w.sleep(2 * time.Second)
		w.key("y")
		w.sleep(time.Second)
		a.want(t, "no", "once")
	})
}

// TestLookElsewhere: a question that has the keys does not keep the user from other screens and sessions.
func TestLookElsewhere(t *testing.T) {
	a := &asker{}
	inWorld(t, acp.AgentHandlers{Prompt: a.prompt}, nil, func(w *world) {
		w.settle()
		w.key("ctrl+n")
		w.sleep(time.Second)
		w.say("go")
		w.sleep(2 * time.Second)
		w.want("Remove the build of s2")
		w.key("ctrl+s")
		w.want("Open sessions", "? asks")
		w.key("esc", "alt+right")
		w.wantNot("Remove the build")
		w.key("alt+left", "f1")
		w.want("Keys")
		w.key("esc")
		w.want("Remove the build of s2")
		a.want(t)
		w.sleep(time.Second)
		w.key("y")
		w.settle()
		a.want(t, "once")
	})
}

// TestCancelWithdrawsQuestion: the dialog disappears with its turn.
func TestCancelWithdrawsQuestion(t *testing.T) {
	a := &asker{}
	inWorld(t, acp.AgentHandlers{Prompt: a.prompt}, nil, func(w *world) {
		w.settle()
		w.say("go")
		w.sleep(time.Second)
		w.want("asks for permission")
		w.key("ctrl+c")
		w.sleep(time.Second)
		a.want(t, "cancelled")
		w.wantNot("asks for permission", "asks")
		w.want("cancelled")
	})
}

// TestAlwaysIsRemembered: the same request is not asked again in the session; the decision is shown on a line.
func TestAlwaysIsRemembered(t *testing.T) {
	a := &asker{}
	inWorld(t, acp.AgentHandlers{Prompt: a.prompt}, nil, func(w *world) {
		w.settle()
		w.say("go")
		w.sleep(time.Second)
		w.key("Y")
		w.sleep(time.Second)
		w.say("again")
		w.sleep(2 * time.Second)
		w.wantNot("asks for permission")
		w.want("Decided by a rule: execute $ rm -rf build (Remove the build of s1): allow once")
		a.want(t, "always", "once")
	})
}

// hostile is text that would affect a terminal.
const hostile = "\x1b]0;title\x07\x1b[2J\x1b[31mred\u009b5n\u202eback\r\x00\x7f\u2066end"

// TestHostileTexts: hostile text of an agent never reaches the terminal; see world.screen.
func TestHostileTexts(t *testing.T) {
	a := &asker{
		call: func(acp.SessionID) acp.ToolCallUpdate {
			return acp.ToolCallUpdate{ToolCallID: acp.ToolCallID("t" + hostile), Title: acp.Some(hostile), RawInput: json.RawMessage(`{"command":"\u001b[2J\u009b"}`)}
		},
		options: []acp.PermissionOption{{OptionID: "a", Name: hostile, Kind: acp.PermissionOptionKindAllowOnce}},
	}
	inWorld(t, acp.AgentHandlers{
		NewSession: func(ctx context.Context, c *acp.AgentConn, _ *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			acp.AfterResponse(ctx, func(ctx context.Context) {
				s := c.Session("s")
				_ = s.Update(ctx, acp.TitleUpdate(hostile))
				_ = s.Update(ctx, acp.CommandsUpdate(acp.AvailableCommand{Name: "c" + hostile, Description: hostile}))
				_ = s.Update(ctx, acp.UpdatePlan(acp.PlanEntry{Content: hostile, Priority: acp.PlanEntryPriorityHigh, Status: acp.PlanEntryStatusPending}))
			})
			return &acp.NewSessionResponse{SessionID: "s", Modes: acp.Some(acp.SessionModeState{CurrentModeID: "m", AvailableModes: []acp.SessionMode{{ID: "m", Name: hostile, Description: acp.Some(hostile)}}}),
				ConfigOptions: acp.Some([]acp.SessionConfigOption{acp.SelectOption("o", hostile, "v", acp.SelectValue("v", hostile))})}, nil
		},
		Prompt: func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			_ = s.Update(ctx, acp.AgentMessageText(hostile))
			_, _ = s.ElicitURL(ctx, hostile, "id", "https://example.com/page")
			_, _ = s.ElicitForm(ctx, hostile, acp.ElicitationSchema{Properties: map[string]acp.ElicitationPropertySchema{
				hostile: acp.NewElicitationPropertySchemaString(acp.StringPropertySchema{Title: acp.Some(hostile), Description: acp.Some(hostile), Default: acp.Some(hostile)}),
				"e":     acp.NewElicitationPropertySchemaString(acp.StringPropertySchema{Enum: acp.Some([]string{hostile})}),
			}})
			if _, err := a.prompt(ctx, s, req); err != nil {
				return nil, err
			}
			return nil, acp.ErrInvalidRequest.WithMessagef("%s", hostile)
		},
	}, nil, func(w *world) {
		w.sleep(time.Second)
		w.screen()
		for _, key := range []string{"alt+m", "alt+o", "ctrl+s", "alt+n", "ctrl+p"} {
			w.key(key)
			w.screen()
			w.key("esc")
		}
		w.typ("/c")
		w.screen()
		w.key("esc", "backspace", "backspace")
		w.say("go")
		w.sleep(time.Second)
		w.want("asks you to open a page")
		w.key("n")
		w.sleep(time.Second)
		w.want("Ctrl-X: decline")
		w.key("ctrl+x")
		w.sleep(time.Second)
		w.want("asks for permission")
		w.key("y")
		w.sleep(time.Second)
		w.want("failed")
		w.key("alt+n")
		w.screen()
		if title := w.m.View().WindowTitle; strings.ContainsAny(title, "\x1b\x07\u009b\r\x00") {
			t.Errorf("title of the window: %q", title)
		}
	})
}

// TestAlwaysInWords: what "always" remembers is said in words, and as a rule on request. The title of a command says so, whatever
// kind the agent says. What has not been seen again in the other form cannot be chosen.
func TestAlwaysInWords(t *testing.T) {
	a := &asker{call: func(acp.SessionID) acp.ToolCallUpdate {
		return acp.ToolCallUpdate{ToolCallID: "t", Kind: acp.Some(acp.ToolKindRead), RawInput: json.RawMessage(`{"command":"go vet \u0026\u0026 go test"}`)}
	}}
	inWorld(t, acp.AgentHandlers{Prompt: a.prompt}, nil, func(w *world) {
		w.settle()
		w.update(tea.WindowSizeMsg{Width: 200, Height: 19})
		w.say("go")
		w.sleep(2 * time.Second)
		words := "allow always `go vet && go test` in " + w.m.opts.Talk.Cwd + ", for this session (r: rule)\nreject always the same\n"
		w.want("tester asks for permission to run a command", "kind read\n$ go vet && go test\n", words)
		w.wantNot("no rule", `"effect"`, "u0026", "agent tester")
		w.update(tea.WindowSizeMsg{Width: 50, Height: 19})
		w.key("r")
		w.want(`{"effect":"allow"`, "below")
		w.key("Y")
		w.settle()
		a.want(t)
		w.want("what is remembered")
		w.key("r")
		w.update(tea.WindowSizeMsg{Width: 200, Height: 19})
		w.want(words)
		w.sleep(time.Second)
		w.key("Y")
		w.settle()
		a.want(t, "always")
	})
}

// wideForm is a form with every kind of field.
const wideForm = `{"type":"object","required":["name","age"],"properties":{
	"name":{"type":"string","title":"Your name","minLength":2},
	"age":{"type":"integer","minimum":18,"maximum":99},
	"rate":{"type":"number"},
	"mail":{"type":"string","format":"email"},
	"sure":{"type":"boolean","title":"Are you sure?","default":true},
	"color":{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"}],"default":"g"},
	"tools":{"type":"array","items":{"type":"string","enum":["saw","hammer","plane"]},"minItems":1,"maxItems":2,"default":["saw"]}
}}`

// former sends a form in each turn, and records the answers.
type former struct {
	mu      sync.Mutex
	schema  string
	answers []string
}

func (f *former) prompt(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
	var schema acp.ElicitationSchema
	if err := json.Unmarshal([]byte(f.schema), &schema); err != nil {
		return nil, err
	}
	res, err := s.ElicitForm(ctx, "Tell me about yourself.", schema)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(res)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers = append(f.answers, string(text))
	return done, nil
}

func (f *former) want(t *testing.T, want string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.answers) == 0 {
		t.Fatal("not answered")
	}
	var got, wanted any
	if json.Unmarshal([]byte(f.answers[len(f.answers)-1]), &got) != nil || json.Unmarshal([]byte(want), &wanted) != nil {
		t.Fatal("no JSON")
	}
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(wanted)
	if string(a) != string(b) {
		t.Fatalf("answered %s, want %s", a, b)
	}
}

func TestForm(t *testing.T) {
	f := &former{schema: wideForm}
	inWorld(t, acp.AgentHandlers{Prompt: f.prompt}, nil, func(w *world) {
		w.settle()
		w.update(tea.WindowSizeMsg{Width: 80, Height: 16}) // lower than the form
		w.say("go")
		w.sleep(2 * time.Second)
		w.want("tester asks", "Tell me about yourself.", "Your name *", "Ctrl-X: decline")
		step := func(text, shown string) {
			t.Helper()
			w.typ(text)
			w.key("enter")
			w.sleep(100 * time.Millisecond)
			w.want(shown)
		}
		step("A", "expected at least 2 characters")
		step("nn", "age *")
		step("7", "expected at least 18")
		w.key("backspace")
		step("x", "expected a whole number")
		w.key("backspace")
		step("42", "Green") // optional fields follow by name
		step("", "mail")
		step("nobody", "expected an e-mail address")
		for range len("nobody") {
			w.key("backspace")
		}
		step("a@example.com", "rate")
		step("1.5", "Are you sure?")
		step("", "hammer")
		w.key("down", "x", "down", "x", "enter")
		w.sleep(100 * time.Millisecond)
		w.want("expected at most 2")
		w.key("x", "enter")
		w.sleep(time.Second)
		f.want(t, `{"action":"accept","content":{"name":"Ann","age":42,"rate":1.5,"mail":"a@example.com","sure":true,"color":"g","tools":["saw","hammer"]}}`)
		w.want("ready")
	})
}

// TestFormDeclineAndCancel: these have different keys, and optional fields are left out.
func TestFormDeclineAndCancel(t *testing.T) {
	f := &former{schema: `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"},"c":{"type":"string","enum":["x"]}}}`}
	inWorld(t, acp.AgentHandlers{Prompt: f.prompt}, nil, func(w *world) {
		w.settle()
		for keys, want := range map[string]string{
			"ctrl+x": `{"action":"decline"}`, "ctrl+q": `{"action":"cancel"}`,
		} {
			w.say("go")
			w.sleep(2 * time.Second)
			w.key(keys)
			w.sleep(time.Second)
			f.want(t, want)
		}
		w.say("go")
		w.sleep(2 * time.Second)
		w.key("enter")
		w.sleep(time.Second)
		w.key("enter")
		w.sleep(time.Second)
		w.key("enter")
		w.sleep(time.Second)
		f.want(t, `{"action":"accept","content":{}}`)
	})
}

// TestFormWithdrawn: a form disappears with its turn, and so does what was typed in it.
func TestFormWithdrawn(t *testing.T) {
	f := &former{schema: wideForm}
	inWorld(t, acp.AgentHandlers{Prompt: f.prompt}, nil, func(w *world) {
		w.settle()
		w.say("go")
		w.sleep(2 * time.Second)
		w.typ("half")
		w.want("> half")
		w.key("ctrl+c")
		w.sleep(time.Second)
		w.wantNot("Tell me", "half")
		w.want("ready")
	})
}

func TestPage(t *testing.T) {
	var mu sync.Mutex
	var answers, opened []string
	handlers := acp.AgentHandlers{Prompt: func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		long := "https://example.com/a-path-that-is-very-long/that-it-does-not-fit-into-one-line/of-the-screen/and-must-be-seen/whole"
		mu.Lock()
		id := acp.ElicitationID(fmt.Sprint("page ", len(answers)))
		mu.Unlock()
		res, err := s.ElicitURL(ctx, "Look at this.", id, long)
		if err != nil {
			return nil, err
		}
		text, _ := json.Marshal(res)
		mu.Lock()
		defer mu.Unlock()
		answers = append(answers, string(text))
		return done, nil
	}}
	inWorld(t, handlers, func(o *Options) {
		o.OpenURL = func(address string) error { opened = append(opened, address); return nil }
	}, func(w *world) {
		w.settle()
		for _, c := range []struct {
			key, action string
			opens       int
		}{{"n", "decline", 0}, {"y", "accept", 0}, {"ctrl+q", "cancel", 0}, {"o", "accept", 1}} {
			w.say("go")
			w.sleep(2 * time.Second)
			w.want("asks you to open a page", "Look at this.", "that-it-does-not-fit", "must-be-seen/whole", "It leads to: example.com")
			if len(opened) != 0 {
				t.Fatal("opened by itself")
			}
			w.key(c.key)
			w.sleep(time.Second)
			mu.Lock()
			if got := answers[len(answers)-1]; got != `{"action":"`+c.action+`"}` || len(opened) != c.opens {
				t.Errorf("%s: answered %s, opened %v", c.key, got, opened)
			}
			mu.Unlock()
		}
	})
}

// TestFormTooLarge: a form too large to fill in is declined, and the user is informed.
func TestFormTooLarge(t *testing.T) {
	var schema strings.Builder
	schema.WriteString(`{"type":"object","properties":{"first":{"type":"string"}`)
	for i := range maxFields {
		fmt.Fprintf(&schema, `,"f%d":{"type":"string"}`, i)
	}
	f := &former{schema: schema.String() + "}}"}
	inWorld(t, acp.AgentHandlers{Prompt: f.prompt}, nil, func(w *world) {
		w.settle()
		w.say("go")
		w.sleep(2 * time.Second)
		f.want(t, `{"action":"decline"}`)
		w.want("declined a form of the agent: it has 201 fields")
	})
}

// TestOptionWithoutName: an option of a permission request without a name is described by its kind.
func TestOptionWithoutName(t *testing.T) {
	a := &asker{options: []acp.PermissionOption{acp.AllowOnce("a", ""), acp.RejectOnce("b", "")}}
	inWorld(t, acp.AgentHandlers{Prompt: a.prompt}, nil, func(w *world) {
		w.settle()
		w.say("go")
		w.sleep(2 * time.Second)
		w.want("1 or y  allow once", "2 or n  reject once")
		w.key("n")
		w.sleep(time.Second)
		w.want("Answered: reject once")
		a.want(t, "b")
	})
}
