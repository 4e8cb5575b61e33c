// Rules of the page initialization.

package rules

import (
	"maps"
	"slices"

	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/judge"
	"github.com/acpgo/sdk/conformance/internal/schema"
)

var initializationRules = []judge.Rule{
	// The client sees the answer before it sends more, wherever the judge is between the two sides.
	{ID: "INI-1", On: anyOf(requests(), notifications()), Check: func(e *judge.Event) {
		switch {
		case e.Garbled[finding.Client] || e.Sender() != finding.Client || e.Method == schema.MethodInitialize ||
			e.Initialized != nil || isProtocol(e.Method):
		case e.Initialize == nil && e.Once(""):
			e.Broken("", "the client sent this before initialize")
		case e.Initialize != nil && e.Once(""):
			e.Broken("", "the client sent this before the answer to initialize").
				Because(e.Initialize, "initialize, not answered yet")
		}
	}},
	{ID: "INI-2", On: requests(schema.MethodInitialize), Check: func(e *judge.Event) {
		if e.Content.IsObject() && !e.Given("clientCapabilities") {
			e.Broken("/clientCapabilities", "the client does not advertise its capabilities")
		}
	}},
	{ID: "INI-3", On: requests(schema.MethodInitialize), Check: func(e *judge.Event) {
		if !e.Given("clientInfo") {
			e.Broken("/clientInfo", "the client does not give its name and version")
		}
	}},
	{ID: "INI-4", On: results(schema.MethodInitialize), Check: func(e *judge.Event) {
		if e.Content.IsObject() && !e.Given("agentCapabilities") {
			e.Broken("/agentCapabilities", "the agent does not advertise its capabilities")
		}
	}},
	{ID: "INI-5", On: results(schema.MethodInitialize), Check: func(e *judge.Event) {
		if !e.Given("agentInfo") {
			e.Broken("/agentInfo", "the agent does not give its name and version")
		}
	}},
	// For a published version, the error may have another cause.
	{ID: "INI-9", On: failures(schema.MethodInitialize), Check: func(e *judge.Event) {
		code, _ := e.Content.Integer("code")
		if e.Requested > latestVersion && e.InitializeFits && (code == codeInvalid || code == codeParams) {
			e.Broken("/code", "an unsupported version is not an error; answer with the latest supported version").
				Because(e.Initialize, "the request")
		}
	}},
	{ID: "INI-10", On: requests(), Check: func(e *judge.Event) {
		if e.Sender() == finding.Client && e.Method != schema.MethodInitialize && e.Initialized != nil && e.Requested > 0 &&
			e.Version > e.Requested && e.Once("") {
			e.Broken("", "the client continues with version %d, which it does not support; it should close the connection",
				e.Version).
				Because(e.Initialize, "the client asks for its highest version").
				Because(e.Initialized, "the agent chooses a higher version")
		}
	}},
	{ID: "INI-13", On: results(clientMethods()...), Check: func(e *judge.Event) {
		if e.Method == judge.MethodElicit && e.Text("action") != "accept" {
			return // a declined or cancelled elicitation proves nothing
		}
		if capability := clientCapability[e.Method]; e.Sender() == finding.Client && !e.Client.Can(capability) {
			e.Broken("", "the client serves this method but does not advertise %s", capability).
				Because(e.Client.At, "its capabilities").Because(e.Request.At, "the request")
		}
	}},
	{ID: "INI-14", On: results(agentMethods()...), Check: func(e *judge.Event) {
		if capability := agentCapability[e.Method]; e.Sender() == finding.Agent && !e.Agent.Can(capability) {
			e.Broken("", "the agent serves this method but does not advertise %s", capability).
				Because(e.Agent.At, "its capabilities").Because(e.Request.At, "the request")
		}
	}},
	{ID: "INI-16", On: failures(judge.MethodNew, judge.MethodPrompt), Check: func(e *judge.Event) {
		if code, _ := e.Content.Integer("code"); code == codeMethod && e.Initialized != nil && e.Sender() == finding.Agent &&
			(e.InForce == 1 || e.Agent.Can("session")) {
			e.Broken("/code", "every agent must implement this method").Because(e.Request.At, "the request")
		}
	}},
	{ID: "INI-19", On: results(schema.MethodInitialize), Check: func(e *judge.Event) {
		for i, method := range e.Content.Items("authMethods") {
			// Older clients request them by this extension.
			if method.Text("type") == "terminal" && !e.Client.Can("auth.terminal") && !e.Client.Can("_meta.terminal-auth") {
				e.Broken(schema.Element("/authMethods", i),
					"the agent offers a method of type terminal, but the client does not advertise auth.terminal").
					Because(e.Client.At, "the client's capabilities")
			}
		}
	}},
}

func clientMethods() []string { return slices.Sorted(maps.Keys(clientCapability)) }
func agentMethods() []string  { return slices.Sorted(maps.Keys(agentCapability)) }
