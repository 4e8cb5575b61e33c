package tui

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
)

// permissionDialog asks for permission.
type permissionDialog struct {
	asked   *talk.Question
	purpose string // of the tool call, in words
	q       *view.Question
	keys    []string // of the options
	marked  int      // the option that Enter chooses; -1 until the user has selected one
	answer  func(acp.PermissionOptionID)

	// The visible options; all of them while end is 0. Others cannot be chosen by their keys.
	first, end int
	drawn      *permissionLines
	changed    bool        // the facts have changed since they were seen
	notes      []view.Fact // with the rules
	rules      bool        // what is remembered is shown as rules
}

// permissionKeys are the keys of the kinds of options. The first option of a kind has the key; all options have a
// number.
var permissionKeys = map[acp.PermissionOptionKind]string{
	acp.PermissionOptionKindAllowOnce:    "y",
	acp.PermissionOptionKindAllowAlways:  "Y",
	acp.PermissionOptionKindRejectOnce:   "n",
	acp.PermissionOptionKindRejectAlways: "N",
}

func newPermission(asked *talk.Question, answer func(acp.PermissionOptionID)) *permissionDialog {
	d := &permissionDialog{asked: asked, marked: -1, answer: answer, drawn: &permissionLines{}}
	d.purpose = cmp.Or(purposes[asked.Call.Kind], "use a tool")
	if commands, _ := view.Commands(asked.Call.RawInput); len(commands) > 0 {
		d.purpose = purposes[acp.ToolKindExecute]
	}
	used := map[string]bool{}
	for _, o := range asked.Options {
		key := permissionKeys[o.Kind]
		if used[key] {
			key = ""
		}
		used[key] = true
		d.keys = append(d.keys, key)
	}
	return d
}

func (d *permissionDialog) choices() []choice { return nil } // a view.Console asks in the plain mode

func (d *permissionDialog) init(m *Model) tea.Cmd {
	session := ""
	if c := m.chatOf(d.asked.Session); c != nil && len(m.chats) > 1 {
		session = c.name()
	}
	d.q = d.asked.View(session)
	if m.plain {
		return nil
	}
	d.notes = d.q.Notes
	if session == "" && strings.EqualFold(d.asked.Agent, m.agentName()) { // the title names it
		d.notes = slices.DeleteFunc(d.notes, func(f view.Fact) bool { return f.Name == "agent" })
	}
	d.remembers(false)
	return nil
}

// remembers shows what would be remembered in words, or as rules.
func (d *permissionDialog) remembers(rules bool) {
	d.rules, d.q.Notes = rules, nil
	for i, f := range d.notes {
		inWords := i+1 < len(d.notes) && d.notes[i+1].Name == talk.RuleNote
		switch {
		case f.Name == talk.RuleNote && rules:
			f.Name = d.notes[i-1].Name
		case f.Name == talk.RuleNote, inWords && rules:
			continue
		case inWords && f.Text != "the same":
			f.Text += " (r: rule)"
		}
		d.q.Notes = append(d.q.Notes, f)
	}
	d.drawn.drawn = nil
}

// purposes are the kinds of tools in the title of the question. A command is a command, whatever kind the agent says.
var purposes = map[acp.ToolKind]string{
	acp.ToolKindExecute: "run a command", acp.ToolKindEdit: "change a file", acp.ToolKindDelete: "delete a file",
	acp.ToolKindMove: "move a file",
	acp.ToolKindRead: "read a file", acp.ToolKindSearch: "search", acp.ToolKindFetch: "fetch a page",
}

func (d *permissionDialog) title(m *Model) string {
	return m.agentName() + " asks for permission to " + d.purpose
}

func (d *permissionDialog) body(m *Model, width int) []string {
	text := d.drawn.text(m, d, width)
	if len(text.Body) == 0 {
		return text.Head
	}
	return slices.Concat(text.Head, []string{""}, text.Body)
}

