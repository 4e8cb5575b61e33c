package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/cmd/acp/internal/draw"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
)

// chatState describes a chat in the overview.
func (m *Model) chatState(c *chat) string {
	switch {
	case slices.ContainsFunc(m.questions, func(q *question) bool { return q.session == c.id }):
		return "? asks"
	case c.cancel != nil:
		return "● running"
	case c.failed != nil:
		return "! failed"
	case c.unread:
		return "✓ done"
	}
	return "  idle"
}

// showOverview shows the open sessions.
func (m *Model) showOverview() tea.Cmd {
	p := newPicker("Open sessions", nil, func(m *Model, p *picker, it item) tea.Cmd {
		m.layers = nil
		m.show(it.value.(*chat))
		return nil
	})
	p.letters, p.whole, p.keys = true, true, overviewKeys()
	p.refresh = func(m *Model) []item {
		items := []item{}
		for _, c := range m.chats {
			label := fmt.Sprintf("%-9s  %s", m.chatState(c), c.name())
			about := c.session.Cwd()
			for _, q := range m.questions {
				if q.session == c.id {
					about = q.dialog.title(m)
				}
			}
			items = append(items, item{label: label, about: clean(about), current: c == m.chat, value: c, same: c})
		}
		return items
	}
	p.refreshNow(m)
	m.push(p)
	return nil
}

// refreshNow refreshes the items and selects the current one.
func (p *picker) refreshNow(m *Model) {
	p.list.items = p.refresh(m)
	p.list.match()
}

// onItem returns the action that calls f with the value of the selected item of the list on top.
func onItem[T any](f func(m *Model, p *picker, value T) tea.Cmd) func(*Model) tea.Cmd {
	return func(m *Model) tea.Cmd {
		if p, ok := m.top().(*picker); ok {
			it, _ := p.list.current()
			if value, ok := it.value.(T); ok {
				return f(m, p, value)
			}
		}
		return nil
	}
}

// overviewKeys returns the keys of the list of open sessions.
func overviewKeys() []binding {
	on := func(f func(m *Model, c *chat) tea.Cmd) func(*Model) tea.Cmd {
		return onItem(func(m *Model, _ *picker, c *chat) tea.Cmd { return f(m, c) })
	}
	return []binding{
		{"show", []string{"enter"}, "show the session", nil},
		{"cancel", []string{"c"}, "cancel its turn", on(func(m *Model, c *chat) tea.Cmd { m.cancelTurn(c); return nil })},
		{"new", []string{"n"}, "open a new session", func(m *Model) tea.Cmd { m.layers = nil; return m.newSession() }},
		{"stored", []string{"s"}, "list the agent's stored sessions", (*Model).showStored},
		{"rename", []string{"r"}, "rename the session", on((*Model).renameChat)},
		{"fork", []string{"f"}, "continue in a copy of the session", on((*Model).forkChat)},
		{"export", []string{"e"}, "write the session as Markdown to a file", on((*Model).exportChat)},
		{"close", []string{"x"}, "close the session", on((*Model).closeThis)},
		{"delete", []string{"D"}, "delete the session", on((*Model).deleteThis)},
	}
}

// turnTo shows the next chat.
func (m *Model) turnTo(step int) tea.Cmd {
	if n := len(m.chats); n > 1 {
		at := slices.Index(m.chats, m.chat)
		m.show(m.chats[(at+step+n)%n])
	}
	return m.rearm()
}

// ofChat returns the action that calls f with the visible chat.
func ofChat(f func(m *Model, c *chat) tea.Cmd) func(*Model) tea.Cmd {
	return func(m *Model) tea.Cmd {
		if m.chat == nil {
			m.tell("", "There is no session.")
			return nil
		}
		return f(m, m.chat)
	}
}

// renameChat asks for another title: for the agent if it supports that, otherwise only here.
func (m *Model) renameChat(c *chat) tea.Cmd {
	m.push(newLine("Title of the session", c.name(), func(m *Model, text string) tea.Cmd {
		text = strings.TrimSpace(text)
		c.title = text
		if text == "" || !m.client.Capabilities().SessionCapabilities.Title.Present() {
			return nil
		}
		client := m.client
		return m.call("The agent did not accept the title",
			func(ctx context.Context) error { return client.Rename(ctx, c.id, text) }, nil)
	}))
	return nil
}

// forkChat continues in a copy.
func (m *Model) forkChat(c *chat) tea.Cmd {
	if !m.client.Capabilities().SessionCapabilities.Fork.Present() {
		m.tellHere("The agent cannot fork sessions.")
		return nil
	}
	m.layers = nil
	client := m.client
	return m.tasks.cmd(func(ctx context.Context) tea.Msg {
		s, err := client.Fork(ctx, c.id, &talk.SessionOptions{Cwd: c.session.Cwd()})
		return openedMsg{s, "A copy of " + c.name(), err, nil}
	})
}

