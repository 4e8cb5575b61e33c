package main

import (
	"encoding/json"
	"fmt"
)

type notification struct {
	SessionID string `json:"sessionId"`
	Update    update `json:"update"`
}

// update holds a *messageChunk or a *toolCall.
type update struct{ variant any }

type messageChunk struct {
	SessionUpdate string  `json:"sessionUpdate"`
	Content       content `json:"content"`
}

type toolCall struct {
	SessionUpdate string          `json:"sessionUpdate"`
	ToolCallID    string          `json:"toolCallId"`
	Title         string          `json:"title"`
	Kind          string          `json:"kind,omitempty"`
	Status        string          `json:"status,omitempty"`
	Content       []toolContent   `json:"content,omitempty"`
	Locations     []location      `json:"locations,omitempty"`
	RawInput      json.RawMessage `json:"rawInput,omitempty"`
}

type location struct {
	Path string  `json:"path"`
	Line *uint32 `json:"line,omitempty"`
}

// toolContent holds a *contentItem or a *diffItem.
type toolContent struct{ variant any }

type contentItem struct {
	Type    string  `json:"type"`
	Content content `json:"content"`
}

type diffItem struct {
	Type    string  `json:"type"`
	Path    string  `json:"path"`
	OldText *string `json:"oldText,omitempty"`
	NewText string  `json:"newText"`
}

// content holds a *textContent.
type content struct{ variant any }

type textContent struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func (x update) MarshalJSON() ([]byte, error)      { return json.Marshal(x.variant) }
func (x toolContent) MarshalJSON() ([]byte, error) { return json.Marshal(x.variant) }
func (x content) MarshalJSON() ([]byte, error)     { return json.Marshal(x.variant) }

func (x *update) UnmarshalJSON(data []byte) error {
	var tag struct {
		SessionUpdate string `json:"sessionUpdate"`
	}
	if err := json.Unmarshal(data, &tag); err != nil {
		return err
	}
	return choose(data, &x.variant, tag.SessionUpdate, map[string]func() any{
		"agent_message_chunk": func() any { return new(messageChunk) },
		"tool_call":           func() any { return new(toolCall) },
	})
}

func (x *toolContent) UnmarshalJSON(data []byte) error {
	return byType(data, &x.variant, map[string]func() any{
		"content": func() any { return new(contentItem) },
		"diff":    func() any { return new(diffItem) },
	})
}

func (x *content) UnmarshalJSON(data []byte) error {
	return byType(data, &x.variant, map[string]func() any{"text": func() any { return new(textContent) }})
}

func byType(data []byte, variant *any, variants map[string]func() any) error {
	var tag struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(data, &tag); err != nil {
		return err
	}
	return choose(data, variant, tag.Type, variants)
}

func choose(data []byte, variant *any, tag string, variants map[string]func() any) error {
	make, ok := variants[tag]
	if !ok {
		return fmt.Errorf("unknown variant %q", tag)
	}
	*variant = make()
	return json.Unmarshal(data, *variant)
}

type initializeParams struct {
	ProtocolVersion    int                `json:"protocolVersion"`
	ClientCapabilities clientCapabilities `json:"clientCapabilities"`
}

type clientCapabilities struct {
	FS fsCapabilities `json:"fs"`
}

type fsCapabilities struct {
	ReadTextFile bool `json:"readTextFile"`
}

type initializeResult struct {
	ProtocolVersion int `json:"protocolVersion"`
}

type newSessionParams struct {
	Cwd        string     `json:"cwd"`
	MCPServers []struct{} `json:"mcpServers"`
}

type newSessionResult struct {
	SessionID string `json:"sessionId"`
}

type promptParams struct {
	SessionID string    `json:"sessionId"`
	Prompt    []content `json:"prompt"`
}

type promptResult struct {
	StopReason string `json:"stopReason"`
}

type readParams struct {
	SessionID string `json:"sessionId"`
	Path      string `json:"path"`
}

type readResult struct {
	Content string `json:"content"`
}

type permissionParams struct {
	SessionID string             `json:"sessionId"`
	ToolCall  toolCallID         `json:"toolCall"`
	Options   []permissionOption `json:"options"`
}

type toolCallID struct {
	ToolCallID string `json:"toolCallId"`
}

type permissionOption struct {
	OptionID string `json:"optionId"`
	Name     string `json:"name"`
	Kind     string `json:"kind"`
}

type permissionResult struct {
	Outcome permissionOutcome `json:"outcome"`
}

type permissionOutcome struct {
	Outcome  string `json:"outcome"`
	OptionID string `json:"optionId,omitempty"`
}
