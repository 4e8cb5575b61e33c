// Scenarios of the start: initialize, capabilities, authentication.

package probe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/acpgo/sdk/conformance"
)

// startScenario is the first one. What the agent advertises in it decides which others are played.
const startScenario = "start"

// agentScenarios are all scenarios for agents, in the order of their report.
func agentScenarios() []Scenario {
	return slices.Concat(startScenarios, wireScenarios, typeScenarios(), sessionScenarios, promptScenarios,
		cancelScenarios)
}

// version2 is the trait of an agent that speaks version 2, onlyVersion2 that of one that does not speak version 1.
const (
	version2     = "version 2"
	onlyVersion2 = "version 2 alone"
	noVersion1   = "the agent does not speak version 1"
	// otherVersion is the trait of an agent that does not speak the version that is probed, if that is 2.
	otherVersion = "no version 2"
	noVersion2   = "the agent does not speak version 2"
)

// codeVersion is the error of an agent of version 2 for a version that it does not speak.
const codeVersion = -32022

var startScenarios = []Scenario{
	{
		Name:      startScenario,
		Text:      "A client that supports everything starts the agent, creates a session and prompts it.",
		Exercises: []string{"INI-4", "INI-8", "INI-15", "CON-1", "TRN-7"}, Prompts: []string{"text"},
		run: func(p *play) {
			p.initialize("all", allCapabilities)
			p.version(p.init, 1)
			session := p.newSession()
			p.markExercised("INI-15", "CON-1")
			p.prompt(session, "text")
			p.settle()
			// Prompts of the other scenarios wait for commands if there are any.
			p.wait(p.ctx, p.limits.quiet, func() bool { return p.client.offers(session, "") })
			target := p.conn.target
			p.end()
			if target.Stderr == nil {
				return
			}
			if logged := target.Stderr.String(); logged != "" {
				p.check("TRN-7", utf8.ValidString(logged), "the agent's standard error is not UTF-8: %s", clip(logged))
			}
		},
	},
	versionNewer(1),
	{
		Name: "version-older", bare: true,
		Text:      "A client requests version 0, which does not exist.",
		Exercises: []string{"INI-9"},
		run: func(p *play) {
			p.start()
			p.grant("none", noCapabilities)
			m := p.call("initialize", `{"protocolVersion":0,"clientCapabilities":{}}`)
			p.markExercised("INI-9")
			if m == nil {
				p.fail("INI-9", "%s", p.why("initialize with version 0 was not answered"))
			} else if m.kind == conformance.Response && versionOf(m) == 0 {
				p.failAt("INI-9", conformance.Should, "the agent accepted version 0, which no schema describes")
			}
		},
	},
	{
		Name: "version-2", bare: true, anyVersion: true,
		Text: "A client that supports version 2, which is in Preview, and version 1 requests 2: an agent that " +
			"supports only 1 answers with 1, and serves it.",
		Exercises: []string{"INI-9", "ADD-7"},
		run: func(p *play) {
			p.start()
			p.grant("none", noCapabilities)
			m := p.call("initialize", `{"protocolVersion":2,`+bothVersions+`}`)
			p.markExercised("INI-9", "ADD-7")
			switch version := versionOf(m); {
			case m == nil:
				p.fail("INI-9", "%s", p.why("initialize was not answered"))
			case m.kind == conformance.ErrorReply:
				p.fail("INI-9", "version 2 was answered with an error: %s", clip(string(m.params)))
			case version == 1:
				p.init = m
				p.newSession()
			case version == 2:
				p.checkAlive("ADD-1", "initialize of version 2")
				if p.start(); isSet(m.params, "info") && versionOf(p.call("initialize", `{"protocolVersion":65534,`+bothVersions+`}`)) != 65534 {
					p.trait(version2) // it does not just repeat what it is asked for
				}
			default:
				p.fail("INI-9", "version 2 was answered with version %d", version)
			}
		},
	},
	{
		Name: "version-of-wrong-type", bare: true,
		Text: "Versions that are not 16-bit integers are refused or answered, and the agent serves the next client's " +
			"initialize.",
		Exercises: []string{"ERR-4", "SCH-16", "ADD-1"},
		run: func(p *play) {
			for _, version := range []string{`"one"`, `-1`, `1.5`, `70000`, `null`, `[]`, `{}`} {
				p.start()
				p.grant("none", noCapabilities)
				m := p.call("initialize", `{"protocolVersion":`+version+`,"clientCapabilities":{}}`)
				p.markExercised("SCH-16", "ERR-4", "ADD-1")
				if m == nil {
					p.failAt("OVW-3", conformance.Must, "%s", p.why("initialize with the version "+version+" was not answered"))
					continue
				}
				if m.kind == conformance.Response {
					p.failAt("ERR-4", conformance.Advice, "the agent answered version %s with a result", version)
					continue
				}
				if next := p.call("initialize", `{"protocolVersion":1,"clientCapabilities":{},"clientInfo":`+clientInfo+`}`); next == nil || next.kind != conformance.Response {
					p.failAt("ADD-1", conformance.Should, "after the error for version %s, initialize with version 1 failed", version)
				}
			}
		},
	},
	{
		Name: "before-initialize", bare: true,
		Text:      "Requests before initialize are refused, and initialize still works afterwards.",
		Exercises: []string{"ERR-6", "ADD-1"},
		run: func(p *play) {
			p.start()
			for _, request := range [][2]string{
				{"session/new", `{"cwd":` + quote(p.dir) + `,"mcpServers":[]}`},
				{"session/prompt", `{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}`},
			} {
				m := p.call(request[0], request[1])
				if m != nil && m.kind == conformance.Response {
					p.markExercised("ERR-6")
					p.fail("ERR-6", "%s before initialize was answered with a result: %s", request[0], clip(string(m.params)))
					continue
				}
				p.requireError("ERR-6", m, request[0]+" before initialize", -32600, -32002)
			}
			p.notify("session/cancel", `{"sessionId":"s"}`)
			p.markExercised("ADD-1")
			p.initializeWith("none", noCapabilities, `{"protocolVersion":1,"clientCapabilities":{},"clientInfo":`+clientInfo+`}`)
			p.newSession()
		},
	},
	{
		Name: "initialize-twice", bare: true,
		Text:      "A second initialize is answered, with a result or an error, and the connection survives.",
		Exercises: []string{"ADD-1"},
		run: func(p *play) {
			p.initialize("none", noCapabilities)
			if p.call("initialize", `{"protocolVersion":1,"clientCapabilities":{},"clientInfo":`+clientInfo+`}`) == nil {
				p.failAt("OVW-3", conformance.Must, "%s", p.why("a second initialize was not answered"))
				return
			}
			p.checkAlive("ADD-1", "a second initialize")
		},
	},
	{
		Name: "authentication",
		Text: "Authentication methods: unknown ids and those of terminal methods are refused; the chosen method opens " +
			"sessions; logout closes them.",
		Exercises: []string{"ERR-4"}, bare: true,
		run: func(p *play) {
			p.initialize("all", allCapabilities)
			p.authentication("authenticate", "logout", p.can(canLogout))
		},
	},
	capabilities("left-out", leftOut, "read", "terminal"),
	capabilities("none", noCapabilities, "read", "edit", "terminal", "form", "link", "notice", "compact"),
	capabilities("all-off", `{"fs":{"readTextFile":false,"writeTextFile":false},"terminal":false,"auth":{"terminal":false}}`, "edit", "terminal"),
	capabilities("null", `{"fs":null,"terminal":null,"elicitation":null,"session":null,"auth":null,"_meta":null}`, "read"),
	capabilities("wrong-types", `{"fs":{"readTextFile":"yes","writeTextFile":1},"terminal":"true","elicitation":[],"session":{"notices":false,"compaction":0,"configOptions":"x"},"auth":{"terminal":"yes"}}`, "edit", "terminal"),
	capabilities("read-only", `{"fs":{"readTextFile":true}}`, "edit", "terminal"),
	capabilities("write-only", `{"fs":{"writeTextFile":true}}`, "read"),
	capabilities("terminal-only", `{"terminal":true}`, "read", "edit"),
	capabilities("form-only", `{"elicitation":{"form":{}}}`, "link", "read"),
	capabilities("url-only", `{"elicitation":{"url":{}}}`, "form"),
	capabilities("empty-elicitation", `{"elicitation":{"form":null,"url":null},"session":{}}`, "form", "notice"),
	capabilities("unknown", `{"fs":{"readTextFile":true,"writeTextFile":true,"deleteFile":true},"terminal":true,"telepathy":{"range":3},"_meta":{"acp.probe":{"deep":[[[null]]],"big":123456789012345678901234567890}}}`, "form", "compact"),
}

