// Rules of the page session-setup.

package rules

import (
	"slices"

	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/judge"
	"github.com/acpgo/sdk/conformance/internal/schema"
)

var sessionSetupRules = []judge.Rule{
	{ID: "SES-2", On: results(judge.MethodNew), Check: func(e *judge.Event) {
		id := e.Text("sessionId")
		switch s := e.History.Session(id); {
		case id == "" && e.Content.Member("sessionId").IsText():
			e.Broken("/sessionId", "the session id is empty")
		case s != nil && s.Usable != nil:
			e.Broken("/sessionId", "another session already has the id %q", finding.Clip(id)).
				Because(s.Usable, "the session that has it")
		}
	}},
	{ID: "SES-4", On: requests(judge.MethodLoad), Check: func(e *judge.Event) { e.Needs(&e.Agent, "loadSession") }},
	{ID: "SES-6", On: results(judge.MethodLoad), Check: func(e *judge.Event) {
		s := e.Session
		if s == nil || s.Setup != e.Request || s.Prompted == nil {
			return
		}
		fault := "the agent answered without replaying the conversation"
		if s.Replayed {
			fault = s.ReplayFault()
		}
		if fault != "" {
			e.Broken("", "%s", fault).Because(s.Prompted, "a turn of the session")
		}
	}},
	// The answer and the update travel in the same direction, so neither overtakes the other. The user's own
	// messages are the only kind of update that cannot be new.
	{ID: "SES-7", On: updates("user_message_chunk"), Check: func(e *judge.Event) {
		if s := e.Session; s != nil && s.Loaded != nil && s.Setup == nil && len(s.Turns) == 0 && e.Once(s.ID) {
			e.Broken("", "the agent replayed a message after the answer to session/load").
				Because(s.Loaded, "the answer to session/load")
		}
	}},
	{ID: "SES-9", On: requests(judge.MethodResume),
		Check: func(e *judge.Event) { e.Needs(&e.Agent, "sessionCapabilities.resume") }},
	// Only for a session that was not in use on this connection: updates of one in use may have crossed the
	// request.
	{ID: "SES-11", On: updates(historyKinds...), Check: func(e *judge.Event) {
		s := e.Session
		if s != nil && s.Setup != nil && s.Setup.Method == judge.MethodResume && s.SetupNew && len(s.Turns) == 0 &&
			e.Once(s.ID) {
			e.Broken("", "the agent replayed history before the answer to session/resume").Because(s.Setup.At, "the request")
		}
	}},
	{ID: "SES-13", On: requests(judge.MethodClose),
		Check: func(e *judge.Event) { e.Needs(&e.Agent, "sessionCapabilities.close") }},
	// Both answers travel in the same direction: the agent answered the prompt after it had closed the session.
	{ID: "SES-15", On: answers(judge.MethodPrompt), Check: func(e *judge.Event) {
		s := e.Session
		if s == nil || s.Closed == nil || e.Request == nil {
			return
		}
		after := e.Request.At.Number > s.Closed.Number
		switch {
		case refusedLate(e):
		case after && e.Kind == finding.Response:
			e.Broken("", "the agent accepted a prompt in a closed session").Because(s.Closed, "the session was closed").
				Because(e.Request.At, "the prompt")
		case !after && (e.Kind == finding.ErrorReply || e.Text("stopReason") != "cancelled"):
			e.Broken("", "closing the session must cancel the turn").
				Because(e.Request.At, "the prompt").Because(s.Closed, "the session was closed")
		}
	}},
	{ID: "SES-17", On: requests(setupMethods...), Check: func(e *judge.Event) {
		for i, root := range e.Content.Items("additionalDirectories") {
			requireAbsolute(e, schema.Element("/additionalDirectories", i), root.Text())
		}
	}},
	{ID: "SES-19", On: requests(setupMethods...), Check: func(e *judge.Event) {
		capability := nameByVersion(e, "sessionCapabilities.additionalDirectories", "session.additionalDirectories")
		if e.Given("additionalDirectories") && !e.Agent.Can(capability) {
			e.Broken("/additionalDirectories", "the client sent this, but the agent does not advertise %s", capability).
				Because(e.Agent.At, "its capabilities")
		}
	}},
	{ID: "SES-20", On: requests(setupMethods...), Check: func(e *judge.Event) {
		if cwd := e.Content.Member("cwd"); cwd.IsText() && !absolute(cwd.Text()) {
			e.Broken("/cwd", "%q is not an absolute path", finding.Clip(cwd.Text()))
		}
	}},
	{ID: "SES-21", On: results(judge.MethodList), Check: func(e *judge.Event) {
		for i, listed := range e.Content.Items("sessions") {
			s, cwd := e.History.Session(listed.Text("sessionId")), judge.PathKey(listed.Text("cwd"))
			if s != nil && s.Moved != nil && s.Setup == nil && s.Moved.Number < e.Request.At.Number && cwd == s.OldCwd &&
				cwd != s.Cwd {
				e.Broken(schema.Element("/sessions", i)+"/cwd", "the directory of the session is now another one").
					Because(s.Moved, "the answer to the request that changed it").Mildly(finding.Should)
			}
		}
	}},
	{ID: "SES-27", On: requests(setupMethods...), Check: func(e *judge.Event) {
		for i, server := range e.Content.Items("mcpServers") {
			kind := server.Text("type")
			capability := nameByVersion(e, "mcpCapabilities.", "session.mcp.") + kind
			if kind != "" && (e.InForce == 2 || kind != "stdio") && !e.Agent.Can(capability) {
				e.Broken(schema.Element("/mcpServers", i), "the client sent this, but the agent does not advertise %s",
					finding.Clip(capability)).Because(e.Agent.At, "its capabilities")
			}
		}
	}},
	{ID: "SES-29", On: requests(setupMethods...), Check: func(e *judge.Event) {
		for i, server := range e.Content.Items("mcpServers") {
			if kind := server.Text("type"); kind == "" || kind == "stdio" {
				requireAbsolute(e, schema.Element("/mcpServers", i)+"/command", server.Text("command"))
			}
		}
	}},
	// Both travel from the agent to the client, so their order is certain.
	{ID: "SES-31", On: results(judge.MethodNew), Check: func(e *judge.Event) {
		s := e.History.Session(e.Text("sessionId"))
		if s != nil && s.Usable == nil && s.Named.Method == judge.MethodUpdate && s.Named.Number > e.Request.At.Number {
			e.Broken("/sessionId", "the agent sent an update before the answer that gives the session's id").
				Because(s.Named, "the update")
		}
	}},
}

// refusedLate reports whether an answer refuses a prompt that was sent between session/close and its answer, as the
// agent may, because it reads the prompt when the session is closing or closed.
func refusedLate(e *judge.Event) bool {
	code, ok := e.Content.Integer("code")
	return ok && e.Request.Turn != nil && e.Request.Turn.Late &&
		slices.Contains([]int64{codeNotFound, codeInvalid, codeCancelled}, code)
}
