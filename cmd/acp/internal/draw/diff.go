package draw

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
)

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
	out := line{{label(d.Path), p.strong}, {"  " + words, p.dim}}.wrap(width, line{{"  ", style{}}})

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
