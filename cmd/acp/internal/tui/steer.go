package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/acpgo/sdk/cmd/acp/internal/talk"
)

// steeredMsg is what the agent has done with a prompt for the turn that runs.
type steeredMsg struct {
	chat    *chat
	prompt  prompt
	outcome talk.Steered
	err     error
}

// steer says what is typed into the turn that runs.
func (m *Model) steer() tea.Cmd {
	c := m.chat
	if c == nil || c.cancel == nil || c.cancelled || strings.TrimSpace(c.editor.area.Value()) == "" {
		return m.submit()
	}
	p := c.editor.take()
	m.resize()
	return tea.Batch(m.keep(p), m.sayInto(c, p))
}

// sayInto says a prompt into the turn of a chat. If that cannot be, it waits as the first one for the turn's end.
func (m *Model) sayInto(c *chat, p prompt) tea.Cmd {
	wait := func(why string) tea.Cmd {
		c.queue = slices.Insert(c.queue, 0, &p)
		m.tell(c.id, why)
		return nil
	}
	if m.connection != connected || !m.client.CanSteer() {
		return wait("The agent takes nothing into a running turn: it waits for the end.")
	}
	blocks, err := p.blocks(c.session.Cwd(), m.client.Initialized().AgentCapabilities.PromptCapabilities)
	if err != nil {
		return wait(fmt.Sprintf("Not said: %v", err))
	}
	return m.tasks.cmd(func(ctx context.Context) tea.Msg {
		outcome, err := c.session.Steer(ctx, blocks...)
		return steeredMsg{c, p, outcome, err}
	})
}

// steered takes what the agent has done with it.
func (m *Model) steered(msg steeredMsg) tea.Cmd {
	c := msg.chat
	if m.chatOf(c.id) != c {
		return nil
	}
	switch {
	case msg.err == nil && msg.outcome == talk.SteeredIn:
		m.tell(c.id, "Said in the turn: "+msg.prompt.text)
		return nil
	case msg.err == nil && msg.outcome == talk.SteeredAnew:
		m.tell(c.id, "The turn was over, and another one has begun: "+msg.prompt.text)
		return nil
	}
	c.queue = slices.Insert(c.queue, 0, &msg.prompt)
	switch {
	case msg.err != nil:
		m.tell(c.id, fmt.Sprintf("Not said in the turn, it waits for the end: %v", msg.err))
	case msg.outcome != talk.SteeredLate:
		m.tell(c.id, "Not said in the turn, it waits for the end: the agent says: "+string(msg.outcome))
	}
	m.resize()
	if c.failed != nil || c.cancelled { // then nothing is sent without being asked for
		return nil
	}
	return m.next(c)
}
