package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Elicitor asks the user of a session to fill in forms. *AgentSession implements it, and so do the Session and the Turn
// of package agentkit.
type Elicitor interface {
	ElicitForm(ctx context.Context, message string, schema ElicitationSchema) (*CreateElicitationResponse, error)
}

// Ask asks the user to fill in a form (elicitation/create, mode form), and returns the answers. T is a struct whose
// exported fields are the form's fields; form holds their initial values.
//
//	type person struct {
//		Name   string `title:"Your name"`
//		Colour string `json:"colour,omitempty" enum:"red,green,blue" description:"The one that you like best."`
//	}
//	who, answered, err := acp.Ask(ctx, session, "Who are you?", person{Colour: "red"})
//
// A field is a string, a bool, an integer, a floating-point number, or a slice of strings of which the user chooses
// several. Its name, and whether it is left out, follow the rules of package encoding/json; the user may leave fields
// with omitempty or omitzero empty, which are then zero. The tags title and description are shown to the user; enum
// lists the values to choose from, and is required for a slice; format is a StringFormat. The user cannot enter
// integers that are too large for their fields. For other forms, see AgentSession.ElicitForm.
//
// answered reports whether the user has filled in the form; otherwise the result is form. It is false if the user
// declines, if the client does not show forms, in which case nothing is sent, or if the client fails or its answer is
// not as described. An error is a reason to end the turn: it matches ErrDismissed if the user dismisses the form
// without a decision, is the cause of ctx if that ends, and matches ErrClosed if the connection is lost. Before it
// asks, Ask returns an error if T is not as described, or form holds a value that enum does not list.
func Ask[T any](ctx context.Context, session Elicitor, message string, form T) (answer T, answered bool, err error) {
	fields, err := formFields(reflect.TypeFor[T]())
	if err != nil {
		return form, false, err
	}
	schema := ElicitationSchema{Type: ElicitationSchemaTypeObject, Properties: map[string]ElicitationPropertySchema{}}
	var required []string
	for _, f := range fields {
		value := reflect.ValueOf(form).Field(f.index)
		if err := f.checkEnum(value); err != nil && !value.IsZero() {
			return form, false, fmt.Errorf("acp: Ask: the form's value of %q: %w", f.name, err)
		}
		schema.Properties[f.name] = f.schema(value)
		if !f.optional {
			required = append(required, f.name)
		}
	}
	if required != nil {
		schema.Required = Some(required)
	}
	res, err := session.ElicitForm(ctx, message, schema)
	if ctx.Err() != nil {
		return form, false, context.Cause(ctx)
	}
	_, failed := errors.AsType[*CallError](err)
	switch {
	case err == nil:
	case !failed && (errors.Is(err, ErrClosed) || errors.Is(err, ErrInvalidParams)):
		return form, false, err
	default: // also if the answer cannot be read: the fault is the client's
		return form, false, nil
	}
	switch accepted := res.Variant.(type) {
	case *CreateElicitationResponseAccept:
		answer = form
		for _, f := range fields {
			if f.read(reflect.ValueOf(&answer).Elem().Field(f.index), accepted.Content.Value()) != nil {
				return form, false, nil // the fault is the client's
			}
		}
		return answer, true, nil
	case *CreateElicitationResponseCancel:
		return form, false, ErrDismissed
	default:
		return form, false, nil // also for actions of unknown kinds, which do not imply consent
	}
}

// formField is a field of a form.
type formField struct {
	index              int
	name               string
	title, description Opt[string]
	enum               []string
	format             Opt[StringFormat]
	optional           bool
}

