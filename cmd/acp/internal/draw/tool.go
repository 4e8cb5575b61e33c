package draw

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
	"github.com/charmbracelet/x/ansi"

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
					add(func(p *painter, width int) []line { return p.lastOutput(v.TerminalID, maxLiveLines, width) })
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
		for _, l := range p.highlight(clean(limit(command)), "sh", "") {
			out = append(out, wrapBehind(prompt, line{{"  ", p.text}}, l, width)...)
			prompt = line{{"  ", p.text}}
		}
	}
	for _, f := range others {
		name := strings.TrimSpace("input " + strings.ReplaceAll(clean(f.Name), "\n", " "))
		prompt := line{{name + ": ", p.dim}}
		for text := range strings.SplitSeq(clean(limit(f.Text)), "\n") {
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
			if out := p.lastOutput(v.TerminalID, maxFailure, width); len(out) > 0 {
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
	return l.wrap(width, indent)
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
			out = append(out, line{{name + " ", p.dim}, {label(value), p.text}}.wrap(width, indent)...)
		}
	}
	if strings.Contains(strings.TrimSpace(c.Title), "\n") {
		out = append(out, wrapAll(nil, paragraph(c.Title, p.text), width)...)
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
	return l.wrap(width, indent)
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
		return p.terminalBlock(v.TerminalID, width)
	default:
		return p.unknownContent(c, true, width)
	}
}

// ToolCall returns the lines of a tool call: one line, or everything it contains if unfolded is set.
func ToolCall(t *Theme, c *view.ToolCall, unfolded bool, terminal func(acp.TerminalID) (Output, bool),
	width int) []string {
	p := newPainter(t)
	p.terminal = terminal
	var out []line
	for _, part := range toolParts(c, unfolded) {
		out = append(out, part.draw(p, width)...)
	}
	return p.strings(out, width)
}

// The bounds of diffs.
const (
	maxDiffLines = 400     // lines drawn of a diff in the transcript
	maxDiffAll   = 20_000  // lines drawn of a diff in full views
	maxDiffBytes = 4 << 20 // texts that are longer together are not compared line by line
	maxDiffLine  = 4 << 10 // bytes drawn of a line in the transcript
)

// diffLine is a line of a hunk.
type diffLine struct {
	kind     udiff.OpKind
	old, new int // its numbers, counting from 1
	text     string
	noEnd    bool // no newline follows it
	code     line // the highlighted text
}

// hunks are the parts of a diff that are drawn.
type hunks struct {
	hunks          [][]diffLine
	added, removed int
	notes          []string
	crlf           bool // all lines of both texts end with CR LF
}

// changedLines counts the lines that a diff adds and removes.
func changedLines(old, new string) (added, removed int) {
	h := compare(old, new, true)
	return h.added, h.removed
}

// compare compares two texts.
func compare(old, new string, exists bool) *hunks {
	h := &hunks{}
	if exists && allCRLF(old) && allCRLF(new) && old+new != "" {
		h.crlf = true
		old, new = strings.ReplaceAll(old, "\r\n", "\n"), strings.ReplaceAll(new, "\r\n", "\n")
	} else if allCRLF(new) && !exists && new != "" {
		h.crlf = true
		new = strings.ReplaceAll(new, "\r\n", "\n")
	}
	if len(old)+len(new) > maxDiffBytes {
		h.whole(old, new)
		h.notes = append(h.notes, "too large to compare line by line")
		return h
	}
	unified, err := udiff.ToUnifiedDiff("", "", old, udiff.Lines(old, new), udiff.DefaultContextLines)
	if err != nil { // the edits belong to the same text
		h.whole(old, new)
		return h
	}
	for _, hunk := range unified.Hunks {
		var lines []diffLine
		o, n := hunk.FromLine, hunk.ToLine
		for _, l := range hunk.Lines {
			d := diffLine{kind: l.Kind, old: o, new: n}
			d.text, d.noEnd = strings.CutSuffix(l.Content, "\n")
			d.noEnd = !d.noEnd
			switch l.Kind {
			case udiff.Delete:
				o++
				h.removed++
			case udiff.Insert:
				n++
				h.added++
			default:
				o++
				n++
			}
			lines = append(lines, d)
		}
		h.hunks = append(h.hunks, lines)
	}
	return h
}

