// Rules of the page initialization.

package conformance

import (
	"maps"
	"slices"
)

var initializationRules = []rule{
	{
		ID:       "INI-1",
		Versions: both,
		Breaks:   "A request or notification of the client that is sent before initialize, or a request that is sent before its answer.",
		Right: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{}}}
			-> {"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":0,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}
			-> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`,
		on: on(requests(), notifications()),
		// The client sees the answer before it sends more, wherever the judge stands.
		check: func(e *event) {
			switch {
			case e.garbled[Client] || e.sender() != Client || e.method == methodInitialize || e.initialized != nil || isProtocol(e.method):
			case e.initialize == nil && e.once(""):
				e.broken("", "sent before initialize")
			case e.initialize != nil && e.once(""):
				e.broken("", "sent before the answer to initialize").because(e.initialize, "initialize, not answered yet")
			}
		},
	},
	{
		ID:     "INI-2",
		Breaks: "An initialize request without clientCapabilities. One without protocolVersion breaks INI-6 too, and is reported as that.",
		Right:  `-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{},"clientInfo":{"name":"editor","version":"1.0"}}}`,
		Wrong:  `-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientInfo":{"name":"editor","version":"1.0"}}}`,
		on:     requests(methodInitialize),
		check: func(e *event) {
			if isObject(e.content) && !e.given("clientCapabilities") {
				e.broken("/clientCapabilities", "the client does not state its capabilities")
			}
		},
	},
	{
		ID:     "INI-3",
		Breaks: "An initialize request without clientInfo.",
		Right:  `-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientInfo":{"name":"editor","version":"1.0"}}}`,
		Wrong:  `-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`,
		on:     requests(methodInitialize),
		check: func(e *event) {
			if !e.given("clientInfo") {
				e.broken("/clientInfo", "the client does not say who it is")
			}
		},
	},
	{
		ID:     "INI-4",
		Breaks: "An answer to initialize without agentCapabilities. One without protocolVersion breaks INI-6 too, and is reported as that.",
		Right: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{},"clientInfo":{"name":"editor","version":"1.0"}}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{},"agentInfo":{"name":"agent","version":"1.0"}}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{},"clientInfo":{"name":"editor","version":"1.0"}}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentInfo":{"name":"agent","version":"1.0"}}}`,
		on: results(methodInitialize),
		check: func(e *event) {
			if isObject(e.content) && !e.given("agentCapabilities") {
				e.broken("/agentCapabilities", "the agent does not state its capabilities")
			}
		},
	},
	{
		ID:     "INI-5",
		Breaks: "An answer to initialize without agentInfo.",
		Right: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{},"clientInfo":{"name":"editor","version":"1.0"}}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{},"agentInfo":{"name":"agent","version":"1.0"}}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{},"clientInfo":{"name":"editor","version":"1.0"}}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{}}}`,
		on: results(methodInitialize),
		check: func(e *event) {
			if !e.given("agentInfo") {
				e.broken("/agentInfo", "the agent does not say who it is")
			}
		},
	},
	{
		ID:       "INI-9",
		Versions: both,
		Breaks:   "An error (-32600 or -32602) that answers an initialize whose only fault is a version that the agent does not know.",
		Right: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":9,"info":{"name":"editor","version":"1.0"},"capabilities":{}}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{}}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":9,"info":{"name":"editor","version":"1.0"},"capabilities":{}}}
			<- {"jsonrpc":"2.0","id":0,"error":{"code":-32602,"message":"unsupported version"}}`,
		on: failures(methodInitialize),
		// Of a version that is published, the error may be about something else.
		check: func(e *event) {
			code, _ := integer(e.content, "code")
			if e.requested > latestVersion && e.initializeFits && (code == codeInvalid || code == codeParams) {
				e.broken("/code", "a version that is not supported is not an error").because(e.initialize, "the request")
			}
		},
	},
	{
		ID:       "INI-10",
		Versions: both,
		Breaks:   "A request of the client after the agent has chosen a version above the one that the client asked for, which is the highest it speaks.",
		Right: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2,"info":{"name":"agent","version":"1.0"}}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2,"info":{"name":"agent","version":"1.0"}}}
			-> {"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/work"}}`,
		on: requests(),
		check: func(e *event) {
			if e.sender() == Client && e.method != methodInitialize && e.initialized != nil && e.requested > 0 && e.version > e.requested && e.once("") {
				e.broken("", "the client goes on with version %d", e.version).
					because(e.initialize, "asks for the highest version of the client").because(e.initialized, "chooses a higher one")
			}
		},
	},
	{
		ID:     "INI-13",
		Breaks: "A client that answers fs/*, terminal/create or elicitation/create with a result and has not stated the capability for it.",
		Right: `<- {"jsonrpc":"2.0","id":0,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/work/a.go"}}
			-> {"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"method not found"}}`,
		Wrong: `
			<- {"jsonrpc":"2.0","id":0,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/work/a.go"}}
			-> {"jsonrpc":"2.0","id":0,"result":{"content":"package a"}}`,
		on: results(clientMethods()...),
		check: func(e *event) {
			if e.method == methodElicit && e.text("action") != "accept" {
				return // who declines or cancels shows nothing
			}
			if capability := clientCapability[e.method]; e.sender() == Client && !e.client.can(capability) {
				e.broken("", "the client can do this and does not state %s", capability).
					because(e.client.at, "its capabilities").because(e.request.at, "the request")
			}
		},
	},
	{
		ID:     "INI-14",
		Breaks: "An agent that answers an optional method with a result and has not stated the capability for it.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/list","params":{}}
			<- {"jsonrpc":"2.0","id":10,"error":{"code":-32601,"message":"method not found"}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/list","params":{}}
			<- {"jsonrpc":"2.0","id":10,"result":{"sessions":[]}}`,
		on: results(agentMethods()...),
		check: func(e *event) {
			if capability := agentCapability[e.method]; e.sender() == Agent && !e.agent.can(capability) {
				e.broken("", "the agent can do this and does not state %s", capability).
					because(e.agent.at, "its capabilities").because(e.request.at, "the request")
			}
		},
	},
	{
		ID:       "INI-16",
		Versions: both,
		Breaks:   "session/new or session/prompt that is answered with -32601 (method not found).",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":10,"error":{"code":-32603,"message":"no disk space"}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":10,"error":{"code":-32601,"message":"method not found"}}`,
		on: failures(methodNew, methodPrompt),
		check: func(e *event) {
			if code, _ := integer(e.content, "code"); code == codeMethod && e.initialized != nil && e.sender() == Agent &&
				(e.inForce == 1 || e.agent.can("session")) {
				e.broken("/code", "every agent has this method").because(e.request.at, "the request")
			}
		},
	},
	{
		ID:       "INI-19",
		Versions: both,
		Breaks:   "An authMethods entry of type terminal for a client that does not state auth.terminal.",
		Right: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{},"clientInfo":{"name":"editor","version":"1.0"}}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[{"id":"key","name":"API key"}]}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{},"clientInfo":{"name":"editor","version":"1.0"}}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[{"type":"terminal","id":"tui","name":"Log in"}]}}`,
		on: results(methodInitialize),
		check: func(e *event) {
			for i, method := range items(e.content, "authMethods") {
				// An extension in _meta may ask for them, as older clients do.
				if text(method, "type") == "terminal" && !e.client.can("auth.terminal") && !e.client.meta {
					e.broken(element("/authMethods", i), "a terminal method for a client without auth.terminal").
						because(e.client.at, "the client's capabilities")
				}
			}
		},
	},
}

// isProtocol reports whether a method is one of the protocol's own, which may be sent at any time.
func isProtocol(method string) bool { return len(method) > 1 && method[:2] == "$/" }

// latestVersion is the newest version that is published.
const latestVersion = 2

// clientCapability is the capability of the client that a method of version 1 needs, agentCapability that of the agent.
var (
	clientCapability = map[string]string{
		"fs/read_text_file":  "fs.readTextFile",
		"fs/write_text_file": "fs.writeTextFile",
		"terminal/create":    "terminal",
		"elicitation/create": "elicitation",
	}
	agentCapability = map[string]string{
		methodLoad:   "loadSession",
		methodResume: "sessionCapabilities.resume",
		methodList:   "sessionCapabilities.list",
		methodClose:  "sessionCapabilities.close",
		methodDelete: "sessionCapabilities.delete",
		"logout":     "auth.logout",
	}
)

func clientMethods() []string { return slices.Sorted(maps.Keys(clientCapability)) }
func agentMethods() []string  { return slices.Sorted(maps.Keys(agentCapability)) }
