package tui

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/cmd/acp/internal/draw"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/plain"
)

// styles are the styles of what this package draws itself.
type styles struct {
	dark                                                     bool
	dim, key, marked, asking, accent, error, good, rule, bar lipgloss.Style
}

func newStyles(dark bool) *styles {
	color := lipgloss.LightDark(dark)
	fg := func(light, dark string) lipgloss.Style {
		return lipgloss.NewStyle().Foreground(color(lipgloss.Color(light), lipgloss.Color(dark)))
	}
	return &styles{
		dark:   dark,
		dim:    fg("242", "245"),
		key:    lipgloss.NewStyle().Bold(true),
		marked: lipgloss.NewStyle().Background(color(lipgloss.Color("253"), lipgloss.Color("238"))).Bold(true),
		asking: fg("5", "13").Bold(true),
		accent: fg("27", "39"),
		error:  fg("160", "203"),
		good:   fg("28", "78"),
		rule:   fg("250", "238"),
		bar:    fg("240", "248").Background(color(lipgloss.Color("255"), lipgloss.Color("235"))),
	}
}

// fit cuts a line to a width.
func fit(line string, width int) string { return ansi.Truncate(line, max(1, width), "…") }

// wrap breaks text into lines of a width.
func wrap(text string, width int) []string {
	return strings.Split(ansi.Wrap(text, max(1, width), ""), "\n")
}

// rule returns a horizontal line with a title.
func (m *Model) rule(style lipgloss.Style, title string, width int) string {
	title = fit(title, max(1, width-4))
	rest := max(0, width-4-ansi.StringWidth(title))
	if title == "" {
		return style.Render(strings.Repeat("─", width))
	}
	if width < 6 {
		return style.Render(fit(title, width))
	}
	return style.Render("─ " + title + " " + strings.Repeat("─", rest+1))
}

// moreLines says how many lines are above and below the visible ones.
func moreLines(above, below int) string {
	switch {
	case above == 0:
		return fmt.Sprintf("… PgDn: %d more below", below)
	case below == 0:
		return fmt.Sprintf("… PgUp: %d more above", above)
	default:
		return fmt.Sprintf("… PgDn: %d more below, PgUp: %d above", below, above)
	}
}

// agentName returns the agent's own name, or else the user's name for it.
func (m *Model) agentName() string {
	if m.client != nil {
		if info, ok := m.client.Initialized().AgentInfo.Get(); ok {
			if title := info.Title.Value(); title != "" {
				return clean(title)
			}
			if info.Name != "" {
				return clean(info.Name)
			}
		}
	}
	return clean(m.opts.Talk.Agent.Name)
}

// resize recalculates the layout after a height has changed.
func (m *Model) resize() {
	if m.width == 0 {
		return
	}
	m.editor().resize(m.width, max(1, min(8, m.height/3)))
	if m.chat != nil {
		m.chat.draw.Resize(m.width)
	}
}

// View draws the screen.
func (m *Model) View() tea.View {
	v := tea.NewView("")
	v.AltScreen = true
	v.MouseMode = tea.MouseModeCellMotion
	if m.opts.NoMouse {
		v.MouseMode = tea.MouseModeNone
	}
	v.ReportFocus = m.opts.Notify == NotifyUnfocused
	v.WindowTitle = m.windowTitle()
	if m.width == 0 || m.height == 0 {
		return v
	}
	lines, cursor := m.draw()
	for i, l := range lines {
		lines[i] = ansi.Truncate(l, m.width, "")
	}
	v.Content = strings.Join(lines, "\n")
	v.Cursor = cursor
	return v
}

// smallHeight is the height below which a question uses the whole screen.
const smallHeight = 18

