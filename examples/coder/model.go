package main

import (
	"context"
	"iter"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/contrib/mcpacp"
)

// provider is an API with models.
type provider interface {
	// models lists the models, with the sizes of their contexts in tokens if they are known.
	models(ctx context.Context) (names []string, windows map[string]int64, err error)
	// stream sends a request, yields the pieces of the answer or an *agentkit.APIError, and sets the whole answer.
	stream(ctx context.Context, req *request, whole *answer) iter.Seq2[agentkit.Piece, error]
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

// answer is the whole answer of a model. stop is empty if the model is done or calls tools.
type answer struct {
	text     string
	calls    []mcp.CallToolParamsRaw
	thoughts any
	stop     acp.StopReason
	in, out  int64 // tokens
}

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

var errBroken = &agentkit.APIError{Reason: "the answer broke off"}
