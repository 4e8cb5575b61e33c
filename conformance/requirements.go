// The requirements of the protocol's pages: how grave each is, whom it binds, and who can judge it.

package conformance

import (
	"slices"
	"strings"
)

// requirement is one requirement of a page.
type requirement struct {
	id   string
	word string // the page's keyword, or how the page says it without one
	side Side   // who must comply; 0 for both
	how  how
	as   string // the id of the rule that judges this requirement too, when another one says the same
	text string
}

// how says what can show that a requirement is broken.
type how int

const (
	byRule     how = iota + 1 // a rule of this package, over a stream that is only watched
	bySchema                  // the schema, or JSON-RPC: a finding about one message
	byScenario                // a probe: somebody must send something, or look at files and processes
	byPeople                  // only people can judge it
)

// levels are what the pages' words mean here. The pages write in capitals what binds; what they write in lower case or
// say without a keyword is one step milder.
var levels = map[string]Level{
	"MUST":       Must,
	"MUST NOT":   MustNot,
	"SHOULD":     Should,
	"SHOULD NOT": ShouldNot,
	"must":       Should,
	"should":     Advice,
	"implied":    Should,
	"MAY-only":   Advice,
	// The pages say it without a keyword, and the official compatibility kit counts it as a failure.
	"kit": Must,
}

// level is how grave it is to break the requirement. What the schema or JSON-RPC refuses is not a message of the agreed
// version, and that is a MUST (INI-6) however the page says it.
func (r *requirement) level() Level {
	if capital := strings.ToUpper(r.word) == r.word; r.how == bySchema && !capital {
		return Must
	}
	return levels[r.word]
}

// page is a page of the protocol with its requirements.
type page struct {
	name         string
	requirements []requirement
}

// requirementOf finds a requirement by its id.
func requirementOf(id string) (r *requirement, page string) {
	at, ok := requirementByID[id]
	if !ok {
		return nil, ""
	}
	return at.requirement, at.page
}

// place is a requirement with the name of its page.
type place struct {
	*requirement
	page string
}

var requirementByID = func() map[string]place {
	all := map[string]place{}
	for i := range pages {
		for j := range pages[i].requirements {
			r := &pages[i].requirements[j]
			all[r.id] = place{r, pages[i].name}
		}
	}
	return all
}()

// pageNames are the names of the pages, in their order.
func pageNames() []string {
	var names []string
	for _, p := range pages {
		names = append(names, p.name)
	}
	return slices.Clip(names)
}

