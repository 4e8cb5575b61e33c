package acpv2_test

import (
	"context"
	"testing"

	"github.com/acpgo/sdk/acp/acpv2"
)

// Ask is the one of version 1, over the types of version 2.
func TestAsk(t *testing.T) {
	type person struct {
		Name string `title:"Your name"`
	}
	answer := acpv2.NewCreateElicitationResponseAccept(acpv2.ElicitationAcceptAction{
		Content: acpv2.Some(map[string]acpv2.ElicitationContentValue{"Name": acpv2.NewElicitationContentValueString("Ada")}),
	})
	elicitor := elicitorFunc(func(schema acpv2.ElicitationSchema) *acpv2.CreateElicitationResponse {
		if name, ok := schema.Properties["Name"].Variant.(*acpv2.ElicitationPropertySchemaString); !ok || name.Title.Value() != "Your name" {
			t.Errorf("asked for %+v", schema)
		}
		return &answer
	})
	if got, answered, err := acpv2.Ask(t.Context(), elicitor, "Who?", person{}); err != nil || !answered || got.Name != "Ada" {
		t.Errorf("got %+v, %v", got, err)
	}
	answer = acpv2.NewCreateElicitationResponseDecline()
	if _, answered, err := acpv2.Ask(t.Context(), elicitor, "Who?", person{}); err != nil || answered {
		t.Errorf("got %v", err)
	}
}

type elicitorFunc func(acpv2.ElicitationSchema) *acpv2.CreateElicitationResponse

func (f elicitorFunc) ElicitForm(_ context.Context, _ string, schema acpv2.ElicitationSchema) (*acpv2.CreateElicitationResponse, error) {
	return f(schema), nil
}
