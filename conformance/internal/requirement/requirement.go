// Package requirement has the table of the requirements in the protocol's pages: their severity, which side they bind,
// what can judge them and who enforces them.
package requirement

import (
	"strings"

	"github.com/acpgo/sdk/conformance/internal/finding"
)

// Requirement is one requirement of a page.
type Requirement struct {
	ID   string
	Word string       // the page's keyword, or one of the substitutes in levels if the page uses none
	Side finding.Side // who must comply; 0 for both
	How  Method
	As   string // the id of another requirement that says the same, whose rule judges this one too
	Kept string // see conformance.Requirement.KeptBy
	Text string
}

// Method is the means by which a violation of a requirement can be found.
type Method int

// The methods.
const (
	ByRule     Method = iota + 1 // by a rule that only watches the messages
	BySchema                     // by the schema or JSON-RPC, in a single message
	ByScenario                   // by a probe, which sends messages or looks at files and processes
	ByPeople                     // only by people
)

// levels maps the keywords of the pages to levels. The pages write binding keywords in capitals; keywords in lower case
// and requirements without a keyword are one step milder.
var levels = map[string]finding.Level{
	"MUST":       finding.Must,
	"MUST NOT":   finding.MustNot,
	"SHOULD":     finding.Should,
	"SHOULD NOT": finding.ShouldNot,
	"must":       finding.Should,
	"should":     finding.Advice,
	"implied":    finding.Should,
	"MAY-only":   finding.Advice,
	// The pages use no keyword, but the official compatibility kit counts a violation as a failure.
	"kit": finding.Must,
	// The pages refer to JSON-RPC, which says MUST NOT.
	"JSON-RPC": finding.MustNot,
}

// Level returns the level of the requirement. A message that the schema or JSON-RPC refuses is not a message of the
// agreed version, which is a MUST (INI-6) however the page words it.
func (r *Requirement) Level() finding.Level {
	if capital := strings.ToUpper(r.Word) == r.Word; r.How == BySchema && !capital {
		return finding.Must
	}
	return levels[r.Word]
}

// Page is a page of the protocol with its requirements.
type Page struct {
	Name         string
	Requirements []Requirement
}

// Find returns the requirement with the given id and the name of its page, or nil if there is none.
func Find(id string) (r *Requirement, page string) {
	at, ok := byID[id]
	if !ok {
		return nil, ""
	}
	return at.Requirement, at.page
}

// entry is a requirement with the name of its page.
type entry struct {
	*Requirement
	page string
}

var byID = func() map[string]entry {
	all := map[string]entry{}
	for i := range Pages {
		for j := range Pages[i].Requirements {
			r := &Pages[i].Requirements[j]
			all[r.ID] = entry{r, Pages[i].Name}
		}
	}
	return all
}()

// LevelOf returns the level of a requirement, or Advice if the id is unknown.
func LevelOf(id string) finding.Level {
	if r, _ := Find(id); r != nil {
		return r.Level()
	}
	return finding.Advice
}

