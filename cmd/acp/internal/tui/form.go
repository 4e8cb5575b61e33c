package tui

import (
	"errors"
	"fmt"
	"maps"
	"net/mail"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"

	"github.com/acpgo/sdk/acp"
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

// field is a field of a form: the user's answer, as text or as choices.
type field struct {
	name, title, about string
	required           bool
	kind               fieldKind
	choices            []choice
	text               string
	on                 bool
	chosen             []string
	check              func(text string) error
	least, most        int // the number of choices; most is 0 if there is no limit
}

// choice is something to choose: the value that is sent, and the label that the user sees.
type choice struct{ value, label string }

type fieldKind int

const (
	textField fieldKind = iota
	integerField
	numberField
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
		choices += len(f.choices)
	}
	if choices > maxChoices {
		return fmt.Errorf("it has %d choices", choices)
	}
	return nil
}

// fieldsOf returns the fields of a schema, required ones first. A schema is a JSON object, which has no order.
func fieldsOf(schema *acp.ElicitationSchema) []*field {
	required := schema.Required.Value()
	var fields []*field
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		f := newField(schema.Properties[name])
		f.name, f.required = name, slices.Contains(required, name)
		if f.title == "" {
			f.title = name
		}
		fields = append(fields, f)
	}
	slices.SortStableFunc(fields, func(a, b *field) int {
		place := func(f *field) int {
			if i := slices.Index(required, f.name); i >= 0 {
				return i
			}
			return len(required)
		}
		return place(a) - place(b)
	})
	return fields
}

func newField(property acp.ElicitationPropertySchema) *field {
	switch p := property.Variant.(type) {
	case *acp.ElicitationPropertySchemaString:
		f := &field{title: p.Title.Value(), about: p.Description.Value(), text: p.Default.Value()}
		for _, v := range p.Enum.Value() {
			f.choices = append(f.choices, choice{v, v})
		}
		for _, o := range p.OneOf.Value() {
			f.choices = append(f.choices, choice{o.Const, o.Title})
		}
		if len(f.choices) > 0 {
			f.kind = selectField
			return f
		}
		f.check = func(text string) error { return checkString(p, text) }
		if !harmless(f.text) {
			f.text, f.about = "", join(f.about, "the agent's default is not plain text: "+f.text)
		}
		if format, ok := p.Format.Get(); ok {
			f.about = join(f.about, "format: "+string(format))
		}
		return f
	case *acp.ElicitationPropertySchemaBoolean:
		return &field{title: p.Title.Value(), about: p.Description.Value(), kind: booleanField, on: p.Default.Value()}
	case *acp.ElicitationPropertySchemaInteger:
		return &field{
			title: p.Title.Value(), about: join(p.Description.Value(), bounds("whole number", p.Minimum, p.Maximum)), kind: integerField, text: preset(p.Default),
			check: func(text string) error {
				n, err := strconv.ParseInt(text, 10, 64)
				if err != nil {
					return errors.New("want a whole number")
				}
				return inside(n, p.Minimum, p.Maximum)
			},
		}
	case *acp.ElicitationPropertySchemaNumber:
		return &field{
			title: p.Title.Value(), about: join(p.Description.Value(), bounds("number", p.Minimum, p.Maximum)), kind: numberField, text: preset(p.Default),
			check: func(text string) error {
				n, err := strconv.ParseFloat(text, 64)
				if err != nil || n != n || n-n != 0 { // JSON has neither NaN nor infinity
					return errors.New("want a number")
				}
				return inside(n, p.Minimum, p.Maximum)
			},
		}
	case *acp.ElicitationPropertySchemaArray:
		f := &field{title: p.Title.Value(), about: p.Description.Value(), kind: multiField, chosen: p.Default.Value()}
		f.least, f.most = int(min(p.MinItems.Value(), 1<<20)), int(min(p.MaxItems.Value(), 1<<20))
		switch items := p.Items.Variant.(type) {
		case *acp.MultiSelectItemsString:
			for _, v := range items.Enum {
				f.choices = append(f.choices, choice{v, v})
			}
		case *acp.MultiSelectItemsTitled:
			for _, o := range items.AnyOf {
				f.choices = append(f.choices, choice{o.Const, o.Title})
			}
		default:
			f.kind = unknownField
		}
		return f
	}
	return &field{kind: unknownField}
}

