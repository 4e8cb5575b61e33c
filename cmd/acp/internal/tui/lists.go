package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"charm.land/bubbles/v2/textinput"
	"charm.land/bubbles/v2/viewport"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/sahilm/fuzzy"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
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

// The keys of each screen. The help, the docs and the plain mode are generated from these tables.

// binding is an action that the user can trigger.
type binding struct {
	// name is its name in the list of all actions and, after a colon, in the plain mode; it is in neither if the name
	// is "".
	name  string
	keys  []string
	about string
	run   func(m *Model) tea.Cmd
}

// actions returns the actions of a chat.
func actions() []binding {
	return []binding{
		{"", []string{"enter"}, "send the prompt, or queue it while a turn is running; with an empty editor, send the " +
			"queued prompts", (*Model).submit},
		{"steer", []string{"alt+s"}, "send the text into the running turn, if the agent accepts it", (*Model).steer},
		{"", []string{"ctrl+j", "shift+enter", "alt+enter"}, "insert a line break", (*Model).newline},
		{"", []string{"up", "down"}, "at the first and the last line: earlier and later prompts", nil},
		{"", []string{"tab"}, "complete a command or a file", nil},
		{"cancel", []string{"ctrl+c"}, "cancel the turn; twice: quit", (*Model).interrupt},
		{"quit", []string{"ctrl+d"}, "quit, if the editor is empty", (*Model).endOfInput},
		{"answer", []string{"ctrl+g"}, "go to the next question, of any session", (*Model).goToQuestion},
		{"actions", []string{"ctrl+p"}, "choose from all actions", (*Model).showActions},
		{"help", []string{"?", "f1"}, "show the keys (? on an empty editor)", (*Model).showHelp},
		{"sessions", []string{"ctrl+s"}, "show the open sessions", (*Model).showOverview},
		{"new", []string{"ctrl+n"}, "open a new session", (*Model).newSession},
		{"stored", []string{"ctrl+r"}, "list the agent's stored sessions, and open one", (*Model).showStored},
		{"last", []string{"alt+l"}, "open the last session of this directory", (*Model).continueLast},
		{"next", []string{"alt+right"}, "show the next session", func(m *Model) tea.Cmd { return m.turnTo(1) }},
		{"previous", []string{"alt+left"}, "show the previous session", func(m *Model) tea.Cmd { return m.turnTo(-1) }},
		{"rename", nil, "rename the session", ofChat((*Model).renameChat)},
		{"fork", nil, "continue in a copy of the session", ofChat((*Model).forkChat)},
		{"close", nil, "close the session", ofChat((*Model).closeThis)},
		{"delete", nil, "delete the session", ofChat((*Model).deleteThis)},
		{"export", []string{"alt+e"}, "write the session to a file", ofChat((*Model).exportChat)},
		{"mode", []string{"alt+m"}, "choose the mode", showSetting(acp.SessionConfigOptionCategoryMode)},
		{"next-mode", []string{"shift+tab"}, "switch to the next mode", ofChat((*Model).nextMode)},
		{"model", []string{"ctrl+l"}, "choose the model", showSetting(acp.SessionConfigOptionCategoryModel)},
		{"options", []string{"alt+o"}, "choose options", ofChat((*Model).showOptions)},
		{"queue", []string{"alt+q"}, "move the last queued prompt back to the editor", ofChat((*Model).unqueue)},
		{"", []string{"pgup", "pgdown"}, "scroll", nil},
		{"bottom", []string{"ctrl+end", "alt+end"}, "scroll to the end", ofChat((*Model).bottom)},
		{"", []string{"alt+up", "alt+down"}, "select the item above or below", nil},
		{"fold", []string{"ctrl+o"}, "fold or unfold the selected item, or the last one", ofChat((*Model).fold)},
		{"fold-all", []string{"alt+t"}, "fold or unfold all thoughts and tool calls", ofChat((*Model).foldAll)},
		{"find", []string{"alt+f"}, "find text in the conversation", ofChat((*Model).find)},
		{"plan", []string{"ctrl+t"}, "fold or unfold the plan", (*Model).foldPlan},
		{"copy", []string{"alt+y"}, "copy the selected message, or the agent's last one", (*Model).copyMessage},
		{"mouse", []string{"alt+r"}, "leave the mouse to the terminal, to select text; again: scroll with it",
			(*Model).toggleMouse},
		{"changes", []string{"alt+w"}, "show all diffs of the last turn", ofChat((*Model).showDiffs)},
		{"notes", []string{"alt+n"}, "show earlier notices, and the agent's standard error", (*Model).showNotes},
		{"findings", []string{"alt+v"}, "show violations of the protocol (with --check)", (*Model).showFindings},
		{"login", nil, "log in", (*Model).login},
		{"restart", nil, "restart the agent and restore its sessions", (*Model).restart},
		{"suspend", []string{"ctrl+z"}, "suspend the program", (*Model).suspend},
	}
}

