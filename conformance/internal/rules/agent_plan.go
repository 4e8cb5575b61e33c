// Rules of the page agent-plan.

package rules

import (
	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/judge"
)

var agentPlanRules = []judge.Rule{
	{ID: "PLN-3", On: updates("plan", "plan_update"), Check: func(e *judge.Event) {
		where, id := "/update", ""
		entries := e.Content.Member("update")
		if e.Update == "plan_update" {
			where, entries = "/update/plan", entries.Member("plan")
			id = entries.Text("planId")
		}
		if e.Session == nil || !e.Sound(where+"/entries") {
			return
		}
		before, ok := e.Session.Plans.Get(id)
		now := judge.NewAgentPlan(e, entries)
		if !ok || before.More || now.More || len(now.Entries) == 0 {
			return
		}
		changed := false
		for content, status := range now.Entries {
			old, known := before.Entries[content]
			if !known {
				return
			}
			changed = changed || old != status
		}
		for content, status := range before.Entries {
			if _, still := now.Entries[content]; changed && !still && status != "completed" && status != "cancelled" {
				e.Broken(where+"/entries",
					"entries of the previous plan that were not completed are missing; an update has the whole plan").
					Because(before.At, "the previous plan").Mildly(finding.Advice)
				return
			}
		}
	}},
}
