// Gemini's generateContent.

package modelstub

import (
	"encoding/json"
	"net/http"
	"strings"
)

type contents struct{ s *Server }

// geminiContent is a message.
type geminiContent struct {
	Role  string
	Parts []struct {
		Text             string
		Thought          bool
		FunctionCall     *struct{ Name string }
		FunctionResponse *struct{ Response json.RawMessage }
	}
}

func (g geminiContent) turn() turn {
	t := turn{agent: g.Role == "model"}
	for _, p := range g.Parts {
		switch {
		case p.FunctionResponse != nil:
			t.results = append(t.results, resultText(p.FunctionResponse.Response))
		case p.FunctionCall != nil:
			t.calls = append(t.calls, p.FunctionCall.Name)
		case p.Text != "" && !p.Thought:
			t.texts = append(t.texts, p.Text)
		}
	}
	return t
}

// resultText is the text of a result: what its output is, or all of it.
func resultText(response json.RawMessage) string {
	var r struct{ Output, Error *string }
	if json.Unmarshal(response, &r) == nil {
		switch {
		case r.Output != nil:
			return *r.Output
		case r.Error != nil:
			return *r.Error
		}
	}
	return string(response)
}

func (contents) decode(body []byte) (*conversation, error) {
	var r struct {
		Contents          []geminiContent
		SystemInstruction json.RawMessage // a content, or a text
		Tools             []struct {
			FunctionDeclarations []struct {
				Name                 string
				Parameters           json.RawMessage
				ParametersJSONSchema json.RawMessage
			}
		}
		GenerationConfig struct {
			ResponseSchema     json.RawMessage
			ResponseJSONSchema json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, err
	}
	c := &conversation{schema: r.GenerationConfig.ResponseJSONSchema}
	if c.schema == nil {
		c.schema = r.GenerationConfig.ResponseSchema
	}
	var system geminiContent
	if json.Unmarshal(r.SystemInstruction, &system) == nil {
		c.system = strings.Join(system.turn().texts, "\n")
	} else {
		c.system = string(r.SystemInstruction)
	}
	for _, content := range r.Contents {
		c.turns = append(c.turns, content.turn())
	}
	for _, t := range r.Tools {
		for _, f := range t.FunctionDeclarations {
			s := f.ParametersJSONSchema
			if s == nil {
				s = f.Parameters
			}
			c.tools = append(c.tools, tool{f.Name, s})
		}
	}
	return c, nil
}

// answer is an answer, or a piece of one.
func (g contents) answer(c *conversation, r *reply, parts []any, finish string) map[string]any {
	candidate := map[string]any{"index": 0, "content": map[string]any{"role": "model", "parts": parts}}
	v := map[string]any{"candidates": []any{candidate}, "modelVersion": c.model, "responseId": g.s.id("resp_")}
	if finish != "" {
		candidate["finishReason"] = finish
		in, out := c.size(), r.size()
		v["usageMetadata"] = map[string]any{"promptTokenCount": in, "candidatesTokenCount": out, "totalTokenCount": in + out}
	}
	return v
}

func (contents) finish(r *reply) string {
	if r.refusal {
		return "SAFETY"
	}
	return "STOP"
}

// thoughts and calls are parts.
func (contents) thoughts(r *reply) []any {
	if r.thought == "" {
		return nil
	}
	return []any{map[string]any{"text": r.thought, "thought": true}}
}

func (contents) calls(r *reply) []any {
	parts := []any{}
	for _, x := range r.calls {
		parts = append(parts, map[string]any{"functionCall": map[string]any{"id": x.id, "name": x.name, "args": x.args}})
	}
	return parts
}

func (g contents) whole(c *conversation, r *reply) any {
	parts := g.thoughts(r)
	if len(r.text) > 0 {
		parts = append(parts, map[string]any{"text": strings.Join(r.text, "")})
	}
	return g.answer(c, r, append(parts, g.calls(r)...), g.finish(r))
}

func (g contents) stream(e *events, c *conversation, r *reply) {
	send := func(parts []any, finish string) { e.send("", g.answer(c, r, parts, finish)) }
	if parts := g.thoughts(r); parts != nil {
		send(parts, "")
	}
	e.pieces(r, func(piece string) { send([]any{map[string]any{"text": piece}}, "") })
	send(g.calls(r), g.finish(r))
}

func (contents) failure(status int, text string) any {
	name := "INVALID_ARGUMENT"
	if status == http.StatusInternalServerError {
		name = "INTERNAL"
	}
	return map[string]any{"error": map[string]any{"code": status, "message": text, "status": name}}
}
