// Rules of the page authentication.

package rules

import (
	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/judge"
)

var authenticationRules = []judge.Rule{
	{ID: "AUT-1", On: requests("logout"), Check: func(e *judge.Event) { e.Needs(&e.Agent, "auth.logout") }},
	{ID: "AUT-2", On: requests("authenticate", "auth/login"), Check: func(e *judge.Event) {
		if m, ok := e.AuthMethods.Get(e.Text("methodId")); ok && m.Kind == "terminal" {
			e.Broken("/methodId", "the client must run a method of type terminal itself, not pass it to authenticate").
				Because(m.At, "the methods that the agent offers")
		}
	}},
	{ID: "AUT-3", On: requests("authenticate", "auth/login"), Check: func(e *judge.Event) {
		id := e.Text("methodId")
		if _, ok := e.AuthMethods.Get(id); !ok && id != "" && !e.AuthMethods.Forgot && e.Initialized != nil {
			e.Broken("/methodId", "the agent does not offer the method %q", finding.Clip(id)).
				Because(e.Initialized, "the methods that it offers")
		}
	}},
	// Only for requests that the client sent after the answer to authenticate: the agent cannot have read them
	// earlier.
	{ID: "AUT-9", On: failures(judge.MethodNew), Check: func(e *judge.Event) {
		code, _ := e.Content.Integer("code")
		if login := e.LoggedIn; code == codeAuth && login != nil && e.Request != nil && e.Request.At.Number > login.Number {
			e.Broken("/code", "the agent still requires authentication after authenticate succeeded").
				Because(login, "the successful authentication").Because(e.Request.At, "the request")
		}
	}},
	{ID: "AUT-10", On: results(judge.MethodNew), Check: func(e *judge.Event) {
		if out := e.LoggedOut; out != nil && e.AuthNeeded != nil && e.Request != nil && e.Request.At.Number > out.Number {
			e.Broken("", "the agent opened a session after logout without requiring authentication").
				Because(e.AuthNeeded, "authentication was required before").Because(out, "the logout")
		}
	}},
}
