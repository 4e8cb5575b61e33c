// Rules of the page authentication.

package rules

import (
	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/judge"
)

var authenticationRules = []judge.Rule{
	{
		ID:     "AUT-1",
		Breaks: "A logout request to an agent that does not advertise auth.logout.",
		Right: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{},"clientInfo":{"name":"c","version":"1"}}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{"auth":{"logout":{}}}}}
			-> {"jsonrpc":"2.0","id":10,"method":"logout","params":{}}`,
		Wrong: `-> {"jsonrpc":"2.0","id":10,"method":"logout","params":{}}`,
		On:    requests("logout"),
		Check: func(e *judge.Event) { e.Needs(&e.Agent, "auth.logout") },
	},
	{
		ID:       "AUT-2",
		Versions: both,
		Breaks:   "authenticate with the id of a method of type terminal, which the client must run itself.",
		Right: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"auth":{"terminal":true}}}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[{"id":"key","name":"API key"},{"type":"terminal","id":"tui","name":"Log in"}]}}
			-> {"jsonrpc":"2.0","id":10,"method":"authenticate","params":{"methodId":"key"}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"auth":{"terminal":true}}}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[{"id":"key","name":"API key"},{"type":"terminal","id":"tui","name":"Log in"}]}}
			-> {"jsonrpc":"2.0","id":10,"method":"authenticate","params":{"methodId":"tui"}}`,
		On: requests("authenticate", "auth/login"),
		Check: func(e *judge.Event) {
			if m, ok := e.AuthMethods.Get(e.Text("methodId")); ok && m.Kind == "terminal" {
				e.Broken("/methodId", "the client must run a method of type terminal itself, not pass it to authenticate").
					Because(m.At, "the methods that the agent offers")
			}
		},
	},
	{
		ID:       "AUT-3",
		Versions: both,
		Breaks:   "authenticate with an id that is not in authMethods.",
		Right: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[{"id":"key","name":"API key"}]}}
			-> {"jsonrpc":"2.0","id":10,"method":"authenticate","params":{"methodId":"key"}}`,
		Wrong: `-> {"jsonrpc":"2.0","id":10,"method":"authenticate","params":{"methodId":"key"}}`,
		On:    requests("authenticate", "auth/login"),
		Check: func(e *judge.Event) {
			id := e.Text("methodId")
			if _, ok := e.AuthMethods.Get(id); !ok && id != "" && !e.AuthMethods.Forgot && e.Initialized != nil {
				e.Broken("/methodId", "the agent does not offer the method %q", finding.Clip(id)).
					Because(e.Initialized, "the methods that it offers")
			}
		},
	},
	{
		ID:       "AUT-9",
		Versions: both,
		Breaks:   "session/new that is answered with -32000 (authentication required) after authenticate succeeded.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"authenticate","params":{"methodId":"key"}}
			<- {"jsonrpc":"2.0","id":10,"result":{}}
			-> {"jsonrpc":"2.0","id":11,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":11,"result":{"sessionId":"t"}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"authenticate","params":{"methodId":"key"}}
			<- {"jsonrpc":"2.0","id":10,"result":{}}
			-> {"jsonrpc":"2.0","id":11,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":11,"error":{"code":-32000,"message":"authentication required"}}`,
		On: failures(judge.MethodNew),
		// Only for requests that the client sent after the answer to authenticate: the agent cannot have read them
		// earlier.
		Check: func(e *judge.Event) {
			code, _ := e.Content.Integer("code")
			if login := e.LoggedIn; code == codeAuth && login != nil && e.Request != nil && e.Request.At.Number > login.Number {
				e.Broken("/code", "the agent still requires authentication after authenticate succeeded").
					Because(login, "the successful authentication").Because(e.Request.At, "the request")
			}
		},
	},
	{
		ID:       "AUT-10",
		Versions: both,
		Breaks:   "session/new that succeeds after logout, on a connection that required authentication before.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":10,"error":{"code":-32000,"message":"authentication required"}}
			-> {"jsonrpc":"2.0","id":11,"method":"authenticate","params":{"methodId":"key"}}
			<- {"jsonrpc":"2.0","id":11,"result":{}}
			-> {"jsonrpc":"2.0","id":12,"method":"logout","params":{}}
			<- {"jsonrpc":"2.0","id":12,"result":{}}
			-> {"jsonrpc":"2.0","id":13,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":13,"error":{"code":-32000,"message":"authentication required"}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":10,"error":{"code":-32000,"message":"authentication required"}}
			-> {"jsonrpc":"2.0","id":11,"method":"authenticate","params":{"methodId":"key"}}
			<- {"jsonrpc":"2.0","id":11,"result":{}}
			-> {"jsonrpc":"2.0","id":12,"method":"logout","params":{}}
			<- {"jsonrpc":"2.0","id":12,"result":{}}
			-> {"jsonrpc":"2.0","id":13,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":13,"result":{"sessionId":"t"}}`,
		On: results(judge.MethodNew),
		Check: func(e *judge.Event) {
			if out := e.LoggedOut; out != nil && e.AuthNeeded != nil && e.Request != nil && e.Request.At.Number > out.Number {
				e.Broken("", "the agent opened a session after logout without requiring authentication").
					Because(e.AuthNeeded, "authentication was required before").Because(out, "the logout")
			}
		},
	},
}
