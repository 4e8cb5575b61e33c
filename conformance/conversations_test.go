package conformance

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/test/tier"

	"github.com/acpgo/sdk/conformance/internal/requirement"
	"github.com/acpgo/sdk/conformance/internal/rules"
)

// conversation is a connection in short notation; see expand.
type conversation struct {
	name    string
	version int
	setup   string // in place of the usual one
	lines   string
	closed  Side   // who closes the connection
	want    string // rules with their levels, unless that is SHOULD
}

// able1 is a connection of version 1 whose sides support everything, and able2 is one of version 2.
const able1 = `
	-> 0 initialize {"protocolVersion":1,"clientInfo":{"name":"c","version":"1"},"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true,"auth":{"terminal":true},"elicitation":{"form":{},"url":{}},"session":{"configOptions":{"boolean":{}},"notices":{},"compaction":{}}}}
	<- = 0 {"protocolVersion":1,"agentInfo":{"name":"a","version":"1"},"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"resume":{},"close":{},"delete":{},"list":{}}},"authMethods":[{"id":"key","name":"Key"}]}
	-> 1 session/new {"cwd":"/work","mcpServers":[]}
	<- = 1 {"sessionId":"s"}`

const able2 = `
	-> 0 initialize {"protocolVersion":2,"info":{"name":"c","version":"1"},"capabilities":{"elicitation":{"form":{},"url":{}}}}
	<- = 0 {"protocolVersion":2,"info":{"name":"a","version":"1"},"capabilities":{"session":{}}}
	-> 1 session/new {"cwd":"/work"}
	<- = 1 {"sessionId":"s"}`

const (
	prompt    = `-> 10 session/prompt {"sessionId":"s","prompt":[{"type":"text","text":"go"}]}`
	closing   = `-> 11 session/close {"sessionId":"s"}`
	ended     = `<- = 10 {"stopReason":"end_turn"}`
	cancelled = `
		-> * session/cancel {"sessionId":"s"}
		<- = 10 {"stopReason":"cancelled"}`
	terminal1 = `
		<- t terminal/create {"sessionId":"s","command":"make"}
		-> = t {"terminalId":"t1"}`
	exited1 = `
		<- w terminal/wait_for_exit {"sessionId":"s","terminalId":"t1"}
		-> = w {"exitCode":0}`
	release1 = `<- r terminal/release {"sessionId":"s","terminalId":"t1"}`
	begun    = `<- @s {"sessionUpdate":"tool_call","toolCallId":"c","title":"make","status":"in_progress"}`
	called   = `<- @s {"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed"}`
	load     = `-> 20 session/load {"sessionId":"s","cwd":"/work","mcpServers":[]}`
	loaded   = `<- = 20 {}`
	loadOld  = `
		-> 20 session/load {"sessionId":"old","cwd":"/work","mcpServers":[]}
		<- @old {"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"go"}}
		<- = 20 {}`
	model    = `{"id":"model","name":"Model","type":"select","currentValue":"a","options":[{"value":"a","name":"A"},{"value":"b","name":"B"}]}`
	modelB   = `{"id":"model","name":"Model","type":"select","currentValue":"b","options":[{"value":"a","name":"A"},{"value":"b","name":"B"}]}`
	modelC   = `{"id":"model","name":"Model","type":"select","currentValue":"c","options":[{"value":"c","name":"C"}]}`
	brief    = `{"id":"brief","name":"Brief","type":"boolean","currentValue":false}`
	style    = `{"id":"style","name":"Style","type":"select","currentValue":"x","options":[{"value":"x","name":"X"}]}`
	urlE1    = `<- e elicitation/create {"sessionId":"s","mode":"url","elicitationId":"e1","url":"https://example.com/","message":"Log in"}`
	againE1  = `<- f elicitation/create {"sessionId":"s","mode":"url","elicitationId":"e1","url":"https://example.com/","message":"Log in"}`
	pending1 = `{"content":"Read","priority":"high","status":"pending"}`
	pending2 = `{"content":"Write","priority":"high","status":"pending"}`
	done1    = `{"content":"Read","priority":"high","status":"completed"}`
	running2 = `{"content":"Write","priority":"high","status":"in_progress"}`
)

func options(list ...string) string {
	return `<- @s {"sessionUpdate":"config_option_update","configOptions":[` + strings.Join(list, ",") + `]}`
}

func set(id int, value string) string {
	return fmt.Sprintf(`-> %d session/set_config_option {"sessionId":"s","configId":"model","value":%q}`, id, value)
}

func wasSet(id int, list ...string) string {
	return fmt.Sprintf(`<- = %d {"configOptions":[%s]}`, id, strings.Join(list, ","))
}

func planOf(list ...string) string {
	return `<- @s {"sessionUpdate":"plan","entries":[` + strings.Join(list, ",") + `]}`
}

// form is a form with one property x, and its answer.
func form(property, answer string) string {
	return `
		<- e elicitation/create {"sessionId":"s","mode":"form","message":"?","requestedSchema":{"type":"object","properties":{"x":` + property + `}}}
		-> = e {"action":"accept","content":{"x":` + answer + `}}`
}

// asked is a form with one property that has the given name and title.
func asked(name, title, kind string) string {
	return fmt.Sprintf(`<- e elicitation/create {"sessionId":"s","mode":"form","message":"?","requestedSchema":{"type":"object","properties":{%q:{"type":%q,"title":%q}}}}`, name, kind, title)
}

func elicitURL(url string) string {
	return fmt.Sprintf(`<- e elicitation/create {"sessionId":"s","mode":"url","elicitationId":"e1","url":%q,"message":"?"}`, url)
}

