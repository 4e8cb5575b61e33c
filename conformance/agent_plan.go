// Rules of the page agent-plan.

package conformance

var agentPlanRules = []rule{
	{
		ID:       "PLN-3",
		Versions: both,
		Breaks: "A plan that looks like a change of the one before, not like the whole: its entries are some of the earlier ones, one of them with a new status, " +
			"and others that were not done are left out. (Advice: an agent may also have given them up.)",
		Right: `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"plan","entries":[{"content":"Read","priority":"high","status":"pending"},{"content":"Write","priority":"high","status":"pending"}]}}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"plan","entries":[{"content":"Read","priority":"high","status":"completed"},{"content":"Write","priority":"high","status":"pending"}]}}}`,
		Wrong: `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"plan","entries":[{"content":"Read","priority":"high","status":"pending"},{"content":"Write","priority":"high","status":"pending"}]}}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"plan","entries":[{"content":"Read","priority":"high","status":"completed"}]}}}`,
		on: updates("plan", "plan_update"),
		check: func(e *event) {
			where, id := "/update", ""
			entries := member(e.content, "update")
			if e.update == "plan_update" {
				where, entries = "/update/plan", member(entries, "plan")
				id = text(entries, "planId")
			}
			if e.session == nil || !e.sound(where+"/entries") {
				return
			}
			before, ok := e.session.plans.get(id)
			now := newPlan(e, entries)
			if !ok || before.more || now.more || len(now.entries) == 0 {
				return
			}
			changed := false
			for content, status := range now.entries {
				old, known := before.entries[content]
				if !known {
					return
				}
				changed = changed || old != status
			}
			for content, status := range before.entries {
				if _, still := now.entries[content]; changed && !still && status != "completed" && status != "cancelled" {
					e.broken(where+"/entries", "entries of the plan before are missing that were not done").
						because(before.at, "the plan before").mildly(Advice)
					return
				}
			}
		},
	},
}
