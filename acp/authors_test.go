package acp_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
)

// TestVariantsOfAuthors: an author's type that has the methods of a variant is refused, whatever is in it.
func TestVariantsOfAuthors(t *testing.T) {
	type image struct {
		*acp.ContentBlockImage
		N [3]uintptr
	}
	number := acp.ElicitationContentValueInteger(7)
	for name, v := range map[string]any{
		"a pointer to a number": acp.ElicitationContentValue{Variant: &number},
		"a pointer to nothing":  acp.ElicitationContentValue{Variant: (*acp.ElicitationContentValueInteger)(nil)},
		"a pointer to a list":   acp.ElicitationContentValue{Variant: &acp.ElicitationContentValueStringArray{"x"}},
		"a struct in a union": acp.ElicitationContentValue{Variant: struct {
			acp.ElicitationContentValueInteger
		}{5}},
		"a struct in an object": acp.ContentBlock{Variant: image{&acp.ContentBlockImage{}, [3]uintptr{1 << 40, 1 << 40, 1 << 40}}},
	} {
		if text, err := json.Marshal(v); err == nil || !strings.Contains(err.Error(), "without a variant") {
			t.Errorf("%s: got %s, %v", name, text, err)
		}
	}
}

// tree contains itself.
type tree map[string]tree

// TestResultsOfAuthors: results of extensions may be nothing, and types that contain themselves.
func TestResultsOfAuthors(t *testing.T) {
	var agent acp.Extensions[acp.AgentConn]
	rpc.Handle(&agent, "_x/tree", func(context.Context, *acp.AgentConn, *struct{}) (*struct{ T tree }, error) {
		return &struct{ T tree }{tree{"a": {}}}, nil
	})
	agent.Fallback = func(context.Context, *acp.AgentConn, string, json.RawMessage) (any, error) { return nil, nil }
	conn := connect(t, acp.AgentHandlers{Extensions: &agent}, nil, acp.ClientHandlers{}, nil)
	for method, want := range map[string]string{"_x/tree": `{"T":{"a":{}}}`, "_x/other": "null"} {
		res, err := rpc.Call[json.RawMessage](t.Context(), conn, method, &struct{}{})
		got := "null"
		if res != nil {
			got = string(*res)
		}
		if err != nil || got != want {
			t.Errorf("%s: got %s, %v", method, got, err)
		}
	}
}
