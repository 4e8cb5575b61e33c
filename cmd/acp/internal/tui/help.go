package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// showHelp shows the keys.
func (m *Model) showHelp() tea.Cmd {
	return m.showPages("Keys", false, func(m *Model, width int) []string {
		var lines []string
		for _, s := range allKeys() {
			lines = append(lines, m.style.key.Render(s.screen))
			for _, b := range s.keys {
				if len(b.keys) == 0 {
					continue
				}
				lines = append(lines, hanging(keyNames(b.keys), b.about, 24, width)...)
			}
			lines = append(lines, "")
		}
		return append(lines, wrap("Press Ctrl-P for all actions, including those without a key.", width)...)
	})
}

// keyNames returns keys as people write them.
func keyNames(keys []string) string {
	var names []string
	for _, k := range keys {
		names = append(names, keyName(k))
	}
	return strings.Join(names, ", ")
}

// hanging puts a text next to a word, or below it in a narrow terminal.
func hanging(word, text string, column, width int) []string {
	if width < 2*column || len(word) >= column-2 {
		lines := []string{fit("  "+word, width)}
		for _, l := range wrap(text, width-4) {
			lines = append(lines, "    "+l)
		}
		return lines
	}
	var lines []string
	for i, l := range wrap(text, width-column) {
		if i > 0 {
			word = ""
		}
		lines = append(lines, fmt.Sprintf("  %-*s%s", column-2, word, l))
	}
	return lines
}

// showNotes shows the messages to the user and the agent's standard error.
func (m *Model) showNotes() tea.Cmd {
	return m.showPages("Notes", true, func(m *Model, width int) []string {
		var lines []string
		for _, n := range m.notes {
			lines = append(lines, wrap(n, width)...)
		}
		if len(m.stderr) > 0 {
			lines = append(lines, "", m.style.key.Render(fit("Standard error of the agent", width)))
			for _, l := range m.stderr {
				lines = append(lines, wrap(l, width)...)
			}
		}
		return lines
	})
}

// showFindings shows the violations of the protocol.
func (m *Model) showFindings() tea.Cmd {
	if m.opts.Talk.Findings == nil {
		m.tellHere("The connection is not judged: start with --check.")
		return nil
	}
	return m.showPages(fmt.Sprintf("Findings: %d", len(m.findings)), false, func(m *Model, width int) []string {
		var lines []string
		for _, f := range m.findings {
			lines = append(lines, findingLines(m, f, width)...)
		}
		return lines
	})
}
