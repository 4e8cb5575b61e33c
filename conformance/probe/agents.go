package probe

import (
	"context"
	"fmt"
	"slices"

	"github.com/acpgo/sdk/conformance"
)

// Agent probes an agent.
func Agent(ctx context.Context, launch Launch, options *Options) (*Report, error) {
	about := &agents
	switch {
	case options == nil || options.Protocol == 0 || options.Protocol == 1:
	case options.Protocol == 2:
		about = &drafts
	default:
		return nil, fmt.Errorf("version %d of the protocol cannot be probed", options.Protocol)
	}
	return run(ctx, launch, options, about)
}

// agents is the subject of [Agent].
var agents = subject{
	side: conformance.Agent, capabilities: "agentCapabilities", info: "agentInfo",
	rows: rowsOf("agent"), scenarios: AgentScenarios, script: func(p *play, s *Scenario) { p.do(s.steps...) },
	request: (*play).observeRequest, result: (*play).observeResult,
}

// AgentScenarios returns the scenarios for agents, in the order in which they are reported.
func AgentScenarios() []Scenario {
	return slices.Concat(startScenarios, wireScenarios, typeScenarios(), sessionScenarios, promptScenarios,
		cancelScenarios)
}

// drafts is the subject of [Agent] for version 2.
var drafts = subject{
	side: conformance.Agent, capabilities: "capabilities", info: "info", version: 2,
	rows: rowsOf("draft"), scenarios: DraftScenarios, script: agents.script,
	request: (*play).observeRequest, result: (*play).observeResult,
}

// DraftScenarios returns the scenarios for agents of version 2, in the order in which they are reported.
func DraftScenarios() []Scenario { return draftScenarios }
