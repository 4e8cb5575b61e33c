package main

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
	"slices"
	"strings"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
)

const system = `You are a coding agent. Work on the task until it is done, with your tools; verify what you did by running the tests. Read a file before
you edit it. Make the smallest change that does the task. Be brief.
Operating system: ` + runtime.GOOS + `
Working directory: `

const summarize = `Summarize this conversation, so that you can continue the work with nothing but the summary: the user's requests, word for word
where it matters, what was done, which files were read and changed and what is in them, what is left to do.`

const maxText = 64 << 10 // bytes of a text that the model gets

// clip cuts a text off that is too long.
func clip(text string, most int) string {
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "\n(cut off)"
	}
	return text
}

func textContent(text string) []acp.ContentBlock {
	if text == "" {
		return nil
	}
	return []acp.ContentBlock{acp.TextBlock(text)}
}

// contentText returns blocks as text, with a note for those that have none.
func contentText(content []acp.ContentBlock) (all string) {
	for _, block := range content {
		text, ok := agentkit.BlockText(block)
		if !ok {
			text = "(an attachment of a kind that cannot be read)"
		}
		all += text
	}
	return all
}

// conversation returns the stored conversation. A summary becomes a message of the user.
func conversation(ctx context.Context, t *turn) ([]agentkit.Message, error) {
	messages, err := t.Messages(ctx)
	if len(messages) > 0 && messages[0].Role == agentkit.RoleSummary {
		about := textContent("This is a summary of the conversation so far.\n")
		messages[0] = agentkit.Message{Role: agentkit.RoleUser, Content: append(about, messages[0].Content...)}
	}
	return messages, err
}

func (a *agent) windowOf(t *turn) int64 {
	i := slices.IndexFunc(t.State.models, func(m model) bool { return m.id == t.State.Model })
	switch {
	case a.window > 0:
		return a.window
	case i >= 0 && t.State.models[i].window > 0:
		return t.State.models[i].window
	}
	return 128_000
}

// request prepares a request.
func (a *agent) request(ctx context.Context, t *turn, messages []agentkit.Message) (*request, error) {
	window := a.windowOf(t)
	req := &request{model: t.State.Model, system: system + t.Cwd(), messages: messages, maxTokens: min(16_000, window/4)}
	req.maxResults = int(window) // bytes, which are about a quarter of the context
	for _, dir := range t.AdditionalDirectories() {
		req.system += "\nAnother directory: " + dir
	}
	guide, err := t.State.files.Read(ctx, "AGENTS.md", 0, 0)
	if err == nil {
		req.system += "\n\nAGENTS.md says:\n" + clip(guide, maxText)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, acp.Public(err)
	}
	req.tools, err = t.State.tools.Tools(ctx)
	return req, err
}

// size returns the approximate number of bytes of the request.
func (req *request) size() int {
	n := len(req.system) + 300*len(req.tools)
	for _, m := range req.messages {
		for _, block := range m.Content {
			if _, _, ok := block.Image(); ok {
				n += 5000
			}
		}
		n += len(contentText(m.Content))
		for _, c := range m.ToolCalls {
			n += len(c.RawInput) + len(req.result(&m, c)) + 50
		}
	}
	return n
}

// compact replaces the conversation by a summary that the model writes. In req, the prompt of the turn follows it.
func (a *agent) compact(ctx context.Context, t *turn, req *request) error {
	var res *answer
	err := t.Compact(ctx, func() (_ string, err error) {
		asked := *req // with the tools, because Anthropic requires those of earlier calls
		asked.messages = append(slices.Clip(req.messages), agentkit.Message{Role: agentkit.RoleUser, Content: textContent(summarize)})
		asked.maxTokens = 8000
		if res, err = a.ask(ctx, t, &asked, func(piece) error { return nil }); err != nil {
			return "", err
		}
		if res.text == "" {
			return "", acp.Public(errors.New("the model wrote no summary"))
		}
		return res.text, nil
	})
	if err != nil {
		return err
	}
	shorter, err := conversation(ctx, t)
	prompt := append(slices.Clone(t.Request().Prompt), acp.TextBlock("(A part of this may be done already.)"))
	req.messages = append(shorter, agentkit.Message{Role: agentkit.RoleUser, Content: prompt})
	return errors.Join(err, a.count(ctx, t, res, int64(float64(req.size())*t.State.density)))
}
