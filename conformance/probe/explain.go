package probe

import (
	"slices"
	"strings"
)

// Trials says how the probes try a requirement: a line for each probe that does.
func Trials(id string) []string {
	var lines []string
	for _, probe := range []struct {
		command string
		about   *subject
	}{{"acp probe", &agents}, {"acp probe --protocol 2", &drafts}, {"acp probe-client", &clients}} {
		x, listed := probe.about.rows[id]
		if !listed {
			continue
		}
		var names []string
		for _, s := range probe.about.scenarios() {
			if slices.Contains(s.Exercises, id) {
				names = append(names, s.Name)
			}
		}
		line := probe.command + ": in all scenarios that show it"
		if len(names) > 0 {
			line = probe.command + ": in " + strings.Join(names, ", ")
			if len(x.on) > 0 {
				line += ", and in all others that show it"
			}
		}
		switch x.need {
		case "":
		case "modes", "options":
			line += "; only if the agent has " + x.need
		default:
			line += "; only if the " + probe.about.side.String() + " advertises " + x.need
		}
		if x.reach != "" {
			line += "; it needs " + x.reach
		}
		lines = append(lines, line)
	}
	return lines
}
