package tui

// The keys of each screen. The help, the docs and the plain mode are generated from these tables.

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/acpgo/sdk/acp"
)

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
		step := 1
		if key == "alt+up" {
			step = -1
		}
		if m.chat != nil {
			m.chat.draw.step(step)
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
	if bound(key) {
		return m.action(key)
	}
	return e.key(m, k)
}

// bound reports whether a key has an action.
func bound(key string) bool {
	return slices.ContainsFunc(actions(), func(a binding) bool { return a.run != nil && slices.Contains(a.keys, key) })
}

// action runs the action of a key.
func (m *Model) action(key string) tea.Cmd {
	for _, a := range actions() {
		if a.run != nil && slices.Contains(a.keys, key) {
			return a.run(m)
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

// endOfInput quits.
func (m *Model) endOfInput() tea.Cmd { return m.leave(nil) }
