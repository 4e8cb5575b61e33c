package tui

import (
	"io"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// releaser is a program that runs a command while the terminal is released.
type releaser struct {
	t    *testing.T
	runs bool
}

func (r *releaser) Init() tea.Cmd {
	if !rendering() {
		r.t.Error("the goroutine of the renderer is not found")
	}
	return tea.Exec(released{r}, func(error) tea.Msg { return tea.QuitMsg{} })
}

func (r *releaser) Update(tea.Msg) (tea.Model, tea.Cmd) { return r, nil }
func (r *releaser) View() tea.View                      { return tea.NewView("") }
func (r *releaser) SetStdin(io.Reader)                  {}
func (r *releaser) SetStdout(io.Writer)                 {}
func (r *releaser) SetStderr(io.Writer)                 {}

func (r *releaser) Run() error {
	r.runs = true
	if rendering() {
		r.t.Error("the renderer has not stopped")
	}
	return nil
}

// A command for the released terminal begins when the renderer has stopped.
func TestReleased(t *testing.T) {
	r := &releaser{t: t}
	if _, err := tea.NewProgram(r, tea.WithInput(nil), tea.WithOutput(io.Discard)).Run(); err != nil || !r.runs {
		t.Errorf("%v, run: %v", err, r.runs)
	}
}
