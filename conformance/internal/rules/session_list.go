// Rules of the page session-list.

package rules

import (
	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/judge"
)

var sessionListRules = []judge.Rule{
	{ID: "LST-3", On: requests(judge.MethodList),
		Check: func(e *judge.Event) { e.Needs(&e.Agent, "sessionCapabilities.list") }},
	{ID: "LST-9", On: requests(judge.MethodList), Check: func(e *judge.Event) {
		if e.Given("cursor") && e.Sender() == finding.Client && e.ListEnded != nil && e.Cursors.None() {
			e.Broken("/cursor", "no answer had a nextCursor, so there is no further page").
				Because(e.ListEnded, "the answer without nextCursor")
		}
	}},
	{ID: "LST-10", On: requests(judge.MethodList), Check: func(e *judge.Event) {
		_, known := e.Cursors.Get(e.Text("cursor"))
		ended := e.ListEnded != nil && e.Cursors.None() // LST-9
		if e.Content.Member("cursor").IsText() && e.Sender() == finding.Client && !known && !e.Cursors.Forgot && !ended {
			r := e.Broken("/cursor", "the agent never returned the cursor %q", finding.Clip(e.Text("cursor")))
			for _, at := range e.Cursors.All {
				r.Because(at, "a cursor that the agent returned")
				break
			}
		}
	}},
}
