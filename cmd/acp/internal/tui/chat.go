package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
)

// chat is a session that is open.
type chat struct {
	session     *talk.Session
	id          acp.SessionID
	snapshot    *view.Snapshot
	draw        *transcript
	times       *times
	editor      *editor
	queue       []*prompt  // which wait for the turn's end
	title       string     // that the user gave it
	firstPrompt *view.Item // what the user said first; nil as far as was searched
	searched    *view.Snapshot

	cancel        context.CancelFunc // of the turn in progress; nil if there is none
	cancelled     bool               // the turn in progress
	began         time.Time          // the turn
	unread        bool               // a turn has ended since the chat was shown
	failed        error              // why the last turn has failed
	lastSearch    string             // the text that the user has looked for
	note          string             // the last line for the user
	stop          context.CancelFunc // ends watching
	reconnecting  bool               // the agent was started again, and brings the session back
	resendPending bool               // something was sent meanwhile
}

// prompt is what the user says: as it was typed, and as it is sent.
type prompt struct {
	text   string
	pasted []string
}

// The messages about chats.
type (
	changedMsg struct {
		chat     *chat
		snapshot *view.Snapshot
	}
	turnMsg struct {
		chat *chat
		res  *acp.PromptResponse
		err  error
		// again is what was not sent because the user has to log in.
		again prompt
	}
	openedMsg struct {
		session *talk.Session
		about   string // what was done
		err     error
		again   func(*Model) tea.Cmd // to be tried after a login
	}
	doneMsg struct { // of a call whose answer has nothing but an error
		what  string
		err   error
		again func(*Model) tea.Cmd
		then  func(*Model) tea.Cmd
		call  bool // it is one of Model.call
	}
)

// frame is how often a chat that changes is drawn.
const frame = time.Second / 30

// watch sends snapshots of a chat to the loop.
func (m *Model) watch(c *chat) {
	if !m.tasks.begin() {
		return
	}
	var ctx context.Context
	ctx, c.stop = context.WithCancel(m.tasks.ctx)
	go func() {
		defer m.tasks.running.Done()
		follow(ctx, c.session.State(), func(s *view.Snapshot) { m.send(changedMsg{c, s}) })
	}()
}

// follow passes on snapshots of a conversation: the first change at once, later ones at most once in a frame.
func follow(ctx context.Context, state *view.State, send func(*view.Snapshot)) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for snapshot := range state.Watch(ctx) {
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
		send(snapshot)
		pause.Reset(frame)
	}
}

// open makes a chat of a session that was opened, and shows it.
func (m *Model) open(s *talk.Session) *chat {
	if c := m.chatOf(s.ID()); c != nil { // loaded again
		c.stop()
		c.session = s
		m.watch(c)
		m.show(c)
		return c
	}
	c := &chat{session: s, id: s.ID(), snapshot: s.State().Snapshot(), times: newTimes(m), editor: newEditor(m)}
	c.draw = newTranscript(m, c.times)
	if m.chat == nil { // what was typed while the agent started
		c.editor, c.queue = m.waiting, m.typed
		m.waiting, m.typed = newEditor(m), nil
	}
	c.draw.Update(c.snapshot)
	m.chats = append(m.chats, c)
	m.watch(c)
	m.show(c)
	return c
}

// show shows a chat.
func (m *Model) show(c *chat) {
	m.chat = c
	c.unread = false
	c.draw.Update(c.snapshot)
	m.focused = nil
	for _, q := range m.questions { // they come into view anew: what is typed is not meant for them
		q.drawn = time.Time{}
	}
	m.pending = append(m.pending, m.rearm())
	m.resize()
}

// chatOf is the chat of a session, or nil.
func (m *Model) chatOf(id acp.SessionID) *chat {
	if i := slices.IndexFunc(m.chats, func(c *chat) bool { return c.id == id }); i >= 0 {
		return m.chats[i]
	}
	return nil
}

// forget removes a chat that is closed, and shows another.
func (m *Model) forget(c *chat) tea.Cmd {
	c.stop()
	if c.cancel != nil {
		c.cancel()
		c.cancel = nil // nothing is sent any more
	}
	m.chats = slices.DeleteFunc(m.chats, func(o *chat) bool { return o == c })
	if m.chat != c {
		return nil
	}
	m.chat = nil
	if len(m.chats) > 0 {
		m.show(m.chats[len(m.chats)-1])
		return nil
	}
	return m.newSession()
}

