// OpenAI's chat completions, which many others serve too.

package modelstub

import (
	"encoding/json"
	"fmt"
	"strings"
)

type chat struct{ s *Server }

func (chat) decode(body []byte) (*conversation, error) {
	var r struct {
		Model    string
		Messages []struct {
			Role    string
			Content json.RawMessage
			ID      string `json:"tool_call_id"`
			Calls   []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		Tools []struct {
			Function struct {
				Name       string
				Parameters json.RawMessage
			}
		}
		Stream         bool
		ResponseFormat struct {
			JSONSchema struct{ Schema json.RawMessage } `json:"json_schema"`
		} `json:"response_format"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, err
	}
	c := &conversation{model: r.Model, stream: r.Stream, schema: r.ResponseFormat.JSONSchema.Schema}
	for i, m := range r.Messages {
		t, err := blocks(m.Content)
		if err != nil {
			return nil, fmt.Errorf("messages: %d: %w", i, err)
		}
		for _, x := range m.Calls {
			t.calls = append(t.calls, x.Function.Name)
			if x.Function.Name == "" || !json.Valid([]byte(x.Function.Arguments)) {
				x.ID = ""
			}
			t.opened = append(t.opened, x.ID)
		}
		t.answered = []string{m.ID}
		c.add(m.Role, t)
	}
	for _, t := range r.Tools {
		if t.Function.Name != "" {
			c.tools = append(c.tools, tool{t.Function.Name, t.Function.Parameters})
		}
	}
	return c, nil
}

// add takes a message with one of OpenAI's roles.
func (c *conversation) add(role string, t turn) {
	switch role {
	case "system", "developer":
		c.system += strings.Join(t.texts, "\n") + "\n"
		return
	case "tool", "function":
		c.turns = append(c.turns, turn{results: []string{strings.Join(t.texts, "\n")}, answered: t.answered})
		return
	}
	t.agent, t.answered = role == "assistant", nil
	c.turns = append(c.turns, t)
}

func (chat) usage(c *conversation, r *reply) map[string]any {
	in, out := c.size(), r.size()
	return map[string]any{"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out}
}

func (chat) finish(r *reply) string {
	switch {
	case r.full:
		return "length"
	case len(r.calls) > 0:
		return "tool_calls"
	}
	return "stop" // also of a refusal, which has a member of its own
}

// calls are the calls as OpenAI has them; in a stream each has its index.
func (chat) calls(r *reply, stream bool) []any {
	var calls []any
	for i, x := range r.calls {
		one := map[string]any{"id": x.id, "type": "function",
			"function": map[string]any{"name": x.name, "arguments": string(x.args)}}
		if stream {
			one["index"] = i
		}
		calls = append(calls, one)
	}
	return calls
}

func (h chat) whole(c *conversation, r *reply) any {
	text := strings.Join(r.text, "")
	message := map[string]any{"role": "assistant", "content": text, "refusal": nil}
	if r.refusal {
		message["content"], message["refusal"] = nil, text
	}
	if r.thought != "" {
		message["reasoning_content"] = r.thought
	}
	if len(r.calls) > 0 {
		message["tool_calls"] = h.calls(r, false)
	}
	return map[string]any{
		"id": h.s.id("chatcmpl-"), "object": "chat.completion", "created": 1, "model": c.model,
		"choices": []any{map[string]any{"index": 0, "message": message, "logprobs": nil, "finish_reason": h.finish(r)}},
		"usage":   h.usage(c, r),
	}
}

func (h chat) stream(e *events, c *conversation, r *reply) {
	id := h.s.id("chatcmpl-")
	chunk := func(delta map[string]any, finish any) {
		e.send("", map[string]any{
			"id": id, "object": "chat.completion.chunk", "created": 1, "model": c.model,
			"choices": []any{map[string]any{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}},
		})
	}
	chunk(map[string]any{"role": "assistant", "content": ""}, nil)
	if r.thought != "" {
		chunk(map[string]any{"reasoning_content": r.thought}, nil)
	}
	member := "content"
	if r.refusal {
		member = "refusal"
	}
	e.pieces(r, func(piece string) { chunk(map[string]any{member: piece}, nil) })
	if len(r.calls) > 0 {
		chunk(map[string]any{"tool_calls": h.calls(r, true)}, nil)
	}
	chunk(map[string]any{}, h.finish(r))
	e.send("", map[string]any{
		"id": id, "object": "chat.completion.chunk", "created": 1, "model": c.model, "choices": []any{},
		"usage": h.usage(c, r),
	})
	e.raw("", []byte("[DONE]"))
}

func (chat) failure(status int, text string) any {
	kind := "invalid_request_error"
	if status >= 500 {
		kind = "server_error"
	}
	return map[string]any{"error": map[string]any{"message": text, "type": kind, "param": nil, "code": nil}}
}
