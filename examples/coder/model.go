package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/contrib/mcpacp"
)

// provider is an API with models.
type provider interface {
	models(ctx context.Context) ([]model, error)
	// stream sends a request, and yields the pieces of the answer; the last one has the whole answer.
	stream(ctx context.Context, req *request) iter.Seq2[piece, error]
}

// model describes a model. window is the size of its context in tokens, or 0.
type model struct {
	id     string
	window int64
}

// request has the conversation that a model continues.
type request struct {
	model, system string
	messages      []agentkit.Message
	thoughts      map[acp.ToolCallID]any // those of the answers whose first call this is, if the API wants them back
	tools         []*mcpacp.Tool
	maxTokens     int64
	maxResults    int // bytes of all results of one answer
}

// result returns the result of a call of a message: the APIs refuse a call without one.
func (req *request) result(m *agentkit.Message, call acp.ToolCall) string {
	return clip(agentkit.ToolResult(call), max(2000, req.maxResults/len(m.ToolCalls)))
}

// piece is a piece of an answer. It may be empty, which says that the API is alive.
type piece struct {
	text, thought string
	answer        *answer
}

// answer is the whole answer of a model. stop is empty if the model is done or calls tools.
type answer struct {
	text     string
	calls    []mcp.CallToolParamsRaw
	thoughts any
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

// connect returns the API, with the key that there is now.
func (a *agent) connect() (provider, error) {
	key, err := a.key.Get()
	switch {
	case err != nil:
		return nil, err
	case key == "":
		return nil, acp.ErrAuthRequired
	case a.api == "openai":
		return newOpenAI(key), nil
	}
	return newAnthropic(key, a.thinking), nil
}

// ask sends a request, and again while the API is busy or down, which the user sees. It does not repeat a request after a part of the
// answer was shown.
func (a *agent) ask(ctx context.Context, t *turn, req *request, show func(piece) error) (*answer, error) {
	for attempt := 1; ; attempt++ {
		begun := false
		res, err := a.askOnce(ctx, req, func(p piece) error {
			begun = begun || p.text != "" || p.thought != ""
			return show(p)
		})
		f, failed := errors.AsType[*failure](err)
		if !failed || ctx.Err() != nil {
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
		notice := acp.Notice{Severity: acp.NoticeSeverityWarning, Title: fmt.Sprintf("%v. Trying again in %v.", f, wait)}
		if err := t.Notify(ctx, notice); err != nil {
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
	provider, err := a.connect()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(a.patience, func() { cancel(&failure{text: fmt.Sprintf("no answer for %v", a.patience)}) })
	defer silent.Stop()
	text, room := "", 8*int(req.maxTokens) // bytes, because some servers ignore maxTokens
	for p, err := range provider.stream(ctx, req) {
		switch cause := context.Cause(ctx); {
		case cause != nil:
			return nil, cause
		case err != nil:
			return nil, err
		case p.answer != nil:
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
