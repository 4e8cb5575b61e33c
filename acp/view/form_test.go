package view_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
)

// formField returns the one field of a form.
func formField(property acp.ElicitationPropertySchema) *view.FormField {
	return view.FormFields(&acp.ElicitationSchema{Properties: map[string]acp.ElicitationPropertySchema{"x": property}})[0]
}

// What a field takes. Several answers are separated by spaces.
func TestFormFieldValue(t *testing.T) {
	small, large := acp.Some[int64](-2), acp.Some[int64](7)
	text := func(s acp.StringPropertySchema) *view.FormField {
		return formField(acp.NewElicitationPropertySchemaString(s))
	}
	array := func(s acp.MultiSelectPropertySchema) *view.FormField {
		return formField(acp.NewElicitationPropertySchemaArray(s))
	}
	titled := []acp.EnumOption{{Const: "a", Title: "A"}}
	for name, test := range map[string]struct {
		field        *view.FormField
		right, wrong []string
	}{
		"text": {
			text(acp.StringPropertySchema{MinLength: acp.Some[uint32](2), MaxLength: acp.Some[uint32](3), Pattern: acp.Some("^é")}),
			[]string{"éa", "éab"}, []string{"", "é", "éabc", "ab"},
		},
		"pattern of another language": {text(acp.StringPropertySchema{Pattern: acp.Some(`(?=x)`)}), []string{"y"}, nil},
		"titled choice":               {text(acp.StringPropertySchema{OneOf: acp.Some(titled)}), []string{"a"}, []string{"A", ""}},
		"boolean":                     {formField(acp.NewElicitationPropertySchemaBoolean(acp.BooleanPropertySchema{})), []string{"true", "False"}, []string{"", "maybe"}},
		"integer": {
			formField(acp.NewElicitationPropertySchemaInteger(acp.IntegerPropertySchema{Minimum: small, Maximum: large})),
			[]string{"-2", "7"}, []string{"-3", "8", "1.5", "x"},
		},
		"number": {
			formField(acp.NewElicitationPropertySchemaNumber(acp.NumberPropertySchema{Maximum: acp.Some(1.5)})),
			[]string{"1.5", "-1e9"}, []string{"1.6", "x", "NaN", "-Inf"},
		},
		"any of": {
			array(acp.MultiSelectPropertySchema{
				Items: acp.NewMultiSelectItemsString(acp.StringMultiSelectItems{Enum: []string{"a", "b", "c"}}), MinItems: acp.Some[uint64](1), MaxItems: acp.Some[uint64](2),
			}), []string{"a", "b a"}, []string{"", "d", "a b c"},
		},
		"titled any of": {
			array(acp.MultiSelectPropertySchema{Items: acp.NewMultiSelectItemsTitled(acp.TitledMultiSelectItems{AnyOf: titled})}),
			[]string{"a", ""}, []string{"A"},
		},
	} {
		value := func(text string) (acp.ElicitationContentValue, error) {
			if _, several := test.field.Schema.Variant.(*acp.ElicitationPropertySchemaArray); several {
				return test.field.Value(strings.Fields(text)...)
			}
			return test.field.Value(text)
		}
		for _, text := range test.right {
			if _, err := value(text); err != nil {
				t.Errorf("%s: %q: %v", name, text, err)
			}
		}
		for _, text := range test.wrong {
			if got, err := value(text); err == nil {
				t.Errorf("%s: %q is taken as %v", name, text, got)
			}
		}
	}
	for _, unknown := range []*view.FormField{
		formField(acp.ElicitationPropertySchema{Variant: &acp.ElicitationPropertySchemaUnknown{Tag: "_mood"}}),
		array(acp.MultiSelectPropertySchema{Items: acp.MultiSelectItems{Variant: &acp.MultiSelectItemsUnknown{Tag: "_mood"}}}),
	} {
		if _, err := unknown.Value("x"); !errors.Is(err, acp.ErrUnsupported) || unknown.Title != "x" {
			t.Errorf("%+v: %v", unknown, err)
		}
	}
}

// Required fields come first, in the agent's order.
func TestFormFieldOrder(t *testing.T) {
	schema := &acp.ElicitationSchema{Required: acp.Some([]string{"d", "b", "none"}), Properties: map[string]acp.ElicitationPropertySchema{}}
	for _, name := range []string{"a", "b", "c", "d"} {
		schema.Properties[name] = acp.NewElicitationPropertySchemaBoolean(acp.BooleanPropertySchema{})
	}
	var got []string
	for _, f := range view.FormFields(schema) {
		got = append(got, fmt.Sprint(f.Name, " ", f.Required))
	}
	if want := []string{"d true", "b true", "a false", "c false"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
