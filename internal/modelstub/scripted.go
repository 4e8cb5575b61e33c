// Answers that a test writes itself, and the checks of a real API.

package modelstub

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Request is what an agent sends, for [Options.Script].
type Request struct {
	Model, System string
	Prompt        string   // the newest one of the user
	Results       []string // of the tools, since the prompt
	Tools         []string // their names
	Messages      int      // in the whole conversation
	Images        int      // the same
	Served        int      // how many requests were answered before
}

// Answer is what the model says to a [Request].
type Answer struct {
	Thought string
	Text    []string // in pieces
	Pause   bool     // Options.Pace passes between the pieces
	Calls   []Call
	Refusal bool // Text is a refusal

	Full   bool              // the model has run out of tokens
	Cut    bool              // the connection is closed after the pieces
	Hang   bool              // nothing more is sent, until the agent closes the connection
	Status int               // of an HTTP response with Body in place of an answer, unless it is 0
	Header map[string]string // of that response
	Body   string
}

// Call is a call of a tool. Args should be a JSON object, and ID should not be empty.
type Call struct{ ID, Name, Args string }

// scripted returns the answer of Options.Script, or nil.
func (s *Server) scripted(c *conversation) *Answer {
	if s.options.Script == nil {
		return nil
	}
	prompt, _ := c.newest()
	r := Request{
		Model: c.model, System: c.system, Prompt: prompt, Results: c.results(), Messages: len(c.turns),
		Served: int(s.served.Load()),
	}
	for _, t := range c.turns {
		r.Images += t.images
	}
	for _, t := range c.tools {
		r.Tools = append(r.Tools, t.name)
	}
	return s.options.Script(r)
}

// reply returns an answer in the form that the shapes write.
func (a *Answer) reply() *reply {
	r := &reply{thought: a.Thought, text: a.Text, slow: a.Pause, refusal: a.Refusal, full: a.Full}
	for _, x := range a.Calls {
		r.calls = append(r.calls, call{id: x.ID, name: x.Name, args: json.RawMessage(x.Args)})
	}
	return r
}

// fail sends what an answer sends in place of a model's.
func (a *Answer) fail(w http.ResponseWriter, r *http.Request) {
	switch {
	case a.Hang:
		<-r.Context().Done()
	case a.Cut:
		panic(http.ErrAbortHandler)
	default:
		for name, value := range a.Header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(a.Status)
		_, _ = w.Write([]byte(a.Body)) // an agent that does not read it gets none
	}
}

// strict is implemented by shapes that check a conversation as the real API does.
type strict interface{ check(body []byte) error }

// check checks that the calls of each message are followed by their results, and by nothing else.
func (chat) check(body []byte) error {
	var r struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
			ID      string `json:"tool_call_id"`
			Calls   []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return err
	}
	open := map[string]bool{}
	for i, m := range r.Messages {
		if m.Role == "tool" {
			if !open[m.ID] {
				return fmt.Errorf("messages.%d: a result of %q, which is no call before it", i, m.ID)
			}
			delete(open, m.ID)
			continue
		}
		if len(open) > 0 {
			return fmt.Errorf("messages.%d: calls without a result: %v", i, open)
		}
		if m.Calls == nil && len(m.Content) == 0 {
			return fmt.Errorf("messages.%d: neither content nor calls", i)
		}
		for _, x := range m.Calls {
			if x.ID == "" || open[x.ID] || x.Function.Name == "" || !json.Valid([]byte(x.Function.Arguments)) {
				return fmt.Errorf("messages.%d: not a call: %+v", i, x)
			}
			open[x.ID] = true
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("calls without a result: %v", open)
	}
	return nil
}

// check is like that of chat, for blocks of messages.
func (messages) check(body []byte) error {
	var r struct {
		MaxTokens int `json:"max_tokens"`
		Messages  []struct {
			Role    string
			Content []struct {
				Type, Text, ID, Name string
				ToolUseID            string `json:"tool_use_id"`
				Input                map[string]any
			}
		}
		Tools []json.RawMessage
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return err
	}
	if r.MaxTokens <= 0 || len(r.Messages) == 0 || r.Messages[0].Role != "user" {
		return errors.New("max_tokens is missing, or the first message is not the user's")
	}
	open, used := map[string]bool{}, false
	for i, m := range r.Messages {
		before := open
		open = map[string]bool{}
		if len(m.Content) == 0 {
			return fmt.Errorf("messages.%d: no content", i)
		}
		for _, b := range m.Content {
			switch b.Type {
			case "tool_result":
				if !before[b.ToolUseID] {
					return fmt.Errorf("messages.%d: a result of %q, which is no call of the message before", i, b.ToolUseID)
				}
				delete(before, b.ToolUseID)
			case "tool_use":
				if b.ID == "" || open[b.ID] || b.Name == "" || b.Input == nil || m.Role != "assistant" {
					return fmt.Errorf("messages.%d: not a call: %+v", i, b)
				}
				open[b.ID], used = true, true
			case "text":
				if strings.TrimSpace(b.Text) == "" {
					return fmt.Errorf("messages.%d: a text of white space", i)
				}
			}
		}
		if len(before) > 0 {
			return fmt.Errorf("messages.%d: calls without a result: %v", i, before)
		}
	}
	if len(open) > 0 || used && len(r.Tools) == 0 {
		return errors.New("calls without a result, or no tools although there are calls")
	}
	return nil
}

// wait passes the time between two pieces.
func (e *events) wait() {
	select {
	case <-e.done:
		e.stopped = true
	case <-time.After(e.pace):
	}
}