// refused is a request about a session, and the error that answers it.
func refused(request, failure string) string {
	return "-> 30 " + request + "\n<- ! 30 " + failure
}

func join(lines ...string) string { return strings.Join(lines, "\n") }

var conversations = []conversation{
	// initialization
	{name: "a client that asks for another version after a refusal", version: 2, setup: `
		-> 0 initialize {"protocolVersion":1,"clientInfo":{"name":"c","version":"1"},"clientCapabilities":{}}
		<- ! 0 {"code":-32022,"message":"Unsupported protocol version","data":{"supported":[2]}}` + able2},
	// session-config-options
	{name: "a value is set that a crossing update takes away", lines: join(options(model), options(modelC), set(10, "b"))},
	{name: "a value is set that was never there", lines: join(options(model), options(modelC), set(10, "d")), want: "CFG-16"},
	{name: "options of a session that says nothing of them", lines: set(10, "b")},
	{name: "an unknown option", lines: join(options(brief), set(10, "b")), want: "CFG-16"},
	{name: "a text for a boolean", lines: join(options(brief), `-> 10 session/set_config_option {"sessionId":"s","configId":"brief","value":"true"}`), want: "CFG-16"},
	{name: "a boolean for a boolean", lines: join(options(brief), `-> 10 session/set_config_option {"sessionId":"s","configId":"brief","type":"boolean","value":true}`)},
	{name: "a boolean for a select", lines: join(options(model), `-> 10 session/set_config_option {"sessionId":"s","configId":"model","type":"boolean","value":true}`), want: "CFG-16"},
	{name: "a set value is not in force", lines: join(options(model), set(10, "b"), wasSet(10, model)), want: "CFG-17 MUST"},
	{name: "a boolean is not in force", lines: join(options(brief), `-> 10 session/set_config_option {"sessionId":"s","configId":"brief","type":"boolean","value":true}`, wasSet(10, brief)), want: "CFG-17 MUST"},
	{name: "a turn may change it meanwhile", lines: join(options(model), prompt, set(11, "b"), wasSet(11, model), ended)},
	{name: "a turn that ended meanwhile, too", lines: join(options(model), prompt, set(11, "b"), ended, wasSet(11, model))},
	{name: "another request may change it meanwhile", lines: join(options(model), set(10, "b"), set(11, "a"), wasSet(10, model), wasSet(11, model))},
	{name: "and may be answered first", lines: join(options(model), set(10, "b"), set(11, "a"), wasSet(11, model), wasSet(10, model))},
	{name: "the agent changes it meanwhile", lines: join(options(model), set(10, "b"), options(model), wasSet(10, model))},
	{name: "an option alone of three", lines: join(options(model, brief, style), set(10, "b"), wasSet(10, modelB)), want: "CFG-17"},
	{name: "options that depend on others go", lines: join(options(model, brief), set(10, "b"), wasSet(10, modelB))},
	{name: "a single option after two", lines: join(options(model, brief), options(model))},
	{name: "no options any more", lines: join(options(model, brief, style), options())},
	{name: "two options of the category mode", lines: `
		-> 10 session/new {"cwd":"/work","mcpServers":[]}
		<- = 10 {"sessionId":"t","modes":{"currentModeId":"a","availableModes":[{"id":"a","name":"A"},{"id":"b","name":"B"}]},"configOptions":[` +
		strings.NewReplacer(`"type"`, `"category":"mode","type"`).Replace(modelB+","+style) + `]}`},
	{name: "modes with other names than the option's values", lines: `
		-> 10 session/new {"cwd":"/work","mcpServers":[]}
		<- = 10 {"sessionId":"t","modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"A"}]},"configOptions":[` +
		strings.Replace(modelB, `"type"`, `"category":"mode","type"`, 1) + `]}`},
	{name: "an option of the category mode and no modes", lines: `
		-> 10 session/new {"cwd":"/work","mcpServers":[]}
		<- = 10 {"sessionId":"t","configOptions":[` + strings.Replace(modelB, `"type"`, `"category":"mode","type"`, 1) + `]}`, want: "CFG-19"},
	{name: "options of version 2", version: 2, lines: join(
		`<- @s {"sessionUpdate":"config_option_update","configOptions":[{"configId":"m","name":"M","category":"odd","type":"select","currentValue":"c","options":[{"value":"a","name":"A"}]},{"configId":"b","name":"B","type":"boolean","currentValue":true}]}`,
		`-> 10 session/set_config_option {"sessionId":"s","configId":"m","type":"id","value":"z"}`,
		`-> 11 session/set_config_option {"sessionId":"s","configId":"b","type":"boolean","value":false}`,
		`<- = 11 {"configOptions":[]}`), want: "CFG-7 CFG-14 MUST CFG-16 CFG-17 MUST"},

	// content
	{name: "blocks", lines: join(
		`-> 10 session/prompt {"sessionId":"s","prompt":[{"type":"resource","resource":{"uri":"file:///a","blob":"AA=="}},{"type":"resource","resource":{"uri":"file:///a","blob":"A\nA"}}]}`,
		`<- @s {"sessionUpdate":"tool_call","toolCallId":"c","title":"x","status":"completed","content":[{"type":"content","content":{"type":"audio","data":"A","mimeType":"audio"}},{"type":"diff","path":"/a","newText":"%"}]}`,
		ended), want: "CON-3 CON-3"},
	{name: "blocks of version 2", version: 2, lines: join(
		`<- @s {"sessionUpdate":"agent_message","messageId":"m","content":[{"type":"image","data":"-_-_","mimeType":"image/png"}]}`,
		`<- @s {"sessionUpdate":"tool_call_content_chunk","toolCallId":"c","content":{"type":"content","content":{"type":"image","data":"AAAA","mimeType":"image/svg+xml"}}}`), want: "CON-3"},

	// tool-calls
	{name: "calls of a loaded session", lines: join(loadOld, `<- @old {"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed"}`)},
	{name: "calls of a session while it is loaded", lines: join(load, called, loaded)},
	{name: "a permission tells of a call", lines: join(prompt,
		`<- p session/request_permission {"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[{"optionId":"y","name":"Y","kind":"allow_once"}]}`,
		`-> = p {"outcome":{"outcome":"selected","optionId":"y"}}`, `<- @s {"sessionUpdate":"tool_call_update","toolCallId":"c","status":"in_progress"}`, called, ended), want: "TOL-1 advice"},
	{name: "a call is announced after its permission", lines: join(prompt,
		`<- p session/request_permission {"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[{"optionId":"y","name":"Y","kind":"allow_once"}]}`,
		`-> = p {"outcome":{"outcome":"selected","optionId":"y"}}`, begun, called, ended), want: "TOL-1 advice"},
	{name: "the history is told again", lines: join(prompt, begun, called, ended, load, begun, called, loaded)},
	{name: "a call on its way when the session is loaded", lines: join(load, begun, begun, called, loaded)},
	{name: "a loaded call's id is used again", lines: join(load, begun, called, loaded, prompt, begun, called, ended), want: "TOL-2"},
	{name: "one id in two sessions", lines: join(
		"-> 10 session/new {\"cwd\":\"/work\",\"mcpServers\":[]}\n<- = 10 {\"sessionId\":\"u\"}",
		begun, called, `<- @u {"sessionUpdate":"tool_call","toolCallId":"c","title":"make","status":"completed"}`)},
	{name: "a terminal that stays in its call after the release", lines: join(terminal1,
		`<- @s {"sessionUpdate":"tool_call","toolCallId":"c","title":"x","content":[{"type":"terminal","terminalId":"t1"}]}`, release1,
		`<- @s {"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed","content":[{"type":"terminal","terminalId":"t1"},{"type":"content","content":{"type":"text","text":"ok"}}]}`)},
	{name: "a terminal that comes after its release", lines: join(terminal1, begun, release1,
		`<- @s {"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed","content":[{"type":"terminal","terminalId":"t1"}]}`), want: "TOL-8"},
	{name: "a terminal of a loaded session", lines: join(loadOld, `<- @old {"sessionUpdate":"tool_call","toolCallId":"c","title":"x","status":"completed","content":[{"type":"terminal","terminalId":"t0"}]}`)},
	{name: "a terminal of the agent's, by an extension", lines: `<- @s {"sessionUpdate":"tool_call","toolCallId":"c","title":"x","status":"completed","content":[{"type":"terminal","terminalId":"t0"}],"_meta":{"terminal_info":{"terminal_id":"t0"}}}`},
	{name: "an open call at the end of a turn", lines: join(prompt, begun, ended), want: "TOL-9 advice"},
	{name: "an open call at the end of a cancelled turn", lines: join(prompt, begun, cancelled)},
	{name: "an open call when a cancellation crosses the end", lines: join(prompt, begun, `-> * session/cancel {"sessionId":"s"}`, ended)},
	{name: "a call of an earlier turn", lines: join(begun, prompt, ended, called)},
	{name: "news of a call that is done", lines: join(begun, called, `<- @s {"sessionUpdate":"tool_call_update","toolCallId":"c","title":"made"}`, called)},
	{name: "a call fails that was completed", lines: join(begun, called, `<- @s {"sessionUpdate":"tool_call_update","toolCallId":"c","status":"failed"}`), want: "TOL-9"},
	{name: "a call of version 2 runs again", version: 2, lines: join(
		`<- @s {"sessionUpdate":"tool_call_update","toolCallId":"c","title":"x","status":"cancelled"}`,
		`<- @s {"sessionUpdate":"tool_call_update","toolCallId":"c","status":"paused"}`), want: "TOL-9"},
	{name: "a permission of version 2", version: 2, lines: join(
		`<- p session/request_permission {"sessionId":"s","title":"?","subject":{"type":"tool_call","toolCall":{"toolCallId":"c","title":"x"}},"options":[{"optionId":"y","name":"Y","kind":"allow_once"},{"optionId":"y","name":"Z","kind":"reject_once"}]}`,
		`-> = p {"outcome":{"outcome":"selected","optionId":"z"}}`), want: "TOL-5"},
	{name: "a permission is answered otherwise", version: 2, lines: join(
		`<- p session/request_permission {"sessionId":"s","title":"?","options":[{"optionId":"y","name":"Y","kind":"allow_once"}]}`,
		`-> = p {"outcome":{"outcome":"_later","optionId":"z"}}`)},

	// file-system
	{name: "a file that is not there", lines: join(`<- r fs/read_text_file {"sessionId":"s","path":"/a"}`, `-> ! r {"code":-32002,"message":"no such file"}`), want: "FS-6 advice"},
	{name: "a file that cannot be read", lines: join(`<- r fs/read_text_file {"sessionId":"s","path":"/a"}`, `-> ! r {"code":-32603,"message":"permission denied"}`)},
	{name: "a session that is not there", lines: join(`<- r fs/read_text_file {"sessionId":"s","path":"/a"}`, `-> ! r {"code":-32002,"message":"no such session","data":{"sessionId":"s"}}`)},

	// terminals
	{name: "the client closes and a command runs", closed: Client, lines: join(prompt, terminal1)},
	{name: "the client closes, a command has ended", closed: Client, lines: join(terminal1, exited1), want: "TRM-7"},
	{name: "the client closes in a turn, a command has ended", closed: Client, lines: join(prompt, terminal1, exited1)},
	{name: "the client closes, a command was killed", closed: Client, lines: join(terminal1, "<- k terminal/kill {\"sessionId\":\"s\",\"terminalId\":\"t1\"}\n-> = k {}"), want: "TRM-8"},
	{name: "nobody says who closed, and a command runs", lines: terminal1},
	{name: "a session is closed with its terminal", lines: join(terminal1, "-> 10 session/close {\"sessionId\":\"s\"}\n<- = 10 {}"), want: "TRM-7 MUST"},
	{name: "an output was asked for before the end", lines: join(terminal1, `<- o terminal/output {"sessionId":"s","terminalId":"t1"}`, exited1, `-> = o {"output":"","truncated":false}`, release1)},
	{name: "an output fails that was asked for before the kill", lines: join(terminal1, `<- o terminal/output {"sessionId":"s","terminalId":"t1"}`,
		`<- k terminal/kill {"sessionId":"s","terminalId":"t1"}`, `-> ! o {"code":-32603,"message":"failed"}`, release1)},
	{name: "an output fails when its terminal was released meanwhile", lines: join(terminal1, `<- k terminal/kill {"sessionId":"s","terminalId":"t1"}`,
		`<- o terminal/output {"sessionId":"s","terminalId":"t1"}`, release1, `-> ! o {"code":-32602,"message":"released"}`)},
	{name: "an output that crosses the release", lines: join(terminal1, release1, `<- o terminal/output {"sessionId":"s","terminalId":"t1"}`, `-> = o {"output":"","truncated":false}`, `-> = r {}`)},
	{name: "a wait that the release ends", lines: join(terminal1, `<- w terminal/wait_for_exit {"sessionId":"s","terminalId":"t1"}`, release1, `-> = r {}`, `-> = w {"signal":"SIGKILL"}`)},
	{name: "an output without a limit", lines: join(terminal1, `<- o terminal/output {"sessionId":"s","terminalId":"t1"}`, `-> = o {"output":"�`+strings.Repeat("é", 1000)+`","truncated":false,"exitStatus":null}`, release1)},
	{name: "an exit status without anything in an output", lines: join(terminal1, `<- o terminal/output {"sessionId":"s","terminalId":"t1"}`, `-> = o {"output":"","truncated":false,"exitStatus":{}}`, release1), want: "TRM-12"},

	// agent-plan
	{name: "another plan", lines: join(planOf(pending1), planOf(running2))},
	{name: "a plan grows and changes", lines: join(planOf(pending1), planOf(done1, pending2))},
	{name: "what is done goes", lines: join(planOf(done1, pending2), planOf(running2))},
	{name: "what is given up goes, and nothing else changes", lines: join(planOf(pending1, pending2), planOf(pending1))},
	{name: "a plan is empty", lines: join(planOf(pending1, pending2), planOf())},
	{name: "plans of version 2", version: 2, lines: join(
		`<- @s {"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p","entries":[`+pending1+`,`+pending2+`]}}`,
		`<- @s {"sessionUpdate":"plan_update","plan":{"type":"items","planId":"q","entries":[`+done1+`]}}`,
		`<- @s {"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p","entries":[`+done1+`]}}`), want: "PLN-3 advice"},

	// session-setup
	{name: "a prompt behind session/close is refused", lines: join(closing, prompt, `<- = 11 {}`, `<- ! 10 {"code":-32002,"message":"closed","data":{"sessionId":"s"}}`)},
	{name: "a prompt behind session/close is cancelled", lines: join(closing, prompt, `<- = 11 {}`, `<- = 10 {"stopReason":"cancelled"}`)},
	{name: "a prompt behind session/close fails", lines: join(closing, prompt, `<- = 11 {}`, `<- ! 10 {"code":-32603,"message":"closed"}`), want: "SES-15 MUST"},
	{name: "a prompt behind session/close succeeds", lines: join(closing, prompt, `<- = 11 {}`, ended), want: "SES-15 MUST"},
	{name: "a prompt before session/close is refused", lines: join(prompt, closing, `<- = 11 {}`, `<- ! 10 {"code":-32002,"message":"closed","data":{"sessionId":"s"}}`), want: "SES-15 MUST"},
	{name: "a prompt behind session/close of version 2", version: 2, lines: join(closing, prompt, `<- = 11 {}`, `<- ! 10 {"code":-32002,"message":"closed","data":{"sessionId":"s"}}`)},

	// elicitation
	{name: "an id again after a refusal", lines: join(urlE1, `-> = e {"action":"decline"}`, againE1)},
	{name: "an id again after an error", lines: join(urlE1, `-> ! e {"code":-32603,"message":"failed"}`, againE1)},
	{name: "an id again, accepted and not completed", lines: join(urlE1, `-> = e {"action":"accept"}`, againE1), want: "ELI-19 MUST"},
	{name: "an elicitation of before", lines: join(loadOld, `<- * elicitation/complete {"elicitationId":"e0"}`)},
	{name: "one is completed twice", lines: join(urlE1, `-> = e {"action":"accept"}`, `<- * elicitation/complete {"elicitationId":"e1"}`, `<- * elicitation/complete {"elicitationId":"e1"}`)},
	{name: "a form is declined", lines: join(asked("x", "X", "string"), `-> = e {"action":"decline"}`)},
	{name: "nothing is required", lines: join(asked("x", "X", "string"), `-> = e {"action":"accept"}`)},
	{name: "what is required is missing", lines: join(`<- e elicitation/create {"sessionId":"s","mode":"form","message":"?","requestedSchema":{"type":"object","properties":{"x":{"type":"string"}},"required":["x"]}}`,
		`-> = e {"action":"accept","content":null}`), want: "ELI-15"},
	{name: "an unknown type of property", lines: form(`{"type":"_color"}`, `"red"`)},
	{name: "a text is short enough", lines: form(`{"type":"string","minLength":2,"maxLength":2,"pattern":"^\\p{L}$"}`, `"éé"`)},
	{name: "a text is too long", lines: form(`{"type":"string","maxLength":1}`, `"éé"`), want: "ELI-15"},
	{name: "a text is too short", lines: form(`{"type":"string","minLength":3}`, `"éé"`), want: "ELI-15"},
	{name: "a number for a text", lines: form(`{"type":"string"}`, `1`), want: "ELI-15"},
	{name: "a choice with a title", lines: form(`{"type":"string","oneOf":[{"const":"a","title":"A"}]}`, `"a"`)},
	{name: "a title for a choice", lines: form(`{"type":"string","oneOf":[{"const":"a","title":"A"}]}`, `"A"`), want: "ELI-15"},
	{name: "an integer", lines: form(`{"type":"integer","minimum":1,"maximum":1}`, `1.0`)},
	{name: "no integer", lines: form(`{"type":"integer"}`, `1.5`), want: "ELI-15"},
	{name: "a number out of bounds", lines: form(`{"type":"number","minimum":2}`, `1.5`), want: "ELI-15"},
	{name: "a number above its bounds", lines: form(`{"type":"number","maximum":1}`, `1.5`), want: "ELI-15"},
	{name: "no boolean", lines: form(`{"type":"boolean"}`, `"true"`), want: "ELI-15"},
	{name: "several choices", lines: form(`{"type":"array","items":{"type":"string","enum":["a","b"]},"maxItems":2}`, `["a","b"]`)},
	{name: "too many choices", lines: form(`{"type":"array","items":{"type":"string","enum":["a","b"]},"maxItems":1}`, `["a","b"]`), want: "ELI-15"},
	{name: "an unknown choice", lines: form(`{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}`, `["A"]`), want: "ELI-15"},
	{name: "a date", lines: form(`{"type":"string","format":"date"}`, `"2026-02-29"`), want: "ELI-15"},
	{name: "an address", lines: form(`{"type":"string","format":"email"}`, `"ada at example.com"`), want: "ELI-15"},
	{name: "a password", lines: asked("x", "Your password", "string"), want: "ELI-11"},
	{name: "a token", lines: asked("token", "", "string"), want: "ELI-11"},
	{name: "questions about passwords", lines: join(asked("password_policy", "", "string"), strings.Replace(asked("save_password", "Save the password?", "boolean"), "<- e", "<- f", 1))},
	{name: "names that only look like secrets", lines: join(asked("tokens", "Maximum tokens", "integer"), strings.Replace(asked("keyboard", "Secretary", "string"), "<- e", "<- f", 1))},
	{name: "a parameter that may be a secret", lines: elicitURL("https://example.com/?token=x"), want: "ELI-25"},
	{name: "a secret in the fragment", lines: elicitURL("https://example.com/#/login?client_secret=x"), want: "ELI-25 MUST NOT"},
	{name: "a password before the host", lines: elicitURL("https://ada:x@example.com/"), want: "ELI-25 MUST NOT"},
	{name: "what authorization needs", lines: elicitURL("https://example.com/authorize?response_type=code&client_id=a&state=b&code_challenge=c&token=&redirect_uri=http%3A%2F%2Flocalhost%2F")},
	{name: "a local address", lines: elicitURL("http://[::1]:80/")},
	{name: "a scheme of one's own", lines: elicitURL("myapp://login"), want: "ELI-26"},
	{name: "URLs in the titles of choices", lines: `<- e elicitation/create {"sessionId":"s","mode":"form","message":"?","requestedSchema":{"type":"object","description":"see http://x.org","properties":{"x":{"type":"string","oneOf":[{"const":"http://a.org","title":"HTTP://a.org"}]}}}}`,
		want: "ELI-27 SHOULD NOT ELI-27 SHOULD NOT"},
	{name: "an unknown mode is nobody's capability", lines: join(`<- e elicitation/create {"sessionId":"s","mode":"_voice","message":"?"}`, `-> ! e {"code":-32603,"message":"failed"}`)},
	{name: "elicitations of version 2", version: 2, lines: join(urlE1, againE1), want: "ELI-19 MUST"},
	{name: "a mode that is not stated is answered", setup: strings.Replace(able1, `"url":{}`, `"url":null`, 1), lines: join(urlE1, `-> = e {"action":"decline"}`), want: "ELI-5 MUST NOT ELI-23"},
	{name: "a mode that is not stated is refused", setup: strings.Replace(able1, `"url":{}`, `"url":null`, 1), lines: join(urlE1, `-> ! e {"code":-32601,"message":"no"}`), want: "ELI-5 MUST NOT ELI-23"},
	{name: "no mode is stated", setup: strings.Replace(able1, `"elicitation":{"form":{},"url":{}}`, `"elicitation":{}`, 1), lines: join(urlE1, `-> ! e {"code":-32601,"message":"no"}`), want: "ELI-5 MUST NOT"},

	// extensibility
	{name: "the asker leaves", closed: Client, lines: `-> 10 _ping {}`},
	{name: "a request on its way to a client that leaves", closed: Client, lines: `<- x _ask {}`},
	{name: "a request that the leaving client has read", closed: Client, lines: "<- x _ask {}\n<- y _tell {}\n-> ! y {\"code\":-32601,\"message\":\"no\"}", want: "EXT-4 MUST"},
	{name: "an unstable method that is not stated", lines: refused(`session/fork {"sessionId":"s","cwd":"/work"}`, `{"code":-32602,"message":"no"}`), want: "ERR-3"},
	{name: "a method of version 2 that is not stated", version: 2, lines: refused(`session/delete {"sessionId":"s"}`, `{"code":-32603,"message":"no"}`), want: "ERR-3"},
	{name: "trace context", lines: `-> * session/cancel {"sessionId":"s","_meta":{"traceparent":"00-80e1afed08e019fc1110464cfa66635c-7a085853722dc6d2-01","tracestate":"a=1, b@c=x:y ,","baggage":"k=v;p=1, l = w"}}`},
	{name: "wrong trace context", lines: `-> * session/cancel {"sessionId":"s","_meta":{"traceparent":1,"tracestate":"=","baggage":"x"}}`, want: "EXT-1 EXT-1 EXT-1"},
	{name: "trace context in a result", lines: join(prompt, `<- = 10 {"stopReason":"end_turn","_meta":{"traceparent":"ff-80e1afed08e019fc1110464cfa66635c-7a085853722dc6d2-01"}}`), want: "EXT-1"},
	{name: "an extension that is advertised below", setup: strings.Replace(able1, `"loadSession"`, `"promptCapabilities":{"_meta":{"ping":1}},"loadSession"`, 1), lines: "-> 10 _ping {}\n<- = 10 {}"},
	{name: "an extension is told once", lines: "-> 10 _ping {}\n<- = 10 {}\n-> 11 _ping {}\n<- = 11 {}", want: "EXT-6"},
	{name: "an extension that fails", lines: "-> 10 _ping {}\n<- ! 10 {\"code\":5,\"message\":\"no route\"}"},

	// error
	{name: "a missing method that says so", lines: refused(`providers/list {}`, `{"code":-32603,"message":"Method not found: providers/list"}`), want: "ERR-3"},
	{name: "a gated method before one is logged in", setup: strings.Replace(able1, `"loadSession":true,`, ``, 1), lines: refused(`session/load {"sessionId":"old","cwd":"/work","mcpServers":[]}`, `{"code":-32000,"message":"Authentication required"}`)},
	{name: "a mode that never was", lines: join(`-> 10 session/new {"cwd":"/work","mcpServers":[]}`, `<- = 10 {"sessionId":"t","modes":{"currentModeId":"a","availableModes":[{"id":"a","name":"A"}]}}`,
		refused(`session/set_mode {"sessionId":"t","modeId":"b"}`, `{"code":-32603,"message":"failed"}`)), want: "CFG-19 ERR-4"},
	{name: "a value that never was, rightly refused", lines: join(options(model), set(10, "z"), `<- ! 10 {"code":-32602,"message":"no"}`), want: "CFG-16"},
	{name: "a deleted session", lines: join("-> 10 session/delete {\"sessionId\":\"s\"}\n<- = 10 {}", refused(`session/prompt {"sessionId":"s","prompt":[]}`, `{"code":-32603,"message":"gone"}`)), want: "ERR-5"},
	{name: "a prompt that the deletion overtakes", lines: join(`-> 10 session/delete {"sessionId":"s"}`, `-> 30 session/prompt {"sessionId":"s","prompt":[]}`, `<- = 10 {}`, `<- ! 30 {"code":-32603,"message":"gone"}`)},
	{name: "a session that cannot be loaded", lines: refused(`session/load {"sessionId":"old","cwd":"/work","mcpServers":[]}`, `{"code":-32603,"message":"disk"}`)},
	{name: "a session that is not there to load", lines: refused(`session/load {"sessionId":"old","cwd":"/work","mcpServers":[]}`, `{"code":-32002,"message":"none"}`), want: "ERR-5"},
	{name: "a prompt that fails", lines: refused(`session/prompt {"sessionId":"s","prompt":[]}`, `{"code":-32603,"message":"429"}`)},
	{name: "a file that a prompt's agent misses", lines: refused(`session/prompt {"sessionId":"s","prompt":[]}`, `{"code":-32002,"message":"no such file"}`)},
	{name: "a session that an update tells of", lines: join(`<- @child {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"}}`, refused(`session/prompt {"sessionId":"child","prompt":[]}`, `{"code":-32603,"message":"failed"}`))},
	{name: "two broken lines", lines: "-> {\n-> 7\n<- ! null {\"code\":-32600,\"message\":\"no\"}\n<- ! null {\"code\":-32700,\"message\":\"no\"}"},
	{name: "a line that is not a message", lines: "-> 7\n<- ! null {\"code\":-32700,\"message\":\"no\"}", want: "ERR-7"},
	{name: "a request without a right id, and a broken line", lines: "-> {\n-> {\"jsonrpc\":\"2.0\",\"id\":[],\"method\":\"_ping\"}\n<- ! null {\"code\":-32602,\"message\":\"no\"}"},
	{name: "a login that takes too long", lines: refused(`session/new {"cwd":"/work","mcpServers":[]}`, `{"code":-32000,"message":"Authentication timed out"}`)},
	{name: "no login for a client that has no terminal", setup: strings.NewReplacer(`"auth":{"terminal":true},`, ``, `[{"id":"key","name":"Key"}]`, `[]`).Replace(able1),
		lines: refused(`session/new {"cwd":"/work","mcpServers":[]}`, `{"code":-32000,"message":"Authentication required"}`)},
	{name: "no login for a client that has all", setup: strings.Replace(able1, `[{"id":"key","name":"Key"}]`, `[]`, 1),
		lines: refused(`session/new {"cwd":"/work","mcpServers":[]}`, `{"code":-32000,"message":"Authentication required"}`), want: "ERR-9"},

	// schema
	{name: "a variant of one's own with members of its own", version: 2, lines: `<- @s {"status":"odd","state":"odd","sessionUpdate":"_odd"}`},
	{name: "a variant that is reserved", version: 2, lines: `<- @s {"sessionUpdate":"odd"}`, want: "SCH-11"},
	{name: "reserved names far down", version: 2, lines: join(
		`<- @s {"sessionUpdate":"tool_call_update","toolCallId":"c","title":"x","kind":"odd","content":[{"type":"content","content":{"type":"odd"}}],"rawInput":{"type":"odd","kind":"odd"}}`,
		`<- @s {"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"_odd","annotations":{"audience":["odd"]}}}`), want: "SCH-11 SCH-11"},
	{name: "an answer with a reserved name", lines: join(asked("x", "X", "string"), `-> = e {"action":"later"}`), want: "SCH-11"},
}

