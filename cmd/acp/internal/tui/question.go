package tui

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
	"github.com/acpgo/sdk/internal/plain"
)

// question waits for the user's answer.
type question struct {
	session acp.SessionID // "" if it belongs to no session
	dialog  dialog
	over    func() error // not nil when nobody waits for the answer any more; nil for questions of the program itself
	drawn   time.Time    // zero before it was drawn
	left    bool         // the user has gone back to the editor, and needs the key for questions to return
	scroll  int          // the first visible line of the body
	seen    int          // how many lines of the body, from the first one on, have been visible
	room    int          // how many lines are visible
	width   int          // the width for which they were drawn
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

// noInput are the methods of a dialog into which nothing is pasted.
type noInput struct{}

func (noInput) choices() []choice                    { return nil } // a view.Console asks in the plain mode
func (noInput) init(*Model) tea.Cmd                  { return nil }
func (noInput) paste(*Model, string) (bool, tea.Cmd) { return false, nil }

// quiet is how long a question must have been visible without any key being pressed before it takes keys by itself, so
// that a key meant for something else does not answer it.
const quiet = view.Delay

// addQuestion adds a question.
func (m *Model) addQuestion(q *question) tea.Cmd {
	if q.isOver() {
		return nil
	}
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
	return tea.Tick(quiet+frame, func(time.Time) tea.Msg { return doMsg(func(*Model) tea.Cmd { return nil }) })
}

// withdraw removes a question that has been answered or that the agent has withdrawn.
func (m *Model) withdraw(q *question) {
	m.questions = slices.DeleteFunc(m.questions, func(o *question) bool { return o == q })
	if m.focused == q {
		m.focused = nil
	}
	m.resize()
}

// dismiss withdraws some questions.
func (m *Model) dismiss(which func(*question) bool) {
	for _, q := range slices.Clone(m.questions) {
		if which(q) {
			m.withdraw(q)
		}
	}
}

// isOver reports whether nobody waits for the answer any more.
func (q *question) isOver() bool { return q.over != nil && q.over() != nil }

// isDead reports whether the question is about an agent that has ended.
func (q *question) isDead() bool { _, ok := q.dialog.(*deadDialog); return ok }

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
		return bound(k.String())(m)
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
		title += fmt.Sprintf(" (1 of %d)", n)
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

// permissionDialog asks for permission.
type permissionDialog struct {
	noInput
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

// formDialog is a form.
type formDialog struct {
	noInput
	asked  *talk.Elicitation
	fields []*field
	form   *huh.Form
	answer func(*acp.CreateElicitationResponse)
	q      *question
	over   bool // it has been answered

	room          int // the lines available for the body
	width, height int // of the form
}

// field is a field of a form, with the user's answer as text or as choices.
type field struct {
	*view.FormField
	about  string
	kind   fieldKind
	text   string
	on     bool
	chosen []string
}

// choice is something to choose: the value that is sent, and the label that the user sees.
type choice struct{ value, label string }

type fieldKind int

const (
	textField fieldKind = iota // also of numbers
	booleanField
	selectField // one of several values
	multiField  // any of several values
	unknownField
)

// The maximum number of fields of a form, and of choices of all its fields together.
const (
	maxFields  = 200
	maxChoices = 5000
)

// tooLarge returns why a form is too large to be shown, or nil.
func tooLarge(schema *acp.ElicitationSchema) error {
	if n := len(schema.Properties); n > maxFields {
		return fmt.Errorf("it has %d fields", n)
	}
	choices := 0
	for _, f := range fieldsOf(schema) {
		choices += len(f.Choices)
	}
	if choices > maxChoices {
		return fmt.Errorf("it has %d choices", choices)
	}
	return nil
}

// fieldsOf returns the fields of a schema.
func fieldsOf(schema *acp.ElicitationSchema) []*field {
	var fields []*field
	for _, f := range view.FormFields(schema) {
		fields = append(fields, newField(f))
	}
	return fields
}

func newField(f *view.FormField) *field {
	d := &field{FormField: f, about: join(f.Description, f.Limits)}
	preset := strings.Join(f.Default, " ")
	if _, err := f.Value(); errors.Is(err, acp.ErrUnsupported) {
		d.kind = unknownField
		return d
	}
	switch f.Schema.Variant.(type) {
	case *acp.ElicitationPropertySchemaBoolean:
		d.kind, d.on, d.about = booleanField, preset == "true", f.Description
	case *acp.ElicitationPropertySchemaArray:
		d.kind, d.chosen = multiField, f.Default
	default:
		if len(f.Choices) > 0 {
			d.kind, d.text = selectField, preset
		} else if !harmless(preset) {
			d.about = join(d.about, "the agent's default is not plain text: "+preset)
		} else {
			d.text = preset
		}
	}
	return d
}

// join joins two texts that may be empty.
func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// valid checks the user's text. A field that is not required may be left empty.
func (f *field) valid(text string) error {
	if text == "" && !f.Required {
		return nil
	}
	if text == "" && f.kind != textField { // the empty text may be valid
		return errors.New("an answer is required")
	}
	_, err := f.Value(text)
	return err
}

// validChoices checks the user's choices.
func (f *field) validChoices(chosen []string) error {
	if len(chosen) == 0 && !f.Required {
		return nil
	}
	_, err := f.Value(chosen...)
	return err
}

// value returns the value of the field; false if it has none.
func (f *field) value() (acp.ElicitationContentValue, bool) {
	answers := []string{f.text}
	switch f.kind {
	case booleanField:
		answers[0] = strconv.FormatBool(f.on)
	case multiField:
		answers = f.chosen
	case textField, selectField:
		if f.text == "" && !f.Required {
			return acp.ElicitationContentValue{}, false
		}
	}
	value, err := f.Value(answers...)
	return value, err == nil && (len(answers) > 0 || f.Required)
}

// acceptFields returns the answer of a completed form.
func acceptFields(fields []*field) *acp.CreateElicitationResponse {
	content := map[string]acp.ElicitationContentValue{}
	for _, f := range fields {
		if value, ok := f.value(); ok {
			content[f.Name] = value
		}
	}
	res := acp.NewCreateElicitationResponseAccept(acp.ElicitationAcceptAction{Content: acp.Some(content)})
	return &res
}

func declined() *acp.CreateElicitationResponse {
	res := acp.NewCreateElicitationResponseDecline()
	return &res
}

func cancelled() *acp.CreateElicitationResponse {
	res := acp.NewCreateElicitationResponseCancel()
	return &res
}

// newForm returns the dialog for a form.
func newForm(asked *talk.Elicitation, answer func(*acp.CreateElicitationResponse)) *formDialog {
	d := &formDialog{asked: asked, fields: fieldsOf(asked.Form), answer: answer}
	var fields []huh.Field
	for _, f := range d.fields {
		fields = append(fields, f.huh())
	}
	if len(fields) == 0 {
		fields = append(fields, huh.NewNote().Title("Press Enter to agree.").Next(true))
	}
	keys := huh.NewDefaultKeyMap()
	keys.Quit = key.NewBinding() // Ctrl-C belongs to the program
	d.form = huh.NewForm(huh.NewGroup(fields...)).WithShowHelp(false).WithShowErrors(false).WithKeyMap(keys).
		WithTheme(huh.ThemeFunc(formTheme))
	return d
}

// formTheme uses the terminal's own colors.
func formTheme(dark bool) *huh.Styles {
	t := huh.ThemeBase16(dark)
	for _, s := range []*huh.FieldStyles{&t.Focused, &t.Blurred} {
		s.BlurredButton = lipgloss.NewStyle().Padding(0, 2)
		s.FocusedButton = s.BlurredButton.Reverse(true)
	}
	return t
}

// huh returns the field for package huh.
func (f *field) huh() huh.Field {
	title := clean(f.Title)
	if f.Required {
		title += " *"
	}
	about := clean(f.about)
	switch f.kind {
	case booleanField:
		return huh.NewConfirm().Title(title).Description(about).Value(&f.on)
	case selectField:
		var options []huh.Option[string]
		if !f.Required {
			options = append(options, huh.NewOption("(no answer)", ""))
		}
		for _, c := range f.Choices {
			options = append(options, huh.NewOption(clean(c.Title), c.Const))
		}
		return huh.NewSelect[string]().Title(title).Description(about).Options(options...).Value(&f.text).
			Height(min(len(options)+1+min(1, len(about)), 10)).Validate(f.valid)
	case multiField:
		var options []huh.Option[string]
		for _, c := range f.Choices {
			options = append(options, huh.NewOption(clean(c.Title), c.Const).Selected(slices.Contains(f.chosen, c.Const)))
		}
		return huh.NewMultiSelect[string]().Title(title).Description(about).Options(options...).Value(&f.chosen).
			Height(min(len(options)+1+min(1, len(about)), 10)).Validate(f.validChoices)
	case unknownField:
		return huh.NewNote().Title(title).Description("This client does not support this kind of field and leaves it out.")
	}
	return huh.NewInput().Title(title).Description(about).Value(&f.text).Validate(f.valid)
}

func (d *formDialog) init(m *Model) tea.Cmd {
	if m.plain {
		return nil
	}
	d.size(m, 10)
	return d.wrap(d.form.Init())
}

// size fits the form into the available room. It scrolls to the current field.
func (d *formDialog) size(m *Model, height int) {
	if width := max(10, m.width-2); width != d.width || height != d.height {
		d.width, d.height = width, height
		d.form.WithWidth(width).WithHeight(max(4, height))
	}
}

func (d *formDialog) title(m *Model) string { return m.agentName() + " asks" }

func (d *formDialog) body(m *Model, width int) []string {
	lines := wrap(cleanText(d.asked.Message), width)
	lines = lines[:min(len(lines), max(1, d.room/2))] // the current field must be visible
	d.size(m, d.room-len(lines))
	form := strings.Split(strings.TrimRight(d.form.View(), "\n "), "\n")
	return append(lines, form[:min(len(form), max(4, d.height))]...)
}

func (d *formDialog) foot(m *Model, width int) []string {
	var lines []string
	for _, err := range d.form.Errors() {
		lines = append(lines, m.style.error.Render(fit("✗ "+clean(err.Error()), width)))
	}
	return append(lines, wrap(m.style.dim.Render("Enter: next, send  Ctrl-X: decline  Ctrl-Q: cancel"), width)...)
}

func (d *formDialog) key(m *Model, q *question, k tea.KeyPressMsg) (bool, tea.Cmd) {
	d.q = q
	switch k.String() {
	case "ctrl+x":
		d.end(declined())
		return true, nil
	case "ctrl+q":
		d.end(cancelled())
		return true, nil
	case "ctrl+c":
		return false, m.interruptQuestion(q)
	}
	return d.take(m, k)
}

func (d *formDialog) paste(m *Model, text string) (bool, tea.Cmd) {
	_, cmd := d.take(m, tea.PasteMsg{Content: text})
	return true, cmd
}

// update handles a message from the form to itself.
func (d *formDialog) update(m *Model, msg tea.Msg) tea.Cmd {
	answered, cmd := d.take(m, msg)
	if answered && d.q != nil {
		m.withdraw(d.q)
	}
	return cmd
}

// take passes a message to the form, and reports whether the form is complete.
func (d *formDialog) take(_ *Model, msg tea.Msg) (bool, tea.Cmd) {
	if d.over {
		return false, nil
	}
	model, cmd := d.form.Update(msg)
	d.form = model.(*huh.Form)
	if d.form.State == huh.StateCompleted {
		d.end(acceptFields(d.fields))
		return true, nil
	}
	return false, d.wrap(cmd)
}

// end answers the form.
func (d *formDialog) end(res *acp.CreateElicitationResponse) {
	d.over = true
	d.answer(res)
}

// wrap returns a command whose messages come back to the form.
func (d *formDialog) wrap(cmd tea.Cmd) tea.Cmd {
	if cmd == nil {
		return nil
	}
	return func() tea.Msg {
		msg := cmd()
		if msg == nil {
			return nil
		}
		if cmds := commandsIn(msg); cmds != nil {
			for i := range cmds {
				cmds[i] = d.wrap(cmds[i])
			}
			return msg
		}
		return doMsg(func(m *Model) tea.Cmd { return d.update(m, msg) })
	}
}

// pageDialog asks whether to open a page. It shows the whole address, and opens nothing without being asked to.
type pageDialog struct {
	noInput
	page   *talk.Elicitation
	answer func(*acp.CreateElicitationResponse)
	facts  int // how many of the first lines of the body show where the page is
}

func (d *pageDialog) choices() []choice {
	return []choice{{"o", "open it in the browser"}, {"y", "I will open it myself"}, {"n", "decline"},
		{"ctrl+q", "cancel"}}
}

func (d *pageDialog) title(m *Model) string { return m.agentName() + " asks you to open a page" }

// body returns the address and then, after a bar, what the agent says about it.
func (d *pageDialog) body(m *Model, width int) []string {
	text, host, notes := plain.Address(d.page.URL)
	var lines []string
	for l := range strings.SplitSeq(ansi.Hardwrap(visibly(text), width, true), "\n") {
		lines = append(lines, m.style.key.Render(l))
	}
	if host != "" {
		lines = append(lines, wrap("It leads to: "+visibly(host), width)...)
	}
	for _, note := range notes {
		for _, l := range wrap(visibly(note), width) {
			lines = append(lines, m.style.error.Render(l))
		}
	}
	d.facts = len(lines)
	lines = append(lines, "")
	for _, l := range wrap(cleanText(d.page.Message), width-2) {
		lines = append(lines, "│ "+l)
	}
	return lines
}

func (d *pageDialog) foot(m *Model, width int) []string {
	return wrap(m.style.key.Render("o")+" open in the browser  "+m.style.key.Render("y")+" I will open it myself  "+
		m.style.key.Render("n")+" decline  "+m.style.key.Render("Ctrl-Q")+" cancel", width)
}

func (d *pageDialog) key(m *Model, q *question, k tea.KeyPressMsg) (bool, tea.Cmd) {
	accepted := acp.NewCreateElicitationResponseAccept(acp.ElicitationAcceptAction{})
	key := k.String()
	if (key == "o" || key == "y") && q.seen < d.facts {
		m.tellHere("Scroll to see the whole address first: PgDn.")
		return false, nil
	}
	switch key {
	case "o":
		address, _, _ := plain.Address(d.page.URL) // as it was shown
		if err := m.opts.openURL(address); err != nil {
			m.tellHere("Not opened: " + err.Error())
			return false, nil
		}
		d.answer(&accepted)
	case "y":
		d.answer(&accepted)
	case "n", "ctrl+x":
		d.answer(declined())
	case "ctrl+q":
		d.answer(cancelled())
	case "ctrl+c":
		return false, m.interruptQuestion(q)
	default:
		return false, nil
	}
	return true, nil
}

// openBrowser opens a page in the user's browser.
func openBrowser(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("only http and https addresses can be opened")
	}
	command := []string{"xdg-open"}
	switch runtime.GOOS {
	case "darwin":
		command = []string{"open"}
	case "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	cmd := exec.Command(command[0], append(command[1:], u.String())...)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // the browser outlives the program; its exit status does not matter
	return nil
}
