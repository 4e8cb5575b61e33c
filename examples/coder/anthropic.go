package main

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
)

type anthropicAPI struct {
	client   anthropic.Client
	thinking int64
}

func newAnthropic(key string, thinking int64) provider {
	return anthropicAPI{anthropic.NewClient(option.WithAPIKey(key), option.WithMaxRetries(0)), thinking}
}

func (a anthropicAPI) models(ctx context.Context) (names []string, windows map[string]int64, err error) {
	pages, windows := a.client.Models.ListAutoPaging(ctx, anthropic.ModelListParams{}), map[string]int64{}
	for pages.Next() {
		m := pages.Current()
		names = append(names, m.ID)
		windows[m.ID] = m.MaxInputTokens
	}
	return names, windows, a.failure(pages.Err())
}

func (a anthropicAPI) stream(ctx context.Context, req *request, whole *answer) iter.Seq2[agentkit.Piece, error] {
	return func(yield func(agentkit.Piece, error) bool) {
		stream := a.client.Messages.NewStreaming(ctx, a.params(req))
		defer stream.Close()
		var m anthropic.Message
		inputs := map[int64]string{} // unchanged; the client replaces those that are not JSON
		for stream.Next() {
			event := stream.Current()
			if err := m.Accumulate(event); err != nil {
				yield(agentkit.Piece{}, &agentkit.APIError{Reason: err.Error()})
				return
			}
			d := event.Delta
			inputs[event.Index] += d.PartialJSON
			if !yield(agentkit.Piece{Text: d.Text, Thought: d.Thinking, More: len(d.PartialJSON)}, nil) {
				return
			}
		}
		if err := stream.Err(); err != nil || m.StopReason == "" {
			yield(agentkit.Piece{}, cmp.Or(a.failure(err), error(errBroken)))
			return
		}
		u := m.Usage
		*whole = answer{in: u.InputTokens + u.CacheCreationInputTokens + u.CacheReadInputTokens, out: u.OutputTokens}
		var thoughts []anthropic.ContentBlockParamUnion
		for i, block := range m.Content {
			switch block.Type {
			case "text":
				whole.text += block.Text
			case "thinking", "redacted_thinking":
				thoughts = append(thoughts, block.ToParam())
			case "tool_use":
				input := cmp.Or(inputs[int64(i)], string(block.Input))
				whole.calls = append(whole.calls, mcp.CallToolParamsRaw{Name: block.Name, Arguments: json.RawMessage(input)})
			}
		}
		whole.thoughts = thoughts
		switch m.StopReason {
		case anthropic.StopReasonMaxTokens, anthropic.StopReasonModelContextWindowExceeded:
			whole.stop = acp.StopReasonMaxTokens
		case anthropic.StopReasonRefusal:
			whole.stop = acp.StopReasonRefusal
		}
	}
}

func (a anthropicAPI) params(req *request) anthropic.MessageNewParams {
	p := anthropic.MessageNewParams{
		Model: req.model, MaxTokens: req.maxTokens, System: []anthropic.TextBlockParam{{Text: req.system}},
		CacheControl: anthropic.NewCacheControlEphemeralParam(),
	}
	if a.thinking > 0 {
		p.MaxTokens += a.thinking
		p.Thinking = anthropic.ThinkingConfigParamOfEnabled(a.thinking)
	}
	for _, tool := range req.tools {
		schema, _ := tool.InputSchema.(map[string]any)
		extra := maps.Clone(schema)
		delete(extra, "type") // which the client adds
		p.Tools = append(p.Tools, anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{
			Name: tool.Name, Description: anthropic.String(tool.Description),
			InputSchema: anthropic.ToolInputSchemaParam{ExtraFields: extra},
		}})
	}
	for _, m := range req.messages {
		var blocks, results []anthropic.ContentBlockParamUnion
		if m.ToolCalls != nil {
			blocks, _ = req.thoughts[m.ToolCalls[0].ToolCallID].([]anthropic.ContentBlockParamUnion)
		}
		for _, block := range m.Content {
			if data, kind, ok := block.Image(); ok {
				blocks = append(blocks, anthropic.NewImageBlockBase64(kind, base64.StdEncoding.EncodeToString(data)))
			} else if text := agentkit.ContentText(block); strings.TrimSpace(text) != "" { // the API refuses blank texts
				blocks = append(blocks, anthropic.NewTextBlock(text))
			}
		}
		for c, result := range m.Results(req.maxResults) {
			id, input := string(c.ToolCallID), json.RawMessage(cmp.Or(string(c.RawInput), "{}"))
			blocks = append(blocks, anthropic.NewToolUseBlock(id, input, c.Name.Value()))
			results = append(results, anthropic.NewToolResultBlock(id, result, c.Status != acp.ToolCallStatusCompleted))
		}
		switch {
		case len(blocks) == 0:
		case m.Role == agentkit.RoleAgent:
			p.Messages = append(p.Messages, anthropic.NewAssistantMessage(blocks...))
		default:
			p.Messages = append(p.Messages, anthropic.NewUserMessage(blocks...))
		}
		if results != nil {
			p.Messages = append(p.Messages, anthropic.NewUserMessage(results...))
		}
	}
	return p
}

func (anthropicAPI) failure(err error) error {
	if e, ok := errors.AsType[*anthropic.Error](err); ok {
		var body struct{ Error struct{ Message string } }
		_ = json.Unmarshal([]byte(e.RawJSON()), &body) // without a message if it is not JSON
		return &agentkit.APIError{Status: e.StatusCode, RetryAfter: e.Response.Header.Get("Retry-After"),
			Reason: body.Error.Message}
	} else if err != nil {
		return &agentkit.APIError{Reason: err.Error()}
	}
	return nil
}