// draw returns the lines of the screen and the position of the cursor.
func (m *Model) draw() ([]string, *tea.Cursor) {
	status := m.statusView(m.width)
	height := m.height - len(status)
	if height < 1 {
		return status[:m.height], nil
	}
	top := m.top()
	if top != nil && top.full() {
		return append(pad(top.view(m, m.width, height), height), status...), nil
	}
	if len(m.layers) > 1 { // a panel over a full screen
		under := m.layers[len(m.layers)-2]
		if under.full() {
			panel := clip(top.view(m, m.width, max(1, height*3/4)), height)
			lines := append(pad(under.view(m, m.width, max(1, height-len(panel))), height-len(panel)), panel...)
			return append(lines, status...), nil
		}
	}

	var panel []string // takes the keys, or is about to
	var cursor *tea.Cursor
	q := m.question()
	switch {
	case top != nil:
		panel = clip(top.view(m, m.width, max(1, height*2/3)), height)
	case q != nil:
		room := height - 2 // one line for the conversation, and the editor
		switch {
		case height >= smallHeight:
			room = room * 3 / 4
		case m.takes(q): // the editor then takes no keys
			room = height
		}
		panel = m.questionView(q, m.width, min(max(3, room), height))
	}
	rest := height - len(panel)

	var editor []string
	if top == nil && rest > 0 {
		editor = clip(m.editor().view(m, m.width), rest)
		if len(editor) > 0 && m.focused == nil && !m.takes(q) {
			cursor = m.editor().cursor()
		}
		rest -= len(editor)
	}
	var note, queue, plan []string
	if rest > 2 {
		note = clip(m.noteView(m.width), min(3, rest-2))
		rest -= len(note)
	}
	if rest > 3 && top == nil {
		queue = m.queueView(m.width, min(4, rest/3))
		rest -= len(queue)
	}
	if rest > 5 {
		plan = m.planView(m.width, rest/3)
		rest -= len(plan)
	}
	lines := m.transcriptView(m.width, rest)
	lines = append(lines, plan...)
	lines = append(lines, queue...)
	lines = append(lines, note...)
	lines = append(lines, panel...)
	if cursor != nil {
		cursor.Y += len(lines)
	}
	lines = append(lines, editor...)
	return append(lines, status...), cursor
}

// pad returns exactly height lines.
func pad(lines []string, height int) []string {
	lines = clip(lines, height)
	for len(lines) < height {
		lines = append(lines, "")
	}
	return lines
}

// clip keeps the last lines, which show the keys.
func clip(lines []string, height int) []string {
	if len(lines) > height {
		lines = lines[len(lines)-max(0, height):]
	}
	return lines
}

// transcriptView draws the conversation.
func (m *Model) transcriptView(width, height int) []string {
	if height < 1 {
		return nil
	}
	if m.chat == nil {
		text := "Starting " + m.agentName() + "…"
		if m.client != nil {
			text = "No session: Ctrl-N opens one."
		}
		return pad([]string{m.style.dim.Render(fit(text, width))}, height)
	}
	if s := m.chat.snapshot; s.First() == s.End() && m.chat.cancel == nil {
		return clip(pad(m.startView(width), height), height)
	}
	return m.chat.draw.Lines(height)
}

// startView says what is running and where, until the conversation begins.
func (m *Model) startView(width int) []string {
	s := m.chat.snapshot
	info := m.client.Initialized().AgentInfo.Value()
	lines := []string{"", "  " + m.style.accent.Bold(true).Render(m.agentName()) + " " +
		m.style.dim.Render(clean(info.Version)), ""}
	for _, fact := range [][3]string{
		{"agent", clean(cmp.Or(m.command(), m.opts.Talk.Agent.Name)), ""}, {"in", clean(m.chat.session.Cwd()), ""},
		{"mode", settingOf(s, acp.SessionConfigOptionCategoryMode), "Shift-Tab"},
		{"model", settingOf(s, acp.SessionConfigOptionCategoryModel), "Ctrl-L"},
	} {
		if fact[1] != "" {
			lines = append(lines, "  "+m.style.dim.Render(fmt.Sprintf("%-6s", fact[0]))+" "+fact[1]+"  "+
				m.style.dim.Render(fact[2]))
		}
	}
	var keys strings.Builder
	for _, k := range [][2]string{{"/", "commands"}, {"@", "files"}, {"?", "keys"}} {
		keys.WriteString("  " + m.style.key.Render(k[0]) + " " + m.style.dim.Render(k[1]) + " ")
	}
	lines = append(lines, "", keys.String())
	for i, l := range lines {
		lines[i] = fit(l, width)
	}
	return lines
}

// noteView draws the last message to the user.
func (m *Model) noteView(width int) []string {
	note := m.note
	if m.chat != nil && m.chat.note != "" {
		note = m.chat.note
	}
	if note == "" {
		return nil
	}
	style := m.style.dim
	if m.chat != nil && m.chat.failed != nil {
		style = m.style.error
	}
	var lines []string
	for _, l := range wrap(note, width) {
		lines = append(lines, style.Render(l))
	}
	if len(lines) > 3 {
		lines = append(lines[:2], style.Render(fit(lines[2], width-1)+"…"))
	}
	return lines
}

