package agentkit

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
)

// Role is the author of a Message.
type Role int

// The roles.
const (
	RoleUser    Role = iota + 1 // the user
	RoleAgent                   // the agent
	RoleSummary                 // a completed compaction, whose summary replaces everything before it
)

// Message is a part of a conversation in the form that models take.
type Message struct {
	Role Role
	// Content is the text, joined into as few blocks as possible, and other blocks, such as images.
	Content []acp.ContentBlock
	// ToolCalls are the calls that the agent made after Content and before the next message, as last reported, with
	// their input and results.
	ToolCalls []acp.ToolCall
}

// Messages returns the stored conversation as messages, which an agent converts to those of its model. It includes the
// prompt of the turn in progress. It leaves out thoughts, plans and everything else that is not a message, a tool call
// or a completed compaction; see History for all updates. Each prompt is a message. Consecutive messages of the agent
// are one message, unless there are tool calls between them. Without a store it returns none.
func (s *session) Messages(ctx context.Context) ([]Message, error) {
	conversation := view.New(&view.Options{MaxItems: -1, MaxBytes: -1, MaxMessageBytes: -1})
	for update, err := range s.History(ctx) {
		if err != nil {
			return nil, err
		}
		conversation.Update(update)
	}
	var messages []Message
	last := func(role Role) *Message { // returns the message to extend with content of the role
		if n := len(messages); n == 0 || messages[n-1].Role != role {
			messages = append(messages, Message{Role: role})
		}
		return &messages[len(messages)-1]
	}
	for item := range conversation.Snapshot().Items() {
		switch v := item.Variant.(type) {
		case *view.Message:
			role := RoleAgent
			switch v.Role {
			case view.User:
				role = RoleUser
			case view.Thought:
				continue
			}
			m := last(role)
			// A prompt has an id; what Session.Record has added to it has none.
			if m.ToolCalls != nil || role == RoleUser && v.ID != "" && m.Content != nil {
				messages = append(messages, Message{Role: role})
				m = last(role)
			}
			m.Content = slices.AppendSeq(m.Content, v.Blocks())
		case *view.ToolCall:
			m := last(RoleAgent)
			m.ToolCalls = append(m.ToolCalls, v.Call)
		case *view.Compaction:
			if v.Status == acp.CompactionStatusCompleted {
				messages = []Message{{Role: RoleSummary, Content: slices.Collect(v.Summary.Blocks())}}
			}
		}
	}
	return messages, nil
}

// Results returns the tool calls of a message with their results for a model, as ToolResult returns them, but never
// empty, because some models refuse that. The results are cut so that all together have about as many bytes as most.
func (m *Message) Results(most int) iter.Seq2[acp.ToolCall, string] {
	return func(yield func(acp.ToolCall, string) bool) {
		for _, call := range m.ToolCalls {
			result := cmp.Or(ToolResult(call), "(no output)")
			if each := max(most/len(m.ToolCalls), 2000); len(result) > each {
				result = strings.ToValidUTF8(result[:each], "") + "\n(cut off)"
			}
			if !yield(call, result) {
				return
			}
		}
	}
}

// ToolResult returns the result of a tool call as text for a model: the raw output if that is a string, otherwise the
// text of the content, and otherwise the raw output as JSON. The result of a failed call begins with "error: ". A call
// that has not ended, because its process was killed, has such a result too, so a conversation in which each call has
// this result is complete, as models require.
func ToolResult(call acp.ToolCall) string {
	var text string
	if len(call.RawOutput) == 0 || json.Unmarshal(call.RawOutput, &text) != nil {
		for _, content := range call.Content {
			if v, ok := content.Variant.(*acp.ToolCallContentContent); ok {
				text += ContentText(v.Content)
			}
		}
		if text == "" {
			text = string(call.RawOutput)
		}
	}
	switch {
	case !ends(call.Status):
		return strings.TrimSuffix("error: the call did not end\n"+text, "\n")
	case call.Status == acp.ToolCallStatusFailed:
		return "error: " + text
	}
	return text
}

// ContentText returns content as text for a model: texts themselves, links to resources, and resources with their URIs
// and texts. A note takes the place of images, audio and binary resources.
func ContentText(content ...acp.ContentBlock) string {
	var all strings.Builder
	for _, block := range content {
		switch v := block.Variant.(type) {
		case *acp.ContentBlockText:
			all.WriteString(v.Text)
			continue
		case *acp.ContentBlockResourceLink:
			fmt.Fprintf(&all, "[%s](%s)", v.Name, v.URI)
			continue
		case *acp.ContentBlockResource:
			if r, is := v.Resource.Variant.(*acp.TextResourceContents); is {
				fmt.Fprintf(&all, "<resource uri=%q>\n%s\n</resource>", r.URI, r.Text)
				continue
			}
		default: // named below
		}
		all.WriteString("(This is not text.)")
	}
	return all.String()
}
