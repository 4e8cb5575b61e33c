package main

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"iter"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
)

type openAI struct{ client openai.Client }

// newOpenAI returns the API at OPENAI_BASE_URL. The client does not retry, because the user would not see that.
func newOpenAI(key string) provider {
	return openAI{openai.NewClient(option.WithAPIKey(key), option.WithMaxRetries(0))}
}

func (o openAI) models(ctx context.Context) (names []string, windows map[string]int64, err error) {
	pages, windows := o.client.Models.ListAutoPaging(ctx), map[string]int64{}
	for pages.Next() {
		m := pages.Current()
		names = append(names, m.ID)
		for _, member := range []string{"max_model_len", "context_length"} { // vLLM, OpenRouter
			var tokens int64
			if json.Unmarshal([]byte(m.JSON.ExtraFields[member].Raw()), &tokens) == nil {
				windows[m.ID] = tokens
			}
		}
	}
	return names, windows, o.failure(pages.Err())
}

func (o openAI) stream(ctx context.Context, req *request, whole *answer) iter.Seq2[agentkit.Piece, error] {
	return func(yield func(agentkit.Piece, error) bool) {
		stream := o.client.Chat.Completions.NewStreaming(ctx, o.params(req))
		defer stream.Close()
		var ids []string // of whole.calls
		position, finish := map[int64]int{}, ""
		*whole = answer{}
		for stream.Next() {
			chunk, p := stream.Current(), agentkit.Piece{}
			if u := chunk.Usage; u.TotalTokens > 0 {
				whole.in, whole.out = u.PromptTokens, u.CompletionTokens
			}
			for _, choice := range chunk.Choices[:min(1, len(chunk.Choices))] {
				d := choice.Delta
				finish = cmp.Or(choice.FinishReason, finish)
				if d.Refusal != "" {
					whole.stop = acp.StopReasonRefusal
				}
				p.Text = d.Content + d.Refusal
				for _, member := range []string{"reasoning_content", "reasoning"} { // not OpenAI's own, but common
					if json.Unmarshal([]byte(d.JSON.ExtraFields[member].Raw()), &p.Thought) == nil && p.Thought != "" {
						break
					}
				}
				for _, c := range d.ToolCalls {
					i, known := position[c.Index]
					if !known || c.ID != "" && ids[i] != "" && c.ID != ids[i] { // some servers give all calls the same index
						i, ids, whole.calls = len(ids), append(ids, c.ID), append(whole.calls, mcp.CallToolParamsRaw{})
						position[c.Index] = i
					}
					whole.calls[i].Name += c.Function.Name
					whole.calls[i].Arguments = append(whole.calls[i].Arguments, c.Function.Arguments...)
					p.More += 1 + len(c.Function.Name) + len(c.Function.Arguments)
				}
			}
			whole.text += p.Text
			if !yield(p, nil) {
				return
			}
		}
		switch {
		case stream.Err() != nil:
			yield(agentkit.Piece{}, o.failure(stream.Err()))
		case finish == "":
			yield(agentkit.Piece{}, errBroken)
		case finish == "length":
			whole.stop = acp.StopReasonMaxTokens
		case finish == "content_filter":
			whole.stop = acp.StopReasonRefusal
		}
	}
}

func (o openAI) params(req *request) openai.ChatCompletionNewParams {
	p := openai.ChatCompletionNewParams{
		Model: req.model, Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(req.system)},
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	}
	if os.Getenv("OPENAI_BASE_URL") == "" {
		p.MaxCompletionTokens = openai.Int(req.maxTokens)
	} else {
		p.MaxTokens = openai.Int(req.maxTokens) // other servers may know only this, which OpenAI's newer models refuse
	}
	for _, tool := range req.tools {
		schema, _ := tool.InputSchema.(map[string]any)
		p.Tools = append(p.Tools, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: tool.Name, Description: openai.String(tool.Description), Parameters: schema,
		}))
	}
	for _, m := range req.messages {
		if m.Role != agentkit.RoleAgent {
			p.Messages = append(p.Messages, openai.UserMessage(userParts(m.Content)))
			continue
		}
		said := &openai.ChatCompletionAssistantMessageParam{}
		if text := agentkit.ContentText(m.Content...); text != "" || m.ToolCalls == nil {
			said.Content.OfString = openai.String(text)
		}
		p.Messages = append(p.Messages, openai.ChatCompletionMessageParamUnion{OfAssistant: said})
		for c, result := range m.Results(req.maxResults) {
			function := openai.ChatCompletionMessageFunctionToolCallFunctionParam{
				Name: c.Name.Value(), Arguments: cmp.Or(string(c.RawInput), "{}"),
			}
			said.ToolCalls = append(said.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{
				OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{ID: string(c.ToolCallID), Function: function},
			})
			p.Messages = append(p.Messages, openai.ToolMessage(result, string(c.ToolCallID)))
		}
	}
	return p
}

func userParts(content []acp.ContentBlock) (parts []openai.ChatCompletionContentPartUnionParam) {
	for _, block := range content {
		if data, kind, ok := block.Image(); ok {
			url := "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(data)
			parts = append(parts, openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: url}))
		} else {
			parts = append(parts, openai.TextContentPart(agentkit.ContentText(block)))
		}
	}
	return parts
}

func (openAI) failure(err error) error {
	if e, ok := errors.AsType[*openai.Error](err); ok {
		return &agentkit.APIError{Status: e.StatusCode, RetryAfter: e.Response.Header.Get("Retry-After"), Reason: e.Message}
	} else if err != nil {
		return &agentkit.APIError{Reason: err.Error()}
	}
	return nil
}
