package tui

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"
	"charm.land/lipgloss/v2"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
)

// formDialog is a form.
type formDialog struct {
	asked  *talk.Elicitation
	fields []*field
	form   *huh.Form
	answer func(*acp.CreateElicitationResponse)
	q      *question
	over   bool // it has been answered

	room          int // the lines available for the body
	width, height int // of the form
}

// formMsg is a message from the form to itself.
type formMsg struct {
	form *formDialog
	msg  tea.Msg
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

func (d *formDialog) choices() []choice { return nil }

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
		// A batch or a sequence of commands, whose type is not exported.
		if v := reflect.ValueOf(msg); v.Kind() == reflect.Slice && v.Type().Elem() == reflect.TypeFor[tea.Cmd]() {
			for i := range v.Len() {
				inner, _ := v.Index(i).Interface().(tea.Cmd)
				v.Index(i).Set(reflect.ValueOf(d.wrap(inner)))
			}
			return msg
		}
		return formMsg{d, msg}
	}
}