// name is what a chat is called.
func (c *chat) name() string {
	if c.title != "" {
		return clean(c.title)
	}
	if title := c.snapshot.Title.Value(); title != "" {
		return clean(title)
	}
	return cmp.Or(c.firstSaid(), clean(string(c.id)))
}

// firstSaid is the first line of what the user said first, or "". It is a part of each frame: what was searched for it is
// not searched again.
func (c *chat) firstSaid() string {
	since := c.searched
	if !c.snapshot.SameHistory(since) {
		since, c.firstPrompt = nil, nil
	}
	c.searched = c.snapshot
	if c.firstPrompt == nil {
		for item := range c.snapshot.Changed(since) {
			if message, ok := item.Variant.(*view.Message); ok && message.Role == view.User {
				c.firstPrompt = item
				break
			}
		}
	}
	if c.firstPrompt == nil {
		return ""
	}
	if now := c.snapshot.Item(c.firstPrompt.Index); now != nil { // it may go on, and be forgotten
		c.firstPrompt = now
	}
	first, _, _ := strings.Cut(strings.TrimSpace(c.firstPrompt.Variant.(*view.Message).Text()), "\n")
	return clean(first)
}

// say sends a prompt, or lets it wait for the end of the turn.
func (m *Model) say(c *chat, p prompt) tea.Cmd {
	if c.cancel != nil || c.reconnecting || m.connection != connected {
		c.resendPending = c.reconnecting
		c.queue = append(c.queue, &p)
		m.resize()
		return nil
	}
	blocks, err := p.blocks(c.session.Cwd(), m.client.Initialized().AgentCapabilities.PromptCapabilities)
	if err != nil {
		m.tell(c.id, fmt.Sprintf("Not sent: %v", err))
		c.editor.set(p)
		return nil
	}
	var ctx context.Context
	ctx, c.cancel = context.WithCancel(m.tasks.ctx)
	c.cancelled, c.failed, c.unread, c.note, c.began = false, nil, false, "", m.now()
	c.draw.Bottom()
	return tea.Batch(m.tasks.cmd(func(context.Context) tea.Msg {
		res, err := c.session.Prompt(ctx, blocks...)
		return turnMsg{c, res, err, p}
	}), m.tick())
}

// turnEnded takes the end of a turn, and begins the next.
func (m *Model) turnEnded(msg turnMsg) tea.Cmd {
	c := msg.chat
	if c.cancel == nil {
		return nil // the chat is closed
	}
	c.take(c.session.State().Snapshot()) // the end of the turn is drawn with all of it
	c.times.ended(c.snapshot, m.now().Sub(c.began))
	c.cancel()
	c.cancel = nil
	c.draw.Update(c.snapshot)
	c.draw.Tick()
	c.unread = c != m.chat || len(m.layers) > 0
	m.resize()
	if c.note == cancelling {
		c.note = ""
	}
	switch { // the end of the turn is drawn with the conversation
	case errors.Is(msg.err, acp.ErrAuthRequired):
		return m.askLogin(msg.err, func(m *Model) tea.Cmd { return m.say(c, msg.again) })
	case c.cancelled:
	case msg.err != nil:
		c.failed = msg.err
		m.notify()
	default:
		if len(c.queue) == 0 {
			m.notify()
		}
		if cmd := m.renew(); cmd != nil {
			c.resendPending = len(c.queue) > 0
			return cmd
		}
		return m.next(c)
	}
	if len(c.queue) > 0 { // after a failure, and when the user has cancelled, what waits is not sent without being asked for
		m.tell(c.id, "What waits is sent when you press Enter.")
	}
	return m.renew()
}

// next sends the next prompt that waits.
func (m *Model) next(c *chat) tea.Cmd {
	if len(c.queue) == 0 || c.cancel != nil || c.reconnecting || m.connection != connected {
		return nil
	}
	p := c.queue[0]
	c.queue = c.queue[1:]
	m.resize()
	return m.say(c, *p)
}

// cancelling is what is said until the agent has answered.
const cancelling = "Cancelling…"

// cancelTurn cancels the turn of a chat, and reports whether there was one that was not yet cancelled.
func (m *Model) cancelTurn(c *chat) bool {
	if c == nil || c.cancel == nil || c.cancelled {
		return false
	}
	c.cancelled = true
	c.cancel()
	c.note = cancelling
	return true
}
