package draw

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
)

// Output is the output of a terminal of the client.
type Output struct {
	// Command is the command line, to be shown before the output, or "".
	Command string
	Text    string
	// Truncated says that the beginning is missing.
	Truncated bool
	// Status says how the command ended, such as "exit status 1"; "" while it is running.
	Status string
	// Failed says that the command failed.
	Failed bool
}

// toolParts returns the parts of a tool call: its line and, if it is unfolded, all its content. A folded call in
// progress shows the last lines of its terminals.
func toolParts(c *view.ToolCall, unfolded bool) []part {
	parts := []part{{draw: func(p *painter, width int) []line { return p.toolLine(c, unfolded, width) }}}
	add := func(draw func(p *painter, width int) []line) {
		parts = append(parts, staticPart(true, func(p *painter, width int) []line {
			return p.prefixLines(line{{p.marks.vertical + " ", p.dim}}, style{}, draw(p, max(width-2, 1)))
		}))
	}
	if !unfolded {
		if c.Call.Status == acp.ToolCallStatusInProgress && !c.Unfinished && !c.Cancelled {
			for _, content := range c.Call.Content {
				if v, ok := content.Variant.(*acp.ToolCallContentTerminal); ok {
					add(func(p *painter, width int) []line { return p.lastOutput(string(v.TerminalID), maxLiveLines, width) })
				}
			}
		}
		if c.Call.Status == acp.ToolCallStatusFailed && !c.Cancelled {
			add(func(p *painter, width int) []line { return p.failure(c, width) })
		}
		return parts
	}
	add(func(p *painter, width int) []line { return p.toolFacts(&c.Call, width) })
	if c.Permission != nil {
		add(func(p *painter, width int) []line { return p.permissionLine(c.Permission, width) })
	}
	if len(c.Call.RawInput) > 0 {
		add(func(p *painter, width int) []line { return p.input(c.Call.RawInput, width) })
	}
	for _, content := range c.Call.Content {
		add(func(p *painter, width int) []line { return p.toolContent(content, maxDiffLines, width) })
	}
	if len(c.Call.RawOutput) > 0 {
		add(func(p *painter, width int) []line { return p.json("Output", c.Call.RawOutput, width) })
	}
	return parts
}

// input draws the input of a tool call: commands as they are typed, with the other members after them, and any other
// input as JSON.
func (p *painter) input(raw []byte, width int) []line {
	commands, others := view.Commands(raw)
	if len(commands) == 0 {
		return p.json("Input", raw, width)
	}
	var out []line
	for _, command := range commands {
		prompt := line{{"$ ", p.dim}}
		for _, l := range p.highlight(clean(limit(command, maxText)), "sh", "") {
			out = append(out, wrapBehind(prompt, line{{"  ", p.text}}, l, width)...)
			prompt = line{{"  ", p.text}}
		}
	}
	for _, f := range others {
		name := strings.TrimSpace("input " + strings.ReplaceAll(clean(f.Name), "\n", " "))
		prompt := line{{name + ": ", p.dim}}
		for text := range strings.SplitSeq(clean(limit(f.Text, maxText)), "\n") {
			out = append(out, append(prompt, span{text, p.text}).wrap(width, nil)...)
			prompt = line{{"  ", p.text}}
		}
	}
	return out
}

// maxFailure is how many lines a folded tool call that has failed shows of the reason.
const maxFailure = 3

// failure says why a tool call has failed: the last lines of what it has put out, or else of its error.
func (p *painter) failure(c *view.ToolCall, width int) []line {
	text := ""
	for _, content := range slices.Backward(c.Call.Content) {
		switch v := content.Variant.(type) {
		case *acp.ToolCallContentTerminal:
			if out := p.lastOutput(string(v.TerminalID), maxFailure, width); len(out) > 0 {
				return out
			}
		case *acp.ToolCallContentContent:
			if said := v.Content.Text(); text == "" {
				text = strings.TrimSpace(said)
			}
		default: // a diff, or what newer agents send, gives no reason
		}
	}
	if text == "" {
		text = strings.TrimSpace(errorIn(c.Call.RawOutput))
	}
	if text == "" && c.Permission != nil {
		text = p.permissionText(c.Permission)
	}
	var out []line
	lines := slices.DeleteFunc(strings.Split(text[max(0, len(text)-maxFailure*maxLabel):], "\n"), func(l string) bool {
		l = strings.TrimSpace(l)
		return l == "" || strings.HasPrefix(l, "```")
	})
	for _, l := range lines[max(0, len(lines)-maxFailure):] {
		out = append(out, line{{label(l), p.dim}}.clip(width, p.marks.ellipsis))
	}
	return out
}

// errorIn returns the error in the output of a tool: a text, or a member with one of the usual names; "" if there is
// none.
func errorIn(output []byte) string {
	var text string
	var members map[string]json.RawMessage
	if json.Unmarshal(output, &text) != nil && json.Unmarshal(output, &members) == nil {
		for _, name := range []string{"error", "message", "stderr", "output", "stdout", "content", "text"} {
			if text = errorIn(members[name]); text != "" {
				break
			}
		}
	}
	return text
}

// state returns the mark, the style and the word for the state of a tool call.
func (p *painter) state(c *view.ToolCall) (mark string, s style, word string) {
	switch {
	case c.Cancelled:
		return p.marks.ended, p.warn, "cancelled"
	case c.Unfinished:
		return p.marks.ended, p.dim, "not finished"
	case c.Call.Status == acp.ToolCallStatusCompleted:
		return p.marks.done, p.good, ""
	case c.Call.Status == acp.ToolCallStatusFailed:
		return p.marks.failed, p.bad, "failed"
	case WaitsForPermission(c):
		return p.marks.pending, p.warn, "waiting for permission"
	case c.Call.Status == acp.ToolCallStatusInProgress:
		return p.marks.running, p.accent, ""
	case c.Call.Status == acp.ToolCallStatusPending, c.Call.Status == "":
		return p.marks.pending, p.dim, ""
	}
	return "?", p.warn, label(string(c.Call.Status))
}

