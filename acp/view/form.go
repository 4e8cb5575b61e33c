package view

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/acpgo/sdk/acp"
)

// A FormField is a field of a form, for user interfaces that ask for its value. Its texts are the agent's: see
// [PrintableLine].
type FormField struct {
	// Name is its key in the content of the answer.
	Name string
	// Title is the Name if the form has no title for the field.
	Title, Description string
	// Limits describes what the field takes, such as "whole number, at least 1". It may be empty.
	Limits string
	// Required reports that the form cannot be sent without the field.
	Required bool
	// Choices are the values of a field that only takes some; otherwise it is nil.
	Choices []acp.EnumOption
	// Default is the answer that the field begins with, as Value takes it.
	Default []string
	// Schema is the field as the agent describes it. Its variant is the kind of the field.
	Schema acp.ElicitationPropertySchema
}

// FormFields returns the fields of a form: the required ones in the agent's order, and then the others by name, because
// the fields themselves have no order.
func FormFields(schema *acp.ElicitationSchema) []*FormField {
	required := schema.Required.Value()
	var fields []*FormField
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		f := newFormField(schema.Properties[name])
		f.Title = cmp.Or(f.Title, name)
		f.Name, f.Required = name, slices.Contains(required, name)
		fields = append(fields, f)
	}
	place := func(f *FormField) int {
		if i := slices.Index(required, f.Name); i >= 0 {
			return i
		}
		return len(required)
	}
	slices.SortStableFunc(fields, func(a, b *FormField) int { return place(a) - place(b) })
	return fields
}

func newFormField(schema acp.ElicitationPropertySchema) *FormField {
	f := &FormField{Schema: schema}
	describe := func(title, description acp.Opt[string]) { f.Title, f.Description = title.Value(), description.Value() }
	values := func(values []string) {
		for _, v := range values {
			f.Choices = append(f.Choices, acp.EnumOption{Const: v, Title: v})
		}
	}
	switch s := schema.Variant.(type) {
	case *acp.ElicitationPropertySchemaString:
		describe(s.Title, s.Description)
		f.Default = preset(s.Default)
		values(s.Enum.Value())
		f.Choices = append(f.Choices, s.OneOf.Value()...)
		if format, ok := s.Format.Get(); ok {
			f.Limits = "format: " + string(format)
		}
	case *acp.ElicitationPropertySchemaBoolean:
		describe(s.Title, s.Description)
		f.Limits, f.Default = "true or false", preset(s.Default)
	case *acp.ElicitationPropertySchemaInteger:
		describe(s.Title, s.Description)
		f.Limits, f.Default = bounds("whole number", s.Minimum, s.Maximum), preset(s.Default)
	case *acp.ElicitationPropertySchemaNumber:
		describe(s.Title, s.Description)
		f.Limits, f.Default = bounds("number", s.Minimum, s.Maximum), preset(s.Default)
	case *acp.ElicitationPropertySchemaArray:
		describe(s.Title, s.Description)
		f.Limits, f.Default = strings.TrimPrefix(bounds("", s.MinItems, s.MaxItems), ", "), s.Default.Value()
		switch items := s.Items.Variant.(type) {
		case *acp.MultiSelectItemsString:
			values(items.Enum)
		case *acp.MultiSelectItemsTitled:
			f.Choices = items.AnyOf
		default: // the user cannot choose
		}
	default: // a kind of field that Value refuses
	}
	return f
}

// preset returns a default as the user would type it.
func preset[T any](value acp.Opt[T]) []string {
	v, ok := value.Get()
	if text := fmt.Sprint(v); ok && text != "" {
		return []string{text}
	}
	return nil
}

// Value converts the user's input to the field's JSON value. An array takes any number of its choices, other fields
// take one text, such as "true" for a boolean. The error says what the field takes; it matches [acp.ErrUnsupported] if
// the kind of the field is not known: leave it out, or decline the form. Whether the field may be empty is up to the
// caller.
func (f *FormField) Value(answers ...string) (value acp.ElicitationContentValue, err error) {
	text := strings.Join(answers, " ")
	switch s := f.Schema.Variant.(type) {
	case *acp.ElicitationPropertySchemaString:
		if len(f.Choices) == 0 {
			return acp.NewElicitationContentValueString(text), checkText(s, text)
		}
		return acp.NewElicitationContentValueString(text), f.checkChoices(text)
	case *acp.ElicitationPropertySchemaBoolean:
		on, err := strconv.ParseBool(strings.ToLower(text))
		if err != nil {
			err = errors.New("expected true or false")
		}
		return acp.NewElicitationContentValueBoolean(on), err
	case *acp.ElicitationPropertySchemaInteger:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return value, errors.New("expected a whole number")
		}
		return acp.NewElicitationContentValueInteger(n), inside(n, s.Minimum, s.Maximum)
	case *acp.ElicitationPropertySchemaNumber:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) { // which JSON does not have
			return value, errors.New("expected a number")
		}
		return acp.NewElicitationContentValueNumber(n), inside(n, s.Minimum, s.Maximum)
	case *acp.ElicitationPropertySchemaArray:
		if _, unknown := s.Items.Variant.(*acp.MultiSelectItemsUnknown); !unknown {
			err := errors.Join(f.checkChoices(answers...), inside(uint64(len(answers)), s.MinItems, s.MaxItems))
			return acp.NewElicitationContentValueStringArray(append([]string{}, answers...)), err
		}
	default: // refused below
	}
	return value, fmt.Errorf("a field of an unknown kind: %w", acp.ErrUnsupported)
}

