package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"regexp"
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

func newID() string { return strings.ToLower(rand.Text()) }

func jsonRaw(text string) json.RawMessage { return json.RawMessage(text) }

func fence(text string) string { return "```\n" + text + "\n```" }

// clip cuts a text off that is too long.
func clip(text string, most int) string {
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "\n(cut off)"
	}
	return text
}

func textMessage(user bool, text string) message {
	if text == "" {
		return message{user: user}
	}
	return message{user: user, content: []acp.ContentBlock{acp.TextBlock(text)}}
}

// conversation returns the stored conversation. The APIs accept it even if turns were cancelled, because each call has a result.
func conversation(ctx context.Context, t *turn) ([]message, error) {
	stored, err := t.Messages(ctx)
	var messages []message
	for _, s := range stored {
		m := message{user: s.Role != agentkit.RoleAgent, content: s.Content}
		if s.Role == agentkit.RoleSummary {
			m.content = append([]acp.ContentBlock{acp.TextBlock("This is a summary of the conversation so far.\n")}, m.content...)
		}
		for _, c := range s.ToolCalls {
			args, _ := object(string(c.RawInput))
			m.calls = append(m.calls, call{id: string(c.ToolCallID), name: c.Name.Or("unknown"), args: args, result: storedResult(c)})
		}
		messages = append(messages, m)
	}
	return messages, err
}

func storedResult(c acp.ToolCall) (text string) {
	if json.Unmarshal(c.RawOutput, &text) == nil {
		return text
	}
	for _, content := range c.Content { // of an MCP server
		if v, ok := content.Variant.(*acp.ToolCallContentContent); ok {
			text += blockText(v.Content)
		}
	}
	if text == "" {
		text = "error: there is no result, because the turn was cancelled"
	}
	return text
}

var mention = regexp.MustCompile(`(?:^|\s)@([^\s@]*[^\s@.,:;!?)])`)

// attach stores the files that a prompt names with @ as part of the prompt, and returns them.
func attach(ctx context.Context, t *turn, req *acp.PromptRequest) (files []acp.ContentBlock, err error) {
	for _, match := range mention.FindAllStringSubmatch(agentkit.PromptText(req), 10) {
		text, err := t.State.files.read(ctx, match[1], 0, 2000)
		if err != nil {
			continue // a word with @ need not name a file
		}
		_, _, abs, _ := t.State.files.locate(match[1])
		block := acp.ResourceBlock(acp.EmbeddedResourceResource{Variant: &acp.TextResourceContents{URI: "file://" + abs, Text: clip(text, maxFound)}})
		if err := t.Record(ctx, acp.NewSessionUpdateUserMessageChunk(acp.ContentChunk{Content: block})); err != nil {
			return nil, err
		}
		files = append(files, block)
	}
	return files, nil
}

func (a *agent) windowOf(t *turn) int64 {
	if a.window > 0 {
		return a.window
	} else if w := t.State.windows[t.State.Model]; w > 0 {
		return w
	}
	return 128_000
}

// request prepares a request. If the conversation is too long for another answer, it is compacted first.
func (a *agent) request(ctx context.Context, t *turn, messages []message) (*request, error) {
	req := &request{model: t.State.Model, system: system + t.Cwd(), messages: messages, maxTokens: min(16_000, a.windowOf(t)/4), tools: slices.Clone(tools)}
	for _, dir := range t.AdditionalDirectories() {
		req.system += "\nAnother directory: " + dir
	}
	guide, err := t.State.files.read(ctx, "AGENTS.md", 0, 0)
	if err == nil {
		req.system += "\n\nAGENTS.md says:\n" + clip(guide, maxFound)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, acp.Public(err)
	}
	served, err := t.State.mcp.Tools(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range served {
		req.tools = append(req.tools, tool{name: t.Name, description: t.Description, schema: asMap(t.InputSchema)})
	}
	if used := int64(float64(req.size()) * t.State.density); used > a.windowOf(t)*7/10 && len(messages) > 1 {
		req.messages, err = a.compact(ctx, t, messages)
	}
	return req, err
}

// size returns the approximate number of bytes of the request.
func (req *request) size() int {
	n := len(req.system) + 300*len(req.tools)
	for _, m := range req.messages {
		for _, block := range m.content {
			if _, _, ok := block.Image(); ok {
				n += 5000
			} else {
				n += len(blockText(block))
			}
		}
		for _, c := range m.calls {
			n += len(c.args) + len(c.result) + 50
		}
	}
	return n
}

// count shows how full the context is, and what the session has cost.
func (a *agent) count(ctx context.Context, t *turn, res *answer, used int64) error {
	var cost *acp.Cost
	if a.priceIn+a.priceOut > 0 {
		t.State.Cost += (float64(res.in)*a.priceIn + float64(res.out)*a.priceOut) / 1e6
		cost = &acp.Cost{Amount: t.State.Cost, Currency: "USD"}
	}
	return errors.Join(t.SaveState(ctx), t.Update(ctx, acp.ContextUsage(uint64(used), uint64(a.windowOf(t)), cost)))
}

// compact replaces the conversation by a summary, which the model writes, and the prompt of the turn.
func (a *agent) compact(ctx context.Context, t *turn, messages []message) ([]message, error) {
	show := func(u acp.CompactionUpdate) error {
		update := acp.NewSessionUpdateCompactionUpdate(u)
		if t.Conn().Capabilities().Session.Value().Compaction.Present() {
			return t.Update(ctx, update)
		}
		return errors.Join(t.Record(ctx, update), notify(ctx, t, "Summarizing the conversation: "+string(u.Status)))
	}
	u := acp.CompactionUpdate{CompactionID: acp.CompactionID(newID()), Status: acp.CompactionStatusInProgress}
	if err := show(u); err != nil {
		return nil, err
	}
	req := &request{model: t.State.Model, system: system + t.Cwd(), messages: append(messages, textMessage(true, summarize)), maxTokens: 8000}
	req.tools = tools // Anthropic requires those of earlier calls
	res, err := a.ask(ctx, t, req, func(piece) error { return nil })
	if err == nil && res.text == "" {
		err = acp.Public(errors.New("the model wrote no summary"))
	}
	if err != nil {
		u.Status = acp.CompactionStatusFailed
		if ctx.Err() != nil {
			u.Status = acp.CompactionStatusCancelled
		}
		return nil, errors.Join(err, show(u))
	}
	u.Status, u.Summary = acp.CompactionStatusCompleted, acp.Some([]acp.ContentBlock{acp.TextBlock(res.text)})
	if err := show(u); err != nil {
		return nil, err
	}
	shorter, err := conversation(ctx, t)
	prompt := append(slices.Clone(t.Request().Prompt), acp.TextBlock("(A part of this may be done already.)"))
	req.messages = append(shorter, message{user: true, content: prompt})
	return req.messages, errors.Join(err, a.count(ctx, t, res, int64(float64(req.size())*t.State.density)))
}