// queueView draws the queued prompts.
func (m *Model) queueView(width, height int) []string {
	queue := m.typed
	if m.chat != nil {
		queue = m.chat.queue
	}
	if len(queue) == 0 || height < 1 {
		return nil
	}
	var lines []string
	for i, p := range queue {
		if len(lines) == height-1 && i < len(queue)-1 || height == 1 && len(queue) > 1 {
			lines = append(lines, m.style.dim.Render(fit(fmt.Sprintf("⏳ %d more queued (Alt-Q: edit)", len(queue)-i), width)))
			break
		}
		lines = append(lines, m.style.dim.Render(fit("⏳ "+clean(p.text), width)))
	}
	return lines
}

// statusView draws the status line: the state and what needs attention on the left, what is running on the right. In a
// narrow terminal, the most important parts are kept.
func (m *Model) statusView(width int) []string {
	type segment struct {
		text  string
		rank  int // the highest is dropped first
		right bool
	}
	var segments []segment
	add := func(rank int, right bool, text string) {
		if text != "" { // the agent's names must not push everything else out
			segments = append(segments, segment{ansi.Truncate(text, max(20, width/2), "…"), rank, right})
		}
	}
	state, color := m.state()
	add(0, false, state)
	add(1, false, m.attention())
	if m.opts.Talk.Findings != nil {
		add(3, false, plural(len(m.findings), "finding"))
	}
	add(5, true, m.agentName())
	if m.client != nil && m.client.Protocol() == 2 {
		add(5, true, "protocol 2")
	}
	if c := m.chat; c != nil {
		s := c.snapshot
		if usage, ok := s.Usage.Get(); ok {
			add(2, false, draw.Usage(m.drawn, usage))
		}
		add(4, true, settingOf(s, acp.SessionConfigOptionCategoryModel))
		add(3, true, settingOf(s, acp.SessionConfigOptionCategoryMode))
	}
	add(6, true, "? help")
	for {
		var texts [2][]string
		worst := 0
		for i, s := range segments {
			side := 0
			if s.right {
				side = 1
			}
			texts[side] = append(texts[side], s.text)
			if s.rank >= segments[worst].rank {
				worst = i
			}
		}
		left, right := " "+strings.Join(texts[0], " · "), strings.Join(texts[1], " · ")
		room := width - ansi.StringWidth(left) - ansi.StringWidth(right) - 1
		if room >= 2 || len(segments) <= 1 {
			rest, whole := strings.CutPrefix(fit(left, width), " "+state)
			if !whole {
				state, rest = rest, ""
			}
			bar := m.style.bar
			gap := lipgloss.NewStyle().Background(bar.GetBackground()) // so that blank cells are the same as erased ones
			line := gap.Render(" ") + bar.Foreground(color.GetForeground()).Bold(true).Render(state) + bar.Render(rest) +
				gap.Render(strings.Repeat(" ", max(0, room))) + bar.Render(right) + gap.Render(" ")
			return []string{ansi.Truncate(line, width, "")}
		}
		segments = append(segments[:worst], segments[worst+1:]...)
	}
}

// plural returns a number of things.
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// state returns the state in a word, and its color.
func (m *Model) state() (string, lipgloss.Style) {
	switch {
	case m.connection == dead:
		return "agent ended", m.style.error
	case m.connection == lost:
		return "reconnecting", m.style.error
	case m.client == nil || m.connection == connecting:
		return "starting", m.style.accent
	case m.chat == nil:
		return "no session", m.style.dim
	case m.questionOf(m.chat) != nil:
		return "asks", m.style.asking
	case m.chat.cancel != nil && m.chat.cancelled:
		return "cancelling", m.style.accent
	case m.chat.cancel != nil:
		return "working " + m.now().Sub(m.chat.began).Truncate(time.Second).String(), m.style.accent
	case m.chat.failed != nil:
		return "failed", m.style.error
	}
	return "ready", m.style.good
}

// attention says which other sessions need the user's attention.
func (m *Model) attention() string {
	var texts []string
	if n := len(m.questions); n > 1 || n == 1 && m.question() == nil {
		texts = append(texts, fmt.Sprintf("?%d", n))
	}
	done, failed, running := 0, 0, 0
	for _, c := range m.chats {
		switch {
		case c == m.chat:
		case c.cancel != nil:
			running++
		case c.failed != nil && c.unread:
			failed++
		case c.unread:
			done++
		}
	}
	for _, n := range []struct {
		count int
		mark  string
	}{{failed, "!"}, {done, "✓"}, {running, "●"}} {
		if n.count > 0 {
			texts = append(texts, fmt.Sprintf("%s%d", n.mark, n.count))
		}
	}
	return strings.Join(texts, " ")
}