// checkChoices checks that values are among the choices.
func (f *FormField) checkChoices(values ...string) error {
	for _, v := range values {
		if !slices.ContainsFunc(f.Choices, func(o acp.EnumOption) bool { return o.Const == v }) {
			return errors.New("expected one of the values")
		}
	}
	return nil
}

// checkText checks a text that is not one of some choices.
func checkText(s *acp.ElicitationPropertySchemaString, text string) error {
	if err := inside(uint64(utf8.RuneCountInString(text)), widen(s.MinLength), widen(s.MaxLength)); err != nil {
		return fmt.Errorf("%w characters", err)
	}
	if pattern, ok := s.Pattern.Get(); ok {
		// Patterns that Go cannot compile are left to the agent.
		if re, err := regexp.Compile(pattern); err == nil && !re.MatchString(text) {
			return fmt.Errorf("expected a match for %s", PrintableLine(pattern))
		}
	}
	switch s.Format.Value() {
	case acp.StringFormatEmail:
		if a, err := mail.ParseAddress(text); err != nil || a.Address != text { // without a name
			return errors.New("expected an e-mail address")
		}
	case acp.StringFormatURI:
		if u, err := url.Parse(text); err != nil || !u.IsAbs() {
			return errors.New("expected a URI such as https://example.com")
		}
	case acp.StringFormatDate:
		if _, err := time.Parse(time.DateOnly, text); err != nil {
			return errors.New("expected a date such as 2026-01-31")
		}
	case acp.StringFormatDateTime:
		if _, err := time.Parse(time.RFC3339, text); err != nil {
			return errors.New("expected a time such as 2026-01-31T12:00:00Z")
		}
	}
	return nil
}

func widen(n acp.Opt[uint32]) (wide acp.Opt[uint64]) {
	if v, ok := n.Get(); ok {
		wide = acp.Some(uint64(v))
	}
	return wide
}

// inside checks that a value is within bounds.
func inside[T int64 | uint64 | float64](value T, least, most acp.Opt[T]) error {
	if low, ok := least.Get(); ok && value < low {
		return fmt.Errorf("expected at least %v", low)
	}
	if high, ok := most.Get(); ok && value > high {
		return fmt.Errorf("expected at most %v", high)
	}
	return nil
}

// bounds describes bounds.
func bounds[T int64 | uint64 | float64](what string, least, most acp.Opt[T]) string {
	if low, ok := least.Get(); ok {
		what += fmt.Sprintf(", at least %v", low)
	}
	if high, ok := most.Get(); ok {
		what += fmt.Sprintf(", at most %v", high)
	}
	return what
}

var errDeclined = errors.New("the form was declined")

// fill asks the user to fill in a form. If a line is not a valid value of a field, it says why and asks again. Fields
// of an unknown kind are left out. If there are no others, the user only agrees. The first question begins with the
// message.
func fill(
	form *acp.CreateElicitationRequestForm, message string, ask func(question string) (string, error),
) (map[string]acp.ElicitationContentValue, error) {
	message = Printable(message) + "\n"
	line := func(question string) (string, error) {
		text, err := ask(message + question)
		message = ""
		if text = strings.TrimSpace(text); err == nil && text == ":decline" {
			err = errDeclined
		}
		return text, err
	}
	content := map[string]acp.ElicitationContentValue{}
	for _, f := range FormFields(&form.RequestedSchema) {
		if _, err := f.Value(); errors.Is(err, acp.ErrUnsupported) {
			continue
		}
		for question := f.question(); ; {
			text, err := line(question)
			if err != nil {
				return nil, err
			}
			answers := f.answers(text)
			if len(answers) == 0 && !f.Required {
				break
			}
			err = errors.New("this field is required")
			if len(answers) > 0 {
				content[f.Name], err = f.Value(answers...)
			}
			if err == nil {
				break
			}
			question = fmt.Sprintf("%v. %s", err, f.question())
		}
	}
	if message != "" {
		_, err := line("Press Enter to agree, or type :decline: ")
		return content, err
	}
	return content, nil
}

// answers returns what a line of the user means; nothing if it is no answer.
func (f *FormField) answers(line string) []string {
	if line == "" {
		return f.Default
	}
	answers := []string{line}
	if _, several := f.Schema.Variant.(*acp.ElicitationPropertySchemaArray); several {
		answers = strings.Split(line, ",")
	}
	for i, answer := range answers {
		answers[i] = strings.TrimSpace(answer)
		n, err := strconv.Atoi(answers[i])
		if err == nil && n >= 1 && n <= len(f.Choices) && f.checkChoices(answers[i]) != nil { // no value itself
			answers[i] = f.Choices[n-1].Const
		}
	}
	return answers
}

// question returns the question for the field: a line, one for each of the choices, and the prompt.
func (f *FormField) question() string {
	question := f.Title
	if f.Required {
		question += " (required)"
	}
	if f.Description != "" {
		question += ": " + f.Description
	}
	if f.Limits != "" {
		question += " (" + f.Limits + ")"
	}
	if len(f.Default) > 0 {
		question += " [" + strings.Join(f.Default, ",") + "]"
	}
	question = PrintableLine(question)
	for i, o := range f.Choices {
		choice := o.Const
		if o.Title != o.Const {
			choice += ": " + o.Title
		}
		question += fmt.Sprintf("\n%d: %s", i+1, PrintableLine(choice))
	}
	return question + "\nAnswer: "
}
