package v2draft_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/conformance"
)

// Experimental updates are checked as stable ones are.
func TestExperimentalUpdatesAreChecked(t *testing.T) {
	near, far := v2draft.Pipe()
	tap := &conformance.TapOptions{Schema: conformance.V2Unstable(), Accept: map[string]string{"ADD-2": "no session is made"}}
	info := v2draft.Implementation{Name: "n", Version: "1"}
	served, err := v2draft.StartAgent(t.Context(), conformance.Tap(t, conformance.Agent, far, tap), v2draft.AgentHandlers{
		NewSession: makeSession, ListSessions: listSessions, ResumeSession: resumeSession, CloseSession: endSession,
		Prompt: func(ctx context.Context, s *v2draft.AgentSession, req *v2draft.PromptRequest) (*v2draft.PromptResponse, error) {
			return nil, errors.New("not asked for")
		},
	}, &v2draft.AgentOptions{Info: info, Experimental: v2draft.AllFeatures})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := v2draft.Connect(t.Context(), conformance.Tap(t, conformance.Client, near, tap), v2draft.ClientHandlers{}, &v2draft.ClientOptions{Info: info, Experimental: v2draft.AllFeatures})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(conn.Close(), served.Wait()); err != nil {
			t.Error(err)
		}
	}()
	plan := func(v v2draft.PlanUpdateContentVariant) v2draft.SessionUpdate {
		return v2draft.NewSessionUpdatePlanUpdate(v2draft.PlanUpdate{Plan: v2draft.PlanUpdateContent{Variant: v}})
	}
	for pointer, updates := range map[string][]v2draft.SessionUpdate{
		"/update/plan/planId": {
			plan(&v2draft.PlanUpdateContentItems{}), plan(&v2draft.PlanUpdateContentFile{URI: "file:///a"}), plan(&v2draft.PlanUpdateContentMarkdown{}),
		},
		"/update/planId":    {v2draft.NewSessionUpdatePlanRemoved(v2draft.PlanRemoved{})},
		"/update/sessionId": {v2draft.NewSessionUpdateSubagentUpdate(v2draft.SubagentUpdate{})},
		"/update/cwd": {v2draft.NewSessionUpdateSubagentUpdate(v2draft.SubagentUpdate{
			SessionID: "s", Cwd: v2draft.Some[v2draft.AbsolutePath]("a"),
		})},
		"/update/messageId": {
			v2draft.NewSessionUpdateSessionMessage(v2draft.SessionMessage{}),
			v2draft.AgentMessageText("", "x"), // a stable one
		},
	} {
		for _, u := range updates {
			err := served.Session("s").Update(t.Context(), u)
			if e, ok := errors.AsType[*v2draft.Error](err); !ok || !errors.Is(err, v2draft.ErrInvalidParams) || !strings.Contains(string(e.Data), `"`+pointer+`"`) {
				t.Errorf("%s: %v", pointer, err)
			}
		}
	}
	if err := served.Session("s").Update(t.Context(), plan(&v2draft.PlanUpdateContentItems{PlanID: "p"})); err != nil {
		t.Error(err)
	}
	if err := conn.Session("s").Archive(t.Context()); !errors.Is(err, v2draft.ErrUnsupported) {
		t.Errorf("what is enabled and not advertised: got %v", err)
	}
}
