// Anthropic's messages.

package modelstub

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

type messages struct{ s *Server }

func (messages) decode(body []byte) (*conversation, error) {
	var r struct {
		Model    string
		System   json.RawMessage
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
		Tools []struct {
			Name        string
			InputSchema json.RawMessage `json:"input_schema"`
		}
		Stream       bool
		MaxTokens    int                              `json:"max_tokens"`
		OutputFormat struct{ Schema json.RawMessage } `json:"output_format"`
		OutputConfig struct {
			Format struct{ Schema json.RawMessage }
		} `json:"output_config"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, err
	}
	c := &conversation{model: r.Model, stream: r.Stream, schema: r.OutputFormat.Schema}
	if c.schema == nil {
		c.schema = r.OutputConfig.Format.Schema
	}
	var err error
	if r.System != nil {
		var t turn
		if t, err = blocks(r.System); err != nil {
			return nil, fmt.Errorf("system: %w", err)
		}
		c.system = strings.Join(t.texts, "\n")
	}
	for i, m := range r.Messages {
		t, err := blocks(m.Content)
		if err != nil {
			return nil, fmt.Errorf("messages: %d: %w", i, err)
		}
		t.agent = m.Role == "assistant"
		switch {
		case r.MaxTokens <= 0:
			c.refused = "max_tokens is missing"
		case t.opened != nil && (len(r.Tools) == 0 || !t.agent):
			c.refused = "there are no tools although there are calls, or calls that are not the assistant's"
		case slices.ContainsFunc(t.texts, func(text string) bool { return strings.TrimSpace(text) == "" }):
			c.refused = "there is a text of white space"
		}
		if m.Role == "system" {
			c.system += "\n" + strings.Join(t.texts, "\n")
			continue
		}
		c.turns = append(c.turns, t)
	}
	for _, t := range r.Tools {
		c.tools = append(c.tools, tool{t.Name, t.InputSchema})
	}
	return c, nil
}

// blocks are the texts and results of a content: a text, or a list of blocks. OpenAI's contents are alike.
func blocks(content json.RawMessage) (turn, error) {
	var t turn
	if len(content) == 0 || string(content) == "null" {
		return t, nil
	}
	var text string
	if json.Unmarshal(content, &text) == nil {
		t.texts = []string{text}
		return t, nil
	}
	var list []struct {
		Type    string
		Text    string
		Name    string
		Content json.RawMessage

		ID        string
		ToolUseID string `json:"tool_use_id"`
		Input     map[string]any
	}
	if err := json.Unmarshal(content, &list); err != nil {
		return t, err
	}
	for _, b := range list {
		switch {
		case b.Type == "tool_result":
			inner, err := blocks(b.Content)
			if err != nil {
				return t, err
			}
			t.results, t.answered = append(t.results, strings.Join(inner.texts, "\n")), append(t.answered, b.ToolUseID)
		case b.Type == "tool_use":
			if b.Name == "" || b.Input == nil {
				b.ID = ""
			}
			t.calls, t.opened = append(t.calls, b.Name), append(t.opened, b.ID)
		case b.Type == "image" || b.Type == "image_url":
			t.images++
		case b.Text != "":
			t.texts = append(t.texts, b.Text)
		}
	}
	return t, nil
}

// stopReason is why the model stops.
func (messages) stopReason(r *reply) string {
	switch {
	case r.refusal:
		return "refusal"
	case r.full:
		return "max_tokens"
	case len(r.calls) > 0:
		return "tool_use"
	}
	return "end_turn"
}

func (messages) usage(c *conversation, output int) map[string]any {
	return map[string]any{"input_tokens": c.size(), "output_tokens": output, "cache_creation_input_tokens": 0,
		"cache_read_input_tokens": 0}
}

func (m messages) whole(c *conversation, r *reply) any {
	content := []any{}
	if r.thought != "" {
		content = append(content, map[string]any{"type": "thinking", "thinking": r.thought, "signature": "YWNw"})
	}
	if len(r.text) > 0 {
		content = append(content, map[string]any{"type": "text", "text": strings.Join(r.text, "")})
	}
	for _, x := range r.calls {
		content = append(content, map[string]any{"type": "tool_use", "id": x.id, "name": x.name, "input": x.args})
	}
	return map[string]any{
		"id": m.s.id("msg_"), "type": "message", "role": "assistant", "model": c.model, "content": content,
		"stop_reason": m.stopReason(r), "stop_sequence": nil, "usage": m.usage(c, r.size()),
	}
}

func (m messages) stream(e *events, c *conversation, r *reply) {
	send := func(kind string, v map[string]any) {
		v["type"] = kind
		e.send(kind, v)
	}
	send("message_start", map[string]any{"message": map[string]any{
		"id": m.s.id("msg_"), "type": "message", "role": "assistant", "model": c.model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": m.usage(c, 1),
	}})
	index := 0
	block := func(start map[string]any, deltas func(delta func(map[string]any))) {
		send("content_block_start", map[string]any{"index": index, "content_block": start})
		deltas(func(d map[string]any) { send("content_block_delta", map[string]any{"index": index, "delta": d}) })
		send("content_block_stop", map[string]any{"index": index})
		index++
	}
	if r.thought != "" {
		block(map[string]any{"type": "thinking", "thinking": "", "signature": ""}, func(delta func(map[string]any)) {
			delta(map[string]any{"type": "thinking_delta", "thinking": r.thought})
			delta(map[string]any{"type": "signature_delta", "signature": "YWNw"})
		})
	}
	if len(r.text) > 0 {
		block(map[string]any{"type": "text", "text": ""}, func(delta func(map[string]any)) {
			e.pieces(r, func(piece string) { delta(map[string]any{"type": "text_delta", "text": piece}) })
		})
	}
	for _, x := range r.calls {
		block(map[string]any{"type": "tool_use", "id": x.id, "name": x.name, "input": map[string]any{}},
			func(delta func(map[string]any)) {
				delta(map[string]any{"type": "input_json_delta", "partial_json": string(x.args)})
			})
	}
	send("message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": m.stopReason(r), "stop_sequence": nil}, "usage": m.usage(c, r.size()),
	})
	send("message_stop", map[string]any{})
}

func (messages) failure(status int, text string) any {
	kind := "invalid_request_error"
	if status >= 500 {
		kind = "api_error"
	}
	return map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": text}}
}