// TestLongPermission: the params of a long request are forgotten, but not what it asks about.
func TestLongPermission(t *testing.T) {
	j := NewJudge(V1(), nil)
	for line := range strings.Lines(join(able1, prompt, strings.Replace(begun, "in_progress", "pending", 1),
		`<- p session/request_permission {"sessionId":"s","toolCall":{"toolCallId":"c","rawInput":"`+strings.Repeat("long", 1<<15)+`"},"options":[{"optionId":"y","name":"Y","kind":"allow_once"}]}`,
		`-> = p {"outcome":{"outcome":"selected","optionId":"y"}}`, strings.Replace(called, "completed", "in_progress", 1), called, ended)) {
		if m, ok := expand(t, strings.TrimSpace(line)); ok {
			for _, f := range j.Message(m) {
				t.Error(f)
			}
		}
	}
}

// pagesOfConversations are the prefixes of the rules that conversations are about. They do not include violations of
// the schema.
var pagesOfConversations = regexp.MustCompile(`^(SES-15|V2-14|INI-10)$|^(CFG|CON|TOL|FS|TRM|PLN|CMD|ELI|EXT|ERR|SCH)-`)

func TestConversationsOfRules(t *testing.T) {
	told := map[string]bool{}
	for _, c := range conversations {
		t.Run(c.name, func(t *testing.T) {
			if c.version == 0 {
				c.version = 1
			}
			if c.setup == "" {
				c.setup = able1
				if c.version == 2 {
					c.setup = able2
				}
			}
			j := NewJudge(Negotiated(V1Unstable(), V2Unstable()), nil)
			var found []Finding
			for line := range strings.Lines(c.setup + "\n" + c.lines) {
				if m, ok := expand(t, strings.TrimSpace(line)); ok {
					found = append(found, j.Message(m)...)
				}
			}
			if c.closed != 0 {
				j.Closed(c.closed)
			}
			found = append(found, j.End()...)
			var got []string
			for _, f := range found {
				if r, _ := requirement.Find(f.Rule); r == nil || r.How == requirement.BySchema || !pagesOfConversations.MatchString(f.Rule) {
					continue
				}
				told[f.Rule] = true
				got = append(got, f.Rule)
				if f.Level != Should {
					got = append(got, f.Level.String())
				}
			}
			if got := strings.Join(got, " "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
				for _, f := range found {
					t.Log(f)
				}
			}
		})
	}
}

