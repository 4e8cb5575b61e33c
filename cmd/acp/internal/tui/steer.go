package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/acpgo/sdk/cmd/acp/internal/talk"
)

// steeredMsg says what the agent did with a prompt for the running turn.
type steeredMsg struct {
	chat    *chat
	prompt  prompt
	outcome talk.Steered
	err     error
}

// steer sends what is typed into the running turn.
func (m *Model) steer() tea.Cmd {
	c := m.chat
	if c == nil || c.cancel == nil || c.cancelled || strings.TrimSpace(c.editor.area.Value()) == "" {
		return m.submit()
	}
	p := c.editor.take()
	m.resize()
	return tea.Batch(m.keep(p), m.sayInto(c, p))
}

// sayInto sends a prompt into the turn of a chat. If that is not possible, the prompt becomes the first in the queue.
func (m *Model) sayInto(c *chat, p prompt) tea.Cmd {
	wait := func(why string) tea.Cmd {
		c.queue = slices.Insert(c.queue, 0, &p)
		m.tell(c.id, why)
		return nil
	}
	if m.connection != connected || !m.client.CanSteer() {
		return wait("The agent does not accept prompts in a running turn: queued until the end of the turn.")
	}
	blocks, err := p.blocks(c.session.Cwd(), m.client.Initialized().AgentCapabilities.PromptCapabilities)
	if err != nil {
		return wait(fmt.Sprintf("Not sent: %v", err))
	}
	return m.tasks.cmd(func(ctx context.Context) tea.Msg {
		outcome, err := c.session.Steer(ctx, blocks...)
		return steeredMsg{c, p, outcome, err}
	})
}

// steered handles the agent's response.
func (m *Model) steered(msg steeredMsg) tea.Cmd {
	c := msg.chat
	if m.chatOf(c.id) != c {
		return nil
	}
	switch {
	case msg.err == nil && msg.outcome == talk.SteeredIn:
		m.tell(c.id, "Sent into the turn: "+msg.prompt.text)
		return nil
	case msg.err == nil && msg.outcome == talk.SteeredAnew:
		m.tell(c.id, "The turn was over, and a new one has begun: "+msg.prompt.text)
		return nil
	}
	c.queue = slices.Insert(c.queue, 0, &msg.prompt)
	switch {
	case msg.err != nil:
		m.tell(c.id, fmt.Sprintf("Not sent into the turn; queued until its end: %v", msg.err))
	case msg.outcome != talk.SteeredLate:
		m.tell(c.id, "Not sent into the turn; queued until its end. The agent says: "+string(msg.outcome))
	}
	m.resize()
	if c.failed != nil || c.cancelled { // then queued prompts are not sent automatically
		return nil
	}
	return m.next(c)
}
