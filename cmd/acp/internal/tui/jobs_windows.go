package tui

import tea "charm.land/bubbletea/v2"

// suspend says that Windows has no job control.
func (m *Model) suspend() tea.Cmd {
	m.tellHere("Programs cannot be suspended on Windows.")
	return nil
}
