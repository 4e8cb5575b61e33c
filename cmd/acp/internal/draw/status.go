package draw

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
)

// Plan returns the agent's plans as at most height lines; none if there is no plan. If there is not enough room, it
// shows the current and the next entries, and the number of entries that are hidden.
func Plan(t *Theme, s *view.Snapshot, width, height int) []string {
	p := newPainter(t)
	var out []line
	if plan, ok := s.Plan.Get(); ok && len(plan.Entries) > 0 {
		out = append(out, p.plan("Plan", plan.Entries, width, height)...)
	}
	for _, plan := range s.Plans {
		room := height - len(out)
		switch c := plan.Content.Variant.(type) {
		case *acp.PlanUpdateContentItems:
			if len(c.Entries) > 0 {
				out = append(out, p.plan("Plan "+label(string(plan.ID)), c.Entries, width, room)...)
			}
		case *acp.PlanUpdateContentFile:
			out = append(out, line{{"Plan " + label(string(plan.ID)), p.title}, {" in " + label(c.URI), p.dim}}.clip(width,
				p.marks.ellipsis))
		case *acp.PlanUpdateContentMarkdown:
			out = append(out, line{{"Plan " + label(string(plan.ID)), p.title}}.clip(width, p.marks.ellipsis))
			out = append(out, p.markdownText(c.Content, width)...)
		default:
			out = append(out, line{{"Plan of an unknown kind", p.dim}}.clip(width, p.marks.ellipsis))
		}
	}
	lines := p.strings(out, width)
	if height = max(height, 0); len(lines) > height {
		lines = lines[:height]
		if height > 0 {
			more := line{{fmt.Sprintf("(%s more)", lineCount(len(out)-height+1)), p.dim}}
			lines[height-1] = more.clip(width, "").string(p.Theme)
		}
	}
	return lines
}

// PlanFinished reports whether all entries of the agent's plans are completed. A plan without entries never is.
func PlanFinished(s *view.Snapshot) bool {
	entries := s.Plan.Value().Entries
	for _, plan := range s.Plans {
		items, ok := plan.Content.Variant.(*acp.PlanUpdateContentItems)
		if !ok {
			return false
		}
		entries = append(slices.Clip(entries), items.Entries...)
	}
	return len(entries) > 0 && !slices.ContainsFunc(entries,
		func(e acp.PlanEntry) bool { return e.Status != acp.PlanEntryStatusCompleted })
}

// plan draws entries in at most height lines, one line each. If there is only one line, it shows the current entry.
func (p *painter) plan(name string, entries []acp.PlanEntry, width, height int) []line {
	done, current := 0, -1
	for i, e := range entries {
		if e.Status == acp.PlanEntryStatusCompleted {
			done++
		} else if current < 0 || e.Status == acp.PlanEntryStatusInProgress && entries[current].Status != e.Status {
			current = i
		}
	}
	head := line{{name, p.title}, {fmt.Sprintf(" %d/%d", done, len(entries)), p.dim}}
	if height < 2 {
		if current >= 0 {
			head.add("  "+label(entries[current].Content), p.text)
		}
		return []line{head.clip(width, p.marks.ellipsis)}
	}
	out := []line{head.clip(width, p.marks.ellipsis)}
	first, last := 0, len(entries)
	if room := height - 1; room < len(entries) {
		room = max(room, 1)
		first = min(max(current-(room-1)/3, 0), len(entries)-room)
		last = first + room
		hidden := ""
		if first > 0 {
			hidden += fmt.Sprintf("  %s%d", p.marks.up, first)
		}
		if n := len(entries) - last; n > 0 {
			hidden += fmt.Sprintf("  %s%d", p.marks.down, n)
		}
		out[0] = append(out[0], span{hidden, p.dim}).clip(width, p.marks.ellipsis)
	}
	for _, e := range entries[first:last] {
		mark, s, text := p.marks.todo, p.dim, p.text
		switch e.Status {
		case acp.PlanEntryStatusInProgress:
			mark, s, text = p.marks.doing, p.accent, p.strong
		case acp.PlanEntryStatusCompleted:
			mark, s, text = p.marks.did, p.good, p.dim
		case acp.PlanEntryStatusPending, "":
		default:
			mark = "? " + label(string(e.Status))
		}
		l := line{{mark + " ", s}}
		if e.Priority == acp.PlanEntryPriorityHigh {
			l.add("! ", p.warn)
		}
		l.add(label(e.Content), text)
		out = append(out, l.clip(width, p.marks.ellipsis))
	}
	return out
}

// Usage describes briefly how full the context is and what the session has cost, such as "45k/200k (22%) · 0.43 USD".
func Usage(t *Theme, u acp.UsageUpdate) string {
	text := count(u.Used)
	if u.Size > 0 {
		text += fmt.Sprintf("/%s (%d%%)", count(u.Size), percent(u.Used, u.Size))
	}
	if c, ok := u.Cost.Get(); ok {
		text += " " + newPainter(t).marks.dot + " " + cost(c)
	}
	return Line(t, text, 200)
}

func percent(used, size uint64) uint64 { return uint64(min(float64(used)/float64(size)*100, 999)) }

func cost(c acp.Cost) string {
	amount := strconv.FormatFloat(c.Amount, 'f', 2, 64)
	if size := math.Abs(c.Amount); size != 0 && size < 0.1 || size >= 1e9 {
		amount = strconv.FormatFloat(c.Amount, 'g', 2, 64)
	}
	return strings.TrimSpace(amount + " " + label(c.Currency))
}

// Line returns a text of an agent, such as a title or the name of a mode, as one line without style that is not wider
// than width.
func Line(t *Theme, text string, width int) string {
	p := newPainter(t)
	return line{{label(text), style{}}}.clip(width, p.marks.ellipsis).text()
}

// TurnEnd returns lines that say how a turn ended; none if it is not over, or if it ended normally without reporting
// tokens. took is the duration of the turn, or 0.
func TurnEnd(t *Theme, turn *view.TurnState, took time.Duration, width int) []string {
	p := newPainter(t)
	p.took = func(int) time.Duration { return took }
	return p.strings(p.turnEnd(turn), width)
}