// screenKeys are the keys of one screen, as the help shows them.
type screenKeys struct {
	screen string
	keys   []binding
}

// allKeys returns the keys of all screens.
func allKeys() []screenKeys {
	return []screenKeys{
		{"Conversation", actions()},
		{"Permission request", []binding{
			{"", []string{"y"}, "allow once", nil},
			{"", []string{"Y"}, "allow always", nil},
			{"", []string{"n"}, "reject once", nil},
			{"", []string{"N"}, "reject always", nil},
			{"", []string{"1-9"}, "choose an option by its number", nil},
			{"", []string{"up", "down", "enter"}, "select an option, and choose it", nil},
			{"", []string{"j", "k", "pgup", "pgdown"}, "scroll the request", nil},
			{"", []string{"r"}, "show what \"always\" remembers as a rule, or in words", nil},
			{"", []string{"esc"}, "leave it open and go back to the editor", nil},
			{"", passing, "other screens, as in the conversation", nil},
			{"", []string{"ctrl+c"}, "cancel the turn", nil},
		}},
		{"Form", []binding{
			{"", []string{"enter"}, "go to the next field; on the last one, send the form", nil},
			{"", []string{"shift+tab"}, "go to the previous field", nil},
			{"", []string{"space", "x"}, "choose a value", nil},
			{"", []string{"ctrl+x"}, "decline", nil},
			{"", []string{"ctrl+q"}, "cancel: neither accept nor decline", nil},
			{"", []string{"esc"}, "leave it open and go back to the editor", nil},
		}},
		{"Page to open", []binding{
			{"", []string{"o"}, "open it in the browser", nil},
			{"", []string{"y"}, "accept, and open it yourself", nil},
			{"", []string{"n", "ctrl+x"}, "decline", nil},
			{"", []string{"ctrl+q"}, "cancel: neither accept nor decline", nil},
			{"", []string{"esc"}, "leave it open and go back to the editor", nil},
		}},
		{"Open sessions", overviewKeys()},
		{"Stored sessions", storedKeys()},
		{"Lists", []binding{
			{"", []string{"up", "down", "pgup", "pgdown"}, "select", nil},
			{"", []string{"enter"}, "choose", nil},
			{"", []string{"esc"}, "go back", nil},
		}},
	}
}

// key handles a key.
func (m *Model) key(k tea.KeyPressMsg) tea.Cmd {
	defer func() { m.lastKey = m.now() }()
	if k.String() == "ctrl+g" { // on every screen
		return tea.Batch(m.goToQuestion(), m.rearm())
	}
	if top := m.top(); top != nil {
		if k.String() == "ctrl+c" {
			m.pop(top)
			return nil
		}
		return top.key(m, k)
	}
	if q := m.question(); m.takes(q) {
		return m.questionKey(q, k)
	}
	if m.question() != nil && k.Text != "" && m.editor().empty() && m.now().Sub(m.lastAnswer) < quiet {
		return m.rearm() // pressed twice, or just before the next question: it is not text
	}
	cmd := m.chatKey(k)
	if m.question() != nil { // waits until nothing is being typed
		cmd = tea.Batch(cmd, m.rearm())
	}
	return cmd
}

// chatKey handles a key that no layer and no question handles.
func (m *Model) chatKey(k tea.KeyPressMsg) tea.Cmd {
	e := m.editor()
	if e.completionKey(m, k) {
		return nil
	}
	key := k.String()
	switch key {
	case "?", "ctrl+d":
		if !e.empty() {
			return e.key(m, k)
		}
	case "pgup", "pgdown":
		lines := max(1, m.height/2)
		if key == "pgup" {
			lines = -lines
		}
		if m.chat != nil {
			m.chat.draw.Scroll(lines)
		}
		return nil
	case "alt+up", "alt+down":
		switch {
		case m.chat == nil:
		case key == "alt+up":
			m.chat.draw.Prev()
		default:
			m.chat.draw.Next()
		}
		return nil
	case "esc":
		if m.chat != nil {
			m.chat.note = ""
			m.chat.draw.Mark(-1)
		}
		m.note = ""
		return nil
	}
	if run := bound(key); run != nil {
		return run(m)
	}
	return e.key(m, k)
}

// bound returns the action of a key, or nil.
func bound(key string) func(*Model) tea.Cmd {
	return action(func(b *binding) bool { return b.run != nil && slices.Contains(b.keys, key) })
}

// named returns the action with a name, or nil.
func named(name string) func(*Model) tea.Cmd {
	return action(func(b *binding) bool { return name != "" && b.name == name })
}

// action returns the first action that is wanted, or nil.
func action(wanted func(*binding) bool) func(*Model) tea.Cmd {
	for _, b := range actions() {
		if wanted(&b) {
			return b.run
		}
	}
	return nil
}

