package unstable_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp/v2draft/unstable"
	"github.com/acpgo/sdk/conformance"
)

// What the unstable updates say is checked as the stable ones are.
func TestUpdatesAreChecked(t *testing.T) {
	near, far := unstable.Pipe()
	tap := &conformance.TapOptions{Schema: conformance.V2Unstable(), Accept: map[string]string{"ADD-2": "no session is made"}}
	info := unstable.Implementation{Name: "n", Version: "1"}
	served, err := unstable.StartAgent(t.Context(), conformance.Tap(t, conformance.Agent, far, tap), unstable.AgentHandlers{
		NewSession: newSession, ListSessions: listSessions, ResumeSession: resumeSession, CloseSession: closeSession,
		Prompt: func(ctx context.Context, s *unstable.AgentSession, req *unstable.PromptRequest) (*unstable.PromptResponse, error) {
			return nil, errors.New("not asked for")
		},
	}, &unstable.AgentOptions{Info: info})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := unstable.Connect(t.Context(), conformance.Tap(t, conformance.Client, near, tap), unstable.ClientHandlers{}, &unstable.ClientOptions{Info: info})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(conn.Close(), served.Wait()); err != nil {
			t.Error(err)
		}
	}()
	plan := func(v unstable.PlanUpdateContentVariant) unstable.SessionUpdate {
		return unstable.NewSessionUpdatePlanUpdate(unstable.PlanUpdate{Plan: unstable.PlanUpdateContent{Variant: v}})
	}
	for pointer, updates := range map[string][]unstable.SessionUpdate{
		"/update/plan/planId": {
			plan(&unstable.PlanUpdateContentItems{}), plan(&unstable.PlanUpdateContentFile{URI: "file:///a"}), plan(&unstable.PlanUpdateContentMarkdown{}),
		},
		"/update/planId":    {unstable.NewSessionUpdatePlanRemoved(unstable.PlanRemoved{})},
		"/update/sessionId": {unstable.NewSessionUpdateSubagentUpdate(unstable.SubagentUpdate{})},
		"/update/cwd": {unstable.NewSessionUpdateSubagentUpdate(unstable.SubagentUpdate{
			SessionID: "s", Cwd: unstable.Some[unstable.AbsolutePath]("a"),
		})},
		"/update/messageId": {
			unstable.NewSessionUpdateSessionMessage(unstable.SessionMessage{}),
			unstable.AgentMessageText("", "x"), // a stable one
		},
	} {
		for _, u := range updates {
			err := served.Session("s").Update(t.Context(), u)
			if e, ok := errors.AsType[*unstable.Error](err); !ok || !errors.Is(err, unstable.ErrInvalidParams) || !strings.Contains(string(e.Data), `"`+pointer+`"`) {
				t.Errorf("%s: %v", pointer, err)
			}
		}
	}
	if err := served.Session("s").Update(t.Context(), plan(&unstable.PlanUpdateContentItems{PlanID: "p"})); err != nil {
		t.Error(err)
	}
}
