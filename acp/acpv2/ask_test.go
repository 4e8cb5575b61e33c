package v2draft_test

import (
	"context"
	"errors"
	"testing"

	"github.com/acpgo/sdk/acp/acpv2"
)

// Ask is the one of version 1, over the types of version 2.
func TestAsk(t *testing.T) {
	type person struct {
		Name string `title:"Your name"`
	}
	answer := v2draft.NewCreateElicitationResponseAccept(v2draft.ElicitationAcceptAction{
		Content: v2draft.Some(map[string]v2draft.ElicitationContentValue{"Name": v2draft.NewElicitationContentValueString("Ada")}),
	})
	elicitor := elicitorFunc(func(schema v2draft.ElicitationSchema) *v2draft.CreateElicitationResponse {
		if name, ok := schema.Properties["Name"].Variant.(*v2draft.ElicitationPropertySchemaString); !ok || name.Title.Value() != "Your name" {
			t.Errorf("asked for %+v", schema)
		}
		return &answer
	})
	if got, err := v2draft.Ask(t.Context(), elicitor, "Who?", person{}); err != nil || got.Name != "Ada" {
		t.Errorf("got %+v, %v", got, err)
	}
	answer = v2draft.NewCreateElicitationResponseDecline()
	if _, err := v2draft.Ask(t.Context(), elicitor, "Who?", person{}); !errors.Is(err, v2draft.ErrDeclined) {
		t.Errorf("got %v", err)
	}
}

type elicitorFunc func(v2draft.ElicitationSchema) *v2draft.CreateElicitationResponse

func (f elicitorFunc) ElicitForm(_ context.Context, _ string, schema v2draft.ElicitationSchema) (*v2draft.CreateElicitationResponse, error) {
	return f(schema), nil
}