// expand writes a line out:
//
//	-> 10 session/prompt {…}   a request with the id 10, of the client
//	<- = 10 {…}                its result
//	<- ! 10 {…}                or its error
//	-> * session/cancel {…}    a notification
//	<- @s {…}                  a session/update
//
// Any other line is sent unchanged.
func expand(t *testing.T, line string) (m Message, ok bool) {
	t.Helper()
	mark, rest, _ := strings.Cut(line, " ")
	switch mark {
	case "":
		return m, false
	case "->":
		m.Direction = ToAgent
	case "<-":
		m.Direction = ToClient
	default:
		t.Fatalf("no message: %q", line)
	}
	words := strings.SplitN(rest, " ", 3)
	id := func(s string) string {
		if s == "null" || strings.Trim(s, "0123456789") == "" {
			return s
		}
		return `"` + s + `"`
	}
	const head = `{"jsonrpc":"2.0",`
	switch session, update := strings.CutPrefix(words[0], "@"); {
	case update:
		_, params, _ := strings.Cut(rest, " ")
		rest = head + `"method":"session/update","params":{"sessionId":"` + session + `","update":` + params + `}}`
	case len(words) < 3:
	case words[0] == "=":
		rest = head + `"id":` + id(words[1]) + `,"result":` + words[2] + `}`
	case words[0] == "!":
		rest = head + `"id":` + id(words[1]) + `,"error":` + words[2] + `}`
	case words[0] == "*":
		rest = head + `"method":"` + words[1] + `","params":` + words[2] + `}`
	case !strings.HasPrefix(words[0], "{"):
		rest = head + `"id":` + id(words[0]) + `,"method":"` + words[1] + `","params":` + words[2] + `}`
	}
	m.Line = []byte(rest)
	return m, true
}

