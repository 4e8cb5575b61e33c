// Scenarios of the start: initialize, capabilities, authentication.

package probe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/internal/player"
)

var startScenarios = []Scenario{
	{Name: startScenario, Exercises: []string{"INI-4", "INI-8", "INI-15", "CON-1", "TRN-7"}, Prompts: []string{"text"},
		Text: "A client that supports everything starts the agent, creates a session and prompts it.",
		steps: []step{initialized("all", allCapabilities), tries("INI-8"), func(p *play) {
			if version := versionOf(p.init); version != 1 {
				p.fail("INI-8", "the agent answered version 1 with version %d", version)
			}
		}, newSession, tries("INI-15", "CON-1"), prompts("text"), settled, commandsArrive, func(p *play) {
			logged := p.target.Stderr
			p.end()
			if logged != nil && logged.String() != "" {
				p.check("TRN-7", utf8.ValidString(logged.String()), "the agent's standard error is not UTF-8: %s",
					player.Clip(logged.String()))
			}
		}}},
	versionNewer(1),
	{Name: "version-older", bare: true, Exercises: []string{"INI-9"},
		Text: "A client requests version 0, which does not exist.",
		steps: []step{func(p *play) {
			m := p.tryVersion(`0,"clientCapabilities":{}`)
			p.markExercised("INI-9")
			if m == nil {
				p.fail("INI-9", "%s", p.why("initialize with version 0 was not answered"))
			} else if m.Kind == conformance.Response && versionOf(m) == 0 {
				p.failAt("INI-9", conformance.Should, "the agent accepted version 0, which no schema describes")
			}
		}}},
	{Name: "version-2", bare: true, anyVersion: true, Exercises: []string{"INI-9", "ADD-7"},
		Text: "A client that supports version 2, which is in Preview, and version 1 requests 2: an agent that " +
			"supports only 1 answers with 1, and serves it.",
		steps: []step{func(p *play) {
			m := p.tryVersion("2," + bothVersions)
			p.markExercised("INI-9", "ADD-7")
			switch version := versionOf(m); {
			case m == nil:
				p.fail("INI-9", "%s", p.why("initialize was not answered"))
			case m.Kind == conformance.ErrorReply:
				p.fail("INI-9", "version 2 was answered with an error: %s", player.AnswerText(m))
			case version == 1:
				p.init = m
				p.newSession()
			case version == 2:
				p.checkAlive("ADD-1", "initialize of version 2")
				if p.start(); player.IsSet(m.Params, "info") && versionOf(p.call("initialize", `{"protocolVersion":65534,`+bothVersions+`}`)) != 65534 {
					p.trait(version2) // it does not just repeat what it is asked for
				}
			default:
				p.fail("INI-9", "version 2 was answered with version %d", version)
			}
		}}},
	{Name: "version-of-wrong-type", bare: true, Exercises: []string{"ERR-4", "SCH-16", "ADD-1"},
		Text: "Versions that are not 16-bit integers are refused or answered, and the agent serves the next client's " +
			"initialize.",
		steps: []step{func(p *play) {
			for _, version := range []string{`"one"`, `-1`, `1.5`, `70000`, `null`, `[]`, `{}`} {
				m := p.tryVersion(version + `,"clientCapabilities":{}`)
				p.markExercised("SCH-16", "ERR-4", "ADD-1")
				switch {
				case !p.isAnswered(m, "initialize with the version "+version):
				case m.Kind == conformance.Response:
					p.failAt("ERR-4", conformance.Advice, "the agent answered version %s with a result", version)
				default:
					if next := p.call("initialize", plainInitialize); next == nil || next.Kind != conformance.Response {
						p.failAt("ADD-1", conformance.Should, "after the error for version %s, initialize with version 1 failed", version)
					}
				}
			}
		}}},
	{Name: "before-initialize", bare: true, Exercises: []string{"ERR-6", "ADD-1"},
		Text: "Requests before initialize are refused, and initialize still works afterwards.",
		steps: []step{launched,
			refuses("ERR-6", "session/new", newParams, "session/new before initialize", -32600, -32002),
			refuses("ERR-6", "session/prompt", `{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}`,
				"session/prompt before initialize", -32600, -32002),
			notify("session/cancel", `{"sessionId":"s"}`), tries("ADD-1"),
			func(p *play) { p.initializeWith("none", noCapabilities, plainInitialize) }, newSession}},
	{Name: "initialize-twice", bare: true, Exercises: []string{"ADD-1"},
		Text: "A second initialize is answered, with a result or an error, and the connection survives.",
		steps: []step{initialized("none", noCapabilities), answers("initialize", plainInitialize, "a second initialize"),
			continues("ADD-1", "a second initialize")}},
	{Name: "authentication", Exercises: []string{"ERR-4"}, bare: true,
		Text: "Authentication methods: unknown ids and those of terminal methods are refused; the chosen method opens " +
			"sessions; logout closes them.",
		steps: []step{initialized("all", allCapabilities),
			func(p *play) { p.authentication("authenticate", "logout", p.can(canLogout)) }}},
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
	p.requireError("ERR-4", m, login+" with an id that was not offered", -32602, -32601, codeAuth)
	for _, method := range player.Elements(player.Member(p.init.Params, "authMethods")) {
		var a struct{ ID, MethodID, Type string }
		if json.Unmarshal(method, &a) == nil && a.Type == "terminal" {
			m := p.call(login, `{"methodId":`+player.Quote(cmp.Or(a.ID, a.MethodID))+`}`)
			p.requireError("ERR-4", m, login+" with a terminal method", -32602, -32600, -32601, codeAuth)
		}
	}
	if p.options.Auth == "" {
		return
	}
	p.authenticated = true
	needed := p.call("session/new", p.fill(newParams)).Code() == codeAuth
	p.authenticate()
	p.trait("authenticated")
	p.newSession()
	if !canLogout {
		return
	}
	if m := p.must("AUT-8", logout, `{}`); m != nil && needed {
		p.trait("logged out")
		if m := p.call("session/new", p.fill(newParams)); m != nil && m.Kind == conformance.Response {
			p.fail("AUT-10", "after %s, session/new succeeded although it required authentication before", logout)
		}
	}
}

