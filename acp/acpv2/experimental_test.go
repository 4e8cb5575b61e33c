package acpv2_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
)

// Experimental updates are checked as stable ones are.
func TestExperimentalUpdatesAreChecked(t *testing.T) {
	near, far := acpv2.Pipe()
	tap := &conformance.TapOptions{Schema: conformance.V2Unstable(), Accept: map[string]string{"ADD-2": "no session is made"}}
	info := acpv2.Implementation{Name: "n", Version: "1"}
	served, err := acpv2.StartAgent(t.Context(), conformance.Tap(t, conformance.Agent, far, tap), acpv2.AgentHandlers{
		NewSession: makeSession, ListSessions: listSessions, ResumeSession: resumeSession, CloseSession: endSession,
		Prompt: func(ctx context.Context, s *acpv2.AgentSession, req *acpv2.PromptRequest) (*acpv2.PromptResponse, error) {
			return nil, errors.New("not asked for")
		},
	}, &acpv2.AgentOptions{Info: info, Experimental: acpv2.AllFeatures})
	if err != nil {
		t.Fatal(err)
	}
	conn := must.Get(acpv2.Connect(t.Context(), conformance.Tap(t, conformance.Client, near, tap), acpv2.ClientHandlers{}, &acpv2.ClientOptions{Info: info, Experimental: acpv2.AllFeatures}))(t)
	defer func() {
		if err := errors.Join(conn.Close(), served.Wait()); err != nil {
			t.Error(err)
		}
	}()
	plan := func(v acpv2.PlanUpdateContentVariant) acpv2.SessionUpdate {
		return acpv2.NewSessionUpdatePlanUpdate(acpv2.PlanUpdate{Plan: acpv2.PlanUpdateContent{Variant: v}})
	}
	for pointer, updates := range map[string][]acpv2.SessionUpdate{
		"/update/plan/planId": {
			plan(&acpv2.PlanUpdateContentItems{}), plan(&acpv2.PlanUpdateContentFile{URI: "file:///a"}), plan(&acpv2.PlanUpdateContentMarkdown{}),
		},
		"/update/planId":    {acpv2.NewSessionUpdatePlanRemoved(acpv2.PlanRemoved{})},
		"/update/sessionId": {acpv2.NewSessionUpdateSubagentUpdate(acpv2.SubagentUpdate{})},
		"/update/cwd": {acpv2.NewSessionUpdateSubagentUpdate(acpv2.SubagentUpdate{
			SessionID: "s", Cwd: acpv2.Some[acpv2.AbsolutePath]("a"),
		})},
		"/update/messageId": {
			acpv2.NewSessionUpdateSessionMessage(acpv2.SessionMessage{}),
			acpv2.AgentMessageText("", "x"), // a stable one
		},
	} {
		for _, u := range updates {
			err := served.Session("s").Update(t.Context(), u)
			if e, ok := errors.AsType[*acpv2.Error](err); !ok || !errors.Is(err, acpv2.ErrInvalidParams) || !strings.Contains(string(e.Data), `"`+pointer+`"`) {
				t.Errorf("%s: %v", pointer, err)
			}
		}
	}
	must.Do(t, served.Session("s").Update(t.Context(), plan(&acpv2.PlanUpdateContentItems{PlanID: "p"})))
	if _, err := conn.ArchiveSession(t.Context(), &acpv2.ArchiveSessionRequest{SessionID: "s"}); !errors.Is(err, acpv2.ErrUnsupported) {
		t.Errorf("what is enabled and not advertised: got %v", err)
	}
}
