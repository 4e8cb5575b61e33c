package main

import (
	"context"
	"fmt"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/contrib/mcpacp"
)

// planInput is the input of the tool plan.
type planInput struct {
	Steps []struct {
		Step   string `json:"step"`
		Status string `json:"status" jsonschema:"pending, in_progress or completed"`
	} `json:"steps"`
}

// String is the title of a call.
func (in planInput) String() string { return "Update the plan" }

// addPlan adds a tool of the agent's own, with which the model shows what it is going to do.
func addPlan(s *session) {
	const description = "Show the user the whole plan. Use it for tasks of several steps, and after each step."
	plan := func(ctx context.Context, _ *agentkit.ToolCall, in planInput) (string, error) {
		var entries []acp.PlanEntry
		for _, step := range in.Steps {
			status := acp.PlanEntryStatus(step.Status)
			if !status.Known() {
				return "", fmt.Errorf("there is no status %q", step.Status)
			}
			entries = append(entries, acp.PlanEntry{Content: step.Step, Priority: acp.PlanEntryPriorityMedium, Status: status})
		}
		return "", s.Update(ctx, acp.UpdatePlan(entries...))
	}
	mcpacp.AddTool(s.State.tools, "plan", acp.ToolKindThink, description, plan)
}
