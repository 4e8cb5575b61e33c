// This file asks the user questions. Whatever the client answers, the turn continues (ELI-17, ELI-18).

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"unicode/utf8"

	"github.com/acpgo/sdk/acp"
)

// The fields of the form, and their limits.
const (
	fieldName   = "name"
	fieldColour = "colour"
	maxName     = 40
)

var colours = []string{"red", "green", "blue"}

// askForm asks for the user's name and favourite colour.
func askForm(ctx context.Context, t *turn) error {
	schema := acp.ElicitationSchema{
		Type: acp.ElicitationSchemaTypeObject,
		Properties: map[string]acp.ElicitationPropertySchema{
			fieldName: acp.NewElicitationPropertySchemaString(acp.StringPropertySchema{
				Title: acp.Some("Your name"), MinLength: acp.Some[uint32](1), MaxLength: acp.Some[uint32](maxName),
			}),
			fieldColour: acp.NewElicitationPropertySchemaString(acp.StringPropertySchema{
				Title: acp.Some("Your favourite colour"), Enum: acp.Some(colours), Default: acp.Some(colours[0]),
			}),
		},
		Required: acp.Some([]string{fieldName}),
	}
	res, err := t.ElicitForm(ctx, "Who are you?", schema)
	accepted, err := t.accepted(ctx, res, err)
	if accepted == nil {
		return err
	}
	name, colour, ok := readForm(accepted.Content.Value())
	if !ok {
		return t.say(ctx, "That is not an answer to what I asked.\n\n") // ELI-9
	}
	return t.say(ctx, "Hello %s, who likes %s.\n\n", name, colour)
}

// readForm reads the answers of a form. ok is false if they do not fit the form.
func readForm(content map[string]acp.ElicitationContentValue) (name, colour string, ok bool) {
	given, ok := content[fieldName].Variant.(acp.ElicitationContentValueString)
	if n := utf8.RuneCountInString(string(given)); !ok || n < 1 || n > maxName {
		return "", "", false
	}
	liked := acp.ElicitationContentValueString("no colour")
	if value, is := content[fieldColour]; is {
		if liked, ok = value.Variant.(acp.ElicitationContentValueString); !ok || !slices.Contains(colours, string(liked)) {
			return "", "", false
		}
	}
	return string(given), string(liked), true
}

// askURL asks the user to open a page, and reports that the user has finished there (ELI-21).
func askURL(ctx context.Context, t *turn) error {
	id := acp.ElicitationID("elic_" + rand.Text())
	res, err := t.ElicitURL(ctx, "Please look at this page.", id, "https://example.com/welcome")
	accepted, err := t.accepted(ctx, res, err)
	if accepted == nil {
		return err
	}
	return t.Conn().CompleteElicitation(ctx, &acp.CompleteElicitationNotification{ElicitationID: id})
}

// accepted returns the user's answer. If there is none, it tells the user so, and returns nil and the error that ends
// the turn, if any.
func (t *turn) accepted(
	ctx context.Context, res *acp.CreateElicitationResponse, err error,
) (*acp.CreateElicitationResponseAccept, error) {
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, acp.ErrUnsupported): // ELI-5, ELI-6
		return nil, t.say(ctx, "I would ask you something, but your client cannot.\n\n")
	case err != nil:
		return nil, t.say(ctx, "My question failed: %v\n\n", err)
	}
	if accepted, ok := res.Variant.(*acp.CreateElicitationResponseAccept); ok {
		return accepted, nil
	}
	return nil, t.say(ctx, "Then I go on without an answer.\n\n") // also for unknown actions (SCH-9)
}