// TestExamplesAreExact requires that the examples of the same pages show only their own rule, with the listed
// exceptions: the right example breaks nothing, and the wrong one nothing else.
func TestExamplesAreExact(t *testing.T) {
	tier.Need(t, tier.Normal)
	beside := map[string]string{
		"ELI-23": "ELI-5", // the mode is not stated
		"ERR-3":  "LST-3", // the client should not ask
		"ERR-5":  "PRM-1",
		"ERR-6":  "INI-1 SES-1",
		"ERR-7":  "TRN-6",         // the broken line
		"INI-10": "INI-3 V2-13",   // the client gives no name
		"SES-15": "SES-13 INI-14", // the agent did not advertise session/close
		"V2-14":  "V2-13",
		"TRM-11": "ADD-15",
	}
	for _, rule := range rules.All() {
		if !pagesOfConversations.MatchString(rule.ID) || rule.Check == nil && rule.End == nil {
			continue
		}
		for what, example := range map[string]string{"right": rule.Right, "wrong": rule.Wrong} {
			for _, f := range play(t, rule.Versions[0], example) {
				expected := what == "wrong" && f.Rule == rule.ID || slices.Contains(strings.Fields(beside[rule.ID]), f.Rule)
				if !expected {
					t.Errorf("%s: the %s example: %s", rule.ID, what, f)
				}
			}
		}
	}
}

