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

// newOpenAI returns the API at OPENAI_BASE_URL, which the client reads. The client does not retry, because the user would not see that.
func newOpenAI(key string) provider {
	return openAI{openai.NewClient(option.WithAPIKey(key), option.WithMaxRetries(0))}
}

func (o openAI) models(ctx context.Context) (list []model, err error) {
	pages := o.client.Models.ListAutoPaging(ctx)
	for pages.Next() {
		m := pages.Current()
		info := model{id: m.ID}
		for _, member := range []string{"max_model_len", "context_length"} { // vLLM, OpenRouter
			if json.Unmarshal([]byte(m.JSON.ExtraFields[member].Raw()), &info.window) == nil {
				break
			}
		}
		list = append(list, info)
	}
	return list, o.failure(pages.Err())
}

func (o openAI) stream(ctx context.Context, req *request) iter.Seq2[piece, error] {
	return func(yield func(piece, error) bool) {
		stream := o.client.Chat.Completions.NewStreaming(ctx, o.params(req))
		defer stream.Close()
		var res answer
		var ids []string // of res.calls
		position, finish := map[int64]int{}, ""
		for stream.Next() {
			chunk, p := stream.Current(), piece{}
			if u := chunk.Usage; u.TotalTokens > 0 {
				res.in, res.out = u.PromptTokens, u.CompletionTokens
			}
			for _, choice := range chunk.Choices[:min(1, len(chunk.Choices))] {
				d := choice.Delta
				finish = cmp.Or(choice.FinishReason, finish)
				if d.Refusal != "" {
					res.stop = acp.StopReasonRefusal
				}
				p.text = d.Content + d.Refusal
				for _, member := range []string{"reasoning_content", "reasoning"} { // not OpenAI's own, but common
					if json.Unmarshal([]byte(d.JSON.ExtraFields[member].Raw()), &p.thought) == nil && p.thought != "" {
						break
					}
				}
				for _, c := range d.ToolCalls {
					i, known := position[c.Index]
					if !known || c.ID != "" && ids[i] != "" && c.ID != ids[i] { // some servers give all calls the same index
						if len(ids) == maxCalls {
							continue
						}
						i, ids, res.calls = len(ids), append(ids, c.ID), append(res.calls, mcp.CallToolParamsRaw{})
						position[c.Index] = i
					}
					res.calls[i].Name += c.Function.Name
					res.calls[i].Arguments = append(res.calls[i].Arguments, c.Function.Arguments...)
				}
			}
			res.text += p.text
			if !yield(p, nil) {
				return
			}
		}
		switch {
		case stream.Err() != nil:
			yield(piece{}, o.failure(stream.Err()))
			return
		case finish == "":
			yield(piece{}, errBroken)
			return
		case finish == "length":
			res.stop = acp.StopReasonMaxTokens
		case finish == "content_filter":
			res.stop = acp.StopReasonRefusal
		}
		yield(piece{answer: &res}, nil)
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
		if text := contentText(m.Content); text != "" || m.ToolCalls == nil {
			said.Content.OfString = openai.String(text)
		}
		p.Messages = append(p.Messages, openai.ChatCompletionMessageParamUnion{OfAssistant: said})
		for _, c := range m.ToolCalls {
			function := openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.Name.Value(), Arguments: cmp.Or(string(c.RawInput), "{}")}
			said.ToolCalls = append(said.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{
				OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{ID: string(c.ToolCallID), Function: function},
			})
			p.Messages = append(p.Messages, openai.ToolMessage(req.result(&m, c), string(c.ToolCallID)))
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
			parts = append(parts, openai.TextContentPart(contentText([]acp.ContentBlock{block})))
		}
	}
	return parts
}

func (openAI) failure(err error) error {
	if e, ok := errors.AsType[*openai.Error](err); ok {
		return &failure{e.StatusCode, e.Response.Header.Get("Retry-After"), cmp.Or(e.Message, "no reason given")}
	} else if err != nil {
		return &failure{text: err.Error()}
	}
	return nil
}
