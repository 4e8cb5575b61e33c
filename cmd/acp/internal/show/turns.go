package show

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/plain"
)

// Turns prints conversations as text: messages joined from their chunks, changes in the state of tool calls, plans,
// permissions, and the ends of turns. All other messages are lines as printed by [Text].
type Turns struct {
	Text
	open  *Message // the first chunk of the message being joined; nil if there is none
	said  strings.Builder
	count int
	calls map[callKey]call
}

type callKey struct{ session, id string }

// call is the last printed state of a tool call.
type call struct{ title, kind, status string }

// The limits of what is kept: bytes of a message, beyond which it continues as another one, and tool calls.
const (
	maxSaid  = 1 << 20
	maxCalls = 1 << 14
)

// NewTurns returns a printer for conversations.
func NewTurns(w io.Writer, colors bool) *Turns {
	return &Turns{Text: *NewText(w, colors, false), calls: map[callKey]call{}}
}

// turnContent has the members of messages that make up a conversation.
type turnContent struct {
	Update struct {
		MessageID  string `json:"messageId"`
		Content    block  `json:"content"`
		ToolCallID string `json:"toolCallId"`
		Title      string `json:"title"`
		Kind       string `json:"kind"`
		Status     string `json:"status"`
		Entries    []struct {
			Content string `json:"content"`
			Status  string `json:"status"`
		} `json:"entries"`
	} `json:"update"`
	Prompt     []block `json:"prompt"`
	StopReason string  `json:"stopReason"`
	ToolCall   struct {
		Title string `json:"title"`
	} `json:"toolCall"`
}

// block is a content block.
type block struct{ raw json.RawMessage }

// UnmarshalJSON implements json.Unmarshaler.
func (b *block) UnmarshalJSON(raw []byte) error {
	b.raw = append(b.raw[:0], raw...)
	return nil
}

// text returns the text of a block, or else its content in short form.
func (b block) text() string {
	var text struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if json.Unmarshal(b.raw, &text) == nil && text.Type == "text" && text.Text != nil {
		return *text.Text
	}
	return "[" + clip(Fold(b.raw), maxLine) + "]"
}

// Message prints a message, or keeps a chunk until its message is complete.
func (t *Turns) Message(m *Message, findings []conformance.Finding) error {
	var c turnContent
	// Members of other types stay empty; reporting them is not the business of this package.
	_ = json.Unmarshal(m.Content, &c)
	u := &c.Update
	if strings.HasSuffix(m.Update, "_message_chunk") || strings.HasSuffix(m.Update, "_thought_chunk") {
		return t.chunk(m, u.MessageID, u.Content.text(), findings)
	}
	if err := t.flush(); err != nil {
		return err
	}
	switch {
	case m.Method == "session/prompt" && m.Kind == conformance.Request:
		t.head(m, "user"+inSession(m))
		var text strings.Builder
		for _, b := range c.Prompt {
			text.WriteString(b.text() + "\n")
		}
		t.text(text.String())
	case m.Method == "session/prompt" && m.Kind == conformance.Response:
		t.head(m, "end of turn"+inSession(m))
		fmt.Fprintf(t.w, "  %s\n", plain.Line(clip(c.StopReason, maxString)))
	case m.Method == "session/request_permission" && m.Kind == conformance.Request:
		t.head(m, "permission?"+inSession(m))
		names := make([]string, 0, len(m.decoded.Options))
		for i := range m.decoded.Options {
			names = append(names, m.decoded.Options[i].text())
		}
		fmt.Fprintf(t.w, "  %s (%s)\n", plain.Line(clip(c.ToolCall.Title, maxLine)), plain.Line(strings.Join(names, ", ")))
	case m.Option != nil:
		t.head(m, "permission"+inSession(m))
		fmt.Fprintf(t.w, "  %s\n", plain.Line(m.Option.text()))
	case m.Update == "tool_call" || m.Update == "tool_call_update":
		key := callKey{m.Session, u.ToolCallID}
		now := t.calls[key]
		before := now
		now = call{cmp.Or(u.Title, now.title), cmp.Or(u.Kind, now.kind), cmp.Or(u.Status, now.status)}
		if now == before && len(findings) == 0 {
			return nil // its content has changed
		}
		if len(t.calls) < maxCalls {
			t.calls[key] = now
		}
		t.head(m, "tool"+inSession(m))
		fmt.Fprintf(t.w, "  %s (%s): %s\n", plain.Line(clip(cmp.Or(now.title, u.ToolCallID), maxLine)),
			plain.Line(clip(cmp.Or(now.kind, "other"), maxString)),
			plain.Line(clip(cmp.Or(now.status, "pending"), maxString)))
	case m.Update == "plan":
		t.head(m, "plan"+inSession(m))
		var text strings.Builder
		for _, e := range u.Entries {
			mark := map[string]string{"completed": "x", "in_progress": ">"}[e.Status]
			fmt.Fprintf(&text, "[%s] %s\n", cmp.Or(mark, " "), plain.Line(e.Content))
		}
		t.text(text.String())
	default:
		return t.Text.Message(m, findings)
	}
	for _, f := range findings {
		t.finding(f)
	}
	return t.w.Flush()
}

// chunk adds a chunk to the message being joined, or begins a new one.
func (t *Turns) chunk(m *Message, id, text string, findings []conformance.Finding) error {
	if o := t.open; o != nil && (o.Update != m.Update || o.Session != m.Session || o.ID != id ||
		t.said.Len()+len(text) > maxSaid) {
		if err := t.flush(); err != nil {
			return err
		}
	}
	if t.open == nil {
		first := *m
		first.ID = id // of the message; a notification has no id
		first.Text, first.Content, first.Findings = nil, nil, nil
		t.open = &first
	}
	t.open.Findings = append(t.open.Findings, findings...)
	t.said.WriteString(text)
	t.count++
	return nil
}

// flush prints the message being joined.
func (t *Turns) flush() error {
	m := t.open
	if m == nil {
		return nil
	}
	who := strings.ReplaceAll(strings.TrimSuffix(strings.TrimSuffix(m.Update, "_chunk"), "_message"), "_", " ")
	t.head(m, who+inSession(m))
	if t.count > 1 {
		fmt.Fprintf(t.w, " %s", t.paint(dim, fmt.Sprintf("(%d chunks)", t.count)))
	}
	t.text(t.said.String())
	for _, f := range m.Findings {
		t.finding(f)
	}
	t.open, t.count = nil, 0
	t.said.Reset()
	return t.w.Flush()
}

// text prints text below the line that names its sender.
func (t *Turns) text(text string) {
	fmt.Fprintln(t.w)
	for line := range strings.Lines(strings.TrimRight(plain.Text(text), "\n") + "\n") {
		fmt.Fprintf(t.w, "%19s%s", "", line)
	}
}

// Finding prints a finding at the end of the connection.
func (t *Turns) Finding(line int, f conformance.Finding) error {
	if err := t.flush(); err != nil {
		return err
	}
	return t.Text.Finding(line, f)
}

// End prints the last message.
func (t *Turns) End() error {
	if err := t.flush(); err != nil {
		return err
	}
	return t.Text.End()
}

// inSession names the session of a message.
func inSession(m *Message) string {
	if m.Session == "" {
		return ""
	}
	return " [" + clip(m.Session, 12) + "]"
}
