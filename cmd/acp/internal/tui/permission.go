package tui

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/cmd/acp/internal/draw"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
)

// permissionDialog asks for permission.
type permissionDialog struct {
	asked  *talk.Question
	keys   []string // of the options
	marked int      // the option that Enter chooses; -1 until the user has selected one
	answer func(acp.PermissionOptionID)

	// The visible options; all of them while end is 0. Others cannot be chosen by their keys.
	first, end int
	drawn      *permissionLines
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

func (d *permissionDialog) choices() []choice {
	var choices []choice
	for i, o := range d.asked.Options {
		text, _ := draw.OptionText(o)
		choices = append(choices, choice{strconv.Itoa(i + 1), text})
	}
	return choices
}

func (d *permissionDialog) init(*Model) tea.Cmd { return nil }

func (d *permissionDialog) title(m *Model) string { return m.agentName() + " asks for permission" }

func (d *permissionDialog) body(m *Model, width int) []string {
	text := d.drawn.text(m, d.asked, width)
	if m.plain {
		return text.Lines()
	}
	return slices.Concat(text.Head, []string{""}, text.Body)
}

// unseen says what has to be visible before an option can be chosen: the command and the paths, and what an "always"
// option remembers. Rejecting once requires nothing.
func (d *permissionDialog) unseen(q *question, o acp.PermissionOption) string {
	text := d.drawn.drawn
	switch {
	case text == nil || o.Kind == acp.PermissionOptionKindRejectOnce:
	case q.seen < text.Facts:
		return "Scroll to see the whole command and all paths first: PgDn."
	case q.seen < len(text.Head) && o.Kind != acp.PermissionOptionKindAllowOnce:
		return "Scroll to see what is remembered first: PgDn."
	}
	return ""
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
	for i, o := range d.asked.Options {
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
		text, contradicts := draw.OptionText(o)
		if contradicts {
			text = m.style.error.Render(text)
		}
		mark := "  "
		if i == d.marked {
			mark = "> "
		}
		lines = append(lines, fit(mark+m.style.key.Render(key)+"  "+text, width))
	}
	if n := len(d.asked.Options); n > len(lines) {
		lines = append(lines, m.style.dim.Render(fit(fmt.Sprintf("Up, Down: %d to %d of %d answers", d.first+1, d.end, n), width)))
	}
	if len(lines) == 0 {
		lines = append(lines, fit("The agent offers no answer. Ctrl-C cancels the turn.", width))
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
		d.marked = (d.marked + 1) % max(1, len(d.asked.Options))
	case "up", "shift+tab":
		d.marked = (max(0, d.marked) - 1 + len(d.asked.Options)) % max(1, len(d.asked.Options))
	case "enter":
		if d.marked >= 0 && d.marked < len(d.asked.Options) {
			return d.choose(m, q, d.marked), nil
		}
	case "k":
		q.scroll = max(0, q.scroll-1)
	case "j":
		q.scroll++
	case "d":
		return false, m.toggleDiffs()
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
	o := d.asked.Options[i]
	if missing := d.unseen(q, o); missing != "" {
		m.tell(q.session, missing)
		return false
	}
	d.answer(o.OptionID)
	text, _ := draw.OptionText(o)
	m.tellBriefly(q.session, "Answered: "+text, answerShown)
	return true
}