// saw notes how many lines of the body have been visible.
func (d *permissionDialog) saw(m *Model, lines int) {
	extent := view.Begun
	switch text := d.drawn.drawn; {
	case lines >= len(text.Head):
		extent = view.Whole
	case lines >= text.Facts:
		extent = view.AllFacts
	}
	d.q.Shown(extent, m.now())
}

// fit chooses the options that are visible in a dialog of the given height: all of them, unless they would not fit or
// would leave no room for the request; otherwise those around the selected one.
func (d *permissionDialog) fit(height int) {
	n := len(d.asked.Options)
	if n <= min(height-2, max(4, height/2)) {
		d.first, d.end = 0, n
		return
	}
	room := max(1, min(height/2, height-3))
	d.first = max(0, min(d.first, d.marked), d.marked-room+1)
	d.end = min(n, d.first+room)
}

// shows reports whether an option is visible.
func (d *permissionDialog) shows(i int) bool {
	return i >= d.first && i < d.end || d.end == 0 && i < len(d.asked.Options)
}

// foot returns the options with their keys.
func (d *permissionDialog) foot(m *Model, width int) []string {
	var lines []string
	for i, c := range d.q.Choices {
		if !d.shows(i) {
			continue
		}
		key := strconv.Itoa(i + 1)
		if d.keys[i] != "" {
			key += " or " + d.keys[i]
		}
		if width < 40 && d.keys[i] != "" {
			key = d.keys[i]
		}
		text, color := c.Text, m.style.error
		if strings.HasPrefix(string(c.Option.Kind), "allow") {
			color = m.style.good
		}
		if c.Contradicts {
			text = m.style.error.Render(text)
		}
		mark := "  "
		if i == d.marked {
			mark = "> "
		}
		lines = append(lines, fit(mark+color.Bold(true).Render(key)+"  "+text, width))
	}
	if n := len(d.asked.Options); n > len(lines) {
		lines = append(lines, m.style.dim.Render(fit(fmt.Sprintf("Up, Down: %d to %d of %d answers", d.first+1, d.end, n),
			width)))
	}
	return lines
}

func (d *permissionDialog) key(m *Model, q *question, k tea.KeyPressMsg) (bool, tea.Cmd) {
	key := k.String()
	if n, err := strconv.Atoi(key); err == nil && n >= 1 && d.shows(n-1) {
		return d.choose(m, q, n-1), nil
	}
	for i, own := range d.keys {
		if own != "" && own == key && d.shows(i) {
			return d.choose(m, q, i), nil
		}
	}
	switch key {
	case "down", "tab":
		d.marked = (d.marked + 1) % len(d.asked.Options)
	case "up", "shift+tab":
		d.marked = (max(0, d.marked) - 1 + len(d.asked.Options)) % len(d.asked.Options)
	case "enter":
		if d.marked >= 0 {
			return d.choose(m, q, d.marked), nil
		}
	case "k":
		q.scroll = max(0, q.scroll-1)
	case "j":
		q.scroll++
	case "r":
		d.remembers(!d.rules)
	case "ctrl+c":
		return false, m.interruptQuestion(q)
	}
	return false, nil
}

func (d *permissionDialog) paste(*Model, string) (bool, tea.Cmd) { return false, nil }

// answerShown is how long an answer is shown.
const answerShown = 5 * time.Second

// choose answers with an option.
func (d *permissionDialog) choose(m *Model, q *question, i int) bool {
	o, err := d.q.Choose(i, m.now())
	switch {
	case errors.Is(err, view.ErrUnseen), errors.Is(err, view.ErrUnseenNote):
		m.tell(q.session, fmt.Sprintf("Scroll with PgDn: %v.", err))
		return false
	case err != nil:
		m.tell(q.session, fmt.Sprintf("Not answered: %v.", err))
		return false
	}
	d.chosen(m, q, o)
	return true
}

func (d *permissionDialog) chosen(m *Model, q *question, o *acp.PermissionOption) {
	d.answer(o.OptionID)
	m.tellBriefly(q.session, "Answered: "+view.NewChoice(*o).Text, answerShown)
}
