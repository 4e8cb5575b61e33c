// OpenAI's responses.

package modelstub

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

type responses struct{ s *Server }

func (responses) decode(body []byte) (*conversation, error) {
	var r struct {
		Model        string
		Instructions string
		Input        json.RawMessage
		Tools        []struct {
			Type       string
			Name       string
			Parameters json.RawMessage
		}
		Stream bool
		Text   struct {
			Format struct{ Schema json.RawMessage }
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, err
	}
	c := &conversation{model: r.Model, system: r.Instructions + "\n", stream: r.Stream, schema: r.Text.Format.Schema}
	var text string
	if json.Unmarshal(r.Input, &text) == nil {
		c.turns = []turn{{texts: []string{text}}}
	} else {
		var items []struct {
			Type    string
			Role    string
			Name    string
			Content json.RawMessage
			Output  json.RawMessage
		}
		if err := json.Unmarshal(r.Input, &items); err != nil {
			return nil, fmt.Errorf("input: %w", err)
		}
		for i, item := range items {
			content, role := item.Content, item.Role
			switch {
			case strings.HasSuffix(item.Type, "_call_output"):
				content, role = item.Output, "tool"
			case item.Type == "function_call":
				c.turns = append(c.turns, turn{agent: true, calls: []string{item.Name}})
				continue
			case item.Type == "reasoning" || strings.HasSuffix(item.Type, "_call"):
				continue
			}
			t, err := blocks(content)
			if err != nil {
				return nil, fmt.Errorf("input: %d: %w", i, err)
			}
			c.add(role, t)
		}
	}
	for _, t := range r.Tools {
		if t.Type == "function" {
			c.tools = append(c.tools, tool{t.Name, t.Parameters})
		}
	}
	return c, nil
}

// items are the items of the output, each as it is when it is done.
func (h responses) items(r *reply) []map[string]any {
	var items []map[string]any
	if r.thought != "" {
		items = append(items, map[string]any{"type": "reasoning", "id": h.s.id("rs_"),
			"summary": []any{map[string]any{"type": "summary_text", "text": r.thought}}})
	}
	if len(r.text) > 0 {
		items = append(items, map[string]any{
			"type": "message", "id": h.s.id("msg_"), "status": "completed", "role": "assistant",
			"content": []any{h.part(r, strings.Join(r.text, ""))},
		})
	}
	for _, x := range r.calls {
		items = append(items, map[string]any{
			"type": "function_call", "id": h.s.id("fc_"), "call_id": x.id, "name": x.name, "arguments": string(x.args),
			"status": "completed",
		})
	}
	return items
}

// part is the part of a message that holds its text.
func (responses) part(r *reply, text string) map[string]any {
	if r.refusal {
		return map[string]any{"type": "refusal", "refusal": text}
	}
	return map[string]any{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}
}

// response is the response in some state.
func (h responses) response(id, status string, c *conversation, r *reply, items []map[string]any) map[string]any {
	if items == nil {
		items = []map[string]any{}
	}
	v := map[string]any{
		"id": id, "object": "response", "created_at": 1, "status": status, "model": c.model, "output": items, "error": nil,
		"incomplete_details": nil, "instructions": nil, "metadata": map[string]any{}, "parallel_tool_calls": true,
		"temperature": 1,
		"tool_choice": "auto", "tools": []any{}, "top_p": 1, "usage": nil,
	}
	if r != nil {
		in, out := c.size(), r.size()
		v["usage"] = map[string]any{
			"input_tokens": in, "input_tokens_details": map[string]any{"cached_tokens": 0},
			"output_tokens": out, "output_tokens_details": map[string]any{"reasoning_tokens": 0}, "total_tokens": in + out,
		}
	}
	return v
}

func (h responses) whole(c *conversation, r *reply) any {
	return h.response(h.s.id("resp_"), "completed", c, r, h.items(r))
}

func (h responses) stream(e *events, c *conversation, r *reply) {
	id, number := h.s.id("resp_"), 0
	send := func(kind string, v map[string]any) {
		v["type"], v["sequence_number"] = kind, number
		number++
		e.send(kind, v)
	}
	send("response.created", map[string]any{"response": h.response(id, "in_progress", c, nil, nil)})
	send("response.in_progress", map[string]any{"response": h.response(id, "in_progress", c, nil, nil)})
	items := h.items(r)
	for index, item := range items {
		of := func(more map[string]any) map[string]any {
			more["item_id"], more["output_index"] = item["id"], index
			return more
		}
		begun := map[string]any{}
		maps.Copy(begun, item)
		switch item["type"] {
		case "reasoning":
			begun["summary"] = []any{}
			send("response.output_item.added", map[string]any{"output_index": index, "item": begun})
			part := map[string]any{"type": "summary_text", "text": r.thought}
			send("response.reasoning_summary_part.added",
				of(map[string]any{"summary_index": 0, "part": map[string]any{"type": "summary_text", "text": ""}}))
			send("response.reasoning_summary_text.delta", of(map[string]any{"summary_index": 0, "delta": r.thought}))
			send("response.reasoning_summary_text.done", of(map[string]any{"summary_index": 0, "text": r.thought}))
			send("response.reasoning_summary_part.done", of(map[string]any{"summary_index": 0, "part": part}))
		case "message":
			begun["status"], begun["content"] = "in_progress", []any{}
			send("response.output_item.added", map[string]any{"output_index": index, "item": begun})
			send("response.content_part.added", of(map[string]any{"content_index": 0, "part": h.part(r, "")}))
			kind, member := "response.output_text", "text"
			if r.refusal {
				kind, member = "response.refusal", "refusal"
			}
			e.pieces(r, func(piece string) {
				send(kind+".delta", of(map[string]any{"content_index": 0, "delta": piece, "logprobs": []any{}}))
			})
			text := strings.Join(r.text, "")
			send(kind+".done", of(map[string]any{"content_index": 0, member: text, "logprobs": []any{}}))
			send("response.content_part.done", of(map[string]any{"content_index": 0, "part": h.part(r, text)}))
		default:
			begun["status"], begun["arguments"] = "in_progress", ""
			send("response.output_item.added", map[string]any{"output_index": index, "item": begun})
			send("response.function_call_arguments.delta", of(map[string]any{"delta": item["arguments"]}))
			send("response.function_call_arguments.done",
				of(map[string]any{"arguments": item["arguments"], "name": item["name"]}))
		}
		send("response.output_item.done", map[string]any{"output_index": index, "item": item})
	}
	send("response.completed", map[string]any{"response": h.response(id, "completed", c, r, items)})
}

func (responses) failure(status int, text string) any { return openAIFailure(status, text) }
