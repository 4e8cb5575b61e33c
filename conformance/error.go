// Rules of the page error.

package conformance

import (
	"cmp"
	"regexp"
)

const (
	codeInternal = -32603
	codeVersion  = -32022 // in version 2
)

var errorRules = []rule{
	{
		ID:       "ERR-2",
		Versions: both,
		Breaks:   "A code in -32768…-32000 or -32899…-32800 that neither JSON-RPC nor the protocol defines.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"_example.com/ping"}
			<- {"jsonrpc":"2.0","id":10,"error":{"code":1,"message":"out of order"}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"_example.com/ping"}
			<- {"jsonrpc":"2.0","id":10,"error":{"code":-32050,"message":"out of order"}}`,
		on: failures(),
		check: func(e *event) {
			code, ok := integer(e.content, "code")
			reserved := code >= -32768 && code <= -32000 || code >= -32899 && code <= -32800
			if ok && reserved && !definedCodes[code] {
				e.broken("/code", "%d is in a reserved range and not defined", code)
			}
		},
	},
	{
		ID:       "ERR-3",
		Versions: both,
		Breaks: "An error for a method that is missing with another code than -32601: one that says so in words, or one for a method that needs " +
			"a capability that the answering side does not state.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/list","params":{}}
			<- {"jsonrpc":"2.0","id":10,"error":{"code":-32601,"message":"Method not found"}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/list","params":{}}
			<- {"jsonrpc":"2.0","id":10,"error":{"code":-32603,"message":"cannot list"}}`,
		on: failures(),
		check: func(e *event) {
			code, ok := integer(e.content, "code")
			side, capability := e.gate()
			switch {
			case !ok || e.request == nil || isCustom(e.method) || code == codeMethod || e.method == methodElicit: // ELI-23
			case capability != "" && !side.can(capability) && !earlier[code]:
				e.broken("/code", "the method needs %s, which is not stated: the code is %d", capability, codeMethod).
					because(side.at, "the capabilities").because(e.request.at, "the request")
			case code != codeParams && noSuchMethod.MatchString(e.text("message")):
				e.broken("/code", "an unknown method has the code %d", codeMethod).because(e.request.at, "the request")
			}
		},
	},
	{
		ID:       "ERR-4",
		Versions: both,
		Breaks:   "An error for a mode, an option or a value that the session never had with another code than -32602; or one that says in words that params are invalid, with another code.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"_example.com/ping","params":{"times":-1}}
			<- {"jsonrpc":"2.0","id":10,"error":{"code":-32602,"message":"Invalid params: times"}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"_example.com/ping","params":{"times":-1}}
			<- {"jsonrpc":"2.0","id":10,"error":{"code":-32603,"message":"Invalid params: times"}}`,
		on: failures(),
		check: func(e *event) {
			code, ok := integer(e.content, "code")
			switch {
			case !ok || e.request == nil || code == codeParams:
			case e.request.unsupported && code != codeMethod && code != codeNotFound && !earlier[code]:
				e.broken("/code", "a value that is not supported has the code %d", codeParams).because(e.request.at, "the request")
			case invalidParams.MatchString(e.text("message")):
				e.broken("/code", "invalid params have the code %d", codeParams).because(e.request.at, "the request")
			}
		},
	},
	{
		ID:       "ERR-5",
		Versions: both,
		Breaks: "An error with another code than -32002 for a request about a session that was closed or deleted, or that this connection neither made nor loaded; " +
			"or one with that code and without the session in data.sessionId.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"other","prompt":[{"type":"text","text":"hello"}]}}
			<- {"jsonrpc":"2.0","id":10,"error":{"code":-32002,"message":"no such session","data":{"sessionId":"other"}}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"other","prompt":[{"type":"text","text":"hello"}]}}
			<- {"jsonrpc":"2.0","id":10,"error":{"code":-32602,"message":"no such session"}}`,
		on: failures(methodPrompt, methodSetMode, methodSetOption, methodLoad, methodResume),
		check: func(e *event) {
			s := e.session
			code, ok := integer(e.content, "code")
			if !ok || s == nil || e.sender() != Agent || e.sessions.forgot || !e.request.fits {
				return
			}
			setup := e.method == methodLoad || e.method == methodResume
			over := s.closed != nil && s.closed.Number < e.request.at.Number || s.deleted != nil && s.deleted.Number < e.request.at.Number
			unknown := !setup && (s.given == nil && s.named.Direction == ToAgent || over)
			switch {
			case unknown && code != codeNotFound && code != codeMethod && !earlier[code]:
				found := e.broken("/code", "a session that is unknown or not active has the code %d", codeNotFound).because(e.request.at, "the request")
				found.because(s.closed, "the session was closed").because(s.deleted, "the session was deleted")
			case code == codeNotFound && (setup || unknown) && !e.given("data", "uri") && short(e.text("data", "sessionId")) != s.id:
				e.broken("/data", "does not name the session in sessionId").because(e.request.at, "the request")
			}
		},
	},
	{
		ID:       "ERR-6",
		Versions: both,
		Breaks:   "An answer to a request of the client that was sent before initialize, with a result or with another code than -32600 or -32601.",
		Right: `
			-> {"jsonrpc":"2.0","id":9,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":9,"error":{"code":-32600,"message":"not initialized"}}
			-> {"jsonrpc":"2.0","id":10,"method":"initialize","params":{"protocolVersion":1,"clientInfo":{"name":"c","version":"1"},"clientCapabilities":{}}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":9,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":9,"result":{"sessionId":"s"}}
			-> {"jsonrpc":"2.0","id":10,"method":"initialize","params":{"protocolVersion":1,"clientInfo":{"name":"c","version":"1"},"clientCapabilities":{}}}`,
		on: answers(),
		check: func(e *event) {
			code, _ := integer(e.content, "code")
			r := e.request
			switch {
			case r == nil || e.sender() != Agent || r.method == methodInitialize || isProtocol(r.method) || isCustom(r.method):
			case e.initialize != nil && e.initialize.Number < r.at.Number:
			case e.kind == ErrorReply && (code == codeInvalid || code == codeMethod || code == codeParse || code == codeCancelled):
			default:
				e.broken("", "the connection was not initialized: the answer is the error %d", codeInvalid).because(r.at, "the request, before initialize")
			}
		},
	},
	{
		ID:       "ERR-7",
		Versions: both,
		Breaks: "An error without id for a line that is not JSON with another code than -32700, or for one that is JSON and no message with " +
			"another code than -32600. For a line that is nested deeper than 64 both are right.",
		Right: `
			-> {"jsonrpc":
			<- {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`,
		Wrong: `
			-> {"jsonrpc":
			<- {"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"Internal error"}}`,
		on: failures(),
		check: func(e *event) {
			code, ok := integer(e.content, "code")
			lines := e.unread[e.sender()]
			if !ok || e.request != nil || e.id != "null" && e.id != "" || lines.at == nil || e.oddIDs[e.sender()] {
				return
			}
			want := int64(codeParse)
			if lines.json {
				want = codeInvalid
			}
			// Of several lines it is not known which one is answered, and a parser with a limit cannot know what a deep line is.
			if known := code == codeParse || code == codeInvalid; !known || lines.count == 1 && !lines.deep && code != want {
				e.broken("/code", "a line that is %s has the code %d", lines, want).because(lines.at, "the line")
			}
		},
	},
	{
		ID:       "ERR-9",
		Versions: both,
		Breaks: "An error -32000 that says in words that something else is wrong: a rate limit, a quota, a session that is busy (and nothing about authentication). " +
			"Or one of an agent that offers no way to authenticate to a client that has them all.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":10,"error":{"code":-32000,"message":"Authentication required"}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}
			<- {"jsonrpc":"2.0","id":10,"error":{"code":-32000,"message":"429: rate limit exceeded"}}`,
		on: failures(),
		check: func(e *event) {
			code, _ := integer(e.content, "code")
			if code != codeAuth || e.sender() != Agent || isCustom(e.method) {
				return
			}
			switch {
			case notAuth.MatchString(e.text("message")) && !authWords.MatchString(e.text("message")):
				e.broken("/code", "%d means that authentication is required, and nothing else", codeAuth)
			case e.agent.at != nil && len(e.authMethods.entries) == 0 && !e.authMethods.forgot && e.client.can("auth.terminal") && e.client.at != nil:
				e.broken("/code", "the agent offers no way to authenticate").because(e.agent.at, "its answer to initialize")
			}
		},
	},
}

// definedCodes are those of JSON-RPC and of the protocol.
var definedCodes = map[int64]bool{
	codeParse: true, codeInvalid: true, codeMethod: true, codeParams: true, codeInternal: true,
	codeCancelled: true, codeAuth: true, codeNotFound: true, codeVersion: true,
}

// earlier are the codes of what may be found before an agent looks at the rest of a request.
var earlier = map[int64]bool{codeParse: true, codeInvalid: true, codeAuth: true, codeCancelled: true}

// gate is the capability that the method of an answer needs, "" if none, and the capabilities of the side that answers.
func (e *event) gate() (side *abilities, capability string) {
	switch {
	case e.sender() == Client:
		return &e.client, e.named(clientCapability[e.method], "")
	case e.inForce == 1:
		return &e.agent, cmp.Or(agentCapability[e.method], unstableCapability[e.method])
	case e.method == methodDelete:
		return &e.agent, "session.delete"
	}
	return &e.agent, ""
}

var (
	invalidParams = regexp.MustCompile(`(?i)^\W*(invalid|missing) param(s|eter|eters)?\b`)
	authWords     = regexp.MustCompile(`(?i)auth|log.?in|sign.?in`)
	notAuth       = regexp.MustCompile(`(?i)\brate.?limit|too many requests|\bquota\b|overloaded|\btimed? ?out\b|\bbusy\b|already (running|in progress)`)
)