// closeThis closes a session; the agent keeps what it has stored.
func (m *Model) closeThis(c *chat) tea.Cmd {
	if c.cancel != nil {
		m.tellHere("A turn is in progress: cancel it first.")
		return nil
	}
	return tea.Batch(m.forget(c), m.call("The session was not closed", func(ctx context.Context) error {
		if err := c.session.Close(ctx); !errors.Is(err, acp.ErrUnsupported) {
			return err
		}
		return nil
	}, nil))
}

// deleteThis deletes a session after asking.
func (m *Model) deleteThis(c *chat) tea.Cmd {
	return m.confirmDelete(c.id, c.name(), func() {})
}

// confirmDelete asks whether to delete a session, which is closed if it is open.
func (m *Model) confirmDelete(id acp.SessionID, name string, then func()) tea.Cmd {
	if !m.client.Capabilities().SessionCapabilities.Delete.Present() {
		m.tellHere("The agent cannot delete sessions.")
		return nil
	}
	p := newPicker("Delete "+name+"?", []item{{label: "keep it", value: false}, {label: "delete it", value: true}},
		func(m *Model, p *picker, it item) tea.Cmd {
			m.pop(p)
			if !it.value.(bool) {
				return nil
			}
			m.cancelTurn(m.chatOf(id)) // so that no queued prompt is sent when its turn ends
			client := m.client
			return m.call("The session was not deleted", func(ctx context.Context) error { return client.Delete(ctx, id) },
				func(m *Model) tea.Cmd {
					then()
					if c := m.chatOf(id); c != nil {
						return m.forget(c)
					}
					return nil
				})
		})
	p.letters = true
	m.push(p)
	return nil
}

// exportChat asks for a file name and writes the session to the file.
func (m *Model) exportChat(c *chat) tea.Cmd {
	name := fmt.Sprintf("session-%s.txt", m.now().Format("20060102-150405"))
	m.push(newLine("Write the session to", filepath.Join(m.opts.Talk.Cwd, name), func(m *Model, path string) tea.Cmd {
		snapshot, client := c.snapshot, m.client
		o := &draw.ExportOptions{
			Title:    c.name(),
			Facts:    []string{"Agent: " + m.agentName(), "Directory: " + clean(c.session.Cwd())},
			Terminal: func(id acp.TerminalID) (draw.Output, bool) { return terminalOutput(client, id) },
		}
		return m.call("Not written", func(context.Context) error {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return err
			}
			return errors.Join(draw.Export(f, snapshot, o), f.Close())
		}, func(m *Model) tea.Cmd {
			m.tellHere("Written to " + path)
			return nil
		})
	}))
	return nil
}

// storedMsg has the stored sessions of the agent.
type storedMsg struct {
	list *picker
	all  []acp.SessionInfo
	err  error
}

// maxStored is how many stored sessions are shown.
const maxStored = 1000

// showStored lists the agent's stored sessions of this directory.
func (m *Model) showStored() tea.Cmd {
	if m.client == nil {
		return nil
	}
	if !m.client.Capabilities().SessionCapabilities.List.Present() {
		m.tellHere("The agent cannot list its sessions.")
		return nil
	}
	return m.listStored(false)
}

func (m *Model) listStored(everywhere bool) tea.Cmd {
	title, cwd := "Stored sessions of "+clean(m.opts.Talk.Cwd), m.opts.Talk.Cwd
	if everywhere {
		title, cwd = "Stored sessions", ""
	}
	p := newPicker(title, []item{{label: "…"}}, func(m *Model, _ *picker, it item) tea.Cmd {
		s, ok := it.value.(acp.SessionInfo)
		if !ok { // they are not listed yet
			return nil
		}
		return m.openThis(s, true)
	})
	p.whole, p.keys = true, storedKeys()
	m.push(p)
	client := m.client
	return m.tasks.cmd(func(ctx context.Context) tea.Msg {
		all, err := listSessions(ctx, client, cwd)
		return storedMsg{p, all, err}
	})
}

// listSessions lists stored sessions, the newest first.
func listSessions(ctx context.Context, client *talk.Client, cwd string) (all []acp.SessionInfo, err error) {
	for s, err := range client.Sessions(ctx, cwd) {
		if err != nil {
			return all, err
		}
		if all = append(all, s); len(all) == maxStored {
			break
		}
	}
	slices.SortStableFunc(all, func(a,
		b acp.SessionInfo) int {
		return cmp.Compare(b.UpdatedAt.Value(), a.UpdatedAt.Value())
	})
	return all, nil
}

// stored handles a list of stored sessions.
func (m *Model) stored(msg storedMsg) {
	if msg.err != nil {
		m.tellHere(fmt.Sprintf("The sessions could not be listed: %v", msg.err))
	}
	var items []item
	for _, s := range msg.all {
		items = append(items, item{
			label:   fmt.Sprintf("%-8s  %s", m.ago(s.UpdatedAt.Value()), m.nameOf(s)),
			about:   clean(s.Cwd),
			current: m.chatOf(s.SessionID) != nil,
			value:   s,
		})
	}
	msg.list.list.items = items
	msg.list.list.match()
	msg.list.list.at = 0
}

