package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/internal/plain"
)

// Item is one thing in the conversation. It is immutable: when it changes, later snapshots have another Item with the
// same Index.
type Item struct {
	// Index is the item's position in the conversation, from 0. It stays the same when older items are dropped.
	Index int
	// Turn is the number of the turn that the item belongs to; 0 means before the first.
	Turn int
	// Version is the version of the State when the item was last changed.
	Version uint64
	// Variant is the item itself.
	Variant ItemVariant

	epoch uint64 // the epoch that may change it
	size  int
}

// ItemVariant is implemented only by the variants of [Item]: *Message, *ToolCall, *Compaction, *Subagent,
// *SessionMessage, *Notice or *Unknown.
type ItemVariant interface {
	clone() ItemVariant
	bytes() int
}

// Role is the author of a Message.
type Role int

// The roles.
const (
	User    Role = iota + 1 // a user message
	Agent                   // an agent message
	Thought                 // an agent thought
)

var roleNames = [...]string{"", "user", "agent", "thought"}

// String returns the role as one word.
func (r Role) String() string {
	if r > 0 && int(r) < len(roleNames) {
		return roleNames[r]
	}
	return "unknown"
}

// Message is a message of the user or the agent, or a thought. Chunks with one message id are one message, wherever
// they arrive. A chunk without an id continues the message before it if that has the same role and no plan and no other
// item came between them; notices and unknown updates do not count.
type Message struct {
	Content
	Role Role
	// ID is the message's id, or "" if the agent gave none.
	ID acp.MessageID
	// Sent reports whether this client sent the message: see [State.Prompt].
	Sent bool
	// Meta is the _meta of the last chunk that had one.
	Meta acp.Meta
}

// ToolCall holds what is known about a tool call so far.
type ToolCall struct {
	// Call is the tool call with all its updates applied. Members that are absent or null in an update leave it
	// unchanged.
	Call acp.ToolCall
	// Announced reports whether it began with a tool_call update. Some agents send only updates of a tool call, or a
	// request for permission.
	Announced bool
	// Cancelled reports whether its turn was cancelled before it completed or failed, and it has done neither since.
	Cancelled bool
	// Unfinished reports whether its turn ended before it completed or failed, and it has done neither since.
	Unfinished bool
	// Permission is the last permission request for it, or nil.
	Permission *Permission

	content int // size of Call.Content and Call.Locations in bytes
}

// Permission is a permission request.
type Permission struct {
	// Options are the options that the user may choose from.
	Options []acp.PermissionOption
	// Outcome is the answer; absent while the request waits for its answer, null if the request failed.
	Outcome acp.Opt[acp.RequestPermissionOutcome]
}

// Compaction reports that the agent has compacted its context, or is doing so. Its position is where it was first
// reported.
type Compaction struct {
	ID      acp.CompactionID
	Status  acp.CompactionStatus
	Summary Content
	// Error is null if an update cleared it.
	Error acp.Opt[string]
	Meta  acp.Meta
}

// Subagent is a session that the agent has created for a part of its work. Its position is where it was first reported.
// Each member has the value of the last update that contained it; null means that it was cleared. The messages of the
// subagent arrive as updates of its own session.
//
// Experimental: any minor release may change or remove it. It needs [acp.FeatureSubagents].
type Subagent acp.SubagentUpdate

// SessionMessage is a message between this session and another, for example one of a subagent. Its position is where it
// was first reported. Each reference has the value of the last update that contained it; null means that it was
// cleared.
//
// Experimental: any minor release may change or remove it. It needs [acp.FeatureSubagents].
type SessionMessage struct {
	Content
	ID                              acp.MessageID
	Sender, Recipient               acp.Opt[acp.SessionID]
	SenderMessage, RecipientMessage acp.Opt[acp.MessageID]
	Meta                            acp.Meta
}

// Notice is information for the user that is not part of the conversation: it is not replayed when the session is
// loaded.
type Notice acp.Notice

// Unknown is an update of a kind that package acp does not know.
type Unknown struct {
	// Tag is the update's kind.
	Tag string
	// Raw is the unchanged update.
	Raw []byte
}

func (m *Message) clone() ItemVariant        { c := *m; return &c }
func (c *ToolCall) clone() ItemVariant       { d := *c; return &d }
func (c *Compaction) clone() ItemVariant     { d := *c; return &d }
func (s *Subagent) clone() ItemVariant       { c := *s; return &c }
func (m *SessionMessage) clone() ItemVariant { c := *m; return &c }
func (n *Notice) clone() ItemVariant         { return n }
func (u *Unknown) clone() ItemVariant        { return u }

func (m *Message) bytes() int { return overhead + len(m.ID) + m.size + metaSize(m.Meta) }
func (c *Compaction) bytes() int {
	return overhead + len(c.ID) + len(c.Status) + c.Summary.size + len(c.Error.Value()) + metaSize(c.Meta)
}
func (m *SessionMessage) bytes() int {
	return overhead + len(m.ID) + len(m.Sender.Value()) + len(m.Recipient.Value()) + len(m.SenderMessage.Value()) +
		len(m.RecipientMessage.Value()) + m.size + metaSize(m.Meta)
}
func (n *Notice) bytes() int {
	return overhead + len(n.Severity) + len(n.Title) + len(n.Description.Value()) + metaSize(n.Meta)
}
func (u *Unknown) bytes() int { return overhead + len(u.Tag) + len(u.Raw) }

