package main

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"iter"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/acpgo/sdk/acp"
)

type anthropicAPI struct {
	client   anthropic.Client
	thinking int64
}

func newAnthropic(key string, thinking int64) provider {
	return anthropicAPI{anthropic.NewClient(option.WithAPIKey(key), option.WithMaxRetries(0)), thinking}
}

func (a anthropicAPI) models(ctx context.Context) (list []modelInfo, err error) {
	pages := a.client.Models.ListAutoPaging(ctx, anthropic.ModelListParams{})
	for pages.Next() {
		m := pages.Current()
		list = append(list, modelInfo{m.ID, m.MaxInputTokens})
	}
	return list, a.failure(pages.Err())
}

func (a anthropicAPI) stream(ctx context.Context, req *request) iter.Seq2[piece, error] {
	return func(yield func(piece, error) bool) {
		stream := a.client.Messages.NewStreaming(ctx, a.params(req))
		defer stream.Close()
		var m anthropic.Message
		inputs := map[int64]string{} // unchanged; the client replaces those that are not JSON
		for stream.Next() {
			event := stream.Current()
			if err := m.Accumulate(event); err != nil {
				yield(piece{}, &failure{text: err.Error()})
				return
			}
			inputs[event.Index] += event.Delta.PartialJSON
			if !yield(piece{text: event.Delta.Text, thought: event.Delta.Thinking}, nil) {
				return
			}
		}
		if err := stream.Err(); err != nil || m.StopReason == "" {
			yield(piece{}, cmp.Or(a.failure(err), error(errBroken)))
			return
		}
		u := m.Usage
		res := answer{in: u.InputTokens + u.CacheCreationInputTokens + u.CacheReadInputTokens, out: u.OutputTokens}
		for i, block := range m.Content {
			switch block.Type {
			case "text":
				res.text += block.Text
			case "thinking":
				res.thoughts = append(res.thoughts, thought{block.Thinking, block.Signature})
			case "tool_use":
				if len(res.calls) < maxCalls {
					res.calls = append(res.calls, call{name: block.Name, args: cmp.Or(inputs[int64(i)], string(block.Input))})
				}
			}
		}
		switch m.StopReason {
		case anthropic.StopReasonMaxTokens, anthropic.StopReasonModelContextWindowExceeded:
			res.stop = acp.StopReasonMaxTokens
		case anthropic.StopReasonRefusal:
			res.stop = acp.StopReasonRefusal
		}
		yield(piece{answer: &res}, nil)
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
		extra := map[string]any{}
		for member, value := range tool.schema {
			if member != "type" {
				extra[member] = value
			}
		}
		p.Tools = append(p.Tools, anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{
			Name: tool.name, Description: anthropic.String(tool.description), InputSchema: anthropic.ToolInputSchemaParam{ExtraFields: extra},
		}})
	}
	for _, m := range req.messages {
		var blocks, results []anthropic.ContentBlockParamUnion
		for _, t := range m.thoughts {
			blocks = append(blocks, anthropic.NewThinkingBlock(t.signature, t.text))
		}
		for _, block := range m.content {
			if data, kind, ok := block.Image(); ok {
				blocks = append(blocks, anthropic.NewImageBlockBase64(kind, base64.StdEncoding.EncodeToString(data)))
			} else if text := blockText(block); strings.TrimSpace(text) != "" { // the API refuses blank texts
				blocks = append(blocks, anthropic.NewTextBlock(text))
			}
		}
		for _, c := range m.calls {
			blocks = append(blocks, anthropic.NewToolUseBlock(c.id, json.RawMessage(c.args), c.name))
			results = append(results, anthropic.NewToolResultBlock(c.id, c.result, false))
		}
		switch {
		case len(blocks) == 0:
		case m.user:
			p.Messages = append(p.Messages, anthropic.NewUserMessage(blocks...))
		default:
			p.Messages = append(p.Messages, anthropic.NewAssistantMessage(blocks...))
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
		return &failure{e.StatusCode, e.Response.Header.Get("Retry-After"), cmp.Or(body.Error.Message, "no reason given")}
	} else if err != nil {
		return &failure{text: err.Error()}
	}
	return nil
}