// nameOf returns the displayed name of a stored session, which has no title before its first prompt.
func (m *Model) nameOf(s acp.SessionInfo) string {
	if c := m.chatOf(s.SessionID); c != nil {
		return c.name()
	}
	return cmp.Or(clean(s.Title.Value()), "Untitled ("+clean(string(s.SessionID))+")")
}

// ago says how long ago a time was; "" for an invalid time.
func (m *Model) ago(text string) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return ""
	}
	switch d := m.now().Sub(at); {
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	default:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
}

// storedKeys returns the keys of the list of stored sessions.
func storedKeys() []binding {
	return []binding{
		{"open", []string{"enter"}, "open it, with its history if the agent can do that", nil},
		{"open without history", []string{"ctrl+o"}, "open it without its history",
			onItem(func(m *Model, _ *picker, s acp.SessionInfo) tea.Cmd { return m.openThis(s, false) })},
		{"delete", []string{"ctrl+x"}, "delete it", onItem(func(m *Model, p *picker, s acp.SessionInfo) tea.Cmd {
			return m.confirmDelete(s.SessionID, m.nameOf(s), func() {
				p.list.items = slices.DeleteFunc(p.list.items, func(o item) bool {
					other, ok := o.value.(acp.SessionInfo)
					return ok && other.SessionID == s.SessionID
				})
				p.list.match()
			})
		})},
		{"all directories", []string{"ctrl+a"}, "list those of all directories", func(m *Model) tea.Cmd {
			if p, ok := m.top().(*picker); ok {
				m.pop(p)
			}
			return m.listStored(true)
		}},
	}
}

// openThis opens a session of the list.
func (m *Model) openThis(s acp.SessionInfo, history bool) tea.Cmd {
	m.layers = nil
	if c := m.chatOf(s.SessionID); c != nil {
		m.show(c)
		return nil
	}
	return m.openStored(s.SessionID, s.Cwd, history)
}

// storedOpenedMsg is a stored session that was opened.
type storedOpenedMsg struct {
	id acp.SessionID
	openedMsg
}

// openStored opens a stored session. That may take long, so it does not open the same one twice.
func (m *Model) openStored(id acp.SessionID, cwd string, history bool) tea.Cmd {
	m.tellHere("Opening the session…")
	if m.opening[id] {
		return nil
	}
	m.opening[id] = true
	client := m.client
	return m.tasks.cmd(func(ctx context.Context) tea.Msg {
		s, about, err := openSession(ctx, client, id, cwd, history)
		again := func(m *Model) tea.Cmd { return m.openStored(id, cwd, history) }
		return storedOpenedMsg{id, openedMsg{s, about, err, again}}
	})
}

// openSession opens a session, with its history if that is wanted and the agent can load it.
func openSession(ctx context.Context, client *talk.Client, id acp.SessionID, cwd string, history bool) (*talk.Session,
	string, error) {
	o := &talk.SessionOptions{Cwd: cwd}
	can := client.Capabilities()
	load, resume := can.LoadSession, can.SessionCapabilities.Resume.Present()
	switch {
	case load && (history || !resume):
		s, err := client.Load(ctx, id, o)
		return s, "", err
	case resume:
		s, err := client.Resume(ctx, id, o)
		return s, "The session continues. The earlier conversation is not shown.", err
	}
	return nil, "", errors.New("the agent cannot open stored sessions")
}

// shownMsg shows a chat that is open.
type shownMsg struct{ chat *chat }

// continueLast shows or opens the last session of this directory, or a new one if there is none.
func (m *Model) continueLast() tea.Cmd {
	if m.client == nil {
		return nil
	}
	cwd, client := m.opts.Talk.Cwd, m.client
	open := map[acp.SessionID]*chat{}
	for _, c := range m.chats {
		open[c.id] = c
	}
	return m.tasks.cmd(func(ctx context.Context) tea.Msg {
		all, err := listSessions(ctx, client, cwd)
		if err == nil && len(all) > 0 {
			if c := open[all[0].SessionID]; c != nil { // a turn may be running in it
				return shownMsg{c}
			}
			s, about, err := openSession(ctx, client, all[0].SessionID, all[0].Cwd, true)
			return openedMsg{s, about, err, (*Model).continueLast}
		}
		if err != nil && !errors.Is(err, acp.ErrUnsupported) {
			return openedMsg{nil, "", err, (*Model).continueLast}
		}
		s, err := m.setUp(ctx)(client.NewSession(ctx, nil))
		return openedMsg{s, "This directory has no session to continue: this is a new one.", err, (*Model).continueLast}
	})
}

// unqueue moves the last queued prompt back to the editor.
func (m *Model) unqueue(c *chat) tea.Cmd {
	last := len(c.queue) - 1
	if last < 0 {
		m.tellHere("No prompts are queued.")
		return nil
	}
	if !c.editor.empty() { // what has been typed must not be lost
		m.history.add(c.editor.take())
	}
	c.editor.set(*c.queue[last])
	c.queue = c.queue[:last]
	m.resize()
	return nil
}