// windowTitle returns the title for the terminal's window.
func (m *Model) windowTitle() string {
	title := "acp " + m.agentName()
	if m.chat != nil {
		title = m.chat.name() + " - " + title
	}
	if len(m.questions) > 0 {
		title = "? " + title
	}
	return title
}

// wheel scrolls.
func (m *Model) wheel(msg tea.MouseWheelMsg) {
	lines := 3
	if msg.Button == tea.MouseWheelUp {
		lines = -3
	}
	q := m.question()
	switch top := m.top().(type) {
	case *pages:
		top.port.SetYOffset(top.port.YOffset() + lines)
		return
	case nil:
		if !m.takes(q) {
			q = nil
		}
	default: // the wheel does not move the selection of a list
		return
	}
	if q != nil {
		q.scroll = max(0, q.scroll+lines) // the view limits it
	} else if m.chat != nil {
		m.chat.draw.Scroll(lines)
	}
}

// maxLabel is how many bytes of a text are shown as one line.
const maxLabel = 2000

// clean returns a text of the agent as one harmless line.
func clean(text string) string {
	if len(text) > maxLabel {
		text = strings.ToValidUTF8(text[:maxLabel], "") + "…"
	}
	return strings.Join(strings.Fields(plain.Screen(text)), " ")
}

// cleanText returns a text of the agent, of any number of lines, made harmless.
func cleanText(text string) string {
	return strings.ReplaceAll(plain.Screen(text), "\t", "    ")
}

// visibly returns a text of the agent as one line without changing its meaning: line breaks are shown as \n.
func visibly(text string) string { return strings.ReplaceAll(cleanText(text), "\n", `\n`) }

// harmless reports whether a text can be used as typed: it contains only visible characters.
func harmless(text string) bool { return plain.Screen(text) == text }

// theme returns the theme of package draw.
func (m *Model) theme() *draw.Theme {
	if m.style.dark {
		return draw.Dark()
	}
	return draw.Light()
}

// terminalOutput returns the output of a terminal. It is safe for concurrent use.
func (m *Model) terminalOutput(id acp.TerminalID) (draw.Output, bool) {
	return terminalOutput(m.last(), id)
}

func terminalOutput(client *talk.Client, id acp.TerminalID) (draw.Output, bool) {
	if client == nil {
		return draw.Output{}, false
	}
	t, ok := client.Terminal(id)
	if !ok {
		return draw.Output{}, false
	}
	o := draw.Output{Text: string(t.Output), Truncated: t.Dropped > 0}
	if t.Own { // the title of the call need not say it
		o.Command = t.Command
	}
	if t.Ended {
		o.Status, o.Failed = exitWords(t.Exit)
	}
	return o, true
}

// exitWords describes how a command ended.
func exitWords(exit acp.WaitForTerminalExitResponse) (words string, failed bool) {
	if signal, ok := exit.Signal.Get(); ok {
		return "ended by " + signal, true
	}
	if code, ok := exit.ExitCode.Get(); ok {
		return fmt.Sprintf("exit status %d", code), code != 0
	}
	return "ended", false
}

// output handles new output of a terminal.
func (m *Model) output(msg outputMsg) {
	if c := m.chatOf(msg.session); c != nil {
		c.draw.TerminalChanged(msg.terminal)
	}
}

// planView draws the plan above the queued prompts.
func (m *Model) planView(width, height int) []string {
	if m.chat == nil || height < 1 {
		return nil
	}
	working := m.chat.cancel != nil // what is done and what comes next is of interest while the agent works
	switch finished := draw.PlanFinished(m.chat.snapshot); {
	case (working && !finished) != m.planToggled:
	case finished && !working:
		return nil
	default:
		height = 1
	}
	lines := draw.Plan(m.drawn, m.chat.snapshot, width, height)
	if len(lines) == 0 || height < 2 {
		return lines
	}
	return append([]string{m.rule(m.style.rule, "", width)}, lines[:min(len(lines), height-1)]...)
}

// permissionLines are the lines of a permission request as last drawn.
type permissionLines struct {
	width int
	theme *draw.Theme
	drawn *draw.PermissionText
}

func (p *permissionLines) text(m *Model, d *permissionDialog, width int) *draw.PermissionText {
	changed := d.q.Update()
	d.changed = d.changed || changed
	if p.drawn == nil || changed || p.width != width || p.theme != m.drawn {
		drawn := draw.Permission(d.q, m.drawn, m.terminalOutput, width)
		p.drawn = &drawn
		p.width, p.theme = width, m.drawn
	}
	return p.drawn
}