// whole replaces all of one text with another.
func (h *hunks) whole(old, new string) {
	var lines []diffLine
	for i, side := range []string{old, new} {
		n := 0
		for l := range strings.Lines(side) {
			n++
			d := diffLine{kind: udiff.OpKind(i), old: n, new: n}
			d.text, d.noEnd = strings.CutSuffix(l, "\n")
			d.noEnd = !d.noEnd
			lines = append(lines, d)
		}
		if i == 0 {
			h.removed = n
		} else {
			h.added = n
		}
	}
	if len(lines) > 0 {
		h.hunks = [][]diffLine{lines}
	}
}

func allCRLF(text string) bool {
	n := strings.Count(text, "\n")
	return n == strings.Count(text, "\r\n") && (n > 0 || text == "") && n == strings.Count(text, "\r")
}

// diff draws at most maxLines lines of a diff, and says how many are left out.
func (p *painter) diff(d *acp.Diff, maxLines, width int) []line {
	old, exists := d.OldText.Get()
	h := compare(old, d.NewText, exists)
	words := fmt.Sprintf("+%d -%d", h.added, h.removed)
	switch {
	case !exists:
		words = fmt.Sprintf("new file, %s", lineCount(h.added))
	case d.NewText == "" && old != "":
		words = fmt.Sprintf("emptied, %s removed", lineCount(h.removed))
	case len(h.hunks) == 0:
		words = "no change"
	}
	if h.crlf {
		words += ", CRLF"
	}
	for _, note := range h.notes {
		words += ", " + note
	}
	out := line{{label(d.Path), p.strong}, {"  " + words, p.dim}}.wrap(width, indent)

	lines, left := h.limited(maxLines)
	p.highlightDiff(lines, d.Path, maxLines > maxDiffLines)
	// Agents also send parts of files, which seldom end with a newline, so only a change of the end is shown.
	sameEnd := exists && strings.HasSuffix(old, "\n") == strings.HasSuffix(d.NewText, "\n")
	for i, hunk := range lines {
		for j := range hunk {
			hunk[j].noEnd = hunk[j].noEnd && !sameEnd
		}
		if i > 0 || len(hunk) > 0 && hunk[0].old > 1 {
			at := hunk[0]
			out = append(out, line{{fmt.Sprintf("@@ line %d @@", max(at.new, 1)), p.hunk}}.wrap(width, nil)...)
		}
		out = append(out, p.unified(hunk, width)...)
	}
	if left > 0 {
		out = append(out, line{{fmt.Sprintf("(%s more not shown)", lineCount(left)), p.warn}}.wrap(width, nil)...)
	}
	return out
}

func lineCount(n int) string {
	if n == 1 {
		return "1 line"
	}
	return strconv.Itoa(n) + " lines"
}

// limited returns the first n lines of the hunks, and how many more there are.
func (h *hunks) limited(n int) (out [][]diffLine, left int) {
	for _, hunk := range h.hunks {
		if len(hunk) > n {
			left += len(hunk) - n
			hunk = hunk[:n]
		}
		n -= len(hunk)
		if len(hunk) > 0 {
			out = append(out, hunk)
		}
	}
	return out, left
}

// highlightDiff highlights each side of each hunk.
func (p *painter) highlightDiff(hunks [][]diffLine, path string, all bool) {
	for _, hunk := range hunks {
		for i := range hunk {
			text := hunk[i].text
			if !all && len(text) > maxDiffLine {
				text = fmt.Sprintf("%s… (%d bytes more)", strings.ToValidUTF8(text[:maxDiffLine], ""), len(text)-maxDiffLine)
			}
			hunk[i].text = strings.ReplaceAll(clean(text), "\n", `\n`)
		}
		for _, side := range []udiff.OpKind{udiff.Delete, udiff.Insert} {
			var text []string
			var of []int
			for i, l := range hunk {
				if l.kind == side || l.kind == udiff.Equal {
					text, of = append(text, l.text), append(of, i)
				}
			}
			lines := p.highlight(strings.Join(text, "\n")+"\n", "", path)
			for i, l := range lines[:min(len(lines), len(of))] {
				hunk[of[i]].code = l
			}
		}
		for i := range hunk {
			if hunk[i].code == nil {
				hunk[i].code = line{{hunk[i].text, p.text}}
			}
		}
	}
}

