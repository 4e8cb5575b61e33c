package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/acpgo/sdk/acp"
)

// elicit serves elicitation/create. It answers "cancel" if there is no user to ask.
func (t *talk) elicit(ctx context.Context, _ *acp.ClientConn, req *acp.CreateElicitationRequest) (*acp.CreateElicitationResponse, error) {
	t.asking.Lock()
	defer t.asking.Unlock()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	t.printer.line("? %s", req.Message)
	var answer acp.CreateElicitationResponse
	var err error
	switch r := req.Variant.(type) {
	case *acp.CreateElicitationRequestForm:
		answer, err = t.fillIn(ctx, r.RequestedSchema)
	case *acp.CreateElicitationRequestURL:
		answer, err = t.openPage(ctx, r)
	default: // the runtime refuses other modes
		return nil, acp.InvalidParamsf("an unknown mode")
	}
	if err != nil {
		answer = acp.NewCreateElicitationResponseCancel()
	}
	return &answer, nil
}

// fillIn asks the user to fill in a form, whose fields begin with their defaults.
func (t *talk) fillIn(ctx context.Context, schema acp.ElicitationSchema) (acp.CreateElicitationResponse, error) {
	form := map[string]*field{}
	content := map[string]acp.ElicitationContentValue{}
	names := slices.Sorted(maps.Keys(schema.Properties))
	for _, name := range names {
		f := newField(schema.Properties[name])
		if f == nil { // a field of an unknown kind (SCH-10)
			t.printer.line("  The form has a field that this client does not know.")
			return acp.NewCreateElicitationResponseDecline(), nil
		}
		form[name] = f
		if value, err := f.parse(f.preset); f.preset != "" && err == nil {
			content[name] = value
		}
		t.printer.line("  %s (%s) %s: %s", name, f.title, f.hint, f.preset)
	}
	for {
		answer, err := t.decide(ctx, "  1. send  2. decline  or NAME=VALUE: ")
		if err != nil {
			return acp.CreateElicitationResponse{}, err
		}
		name, text, filled := strings.Cut(answer, "=")
		name = strings.TrimSpace(name)
		switch f := form[name]; {
		case filled && f != nil:
			value, err := f.parse(strings.TrimSpace(text))
			if err != nil {
				t.printer.line("  %s: %v", name, err)
				continue
			}
			content[name] = value
		case answer == answerNo:
			return acp.NewCreateElicitationResponseDecline(), nil
		case answer == answerYes:
			missing := slices.DeleteFunc(slices.Clone(schema.Required.Value()), func(name string) bool { _, ok := content[name]; return ok })
			if len(missing) == 0 {
				return acp.NewCreateElicitationResponseAccept(acp.ElicitationAcceptAction{Content: acp.Some(content)}), nil
			}
			t.printer.line("  missing: %s", strings.Join(missing, ", "))
		}
	}
}

// openPage asks the user to open a page, which this program does not touch, because it cannot know where the page leads
// (ELI-28).
func (t *talk) openPage(ctx context.Context, r *acp.CreateElicitationRequestURL) (acp.CreateElicitationResponse, error) {
	t.printer.line("  Open this page in a browser, if you trust it: %s", r.URL)
	for {
		answer, err := t.decide(ctx, "  1. I open it  2. decline: ")
		switch {
		case err != nil:
			return acp.CreateElicitationResponse{}, err
		case answer == answerYes:
			return acp.NewCreateElicitationResponseAccept(acp.ElicitationAcceptAction{}), nil
		case answer == answerNo:
			return acp.NewCreateElicitationResponseDecline(), nil
		}
	}
}

// The answers to a form or a page.
const (
	answerYes = "1"
	answerNo  = "2"
)

// decide asks the user, unless everything is rejected.
func (t *talk) decide(ctx context.Context, question string) (string, error) {
	t.mu.Lock()
	policy := t.policy
	t.mu.Unlock()
	if policy == policyReject {
		return answerNo, nil
	}
	answer, err := t.ask(ctx, question, true)
	return strings.TrimSpace(answer), err
}

