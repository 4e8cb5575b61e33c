package tui

import (
	"context"
	"sync"

	tea "charm.land/bubbletea/v2"
)

// tasks are the goroutines that run next to the loop. They all end with end.
type tasks struct {
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	ended   bool
	running sync.WaitGroup
}

func newTasks(ctx context.Context) *tasks {
	t := &tasks{}
	t.ctx, t.cancel = context.WithCancel(ctx)
	return t
}

// begin reports whether a task may begin. The task must call running.Done when it ends.
func (t *tasks) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.running.Add(1)
	}
	return !t.ended
}

// end ends all tasks and waits for them.
func (t *tasks) end() {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	t.cancel()
	t.running.Wait()
}

// cmd returns a command of the loop that runs as a task.
func (t *tasks) cmd(f func(ctx context.Context) tea.Msg) tea.Cmd {
	return func() tea.Msg {
		if !t.begin() {
			return nil
		}
		defer t.running.Done()
		return f(t.ctx)
	}
}
