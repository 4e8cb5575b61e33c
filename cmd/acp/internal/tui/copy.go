package tui

import (
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/internal/plain"

	tea "charm.land/bubbletea/v2"
)

// message returns the text of the marked message, or of the agent's last one; "" if there is none.
func (c *chat) message() string {
	if c == nil {
		return ""
	}
	if marked := c.draw.Marked(); marked != nil {
		if message, ok := marked.Variant.(*view.Message); ok {
			return message.Text()
		}
		return ""
	}
	for i := c.snapshot.End() - 1; i >= c.snapshot.First(); i-- {
		if item := c.snapshot.Item(i); item != nil {
			if message, ok := item.Variant.(*view.Message); ok && message.Role == view.Agent {
				return message.Text()
			}
		}
	}
	return ""
}

// copyMessage copies a message to the terminal's clipboard, using OSC 52.
func (m *Model) copyMessage() tea.Cmd {
	text := m.chat.message()
	switch {
	case m.plain:
		m.tellHere("There is no screen to copy from: select the text.")
		return nil
	case text == "":
		m.tellHere("There is no message to copy.")
		return nil
	}
	m.tellBriefly(m.here(), "Copied the message, if the terminal allows it.", answerShown)
	return tea.SetClipboard(plain.Screen(text)) // a shell, into which it may be pasted, would obey ESC[201~
}

// toggleMouse leaves the mouse to the terminal, or takes it over again.
func (m *Model) toggleMouse() tea.Cmd {
	m.opts.NoMouse = !m.opts.NoMouse
	text := "The mouse scrolls again."
	if m.opts.NoMouse {
		text = "The mouse selects text; press Alt-R to scroll with it again."
	}
	m.tellBriefly(m.here(), text, answerShown)
	return nil
}
