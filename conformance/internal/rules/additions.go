// Rules that are on no page. They were found by running real programs.

package rules

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/judge"
	"github.com/acpgo/sdk/conformance/internal/schema"
)

var additionsRules = []judge.Rule{
	// The agent can introduce a session only in an answer, and a judge sees that before anything the agent sends
	// later.
	{ID: "ADD-2", On: anyOf(updates(), requests(judge.MethodPermission, judge.MethodElicit, judge.MethodReadFile,
		judge.MethodWriteFile, judge.MethodTerminalCreate, judge.MethodTerminalOutput, judge.MethodTerminalWait,
		judge.MethodTerminalKill, judge.MethodTerminalRelease)),
		Check: func(e *judge.Event) {
			s, id := e.Session, e.Text("sessionId")
			if e.Sender() != finding.Agent || s != nil && (s.Usable != nil || s.Asked) || id == "" || e.Initialized == nil ||
				e.Sessions.Forgot || e.Listed.Forgot || e.Giving > 0 || e.Garbled[finding.Client] {
				return
			}
			if _, listed := e.Listed.Get(id); !listed && e.Once(id) {
				e.Broken("/sessionId", "the agent named the session %q, which the client does not know", finding.Clip(id))
			}
		}},
	{ID: "ADD-5", On: results(schema.MethodInitialize), Check: func(e *judge.Event) {
		requireUnique(e, "/authMethods", nameByVersion(e, "id", "methodId"), "another method")
	}},
	{ID: "ADD-6", On: failures(), Check: func(e *judge.Event) {
		switch message := e.Content.Member("message"); {
		case !message.IsText():
		case strings.TrimSpace(message.Text()) == "":
			e.Broken("/message", "the error's message is empty")
		case strings.ContainsAny(strings.TrimRight(message.Text(), "\r\n"), "\r\n"):
			e.Broken("/message", "the error's message has more than one line")
		}
	}},
	{ID: "ADD-7", On: results(schema.MethodInitialize), Check: func(e *judge.Event) {
		if chosen, ok := e.Content.Integer("protocolVersion"); ok && (chosen > latestVersion || chosen < 1) {
			e.Broken("/protocolVersion", "the agent chose version %d, which does not exist", chosen).
				Because(e.Initialize, "the request")
		}
	}},
	{ID: "ADD-10", On: anyOf(requests(append(unstableMethods(), judge.MethodNew, judge.MethodLoad, judge.MethodResume,
		judge.MethodList)...), updates(slices.Sorted(maps.Keys(unstableUpdate))...)),
		Check: func(e *judge.Event) {
			switch {
			case e.Sender() == finding.Agent:
				if e.InForce == 1 && e.Kind == finding.Notification {
					e.Needs(&e.Client, unstableUpdate[e.Update])
				}
				return
			case e.InForce == 1 && unstableCapability[e.Method] != "":
				e.Needs(&e.Agent, unstableCapability[e.Method])
			}
			for name, v1 := range unstableMember {
				capability := nameByVersion(e, v1, strings.Replace(v1, "sessionCapabilities", "session", 1))
				if e.Given(name) && !e.Agent.Can(capability) {
					e.Broken("/"+name, "the client sent this, but the agent does not advertise %s", capability).
						Because(e.Agent.At, "its capabilities")
				}
			}
		}},
	{ID: "ADD-12", On: updates("available_commands_update"), Check: func(e *judge.Event) {
		if s := e.Session; s != nil && s.Loaded != nil && s.Commands == nil {
			e.Broken("", "the agent sent its commands after the answer to session/load, not before it").
				Because(s.Loaded, "the answer")
		}
	}},
	{ID: "ADD-13", On: anyOf(results(judge.MethodList), updates("session_info_update")), Check: func(e *judge.Event) {
		timestamp := func(where string, v *schema.Value) {
			if at := v.Member("updatedAt"); at.IsText() && !iso8601.MatchString(at.Text()) {
				e.Broken(where+"/updatedAt", "%q is not an ISO 8601 timestamp", finding.Clip(at.Text()))
			}
		}
		timestamp("/update", e.Content.Member("update"))
		for i, s := range e.Content.Items("sessions") {
			timestamp(schema.Element("/sessions", i), s)
		}
	}},
	{ID: "ADD-15", On: requests(judge.MethodTerminalOutput, judge.MethodTerminalWait, judge.MethodTerminalKill),
		Check: func(e *judge.Event) {
			if t := e.Terminal(e.Text("terminalId")); t != nil && t.Released != nil && !t.ReleaseRefused {
				e.Broken("/terminalId", "the agent used a terminal that it has already released").Because(t.Released, "its release")
			}
		}},
	{ID: "ADD-16", On: results(judge.MethodList), Check: func(e *judge.Event) {
		if e.Request == nil || !e.Request.Params.Given("cwd") {
			return
		}
		wanted := e.Request.Params.Text("cwd")
		for i, s := range e.Content.Items("sessions") {
			if cwd := s.Text("cwd"); absolute(cwd) && judge.PathKey(cwd) != judge.PathKey(wanted) {
				e.Broken(schema.Element("/sessions", i)+"/cwd",
					"the agent listed a session in %q, which is not the cwd of the request", finding.Clip(cwd)).
					Because(e.Request.At, "the request")
			}
		}
	}},
}

// iso8601 matches a calendar, ordinal or week date, with or without a time.
var iso8601 = regexp.MustCompile(`^(?i)[+-]?\d{4,6}(-?(0[1-9]|1[0-2])(-?(0[1-9]|[12]\d|3[01]))?|-?[0-3]\d\d|-?W[0-5]\d(-?[1-7])?)` +
	`(T([01]\d|2[0-4])(:?[0-5]\d(:?([0-5]\d|60))?)?([.,]\d+)?(Z|[+-][01]\d(:?[0-5]\d)?)?)?$`)

// unstableMember maps each unstable member of a version 1 request to the capability of the agent that it needs.
var unstableMember = map[string]string{"systemPrompt": "sessionCapabilities.systemPrompt",
	"archived": "sessionCapabilities.archive"}

// unstableUpdate maps each unstable update of version 1 to the capability of the client that it needs.
var unstableUpdate = map[string]string{
	"plan_update":           "plan",
	"plan_removed":          "plan",
	"subagent_update":       "subagents",
	"session_message":       "subagents",
	"session_message_chunk": "subagents",
}

func unstableMethods() []string { return slices.Sorted(maps.Keys(unstableCapability)) }
