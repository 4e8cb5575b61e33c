package tui

import (
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
)

// question waits for the user's answer.
type question struct {
	session acp.SessionID // "" if it belongs to no session
	dialog  dialog
	drawn   time.Time // zero before it was drawn
	left    bool      // the user has gone back to the editor, and needs the key for questions to return
	scroll  int       // the first visible line of the body
	seen    int       // how many lines of the body, from the first one on, have been visible
	room    int       // how many lines are visible
	width   int       // the width for which they were drawn
}

// dialog is the content of a question and the way to answer it.
type dialog interface {
	// title is one line.
	title(m *Model) string
	// body returns the lines that can be scrolled.
	body(m *Model, width int) []string
	// foot returns the lines that are always visible: the keys.
	foot(m *Model, width int) []string
	// key handles a key, and reports whether the question is answered.
	key(m *Model, q *question, k tea.KeyPressMsg) (answered bool, cmd tea.Cmd)
	// paste handles pasted text, and reports whether it used it.
	paste(m *Model, text string) (taken bool, cmd tea.Cmd)
	// choices returns the answers with the keys that give them; nil if the answer is not a choice.
	choices() []choice
	// init is called when the question is added.
	init(m *Model) tea.Cmd
}

// quiet is how long a question must have been visible without any key being pressed before it takes keys by itself, so
// that a key meant for something else does not answer it.
const quiet = view.Delay

// addQuestion adds a question.
func (m *Model) addQuestion(q *question) tea.Cmd {
	m.questions = append(m.questions, q)
	m.resize()
	m.notify()
	return tea.Batch(q.dialog.init(m), m.rearm())
}

// rearm redraws the screen when a question begins to take keys.
func (m *Model) rearm() tea.Cmd {
	if m.plain {
		return nil
	}
	return tea.Tick(quiet+frame, func(time.Time) tea.Msg { return armedMsg{} })
}

// withdraw removes a question that has been answered or that the agent has withdrawn.
func (m *Model) withdraw(q *question) {
	m.questions = slices.DeleteFunc(m.questions, func(o *question) bool { return o == q })
	if m.focused == q {
		m.focused = nil
	}
	m.resize()
}

// dismiss withdraws all questions of a kind.
func (m *Model) dismiss(kind func(dialog) bool) {
	for _, q := range slices.Clone(m.questions) {
		if kind(q.dialog) {
			m.withdraw(q)
		}
	}
}

// question returns the first question of the visible chat or of no session; nil if there is none.
func (m *Model) question() *question {
	return m.questionOf(m.chat)
}

// questionOf returns the first question of a chat or of no session.
func (m *Model) questionOf(c *chat) *question {
	for _, q := range m.questions {
		if m.chatOf(q.session) == nil || c != nil && q.session == c.id {
			return q
		}
	}
	return nil
}

// takes reports whether a question takes the keys: the user has gone to it, or it has been visible long enough while
// nothing was typed, and the editor has no unfinished input.
func (m *Model) takes(q *question) bool {
	if q == nil || m.height < 2 { // then nothing of it is visible
		return false
	}
	if m.focused == q {
		return true
	}
	now := m.now()
	return !q.left && !q.drawn.IsZero() && now.Sub(q.drawn) >= quiet && now.Sub(m.lastKey) >= quiet && m.editor().empty()
}

// goToQuestion handles the key that goes to the next question, from every screen.
func (m *Model) goToQuestion() tea.Cmd {
	if len(m.questions) == 0 {
		m.tellHere("There is no question.")
		return nil
	}
	q := m.question()
	if q == nil || q == m.focused { // the question of another session
		at := max(0, slices.Index(m.questions, m.focused))
		for i := range m.questions {
			other := m.questions[(at+i)%len(m.questions)]
			if c := m.chatOf(other.session); c != nil && c != m.chat {
				m.show(c)
				q = m.question()
				break
			}
		}
	}
	m.layers = nil
	m.focus(q)
	return nil
}

// focus gives the keys to a question.
func (m *Model) focus(q *question) {
	m.focused, q.left = q, false
}

// passing lists keys that a question leaves to the chat: those that open other screens. None of them types text.
var passing = []string{"ctrl+s", "alt+right", "alt+left", "f1", "alt+n", "alt+w"}

// questionKey passes a key to a question that takes keys.
func (m *Model) questionKey(q *question, k tea.KeyPressMsg) tea.Cmd {
	m.focused = q
	switch k.String() {
	case "esc":
		m.focused, q.left = nil, true
		return nil
	case "pgup":
		q.scroll = max(0, q.scroll-max(1, q.room))
		return nil
	case "pgdown":
		q.scroll += max(1, q.room) // the view limits it
		return nil
	}
	if slices.Contains(passing, k.String()) {
		return m.action(k.String())
	}
	answered, cmd := q.dialog.key(m, q, k)
	if answered {
		m.withdraw(q)
		m.lastAnswer = m.now()
		return tea.Batch(cmd, m.rearm())
	}
	return cmd
}

// questionView draws a question in at most height lines. What does not fit can be scrolled; the keys are always
// visible.
func (m *Model) questionView(q *question, width, height int) []string {
	takes := m.takes(q)
	if q.drawn.IsZero() {
		q.drawn = m.now()
	}
	style := m.style.asking
	title := q.dialog.title(m)
	if n := len(m.questions); n > 1 {
		title += m.count(n)
	}
	if d, ok := q.dialog.(*permissionDialog); ok {
		d.fit(height)
	}
	foot := q.dialog.foot(m, width)
	if !takes {
		foot = append([]string{m.style.dim.Render(fit("Ctrl-G: answer", width))}, foot...)
	}
	// In a very small terminal, the keys take precedence, then the request, then the title.
	var lines []string
	room := height - len(foot)
	if room > 1 {
		lines = append(lines, m.rule(style, title, width))
		room--
	}
	if d, ok := q.dialog.(*formDialog); ok {
		d.room = max(1, room)
	}
	body, more := q.dialog.body(m, width), false
	if d, ok := q.dialog.(*permissionDialog); ok && d.changed {
		d.changed, q.scroll, q.seen = false, 0, 0
	}
	if more = len(body) > room && room > 1; more {
		room--
	}
	q.room = max(0, min(room, len(body)))
	q.scroll = min(q.scroll, len(body)-q.room)
	if q.width != width {
		q.width, q.seen = width, 0
	}
	if q.scroll <= q.seen {
		q.seen = max(q.seen, q.scroll+q.room)
	}
	if d, ok := q.dialog.(*permissionDialog); ok {
		d.saw(m, q.seen)
	}
	lines = append(lines, body[q.scroll:q.scroll+q.room]...)
	if !more && room > len(body) {
		lines = append(lines, "")
	}
	if more {
		lines = append(lines, m.style.dim.Render(fit(moreLines(q.scroll, len(body)-q.room-q.scroll), width)))
	}
	return clip(append(lines, foot...), height)
}
