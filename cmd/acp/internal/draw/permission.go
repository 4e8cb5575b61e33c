package draw

import (
	"slices"
	"strings"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
)

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
	if terminal != nil {
		p.terminal = func(id string) (Output, bool) { return terminal(acp.TerminalID(id)) }
	}
	var head, body []line
	said := func(name string, lines []line) {
		if len(body) > 0 {
			body = append(body, nil)
		}
		if name != "" {
			body = append(body, line{{name, p.dim}})
		}
		bar := line{{p.marks.vertical + " ", p.dim}}
		for _, l := range lines {
			body = append(body, wrapBehind(bar, bar, l, width)...)
		}
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
