package tui

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/acpgo/sdk/acp"
)

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