// formFields returns the fields of a struct type.
func formFields(t reflect.Type) ([]formField, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("acp: Ask: %v is not a struct", t)
	}
	var fields []formField
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !field.IsExported() && !field.Anonymous || field.Tag.Get("json") == "-" {
			continue
		}
		name = cmp.Or(name, field.Name)
		f := formField{
			index: i, name: name, title: tagged[string](field, "title"), description: tagged[string](field, "description"),
			format: tagged[StringFormat](field, "format"),
		}
		for option := range strings.SplitSeq(options, ",") {
			f.optional = f.optional || option == "omitempty" || option == "omitzero"
		}
		if values := field.Tag.Get("enum"); values != "" {
			f.enum = strings.Split(values, ",")
		}
		if !f.fits(field.Type) || field.Anonymous {
			return nil, fmt.Errorf("acp: Ask: a form cannot have the field %v.%s of type %v with the tags %q", t, field.Name,
				field.Type, field.Tag)
		}
		fields = append(fields, f)
	}
	return fields, nil
}

func tagged[V ~string](field reflect.StructField, tag string) (value Opt[V]) {
	if text, ok := field.Tag.Lookup(tag); ok {
		value = Some(V(text))
	}
	return value
}

// fits reports whether a form can have a field of type t for f.
func (f *formField) fits(t reflect.Type) bool {
	switch {
	case t.Kind() == reflect.String:
		return true
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String:
		return f.enum != nil && !f.format.Present()
	}
	return (t.Kind() == reflect.Bool || t.ConvertibleTo(reflect.TypeFor[float64]())) && f.enum == nil &&
		!f.format.Present()
}

// schema returns the description of the field with the initial value v.
func (f *formField) schema(v reflect.Value) ElicitationPropertySchema {
	switch {
	case v.Kind() == reflect.String:
		s := StringPropertySchema{Title: f.title, Description: f.description, Format: f.format}
		if f.enum != nil {
			s.Enum = Some(f.enum)
		}
		if !v.IsZero() {
			s.Default = Some(v.String())
		}
		return NewElicitationPropertySchemaString(s)
	case v.Kind() == reflect.Bool:
		return NewElicitationPropertySchemaBoolean(BooleanPropertySchema{
			Title: f.title, Description: f.description, Default: Some(v.Bool()),
		})
	case v.Kind() == reflect.Slice:
		s := MultiSelectPropertySchema{
			Title: f.title, Description: f.description, Items: NewMultiSelectItemsString(StringMultiSelectItems{Enum: f.enum}),
		}
		if v.Len() > 0 {
			s.Default = Some(chosen(v))
		}
		return NewElicitationPropertySchemaArray(s)
	case v.CanFloat():
		s := NumberPropertySchema{Title: f.title, Description: f.description}
		if !v.IsZero() {
			s.Default = Some(v.Float())
		}
		return NewElicitationPropertySchemaNumber(s)
	}
	s := IntegerPropertySchema{Title: f.title, Description: f.description}
	bits := v.Type().Bits()
	switch {
	case v.CanUint():
		s.Minimum = Some[int64](0)
		if bits < 64 {
			s.Maximum = Some[int64](1<<bits - 1)
		}
	case bits < 64:
		s.Minimum, s.Maximum = Some[int64](-1<<(bits-1)), Some[int64](1<<(bits-1)-1)
	}
	if !v.IsZero() {
		s.Default = Some(v.Convert(reflect.TypeFor[int64]()).Int())
	}
	return NewElicitationPropertySchemaInteger(s)
}

// read sets the field to the user's answer.
func (f *formField) read(v reflect.Value, answers map[string]ElicitationContentValue) error {
	v.SetZero()
	answer, ok := answers[f.name]
	if !ok {
		if f.optional {
			return nil
		}
		return errors.New("it is missing")
	}
	raw, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v.Addr().Interface()); err != nil {
		return err
	}
	return f.checkEnum(v)
}

// checkEnum refuses values that the field does not offer.
func (f *formField) checkEnum(v reflect.Value) error {
	if f.enum == nil {
		return nil
	}
	for _, value := range chosen(v) {
		if !slices.Contains(f.enum, value) {
			return fmt.Errorf("%.64q is not one of the values", value)
		}
	}
	return nil
}

// chosen returns the values of a string or of a slice of strings.
func chosen(v reflect.Value) []string {
	if v.Kind() == reflect.String {
		return []string{v.String()}
	}
	values := make([]string, v.Len())
	for i := range values {
		values[i] = v.Index(i).String()
	}
	return values
}
