// Package modelstub serves a fake language model over HTTP, in the shapes that agents speak: OpenAI's chat completions,
// Anthropic's messages, and Gemini's generateContent, streamed and whole.
//
// It has no state: what it answers follows from the newest prompt of the conversation that a request holds, and from
// the tools that the agent offers. A prompt that asks for a file to be read, edited or deleted, for a command to be
// run, or for a plan becomes calls of the tools that can do it, one after the other as their results come back.
package modelstub

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options configure a server.
type Options struct {
	// Root is a folder below which the agents' working directories are. The stub needs it for agents that do not tell
	// their model where they are in usual words.
	Root string
	// Pace is the time between two pieces of a streamed text that is long. Default 25 ms.
	Pace time.Duration
	// Log gets a line of JSON for each request. It may be nil.
	Log io.Writer
	// Script, if set, answers in place of the scripts of this package, unless it returns nil. It may be called by several
	// goroutines at once.
	Script func(Request) *Answer
	// Strict refuses conversations that the real APIs of OpenAI and Anthropic refuse, such as those with a call that has
	// no result.
	Strict bool
}

// Server is the fake model. Serve it with package net/http.
type Server struct {
	options Options
	served  atomic.Int64
	ids     atomic.Int64
	mu      sync.Mutex // of the log
}

// New makes a server.
func New(options *Options) *Server {
	s := &Server{options: *cmp.Or(options, &Options{})}
	s.options.Pace = cmp.Or(max(s.options.Pace, 0), 25*time.Millisecond)
	return s
}

// Served is how many requests the model has answered.
func (s *Server) Served() int { return int(s.served.Load()) }

// modelName is how the model calls itself where a request does not say.
const modelName = "fake-model"

// conversation is what all shapes of requests have in common.
type conversation struct {
	model  string
	system string
	turns  []turn
	tools  []tool
	stream bool
	schema json.RawMessage // the answer has to be JSON of this schema; nil: it is text

	refused string // why the real API refuses it, if only that API does
}

// turn is one message of the conversation.
type turn struct {
	agent   bool     // the model's own
	texts   []string // what the user, or the model, says
	results []string // of tools
	calls   []string // the names of the tools that the model calls
	images  int

	opened, answered []string // the ids of the calls, "" for one that is not well-formed, and of those with the results
}

// tool is what the agent can do for the model.
type tool struct {
	name   string
	schema json.RawMessage // of its parameters
}

// reply is what the model says.
type reply struct {
	thought string
	text    []string // in pieces
	slow    bool     // the pieces come one after the other
	refusal bool     // the text is a refusal
	full    bool     // the model has run out of tokens
	calls   []call
}

// call is the model's use of a tool.
type call struct {
	id   string
	name string
	args json.RawMessage
}

// shape is the HTTP interface of one maker of models.
type shape interface {
	decode(body []byte) (*conversation, error)
	// whole is the answer in one piece, and stream the same as events.
	whole(c *conversation, r *reply) any
	stream(e *events, c *conversation, r *reply)
	// failure is the body of an error.
	failure(status int, text string) any
}

// maxBody bounds a request, in bytes. Agents send all of the conversation each time.
const maxBody = 64 << 20

// ServeHTTP answers as the model does.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimSuffix(r.URL.Path, "/")
	switch {
	case r.Method == http.MethodGet && strings.HasSuffix(path, "/models"):
		writeJSON(w, http.StatusOK, map[string]any{
			"object": "list", "has_more": false,
			"data": []any{map[string]any{"id": modelName, "object": "model", "type": "model", "display_name": modelName,
				"created": 1, "owned_by": "acp", "created_at": "2026-01-01T00:00:00Z"}},
			"models": []any{map[string]any{"name": "models/" + modelName, "displayName": modelName,
				"supportedGenerationMethods": []string{"generateContent", "countTokens"}}},
		})
		return
	case r.Method == http.MethodHead && path == "": // some agents look whether the host is there
		return
	}
	var sh shape
	stream := false // where the address says so
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		sh = chat{s}
	case strings.HasSuffix(path, "/messages"), strings.HasSuffix(path, "/messages/count_tokens"):
		sh = messages{s}
	case strings.HasSuffix(path, ":generateContent"), strings.HasSuffix(path, ":countTokens"):
		sh = contents{s}
	case strings.HasSuffix(path, ":streamGenerateContent"):
		sh, stream = contents{s}, true
	default:
		s.log(r, nil, nil)
		writeJSON(w, http.StatusNotFound,
			map[string]any{"error": map[string]any{"type": "not_found_error", "code": http.StatusNotFound,
				"message": "the fake model serves no " + path}})
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		writeJSON(w, http.StatusMethodNotAllowed, sh.failure(http.StatusMethodNotAllowed, "expected POST"))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		writeJSON(w, http.StatusBadRequest, sh.failure(http.StatusBadRequest, fmt.Sprintf("reading the request: %v", err)))
		return
	}
	c, err := sh.decode(body)
	if err != nil {
		writeJSON(w, http.StatusBadRequest, sh.failure(http.StatusBadRequest, fmt.Sprintf("the request: %v", err)))
		return
	}
	c.model = cmp.Or(c.model, modelName)
	switch {
	case strings.HasSuffix(path, "/count_tokens"):
		writeJSON(w, http.StatusOK, map[string]any{"input_tokens": tokens(string(body))})
		return
	case strings.HasSuffix(path, ":countTokens"):
		writeJSON(w, http.StatusOK, map[string]any{"totalTokens": tokens(string(body))})
		return
	}
	if s.options.Strict {
		if err := c.check(); err != nil {
			writeJSON(w, http.StatusBadRequest, sh.failure(http.StatusBadRequest, err.Error()))
			return
		}
	}
	script := s.scripted(c)
	if script != nil && (script.Status != 0 || len(script.Text) == 0 && (script.Hang || script.Cut)) {
		s.served.Add(1)
		script.fail(w, r)
		return
	}
	var answer *reply
	if script != nil {
		answer = script.reply()
	} else {
		answer = s.decide(c)
	}
	s.served.Add(1)
	s.log(r, c, answer)
	if !c.stream && !stream {
		writeJSON(w, http.StatusOK, sh.whole(c, answer))
		return
	}
	e := &events{w: w, done: r.Context().Done(), pace: s.options.Pace}
	if script != nil && (script.Hang || script.Cut) {
		e.broken = func() { script.fail(w, r) }
	}
	sh.stream(e, c, answer)
}