// authentication tries the methods of authentication, and logs in and out with the chosen one.
func (p *play) authentication(login, logout string, canLogout bool) {
	m := p.call(login, `{"methodId":"acp-probe-no-such-method"}`)
	p.requireError("ERR-4", m, login+" with an id that was not offered", -32602, -32601, -32000)
	for _, method := range elements(member(p.init.params, "authMethods")) {
		var a struct{ ID, MethodID, Type string }
		if json.Unmarshal(method, &a) == nil && a.Type == "terminal" {
			m := p.call(login, `{"methodId":`+quote(cmp.Or(a.ID, a.MethodID))+`}`)
			p.requireError("ERR-4", m, login+" with a terminal method", -32602, -32600, -32601, -32000)
		}
	}
	if p.options.Auth == "" {
		return
	}
	p.authenticated = true
	before := p.call("session/new", `{"cwd":`+quote(p.dir)+`,"mcpServers":[]}`)
	needed := before.code() == -32000
	p.authenticate()
	p.trait("authenticated")
	p.newSession()
	if !canLogout {
		return
	}
	if m := p.must("AUT-8", logout, `{}`); m != nil && needed {
		p.trait("logged out")
		if m := p.call("session/new", `{"cwd":`+quote(p.dir)+`,"mcpServers":[]}`); m != nil && m.kind == conformance.Response {
			p.fail("AUT-10", "after %s, session/new succeeded although it required authentication before", logout)
		}
	}
}