// field is a field of a form.
type field struct {
	title, hint, preset string
	parse               func(text string) (acp.ElicitationContentValue, error)
}

// newField returns a property as a field, or nil if it is of an unknown kind.
func newField(property acp.ElicitationPropertySchema) *field {
	switch p := property.Variant.(type) {
	case *acp.ElicitationPropertySchemaString:
		choices := slices.Clone(p.Enum.Value())
		for _, o := range p.OneOf.Value() {
			choices = append(choices, o.Const)
		}
		return &field{p.Title.Value(), strings.Join(choices, " or "), p.Default.Value(), func(text string) (acp.ElicitationContentValue, error) {
			n := utf8.RuneCountInString(text)
			matches := true
			if pattern, ok := p.Pattern.Get(); ok {
				// Patterns that Go cannot parse are left to the agent.
				if re, err := regexp.Compile(pattern); err == nil {
					matches = re.MatchString(text)
				}
			}
			switch longest, bounded := p.MaxLength.Get(); {
			case len(choices) > 0 && !slices.Contains(choices, text):
				return acp.ElicitationContentValue{}, errors.New("want one of those")
			case n < int(p.MinLength.Value()) || bounded && n > int(longest) || !matches:
				return acp.ElicitationContentValue{}, errors.New("too long, too short, or not of the form that is wanted")
			}
			return acp.NewElicitationContentValueString(text), nil
		}}
	case *acp.ElicitationPropertySchemaBoolean:
		return &field{p.Title.Value(), "true or false", preset(p.Default), func(text string) (acp.ElicitationContentValue, error) {
			value, err := strconv.ParseBool(text)
			return acp.NewElicitationContentValueBoolean(value), err
		}}
	case *acp.ElicitationPropertySchemaInteger:
		return &field{p.Title.Value(), "a whole number", preset(p.Default), func(text string) (acp.ElicitationContentValue, error) {
			value, err := strconv.ParseInt(text, 10, 64)
			return acp.NewElicitationContentValueInteger(value), errors.Join(err, inside(value, p.Minimum, p.Maximum))
		}}
	case *acp.ElicitationPropertySchemaNumber:
		return &field{p.Title.Value(), "a number", preset(p.Default), func(text string) (acp.ElicitationContentValue, error) {
			value, err := strconv.ParseFloat(text, 64)
			return acp.NewElicitationContentValueNumber(value), errors.Join(err, inside(value, p.Minimum, p.Maximum))
		}}
	case *acp.ElicitationPropertySchemaArray:
		var choices []string
		switch items := p.Items.Variant.(type) {
		case *acp.MultiSelectItemsString:
			choices = items.Enum
		case *acp.MultiSelectItemsTitled:
			for _, o := range items.AnyOf {
				choices = append(choices, o.Const)
			}
		}
		return &field{p.Title.Value(), "any of " + strings.Join(choices, " "), strings.Join(p.Default.Value(), " "), func(text string) (acp.ElicitationContentValue, error) {
			values := strings.Fields(text)
			for _, v := range values {
				if !slices.Contains(choices, v) {
					return acp.ElicitationContentValue{}, fmt.Errorf("%q is none of those", v)
				}
			}
			return acp.NewElicitationContentValueStringArray(values), inside(uint64(len(values)), p.MinItems, p.MaxItems)
		}}
	}
	return nil
}

// preset returns a default in the form that the user would type.
func preset[T any](value acp.Opt[T]) string {
	if v, ok := value.Get(); ok {
		return fmt.Sprint(v)
	}
	return ""
}

// inside returns an error if a value is out of bounds.
func inside[T int64 | uint64 | float64](value T, least, most acp.Opt[T]) error {
	low, bounded := least.Get()
	high, capped := most.Get()
	if bounded && value < low || capped && value > high {
		return errors.New("too much, or too little")
	}
	return nil
}