// Ended reports whether a tool call is over.
func Ended(c *view.ToolCall) bool {
	return c.Cancelled || c.Unfinished || c.Call.Status == acp.ToolCallStatusCompleted ||
		c.Call.Status == acp.ToolCallStatusFailed
}

// WaitsForPermission reports whether a tool call is waiting for the answer to a permission request.
func WaitsForPermission(c *view.ToolCall) bool {
	return c.Permission != nil && !c.Permission.Outcome.Present() && !c.Permission.Outcome.IsNull()
}

// duration formats a time in whole seconds.
func duration(d time.Duration) string { return d.Truncate(time.Second).String() }

// toolLine returns a tool call as one line.
func (p *painter) toolLine(c *view.ToolCall, unfolded bool, width int) []line {
	mark, s, word := p.state(c)
	l := line{{mark + " ", s}}
	l.add(label(string(cmp.Or(c.Call.Kind, acp.ToolKindOther)))+" ", p.dim)
	l.add(toolTitle(&c.Call), p.text)
	if word != "" {
		l.add("  "+word, s)
	}
	if !unfolded {
		for _, note := range p.notes(c) {
			l.add("  "+note, p.dim)
		}
	}
	var took line
	if p.elapsed != nil {
		if d := p.elapsed(c.Call.ToolCallID); d > 0 {
			ran := "  running "
			if Ended(c) {
				ran = "  ran "
			}
			took.add(ran+duration(d), p.dim)
		}
	}
	if !unfolded {
		if room := width - took.width(); room >= 10 { // the time stays visible after a long title
			return []line{append(l.clip(room, p.marks.ellipsis), took...)}
		}
		return []line{l.clip(width, p.marks.ellipsis)}
	}
	l = append(l, took...)
	return l.wrap(width, line{{"  ", style{}}})
}

func toolTitle(c *acp.ToolCall) string {
	title := c.Title
	if strings.TrimSpace(title) == "" {
		title = cmp.Or(c.Name.Value(), string(c.ToolCallID))
	}
	return label(title)
}

// notes returns words for the content of a folded tool call.
func (p *painter) notes(c *view.ToolCall) []string {
	var notes []string
	added, removed, diffs, others := 0, 0, 0, 0
	for _, content := range c.Call.Content {
		switch v := content.Variant.(type) {
		case *acp.ToolCallContentDiff:
			a, r := changedLines(v.OldText.Value(), v.NewText)
			added, removed, diffs = added+a, removed+r, diffs+1
		default:
			others++
		}
	}
	if diffs > 0 {
		notes = append(notes, fmt.Sprintf("+%d -%d", added, removed))
	}
	if others > 0 || len(c.Call.RawOutput) > 0 {
		notes = append(notes, p.marks.folded)
	}
	return notes
}

// toolFacts returns the tool call's name, id and locations.
func (p *painter) toolFacts(c *acp.ToolCall, width int) []line {
	var out []line
	fact := func(name, value string) {
		if value != "" {
			out = append(out, line{{name + " ", p.dim}, {label(value), p.text}}.wrap(width, line{{"  ", style{}}})...)
		}
	}
	if strings.Contains(strings.TrimSpace(c.Title), "\n") {
		out = append(out, wrapAll(paragraph(c.Title, p.text), width, "")...)
	}
	if name := c.Name.Value(); name != c.Title {
		fact("tool", name)
	}
	for _, at := range c.Locations {
		fact("at", view.Location(at))
	}
	return out
}

// permissionLine returns the answer to the permission request.
func (p *painter) permissionLine(perm *view.Permission, width int) []line {
	l := line{{"permission ", p.dim}}
	outcome, answered := perm.Outcome.Get()
	switch {
	case perm.Outcome.IsNull():
		l.add("the request failed", p.bad)
	case !answered:
		l.add("waiting for an answer", p.warn)
	default:
		id, ok := outcome.Selected()
		if !ok {
			l.add(label(outcome.String()), p.warn)
			break
		}
		text, s := label(string(id)), p.text
		if i := slices.IndexFunc(perm.Options, func(o acp.PermissionOption) bool { return o.OptionID == id }); i >= 0 {
			c := view.NewChoice(perm.Options[i])
			if text = c.Text; c.Contradicts {
				s = p.warn
			}
		}
		l.add(text, s)
	}
	return l.wrap(width, line{{"  ", style{}}})
}

// permissionText returns the answer without a style.
func (p *painter) permissionText(perm *view.Permission) string {
	var words []string
	for _, l := range p.permissionLine(perm, 1<<30) {
		words = append(words, l.text())
	}
	return strings.Join(words, " ")
}

// toolContent draws a content item of a tool call.
func (p *painter) toolContent(c acp.ToolCallContent, maxLines, width int) []line {
	switch v := c.Variant.(type) {
	case *acp.ToolCallContentContent:
		return p.content(v.Content, width)
	case *acp.ToolCallContentDiff:
		return p.diff((*acp.Diff)(v), maxLines, width)
	case *acp.ToolCallContentTerminal:
		return p.terminalBlock(string(v.TerminalID), width)
	default:
		return p.unknownContent(c, true, width)
	}
}

// ToolCall returns the lines of a tool call: one line, or everything it contains if unfolded is set.
func ToolCall(t *Theme, c *view.ToolCall, unfolded bool, terminal func(acp.TerminalID) (Output, bool),
	width int) []string {
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
