// Answers that a test writes itself, and the checks of a real API.

package modelstub

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
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

// check refuses what the real APIs refuse: empty messages, calls without results, and results without calls.
func (c *conversation) check() error {
	if c.refused != "" {
		return errors.New(c.refused)
	}
	if len(c.turns) == 0 || c.turns[0].agent {
		return errors.New("the first message is not the user's")
	}
	open := map[string]bool{}
	for i, t := range c.turns {
		for _, id := range t.answered {
			if !open[id] {
				return fmt.Errorf("messages.%d: a result of %q, which is no call before it", i, id)
			}
			delete(open, id)
		}
		if len(open) > 0 && (t.answered == nil || t.texts != nil || t.opened != nil) {
			return fmt.Errorf("messages.%d: calls without a result: %v", i, open)
		}
		if t.answered == nil && t.texts == nil && t.opened == nil && t.images == 0 {
			return fmt.Errorf("messages.%d: neither content nor calls", i)
		}
		for _, id := range t.opened {
			if id == "" || open[id] {
				return fmt.Errorf("messages.%d: not a call: %q", i, id)
			}
			open[id] = true
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("calls without a result: %v", open)
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