// digits returns the width of the line numbers of a hunk.
func digits(hunk []diffLine) int {
	n := 0
	for _, l := range hunk {
		n = max(n, len(strconv.Itoa(l.old)), len(strconv.Itoa(l.new)))
	}
	return n
}

// sideStyle returns the style of a line's background, its sign, and the style of the sign.
func (p *painter) sideStyle(kind udiff.OpKind) (style, string, style) {
	switch kind {
	case udiff.Delete:
		return p.removed, "-", p.bad
	case udiff.Insert:
		return p.added, "+", p.good
	}
	return style{}, " ", p.dim
}

// unified draws a hunk.
func (p *painter) unified(hunk []diffLine, width int) []line {
	var out []line
	n := digits(hunk)
	for _, l := range hunk {
		under, sign, signStyle := p.sideStyle(l.kind)
		number := l.new
		if l.kind == udiff.Delete {
			number = l.old
		}
		first := line{{fmt.Sprintf("%*d ", n, number), p.dim}, {sign + " ", signStyle}}
		rest := line{{strings.Repeat(" ", n+1), p.dim}, {sign + " ", signStyle}}
		if width < 3*n+10 {
			first, rest = first[1:], rest[1:]
		}
		for _, l := range wrapBehind(first.applyStyle(under), rest.applyStyle(under), l.code.applyStyle(under), width) {
			if under.Bg != nil {
				l = l.pad(width, under)
			}
			out = append(out, l)
		}
		if l.noEnd {
			out = append(out, line{{`\ no newline at the end`, p.dim}}.wrap(width, nil)...)
		}
	}
	return out
}

// TurnDiffs returns the lines of all diffs of a turn in order, and the number of diffs. Turn 0 means all turns.
func TurnDiffs(t *Theme, s *view.Snapshot, turn int, width int) (lines []string, count int) {
	p := newPainter(t)
	var out []line
	for item := range s.Items() {
		c, ok := item.Variant.(*view.ToolCall)
		if !ok || turn != 0 && item.Turn != turn {
			continue
		}
		for _, content := range c.Call.Content {
			d, ok := content.Variant.(*acp.ToolCallContentDiff)
			if !ok {
				continue
			}
			if count++; count > 1 {
				out = append(out, nil)
			}
			out = append(out, p.toolLine(c, true, width)...)
			out = append(out, p.diff((*acp.Diff)(d), maxDiffAll, width)...)
		}
	}
	return p.strings(out, width), count
}

// The limits for drawing the output of a terminal.
const (
	maxOutput      = 256 << 10 // bytes, from the end
	maxOutputLines = 1000
	maxColumns     = 4096
	maxGaps        = 256 << 10 // cells in all that the cursor skipped and left empty
)

// screen is the screen of a terminal without a right edge. It knows the movements of progress bars, which rewrite lines
// just above; everything else that a program may send is ignored.
type screen struct {
	lines    [][]cell
	row, col int
	style    style
	dropped  int // lines at the beginning
	gaps     int
}

// terminalLines returns the last lines of an output.
func terminalLines(output string) (lines []line, dropped int) {
	if len(output) > maxOutput {
		output = output[len(output)-maxOutput:]
		if i := strings.IndexByte(output, '\n'); i >= 0 {
			output = output[i+1:]
		}
		dropped = 1
	}
	s := &screen{lines: [][]cell{nil}}
	decode(output, s.write)
	for _, cells := range s.lines {
		var b builder
		for _, c := range cells {
			if c.cluster == "" {
				c = cell{" ", 1, c.style}
			}
			if c.width >= 0 {
				b.add(c.cluster, c.width, c.style)
			}
		}
		lines = append(lines, b.take())
	}
	for len(lines) > 0 && len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	return lines, dropped + s.dropped
}

