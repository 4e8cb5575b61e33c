package tui

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/cmd/acp/internal/draw"
)

// subagentLayer shows a subagent at work.
type subagentLayer struct {
	id       acp.SessionID
	of       *view.Subagent
	state    *view.State
	snapshot *view.Snapshot
	draw     *transcript
	stop     context.CancelFunc // stops watching
}

// subagentMsg is a newer snapshot of a subagent.
type subagentMsg struct {
	layer    *subagentLayer
	snapshot *view.Snapshot
}

// lastSubagent returns the selected subagent of a conversation, or else the last one; nil if there is none.
func lastSubagent(s *view.Snapshot, marked *view.Item) *view.Subagent {
	if marked != nil {
		if v, ok := marked.Variant.(*view.Subagent); ok {
			return v
		}
	}
	for i := s.End() - 1; i >= s.First(); i-- {
		if item := s.Item(i); item != nil {
			if v, ok := item.Variant.(*view.Subagent); ok {
				return v
			}
		}
	}
	return nil
}

// showSubagent shows the conversation of a subagent.
func (m *Model) showSubagent(c *chat) tea.Cmd {
	return m.openSubagent(lastSubagent(c.snapshot, c.draw.Marked()))
}

func (m *Model) openSubagent(of *view.Subagent) tea.Cmd {
	if of == nil {
		m.tellHere("There is no subagent.")
		return nil
	}
	state := m.client.States().Of(of.SessionID)
	l := &subagentLayer{id: of.SessionID, of: of, state: state, snapshot: state.Snapshot()}
	l.draw = newTranscript(m, newTimes(m))
	l.draw.Update(l.snapshot)
	m.push(l)
	if !m.tasks.begin() {
		return nil
	}
	var ctx context.Context
	ctx, l.stop = context.WithCancel(m.tasks.ctx)
	m.watched = append(m.watched, l)
	go func() {
		defer m.tasks.running.Done()
		follow(ctx, state, func(s *view.Snapshot) { m.send(subagentMsg{l, s}) })
	}()
	return nil
}

// unwatch stops watching subagents that are no longer shown.
func (m *Model) unwatch() {
	m.watched = slices.DeleteFunc(m.watched, func(l *subagentLayer) bool {
		gone := !slices.Contains(m.layers, layer(l))
		if gone {
			l.stop()
		}
		return gone
	})
}

// changed handles a newer snapshot.
func (l *subagentLayer) changed(s *view.Snapshot) {
	l.snapshot = s
	l.draw.Update(s)
}

func (l *subagentLayer) full() bool { return true }

func (l *subagentLayer) paste(*Model, string) tea.Cmd { return nil }

func (l *subagentLayer) key(m *Model, k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "up", "k":
		l.draw.Scroll(-1)
	case "down", "j":
		l.draw.Scroll(1)
	case "pgup":
		l.draw.Scroll(-max(1, m.height/2))
	case "pgdown", "space":
		l.draw.Scroll(max(1, m.height/2))
	case "end", "ctrl+end", "alt+end":
		l.draw.Bottom()
	case "alt+up":
		l.draw.step(-1)
	case "alt+down":
		l.draw.step(1)
	case "ctrl+o":
		l.draw.foldMarked(l.snapshot)
	case "alt+t":
		l.draw.ToggleAll()
	case "alt+a":
		if of := lastSubagent(l.snapshot, l.draw.Marked()); of != nil {
			return m.openSubagent(of)
		}
	case "esc", "q":
		m.pop(l)
	}
	return nil
}

func (l *subagentLayer) view(m *Model, width, height int) []string {
	l.draw.Resize(width)
	title := "Subagent " + cmp.Or(clean(l.of.Title.Value()), clean(string(l.id)))
	lines := []string{m.rule(m.style.asking, title, width)}
	if l.snapshot.First() == l.snapshot.End() {
		return append(lines, m.style.dim.Render(fit("The agent has not reported what it does.", width)))
	}
	if height < 3 {
		return l.draw.Lines(height)
	}
	lines = append(lines, l.draw.Lines(height-2)...)
	return append(lines, m.style.dim.Render(
		fit(fmt.Sprintf("%s  Esc: back", plural(l.snapshot.End()-l.snapshot.First(), "item")), width)))
}

// foldMarked folds or unfolds the selected item, or the last one that can be folded.
func (t *transcript) foldMarked(s *view.Snapshot) {
	if t.Marked() == nil {
		for i := s.End() - 1; i >= s.First(); i-- {
			if item := s.Item(i); item != nil && draw.Foldable(item) {
				t.Mark(i)
				break
			}
		}
	}
	t.Toggle()
}
