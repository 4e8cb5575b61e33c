package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/acpgo/sdk/acp"
)

// provider is an API with models.
type provider interface {
	models(ctx context.Context) ([]modelInfo, error)
	// stream sends a request, and yields the pieces of the answer; the last one has the whole answer.
	stream(ctx context.Context, req *request) iter.Seq2[piece, error]
}

// modelInfo describes a model. window is the size of its context in tokens, or 0.
type modelInfo struct {
	id     string
	window int64
}

// request has the conversation that a model continues.
type request struct {
	model, system string
	messages      []message
	tools         []tool
	maxTokens     int64
}

// message is a message of the user or, with calls, of the model.
type message struct {
	user     bool
	content  []acp.ContentBlock
	calls    []call
	thoughts []thought // of this turn, which Anthropic wants back
}

// call is a call of a tool with its result: the APIs refuse one without the other.
type call struct {
	id, name, args, result string // args is a JSON object
}

type thought struct{ text, signature string }

// piece is a piece of an answer. It may be empty, which says that the API is alive.
type piece struct {
	text, thought string
	answer        *answer
}

// answer is the whole answer of a model. stop is empty if the model is done or calls tools.
type answer struct {
	text     string
	calls    []call
	thoughts []thought
	stop     acp.StopReason
	in, out  int64 // tokens
}

// failure is an error of an API. status is that of HTTP, or 0.
type failure struct {
	status int
	after  string // the header Retry-After
	text   string
}

func (f *failure) Error() string {
	if f.status == 0 {
		return "the model's API: " + f.text
	}
	return fmt.Sprintf("the model's API answers %d %s: %s", f.status, http.StatusText(f.status), f.text)
}

func loginNeeded(err error) error { return &acp.Error{Code: acp.ErrAuthRequired, Message: err.Error()} }

var errBroken = &failure{text: "the answer broke off"}

const (
	maxAttempts = 6
	maxCalls    = 128 // in one answer
)

// ask sends a request, and again while the API is busy or down, which the user sees. It does not repeat a request after a part of the
// answer was shown.
func (a *agent) ask(ctx context.Context, t *turn, req *request, show func(piece) error) (*answer, error) {
	for attempt := 1; ; attempt++ {
		begun := false
		res, err := a.askOnce(ctx, req, func(p piece) error {
			begun = begun || p.text != "" || p.thought != ""
			return show(p)
		})
		var f *failure
		if err == nil || ctx.Err() != nil || !errors.As(err, &f) {
			return res, err
		}
		busy := f.status == 0 || f.status == http.StatusRequestTimeout || f.status == http.StatusTooManyRequests || f.status >= 500
		switch {
		case f.status == http.StatusUnauthorized:
			return nil, loginNeeded(err)
		case begun || !busy || attempt == maxAttempts:
			return nil, acp.Public(err)
		}
		wait := time.Duration(math.Pow(2, float64(attempt-1))*500) * time.Millisecond
		if seconds, err := strconv.ParseFloat(f.after, 64); err == nil && seconds >= 0 {
			wait = time.Duration(min(seconds, 300) * float64(time.Second))
		}
		if err := notify(ctx, t, fmt.Sprintf("%v. Trying again in %v.", f, wait)); err != nil {
			return nil, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// askOnce sends a request once. It gives up when the API is silent for too long.
func (a *agent) askOnce(ctx context.Context, req *request, show func(piece) error) (*answer, error) {
	provider := a.connect()
	if provider == nil {
		return nil, acp.ErrAuthRequired // logged out
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(a.patience, func() { cancel(&failure{text: fmt.Sprintf("no answer for %v", a.patience)}) })
	defer silent.Stop()
	text, room := "", 8*int(req.maxTokens) // bytes, because some servers ignore maxTokens
	for p, err := range provider.stream(ctx, req) {
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		if err != nil {
			return nil, err
		}
		if p.answer != nil {
			return p.answer, nil
		}
		p.text, p.thought = p.text[:min(len(p.text), room)], p.thought[:min(len(p.thought), room)]
		if err := show(p); err != nil {
			return nil, err
		}
		text += p.text
		if room -= len(p.text) + len(p.thought); room <= 0 {
			return &answer{text: text, stop: acp.StopReasonMaxTokens}, nil
		}
		silent.Reset(a.patience)
	}
	return nil, errBroken
}

// notify tells the user something that is not a part of the conversation with the model.
func notify(ctx context.Context, t *turn, text string) error {
	if t.Conn().Capabilities().Session.Value().Notices.Present() {
		return t.Update(ctx, acp.NewSessionUpdateNotice(acp.Notice{Severity: acp.NoticeSeverityWarning, Title: text}))
	}
	return t.Update(ctx, acp.AgentThoughtText(text+"\n"))
}

// object returns the arguments of a call as a JSON object, and whether they are one.
func object(args string) (string, bool) {
	if args == "" {
		return "{}", true // a tool without parameters
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(args), &members); err != nil || members == nil {
		return "{}", false
	}
	return args, true
}