// pages are all requirements, in the order of the pages of the protocol's documents.
var pages = []page{
	{"overview", []requirement{
		{"OVW-1", "MUST", 0, byRule, "", "Every file path on the wire is absolute (POSIX `/…`, Windows drive or UNC)."},
		{"OVW-2", "implied", 0, byRule, "", "Line numbers are 1-based."},
		{"OVW-3", "implied", 0, bySchema, "", "A success answer has `result`, a failure has `error` with `code` and `message`; never both, never neither."},
		{"OVW-4", "implied", 0, byRule, "", "A notification is never answered, neither with a result nor an error."},
		{"OVW-5", "implied", 0, bySchema, "EXT-2", "ACP property keys are camelCase and discriminator values snake_case."},
	}},
	{"transports", []requirement{
		{"TRN-1", "MUST", 0, bySchema, "", "Messages are UTF-8."},
		{"TRN-2", "SHOULD", 0, byPeople, "", "Stdio is supported where possible."},
		{"TRN-3", "implied", 0, bySchema, "", "One stdio line carries one request, notification or response; v1 has no batch arrays."},
		{"TRN-4", "MUST NOT", 0, bySchema, "", "A message has no embedded newline; `\\n` ends it."},
		{"TRN-5", "MUST NOT", Agent, bySchema, "", "The agent's stdout carries nothing but ACP messages."},
		{"TRN-6", "MUST NOT", Client, bySchema, "", "The client writes nothing but ACP messages to the agent's stdin."},
		{"TRN-7", "implied", Agent, byScenario, "", "stderr is free for UTF-8 logs and a client may ignore it."},
		{"TRN-8", "MUST", 0, byPeople, "", "A custom transport keeps the JSON-RPC format and the ACP lifecycle."},
		{"TRN-9", "SHOULD", 0, byPeople, "", "A custom transport documents its connection set-up and exchange pattern."},
		{"TRN-10", "implied", Client, byScenario, "", "Shutdown = the client closes stdin and ends the process."},
	}},
	{"initialization", []requirement{
		{"INI-1", "MUST", Client, byRule, "", "`initialize` is called (and answered) before any session is created."},
		{"INI-2", "MUST", Client, bySchema, "", "initialize carries the latest protocol version supported and the client's capabilities."},
		{"INI-3", "SHOULD", Client, byRule, "", "initialize carries clientInfo (name, version)."},
		{"INI-4", "MUST", Agent, bySchema, "", "The answer carries the chosen protocolVersion and the agent's capabilities."},
		{"INI-5", "SHOULD", Agent, byRule, "", "The answer carries agentInfo (name, version)."},
		{"INI-6", "MUST", 0, bySchema, "", "Both sides agree on one version and then follow it."},
		{"INI-7", "MUST", Client, byScenario, "", "The version in the request is the highest the client speaks."},
		{"INI-8", "MUST", Agent, byScenario, "", "A supported requested version is echoed."},
		{"INI-9", "MUST", Agent, byRule, "", "An unsupported requested version is answered with the latest the agent supports (not an error in v1)."},
		{"INI-10", "SHOULD", Client, byRule, "", "A client that cannot speak the answered version closes the connection and tells the user."},
		{"INI-11", "SHOULD", 0, byScenario, "", "Any combination of peer capabilities is coped with."},
		{"INI-12", "MUST", 0, byRule, "FS-2 TRM-2 ELI-5 SES-4 SES-9 SES-13 LST-3 DEL-3 AUT-1", "A capability left out (or null, or malformed) counts as unsupported."},
		{"INI-13", "SHOULD", Client, bySchema, "", "The client states its fs, terminal, elicitation, auth and session capabilities."},
		{"INI-14", "SHOULD", Agent, bySchema, "", "The agent states loadSession, promptCapabilities, mcpCapabilities, sessionCapabilities, auth."},
		{"INI-15", "MUST", Agent, byScenario, "", "text and resource_link prompt blocks are supported by every agent."},
		{"INI-16", "MUST", Agent, byRule, "", "session/new, session/prompt, session/cancel are implemented and session/update is used."},
		{"INI-17", "implied", 0, byRule, "ELI-5", "`elicitation: {}` (and {form:null,url:null}) advertises no mode, unlike MCP."},
		{"INI-18", "implied", Agent, byRule, "CFG-3", "Boolean config options need clientCapabilities.session.configOptions.boolean non-null."},
		{"INI-19", "MUST", Agent, byRule, "", "A terminal auth method is offered only if clientCapabilities.auth.terminal is true."},
	}},
	{"authentication", []requirement{
		{"AUT-1", "MUST NOT", Client, byRule, "", "logout is not called unless agentCapabilities.auth.logout is present and non-null."},
		{"AUT-2", "MUST NOT", Client, byRule, "", "A terminal method's id is never passed to authenticate (stated twice)."},
		{"AUT-3", "implied", Client, byRule, "", "methodId is one of the advertised ids."},
		{"AUT-4", "implied", 0, byScenario, "", "An auth method without `type` is an agent method."},
		{"AUT-5", "implied", Agent, bySchema, "EXT-2", "A terminal descriptor has no command; args are appended to, and env merged over, the configured launch."},
		{"AUT-6", "implied", Client, byScenario, "", "Terminal login success is exit status 0 only; then the client reconnects and re-initializes."},
		{"AUT-7", "SHOULD", Agent, byPeople, "", "A terminal method's args enter a login-only flow that ends."},
		{"AUT-8", "implied", Agent, bySchema, "INI-6", "authenticate and logout answer an empty object."},
		{"AUT-9", "kit", Agent, byRule, "", "After a successful authenticate, session/new no longer answers auth_required."},
		{"AUT-10", "implied", Agent, byRule, "", "After logout, a new session needs authentication again."},
		{"AUT-11", "SHOULD", Client, byScenario, "", "The client copes with auth errors on running sessions after logout and asks to authenticate again."},
	}},
	{"session-setup", []requirement{
		{"SES-1", "MUST", Client, byRule, "INI-1", "initialize completes before a session is created."},
		{"SES-2", "MUST", Agent, byRule, "", "session/new answers a session id unique among the agent's sessions."},
		{"SES-3", "MUST", Client, byRule, "SES-4", "loadSession is checked before session/load."},
		{"SES-4", "MUST NOT", Client, byRule, "", "session/load is not called when loadSession is false or absent."},
		{"SES-5", "MUST", Client, bySchema, "INI-6", "Loading uses session/load with sessionId, cwd and mcpServers."},
		{"SES-6", "MUST", Agent, byRule, "", "session/load replays the whole conversation as session/update."},
		{"SES-7", "MUST", Agent, byRule, "", "The session/load answer comes only after all history was streamed."},
		{"SES-8", "MUST", Client, byRule, "SES-9", "sessionCapabilities.resume is checked before session/resume."},
		{"SES-9", "MUST NOT", Client, byRule, "", "session/resume is not called without that capability."},
		{"SES-10", "MUST", Client, bySchema, "INI-6", "Resuming uses session/resume with sessionId, cwd (and mcpServers)."},
		{"SES-11", "MUST NOT", Agent, byRule, "", "session/resume replays no history before its answer."},
		{"SES-12", "MUST", Client, byRule, "SES-13", "sessionCapabilities.close is checked before session/close."},
		{"SES-13", "MUST NOT", Client, byRule, "", "session/close is not called without that capability."},
		{"SES-14", "MUST", Client, bySchema, "INI-6", "Closing uses session/close with the session id."},
		{"SES-15", "MUST", Agent, byRule, "", "session/close cancels running work as session/cancel would, then frees the session."},
		{"SES-16", "implied", Agent, bySchema, "INI-6", "session/close answers {}; an unknown or inactive session may be an error."},
		{"SES-17", "MUST", Client, byRule, "", "Each additionalDirectories entry is absolute."},
		{"SES-18", "must", Client, byScenario, "", "On load/resume the full additional-root list is sent again; left out means none."},
		{"SES-19", "MUST", Client, byRule, "", "additionalDirectories is sent only if sessionCapabilities.additionalDirectories is advertised."},
		{"SES-20", "MUST", Client, byRule, "", "cwd is absolute."},
		{"SES-21", "MUST", Agent, byScenario, "", "cwd is the session's directory wherever the agent process was started."},
		{"SES-22", "MUST", Agent, byScenario, "", "cwd stays the base for relative paths."},
		{"SES-23", "MUST", Agent, byScenario, "", "cwd belongs to the effective root set."},
		{"SES-24", "SHOULD", Agent, byScenario, "", "The root set bounds file tools."},
		{"SES-25", "MUST", Agent, byScenario, "", "Stdio MCP servers are supported (stated twice)."},
		{"SES-26", "SHOULD", Agent, byScenario, "", "HTTP MCP transport is supported."},
		{"SES-27", "MUST", Client, byRule, "", "http/sse MCP servers are sent only if mcpCapabilities.http/sse is true."},
		{"SES-28", "SHOULD", Agent, byScenario, "", "The agent connects to every MCP server given."},
		{"SES-29", "implied", Client, byRule, "", "A stdio MCP server's command is an absolute path."},
		{"SES-30", "implied", 0, bySchema, "INI-6", "An http/sse server carries `type`; without type it is stdio."},
		{"SES-31", "implied", Agent, byRule, "", "No session/update for a session precedes the answer that names it (clients drop it)."},
	}},
	{"session-list", []requirement{
		{"LST-1", "MUST", Client, byRule, "INI-1", "initialize first."},
		{"LST-2", "MUST", Client, byRule, "LST-3", "sessionCapabilities.list is checked first."},
		{"LST-3", "MUST NOT", Client, byRule, "", "session/list is not called without it."},
		{"LST-4", "must", Client, byRule, "OVW-1", "The cwd filter is absolute and only matching sessions come back."},
		{"LST-5", "MUST", Agent, bySchema, "INI-6", "The answer is a list of sessions plus optional cursor."},
		{"LST-6", "implied", Agent, byRule, "OVW-1", "SessionInfo.cwd and its additionalDirectories are absolute."},
		{"LST-7", "MUST NOT", Client, byPeople, "", "additionalDirectories from a listing is not merged with earlier values or guessed."},
		{"LST-8", "MUST", Agent, byScenario, "", "No match gives an empty sessions array, not an error or null."},
		{"LST-9", "MUST", Client, byRule, "", "A missing nextCursor ends the listing."},
		{"LST-10", "MUST", Client, byRule, "", "Cursors are opaque: unparsed, unmodified, unpersisted."},
		{"LST-11", "SHOULD", Agent, byScenario, "", "A bad cursor is an error."},
		{"LST-12", "SHOULD", Agent, byScenario, "", "The agent bounds its page size."},
		{"LST-13", "implied", 0, byScenario, "", "In session_info_update, omitted = unchanged, null = cleared."},
		{"LST-14", "implied", Agent, byScenario, "", "session/list changes nothing and restores nothing."},
	}},
	{"session-delete", []requirement{
		{"DEL-1", "MUST", Client, byRule, "DEL-3", "initialize first and sessionCapabilities.delete checked."},
		{"DEL-2", "MUST", Client, byRule, "DEL-3", "The capability field is checked before deleting (restated)."},
		{"DEL-3", "MUST NOT", Client, byRule, "", "session/delete is not called if it is absent or null."},
		{"DEL-4", "implied", Agent, byRule, "", "A deleted session is gone from later lists."},
		{"DEL-5", "SHOULD", Agent, byRule, "", "Deleting an already deleted or never existing session succeeds silently."},
		{"DEL-6", "implied", Agent, bySchema, "INI-6", "Success is an empty object."},
	}},
	{"session-modes", []requirement{
		{"MOD-1", "must", Client, byRule, "", "modeId is one of availableModes."},
		{"MOD-2", "kit", Agent, byRule, "", "currentModeId is one of availableModes."},
		{"MOD-3", "implied", Agent, byScenario, "", "A mode changed by the agent is reported with current_mode_update (field currentModeId; the page's example says modeId and is wrong)."},
	}},
	{"session-config-options", []requirement{
		{"CFG-1", "SHOULD", Client, byPeople, "", "configOptions is used in place of modes when present."},
		{"CFG-2", "SHOULD", Client, byPeople, "", "The array order is respected in display."},
		{"CFG-3", "MUST NOT", Agent, byRule, "", "No boolean option unless the client advertised session.configOptions.boolean."},
		{"CFG-4", "MAY-only", Agent, byRule, "CFG-3", "Boolean options appear only after the client advertised support."},
		{"CFG-5", "MUST NOT", 0, byPeople, "", "A category is never needed for correctness."},
		{"CFG-6", "MUST", Client, byScenario, "", "Missing or unknown categories are handled."},
		{"CFG-7", "implied", Agent, byRule, "", "Category names without a leading `_` belong to ACP."},
		{"CFG-8", "SHOULD", Client, byPeople, "", "model_config options sit near the model selector."},
		{"CFG-9", "SHOULD", Client, byPeople, "", "Ties inside a category go to the earlier option."},
		{"CFG-10", "SHOULD", Agent, byPeople, "", "Higher-priority options come first."},
		{"CFG-11", "SHOULD", Client, byPeople, "", "Options are displayed in order."},
		{"CFG-12", "SHOULD", Client, byPeople, "", "Order resolves same-category ties."},
		{"CFG-13", "SHOULD", Client, byPeople, "", "A limited display prefers the first ones."},
		{"CFG-14", "MUST", Agent, byRule, "", "Every option has a default (currentValue), and a select's is among its options."},
		{"CFG-15", "SHOULD", Client, byScenario, "", "An option with an unknown type is ignored, the rest kept."},
		{"CFG-16", "must", Client, byRule, "", "A select value is one of the offered; a boolean value is a boolean with type boolean."},
		{"CFG-17", "MUST", Agent, byRule, "", "session/set_config_option answers the complete option list with current values."},
		{"CFG-18", "implied", Agent, byRule, "", "config_option_update carries the complete state too."},
		{"CFG-19", "SHOULD", Agent, byRule, "", "While modes exist, mode-like config is sent both as modes and as configOptions category mode."},
		{"CFG-20", "SHOULD", Client, byPeople, "", "A client with config options ignores modes."},
		{"CFG-21", "SHOULD", Client, byPeople, "", "A client without them falls back to modes."},
		{"CFG-22", "SHOULD", Agent, byRule, "", "Both stay in sync."},
	}},
	{"prompt-turn", []requirement{
		{"PRM-1", "MUST", Client, byRule, "", "initialize and session set-up precede a prompt."},
		{"PRM-2", "MUST", Client, byRule, "", "Prompt content keeps to promptCapabilities (image, audio, embeddedContext)."},
		{"PRM-3", "implied", Agent, byRule, "", "Chunks with one messageId are one message, a new id is a new message; ids are unique and opaque."},
		{"PRM-4", "implied", Agent, bySchema, "INI-6", "usage_update has non-null used and size; a cost has amount and currency."},
		{"PRM-5", "MUST", Agent, byRule, "", "A finished turn answers session/prompt with a stopReason."},
		{"PRM-6", "SHOULD", Agent, byRule, "", "An executed tool is reported in_progress once permission is given."},
		{"PRM-7", "must", Agent, byRule, "", "The stopReason is the one that fits (end_turn, max_tokens, max_turn_requests, refusal, cancelled)."},
		{"PRM-8", "SHOULD", Client, byPeople, "", "On session/cancel the client marks open tool calls of the turn cancelled at once."},
		{"PRM-9", "MUST", Client, byRule, "", "After session/cancel every pending session/request_permission is answered with outcome cancelled."},
		{"PRM-10", "SHOULD", Agent, byScenario, "", "On session/cancel model calls and tools stop as soon as possible."},
		{"PRM-11", "MUST", Agent, byRule, "", "After all is aborted and updates are sent, the prompt answers stopReason cancelled."},
		{"PRM-12", "MUST", Agent, byRule, "", "Abort exceptions never surface as an error answer."},
		{"PRM-13", "MUST", Agent, byRule, "", "All updates of the turn (also after cancel) precede the prompt answer."},
		{"PRM-14", "SHOULD", Client, byScenario, "", "Tool-call updates after session/cancel are still accepted."},
		{"PRM-15", "implied", Client, byRule, "", "The next prompt follows the end of the previous one."},
		{"PRM-16", "implied", Agent, byRule, "", "session/cancel for an idle or unknown session is a harmless notification."},
	}},
	{"cancellation", []requirement{
		{"CAN-1", "MUST", 0, byRule, "", "A supporting receiver of $/cancel_request still answers the original request: a valid result or error -32800."},
		{"CAN-2", "SHOULD", 0, byScenario, "", "Cancelled by the executor itself, the same -32800 is used."},
		{"CAN-3", "SHOULD", 0, byScenario, "", "Behaviour is the same whatever the source of cancellation."},
		{"CAN-4", "implied", 0, byRule, "OVW-4", "The notification is optional: unsupporting peers ignore it, nobody answers it, an unknown or finished id is ignored."},
		{"CAN-5", "implied", 0, byScenario, "", "A cancelled parent cascades: nested requests are cancelled with their own ids first."},
	}},
	{"content", []requirement{
		{"CON-1", "MUST", Agent, byScenario, "", "Text blocks in prompts are supported."},
		{"CON-2", "implied", Client, byRule, "PRM-2", "image, audio and resource prompt blocks need their capability."},
		{"CON-3", "implied", 0, byRule, "", "Required members per block; data/blob are base64; mimeType set for image/audio."},
	}},
	{"tool-calls", []requirement{
		{"TOL-1", "SHOULD", Agent, byRule, "", "A requested tool is reported as tool_call."},
		{"TOL-2", "implied", Agent, byRule, "", "toolCallId is unique within the session."},
		{"TOL-3", "implied", 0, byScenario, "", "A tool_call_update changes only the members present."},
		{"TOL-4", "MUST", Client, byRule, "PRM-9", "A permission request of a cancelled turn is answered with outcome cancelled."},
		{"TOL-5", "implied", Client, byRule, "", "outcome selected names one of the offered optionIds."},
		{"TOL-6", "implied", Agent, byRule, "", "optionIds are unique, each option has name and a known kind."},
		{"TOL-7", "implied", Agent, byRule, "OVW-1", "diff.path and location.path are absolute."},
		{"TOL-8", "implied", Agent, byRule, "", "A terminal content names a terminal made by terminal/create and not yet released when added."},
		{"TOL-9", "implied", Agent, byRule, "", "A call ends completed or failed and does not leave a final state."},
	}},
	{"file-system", []requirement{
		{"FS-1", "MUST", Agent, byRule, "FS-2", "The client capability is checked before fs methods."},
		{"FS-2", "MUST NOT", Agent, byRule, "", "fs/read_text_file or fs/write_text_file is not called if its flag is false or absent."},
		{"FS-3", "MUST", Client, byScenario, "", "fs/write_text_file creates a missing file."},
		{"FS-4", "implied", Agent, byRule, "OVW-1 OVW-2", "path absolute, line 1-based, limit a line count."},
		{"FS-5", "implied", Client, bySchema, "INI-6", "write answers an empty result (the page's null example is not schema-valid; accept both)."},
		{"FS-6", "implied", Client, byRule, "", "Reads see unsaved editor state; a missing file is -32002 with data.uri."},
	}},
	{"terminals", []requirement{
		{"TRM-1", "MUST", Agent, byRule, "TRM-2", "The terminal capability is checked first."},
		{"TRM-2", "MUST NOT", Agent, byRule, "", "No terminal/* call if it is false or absent."},
		{"TRM-3", "must", Agent, byRule, "OVW-1", "terminal/create cwd is absolute."},
		{"TRM-4", "implied", Client, byRule, "", "Over outputByteLimit the beginning is cut, truncated is true."},
		{"TRM-5", "MUST", Client, byRule, "", "The cut is at a character boundary."},
		{"TRM-6", "implied", Client, byScenario, "", "terminal/create answers at once, before the command ends."},
		{"TRM-7", "MUST", Agent, byRule, "", "Every created terminal is released."},
		{"TRM-8", "MUST", Agent, byRule, "", "A killed terminal still gets released."},
		{"TRM-9", "implied", Client, byRule, "", "exitStatus is present only after exit; wait_for_exit answers on exit."},
		{"TRM-10", "implied", Client, byRule, "", "After kill, output and wait_for_exit still work."},
		{"TRM-11", "implied", Client, byRule, "", "terminal/release kills a running command and invalidates the id."},
		{"TRM-12", "implied", Client, byRule, "", "exitCode and signal: one may be null, exit by signal reports the signal."},
		{"TRM-13", "SHOULD", Client, byPeople, "", "A released terminal embedded in a tool call stays displayed."},
	}},
	{"agent-plan", []requirement{
		{"PLN-1", "SHOULD", Agent, byScenario, "", "A plan made by the model is reported."},
		{"PLN-2", "SHOULD", Agent, byScenario, "", "Progress is reported with more plan updates."},
		{"PLN-3", "MUST", Agent, byRule, "", "Each plan update has all entries with their status."},
		{"PLN-4", "MUST", Client, byPeople, "", "A plan update replaces the whole plan."},
	}},
	{"slash-commands", []requirement{
		{"CMD-1", "implied", Agent, byRule, "SES-31", "available_commands_update carries the full list and comes after the session exists on the wire."},
		{"CMD-2", "implied", Agent, byRule, "", "A command has name and description; an input has a hint. A leading slash in name is a mistake."},
	}},
	{"elicitation", []requirement{
		{"ELI-1", "MUST", Client, byPeople, "", "The requesting agent is identified, privacy respected, decline and cancel offered."},
		{"ELI-2", "MUST", Client, byPeople, "", "Form answers can be reviewed and changed before sending."},
		{"ELI-3", "MUST", Client, byPeople, "", "URL mode shows the target host and asks before opening."},
		{"ELI-4", "SHOULD", Client, byPeople, "", "The message is shown."},
		{"ELI-5", "MUST NOT", Agent, byRule, "", "No mode the client has not advertised is requested."},
		{"ELI-6", "SHOULD", Agent, byScenario, "", "There is a graceful fallback without the mode."},
		{"ELI-7", "MUST", Agent, byPeople, "", "An elicitation is bound to the receiving connection and the verified user."},
		{"ELI-8", "SHOULD", Client, byRule, "ELI-15", "Values are validated before answering."},
		{"ELI-9", "SHOULD", Agent, byScenario, "", "Values are validated again."},
		{"ELI-10", "SHOULD", Client, byPeople, "", "Declared defaults pre-fill the form."},
		{"ELI-11", "MUST NOT", Agent, byRule, "", "Forms do not ask for secrets."},
		{"ELI-12", "MUST", Agent, byPeople, "", "Sensitive input uses URL mode."},
		{"ELI-13", "MUST NOT", Agent, byRule, "ELI-11", "Without URL support a sensitive request does not fall back to a form."},
		{"ELI-14", "MUST NOT", Agent, byScenario, "", "Credentials from URL mode never travel over ACP."},
		{"ELI-15", "SHOULD", Client, byRule, "", "Accepted form content conforms to the requested schema."},
		{"ELI-16", "implied", 0, byScenario, "", "content null or absent are equal on accept, ignored on decline/cancel."},
		{"ELI-17", "MUST NOT", Agent, byScenario, "", "Success is not assumed."},
		{"ELI-18", "MUST", Agent, byScenario, "", "decline, cancel and failures are handled."},
		{"ELI-19", "MUST", Agent, byRule, "", "An elicitationId is unique among outstanding URL elicitations of a connection."},
		{"ELI-20", "MUST", Client, byPeople, "", "The id is opaque."},
		{"ELI-21", "MUST", Agent, byRule, "", "elicitation/complete goes to the same client with the original id."},
		{"ELI-22", "MUST", Client, byScenario, "", "Unknown or already completed ids are ignored."},
		{"ELI-23", "implied", Client, byRule, "", "A request for an unadvertised mode is answered -32602."},
		{"ELI-24", "MUST", 0, byPeople, "", "URL-mode implementers follow the URL security list."},
		{"ELI-25", "MUST NOT", Agent, byRule, "", "No credentials, personal data or pre-authenticated access in the URL."},
		{"ELI-26", "SHOULD", Agent, byRule, "", "HTTPS outside development."},
		{"ELI-27", "SHOULD NOT", Agent, byRule, "", "No clickable URLs in form fields."},
		{"ELI-28", "MUST NOT", Client, byScenario, "", "The URL is neither prefetched nor opened without consent."},
		{"ELI-29", "MUST", Client, byPeople, "", "The full URL is shown before consent."},
		{"ELI-30", "MUST", Client, byPeople, "", "It opens in a context the model cannot inspect."},
		{"ELI-31", "SHOULD", Client, byPeople, "", "Domain highlighted, suspicious/Punycode URLs warned about."},
		{"ELI-32", "SHOULD NOT", Client, byPeople, "", "No clickable URL in other elicitation fields."},
		{"ELI-33", "MUST", Agent, byPeople, "", "The finisher is verified to be the user who started."},
		{"ELI-34", "implied", 0, byRule, "", "`mode` is explicit; exactly one scope: sessionId (with optional toolCallId) or requestId."},
	}},
	{"extensibility", []requirement{
		{"EXT-1", "SHOULD", 0, byRule, "", "Root `_meta` keys traceparent, tracestate, baggage are reserved for W3C trace context."},
		{"EXT-2", "MUST NOT", 0, bySchema, "", "No custom members at the root of a specified type."},
		{"EXT-3", "must", 0, bySchema, "", "Custom methods and notifications start with `_`."},
		{"EXT-4", "MUST", 0, byRule, "", "A custom request is answered with its id."},
		{"EXT-5", "should", 0, byRule, "", "An unknown custom request gets -32601."},
		{"EXT-6", "SHOULD", 0, byRule, "", "Extensions are advertised as capabilities."},
		{"EXT-7", "SHOULD", 0, byRule, "OVW-4", "Unknown notifications are ignored."},
		{"EXT-8", "SHOULD", 0, bySchema, "EXT-2", "Custom capabilities sit in `_meta` of capability objects."},
	}},
	{"error", []requirement{
		{"ERR-1", "MUST", 0, byScenario, "", "An unrecognised code is treated as a generic failure."},
		{"ERR-2", "SHOULD", 0, byRule, "", "Implementation-specific codes lie outside -32768…-32000 and -32899…-32800."},
		{"ERR-3", "SHOULD", 0, byRule, "", "A missing method, or a gated one that was not advertised, gets -32601."},
		{"ERR-4", "implied", 0, byRule, "", "Malformed params and unsupported values get -32602 (bad cursor, unknown configId/value/mode)."},
		{"ERR-5", "SHOULD", Agent, byRule, "", "A session-scoped request for an unknown or inactive session gets -32002 with data.sessionId = the id sent (prompt, set_mode, set_config_option, load, resume)."},
		{"ERR-6", "implied", Agent, byRule, "", "A request other than initialize before initialization gets -32600."},
		{"ERR-7", "implied", 0, byRule, "", "Broken JSON gets -32700 with id null; a non-request object -32600; the connection survives."},
		{"ERR-8", "implied", Client, byScenario, "", "-32002 on session/close or session/delete counts as success (TS doc comment: \"as ACP recommends\")."},
		{"ERR-9", "implied", Agent, byRule, "", "-32000 means authentication is required and nothing else."},
	}},
	{"schema-reference", []requirement{
		{"SCH-1", "MUST NOT", 0, byScenario, "", "No assumptions about values under unknown `_meta` keys (157 repetitions)."},
		{"SCH-2", "MUST", 0, bySchema, "", "The answer's id is the request's id, same JSON type and value: string, integer (int64, negatives too) or null."},
		{"SCH-3", "SHOULD NOT", 0, bySchema, "", "Ids are not null and have no fraction."},
		{"SCH-4", "MUST", 0, bySchema, "", "`jsonrpc` is \"2.0\" in every message."},
		{"SCH-5", "SHOULD", Client, byPeople, "", "Text content is rendered as Markdown."},
		{"SCH-6", "SHOULD", Agent, byRule, "PRM-11 PRM-13", "On session/cancel: stop model calls, abort tools, send pending updates, answer cancelled."},
		{"SCH-7", "must", Agent, byRule, "PRM-12", "The prompt answer to a cancelled turn is cancelled even if something threw."},
		{"SCH-8", "MUST NOT", Client, byScenario, "", "An unknown elicitation mode is not rendered as a known one; raw payload kept."},
		{"SCH-9", "MUST NOT", Agent, byScenario, "", "An unknown elicitation action is not treated as a known one."},
		{"SCH-10", "MUST NOT", Client, byScenario, "", "An unknown elicitation property type is not rendered as a known control."},
		{"SCH-11", "implied", 0, byRule, "", "Unknown tags starting with `_` are extensions, others are reserved for ACP."},
		{"SCH-12", "MUST", Agent, byRule, "", "notice updates only if the client advertised session.notices."},
		{"SCH-13", "MUST", Agent, byRule, "", "compaction_update and compaction_summary_chunk only if session.compaction is advertised."},
		{"SCH-14", "must", Agent, byRule, "TOL-8", "A terminal is added to a tool call before terminal/release."},
		{"SCH-15", "must", Agent, byRule, "", "Elicitation form properties are primitives or enums."},
		{"SCH-16", "implied", 0, bySchema, "INI-6", "Integer widths: protocolVersion u16; line, limit, exitCode u32; outputByteLimit, used, size u64; ResourceLink.size i64; url format uri; notice.title non-empty."},
		{"SCH-17", "implied", 0, byScenario, "", "Receiver leniency follows x-deserialize-* (see report), emission stays strict."},
	}},
	{"additions", []requirement{
		{"ADD-1", "implied", 0, byScenario, "", "After any error answer the connection serves the next request."},
		{"ADD-2", "implied", Agent, bySchema, "", "Every update and request of the agent carries the id of a session that the client knows."},
		{"ADD-3", "MUST", Agent, byScenario, "", "What is advertised is accepted: image, audio and embedded resource blocks, additionalDirectories, MCP transports."},
		{"ADD-4", "implied", Agent, bySchema, "INI-6", "The result of session/load is an object, not null."},
		{"ADD-5", "MUST", Agent, bySchema, "", "Ids of authMethods are unique."},
		{"ADD-6", "SHOULD", 0, bySchema, "", "error.message is not empty and one line."},
		{"ADD-7", "MUST", Agent, byRule, "", "A requested version that is not spoken is not echoed, and the answer is not lower than the answer to 1."},
		{"ADD-8", "MUST", Client, byScenario, "", "After session/cancel for a session, a prompt sent later arrives later: the cancellation never overtakes nor trails it."},
		{"ADD-9", "implied", 0, byScenario, "", "A response with neither result nor error fails the call; nothing is sent for it."},
		{"ADD-10", "implied", 0, bySchema, "", "Extension methods begin with an underscore; removed or unstable ones are not used without their capability."},
		{"ADD-11", "implied", 0, byRule, "OVW-4", "A notification is never answered, also an unknown one, also $/cancel_request."},
		{"ADD-12", "SHOULD", Agent, byRule, "", "On session/load, available commands, modes and options come before the answer or with it."},
		{"ADD-13", "implied", Agent, bySchema, "", "updatedAt is an ISO 8601 timestamp."},
		{"ADD-14", "MUST NOT", Agent, byScenario, "", "What the user has refused is not done."},
		{"ADD-15", "implied", Agent, byRule, "", "A terminal is not used after its release."},
		{"ADD-16", "implied", Agent, byRule, "", "A list of sessions that is filtered by cwd has none of other directories."},
	}},
	{"version-2", []requirement{
		{"V2-1", "MUST", Agent, byRule, "", "A prompt that is answered is in the conversation: its user message is echoed under the messageId of the answer."},
		{"V2-2", "MUST", Agent, byRule, "", "Work is reported as running (or requires_action) when it starts and as idle when it ends."},
		{"V2-3", "implied", Agent, byRule, "", "An idle state ends the work: another one without new work between is the same state again, with the same stop reason."},
		{"V2-4", "MUST", Agent, byRule, "", "session/close cancels running work: the idle state is sent before the answer."},
		{"V2-5", "implied", Agent, byRule, "", "After the answer to session/close the agent sends no other messages for the session."},
		{"V2-6", "SHOULD", Agent, byRule, "", "The first update of a tool call has its title."},
		{"V2-7", "implied", Agent, byRule, "", "The directory of a terminal does not change."},
		{"V2-8", "implied", Agent, byRule, "", "The bytes of each terminal chunk are base64 by themselves."},
		{"V2-9", "implied", Agent, byRule, "", "session/resume without replayFrom replays no history."},
		{"V2-10", "MUST", Agent, byRule, "", "session/resume sends the session's state after any replay and before its answer."},
		{"V2-11", "must", Agent, byRule, "", "A replay in chunks begins each message with the whole-message update, with empty content."},
		{"V2-12", "MUST NOT", Client, byRule, "", "auth/login and auth/logout are not called when the agent has offered no authMethods."},
		{"V2-13", "MUST", Client, byRule, "", "The methods of sessions are called only if the agent states the capability session."},
		{"V2-14", "MUST", Agent, byRule, "", "A prompt that closing its session keeps out of the conversation is answered with -32800."},
		{"V2-15", "MUST", Agent, byRule, "", "An agent that reports background work includes it on every state update of the session."},
		{"V2-16", "MUST", Agent, byRule, "", "A replayed message has the messageId that it had."},
		{"V2-17", "implied", Agent, byRule, "", "A messageId is unique among the messages of a type within a session."},
		{"V2-18", "MUST", Agent, byRule, "", "optionIds are unique within a request for permission."},
		{"V2-19", "MUST", Agent, byRule, "", "Names of commands are unique within their list, and have no white space."},
		{"V2-20", "MUST", Agent, byRule, "", "Each value of a select is unique, across groups too."},
		{"V2-21", "MUST", Agent, byRule, "", "Names in the env of a login in a terminal are unique."},
		{"V2-22", "MUST", Agent, byRule, "", "Work that session/cancel ends is reported as idle with the stop reason cancelled."},
	}},
}
