package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/cmd/acp/internal/history"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
)

// editor is the input field for prompts.
type editor struct {
	area   textarea.Model
	pasted []string // long texts, for which the prompt has placeholders
	place  int      // in the history, counted from its end; 0 is the draft
	draft  prompt   // what was typed before the user went to the history
	popup  *popup   // completions; nil if there are none
}

func newEditor(m *Model) *editor {
	e := &editor{area: textarea.New()}
	e.area.Prompt = "> "
	e.area.ShowLineNumbers = false
	e.area.CharLimit = 0
	e.area.DynamicHeight = true
	e.area.MinHeight = 1
	e.area.MaxContentHeight = 100_000
	e.area.EndOfBufferCharacter = ' '
	e.area.SetVirtualCursor(false)
	// Alt with arrows, and with letters that readline uses, have other functions here.
	e.area.KeyMap.WordForward.SetKeys("ctrl+right")
	e.area.KeyMap.WordBackward.SetKeys("ctrl+left", "alt+b")
	style := e.area.Styles()
	style.Focused.CursorLine, style.Focused.Base = lipgloss.NewStyle(), lipgloss.NewStyle()
	e.area.SetStyles(style)
	e.area.Focus()
	if m.width > 0 {
		e.resize(m.width, max(1, min(8, m.height/3)))
	}
	return e
}

func (e *editor) resize(width, height int) {
	if e.area.MaxHeight != height || e.area.Width() != max(4, width)-2 {
		e.area.MaxHeight = height
		e.area.SetWidth(max(4, width))
	}
}

func (e *editor) empty() bool { return e.area.Length() == 0 }

// longPaste is the number of bytes or lines from which pasted text is shown as a placeholder.
const (
	longPaste      = 2000
	longPasteLines = 20
)

// paste inserts pasted text, none of which is handled as a key.
func (e *editor) paste(m *Model, text string) {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if lines := strings.Count(text, "\n") + 1; len(text) >= longPaste || lines >= longPasteLines {
		e.pasted = append(e.pasted, text)
		text = pasteMark(len(e.pasted), lines)
	}
	e.area.InsertString(text)
	e.complete(m)
	m.resize()
}

// pasteMark is the placeholder for a long pasted text.
func pasteMark(n, lines int) string { return fmt.Sprintf("[pasted text %d: %d lines]", n, lines) }

// key handles a key.
func (e *editor) key(m *Model, k tea.KeyPressMsg) tea.Cmd {
	switch key := k.String(); {
	case key == "up" && e.area.Line() == 0 && e.area.LineInfo().RowOffset == 0:
		e.recall(m, 1)
	case key == "down" && e.area.Line() == e.area.LineCount()-1 && e.lastRow():
		e.recall(m, -1)
	default:
		var cmd tea.Cmd
		e.area, cmd = e.area.Update(k)
		if k.Text != "" || key == "backspace" {
			e.complete(m)
		}
		m.resize()
		return cmd
	}
	return nil
}

// lastRow reports whether the cursor is in the last row of its line.
func (e *editor) lastRow() bool {
	info := e.area.LineInfo()
	return info.RowOffset >= info.Height-1
}

// recall moves in the history of prompts, or back to the draft.
func (e *editor) recall(m *Model, step int) {
	place := e.place + step
	if place < 0 || place > len(m.history) {
		return
	}
	if e.place == 0 {
		e.draft = prompt{e.area.Value(), e.pasted}
	}
	e.place = place
	p := e.draft
	if place > 0 {
		p = m.history[len(m.history)-place]
	}
	e.area.SetValue(p.text)
	e.pasted = slices.Clip(p.pasted)
	e.area.MoveToEnd()
	m.resize()
}

// sentPrompts are the prompts that were sent, the newest last.
type sentPrompts []prompt

func (h *sentPrompts) add(p prompt) {
	if n := len(*h); n > 0 && (*h)[n-1].text == p.text && slices.Equal((*h)[n-1].pasted, p.pasted) {
		return
	}
	*h = append(*h, p)
}

// keep stores a sent prompt, also for later runs.
func (m *Model) keep(p prompt) tea.Cmd {
	m.history.add(p)
	if m.opts.Prompts == nil {
		return nil
	}
	return m.tasks.cmd(func(context.Context) tea.Msg {
		if err := m.opts.Prompts.Add(history.Prompt{Text: p.text, Pasted: p.pasted}); err != nil {
			return eventMsg{Kind: talk.Warning, Err: fmt.Errorf("prompts cannot be stored: %w", err)}
		}
		return nil
	})
}

