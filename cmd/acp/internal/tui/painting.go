package tui

import (
	"cmp"
	"fmt"
	"iter"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/cmd/acp/internal/draw"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/plain"
)

// maxLabel is how many bytes of a text are shown as one line.
const maxLabel = 2000

// clean returns a text of the agent as one harmless line.
func clean(text string) string {
	if len(text) > maxLabel {
		text = strings.ToValidUTF8(text[:maxLabel], "") + "…"
	}
	return strings.Join(strings.Fields(strings.Map(spaces, plain.Screen(text))), " ")
}

func spaces(r rune) rune {
	if r == '\n' || r == '\t' {
		return ' '
	}
	return r
}

// cleanText returns a text of the agent, of any number of lines, made harmless.
func cleanText(text string) string {
	return strings.ReplaceAll(plain.Screen(text), "\t", "    ")
}

// visibly returns a text of the agent as one line without changing its meaning: line breaks are shown as \n.
func visibly(text string) string { return strings.ReplaceAll(cleanText(text), "\n", `\n`) }

// harmless reports whether a text can be used as typed: it contains only visible characters.
func harmless(text string) bool { return plain.Screen(text) == text }

func splitLines(text string) iter.Seq[string] { return strings.SplitSeq(text, "\n") }

// theme returns the theme of package draw.
func (m *Model) theme() *draw.Theme {
	if m.style.dark {
		return draw.Dark()
	}
	return draw.Light()
}

// transcript is the conversation of a chat on the screen.
type transcript struct{ *draw.Transcript }

func newTranscript(m *Model, t *times) *transcript {
	return &transcript{draw.NewTranscript(&draw.Options{
		Theme: m.drawn, Width: max(1, m.width), Terminal: m.terminalOutput, Elapsed: t.elapsed, Took: t.took,
	})}
}

// step selects the next item, or the previous one.
func (t *transcript) step(n int) {
	if n > 0 {
		t.Next()
	} else {
		t.Prev()
	}
}

// terminalOutput returns the output of a terminal. It is safe for concurrent use.
func (m *Model) terminalOutput(id acp.TerminalID) (draw.Output, bool) {
	return terminalOutput(m.last(), id)
}

func terminalOutput(client *talk.Client, id acp.TerminalID) (draw.Output, bool) {
	if client == nil {
		return draw.Output{}, false
	}
	t, ok := client.Terminal(id)
	if !ok {
		return draw.Output{}, false
	}
	o := draw.Output{Text: string(t.Output), Truncated: t.Dropped > 0}
	if t.Own { // the title of the call need not say it
		o.Command = t.Command
	}
	if t.Ended {
		o.Status, o.Failed = exitWords(t.Exit)
	}
	return o, true
}

// exitWords describes how a command ended.
func exitWords(exit acp.WaitForTerminalExitResponse) (words string, failed bool) {
	if signal, ok := exit.Signal.Get(); ok {
		return "ended by " + signal, true
	}
	if code, ok := exit.ExitCode.Get(); ok {
		return fmt.Sprintf("exit status %d", code), code != 0
	}
	return "ended", false
}

// output handles new output of a terminal.
func (m *Model) output(msg outputMsg) {
	if c := m.chatOf(msg.session); c != nil {
		c.draw.TerminalChanged(msg.terminal)
	}
}

// planView draws the plan above the queued prompts.
func (m *Model) planView(width, height int) []string {
	if m.chat == nil || height < 1 {
		return nil
	}
	working := m.chat.cancel != nil // what is done and what comes next is of interest while the agent works
	switch finished := draw.PlanFinished(m.chat.snapshot); {
	case (working && !finished) != m.planToggled:
	case finished && !working:
		return nil
	default:
		height = 1
	}
	lines := draw.Plan(m.drawn, m.chat.snapshot, width, height)
	if len(lines) == 0 || height < 2 {
		return lines
	}
	return append([]string{m.rule(m.style.rule, "", width)}, lines[:min(len(lines), height-1)]...)
}

// permissionLines are the lines of a permission request as last drawn.
type permissionLines struct {
	width int
	theme *draw.Theme
	drawn *draw.PermissionText
}

func (p *permissionLines) text(m *Model, d *permissionDialog, width int) *draw.PermissionText {
	changed := d.q.Update()
	d.changed = d.changed || changed
	if p.drawn == nil || changed || p.width != width || p.theme != m.drawn {
		drawn := draw.Permission(d.q, m.drawn, m.terminalOutput, width)
		p.drawn = &drawn
		p.width, p.theme = width, m.drawn
	}
	return p.drawn
}

// fold folds or unfolds the selected item, or the last one that can be folded.
func (m *Model) fold(c *chat) tea.Cmd {
	c.draw.foldMarked(c.snapshot)
	return nil
}

// foldAll folds or unfolds everything.
func (m *Model) foldAll(c *chat) tea.Cmd {
	c.draw.ToggleAll()
	return nil
}

// foldPlan folds or unfolds the plan.
func (m *Model) foldPlan() tea.Cmd {
	m.planToggled = !m.planToggled
	return nil
}

// bottom shows the end of the conversation.
func (m *Model) bottom(c *chat) tea.Cmd {
	c.draw.Bottom()
	return nil
}

// find asks for a text and goes to it.
func (m *Model) find(c *chat) tea.Cmd {
	m.push(newLine("Find (again: the previous item)", c.lastSearch, func(m *Model, text string) tea.Cmd {
		c.lastSearch = text
		if !c.draw.Find(text, true) && text != "" {
			m.tell(c.id, "Not found: "+text)
		}
		return nil
	}))
	return nil
}

// showDiffs shows all diffs of the last turn together.
func (m *Model) showDiffs(c *chat) tea.Cmd {
	turn := 0
	for t := range c.snapshot.Turns() {
		turn = t.Number
	}
	return m.showPages("Diffs of the last turn", false, func(m *Model, width int) []string {
		lines, n := draw.TurnDiffs(m.drawn, c.snapshot, turn, width)
		if n == 0 {
			return []string{"The agent has not reported any changes in the last turn."}
		}
		return lines
	})
}

// findingLines returns the lines of a finding and its evidence.
func findingLines(m *Model, f conformance.Finding, width int) []string {
	lines := wrap(m.style.key.Render(clean(cmp.Or(f.Rule, "note")))+" "+clean(f.String()), width)
	for _, e := range f.Evidence {
		for _, l := range wrap(clean(fmt.Sprint(e)), width-4) {
			lines = append(lines, m.style.dim.Render("    "+l))
		}
	}
	return append(lines, "")
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