// paste handles pasted text. It never answers a permission request.
func (m *Model) paste(text string) tea.Cmd {
	takes := m.takes(m.question()) // only while nothing else is being typed
	m.lastKey = m.now()
	if top := m.top(); top != nil {
		return top.paste(m, text)
	}
	if takes {
		if taken, cmd := m.question().dialog.paste(m, text); taken {
			return cmd
		}
	}
	m.editor().paste(m, text)
	return nil
}

// suspend stops the program until the shell continues it.
func (m *Model) suspend() tea.Cmd {
	stop, whyNot := suspension(m.plain)
	if whyNot != "" {
		m.tellHere(whyNot)
	}
	return stop
}

// endOfInput quits.
func (m *Model) endOfInput() tea.Cmd { return m.leave(nil) }

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

// settingOf returns the name of the current value of the first setting of a category; "" if there is none.
func settingOf(s *view.Snapshot, category acp.SessionConfigOptionCategory) string {
	if set := talk.SettingOf(talk.Settings(s), category); set != nil {
		return valueOf(set)
	}
	return ""
}

// valueOf returns the name of the current value of a setting.
func valueOf(s *talk.Setting) string {
	for _, v := range s.Values {
		if v.ID == s.Current {
			return clean(v.Name)
		}
	}
	return clean(s.Current)
}

// showSetting asks the user to choose the value of the first setting of a category.
func showSetting(category acp.SessionConfigOptionCategory) func(*Model) tea.Cmd {
	return ofChat(func(m *Model, c *chat) tea.Cmd {
		set := talk.SettingOf(talk.Settings(c.snapshot), category)
		if set == nil {
			m.tellHere("The agent does not let you choose a " + string(category) + ".")
			return nil
		}
		return m.showValues(c, set)
	})
}

// nextMode switches to the next mode.
func (m *Model) nextMode(c *chat) tea.Cmd {
	set := talk.SettingOf(talk.Settings(c.snapshot), acp.SessionConfigOptionCategoryMode)
	if set == nil || len(set.Values) == 0 {
		m.tellHere("The agent has no modes.")
		return nil
	}
	i := slices.IndexFunc(set.Values, func(v talk.Choice) bool { return v.ID == set.Current })
	return m.set(c, set, set.Values[(i+1)%len(set.Values)].ID)
}

// showOptions asks the user to choose a setting and then its value.
func (m *Model) showOptions(c *chat) tea.Cmd {
	if len(talk.Settings(c.snapshot)) == 0 {
		m.tellHere("The agent has no options.")
		return nil
	}
	p := newPicker("Options", nil, func(m *Model, _ *picker, it item) tea.Cmd {
		set := it.value.(*talk.Setting)
		if set.Boolean {
			return m.set(c, set, map[string]string{"true": "false", "false": "true"}[set.Current])
		}
		return m.showValues(c, set)
	})
	p.refresh = func(*Model) []item {
		items := []item{}
		for _, set := range talk.Settings(c.snapshot) {
			items = append(items, item{label: clean(set.Name) + ": " + valueOf(&set), about: clean(set.About), value: &set})
		}
		return items
	}
	m.push(p)
	return nil
}

// showValues asks the user to choose the value of a setting.
func (m *Model) showValues(c *chat, set *talk.Setting) tea.Cmd {
	if len(set.Values) == 0 {
		m.tellHere("This client does not support this kind of option.")
		return nil
	}
	var items []item
	for _, v := range set.Values {
		items = append(items, item{label: clean(v.Name), about: clean(v.About), current: v.ID == set.Current, value: v.ID})
	}
	return pick(m, clean(set.Name), items, func(m *Model, value string) tea.Cmd { return m.set(c, set, value) })
}

func (m *Model) set(c *chat, set *talk.Setting, value string) tea.Cmd {
	return m.call(clean(set.Name)+" was not changed",
		func(ctx context.Context) error { return c.session.Set(ctx, set, value) }, nil)
}

// commandAbout describes a command of the agent.
func commandAbout(c acp.AvailableCommand) string {
	about := clean(c.Description)
	if input, ok := c.Input.Get(); ok {
		if v, ok := input.Variant.(*acp.AvailableCommandInputUnstructured); ok && v.Hint != "" {
			about = "[" + clean(v.Hint) + "] " + about
		}
	}
	return about
}

// showActions asks the user to choose from all actions.
func (m *Model) showActions() tea.Cmd {
	var items []item
	for _, a := range actions() {
		if a.name == "" || a.run == nil {
			continue
		}
		label := a.about
		if len(a.keys) > 0 {
			label += fmt.Sprintf(" (%s)", keyName(a.keys[0]))
		}
		items = append(items, item{label: a.name + ": " + label, value: a.run})
	}
	return pick(m, "Actions", items, func(m *Model, run func(*Model) tea.Cmd) tea.Cmd { return run(m) })
}