// earlier inserts the prompts of earlier runs before those of this one.
func (m *Model) earlier() tea.Cmd {
	if m.opts.Prompts == nil {
		return nil
	}
	return m.tasks.cmd(func(context.Context) tea.Msg {
		prompts, err := m.opts.Prompts.Load()
		if err != nil {
			return eventMsg{Kind: talk.Warning, Err: fmt.Errorf("the prompts of earlier runs cannot be read: %w", err)}
		}
		return doMsg(func(m *Model) tea.Cmd {
			all := sentPrompts{}
			for _, p := range prompts {
				all.add(prompt{p.Text, p.Pasted})
			}
			for _, p := range m.history {
				all.add(p)
			}
			m.history = all
			return nil
		})
	})
}

// take removes the prompt from the editor and returns it.
func (e *editor) take() prompt {
	p := prompt{text: e.area.Value(), pasted: e.pasted}
	e.area.Reset()
	e.pasted, e.place, e.draft, e.popup = nil, 0, prompt{}, nil
	return p
}

// set puts a prompt into the editor.
func (e *editor) set(p prompt) {
	e.area.SetValue(p.text)
	e.area.MoveToEnd()
	e.pasted, e.place, e.popup = p.pasted, 0, nil
}

func (e *editor) view(m *Model, width int) []string {
	lines := []string{m.rule(m.style.rule, "", width)}
	if e.popup != nil {
		lines = append(e.popup.view(m, width, max(1, min(8, m.height/3))), lines...)
	}
	for l := range strings.SplitSeq(e.area.View(), "\n") {
		lines = append(lines, fit(l, width))
	}
	return lines
}

// cursor returns the position of the cursor, counted from the first line of the view.
func (e *editor) cursor() *tea.Cursor {
	c := e.area.Cursor()
	if c == nil {
		return nil
	}
	c.Y++ // the rule
	if e.popup != nil {
		c.Y += e.popup.height
	}
	return c
}

// submit sends what is typed, or queues it.
func (m *Model) submit() tea.Cmd {
	e := m.editor()
	if strings.TrimSpace(e.area.Value()) == "" {
		if m.chat != nil {
			m.chat.failed, m.chat.cancelled = nil, m.chat.cancelled && m.chat.cancel != nil
			return m.next(m.chat)
		}
		return nil
	}
	if run := m.slashAction(e.area.Value()); run != nil {
		e.take()
		return run(m)
	}
	p := e.take()
	keep := m.keep(p)
	m.resize()
	if m.chat == nil {
		m.typed = append(m.typed, &p)
		return keep
	}
	m.note = ""
	return tea.Batch(keep, m.say(m.chat, p))
}

// slashNames maps the names that other programs use to actions.
var slashNames = map[string]string{"clear": "new", "exit": "quit", "resume": "stored"}

// slashAction returns the action that a prompt such as /quit names, or nil. Commands of the agent take precedence.
func (m *Model) slashAction(text string) func(*Model) tea.Cmd {
	name, ok := strings.CutPrefix(strings.TrimSpace(text), "/")
	taken := func(c acp.AvailableCommand) bool { return c.Name == name }
	if !ok || m.chat != nil && slices.ContainsFunc(m.chat.snapshot.Commands, taken) {
		return nil
	}
	return named(cmp.Or(slashNames[name], name))
}

// newline inserts a line break.
func (m *Model) newline() tea.Cmd {
	m.editor().area.InsertString("\n")
	m.resize()
	return nil
}

// popup shows completions above the editor.
type popup struct {
	list   *list
	word   string // the word to complete
	height int    // as last drawn
}

func (p *popup) view(m *Model, width, height int) []string {
	lines := p.list.view(m, width, height)
	p.height = len(lines)
	return lines
}

// completionKey handles a key for the completions, and reports whether it was one.
func (e *editor) completionKey(m *Model, k tea.KeyPressMsg) bool {
	if e.popup == nil {
		if k.String() == "tab" {
			e.complete(m)
			return true
		}
		return false
	}
	switch k.String() {
	case "up", "down", "pgup", "pgdown":
		e.popup.list.move(k.String())
	case "tab", "enter":
		it, ok := e.popup.list.current()
		if !ok {
			e.popup = nil
			return false
		}
		if k.String() == "enter" && it.value == e.popup.word {
			e.popup = nil // already complete: send it
			return false
		}
		e.replaceWord(e.popup.word, it.value.(string)+" ")
		e.popup = nil
	case "esc":
		e.popup = nil
	default:
		return false
	}
	m.resize()
	return true
}

// word returns the word before the cursor, and whether it is the first of the prompt.
func (e *editor) word() (word string, first bool) {
	lines := strings.Split(e.area.Value(), "\n")
	n := e.area.Line()
	if n >= len(lines) {
		return "", false
	}
	runes := []rune(lines[n])
	before := string(runes[:min(e.area.Column(), len(runes))])
	at := strings.LastIndexAny(before, " \t") + 1
	return before[at:], n == 0 && at == 0
}

