package tui

import (
	"fmt"
	"slices"
	"strings"

	"charm.land/bubbles/v2/textinput"
	"charm.land/bubbles/v2/viewport"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/sahilm/fuzzy"
)

// item is something to choose. Its texts are clean.
type item struct {
	label, about string
	current      bool // it is the current value
	value        any
	// same identifies the item among new items, so that it stays selected; nil if it has no identity.
	same any
}

// list is a list of items, with those that match a filter and a selected one.
type list struct {
	items  []item
	filter string
	found  []int // indexes of items
	at     int   // in found
	top    int   // the first that is shown
}

// maxFound is how many matches are kept.
const maxFound = 500

// match finds the items that match the filter, the best first.
func (l *list) match() {
	l.found, l.at, l.top = nil, 0, 0
	if l.filter == "" {
		for i := range min(len(l.items), maxFound) {
			l.found = append(l.found, i)
			if l.items[i].current {
				l.at = i
			}
		}
		return
	}
	for _, found := range fuzzy.FindFrom(l.filter, labels(l.items)) {
		if l.found = append(l.found, found.Index); len(l.found) == maxFound {
			return
		}
	}
}

// labels are the texts of items that are compared with a filter.
type labels []item

func (l labels) String(i int) string { return l[i].label }
func (l labels) Len() int            { return len(l) }

// current returns the selected item.
func (l *list) current() (item, bool) {
	if l.at >= len(l.found) {
		return item{}, false
	}
	return l.items[l.found[l.at]], true
}

// move moves the selection.
func (l *list) move(key string) {
	n := len(l.found)
	if n == 0 {
		return
	}
	switch key {
	case "up":
		l.at = (l.at + n - 1) % n
	case "down":
		l.at = (l.at + 1) % n
	case "pgup":
		l.at = max(0, l.at-8)
	case "pgdown":
		l.at = min(n-1, l.at+8)
	case "home":
		l.at = 0
	case "end":
		l.at = n - 1
	}
}

// view draws the items around the selected one.
func (l *list) view(m *Model, width, height int) []string {
	if len(l.found) == 0 {
		return []string{m.style.dim.Render(fit("  nothing", width))}
	}
	height = max(1, min(height, len(l.found)))
	l.top = max(min(l.top, l.at), l.at-height+1, 0)
	l.top = min(l.top, len(l.found)-height)
	var lines []string
	for i := l.top; i < l.top+height; i++ {
		it := l.items[l.found[i]]
		mark := "  "
		if it.current {
			mark = "* "
		}
		text := mark + it.label
		if it.about != "" && ansi.StringWidth(text)+3 < width {
			text += "  " + m.style.dim.Render(it.about)
		}
		text = fit(text, width)
		if i == l.at {
			text = m.style.marked.Render(ansi.Strip(text) + strings.Repeat(" ", max(0, width-ansi.StringWidth(text))))
		}
		lines = append(lines, text)
	}
	return lines
}

// picker is a layer from which the user chooses.
type picker struct {
	title string
	list  list
	input textinput.Model // the filter
	// letters says that letters are keys and not input for the filter.
	letters bool
	whole   bool // the whole screen
	// sudden says that the user did not ask for the layer, so keys typed before it appeared are not meant for it.
	sudden bool
	// keys are additional keys.
	keys []binding
	// refresh returns the items as they are now; nil keeps them. It may be nil.
	refresh func(m *Model) []item
	choose  func(m *Model, p *picker, it item) tea.Cmd
}

func newPicker(title string, items []item, choose func(m *Model, p *picker, it item) tea.Cmd) *picker {
	p := &picker{title: title, list: list{items: items}, input: textinput.New(), choose: choose}
	p.input.Prompt = "filter: "
	p.input.Focus()
	p.list.match()
	return p
}

// pick asks the user to choose an item, whose value then goes to f.
func pick[T any](m *Model, title string, items []item, f func(m *Model, value T) tea.Cmd) tea.Cmd {
	m.push(newPicker(title, items, func(m *Model, p *picker, it item) tea.Cmd {
		m.pop(p)
		return f(m, it.value.(T))
	}))
	return nil
}

func (p *picker) full() bool { return p.whole }

func (p *picker) key(m *Model, k tea.KeyPressMsg) tea.Cmd {
	key := k.String()
	for _, b := range p.keys {
		if b.run == nil {
			continue
		}
		if slices.Contains(b.keys, key) {
			return b.run(m)
		}
	}
	switch key {
	case "esc":
		m.pop(p)
		return nil
	case "enter":
		if it, ok := p.list.current(); ok && p.choose != nil {
			return p.choose(m, p, it)
		}
		return nil
	case "up", "down", "pgup", "pgdown":
		p.list.move(key)
		return nil
	}
	if p.letters {
		if key == "q" {
			m.pop(p)
		}
		return nil
	}
	var cmd tea.Cmd
	p.input, cmd = p.input.Update(k)
	p.filtered()
	return cmd
}

// filtered applies a filter that may have changed.
func (p *picker) filtered() {
	if filter := p.input.Value(); filter != p.list.filter {
		p.list.filter = filter
		p.list.match()
	}
}

func (p *picker) paste(_ *Model, text string) tea.Cmd {
	if !p.letters {
		p.input.SetValue(p.input.Value() + clean(text))
		p.input.CursorEnd()
		p.filtered()
	}
	return nil
}

