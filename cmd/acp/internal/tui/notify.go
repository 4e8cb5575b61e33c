package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"
)

// Notify says when to ring the terminal's bell: at the end of a turn, at a question, and when the agent has ended.
type Notify string

// The values of Notify.
const (
	NotifyUnfocused Notify = "unfocused" // while the terminal reports that its window does not have the focus
	NotifyAlways    Notify = "always"
	NotifyNever     Notify = "never"
)

// bellPause is the minimum time between two bells: many questions may arrive at once.
const bellPause = time.Second

// notify rings the bell.
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
