package view

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/acpgo/sdk/acp"
)

// fill asks the user to fill in a form. If a line is not a valid value of a field, it says why and asks again.
func fill(
	form *acp.CreateElicitationRequestForm, ask func(question string) (string, error),
) (map[string]acp.ElicitationContentValue, error) {
	schema := &form.RequestedSchema
	content := map[string]acp.ElicitationContentValue{}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		f := formField(name, schema.Properties[name])
		question := f.question
		for {
			text, err := ask(question)
			if err != nil {
				return nil, err
			}
			text = strings.TrimSpace(text)
			if text == "" && f.standard != "" {
				text = f.standard
			}
			if text == "" && !slices.Contains(schema.Required.Value(), name) {
				break
			}
			value, err := f.parse(text)
			if err == nil {
				content[name] = value
				break
			}
			question = fmt.Sprintf("%v. %s", err, f.question)
		}
	}
	return content, nil
}

// field is a field of a form.
type field struct {
	question string
	standard string // the default value, as the user would type it
	parse    func(text string) (acp.ElicitationContentValue, error)
}

var errNoChoice = errors.New("choose one of the values")

func formField(name string, schema acp.ElicitationPropertySchema) (f field) {
	var title, description acp.Opt[string]
	var values []string
	switch s := schema.Variant.(type) {
	case *acp.ElicitationPropertySchemaBoolean:
		title, description = s.Title, s.Description
		if on, ok := s.Default.Get(); ok {
			f.standard = strconv.FormatBool(on)
		}
		f.parse = func(text string) (acp.ElicitationContentValue, error) {
			on, err := strconv.ParseBool(strings.ToLower(text))
			if err != nil {
				err = errors.New("type true or false")
			}
			return acp.NewElicitationContentValueBoolean(on), err
		}
	case *acp.ElicitationPropertySchemaInteger:
		title, description = s.Title, s.Description
		if n, ok := s.Default.Get(); ok {
			f.standard = strconv.FormatInt(n, 10)
		}
		f.parse = func(text string) (acp.ElicitationContentValue, error) {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil || n < s.Minimum.Or(n) || n > s.Maximum.Or(n) {
				err = errors.New("type a whole number that the form allows")
			}
			return acp.NewElicitationContentValueInteger(n), err
		}
	case *acp.ElicitationPropertySchemaNumber:
		title, description = s.Title, s.Description
		if n, ok := s.Default.Get(); ok {
			f.standard = strconv.FormatFloat(n, 'g', -1, 64)
		}
		f.parse = func(text string) (acp.ElicitationContentValue, error) {
			n, err := strconv.ParseFloat(text, 64)
			if err != nil || math.IsNaN(n) || math.IsInf(n, 0) || n < s.Minimum.Or(n) || n > s.Maximum.Or(n) {
				err = errors.New("type a number that the form allows")
			}
			return acp.NewElicitationContentValueNumber(n), err
		}
	case *acp.ElicitationPropertySchemaArray:
		title, description, f.standard = s.Title, s.Description, strings.Join(s.Default.Value(), ",")
		switch items := s.Items.Variant.(type) {
		case *acp.MultiSelectItemsString:
			values = items.Enum
		case *acp.MultiSelectItemsTitled:
			values = constants(items.AnyOf)
		}
		f.parse = func(text string) (acp.ElicitationContentValue, error) {
			var chosen []string
			for value := range strings.SplitSeq(text, ",") {
				chosen = append(chosen, strings.TrimSpace(value))
			}
			n := uint64(len(chosen))
			if slices.ContainsFunc(chosen, func(value string) bool { return !slices.Contains(values, value) }) ||
				n < s.MinItems.Or(n) || n > s.MaxItems.Or(n) {
				return acp.ElicitationContentValue{}, errors.New("choose as many of the values as the form allows")
			}
			return acp.NewElicitationContentValueStringArray(chosen), nil
		}
	case *acp.ElicitationPropertySchemaString:
		title, description, f.standard = s.Title, s.Description, s.Default.Value()
		values = append(slices.Clone(s.Enum.Value()), constants(s.OneOf.Value())...)
		f.parse = func(text string) (acp.ElicitationContentValue, error) {
			var err error
			if values != nil && !slices.Contains(values, text) {
				err = errNoChoice
			} else if text == "" {
				err = errors.New("this field is required")
			} else if n, m := s.MinLength.Or(0), s.MaxLength.Or(math.MaxUint32); !between(utf8.RuneCountInString(text), n, m) {
				err = errors.New("type a text whose length the form allows")
			} else if format := s.Format.Value(); !formatted(text, format) {
				err = fmt.Errorf("type a text of the format %s", format)
			}
			return acp.NewElicitationContentValueString(text), err
		}
	default:
		f.parse = func(text string) (acp.ElicitationContentValue, error) {
			return acp.NewElicitationContentValueString(text), nil
		}
	}
	f.question = PrintableLine(cmp.Or(title.Value(), name))
	if description.Value() != "" {
		f.question += ": " + PrintableLine(description.Value())
	}
	if values != nil {
		f.question += " (" + PrintableLine(strings.Join(values, ", ")) + ")"
	}
	if f.standard != "" {
		f.question += " [" + PrintableLine(f.standard) + "]"
	}
	return f
}

// constants returns the values of titled choices.
func constants(options []acp.EnumOption) (values []string) {
	for _, o := range options {
		values = append(values, o.Const)
	}
	return values
}

func between(n int, low, high uint32) bool {
	return uint64(low) <= uint64(n) && uint64(n) <= uint64(high)
}

// formatted reports whether a text has a format. It returns true for unknown formats.
func formatted(text string, format acp.StringFormat) bool {
	var err error
	switch format {
	case acp.StringFormatEmail:
		_, err = mail.ParseAddress("<" + text + ">") // without a name
	case acp.StringFormatURI:
		u, e := url.Parse(text)
		return e == nil && u.IsAbs()
	case acp.StringFormatDate:
		_, err = time.Parse(time.DateOnly, text)
	case acp.StringFormatDateTime:
		_, err = time.Parse(time.RFC3339, text)
	}
	return err == nil
}