// write executes a sequence or writes a character.
func (s *screen) write(seq string, p *ansi.Parser) {
	if len(seq) == 1 {
		switch seq[0] {
		case '\n', '\v', '\f':
			s.down()
			s.col = 0
			return
		case '\r':
			s.col = 0
			return
		case '\b':
			s.col = max(s.col-1, 0)
			return
		case '\t':
			s.col = min(s.col/8*8+8, maxColumns)
			return
		}
		if seq[0] < ' ' || seq[0] == 0x7f {
			return
		}
	}
	if strings.HasPrefix(seq, "\x1b[") {
		s.control(seq, p)
		return
	}
	if isSequence(seq) || seq[0] == 0xc2 && len(seq) == 2 && seq[1] < 0xa0 {
		return
	}
	if !utf8.ValidString(seq) {
		seq = "\ufffd"
	}
	for cluster, width := range characters(clean(seq)) {
		s.put(cell{cluster, width, s.style})
	}
}

// put writes a character at the cursor. A character of two columns is followed by an empty cell.
func (s *screen) put(c cell) {
	row := s.lines[s.row]
	if c.width == 0 {
		if n := min(s.col, len(row)); n > 0 && len(row[n-1].cluster) < maxCluster {
			row[n-1].cluster += c.cluster
		}
		return
	}
	if s.col+c.width > maxColumns {
		return
	}
	if gap := s.col - len(row); gap > 0 {
		if s.gaps += gap; s.gaps > maxGaps {
			s.col = len(row)
		}
	}
	for len(row) < s.col+c.width {
		row = append(row, cell{})
	}
	row[s.col] = c
	for i := 1; i < c.width; i++ {
		row[s.col+i] = cell{width: -1, cluster: " ", style: c.style}
	}
	if end := s.col + c.width; end < len(row) && row[end].width < 0 {
		row[end] = cell{} // the other half of an overwritten character
	}
	s.lines[s.row] = row
	s.col += c.width
}

// down moves the cursor down, and creates a line if it was in the last one.
func (s *screen) down() {
	s.row++
	if s.row == len(s.lines) {
		s.lines = append(s.lines, nil)
	}
	if len(s.lines) > maxOutputLines {
		s.lines = s.lines[1:]
		s.row--
		s.dropped++
	}
}

// control executes a sequence that begins with CSI.
func (s *screen) control(seq string, p *ansi.Parser) {
	if apply(&s.style, seq, p) {
		return
	}
	n, _ := p.Param(0, -1)
	some := min(max(n, 1), maxColumns) // the distance: at least 1
	row := s.lines[s.row]
	switch p.Command() { // which includes a prefix or an intermediate character, such as those of modes
	case 'A':
		s.row = max(s.row-some, 0)
	case 'B':
		s.row = min(s.row+some, len(s.lines)-1)
	case 'C':
		s.col = min(s.col+some, maxColumns)
	case 'D':
		s.col = max(s.col-some, 0)
	case 'G':
		s.col = some - 1
	case 'K':
		if n <= 0 {
			s.lines[s.row] = row[:min(s.col, len(row))]
		} else if n > 1 {
			s.lines[s.row] = nil
		}
	case 'J':
		if n <= 0 {
			s.lines[s.row] = row[:min(s.col, len(row))]
			s.lines = s.lines[:s.row+1]
		} else if n > 1 {
			s.lines, s.row, s.col = [][]cell{nil}, 0, 0 // programs clear the screen to draw a new one from its beginning
		}
	}
}

// terminalBlock draws the output of a terminal of a tool call.
func (p *painter) terminalBlock(id acp.TerminalID, width int) []line {
	if p.terminal == nil {
		return line{{"terminal " + label(string(id)), p.dim}}.wrap(width, nil)
	}
	out, ok := p.terminal(id)
	if !ok {
		return line{{"terminal " + label(string(id)) + ": not known", p.dim}}.wrap(width, nil)
	}
	return p.output(out, width)
}

// maxLiveLines is how many lines of the output of a running command a folded tool call shows.
const maxLiveLines = 6

// lastOutput draws the last n lines of a known terminal.
func (p *painter) lastOutput(id acp.TerminalID, n, width int) []line {
	if p.terminal == nil {
		return nil
	}
	out, ok := p.terminal(id)
	if !ok {
		return nil
	}
	lines, _ := terminalLines(out.Text)
	lines = lines[max(0, len(lines)-n):]
	for i, l := range lines {
		lines[i] = l.clip(width, p.marks.ellipsis)
	}
	return lines
}