// Pages has all requirements, in the order of the protocol's pages.
var Pages = []Page{
	{"overview", []Requirement{
		{"OVW-1", "MUST", 0, ByRule, "", "runtime",
			"Every file path in a message is absolute: `/…` on POSIX, a drive or UNC path on Windows."},
		{"OVW-2", "implied", 0, ByRule, "", "runtime", "Line numbers start at 1."},
		{"OVW-3", "implied", 0, BySchema, "", "runtime",
			"A response has either `result`, or `error` with `code` and `message`; never both, never neither."},
		{"OVW-4", "JSON-RPC", 0, ByRule, "", "runtime",
			"A notification is never answered, neither with a result nor with an error."},
		{"OVW-5", "implied", 0, BySchema, "EXT-2", "",
			"The property keys of ACP are camelCase, and the values of discriminators snake_case."},
	}},
	{"transports", []Requirement{
		{"TRN-1", "MUST", 0, BySchema, "", "runtime", "Messages are UTF-8."},
		{"TRN-2", "SHOULD", 0, ByPeople, "", "", "Agents and clients support stdio where possible."},
		{"TRN-3", "implied", 0, BySchema, "", "runtime",
			"Each line on stdio is one request, notification or response; there are no batches."},
		{"TRN-4", "MUST NOT", 0, BySchema, "", "runtime", "A message contains no newline; `\\n` ends it."},
		{"TRN-5", "MUST NOT", finding.Agent, BySchema, "", "runtime",
			"The agent writes nothing but ACP messages to its standard output."},
		{"TRN-6", "MUST NOT", finding.Client, BySchema, "", "runtime",
			"The client writes nothing but ACP messages to the agent's standard input."},
		{"TRN-7", "implied", finding.Agent, ByScenario, "", "",
			"Standard error is free for UTF-8 logs, and the client may ignore it."},
		{"TRN-8", "MUST", 0, ByPeople, "", "", "A custom transport keeps the JSON-RPC format and the ACP lifecycle."},
		{"TRN-9", "SHOULD", 0, ByPeople, "", "", "A custom transport documents how it connects and exchanges messages."},
		{"TRN-10", "implied", finding.Client, ByScenario, "", "author",
			"The client shuts an agent down by closing its standard input and then ending the process."},
	}},
	{"initialization", []Requirement{
		{"INI-1", "MUST", finding.Client, ByRule, "", "runtime",
			"`initialize` is called and answered before any session is created."},
		{"INI-2", "MUST", finding.Client, BySchema, "", "",
			"`initialize` has the latest protocol version that the client supports, and the client's capabilities."},
		{"INI-3", "SHOULD", finding.Client, ByRule, "", "", "`initialize` has `clientInfo`: a name and a version."},
		{"INI-4", "MUST", finding.Agent, BySchema, "", "runtime",
			"The answer to `initialize` has the chosen protocol version and the agent's capabilities."},
		{"INI-5", "SHOULD", finding.Agent, ByRule, "", "",
			"The answer to `initialize` has `agentInfo`: a name and a version."},
		{"INI-6", "MUST", 0, BySchema, "", "", "Both sides agree on one version and then follow it."},
		{"INI-7", "MUST", finding.Client, ByScenario, "", "",
			"The version in the request is the highest one that the client supports."},
		{"INI-8", "MUST", finding.Agent, ByScenario, "", "runtime",
			"A requested version that the agent supports is the version of the answer."},
		{"INI-9", "MUST", finding.Agent, ByRule, "", "runtime",
			"An unsupported requested version is answered with the latest one that the agent supports; in version 1, not with " +
				"an error."},
		{"INI-10", "SHOULD", finding.Client, ByRule, "", "runtime",
			"A client that does not support the version of the answer closes the connection and tells the user."},
		{"INI-11", "SHOULD", 0, ByScenario, "", "", "Each side copes with any combination of the other's capabilities."},
		{"INI-12", "MUST", 0, ByRule, "FS-2 TRM-2 ELI-5 SES-4 SES-9 SES-13 LST-3 DEL-3 AUT-1", "runtime",
			"A capability that is missing, null or malformed counts as unsupported."},
		{"INI-13", "SHOULD", finding.Client, BySchema, "", "author",
			"The client advertises its capabilities: `fs`, `terminal`, `elicitation`, `auth`, `session`."},
		{"INI-14", "SHOULD", finding.Agent, BySchema, "", "runtime",
			"The agent advertises its capabilities: `loadSession`, `promptCapabilities`, `mcpCapabilities`, " +
				"`sessionCapabilities`, `auth`."},
		{"INI-15", "MUST", finding.Agent, ByScenario, "", "author",
			"Every agent accepts prompts with `text` and `resource_link` blocks."},
		{"INI-16", "MUST", finding.Agent, ByRule, "", "",
			"The agent implements `session/new`, `session/prompt` and `session/cancel`, and uses `session/update`."},
		{"INI-17", "implied", 0, ByRule, "ELI-5", "runtime",
			"`elicitation: {}`, also with null for each mode, advertises no mode, unlike in MCP."},
		{"INI-18", "implied", finding.Agent, ByRule, "CFG-3", "runtime",
			"Boolean config options require the client's capability `session.configOptions.boolean`."},
		{"INI-19", "MUST", finding.Agent, ByRule, "", "runtime",
			"An auth method of type `terminal` is offered only to a client that advertises `auth.terminal`."},
	}},
	{"authentication", []Requirement{
		{"AUT-1", "MUST NOT", finding.Client, ByRule, "", "runtime",
			"`logout` is called only if the agent advertises `auth.logout`."},
		{"AUT-2", "MUST NOT", finding.Client, ByRule, "", "runtime",
			"The id of a terminal auth method is never passed to `authenticate`."},
		{"AUT-3", "implied", finding.Client, ByRule, "", "runtime",
			"`authenticate` names a method that the agent advertised."},
		{"AUT-4", "implied", 0, ByScenario, "", "runtime", "An auth method without `type` is an agent method."},
		{"AUT-5", "implied", finding.Agent, BySchema, "EXT-2", "runtime",
			"A terminal auth method has no command: its arguments are appended to those of the agent, and its environment is " +
				"merged over the agent's."},
		{"AUT-6", "implied", finding.Client, ByScenario, "", "author",
			"A terminal login has succeeded only if it exits with status 0; the client then reconnects and initializes again."},
		{"AUT-7", "SHOULD", finding.Agent, ByPeople, "", "author",
			"The arguments of a terminal auth method start a login that ends on its own."},
		{"AUT-8", "implied", finding.Agent, BySchema, "INI-6", "", "`authenticate` and `logout` return an empty object."},
		{"AUT-9", "kit", finding.Agent, ByRule, "", "author",
			"After a successful `authenticate`, `session/new` no longer answers that authentication is required."},
		{"AUT-10", "implied", finding.Agent, ByRule, "", "author",
			"After `logout`, a new session needs authentication again."},
		{"AUT-11", "SHOULD", finding.Client, ByScenario, "", "author",
			"After `logout`, the client copes with authentication errors of running sessions and offers to authenticate again."},
	}},
	{"session-setup", []Requirement{
		{"SES-1", "MUST", finding.Client, ByRule, "INI-1", "runtime",
			"`initialize` is answered before a session is created."},
		{"SES-2", "MUST", finding.Agent, ByRule, "", "author",
			"`session/new` returns a session id that is unique among the agent's sessions."},
		{"SES-3", "MUST", finding.Client, ByRule, "SES-4", "runtime",
			"The client checks the capability `loadSession` before `session/load`."},
		{"SES-4", "MUST NOT", finding.Client, ByRule, "", "runtime",
			"`session/load` is not called unless the agent advertises `loadSession`."},
		{"SES-5", "MUST", finding.Client, BySchema, "INI-6", "",
			"Loading uses `session/load` with `sessionId`, `cwd` and `mcpServers`."},
		{"SES-6", "MUST", finding.Agent, ByRule, "", "author",
			"`session/load` replays the whole conversation as `session/update` notifications."},
		{"SES-7", "MUST", finding.Agent, ByRule, "", "author",
			"`session/load` is answered only after the whole history was sent."},
		{"SES-8", "MUST", finding.Client, ByRule, "SES-9", "runtime",
			"The client checks the capability `sessionCapabilities.resume` before `session/resume`."},
		{"SES-9", "MUST NOT", finding.Client, ByRule, "", "runtime",
			"`session/resume` is not called unless the agent advertises `sessionCapabilities.resume`."},
		{"SES-10", "MUST", finding.Client, BySchema, "INI-6", "",
			"Resuming uses `session/resume` with `sessionId`, `cwd` and optionally `mcpServers`."},
		{"SES-11", "MUST NOT", finding.Agent, ByRule, "", "author", "`session/resume` replays no history before its answer."},
		{"SES-12", "MUST", finding.Client, ByRule, "SES-13", "runtime",
			"The client checks the capability `sessionCapabilities.close` before `session/close`."},
		{"SES-13", "MUST NOT", finding.Client, ByRule, "", "runtime",
			"`session/close` is not called unless the agent advertises `sessionCapabilities.close`."},
		{"SES-14", "MUST", finding.Client, BySchema, "INI-6", "", "Closing uses `session/close` with the session id."},
		{"SES-15", "MUST", finding.Agent, ByRule, "", "author",
			"`session/close` first cancels running work as `session/cancel` does, then frees the session."},
		{"SES-16", "implied", finding.Agent, BySchema, "INI-6", "",
			"`session/close` returns an empty object; for an unknown or inactive session it may return an error."},
		{"SES-17", "MUST", finding.Client, ByRule, "", "runtime",
			"Each entry of `additionalDirectories` is an absolute path."},
		{"SES-18", "must", finding.Client, ByScenario, "", "author",
			"On load and resume, the client sends the full list of additional directories again; without the list there " +
				"are none."},
		{"SES-19", "MUST", finding.Client, ByRule, "", "runtime",
			"`additionalDirectories` is sent only if the agent advertises `sessionCapabilities.additionalDirectories`."},
		{"SES-20", "MUST", finding.Client, ByRule, "", "runtime", "`cwd` is an absolute path."},
		{"SES-21", "MUST", finding.Agent, ByRule, "", "author",
			"`cwd` is the session's working directory, wherever the agent's process was started."},
		{"SES-22", "MUST", finding.Agent, ByScenario, "", "author",
			"`cwd` stays the base of relative paths for the whole session."},
		{"SES-23", "MUST", finding.Agent, ByScenario, "", "author", "`cwd` is one of the session's root directories."},
		{"SES-24", "SHOULD", finding.Agent, ByScenario, "", "author",
			"The session's root directories limit what file tools reach."},
		{"SES-25", "MUST", finding.Agent, ByScenario, "", "author", "Every agent supports MCP servers over stdio."},
		{"SES-26", "SHOULD", finding.Agent, ByScenario, "", "", "The agent supports MCP servers over HTTP."},
		{"SES-27", "MUST", finding.Client, ByRule, "", "runtime",
			"MCP servers over HTTP or SSE are sent only if the agent advertises that transport in `mcpCapabilities`."},
		{"SES-28", "SHOULD", finding.Agent, ByScenario, "", "author",
			"The agent connects to every MCP server that it is given."},
		{"SES-29", "implied", finding.Client, ByRule, "", "runtime",
			"The command of an MCP server over stdio is an absolute path."},
		{"SES-30", "implied", 0, BySchema, "INI-6", "runtime",
			"An MCP server over HTTP or SSE has a `type`; one without `type` is a stdio server."},
		{"SES-31", "implied", finding.Agent, ByRule, "", "runtime",
			"No `session/update` of a session precedes the answer that names the session; clients would drop it."},
	}},
	{"session-list", []Requirement{
		{"LST-1", "MUST", finding.Client, ByRule, "INI-1", "runtime", "`initialize` is answered before `session/list`."},
		{"LST-2", "MUST", finding.Client, ByRule, "LST-3", "runtime",
			"The client checks the capability `sessionCapabilities.list` before `session/list`."},
		{"LST-3", "MUST NOT", finding.Client, ByRule, "", "runtime",
			"`session/list` is not called unless the agent advertises `sessionCapabilities.list`."},
		{"LST-4", "must", finding.Client, ByRule, "OVW-1", "runtime",
			"The filter `cwd` is an absolute path, and only sessions of that directory are listed."},
		{"LST-5", "MUST", finding.Agent, BySchema, "INI-6", "", "The answer is a list of sessions and an optional cursor."},
		{"LST-6", "implied", finding.Agent, ByRule, "OVW-1", "runtime",
			"`cwd` and `additionalDirectories` of a listed session are absolute paths."},
		{"LST-7", "MUST NOT", finding.Client, ByPeople, "", "",
			"The `additionalDirectories` of a listed session are neither merged with earlier values nor guessed."},
		{"LST-8", "MUST", finding.Agent, ByScenario, "", "author",
			"If no session matches, the answer is an empty list, not an error or null."},
		{"LST-9", "MUST", finding.Client, ByRule, "", "runtime", "An answer without `nextCursor` ends the listing."},
		{"LST-10", "MUST", finding.Client, ByRule, "", "runtime",
			"Cursors are opaque: the client does not parse, change or keep them."},
		{"LST-11", "SHOULD", finding.Agent, ByScenario, "", "author", "An invalid cursor is answered with an error."},
		{"LST-12", "SHOULD", finding.Agent, ByScenario, "", "author", "The agent limits the size of its pages."},
		{"LST-13", "implied", 0, ByScenario, "", "runtime",
			"In `session_info_update`, a missing member is unchanged, and null clears it."},
		{"LST-14", "implied", finding.Agent, ByScenario, "", "author",
			"`session/list` changes no session and restores none."},
	}},
	{"session-delete", []Requirement{
		{"DEL-1", "MUST", finding.Client, ByRule, "DEL-3", "runtime",
			"`initialize` is answered, and the capability `sessionCapabilities.delete` checked, before `session/delete`."},
		{"DEL-2", "MUST", finding.Client, ByRule, "DEL-3", "runtime",
			"The client checks the capability before it deletes a session."},
		{"DEL-3", "MUST NOT", finding.Client, ByRule, "", "runtime",
			"`session/delete` is not called unless the agent advertises `sessionCapabilities.delete`."},
		{"DEL-4", "implied", finding.Agent, ByRule, "", "author", "A deleted session is no longer listed."},
		{"DEL-5", "SHOULD", finding.Agent, ByRule, "", "author",
			"Deleting a session that is already deleted, or that never existed, succeeds."},
		{"DEL-6", "implied", finding.Agent, BySchema, "INI-6", "", "`session/delete` returns an empty object."},
	}},
	{"session-modes", []Requirement{
		{"MOD-1", "must", finding.Client, ByRule, "", "runtime", "The mode that a client sets is one of `availableModes`."},
		{"MOD-2", "kit", finding.Agent, ByRule, "", "author", "`currentModeId` is one of `availableModes`."},
		{"MOD-3", "implied", finding.Agent, ByScenario, "", "author",
			"When the agent changes the mode, it reports it as `current_mode_update` with `currentModeId`; the `modeId` of " +
				"the page's example is wrong."},
	}},
	{"session-config-options", []Requirement{
		{"CFG-1", "SHOULD", finding.Client, ByPeople, "", "",
			"If there are config options, the client uses them in place of modes."},
		{"CFG-2", "SHOULD", finding.Client, ByPeople, "", "", "Options are displayed in the order of the list."},
		{"CFG-3", "MUST NOT", finding.Agent, ByRule, "", "runtime",
			"No boolean option is sent unless the client advertises `session.configOptions.boolean`."},
		{"CFG-4", "MAY-only", finding.Agent, ByRule, "CFG-3", "",
			"Boolean options appear only after the client advertised support."},
		{"CFG-5", "MUST NOT", 0, ByPeople, "", "", "A category is never needed for correctness."},
		{"CFG-6", "MUST", finding.Client, ByScenario, "", "", "Missing and unknown categories are handled."},
		{"CFG-7", "implied", finding.Agent, ByRule, "", "", "Category names without a leading `_` belong to ACP."},
		{"CFG-8", "SHOULD", finding.Client, ByPeople, "", "",
			"Options of the category `model_config` are displayed near the model selector."},
		{"CFG-9", "SHOULD", finding.Client, ByPeople, "", "", "Among options of one category, the earlier one has priority."},
		{"CFG-10", "SHOULD", finding.Agent, ByPeople, "", "", "Higher-priority options come first."},
		{"CFG-11", "SHOULD", finding.Client, ByPeople, "", "", "Options are displayed in order."},
		{"CFG-12", "SHOULD", finding.Client, ByPeople, "", "", "The order decides between options of the same category."},
		{"CFG-13", "SHOULD", finding.Client, ByPeople, "", "", "A display with little room prefers the first options."},
		{"CFG-14", "MUST", finding.Agent, ByRule, "", "author",
			"Every option has a current value; that of a select is one of its options."},
		{"CFG-15", "SHOULD", finding.Client, ByScenario, "", "runtime",
			"An option of an unknown type is ignored, and the others are kept."},
		{"CFG-16", "must", finding.Client, ByRule, "", "runtime",
			"The value that a client sets for a select is one of those offered; for a boolean option it is a boolean, with " +
				"type `boolean`."},
		{"CFG-17", "MUST", finding.Agent, ByRule, "", "author",
			"`session/set_config_option` returns the complete list of options with their current values."},
		{"CFG-18", "implied", finding.Agent, ByRule, "", "author",
			"`config_option_update` has the complete list of options with their current values."},
		{"CFG-19", "SHOULD", finding.Agent, ByRule, "", "author",
			"While modes exist, mode-like configuration is sent both as modes and as a config option of the category `mode`."},
		{"CFG-20", "SHOULD", finding.Client, ByPeople, "", "", "A client with config options ignores modes."},
		{"CFG-21", "SHOULD", finding.Client, ByPeople, "", "", "A client without config options falls back to modes."},
		{"CFG-22", "SHOULD", finding.Agent, ByRule, "", "author", "Modes and the config option for them stay in sync."},
	}},
	{"prompt-turn", []Requirement{
		{"PRM-1", "MUST", finding.Client, ByRule, "", "runtime",
			"`initialize` and the setup of the session precede a prompt."},
		{"PRM-2", "MUST", finding.Client, ByRule, "", "runtime",
			"A prompt contains images, audio and embedded resources only if the agent advertises them in `promptCapabilities`."},
		{"PRM-3", "implied", finding.Agent, ByRule, "", "author",
			"Chunks with the same `messageId` are one message, and another id starts another message; ids are unique " +
				"and opaque."},
		{"PRM-4", "implied", finding.Agent, BySchema, "INI-6", "author",
			"`usage_update` has `used` and `size`, not null; a cost has an amount and a currency."},
		{"PRM-5", "MUST", finding.Agent, ByRule, "", "author", "A turn that ends is answered with a stop reason."},
		{"PRM-6", "SHOULD", finding.Agent, ByRule, "", "author",
			"A tool call that was permitted is reported as `in_progress` when it runs."},
		{"PRM-7", "must", finding.Agent, ByRule, "", "author",
			"The stop reason is the one that fits: `end_turn`, `max_tokens`, `max_turn_requests`, `refusal` or `cancelled`."},
		{"PRM-8", "SHOULD", finding.Client, ByPeople, "", "author",
			"When the client cancels a turn, it marks the turn's open tool calls as cancelled immediately."},
		{"PRM-9", "MUST", finding.Client, ByRule, "", "runtime",
			"After `session/cancel`, the client answers every pending permission request of the session as cancelled."},
		{"PRM-10", "SHOULD", finding.Agent, ByScenario, "", "author",
			"After `session/cancel`, the agent stops model calls and tools as soon as possible."},
		{"PRM-11", "MUST", finding.Agent, ByRule, "", "runtime",
			"A cancelled turn is answered with the stop reason `cancelled`, after all of its updates."},
		{"PRM-12", "MUST", finding.Agent, ByRule, "", "runtime",
			"An error that the cancellation causes is not the answer to the prompt."},
		{"PRM-13", "MUST", finding.Agent, ByRule, "", "author",
			"All updates of a turn precede its answer, including those of a cancelled turn."},
		{"PRM-14", "SHOULD", finding.Client, ByScenario, "", "runtime",
			"The client still accepts updates of tool calls after `session/cancel`."},
		{"PRM-15", "implied", finding.Client, ByRule, "", "", "The next prompt follows the end of the previous one."},
		{"PRM-16", "implied", finding.Agent, ByRule, "", "runtime",
			"`session/cancel` of an idle or unknown session does no harm."},
	}},
	{"cancellation", []Requirement{
		{"CAN-1", "MUST", 0, ByRule, "", "runtime",
			"A receiver that supports `$/cancel_request` still answers the cancelled request, with a valid result or with the " +
				"error -32800."},
		{"CAN-2", "SHOULD", 0, ByScenario, "", "",
			"A request that its receiver cancels is answered with the same error, -32800."},
		{"CAN-3", "SHOULD", 0, ByScenario, "", "", "The behaviour is the same whatever cancels the request."},
		{"CAN-4", "implied", 0, ByRule, "OVW-4", "runtime",
			"`$/cancel_request` may be ignored, is never answered, and has no effect for an id that is unknown or answered."},
		{"CAN-5", "implied", 0, ByScenario, "", "author",
			"When a request is cancelled, the requests that its handler made are cancelled first, under their own ids."},
	}},
	{"content", []Requirement{
		{"CON-1", "MUST", finding.Agent, ByScenario, "", "author", "Every agent accepts prompts with text."},
		{"CON-2", "implied", finding.Client, ByRule, "PRM-2", "runtime",
			"Images, audio and embedded resources in a prompt require the agent's capability."},
		{"CON-3", "implied", 0, ByRule, "", "",
			"Content blocks have their required members; `data` and `blob` are base64; images and audio have a `mimeType`."},
	}},
	{"tool-calls", []Requirement{
		{"TOL-1", "SHOULD", finding.Agent, ByRule, "", "author",
			"A tool call that the model requests is reported as a `tool_call`."},
		{"TOL-2", "implied", finding.Agent, ByRule, "", "author", "The id of a tool call is unique within its session."},
		{"TOL-3", "implied", 0, ByScenario, "", "runtime", "`tool_call_update` changes only the members that it has."},
		{"TOL-4", "MUST", finding.Client, ByRule, "PRM-9", "runtime",
			"A permission request of a cancelled turn is answered as cancelled."},
		{"TOL-5", "implied", finding.Client, ByRule, "", "runtime",
			"The option that a client selects is one that the permission request offered."},
		{"TOL-6", "implied", finding.Agent, ByRule, "", "author",
			"The option ids of a permission request are unique; each option has a name and a known kind."},
		{"TOL-7", "implied", finding.Agent, ByRule, "OVW-1", "runtime", "The paths of diffs and locations are absolute."},
		{"TOL-8", "implied", finding.Agent, ByRule, "", "author",
			"A terminal in the content of a tool call was created by `terminal/create` and is not yet released when it " +
				"is added."},
		{"TOL-9", "implied", finding.Agent, ByRule, "", "author", "A tool call ends as completed or failed, and stays so."},
	}},
	{"file-system", []Requirement{
		{"FS-1", "MUST", finding.Agent, ByRule, "FS-2", "runtime",
			"The agent checks the client's capability before it reads or writes files."},
		{"FS-2", "MUST NOT", finding.Agent, ByRule, "", "runtime",
			"`fs/read_text_file` and `fs/write_text_file` are not called unless the client advertises them."},
		{"FS-3", "MUST", finding.Client, ByScenario, "", "", "`fs/write_text_file` creates a missing file."},
		{"FS-4", "implied", finding.Agent, ByRule, "OVW-1 OVW-2", "runtime",
			"The path is absolute, `line` starts at 1, and `limit` is a number of lines."},
		{"FS-5", "implied", finding.Client, BySchema, "INI-6", "",
			"`fs/write_text_file` returns an empty object; the null of the page's example does not fit the schema."},
		{"FS-6", "implied", finding.Client, ByRule, "", "",
			"`fs/read_text_file` returns unsaved changes of the editor; a missing file is answered with -32002 and `data.uri`."},
	}},
	{"terminals", []Requirement{
		{"TRM-1", "MUST", finding.Agent, ByRule, "TRM-2", "runtime",
			"The agent checks the client's capability before it uses terminals."},
		{"TRM-2", "MUST NOT", finding.Agent, ByRule, "", "runtime",
			"No `terminal/…` method is called unless the client advertises `terminal`."},
		{"TRM-3", "must", finding.Agent, ByRule, "OVW-1", "runtime", "The `cwd` of `terminal/create` is an absolute path."},
		{"TRM-4", "implied", finding.Client, ByRule, "", "",
			"If the output exceeds `outputByteLimit`, its beginning is cut, and `truncated` is true."},
		{"TRM-5", "MUST", finding.Client, ByRule, "", "", "The output is cut at a character boundary."},
		{"TRM-6", "implied", finding.Client, ByScenario, "", "",
			"`terminal/create` is answered immediately, before the command ends."},
		{"TRM-7", "MUST", finding.Agent, ByRule, "", "author", "Every terminal that was created is released."},
		{"TRM-8", "MUST", finding.Agent, ByRule, "", "runtime", "A killed terminal is released too."},
		{"TRM-9", "implied", finding.Client, ByRule, "", "",
			"`exitStatus` is present only after the exit; `terminal/wait_for_exit` answers at the exit."},
		{"TRM-10", "implied", finding.Client, ByRule, "", "author",
			"After `terminal/kill`, `terminal/output` and `terminal/wait_for_exit` still work."},
		{"TRM-11", "implied", finding.Client, ByRule, "", "",
			"`terminal/release` kills a running command and invalidates the id."},
		{"TRM-12", "implied", finding.Client, ByRule, "", "",
			"One of `exitCode` and `signal` may be null; an exit by a signal reports the signal."},
		{"TRM-13", "SHOULD", finding.Client, ByPeople, "", "", "A released terminal in a tool call stays displayed."},
	}},
	{"agent-plan", []Requirement{
		{"PLN-1", "SHOULD", finding.Agent, ByScenario, "", "", "A plan made by the model is reported."},
		{"PLN-2", "SHOULD", finding.Agent, ByScenario, "", "", "Progress is reported with more plan updates."},
		{"PLN-3", "MUST", finding.Agent, ByRule, "", "author", "Each plan update has all entries with their status."},
		{"PLN-4", "MUST", finding.Client, ByPeople, "", "author", "A plan update replaces the whole plan."},
	}},
	{"slash-commands", []Requirement{
		{"CMD-1", "implied", finding.Agent, ByRule, "SES-31", "author",
			"`available_commands_update` has all commands and follows the answer that names the session."},
		{"CMD-2", "implied", finding.Agent, ByRule, "", "author",
			"A command has a description and a name without the leading slash; an input has a hint."},
	}},
	{"elicitation", []Requirement{
		{"ELI-1", "MUST", finding.Client, ByPeople, "", "",
			"The client names the agent that asks, respects privacy, and offers to decline and to cancel."},
		{"ELI-2", "MUST", finding.Client, ByPeople, "", "",
			"The user can review and change the answers of a form before they are sent."},
		{"ELI-3", "MUST", finding.Client, ByPeople, "", "",
			"In URL mode, the client shows the target host and asks before it opens the URL."},
		{"ELI-4", "SHOULD", finding.Client, ByPeople, "", "", "The client shows the message."},
		{"ELI-5", "MUST NOT", finding.Agent, ByRule, "", "runtime",
			"The agent requests no mode of elicitation that the client does not advertise."},
		{"ELI-6", "SHOULD", finding.Agent, ByScenario, "", "author",
			"The agent has a fallback for a client that does not offer the mode."},
		{"ELI-7", "MUST", finding.Agent, ByPeople, "", "",
			"An elicitation is bound to the receiving connection and the verified user."},
		{"ELI-8", "SHOULD", finding.Client, ByRule, "ELI-15", "", "The client validates values before it answers."},
		{"ELI-9", "SHOULD", finding.Agent, ByScenario, "", "author", "The agent validates the values of an answer again."},
		{"ELI-10", "SHOULD", finding.Client, ByPeople, "", "", "Declared defaults fill the form in."},
		{"ELI-11", "MUST NOT", finding.Agent, ByRule, "", "", "Forms do not ask for secrets."},
		{"ELI-12", "MUST", finding.Agent, ByPeople, "", "", "Sensitive input uses URL mode."},
		{"ELI-13", "MUST NOT", finding.Agent, ByRule, "ELI-11", "author",
			"Without URL mode, a sensitive request does not fall back to a form."},
		{"ELI-14", "MUST NOT", finding.Agent, ByScenario, "", "", "Credentials from URL mode are never sent over ACP."},
		{"ELI-15", "SHOULD", finding.Client, ByRule, "", "",
			"The content of an accepted form conforms to the requested schema."},
		{"ELI-16", "implied", 0, ByScenario, "", "runtime",
			"When an elicitation is accepted, `content` null is the same as none; when it is declined or cancelled, `content` " +
				"is ignored."},
		{"ELI-17", "MUST NOT", finding.Agent, ByScenario, "", "author",
			"The agent does not assume that an elicitation succeeds."},
		{"ELI-18", "MUST", finding.Agent, ByScenario, "", "author", "The agent handles `decline`, `cancel` and failures."},
		{"ELI-19", "MUST", finding.Agent, ByRule, "", "runtime",
			"An `elicitationId` is unique among the outstanding URL elicitations of a connection."},
		{"ELI-20", "MUST", finding.Client, ByPeople, "", "", "The client treats the id as opaque."},
		{"ELI-21", "MUST", finding.Agent, ByRule, "", "author",
			"`elicitation/complete` has the original id and goes to the client that received the request."},
		{"ELI-22", "MUST", finding.Client, ByScenario, "", "runtime",
			"`elicitation/complete` for an id that is unknown or completed is ignored."},
		{"ELI-23", "implied", finding.Client, ByRule, "", "runtime",
			"A request for a mode that the client does not advertise is answered with -32602."},
		{"ELI-24", "MUST", 0, ByPeople, "", "",
			"Implementations of URL mode follow the page's list for the security of URLs."},
		{"ELI-25", "MUST NOT", finding.Agent, ByRule, "", "",
			"The URL contains no credentials, personal data or pre-authenticated access."},
		{"ELI-26", "SHOULD", finding.Agent, ByRule, "", "", "The URL is HTTPS outside development."},
		{"ELI-27", "SHOULD NOT", finding.Agent, ByRule, "", "", "The fields of a form contain no URL to click on."},
		{"ELI-28", "MUST NOT", finding.Client, ByScenario, "", "",
			"The client neither prefetches the URL nor opens it without consent."},
		{"ELI-29", "MUST", finding.Client, ByPeople, "", "", "The client shows the full URL before it asks for consent."},
		{"ELI-30", "MUST", finding.Client, ByPeople, "", "",
			"The URL opens where the model cannot see the page or the input."},
		{"ELI-31", "SHOULD", finding.Client, ByPeople, "", "",
			"The client highlights the domain and warns of suspicious URLs, such as those in Punycode."},
		{"ELI-32", "SHOULD NOT", finding.Client, ByPeople, "", "",
			"No URL is shown as a link in other fields of an elicitation."},
		{"ELI-33", "MUST", finding.Agent, ByPeople, "", "",
			"The agent verifies that the user who finishes is the one who started."},
		{"ELI-34", "implied", 0, ByRule, "", "author",
			"An elicitation has a `mode` and exactly one scope: `sessionId`, optionally with `toolCallId`, or `requestId`."},
	}},
	{"extensibility", []Requirement{
		{"EXT-1", "SHOULD", 0, ByRule, "", "",
			"The root keys `traceparent`, `tracestate` and `baggage` of `_meta` are reserved for the W3C trace context."},
		{"EXT-2", "MUST NOT", 0, BySchema, "", "runtime", "Specified types have no custom members, except under `_meta`."},
		{"EXT-3", "must", 0, BySchema, "", "runtime", "The names of custom methods and notifications start with `_`."},
		{"EXT-4", "MUST", 0, ByRule, "", "runtime", "A custom request is answered with its id."},
		{"EXT-5", "should", 0, ByRule, "", "runtime", "An unknown custom request is answered with -32601."},
		{"EXT-6", "SHOULD", 0, ByRule, "", "", "Extensions are advertised as capabilities."},
		{"EXT-7", "SHOULD", 0, ByRule, "OVW-4", "runtime", "An unknown notification is ignored."},
		{"EXT-8", "SHOULD", 0, BySchema, "EXT-2", "", "Custom capabilities are in the `_meta` of capability objects."},
	}},
	{"error", []Requirement{
		{"ERR-1", "MUST", 0, ByScenario, "", "runtime", "An error with an unknown code is treated as a generic failure."},
		{"ERR-2", "SHOULD", 0, ByRule, "", "", "The codes of implementations lie outside -32768…-32000 and -32899…-32800."},
		{"ERR-3", "SHOULD", 0, ByRule, "", "runtime",
			"A method that does not exist, or that is gated and was not advertised, is answered with -32601."},
		{"ERR-4", "implied", 0, ByRule, "", "runtime",
			"Malformed params and unsupported values (an invalid cursor, an unknown config id, value or mode) are answered " +
				"with -32602."},
		{"ERR-5", "SHOULD", finding.Agent, ByRule, "", "runtime",
			"A request (prompt, set_mode, set_config_option, load, resume) for an unknown or inactive session is answered " +
				"with -32002, with the session's id as `data.sessionId`."},
		{"ERR-6", "implied", finding.Agent, ByRule, "", "runtime",
			"A request other than `initialize` before initialization is answered with -32600."},
		{"ERR-7", "implied", 0, ByRule, "", "runtime",
			"A line that is not JSON is answered with -32700 and the id null, and JSON that is not a message with -32600; the " +
				"connection survives."},
		{"ERR-8", "implied", finding.Client, ByScenario, "", "runtime",
			"-32002 as the answer to `session/close` or `session/delete` counts as success."},
		{"ERR-9", "implied", finding.Agent, ByRule, "", "runtime",
			"-32000 means that authentication is required, and nothing else."},
	}},
	{"schema-reference", []Requirement{
		{"SCH-1", "MUST NOT", 0, ByScenario, "", "runtime",
			"Nothing is assumed about the values of unknown keys of `_meta`."},
		{"SCH-2", "MUST", 0, BySchema, "", "runtime",
			"The id of an answer is the id of its request, of the same JSON type and value: a string, an integer (int64, also " +
				"negative) or null."},
		{"SCH-3", "SHOULD NOT", 0, BySchema, "", "runtime", "An id is not null and has no fraction."},
		{"SCH-4", "MUST", 0, BySchema, "", "", "`jsonrpc` is \"2.0\" in every message."},
		{"SCH-5", "SHOULD", finding.Client, ByPeople, "", "", "Text content is rendered as Markdown."},
		{"SCH-6", "SHOULD", finding.Agent, ByRule, "PRM-11 PRM-13", "",
			"On `session/cancel`, the agent stops model calls and tools, sends pending updates, and answers `cancelled`."},
		{"SCH-7", "must", finding.Agent, ByRule, "PRM-12", "",
			"The answer to the prompt of a cancelled turn is `cancelled`, even if something failed."},
		{"SCH-8", "MUST NOT", finding.Client, ByScenario, "", "runtime",
			"An elicitation of an unknown mode is not shown as one of a known mode; its content is kept."},
		{"SCH-9", "MUST NOT", finding.Agent, ByScenario, "", "runtime",
			"An unknown action in the answer to an elicitation is not treated as a known one."},
		{"SCH-10", "MUST NOT", finding.Client, ByScenario, "", "author",
			"A form property of an unknown type is not shown as one of a known type."},
		{"SCH-11", "implied", 0, ByRule, "", "",
			"Unknown tags that start with `_` are extensions; others are reserved for ACP."},
		{"SCH-12", "MUST", finding.Agent, ByRule, "", "runtime",
			"`notice` is sent only to a client that advertises `session.notices`."},
		{"SCH-13", "MUST", finding.Agent, ByRule, "", "runtime",
			"`compaction_update` and `compaction_summary_chunk` are sent only to a client that advertises " +
				"`session.compaction`."},
		{"SCH-14", "must", finding.Agent, ByRule, "TOL-8", "author",
			"A terminal is added to its tool call before it is released."},
		{"SCH-15", "must", finding.Agent, ByRule, "", "", "The properties of an elicitation's form are primitives or enums."},
		{"SCH-16", "implied", 0, BySchema, "INI-6", "",
			"Integer widths: protocolVersion u16; line, limit, exitCode u32; outputByteLimit, used, size u64; " +
				"ResourceLink.size i64; url format uri; notice.title non-empty."},
		{"SCH-17", "implied", 0, ByScenario, "", "runtime",
			"Values that the schema marks with `x-deserialize-…` are read leniently; sent messages are always strict."},
	}},
	{"additions", []Requirement{
		{"ADD-1", "implied", 0, ByScenario, "", "runtime", "After an error answer, the connection serves the next request."},
		{"ADD-2", "implied", finding.Agent, BySchema, "", "",
			"Every update and request of the agent has the id of a session that the client knows."},
		{"ADD-3", "MUST", finding.Agent, ByScenario, "", "",
			"The agent accepts what it advertises: image, audio and embedded resource blocks, additionalDirectories, MCP " +
				"transports."},
		{"ADD-4", "implied", finding.Agent, BySchema, "INI-6", "", "The result of `session/load` is an object, not null."},
		{"ADD-5", "MUST", finding.Agent, BySchema, "", "", "The ids of `authMethods` are unique."},
		{"ADD-6", "SHOULD", 0, BySchema, "", "", "The message of an error is one line and not empty."},
		{"ADD-7", "MUST", finding.Agent, ByRule, "", "",
			"A requested version that the agent does not support is not the version of the answer, which is not lower than " +
				"the answer to version 1."},
		{"ADD-8", "MUST", finding.Client, ByScenario, "", "runtime",
			"A prompt that is sent after `session/cancel` arrives after it: the cancellation neither overtakes nor trails " +
				"other messages."},
		{"ADD-9", "implied", 0, ByScenario, "", "runtime",
			"A response with neither result nor error fails its call, and nothing is sent in reply."},
		{"ADD-10", "implied", 0, BySchema, "", "",
			"Extension methods begin with an underscore; removed or unstable ones are not used without their capability."},
		{"ADD-11", "JSON-RPC", 0, ByRule, "OVW-4", "",
			"A notification is never answered, not even an unknown one or `$/cancel_request`."},
		{"ADD-12", "SHOULD", finding.Agent, ByRule, "", "",
			"On `session/load`, available commands, modes and options are sent before the answer or with it."},
		{"ADD-13", "implied", finding.Agent, BySchema, "", "", "`updatedAt` is an ISO 8601 timestamp."},
		{"ADD-14", "MUST NOT", finding.Agent, ByScenario, "", "", "The agent does not do what the user has refused."},
		{"ADD-15", "implied", finding.Agent, ByRule, "", "", "A terminal is not used after its release."},
		{"ADD-16", "implied", finding.Agent, ByRule, "", "",
			"A list of sessions that is filtered by `cwd` has no sessions in other directories."},
		{"ADD-17", "MUST", finding.Client, ByScenario, "", "author",
			"The client answers a permission request or an elicitation as its user has decided."},
	}},
	{"version-2", []Requirement{
		{"V2-1", "MUST", finding.Agent, ByRule, "", "",
			"A prompt that is answered is in the conversation: its user message is echoed under the messageId of the answer."},
		{"V2-2", "MUST", finding.Agent, ByRule, "", "",
			"Work is reported as running (or requires_action) when it starts and as idle when it ends."},
		{"V2-3", "implied", finding.Agent, ByRule, "", "",
			"An idle state ends the work: another one without new work between is the same state again, with the same " +
				"stop reason."},
		{"V2-4", "MUST", finding.Agent, ByRule, "", "",
			"session/close cancels running work: the idle state is sent before the answer."},
		{"V2-5", "implied", finding.Agent, ByRule, "", "",
			"After the answer to session/close the agent sends no other messages for the session."},
		{"V2-6", "SHOULD", finding.Agent, ByRule, "", "", "The first update of a tool call has its title."},
		{"V2-7", "implied", finding.Agent, ByRule, "", "", "The directory of a terminal does not change."},
		{"V2-8", "implied", finding.Agent, ByRule, "", "", "The bytes of each terminal chunk are base64 on their own."},
		{"V2-9", "implied", finding.Agent, ByRule, "", "", "session/resume without replayFrom replays no history."},
		{"V2-10", "MUST", finding.Agent, ByRule, "", "",
			"session/resume sends the session's state after any replay and before its answer."},
		{"V2-11", "must", finding.Agent, ByRule, "", "",
			"A replay in chunks begins each message with the whole-message update, with empty content."},
		{"V2-12", "MUST NOT", finding.Client, ByRule, "", "",
			"auth/login and auth/logout are not called when the agent has offered no authMethods."},
		{"V2-13", "MUST", finding.Client, ByRule, "", "",
			"The methods of sessions are called only if the agent advertises the capability session."},
		{"V2-14", "MUST", finding.Agent, ByRule, "", "",
			"A prompt that does not enter the conversation because its session is closed is answered with -32800."},
		{"V2-15", "MUST", finding.Agent, ByRule, "", "",
			"An agent that reports background work includes it on every state update of the session."},
		{"V2-16", "MUST", finding.Agent, ByRule, "", "", "A replayed message keeps its messageId."},
		{"V2-17", "implied", finding.Agent, ByRule, "", "",
			"A messageId is unique among the messages of a type within a session."},
		{"V2-18", "MUST", finding.Agent, ByRule, "", "", "optionIds are unique within a request for permission."},
		{"V2-19", "MUST", finding.Agent, ByRule, "", "",
			"Names of commands are unique within their list, and contain no white space."},
		{"V2-20", "MUST", finding.Agent, ByRule, "", "", "Each value of a select is unique, across groups too."},
		{"V2-21", "MUST", finding.Agent, ByRule, "", "", "Names in the env of a login in a terminal are unique."},
		{"V2-22", "MUST", finding.Agent, ByRule, "", "",
			"Work that session/cancel ends is reported as idle with the stop reason cancelled."},
		{"V2-23", "implied", finding.Agent, ByRule, "", "", "A replay has the messages in the order of the conversation."},
		{"V2-24", "SHOULD", finding.Agent, ByRule, "", "",
			"Work that cannot go on without the user is reported as requires_action."},
	}},
}