// TestExcuses is about the members of _meta that excuse a login in a terminal (INI-19) and a custom method (EXT-6): only
// the known key at its known place, and only the name of the extension.
func TestExcuses(t *testing.T) {
	for _, row := range []struct {
		client, agent, method string
		want                  string
	}{
		{client: `"_meta":{"terminal-auth":true}`},
		{client: `"auth":{"terminal":true}`},
		{client: `"_meta":{"terminal-auth":{}}`, want: "INI-19"},
		{client: `"_meta":{"terminal-auth":"yes"}`, want: "INI-19"},
		{client: `"_meta":{"terminal-auth":false}`, want: "INI-19"},
		{client: `"_meta":{"terminal_auth":true}`, want: "INI-19"},
		{client: `"_meta":["terminal-auth"]`, want: "INI-19"},
		{client: `"_meta":{"zed.dev":{"terminal-auth":true}}`, want: "INI-19"},
		{client: `"_meta":{"auth":"terminal-auth"}`, want: "INI-19"},
		{client: `"fs":{"_meta":{"terminal-auth":true}}`, want: "INI-19"},
		{client: `"auth":{"_meta":{"terminal-auth":true}}`, want: "INI-19"},
		{agent: `{"foo":true}`, method: "_foo/bar"},
		{agent: `{"foo/bar":{}}`, method: "_foo/bar/baz"},
		{agent: `{"_foo/bar":{}}`, method: "_foo/bar"},
		{agent: `{"methods":["_foo/bar"]}`, method: "_foo/bar"},
		{agent: `{"foo":{}}`, method: "_foo.bar"},
		{agent: `{"ping":1}`, method: "_ping"},
		{agent: `{"fo":true}`, method: "_foo/bar", want: "EXT-6"},
		{agent: `{"f":true}`, method: "_foo/bar", want: "EXT-6"},
		{agent: `{"":true}`, method: "_foo/bar", want: "EXT-6"},
		{agent: `{"_":true}`, method: "_foo/bar", want: "EXT-6"},
		{agent: `{"foo/b":true}`, method: "_foo/bar", want: "EXT-6"},
		{agent: `{"bar":true}`, method: "_foo/bar", want: "EXT-6"},
		{agent: `{"foo/bar/baz":true}`, method: "_foo/bar", want: "EXT-6"},
		{agent: `{"example":true}`, method: "_example.com/bar", want: "EXT-6"},
		{agent: `{"example.com":true}`, method: "_example.org/bar", want: "EXT-6"},
		{agent: `{"foo":false}`, method: "_foo/bar", want: "EXT-6"},
		{agent: `{"terminal_output":true}`, method: "_terminal/output", want: "EXT-6"},
	} {
		for version, names := range map[int][2]string{1: {"clientCapabilities", "agentCapabilities"}, 2: {"capabilities", "capabilities"}} {
			if version == 2 && row.client != "" && !strings.HasPrefix(row.client, `"_meta"`) {
				continue // the capabilities of version 1
			}
			login, id := "", map[int]string{1: "id", 2: "methodId"}[version]
			if row.client != "" {
				login = fmt.Sprintf(`{"type":"terminal",%q:"t","name":"T"}`, id)
			}
			agent := cmp.Or(row.agent, "{}")
			j := NewJudge(Negotiated(V1(), V2()), nil)
			var got []string
			for i, line := range []string{
				fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%d,"%s":{%s}}}`, version, names[0], row.client),
				fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":%d,"%s":{"_meta":%s},"authMethods":[%s]}}`, version, names[1], agent, login),
				fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q}`, cmp.Or(row.method, "_foo")),
				map[bool]string{true: `{"jsonrpc":"2.0","id":1,"result":{}}`, false: `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}`}[row.method != ""],
			} {
				for _, f := range j.Message(Message{Direction: Direction(i%2 + 1), Line: []byte(line)}) {
					if f.Rule == "INI-19" || f.Rule == "EXT-6" {
						got = append(got, f.Rule)
					}
				}
			}
			if strings.Join(got, " ") != row.want {
				t.Errorf("version %d, %s%s, %s: got %q, want %q", version, row.client, row.agent, row.method, got, row.want)
			}
		}
	}
}
