package draw

// This file owns what a user sees before permitting something.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
)

// Permission is what a request for permission is about.
type Permission struct {
	// Call is everything that is known of the tool call, not only what the request has: see view.Asking.
	Call acp.ToolCall
	// Agent is who asks, and Session in which session, if there are several.
	Agent, Session string
	// Reason says why the user is asked: what the agent or a rule says.
	Reason string
}

// Content returns the lines that show everything: title, kind, command, diff, locations, content, input, reason, agent.
// They may be many: see [Pager].
func (r *Permission) Content(t *Theme, layout DiffLayout, terminal func(acp.TerminalID) (Output, bool), width int) []string {
	p := newPainter(t)
	p.diffs = layout
	if terminal != nil {
		p.terminal = func(id string) (Output, bool) { return terminal(acp.TerminalID(id)) }
	}
	var out []line
	hang := line{{"  ", style{}}}
	fact := func(name, value string) {
		if value != "" {
			out = append(out, line{{name + " ", p.dim}, {value, p.text}}.wrap(width, hang)...)
		}
	}
	c := &r.Call
	title := paragraph(c.Title, p.title)
	if len(title) == 0 {
		title = []line{{{toolTitle(c), p.title}}}
	}
	out = append(out, wrapAll(title, width, "")...)
	kind := label(string(c.Kind))
	if kind == "" {
		kind = string(acp.ToolKindOther)
	}
	if name := c.Name.Value(); name != "" {
		kind += ", tool " + label(name)
	}
	fact("kind", kind)
	who := label(r.Agent)
	if r.Session != "" {
		who += ", in " + label(r.Session)
	}
	fact("agent", who)
	if r.Reason != "" {
		for i, l := range paragraph(r.Reason, p.text) {
			name := "reason"
			if i > 0 {
				name = "      "
			}
			out = append(out, append(line{{name + " ", p.dim}}, l...).wrap(width, hang)...)
		}
	}
	if cmd := command(c.RawInput); cmd != "" {
		for i, l := range linesOf(clean(cmd)) {
			prompt := line{{"$ ", p.warn}}
			if i > 0 {
				prompt = line{{"  ", p.warn}}
			}
			out = append(out, beside(prompt, line{{"  ", p.warn}}, line{{l, p.strong}}, width)...)
		}
	}
	for _, at := range c.Locations {
		fact("at", label(location(at)))
	}
	for _, content := range c.Content {
		out = append(out, nil)
		out = append(out, p.toolContent(content, maxDiffAll, width)...)
	}
	if len(c.RawInput) > 0 {
		out = append(out, nil)
		out = append(out, p.json("Input", c.RawInput, width)...)
	}
	return p.strings(out, width)
}

// PermissionOptions are the options as one line each: what is chosen by it in a word, and its name.
func PermissionOptions(t *Theme, options []acp.PermissionOption, width int) []string {
	p := newPainter(t)
	var out []string
	for _, o := range options {
		var s style
		words := ""
		switch o.Kind {
		case acp.PermissionOptionKindAllowOnce, acp.PermissionOptionKindAllowAlways:
			s = p.good
		case acp.PermissionOptionKindRejectOnce, acp.PermissionOptionKindRejectAlways:
			s = p.bad
		default:
			s, words = p.warn, "  ("+label(string(o.Kind))+")"
		}
		name := label(o.Name)
		if strings.TrimSpace(name) == "" {
			name = label(string(o.OptionID))
		}
		l := line{{name, s}, {words, p.dim}}.clip(width, p.marks.ellipsis)
		out = append(out, p.strings([]line{l}, width)[0])
	}
	return out
}

// Pager shows lines in less room than they need.
type Pager struct {
	lines []string
	top   int
}

// SetLines changes the lines, and keeps the place.
func (g *Pager) SetLines(lines []string) { g.lines = slices.Clone(lines) }

// Len is how many lines there are.
func (g *Pager) Len() int { return len(g.lines) }

// Scroll moves down by n lines, or up if n is less than 0.
func (g *Pager) Scroll(n, height int) {
	g.top = min(max(g.top+n, 0), max(len(g.lines)-height, 0))
}

// Top goes to the beginning.
func (g *Pager) Top() { g.top = 0 }

// Bottom goes to the end.
func (g *Pager) Bottom(height int) { g.top = max(len(g.lines)-height, 0) }

// View returns exactly height lines, and how many lines are above and below them.
func (g *Pager) View(height int) (lines []string, above, below int) {
	height = max(height, 0)
	g.Scroll(0, height)
	lines = append(lines, g.lines[g.top:min(g.top+height, len(g.lines))]...)
	below = len(g.lines) - g.top - len(lines)
	for len(lines) < height {
		lines = append(lines, "")
	}
	return lines, g.top, below
}

// Where says which lines a pager shows, such as "lines 1-20 of 83", or "" if it shows all.
func (g *Pager) Where(height int) string {
	if len(g.lines) <= height {
		return ""
	}
	return fmt.Sprintf("lines %d-%d of %d", g.top+1, min(g.top+height, len(g.lines)), len(g.lines))
}

// ToolCall returns the lines of a tool call: one, or everything it has.
func ToolCall(t *Theme, c *view.ToolCall, unfolded bool, terminal func(acp.TerminalID) (Output, bool), width int) []string {
	p := newPainter(t)
	if terminal != nil {
		p.terminal = func(id string) (Output, bool) { return terminal(acp.TerminalID(id)) }
	}
	var out []line
	for _, part := range toolParts(c, unfolded) {
		out = append(out, part.draw(p, width)...)
	}
	return p.strings(out, width)
}