// tryVersion launches the agent and sends initialize with a version and other members.
func (p *play) tryVersion(version string) *player.Message {
	p.startWith("none", noCapabilities)
	return p.call("initialize", `{"protocolVersion":`+version+`}`)
}

// versionNewer is the scenario of a version that does not exist, for agents of a version.
func versionNewer(own int) Scenario {
	return Scenario{Name: "version-newer", bare: true, anyVersion: true, Exercises: []string{"INI-9", "ADD-7"},
		Text: "A client requests a version that does not exist yet: the agent answers with the latest version that it " +
			"supports.",
		steps: []step{func(p *play) {
			m := p.tryVersion("65535," + bothVersions)
			p.markExercised("INI-9", "ADD-7")
			switch version := versionOf(m); {
			case m == nil:
				p.fail("INI-9", "%s", p.why("initialize was not answered"))
			case m.Kind == conformance.ErrorReply:
				p.fail("INI-9", "version 65535 was answered with an error: %s", player.AnswerText(m))
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
		}}}
}

// plainInitialize are the params of a client that can do nothing.
const plainInitialize = `{"protocolVersion":1,"clientCapabilities":{},"clientInfo":` + clientInfo + `}`

// bothVersions are the members of initialize by which a client that speaks versions 1 and 2 describes itself. Each
// version requires its own, and an agent that speaks both reads those of the version that it chooses.
const bothVersions = `"info":` + clientInfo + `,"capabilities":{},"clientInfo":` + clientInfo + `,"clientCapabilities":{}`

// capabilities is the scenario of a set of client capabilities: whatever the client can do, the agent copes, and uses
// nothing else. The prompts ask for what the client cannot do.
func capabilities(name, set string, kinds ...string) Scenario {
	return Scenario{Name: "capabilities-" + name, Exercises: []string{"INI-11", "SCH-17"}, Prompts: kinds,
		Text: "A client that advertises " + strings.ReplaceAll(name, "-", " ") +
			" as its capabilities: the agent copes, and requests nothing else.",
		steps: []step{func(p *play) {
			p.start()
			params := `{"protocolVersion":1`
			if set != leftOut {
				params += `,"clientCapabilities":` + set
			}
			p.markExercised("INI-11")
			if name != "wrong-types" && name != "null" {
				p.initializeWith(name, set, params+`}`)
				return
			}
			// The schema marks these members: a value of the wrong type counts as left out.
			p.grant(name, noCapabilities)
			m := p.call("initialize", params+`}`)
			p.markExercised("SCH-17")
			if !p.isAnswered(m, "initialize") {
				panic(stop{})
			}
			if m.Kind == conformance.ErrorReply {
				p.fatal("SCH-17", conformance.Should, "the agent refused capabilities of wrong types, which count as absent: %s",
					player.AnswerText(m))
			}
			p.init, p.Itself = m, m.Params
		}, newSession, files("notes.txt", "demo.txt"), func(p *play) {
			for _, kind := range kinds {
				m := p.prompt(kind)
				if kind == "form" && !p.client.may("elicitation", "form") && m.Kind == conformance.Response {
					p.trait("asked without a form")
				}
			}
		}, happens("gate")}}
}

// commandsArrive waits for the commands of the session, for which the prompts of the other scenarios wait if there are
// any.
func commandsArrive(p *play) {
	p.Wait(p.ctx, p.limits.quiet, func() bool { return p.client.offers(p.session, "") })
}