func (s *Subagent) bytes() int {
	size := overhead + len(s.SessionID) + len(s.Title.Value()) + len(s.Description.Value()) + len(
		s.Cwd.Value()) + metaSize(s.Meta)
	for _, dir := range s.AdditionalDirectories.Value() {
		size += len(dir) + 16
	}
	return size
}

func (c *ToolCall) bytes() int {
	return 2*overhead + len(c.Call.ToolCallID) + len(c.Call.Name.Value()) + len(c.Call.Kind) + len(c.Call.Status) + len(
		c.Call.Title) +
		len(c.Call.RawInput) + len(c.Call.RawOutput) + metaSize(c.Call.Meta) + c.content
}

// measure records the size of the call's content after it has been replaced.
func (c *ToolCall) measure() {
	c.content = 0
	for _, content := range c.Call.Content {
		c.content += overhead
		switch v := content.Variant.(type) {
		case *acp.ToolCallContentContent:
			c.content += blockSize(v.Content) + metaSize(v.Meta)
		case *acp.ToolCallContentDiff:
			c.content += len(v.Path) + len(v.OldText.Value()) + len(v.NewText) + metaSize(v.Meta)
		default:
			c.content += jsonSize(content)
		}
	}
	for _, location := range c.Call.Locations {
		c.content += overhead + len(location.Path) + metaSize(location.Meta)
	}
}

// finished reports whether the call has come to its end.
func (c *ToolCall) finished() bool {
	return c.Call.Status == acp.ToolCallStatusCompleted || c.Call.Status == acp.ToolCallStatusFailed
}

// String returns the item as text for people, with the agent's words unchanged. Use [Printable] before showing it in a
// terminal.
func (i *Item) String() string {
	switch v := i.Variant.(type) {
	case *Message:
		return v.Role.String() + ": " + v.Text()
	case *ToolCall:
		return v.text()
	case *Compaction:
		return fmt.Sprintf("context compaction: %s %s%s", v.Status, v.Error.Value(), v.Summary.Text())
	case *Subagent:
		return fmt.Sprintf("subagent %s: %s", v.SessionID, v.Title.Value())
	case *SessionMessage:
		return fmt.Sprintf("message from %s to %s: %s", v.Sender.Value(), v.Recipient.Value(), v.Text())
	case *Notice:
		text := fmt.Sprintf("%s: %s", v.Severity, v.Title)
		if about := v.Description.Value(); about != "" {
			text += ": " + about
		}
		return text
	case *Unknown:
		return "update of the unknown kind " + v.Tag
	}
	return ""
}

// text returns everything that a user may want to know before permitting the tool call, and its results.
func (c *ToolCall) text() string { return strings.Join(c.parts(), "\n") }

// added returns the text that is new since before: the first line, if it or anything else changed, and the parts that
// are new or were extended.
func (c *ToolCall) added(before *ToolCall) string {
	parts, old := c.parts(), before.parts()
	lines := parts[:1:1]
	for i, part := range parts[1:] {
		if slices.Contains(old, part) {
			continue
		}
		if i+1 < len(old) && len(old[i+1]) > 0 && strings.HasPrefix(part, old[i+1]+"\n") {
			part = part[len(old[i+1])+1:]
		}
		lines = append(lines, part)
	}
	if len(lines) == 1 && lines[0] == old[0] {
		return ""
	}
	return strings.Join(lines, "\n")
}

// parts returns the text in parts: the first line, and then one for each thing that is known of the call.
func (c *ToolCall) parts() []string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	status := string(c.Call.Status)
	if c.Cancelled {
		status += ", cancelled"
	} else if c.Unfinished {
		status += ", unfinished"
	}
	add("%s (%s): %s", indented(cmp.Or(c.Call.Title, string(c.Call.ToolCallID))), cmp.Or(c.Call.Kind, acp.ToolKindOther),
		status)
	for _, location := range c.Call.Locations {
		add("  at %s", indented(location.Path))
	}
	if c.Call.RawInput != nil {
		add("  input %s", plain.JSON(c.Call.RawInput))
	}
	for _, content := range c.Call.Content {
		switch v := content.Variant.(type) {
		case *acp.ToolCallContentContent:
			if text, ok := v.Content.Variant.(*acp.ContentBlockText); ok {
				add("  %s", indented(text.Text))
			} else {
				add("  content that is not text")
			}
		case *acp.ToolCallContentDiff:
			lines := append([]string{"  --- " + indented(v.Path)}, diffLines(v.OldText.Value(), v.NewText)...)
			add("%s", strings.Join(lines, "\n  "))
		case *acp.ToolCallContentTerminal:
			add("  terminal %s", v.TerminalID)
		default:
			add("  content of an unknown kind")
		}
	}
	return parts
}

// indented indents all lines but the first.
func indented(text string) string { return strings.ReplaceAll(text, "\n", "\n  ") }