// id is an identifier that was not used before.
func (s *Server) id(prefix string) string { return fmt.Sprintf("%s%06d", prefix, s.ids.Add(1)) }

// log writes a line about a request. c and answer are nil if it was refused.
func (s *Server) log(r *http.Request, c *conversation, answer *reply) {
	if s.options.Log == nil {
		return
	}
	line := map[string]any{"request": r.Method + " " + r.URL.Path}
	if c != nil {
		p, step := c.newest()
		var tools, calls []string
		for _, t := range c.tools {
			tools = append(tools, t.name)
		}
		for _, x := range answer.calls {
			calls = append(calls, x.name+string(x.args))
		}
		line["prompt"], line["step"], line["tools"], line["calls"] = clip(p), step, tools, calls
		line["text"], line["results"] = clip(strings.Join(answer.text, "")), c.results()
	}
	text, err := json.Marshal(line)
	if err != nil {
		return // it holds only texts
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.options.Log.Write(append(text, '\n')) // a log that cannot be written must not change what the model does
}

// clip is the beginning of a text.
func clip(text string) string {
	const most = 400
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"error":{"message":"the fake model's answer has no JSON"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text) // who does not read its answer gets none
}

// events are a streamed answer, as server-sent events.
type events struct {
	w       http.ResponseWriter
	done    <-chan struct{} // closed when nobody reads any more
	pace    time.Duration
	broken  func() // called after the text, in place of what follows it; may be nil
	begun   bool
	stopped bool
}

// send sends an event. The name may be "".
func (e *events) send(name string, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		e.stopped = true
		return
	}
	e.raw(name, text)
}

// raw sends an event with a text as its data.
func (e *events) raw(name string, data []byte) {
	if e.stopped {
		return
	}
	if !e.begun {
		e.begun = true
		e.w.Header().Set("Content-Type", "text/event-stream")
		e.w.Header().Set("Cache-Control", "no-cache")
		e.w.WriteHeader(http.StatusOK)
	}
	var b bytes.Buffer
	if name != "" {
		fmt.Fprintf(&b, "event: %s\n", name)
	}
	fmt.Fprintf(&b, "data: %s\n\n", data)
	if _, err := e.w.Write(b.Bytes()); err != nil {
		e.stopped = true
		return
	}
	if err := http.NewResponseController(e.w).Flush(); err != nil {
		e.stopped = true
	}
}

// pieces sends the pieces of a text, one after the other if that is wanted.
func (e *events) pieces(r *reply, send func(piece string)) {
	for i, piece := range r.text {
		if r.slow && i > 0 {
			e.wait()
		}
		if e.stopped {
			return
		}
		send(piece)
	}
	if e.broken != nil {
		e.broken()
		e.stopped = true
	}
}

// tokens is about how many tokens a text has.
func tokens(text string) int { return len(text)/4 + 1 }

// size is about how many tokens a conversation has.
func (c *conversation) size() int {
	n := len(c.system)
	for _, t := range c.turns {
		for _, text := range t.texts {
			n += len(text)
		}
		for _, text := range t.results {
			n += len(text)
		}
	}
	return n/4 + 1
}

// size is about how many tokens a reply has.
func (r *reply) size() int {
	n := len(r.thought)
	for _, piece := range r.text {
		n += len(piece)
	}
	for _, x := range r.calls {
		n += len(x.name) + len(x.args)
	}
	return n/4 + 1
}
