package probe

import (
	"context"
	"slices"

	"github.com/acpgo/sdk/conformance"
)

// Client probes a client by playing an agent to it. The launch must start the client so that the client starts, or
// connects to, the probe as its agent. The [Target.User] of the returned target makes the client's user do something.
func Client(ctx context.Context, launch Launch, options *Options) (*Report, error) {
	return run(ctx, launch, options, &clients)
}

// clients is the subject of [Client].
var clients = subject{
	side: conformance.Client, capabilities: "clientCapabilities", info: "clientInfo",
	rows: rowsOf("client"), scenarios: ClientScenarios,
	script: func(p *play, s *Scenario) {
		p.begins(s.persona)
		p.do(s.steps...)
		p.leave()
	},
	request: (*play).observeClientRequest, result: (*play).observeClientResult,
}

// ClientScenarios returns the scenarios for clients, in the order in which they are reported.
func ClientScenarios() []Scenario {
	return slices.Concat(clientStarts, clientTurns, clientWire, clientServices)
}
