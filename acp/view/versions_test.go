package view_test

import (
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
)

// A snapshot says which of its parts were reported since another one.
func TestVersions(t *testing.T) {
	state := view.New(nil)
	if got := state.Snapshot().Versions; got != (view.Versions{}) {
		t.Errorf("at the beginning: %+v", got)
	}
	for i, step := range []struct {
		update acp.SessionUpdate
		part   func(*view.Versions) *uint64
	}{
		{acp.UpdatePlan(acp.PlanEntry{Content: "x"}), func(v *view.Versions) *uint64 { return &v.Plan }},
		{acp.NewSessionUpdatePlanUpdate(acp.PlanUpdate{Plan: acp.PlanUpdateContent{Variant: &acp.PlanUpdateContentItems{PlanID: "p"}}}), func(v *view.Versions) *uint64 { return &v.Plans }},
		{acp.NewSessionUpdatePlanRemoved(acp.PlanRemoved{PlanID: "p"}), func(v *view.Versions) *uint64 { return &v.Plans }},
		{acp.ModeUpdate("m"), func(v *view.Versions) *uint64 { return &v.Modes }},
		{acp.ConfigUpdate(), func(v *view.Versions) *uint64 { return &v.ConfigOptions }},
		{acp.CommandsUpdate(acp.SlashCommand("a", "b", "")), func(v *view.Versions) *uint64 { return &v.Commands }},
		{acp.ContextUsage(1, 2, nil), func(v *view.Versions) *uint64 { return &v.Usage }},
		{acp.TitleUpdate("t"), func(v *view.Versions) *uint64 { return &v.Info }},
		{acp.AgentMessageText("text"), nil},
		{acp.UpdatePlan(acp.PlanEntry{Content: "y"}), func(v *view.Versions) *uint64 { return &v.Plan }},
	} {
		want := state.Snapshot().Versions
		state.Update(step.update)
		now := state.Snapshot()
		if step.part != nil {
			*step.part(&want) = now.Version
		}
		if now.Versions != want {
			t.Errorf("update %d: got %+v, want %+v", i, now.Versions, want)
		}
	}
	want := state.Snapshot().Versions
	state.Reset()
	now := state.Snapshot()
	want.Plan, want.Plans, want.Usage = now.Version, now.Version, now.Version
	if now.Versions != want {
		t.Errorf("reset: got %+v, want %+v", now.Versions, want)
	}
}