// replaceWord replaces the word before the cursor.
func (e *editor) replaceWord(word, by string) {
	for range utf8.RuneCountInString(word) {
		e.area, _ = e.area.Update(tea.KeyPressMsg{Code: tea.KeyBackspace})
	}
	e.area.InsertString(by)
}

// complete shows completions of the word before the cursor: commands of the agent after "/", files after "@".
func (e *editor) complete(m *Model) {
	word, first := e.word()
	var items []item
	switch {
	case first && strings.HasPrefix(word, "/") && m.chat != nil:
		for _, c := range m.chat.snapshot.Commands {
			if !harmless(c.Name) {
				continue
			}
			items = append(items, item{label: "/" + clean(c.Name), about: commandAbout(c), value: "/" + c.Name})
		}
		for _, a := range actions() { // last, after the agent's own commands, and only once a letter is typed
			if a.name != "" && len(word) > 1 && m.slashAction("/"+a.name) != nil {
				items = append(items, item{label: "/" + a.name, about: "acp: " + a.about, value: "/" + a.name})
			}
		}
	case strings.HasPrefix(word, "@") && m.chat != nil:
		items = m.filesOf(m.chat.session.Cwd())
	default:
		e.popup = nil
		return
	}
	l := &list{items: items, filter: word[1:]}
	l.match()
	if len(l.found) == 0 {
		e.popup = nil
		return
	}
	e.popup = &popup{list: l, word: word}
}

// files are the files of a directory.
type files struct {
	dir   string
	items []item // to choose from
	at    time.Time
}

// maxFiles is how many files of a directory are offered, and filesAge the age at which the list is renewed.
const (
	maxFiles = 20_000
	filesAge = 10 * time.Second
)

// filesOf returns the files of a directory as last found. If the list is old, it starts a new search.
func (m *Model) filesOf(dir string) []item {
	if m.files.dir != dir || m.now().Sub(m.files.at) > filesAge {
		if m.files.dir != dir {
			m.files = files{dir: dir}
		}
		m.files.at = m.now()
		now := m.now()
		m.pending = append(m.pending, m.tasks.cmd(func(ctx context.Context) tea.Msg {
			found := findFiles(ctx, dir, now)
			return doMsg(func(m *Model) tea.Cmd {
				m.files = found
				m.editor().complete(m)
				return nil
			})
		}))
	}
	return m.files.items
}

// findFiles finds the files in dir.
func findFiles(ctx context.Context, dir string, now time.Time) files {
	found := files{dir: dir, at: now}
	walkSources(ctx, dir, func(path string, _ fs.DirEntry) bool {
		if relative, err := filepath.Rel(dir, path); err == nil && harmless(relative) {
			relative = filepath.ToSlash(relative)
			found.items = append(found.items, item{label: "@" + relative, value: fileMention(relative)})
		}
		return len(found.items) < maxFiles
	})
	return found
}

// fileMention returns a file as a prompt names it: in quotes if its name contains a space.
func fileMention(path string) string {
	if strings.ContainsAny(path, " \t") {
		return `@"` + path + `"`
	}
	return "@" + path
}

// mention matches the names of files in a prompt.
var mention = regexp.MustCompile(`(?:^|\s)@("[^"\n]+"|[^\s"]+)`)

// mentioned returns the path of a file that is named, without punctuation that follows it.
func mentioned(cwd, name string) (path string, ok bool) {
	for _, name := range []string{strings.Trim(name, `"`), strings.TrimRight(name, ".,;:!?)]}")} {
		path = filepath.FromSlash(name)
		if !filepath.IsAbs(path) {
			path = filepath.Join(cwd, path)
		}
		if _, err := os.Stat(path); err == nil && name != "" {
			return path, true
		}
	}
	return "", false
}

// blocks returns the content blocks of a prompt: its text with pasted texts in their places, and the files that it
// names.
func (p prompt) blocks(cwd string, can acp.PromptCapabilities) ([]acp.ContentBlock, error) {
	text := p.text
	for i, pasted := range p.pasted {
		text = strings.Replace(text, pasteMark(i+1, strings.Count(pasted, "\n")+1), pasted, 1)
	}
	blocks := []acp.ContentBlock{acp.TextBlock(text)}
	for _, found := range mention.FindAllStringSubmatch(p.text, -1) {
		path, ok := mentioned(cwd, found[1])
		if !ok {
			continue // "@" may precede other words
		}
		block, err := talk.Attachment(path, can)
		if _, unsupported := errors.AsType[*talk.UnsupportedError](err); unsupported {
			block, err = acp.ResourceLinkBlock(filepath.Base(path), talk.FileURL(path)), nil
		}
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, block)
	}
	return blocks, nil
}