// join joins two texts that may be empty.
func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// checkString checks a text.
func checkString(p *acp.ElicitationPropertySchemaString, text string) error {
	n := utf8.RuneCountInString(text)
	if least := int(p.MinLength.Value()); n < least {
		return fmt.Errorf("want at least %d characters", least)
	}
	if most, ok := p.MaxLength.Get(); ok && n > int(most) {
		return fmt.Errorf("want at most %d characters", most)
	}
	if pattern, ok := p.Pattern.Get(); ok {
		// Patterns that Go cannot compile are left to the agent.
		if re, err := regexp.Compile(pattern); err == nil && !re.MatchString(text) {
			return fmt.Errorf("want a match for %s", clean(pattern))
		}
	}
	switch p.Format.Value() {
	case acp.StringFormatEmail:
		if a, err := mail.ParseAddress(text); err != nil || a.Address != text {
			return errors.New("want an e-mail address")
		}
	case acp.StringFormatURI:
		if u, err := url.Parse(text); err != nil || u.Scheme == "" {
			return errors.New("want a URI such as https://example.com")
		}
	case acp.StringFormatDate:
		if _, err := time.Parse(time.DateOnly, text); err != nil {
			return errors.New("want a date such as 2026-01-31")
		}
	case acp.StringFormatDateTime:
		if _, err := time.Parse(time.RFC3339, text); err != nil {
			return errors.New("want a time such as 2026-01-31T12:00:00Z")
		}
	}
	return nil
}

// preset returns a default as the user would type it.
func preset[T any](value acp.Opt[T]) string {
	if v, ok := value.Get(); ok {
		return fmt.Sprint(v)
	}
	return ""
}

// inside checks that a value is within bounds.
func inside[T int64 | float64](value T, least, most acp.Opt[T]) error {
	if low, ok := least.Get(); ok && value < low {
		return fmt.Errorf("want at least %v", low)
	}
	if high, ok := most.Get(); ok && value > high {
		return fmt.Errorf("want at most %v", high)
	}
	return nil
}

// bounds describes the bounds of a number.
func bounds[T int64 | float64](what string, least, most acp.Opt[T]) string {
	if low, ok := least.Get(); ok {
		what += fmt.Sprintf(", at least %v", low)
	}
	if high, ok := most.Get(); ok {
		what += fmt.Sprintf(", at most %v", high)
	}
	return what
}

// valid checks the user's text. A field that is not required may be left empty.
func (f *field) valid(text string) error {
	if text == "" {
		if f.required && f.check != nil && f.kind == textField {
			return f.check(text) // the empty text may be valid
		}
		if f.required {
			return errors.New("an answer is required")
		}
		return nil
	}
	if f.check != nil {
		return f.check(text)
	}
	return nil
}

// validChoices checks the user's choices.
func (f *field) validChoices(chosen []string) error {
	if len(chosen) == 0 && !f.required {
		return nil
	}
	if len(chosen) < f.least {
		return fmt.Errorf("want at least %d", f.least)
	}
	if f.most > 0 && len(chosen) > f.most {
		return fmt.Errorf("want at most %d", f.most)
	}
	return nil
}

// value returns the value of the field; false if it has none.
func (f *field) value() (acp.ElicitationContentValue, bool) {
	switch f.kind {
	case booleanField:
		return acp.NewElicitationContentValueBoolean(f.on), true
	case multiField:
		return acp.NewElicitationContentValueStringArray(append([]string{}, f.chosen...)), f.required || len(f.chosen) > 0
	case integerField:
		n, err := strconv.ParseInt(f.text, 10, 64)
		return acp.NewElicitationContentValueInteger(n), err == nil
	case numberField:
		n, err := strconv.ParseFloat(f.text, 64)
		return acp.NewElicitationContentValueNumber(n), err == nil
	}
	return acp.NewElicitationContentValueString(f.text), f.required || f.text != ""
}

// acceptFields returns the answer of a completed form.
func acceptFields(fields []*field) *acp.CreateElicitationResponse {
	content := map[string]acp.ElicitationContentValue{}
	for _, f := range fields {
		if value, ok := f.value(); ok {
			content[f.name] = value
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
	d.form = huh.NewForm(huh.NewGroup(fields...)).WithShowHelp(false).WithShowErrors(false).WithKeyMap(keys)
	return d
}

// huh returns the field for package huh.
func (f *field) huh() huh.Field {
	title := clean(f.title)
	if f.required {
		title += " *"
	}
	about := clean(f.about)
	switch f.kind {
	case booleanField:
		return huh.NewConfirm().Title(title).Description(about).Value(&f.on)
	case selectField:
		var options []huh.Option[string]
		if !f.required {
			options = append(options, huh.NewOption("(no answer)", ""))
		}
		for _, c := range f.choices {
			options = append(options, huh.NewOption(clean(c.label), c.value))
		}
		return huh.NewSelect[string]().Title(title).Description(about).Options(options...).Value(&f.text).Height(min(len(options)+3, 10)).Validate(f.valid)
	case multiField:
		var options []huh.Option[string]
		for _, c := range f.choices {
			options = append(options, huh.NewOption(clean(c.label), c.value).Selected(slices.Contains(f.chosen, c.value)))
		}
		return huh.NewMultiSelect[string]().Title(title).Description(about).Options(options...).Value(&f.chosen).Height(min(len(options)+3, 10)).Validate(f.validChoices)
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
