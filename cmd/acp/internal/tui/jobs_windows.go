package tui

// Windows has no job control: the functions here do nothing.

import tea "charm.land/bubbletea/v2"

type jobs struct{}

func (m *Model) watchJobs() (stop func()) { return func() {} }

func (m *Model) suspend() tea.Cmd {
	m.tellHere("Programs cannot be suspended on Windows.")
	return nil
}

func (m *Model) retake() tea.Cmd { return nil }