// set replaces the items, and keeps the selection at the same item or else at the same place.
func (p *picker) set(items []item) {
	at, top := p.list.at, p.list.top
	marked, _ := p.list.current()
	p.list.items = items
	p.list.match()
	p.list.at = max(0, min(at, len(p.list.found)-1))
	p.list.top = top
	if marked.same == nil {
		return
	}
	for at, i := range p.list.found {
		if items[i].same == marked.same {
			p.list.at = at
		}
	}
}

func (p *picker) view(m *Model, width, height int) []string {
	if p.refresh != nil {
		if items := p.refresh(m); items != nil {
			p.set(items)
		}
	}
	lines := []string{m.rule(m.style.asking, p.title, width)}
	if !p.letters {
		p.input.SetWidth(max(1, width-len(p.input.Prompt)-1))
		lines = append(lines, fit(p.input.View(), width))
	}
	var foot []string
	if len(p.keys) > 0 {
		for _, b := range p.keys {
			if b.run == nil {
				continue
			}
			text := m.style.key.Render(keyName(b.keys[0])) + " " + b.name
			if last := len(foot) - 1; last >= 0 && ansi.StringWidth(foot[last]+text)+2 <= width {
				foot[last] += "  " + text
			} else {
				foot = append(foot, fit(text, width))
			}
		}
		if len(foot) > height/3 {
			foot = foot[:max(1, height/3)]
		}
	}
	if n := len(p.list.found); n < len(p.list.items) && !p.letters {
		lines = append(lines, m.style.dim.Render(fit(fmt.Sprintf("%d of %d", n, len(p.list.items)), width)))
	}
	lines = append(lines, p.list.view(m, width, height-len(lines)-len(foot))...)
	if p.whole {
		for len(lines)+len(foot) < height {
			lines = append(lines, "")
		}
	}
	return append(lines, foot...)
}

// keyName returns a key as people write it.
func keyName(key string) string {
	parts := strings.Split(key, "+")
	for i, part := range parts {
		switch part {
		case "pgup":
			part = "PgUp"
		case "pgdown":
			part = "PgDn"
		case "esc", "enter", "tab", "up", "down", "left", "right", "space", "home", "end", "ctrl", "alt", "shift", "f1":
			part = strings.ToUpper(part[:1]) + part[1:]
		default:
			if len(parts) > 1 {
				part = strings.ToUpper(part)
			}
		}
		parts[i] = part
	}
	return strings.Join(parts, "-")
}

// line is a layer that asks for one line of text.
type line struct {
	title string
	input textinput.Model
	done  func(m *Model, text string) tea.Cmd
}

func newLine(title, text string, done func(m *Model, text string) tea.Cmd) *line {
	l := &line{title: title, input: textinput.New(), done: done}
	l.input.Prompt = "> "
	l.input.SetValue(text)
	l.input.CursorEnd()
	l.input.Focus()
	return l
}

func (l *line) full() bool { return false }

func (l *line) key(m *Model, k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "esc":
		m.pop(l)
		return nil
	case "enter":
		m.pop(l)
		return l.done(m, l.input.Value())
	}
	var cmd tea.Cmd
	l.input, cmd = l.input.Update(k)
	return cmd
}

func (l *line) paste(_ *Model, text string) tea.Cmd {
	l.input.SetValue(l.input.Value() + clean(text))
	l.input.CursorEnd()
	return nil
}

func (l *line) view(m *Model, width, _ int) []string {
	l.input.SetWidth(max(1, width-3))
	return []string{m.rule(m.style.asking, l.title, width), fit(l.input.View(), width)}
}

// pages is a layer of text that can be scrolled.
type pages struct {
	title string
	text  func(m *Model, width int) []string
	port  viewport.Model
	end   bool // show the end first
}

// showPages shows a text, which is made again for each frame: from its beginning, or its end.
func (m *Model) showPages(title string, end bool, text func(m *Model, width int) []string) tea.Cmd {
	m.push(&pages{title, text, viewport.New(), end})
	return nil
}

func (p *pages) full() bool { return true }

func (p *pages) key(m *Model, k tea.KeyPressMsg) tea.Cmd {
	var cmd tea.Cmd
	switch k.String() {
	case "home":
		p.port.GotoTop()
	case "end":
		p.port.GotoBottom()
	case "esc", "q", "enter", "?":
		m.pop(p)
	default:
		p.port, cmd = p.port.Update(k)
	}
	return cmd
}

func (p *pages) paste(*Model, string) tea.Cmd { return nil }

func (p *pages) view(m *Model, width, height int) []string {
	all := p.text(m, width)
	p.port.SetWidth(width)
	p.port.SetHeight(max(1, height-2))
	p.port.SetContentLines(all)
	if p.end {
		p.port.GotoBottom()
		p.end = false
	}
	lines := append([]string{m.rule(m.style.asking, p.title, width)}, strings.Split(p.port.View(), "\n")...)
	if at, n := p.port.YOffset(), p.port.VisibleLineCount(); n < len(all) {
		lines = append(lines, m.style.dim.Render(fit(fmt.Sprintf("%d to %d of %d lines  Esc: back", at+1, at+n, len(all)),
			width)))
	}
	return lines
}
