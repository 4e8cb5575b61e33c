package tui

import tea "charm.land/bubbletea/v2"

// suspension says that Windows has no job control.
func suspension(bool) (tea.Cmd, string) { return nil, "Programs cannot be suspended on Windows." }