// output draws an output.
func (p *painter) output(o Output, width int) []line {
	lines, dropped := terminalLines(o.Text)
	var out []line
	if o.Command != "" {
		out = append(out, line{{"$ " + label(o.Command), p.dim}}.wrap(width, nil)...)
	}
	if o.Truncated || dropped > 0 {
		out = append(out, line{{"(the beginning is omitted)", p.dim}}.wrap(width, nil)...)
	}
	for _, l := range lines {
		out = append(out, l.wrap(width, nil)...)
	}
	if o.Status != "" {
		s := p.dim
		if o.Failed {
			s = p.bad
		}
		out = append(out, line{{label(o.Status), s}}.wrap(width, nil)...)
	}
	return out
}

// PermissionText is a permission question as lines.
type PermissionText struct {
	// Head are the facts and the notes, each after its name. No line of it begins with the agent's own words.
	Head []string
	// Facts is how many lines of Head are facts.
	Facts int
	// Body is what the agent says about it, after a bar: the content, the input, and what was cut off in Head.
	Body []string
}

// Permission draws a permission question with all that is known of the tool call. There may be many lines.
func Permission(q *view.Question, t *Theme, terminal func(acp.TerminalID) (Output, bool), width int) PermissionText {
	p := newPainter(t)
	p.terminal = terminal
	var head, body []line
	said := func(name string, lines []line) {
		if len(body) > 0 {
			body = append(body, nil)
		}
		if name != "" {
			body = append(body, line{{name, p.dim}})
		}
		body = append(body, wrapAll(line{{p.marks.vertical + " ", p.dim}}, lines, width)...)
	}
	var cut []func() // draws in the body what was cut off in the head
	add := func(f view.Fact) {
		name, value := p.dim, p.text
		switch f.Name {
		case "$", "later $":
			name, value = p.warn, p.strong
		case "warning", "changed":
			value = p.warn
		}
		lines := strings.Split(f.Text, "\n")
		code := [][]span{}
		if strings.HasSuffix(f.Name, "$") {
			for _, l := range p.highlight(f.Text, "bash", "") {
				code = append(code, l)
			}
		}
		for i, text := range lines {
			l := line{{f.Name + " ", name}, {text, value}}
			if len(code) == len(lines) && line(code[i]).text() == text {
				l = append(l[:1], line(code[i]).applyStyle(value)...)
			}
			if i > 0 {
				l[0].text = "  "
			}
			if f.Said && (len(text) > maxLabel || l.width() > width) {
				cut = append(cut, func() { said("The whole "+f.Name, []line{{{text, p.text}}}) })
				head = append(head, l.clip(width, p.marks.ellipsis))
				continue
			}
			head = append(head, l.cut(width)...)
		}
	}
	for _, f := range q.Facts {
		add(f)
	}
	facts := len(p.strings(head, width))
	for _, f := range q.Notes {
		add(f)
	}

	for _, content := range q.Call.Content {
		said("", p.toolContent(content, maxDiffAll, max(width-2, 1)))
	}
	commanded := slices.ContainsFunc(q.Facts,
		func(f view.Fact) bool { return f.Name == "$" || strings.HasPrefix(f.Name, "input") })
	if len(q.Call.RawInput) > 0 && !commanded { // whose input is a fact, member by member
		if len(body) > 0 {
			body = append(body, nil)
		}
		body = append(body, p.json("Input", q.Call.RawInput, width)...)
	}
	for _, draw := range cut {
		draw()
	}
	return PermissionText{p.strings(head, width), facts, p.strings(body, width)}
}

// cut breaks a line like wrap, but wherever there is no more room, so that all spaces can be seen. Each line except the
// first begins with two spaces.
func (l line) cut(width int) []line {
	const before = "  "
	if width <= len(before)+2 {
		return l.wrap(width, nil)
	}
	var out []line
	var b builder
	for c := range l.cells {
		if b.width+c.width > width {
			out = append(out, b.take())
			b.add(before, len(before), style{})
		}
		b.add(c.cluster, c.width, c.style)
	}
	return append(out, b.take())
}
