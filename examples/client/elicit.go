package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
)

// elicit serves elicitation/create. It answers "cancel" if there is no user to ask.
func (t *talk) elicit(ctx context.Context, _ *acp.ClientConn,
	req *acp.CreateElicitationRequest) (*acp.CreateElicitationResponse, error) {
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
	form := map[string]*view.FormField{}
	content := map[string]acp.ElicitationContentValue{}
	for _, f := range view.FormFields(&schema) {
		if _, err := f.Value(); errors.Is(err, acp.ErrUnsupported) { // SCH-10
			t.printer.line("  The form has a field that this client does not know.")
			return acp.NewCreateElicitationResponseDecline(), nil
		}
		form[f.Name] = f
		if value, err := f.Value(f.Default...); len(f.Default) > 0 && err == nil {
			content[f.Name] = value
		}
		var hint strings.Builder
		hint.WriteString(f.Limits)
		for _, choice := range f.Choices {
			hint.WriteString(" " + choice.Const)
		}
		t.printer.line("  %s (%s) %s: %s", f.Name, f.Title, strings.TrimSpace(hint.String()), strings.Join(f.Default, " "))
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
			answers := []string{strings.TrimSpace(text)}
			if _, several := f.Schema.Variant.(*acp.ElicitationPropertySchemaArray); several {
				answers = strings.Fields(text)
			}
			value, err := f.Value(answers...)
			if err != nil {
				t.printer.line("  %s: %v", name, err)
				continue
			}
			content[name] = value
		case answer == answerNo:
			return acp.NewCreateElicitationResponseDecline(), nil
		case answer == answerYes:
			missing := slices.DeleteFunc(slices.Clone(schema.Required.Value()),
				func(name string) bool { _, ok := content[name]; return ok })
			if len(missing) == 0 {
				return acp.NewCreateElicitationResponseAccept(acp.ElicitationAcceptAction{Content: acp.Some(content)}), nil
			}
			t.printer.line("  missing: %s", strings.Join(missing, ", "))
		}
	}
}

// openPage asks the user to open a page, which this program does not touch, because it cannot know where the page leads
// (ELI-28).
func (t *talk) openPage(ctx context.Context, r *acp.CreateElicitationRequestURL) (acp.CreateElicitationResponse,
	error) {
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
