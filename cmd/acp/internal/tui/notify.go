package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"
)

// Notify says when the terminal's bell rings: at the end of a turn, at a question, and when the agent has ended.
type Notify string

// The values of Notify.
const (
	NotifyUnfocused Notify = "unfocused" // while the terminal says that its window has not the focus
	NotifyAlways    Notify = "always"
	NotifyNever     Notify = "never"
)

// bellPause is the least time between two bells: many questions may come at once.
const bellPause = time.Second

// notify calls the user.
func (m *Model) notify() {
	now := m.now()
	switch m.opts.Notify {
	case NotifyAlways:
	case NotifyUnfocused:
		if !m.unfocused {
			return
		}
	default:
		return
	}
	if !m.lastBell.IsZero() && now.Sub(m.lastBell) < bellPause {
		return
	}
	m.lastBell = now
	if m.plain {
		m.bell()
		return
	}
	m.pending = append(m.pending, tea.Raw("\a"))
}
