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

// chat is an open session.
type chat struct {
	session     *talk.Session
	id          acp.SessionID
	snapshot    *view.Snapshot
	draw        *transcript
	times       *times
	editor      *editor
	queue       []*prompt  // prompts that wait for the end of the turn
	title       string     // given by the user
	firstPrompt *view.Item // the first prompt of the user; nil if there is none up to searched
	searched    *view.Snapshot

	cancel        context.CancelFunc // of the turn in progress; nil if there is none
	cancelled     bool               // whether the turn in progress was cancelled
	began         time.Time          // when the turn began
	unread        bool               // a turn has ended since the chat was shown
	failed        error              // why the last turn failed
	lastSearch    string             // the text that the user searched for last
	note          string             // the last line for the user
	stop          context.CancelFunc // stops watching
	reconnecting  bool               // the agent was restarted and is restoring the session
	resendPending bool               // a prompt was sent meanwhile
}

// prompt is a prompt as typed and as sent.
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
		// again is a prompt that was not sent because the user has to log in.
		again prompt
	}
	openedMsg struct {
		session *talk.Session
		about   string // what was done
		err     error
		again   func(*Model) tea.Cmd // retried after a login
	}
	doneMsg struct { // the end of a call whose response contains only an error
		what  string
		err   error
		again func(*Model) tea.Cmd
		then  func(*Model) tea.Cmd
		call  bool // whether Model.call made it
	}
)

// frame is the time between two drawings of a chat that changes.
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

// follow passes on snapshots of a conversation: the first change at once, later ones at most once per frame.
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

// open creates the chat of an opened session and shows it.
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
	if m.chat == nil { // typed while the agent was starting
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
	for _, q := range m.questions { // they have just come into view: keys typed before are not meant for them
		q.drawn = time.Time{}
	}
	m.pending = append(m.pending, m.rearm())
	m.resize()
}

// chatOf returns the chat of a session, or nil.
func (m *Model) chatOf(id acp.SessionID) *chat {
	if i := slices.IndexFunc(m.chats, func(c *chat) bool { return c.id == id }); i >= 0 {
		return m.chats[i]
	}
	return nil
}

// forget removes a closed chat and shows another.
func (m *Model) forget(c *chat) tea.Cmd {
	c.stop()
	if c.cancel != nil {
		c.cancel()
		c.cancel = nil // nothing is sent anymore
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

// name returns the displayed name of a chat.
func (c *chat) name() string {
	if c.title != "" {
		return clean(c.title)
	}
	if title := c.snapshot.Title.Value(); title != "" {
		return clean(title)
	}
	return cmp.Or(c.firstSaid(), "New session")
}

// firstSaid returns the first line of the user's first prompt, or "". It is called for each frame, so it does not
// search items again.
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
	if now := c.snapshot.Item(c.firstPrompt.Index); now != nil { // it may have grown, or have been dropped
		c.firstPrompt = now
	}
	first, _, _ := strings.Cut(strings.TrimSpace(c.firstPrompt.Variant.(*view.Message).Text()), "\n")
	return clean(first)
}

// say sends a prompt, or queues it until the end of the turn.
func (m *Model) say(c *chat, p prompt) tea.Cmd {
	if c.cancel != nil || c.reconnecting || m.connection != connected {
		c.resendPending = c.reconnecting || m.connection == connecting
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

// turnEnded handles the end of a turn and begins the next one.
func (m *Model) turnEnded(msg turnMsg) tea.Cmd {
	c := msg.chat
	if c.cancel == nil {
		return nil // the chat has been closed
	}
	c.take(c.session.State().Snapshot()) // the end of the turn is drawn with all of its content
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
	if len(c.queue) > 0 { // after a failure or cancellation, queued prompts are not sent automatically
		m.tell(c.id, "Press Enter to send the queued prompts.")
	}
	return m.renew()
}

// next sends the next queued prompt.
func (m *Model) next(c *chat) tea.Cmd {
	if len(c.queue) == 0 || c.cancel != nil || c.reconnecting || m.connection != connected {
		return nil
	}
	p := c.queue[0]
	c.queue = c.queue[1:]
	m.resize()
	return m.say(c, *p)
}

// cancelling is shown until the agent has responded.
const cancelling = "Cancelling…"

// cancelTurn cancels the turn of a chat, and reports whether there was one that had not been cancelled yet.
func (m *Model) cancelTurn(c *chat) bool {
	if c == nil || c.cancel == nil || c.cancelled {
		return false
	}
	c.cancelled = true
	c.cancel()
	c.note = cancelling
	return true
}