// fold folds or unfolds the selected item, or the last one that can be folded.
func (m *Model) fold(c *chat) tea.Cmd {
	for i := c.snapshot.End() - 1; c.draw.Marked() == nil && i >= c.snapshot.First(); i-- {
		if item := c.snapshot.Item(i); item != nil && draw.Foldable(item) {
			c.draw.Mark(i)
		}
	}
	c.draw.Toggle()
	return nil
}

// foldAll folds or unfolds everything.
func (m *Model) foldAll(c *chat) tea.Cmd {
	c.draw.ToggleAll()
	return nil
}

// foldPlan folds or unfolds the plan.
func (m *Model) foldPlan() tea.Cmd {
	m.planToggled = !m.planToggled
	return nil
}

// bottom shows the end of the conversation.
func (m *Model) bottom(c *chat) tea.Cmd {
	c.draw.Bottom()
	return nil
}

// find asks for a text and goes to it.
func (m *Model) find(c *chat) tea.Cmd {
	m.push(newLine("Find (again: the previous item)", c.lastSearch, func(m *Model, text string) tea.Cmd {
		c.lastSearch = text
		if !c.draw.Find(text) && text != "" {
			m.tell(c.id, "Not found: "+text)
		}
		return nil
	}))
	return nil
}

// showDiffs shows all diffs of the last turn together.
func (m *Model) showDiffs(c *chat) tea.Cmd {
	turn := 0
	for t := range c.snapshot.Turns() {
		turn = t.Number
	}
	return m.showPages("Diffs of the last turn", false, func(m *Model, width int) []string {
		lines, n := draw.TurnDiffs(m.drawn, c.snapshot, turn, width)
		if n == 0 {
			return []string{"The agent has not reported any changes in the last turn."}
		}
		return lines
	})
}

// findingLines returns the lines of a finding and its evidence.
func findingLines(m *Model, f conformance.Finding, width int) []string {
	lines := wrap(m.style.key.Render(clean(cmp.Or(f.Rule, "note")))+" "+clean(f.String()), width)
	for _, e := range f.Evidence {
		for _, l := range wrap(clean(fmt.Sprint(e)), width-4) {
			lines = append(lines, m.style.dim.Render("    "+l))
		}
	}
	return append(lines, "")
}

// message returns the text of the marked message, or of the agent's last one; "" if there is none.
func (c *chat) message() string {
	if c == nil {
		return ""
	}
	if marked := c.draw.Marked(); marked != nil {
		if message, ok := marked.Variant.(*view.Message); ok {
			return message.Text()
		}
		return ""
	}
	for i := c.snapshot.End() - 1; i >= c.snapshot.First(); i-- {
		if item := c.snapshot.Item(i); item != nil {
			if message, ok := item.Variant.(*view.Message); ok && message.Role == view.Agent {
				return message.Text()
			}
		}
	}
	return ""
}

// copyMessage copies a message to the terminal's clipboard, using OSC 52.
func (m *Model) copyMessage() tea.Cmd {
	text := m.chat.message()
	switch {
	case m.plain:
		m.tellHere("There is no screen to copy from: select the text.")
		return nil
	case text == "":
		m.tellHere("There is no message to copy.")
		return nil
	}
	m.tellBriefly(m.here(), "Copied the message, if the terminal allows it.", answerShown)
	return tea.SetClipboard(plain.Screen(text)) // a shell, into which it may be pasted, would obey ESC[201~
}

// toggleMouse leaves the mouse to the terminal, or takes it over again.
func (m *Model) toggleMouse() tea.Cmd {
	m.opts.NoMouse = !m.opts.NoMouse
	text := "The mouse scrolls again."
	if m.opts.NoMouse {
		text = "The mouse selects text; press Alt-R to scroll with it again."
	}
	m.tellBriefly(m.here(), text, answerShown)
	return nil
}

// Notify says when to ring the terminal's bell: at the end of a turn, at a question, and when the agent has ended.
type Notify string

// The values of Notify.
const (
	NotifyUnfocused Notify = "unfocused" // while the terminal reports that its window does not have the focus
	NotifyAlways    Notify = "always"
	NotifyNever     Notify = "never"
)

// bellPause is the minimum time between two bells: many questions may arrive at once.
const bellPause = time.Second

// notify rings the bell.
func (m *Model) notify() {
	now := m.now()
	switch m.opts.Notify {
	case NotifyAlways:
	case NotifyUnfocused:
		if !m.unfocused {
			return
		}
	default:
		return
	}
	if !m.lastBell.IsZero() && now.Sub(m.lastBell) < bellPause {
		return
	}
	m.lastBell = now
	if m.plain {
		m.bell()
		return
	}
	m.pending = append(m.pending, tea.Raw("\a"))
}
