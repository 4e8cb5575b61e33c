package main

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
)

const system = `You are a coding agent. Work on the task until it is done, with your tools; verify what you did by
running the tests. Read a file before you edit it. Make the smallest change that does the task. Be brief.
`

const summarize = `Summarize this conversation, so that you can continue the work with nothing but the summary: the user's
requests, word for word where it matters, what was done, which files were read and changed and what is in them, what is
left to do.`

func message(role agentkit.Role, text string) agentkit.Message {
	return agentkit.Message{Role: role, Content: []acp.ContentBlock{acp.TextBlock(text)}}
}

// windowOf returns the size of the model's context in tokens.
func (a *agent) windowOf(t *turn) int64 {
	return cmp.Or(a.window, t.State.windows[t.State.Model], 128_000)
}

// request prepares a request.
func (a *agent) request(ctx context.Context, t *turn, messages []agentkit.Message) (*request, error) {
	tools, err := t.State.tools.Tools(ctx)
	window := a.windowOf(t)
	return &request{
		model: t.State.Model, system: system + t.State.files.Describe(ctx), messages: messages, tools: tools,
		maxTokens: min(16_000, window/4), maxResults: int(window), // in bytes, which are about a quarter of the context
	}, err
}

// size returns the approximate number of bytes of the request.
func (req *request) size() int {
	n := len(req.system) + 300*len(req.tools)
	for _, m := range req.messages {
		for _, block := range m.Content {
			n += len(agentkit.ContentText(block))
			if _, image := block.Variant.(*acp.ContentBlockImage); image {
				n += 5000
			}
		}
		for c, result := range m.Results(req.maxResults) {
			n += len(c.RawInput) + len(result) + 50
		}
	}
	return n
}

// fills reports whether the request fills more than a share of the model's context.
func (a *agent) fills(t *turn, req *request, share float64) bool {
	return float64(req.size())*t.State.density > share*float64(a.windowOf(t))
}

// compact replaces the conversation by a summary that the model writes. In req, the prompt of the turn follows it.
func (a *agent) compact(ctx context.Context, t *turn, req *request) error {
	asked := *req // with the tools, because Anthropic requires those of earlier calls
	asked.messages = append(slices.Clip(req.messages), message(agentkit.RoleUser, summarize))
	for len(asked.messages) > 2 && (a.fills(t, &asked, 0.9) || asked.messages[0].Role == agentkit.RoleAgent) {
		asked.messages = asked.messages[1:] // what does not fit is forgotten
	}
	asked.maxTokens = 8000
	var res *answer
	summary := "This is a summary of the conversation so far.\n"
	err := t.Compact(ctx, func() (_ string, err error) {
		if res, err = a.ask(ctx, t, &asked, true); err == nil && res.text == "" {
			err = acp.Public(errors.New("the model wrote no summary"))
		}
		if err == nil {
			summary += res.text
		}
		return summary, err
	})
	if err != nil {
		return err
	}
	prompt := append(slices.Clone(t.Request().Prompt), acp.TextBlock("(A part of this may be done already.)"))
	req.messages = []agentkit.Message{message(agentkit.RoleSummary, summary), {Role: agentkit.RoleUser, Content: prompt}}
	return a.count(ctx, t, res, int64(float64(req.size())*t.State.density))
}

// compactNow runs the command /compact.
func (a *agent) compactNow(ctx context.Context, t *turn, _ string) error {
	messages, err := t.Messages(ctx)
	if err != nil {
		return err
	}
	req, err := a.request(ctx, t, messages[:len(messages)-1]) // without the command
	if err != nil {
		return err
	}
	return a.compact(ctx, t, req)
}
