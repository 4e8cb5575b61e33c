// Rules of the page session-delete.

package rules

import (
	"github.com/acpgo/sdk/conformance/internal/judge"
	"github.com/acpgo/sdk/conformance/internal/schema"
)

var sessionDeleteRules = []judge.Rule{
	{ID: "DEL-3", On: requests(judge.MethodDelete), Check: func(e *judge.Event) {
		e.Needs(&e.Agent, nameByVersion(e, "sessionCapabilities.delete", "session.delete"))
	}},
	{ID: "DEL-4", On: results(judge.MethodList), Check: func(e *judge.Event) {
		for i, listed := range e.Content.Items("sessions") {
			if s := e.History.Session(listed.Text("sessionId")); s != nil && s.Deleted != nil &&
				e.Request.At.Number > s.Deleted.Number {
				e.Broken(schema.Element("/sessions", i), "the agent listed a session that was deleted").
					Because(s.Deleted, "it was deleted").Because(e.Request.At, "the later request")
			}
		}
	}},
	{ID: "DEL-5", On: failures(judge.MethodDelete), Check: func(e *judge.Event) {
		if s := e.Session; s != nil && s.Deleted != nil && e.Request.At.Number > s.Deleted.Number &&
			e.Request.Cancelled == nil {
			e.Broken("", "deleting a session that was already deleted is not an error").Because(s.Deleted, "it was deleted")
		}
	}},
}