// versionNewer is the scenario of a version that does not exist, for agents of a version.
func versionNewer(own int) Scenario {
	return Scenario{
		Name: "version-newer", bare: true, anyVersion: true,
		Text: "A client requests a version that does not exist yet: the agent answers with the latest version that it " +
			"supports.",
		Exercises: []string{"INI-9", "ADD-7"},
		run: func(p *play) {
			p.start()
			p.grant("none", noCapabilities)
			m := p.call("initialize", `{"protocolVersion":65535,`+bothVersions+`}`)
			p.markExercised("INI-9", "ADD-7")
			switch version := versionOf(m); {
			case m == nil:
				p.fail("INI-9", "%s", p.why("initialize was not answered"))
			case m.kind == conformance.ErrorReply:
				p.fail("INI-9", "version 65535 was answered with an error: %s", clip(string(m.params)))
			case version == 65535:
				p.fail("ADD-7", "the agent accepted version 65535, which does not exist")
			case version < 1:
				p.fail("ADD-7", "the agent answered version 65535 with version %d, which is lower than 1", version)
			case version < own:
				p.start()
				if m := p.call("initialize", fmt.Sprintf(`{"protocolVersion":%d,%s}`, own, bothVersions)); versionOf(m) == own {
					p.fail("ADD-7", "the agent answered version 65535 with version %d, although it supports version %d", version, own)
				}
			}
		},
	}
}

// bothVersions are the members of initialize by which a client that speaks versions 1 and 2 describes itself. Each
// version requires its own, and an agent that speaks both reads those of the version that it chooses.
const bothVersions = `"info":` + clientInfo + `,"capabilities":{},"clientInfo":` + clientInfo + `,"clientCapabilities":{}`

// capabilities is the scenario of a set of client capabilities: whatever the client can do, the agent copes, and uses
// nothing else. The prompts ask for what the client cannot do.
func capabilities(name, set string, prompts ...string) Scenario {
	return Scenario{
		Name: "capabilities-" + name,
		Text: "A client that advertises " + strings.ReplaceAll(name, "-", " ") +
			" as its capabilities: the agent copes, and requests nothing else.",
		Exercises: []string{"INI-11", "SCH-17"},
		Prompts:   prompts,
		run: func(p *play) {
			p.start()
			params := `{"protocolVersion":1`
			if set != leftOut {
				params += `,"clientCapabilities":` + set
			}
			p.markExercised("INI-11")
			if name == "wrong-types" || name == "null" {
				// The schema marks these members: a value of the wrong type counts as left out.
				p.grant(name, noCapabilities)
				m := p.call("initialize", params+`}`)
				p.markExercised("SCH-17")
				if m == nil {
					p.failAt("OVW-3", conformance.Must, "%s", p.why("initialize was not answered"))
					return
				}
				if m.kind == conformance.ErrorReply {
					p.failAt("SCH-17", conformance.Should, "the agent refused capabilities of wrong types, which count as absent: %s",
						clip(string(m.params)))
					return
				}
				p.init, p.itself = m, m.params
			} else {
				p.initializeWith(name, set, params+`}`)
			}
			session := p.newSession()
			p.file("notes.txt", "Notes of the probe.\n")
			p.file("demo.txt", "A file of the probe.\n")
			for _, kind := range prompts {
				m := p.prompt(session, kind)
				if kind == "form" && !p.client.may("elicitation", "form") && m != nil && m.kind == conformance.Response {
					p.trait("asked without a form")
				}
			}
			p.trait("gate")
		},
	}
}

// version checks the version that initialize was answered with.
func (p *play) version(m *message, want int) {
	p.markExercised("INI-8")
	if version := versionOf(m); version != want {
		p.fail("INI-8", "the agent answered version %d with version %d", want, version)
	}
}

func versionOf(m *message) int {
	if m == nil {
		return 0
	}
	var version int
	if json.Unmarshal(member(m.params, "protocolVersion"), &version) != nil {
		return 0
	}
	return version
}

// settle waits for what was sent too late: until the agent has answered one more request, and a moment longer.
func (p *play) settle() {
	if p.call("_acp.probe/settled", "{}") != nil {
		p.quiet(p.ctx, p.limits.quiet/10)
	}
}

// ordinal says which of several things it was.
func ordinal(what string, i int) string { return fmt.Sprintf("%s %d", what, i+1) }
