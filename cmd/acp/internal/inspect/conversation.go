package inspect

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/cmd/acp/internal/show"
	"github.com/acpgo/sdk/conformance"
)

// conversations is what a user would see of the sessions of a connection, in version 1 of the protocol; see translated.
type conversations struct {
	sessions map[string]*conversation
	order    []*conversation
	open     map[int]func(*show.Message) // by the number of a request: what its response does
}

// conversation is the view of one session.
type conversation struct {
	session string
	state   *view.State
	turns   []*view.Turn   // in progress
	sent    *view.Snapshot // what the log has
	dirty   bool
}

// The limits of the views.
const (
	maxSessions = 64
	maxAsked    = 1000
	maxItemText = 64 << 10 // bytes of a text in an event
	planIndex   = 1 << 30  // the index of a session's plan, after all others
)

var viewOptions = view.Options{MaxItems: 20_000, MaxBytes: 8 << 20, MaxMessageBytes: 1 << 20}

func (c *conversations) of(session string) *conversation {
	if known := c.sessions[session]; known != nil {
		return known
	}
	if len(c.order) >= maxSessions {
		return nil
	}
	if c.sessions == nil {
		c.sessions = map[string]*conversation{}
	}
	added := &conversation{session: session, state: view.New(&viewOptions)}
	c.sessions[session], c.order = added, append(c.order, added)
	return added
}

// add notes a message. A message that is not valid changes nothing: the judge reports it.
func (c *conversations) add(m *show.Message) {
	if m.Kind == conformance.Response || m.Kind == conformance.ErrorReply {
		if answered := c.open[m.Re]; answered != nil {
			delete(c.open, m.Re)
			answered(m)
		}
		return
	}
	if m.Session == "" {
		return
	}
	switch {
	case m.Method == "session/update" && m.Kind == conformance.Notification:
		var n acp.SessionNotification
		if json.Unmarshal(m.Content, &n) != nil {
			return
		}
		if on := c.of(m.Session); on != nil {
			on.state.Update(n.Update)
			on.dirty = true
		}
	case m.Method == "session/prompt" && m.Kind == conformance.Request:
		var req acp.PromptRequest
		on := c.of(m.Session)
		if on == nil || json.Unmarshal(m.Content, &req) != nil {
			return
		}
		turn := on.state.Prompt(req.Prompt...)
		on.turns, on.dirty = append(on.turns, turn), true
		c.await(m, func(answer *show.Message) {
			on.dirty = true
			on.turns = slices.DeleteFunc(on.turns, func(t *view.Turn) bool { return t == turn })
			res, err := answered[acp.PromptResponse](answer)
			turn.End(res, err)
		})
	case m.Method == "session/cancel" && m.Kind == conformance.Notification:
		if on := c.of(m.Session); on != nil {
			for _, turn := range on.turns {
				turn.Cancel()
			}
			on.dirty = true
		}
	case m.Method == "session/request_permission" && m.Kind == conformance.Request:
		var req acp.RequestPermissionRequest
		on := c.of(m.Session)
		if on == nil || json.Unmarshal(m.Content, &req) != nil {
			return
		}
		done := on.state.BeginPermission(&req)
		on.dirty = true
		c.await(m, func(answer *show.Message) {
			on.dirty = true
			res, err := answered[acp.RequestPermissionResponse](answer)
			if err != nil {
				res = nil
			}
			done(res)
		})
	}
}

// await notes what the response to a request does.
func (c *conversations) await(m *show.Message, do func(*show.Message)) {
	if c.open == nil {
		c.open = map[int]func(*show.Message){}
	}
	if len(c.open) < maxAsked {
		c.open[m.Number] = do
	}
}

// answered returns the result in a response, or its error.
func answered[R any](m *show.Message) (*R, error) {
	if m.Kind == conformance.ErrorReply {
		failed := new(rpc.Error)
		if err := json.Unmarshal(m.Content, failed); err != nil {
			return nil, err
		}
		return nil, failed
	}
	res := new(R)
	return res, json.Unmarshal(m.Content, res)
}

// changes passes on what has changed since the last call.
func (c *conversations) changes(source string, to func(*itemEvent)) {
	for _, on := range c.order {
		if !on.dirty {
			continue
		}
		on.dirty = false
		now := on.state.Snapshot()
		for item := range now.Changed(on.sent) {
			event := newItemEvent(item, on.sent)
			event.Source, event.Session = source, on.session
			to(event)
		}
		if text := planText(now); text != planText(on.sent) {
			to(&itemEvent{Is: "item", Source: source, Session: on.session, Index: planIndex, Kind: "plan", Text: text})
		}
		on.sent = now
	}
}

// newItemEvent describes an item. If the log has the beginning of its text, it describes the rest.
func newItemEvent(item *view.Item, sent *view.Snapshot) *itemEvent {
	e := &itemEvent{Is: "item", Index: item.Index, Turn: item.Turn}
	switch v := item.Variant.(type) {
	case *view.Message:
		e.Kind = v.Role.String()
		if sent != nil && sent.Item(item.Index) != nil {
			if added, ok := item.Added(sent); ok {
				e.Append = added
				return e
			}
			e.Text = clip(blocksText(v.Content), maxItemText)
			return e
		}
		e.Text = blocksText(v.Content)
	case *view.ToolCall:
		e.Kind, e.Title, e.Status = "tool", v.Call.Title, string(v.Call.Status)
		switch {
		case v.Cancelled:
			e.Status = "cancelled"
		case v.Unfinished:
			e.Status = "unfinished"
		}
		e.Text = clip(item.String(), maxItemText)
		if v.Permission != nil {
			e.Text += "\n" + permissionText(v.Permission)
		}
	case *view.Compaction:
		e.Kind, e.Status, e.Text = "compaction", string(v.Status), clip(v.Summary.Text(), maxItemText)
	case *view.Subagent:
		e.Kind, e.Title, e.Text = "subagent", v.Title.Value(), clip(item.String(), maxItemText)
	case *view.SessionMessage:
		e.Kind, e.Text = "message", clip(v.Text(), maxItemText)
	case *view.Notice:
		e.Kind, e.Title, e.Text = "notice", v.Title, v.Description.Value()
	default:
		e.Kind, e.Text = "unknown", clip(item.String(), maxItemText)
	}
	return e
}

// blocksText returns content as text, with other blocks named.
func blocksText(content view.Content) string {
	var b strings.Builder
	for block := range content.Blocks() {
		if text, ok := block.Variant.(*acp.ContentBlockText); ok {
			b.WriteString(text.Text)
		} else {
			fmt.Fprintf(&b, "[%s]", strings.TrimPrefix(fmt.Sprintf("%T", block.Variant), "*acp.ContentBlock"))
		}
	}
	return b.String()
}

func permissionText(p *view.Permission) string {
	if p.Outcome.IsNull() {
		return "permission: not answered"
	}
	if !p.Outcome.Present() {
		return "permission: asked"
	}
	chosen, ok := p.Outcome.Value().Selected()
	if !ok {
		return "permission: cancelled"
	}
	for _, option := range p.Options {
		if option.OptionID == chosen {
			return "permission: " + option.Name
		}
	}
	return "permission: " + string(chosen)
}

// planText returns the plan as text.
func planText(s *view.Snapshot) string {
	if s == nil {
		return ""
	}
	plan := s.Plan.Value()
	var b strings.Builder
	for _, entry := range plan.Entries {
		fmt.Fprintf(&b, "[%s] %s\n", entry.Status, entry.Content)
	}
	return b.String()
}

// clip bounds a text, in bytes.
func clip(text string, most int) string {
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
