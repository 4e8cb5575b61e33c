package conformance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/conformance/internal/requirement"
)

// describedDemands holds the sentences of the schemas' descriptions that demand something or promise that something is
// unique. Each has the ids of the requirements that judge it and the names of the functions that check it before it is
// sent, or, after a dash, the reason why there are none.
var describedDemands = map[string]string{
	"MUST send one of these responses for the original request: - Valid response with appropriate data (partial results or cancellation marker) - Error response with code `-32800` (Cancelled)": "CAN-1",
	"If the client cancels the prompt turn via `session/cancel`, it MUST respond to this request with the `cancelled` outcome":                                                                   "PRM-9",
	"An identifier established by the Client that MUST contain a String, Number, or NULL value if included":                                                                                      "SCH-2",
	"The Server MUST reply with the same value in the Response object if included":                                                                                                               "SCH-2",
	"Implementations MUST NOT make assumptions about values at these keys":                                                                                                                       "SCH-1",
	"A unique identifier for a conversation session between a client and agent":                                                                                                                  "SES-2",
	"Unique identifier for a tool call within a session":                                                                                                                                         "TOL-2",
	"All agents MUST support text content blocks in prompts":                                                                                                                                     "INI-15",
	"All agents MUST support resource links in prompts":                                                                                                                                          "INI-15",
	"Unique identifier for this permission option":                                                                                                                                               "TOL-6 V2-18 checkPermissionOptions",
	"Unique identifier for a permission option":                                                                                                                                                  "TOL-6 V2-18 checkPermissionOptions",
	"The Client MUST ensure truncation happens at a character boundary to maintain valid string output, even if this means the retained output is slightly less than the specified limit": "TRM-5",
	"They MUST NOT render it as a known elicitation mode": "SCH-8",
	"They MUST NOT render it as a known input control":    "SCH-10",
	"Unique identifier for an elicitation":                "ELI-19",
	"The unique identifier for this elicitation":          "ELI-19",
	"As a baseline, all Agents **MUST** support `session/new`, `session/prompt`, `session/cancel`, and `session/update`": "INI-16",
	"Agents MUST advertise this method only when the client enabled its terminal authentication capability":              "INI-19",
	"The client MUST NOT pass this method to `authenticate`":                                                             "AUT-2 checkOffered",
	"Unique identifier for this authentication method":                                                                   "ADD-5 checkAuthMethods",
	"Unique identifier for the created session":                                                                          "SES-2",
	"Unique identifier for a Session Mode":                                                                               "- two modes of an id are one mode: nothing is lost but a name",
	"Unique identifier for the configuration option":                                                                     "checkConfigIDs",
	"Unique identifier for a session configuration option":                                                               "checkConfigIDs",
	"It MUST NOT be required for correctness":                                                                            "CFG-5",
	"Clients MUST handle missing or unknown categories gracefully":                                                       "CFG-6",
	"Unique identifier for a session configuration option value":                                                         "V2-20 checkSelect",
	"Unique identifier for this option value":                                                                            "V2-20 checkSelect",
	"Unique identifier for this group":                                                                                   "- the id of a group is for display: nothing refers to it",
	"Unique identifier for a session configuration option value group":                                                   "- the id of a group is for display: nothing refers to it",
	"Unique identifier for the session":                                                                                  "SES-2",
	"This stop reason MUST be returned when the client sends a `session/cancel` notification, even if the cancellation causes exceptions in underlying operations":                             "PRM-11 PRM-12",
	"Agents MUST only send this update when the Client advertised the `session.notices` Client capability":                                                                                     "SCH-12 lacksForSessionUpdate",
	"Agents MUST only send this update when the Client advertised the `session.compaction` Client capability":                                                                                  "SCH-13 lacksForSessionUpdate",
	"Unique identifier for a message within a session":                                                                                                                                         "PRM-3",
	"A unique identifier for the message this chunk belongs to":                                                                                                                                "PRM-3 V2-17",
	"Unique identifier for this tool call within the session":                                                                                                                                  "TOL-2",
	"Agents MUST only send notices when the Client advertised the `session.notices` Client capability":                                                                                         "SCH-12 lacksForSessionUpdate",
	"Unique identifier for a context compaction within a session":                                                                                                                              "- updates with the id of an earlier compaction are news of that: they cannot be told from a second one",
	"The Agent-owned ID of this compaction, unique within the session":                                                                                                                         "- updates with the id of an earlier compaction are news of that: they cannot be told from a second one",
	"The agent should: - Create a new session context - Connect to any specified MCP servers - Return a unique session ID for future requests":                                                 "SES-2",
	"The client should set this to `true` only when it can reproduce the configured agent invocation in an interactive terminal":                                                               "- only the client knows what it can start",
	"All Agents MUST support this transport":                                                                                                                                                   "SES-25",
	"As a baseline, the Agent MUST support `text` and `resource_link` content blocks, while other variants are optionally enabled via `PromptCapabilities`":                                    "INI-15",
	"The Client MUST adapt its interface according to `PromptCapabilities`":                                                                                                                    "PRM-2 lacksForPrompt",
	"When a client sends a `session/cancel` notification to cancel an ongoing prompt turn, it MUST respond to all pending `session/request_permission` requests with this `cancelled` outcome": "PRM-9",
	"The unique identifier for the created terminal":                                                                                                                                           "- the client's answer with the id of a released terminal may be right, and the judge knows no better",
	"They MUST NOT treat it as a known elicitation action":                                                                                                                                     "SCH-9",
	"Unique identifier for an MCP server using the ACP transport":                                                                                                                              "- an unstable feature: judged when it is stable",
	"Agents that advertise it MUST also advertise `sessionCapabilities.list`":                                                                                                                  "- an unstable feature: judged when it is stable",
	"Unique identifier for a configurable LLM provider":                                                                                                                                        "- an unstable feature: judged when it is stable",
	"Agents and clients MUST handle unknown protocol identifiers gracefully":                                                                                                                   "- an unstable feature: judged when it is stable",
	"Clients MUST treat values they do not recognize as `unknown`":                                                                                                                             "- an unstable feature: judged when it is stable",
	"Clients MUST NOT use them as stable account identifiers, and SHOULD NOT log them or send them elsewhere, such as to telemetry":                                                            "- an unstable feature: judged when it is stable",
	"Agents that advertise the `sessionCapabilities.archive` capability MUST include it on every listed session":                                                                               "- an unstable feature: judged when it is stable",
	"Unique identifier for the newly created forked session":                                                                                                                                   "SES-2",
	"Clients MUST treat a value they do not recognize as `saved`":                                                                                                                              "- an unstable feature: judged when it is stable",
	"A Client that did not create or resume the session on its own connection MUST still call `session/load` or `session/resume` before sending `session/prompt` or expecting `session/update` notifications": "PRM-1",
	"Unique identifier for a plan within a session":                                                                                                                          "- an update with the id of a plan replaces it: it cannot be told from a second one",
	"The Client MUST stop presenting the previous state as confirmed current activity, but may retain it as last known":                                                      "- only people see it: what a client shows",
	"The first update for an unknown `sessionId` announces the child and MUST be sent before any live child traffic or live message naming the child as sender or recipient": "ADD-2",
	"It need not be unique": "- it says that nothing is demanded",
	"Implementations MUST NOT make assumptions about values in `_meta`":                                                                                                                                  "SCH-1",
	"It MUST NOT change any agent state, and agents MUST NOT reject it with `auth_required`":                                                                                                             "- an unstable feature: judged when it is stable",
	"Agents MUST NOT reject it with `auth_required` (`-32000`), since Clients call it to learn whether authentication is required":                                                                       "- an unstable feature: judged when it is stable",
	"Clients MUST only send this when the Agent advertises `sessionCapabilities.systemPrompt`":                                                                                                           "ADD-10 lacksForNewSession",
	"Unique identifier for this MCP server, generated by the component providing it":                                                                                                                     "- an unstable feature: judged when it is stable",
	"Providers MUST NOT reuse an ID for multiple ACP-transport MCP servers that are visible on the same ACP connection":                                                                                  "- an unstable feature: judged when it is stable",
	"Agents that cannot apply it, for example because of an unadvertised mode or an unsupported content block type, MUST return an error instead of creating, loading, resuming, or forking the session": "- an unstable feature: judged when it is stable",
	"Agents MUST return an error for a mode they do not support rather than treating it as `append` or `override`":                                                                                       "- an unstable feature: judged when it is stable",
	"Agents advertising the capability MUST accept `text` content blocks":                                                                                                                                "- an unstable feature: judged when it is stable",
	"Clients MUST NOT send other content block types until a future capability allows them, and Agents MUST return an error for content blocks they do not support":                                      "- an unstable feature: judged when it is stable",
	"Clients MUST NOT send an empty array": "INI-6 MinItems",
	"An Agent MUST return an error for a mode it does not support rather than treating it as `append` or `override`":                                                                                                                         "- an unstable feature: judged when it is stable",
	"Clients that use this mode take responsibility for any tool guidance or safety instructions the Agent's default instructions provided, and MUST only use it when the Agent advertises `sessionCapabilities.systemPrompt.mode.override`": "- an unstable feature: judged when it is stable",
	"Clients MUST only send this when the Agent advertises `sessionCapabilities.systemPrompt`, and SHOULD send the same value they used when the session was created":                                                                        "ADD-10 lacksForNewSession",
	"An Agent MUST return `-32602` for a value it does not support rather than treating it as `exclude`":                                                                                                                                     "- an unstable feature: judged when it is stable",
	"Clients MUST only send this when the Agent advertises `sessionCapabilities.systemPrompt`, and SHOULD send the same value they used for the source session":                                                                              "ADD-10 lacksForNewSession",
	"If the session is active, the Agent MUST cancel any ongoing work and free the session's resources as if `session/close` had been called, then archive it":                                                                               "- an unstable feature: judged when it is stable",
	"`session/status` MUST NOT have side effects": "- an unstable feature: judged when it is stable",
	"Before answering successfully, the proxy MUST forward an `initialize` request to its successor through `proxy/successor`":          "- an unstable feature: judged when it is stable",
	"When present, it MUST be a JSON object or array, as JSON-RPC requires":                                                             "- an unstable feature: judged when it is stable",
	"It MUST NOT change `protocolVersion`":                                                                                              "- an unstable feature: judged when it is stable",
	"MUST still send a response for the original request":                                                                               "CAN-1",
	"Receivers MUST ignore this notification for an unknown or already-answered request ID, and MUST NOT send a second response for it": "CAN-4 SCH-2",
	"Unlike base JSON-RPC, it MUST NOT be `null`":                                                                                       "SCH-2",
	"The receiver MUST reply with the same value in the response":                                                                       "SCH-2",
	"A sender MUST NOT reuse an ID while a request with it is still awaiting a response":                                                "SCH-2",
	"Implementations MUST NOT assign meaning to keys they do not recognize":                                                             "SCH-1",
	"Beyond this patch rule, implementations MUST NOT assign meaning to keys they do not recognize":                                     "SCH-1",
	"Agents MUST reject a `session/prompt` request with a content block type they do not support with `-32602`":                         "- somebody has to send one: the probe of version 2 would",
	"MUST be an `https:` or `data:` URI":                                                                                                "- what a client shows as an icon is its choice, and nothing else depends on it",
	"Unlike Git, which writes paths relative to the repository root, every path MUST be absolute, including in `rename from`, `rename to`, `copy from`, and `copy to` lines, and MUST NOT have a prefix such as Git's default `a/` and `b/`": "- a patch is text for display; the paths of its changes are judged (OVW-1)",
	"Surrounding commit metadata and email envelopes MUST NOT be included":                                              "- a patch is text for display",
	"`patch` optionally carries renderable text for some or all of those changes and MUST be consistent with `changes`": "- a patch is text for display",
	"Clients MUST handle diffs where `patch` is omitted or `null`":                                                      "- only people see it: what a client shows",
	"Unique identifier for an agent-owned terminal within a session":                                                    "V2-7",
	"MUST be unique within the request":                                                                                 "V2-18 checkPermissionOptions",
	"Once reported, they MUST report `running` when progress resumes, or `idle` if work ends without resuming":          "- only the agent knows what it is doing",
	"`null` only when the request's id could not be determined, such as for a parse error or an invalid request":        "SCH-2",
	"Supplying one or more methods means the agent MUST support both `auth/login` and `auth/logout`":                    "prepare",
	"The client MUST NOT pass this method to `auth/login`":                                                              "AUT-2 checkOffered",
	"Names MUST be unique": "V2-21 checkLogins",
	"Clients MUST NOT overwrite an already-reported state when the response arrives":                                                "- only people see it: what a client shows",
	"Senders MUST use an array, not `null`":                                                                                         "INI-6",
	"MUST contain at least one value":                                                                                               "INI-6 MinItems",
	"MUST be one of the `value`s in `options`":                                                                                      "CFG-14 checkSelect",
	"MUST contain at least one value, and each `value` MUST be unique within the option, including across groups":                   "V2-20 INI-6 checkSelect MinItems",
	"MUST NOT contain whitespace and MUST be unique within the command list":                                                        "V2-19 checkCommandNames",
	"The agent MUST send a current `state_update` after any requested history replay and before this response, even without replay": "V2-10 repeatState",
	"Identifier for a message, unique among messages of the same type within a session":                                             "V2-17",
	"A unique identifier for the message":                                                                                           "V2-17",
	"A unique identifier for the thought message":                                                                                   "- another thought with the id is more of the same: it cannot be told apart",
	"The Agent MUST announce each item before the first snapshot that lists it, and MUST report a terminal's `exitStatus` or a tool call's final status before the snapshot that removes it": "- what a snapshot lists may be of the time before the connection",
	"An Agent that reports background work MUST include it on every state update for the session":                                                                                            "V2-15",
	"They MUST NOT be counted as new completions, cancellations, or additional usage":                                                                                                        "- only people see it: what a client counts",
	"Agents MUST report this stop reason on an idle `state_update` when cancellation ends active foreground work, even if aborting causes exceptions":                                        "V2-22",
	"Agents MUST catch these errors and report `cancelled`, not `error`":                                                                                                                     "V2-22",
	"Once reported, agents MUST report `running` when progress resumes, or `idle` if the work ends without resuming":                                                                         "- only the agent knows what it is doing",
	"Either way, the agent MUST report `running` when foreground work starts, or `requires_action` if it starts blocked on user action, and `idle` when it ends":                             "V2-2",
	"Once reported, it MUST report `running` when progress resumes, or `idle` when work ends without resuming":                                                                               "- only the agent knows what it is doing",
	"Resume MUST send a current-state snapshot after any replay and before its response":                                                                                                     "V2-10 repeatState",
	"The agent MUST report `idle` when no foreground activity remains":                                                                                                                       "- only the agent knows what it is doing",
	"Unless the Client advertised support for this state, Agents MUST still report the standard states":                                                                                      "- only the agent knows what it is doing",
	"Clients MUST NOT treat an unrecognized state as `idle` or present the previous state as confirmed, and show a generic busy state until a known state arrives":                           "- only people see it: what a client shows",
	"Unique identifier for this terminal within the session":                                                                                                                                 "V2-7",
	"Agents MUST support this method when their `initialize` response included a non-empty `authMethods` list":                                                                               "prepare",
	"Clients MUST call this method only with a method whose type defines a protocol-driven login flow, and MUST NOT call it when `authMethods` was omitted or empty":                         "V2-12 AUT-2 checkOffered",
	"Clients MUST NOT call this method when `authMethods` was omitted or empty":                                                                                                              "V2-12 checkOffered",
	"The Agent MUST cancel any ongoing work as if `session/cancel` was called, stop the session's background work, and then free the resources associated with the session":                  "V2-4 V2-5",
	"The Agent MUST return the inserted message's ID without waiting for processing to finish":                                                                                               "- when the message was inserted is not seen",
	"Once it is inserted, the Agent MUST NOT answer with an error, even if the work fails before the response is sent":                                                                       "- an error does not say which message it is about",
	"The client should supply `{}` only when it can reproduce the configured agent invocation in an interactive terminal":                                                                    "- only the client knows what it can start",
	"Agents MUST reject a request with a transport they do not support with `-32602`":                                                                                                        "- somebody has to send one: the probe of version 2 would",
	"Names SHOULD be unique":                            "- a SHOULD of the client's, of variables that the agent sets in their order",
	"Clients MUST send the session's working directory": "- a client may have moved a session, and the judge has not seen the connection that made it",
	"Agents MUST reject unsupported cursor types or malformed cursor values with `-32602` (Invalid params), rather than substituting another cursor or resuming without replay":                                       "- somebody has to send one: the probe of version 2 would",
	"Agents that do not support this cursor MUST reject the request with `-32602` (Invalid params), rather than substituting another cursor or resuming without replay":                                               "- somebody has to send one: the probe of version 2 would",
	"The Agent MUST cancel any ongoing work related to the session as if `session/cancel` was called, then free the resources associated with the session":                                                            "V2-4",
	"When closing cancels active foreground work, the Agent MUST send the final updates for that work and the idle `state_update` with `stopReason: \"cancelled\"` before responding successfully to `session/close`": "V2-4",
	"If closing prevents a prompt's user message from being inserted, the Agent MUST answer that request with `-32800` (Request Cancelled)":                                                                           "V2-14",
	"If the message has already been inserted, the Agent MUST respond successfully with its `messageId`":                                                                                                              "- an error does not say which message it is about",
	"Clients MUST NOT send it unless the tool call currently advertises `capabilities.cancel`":                                                                                                                        "- the call may have lost it while the request was on its way",
	"Clients MUST NOT send it unless the terminal currently advertises `capabilities.cancel`":                                                                                                                         "- the terminal may have lost it while the request was on its way",
	"Agents MUST support this method for any session where they advertise config options":                                                                                                                             "- somebody has to call it: the probe of version 2 would",
	"Agents MUST reject an unknown `configId` or invalid value with `-32602` and leave the configuration unchanged":                                                                                                   "ERR-4",
	"Agents MUST reject a `session/set_config_option` request with a value type they do not support with `-32602`":                                                                                                    "ERR-4",
	"Agents MUST NOT proceed with the operation":                                                      "ADD-14",
	"If `optionId` doesn't match an offered option, the agent MUST treat the request as not approved": "ADD-14",
	"Agents that do not understand this outcome MUST NOT treat it as approval":                        "ADD-14",
	"Agents that do not understand this action should preserve the raw payload when storing, replaying, proxying, or forwarding elicitation responses, and otherwise MUST handle it as `cancel`":                                              "SCH-9",
	"The Agent MUST stop waiting for pending `session/request_permission` requests of the cancelled work and treat them as not approved":                                                                                                      "ADD-14",
	"After all ongoing operations have been successfully aborted and pending updates have been sent, the Agent MUST send an idle `state_update` session update with the `cancelled` stop reason if cancellation ended active foreground work": "V2-22",
	"Agents MUST catch errors caused by aborting cancelled work and report the `cancelled` stop reason, not `error`":                                                                                                                          "V2-22",
	"The Agent MAY send content or tool call updates after receiving `session/cancel`, but MUST send them before the idle `state_update` that reports cancellation":                                                                           "- later updates may be of other work",
	"Agents that advertise the `session.archive` capability MUST include it on every listed session":                                                                                                                                          "- an unstable feature: judged when it is stable",
	"Omitted, `null`, and malformed values mean the Agent is not reporting foreground state, and Clients MUST NOT read that as `idle`":                                                                                                        "- an unstable feature: judged when it is stable",
	"Clients MUST NOT count an `idle` snapshot as a new completion":                                                                                                                                                                           "- an unstable feature: judged when it is stable",
	"A Client that did not create or resume the session on its own connection MUST still call `session/resume` before sending `session/prompt` or expecting `session/update` notifications":                                                   "PRM-1",
	"The first update for an unknown `sessionId` announces the child and MUST be sent before any live request or notification bearing the child's session ID, including messages naming it as sender or recipient":                            "ADD-2",
	"Clients MUST only send this when the Agent advertises `session.systemPrompt`":                                                                                                                                                            "ADD-10 lacksForNewSession",
	"Agents that cannot apply it, for example because of an unadvertised mode or an unsupported content block type, MUST return an error instead of creating, resuming, or forking the session":                                               "- an unstable feature: judged when it is stable",
	"Clients MUST NOT send other content block types until a future capability allows them, and Agents MUST return an error for content blocks they do not support, including unknown types":                                                  "- an unstable feature: judged when it is stable",
	"Clients that use this mode take responsibility for any tool guidance or safety instructions the Agent's default instructions provided, and MUST only use it when the Agent advertises `session.systemPrompt.mode.override`":              "- an unstable feature: judged when it is stable",
	"Clients MUST only send this when the Agent advertises `session.systemPrompt`, and SHOULD send the same value they used for the source session":                                                                                           "ADD-10 lacksForNewSession",
	"Clients MUST only send this when the Agent advertises `session.systemPrompt`, and SHOULD send the same value they used when the session was created":                                                                                     "ADD-10 lacksForNewSession",
}

// TestDemandsOfDescriptions compares the table with the schemas. New sentences in a schema need a decision, and the
// requirements and functions in the table must exist.
func TestDemandsOfDescriptions(t *testing.T) {
	found := map[string]string{}
	for _, name := range []string{"schema.json", "schema/v1.unstable.json", "schema/v2.json", "schema/v2.unstable.json"} {
		text, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		var schema any
		if err := json.Unmarshal(text, &schema); err != nil {
			t.Fatal(err)
		}
		describe(schema, func(description string) {
			for _, sentence := range sentences.Split(description, -1) {
				if sentence = strings.TrimSuffix(strings.Join(strings.Fields(sentence), " "), "."); demanding.MatchString(sentence) {
					found[sentence] = name
				}
			}
		})
	}
	for sentence, name := range found {
		if describedDemands[sentence] == "" {
			t.Errorf("%s: there is no decision on %q", name, sentence)
		}
	}
	sources := sourcesOf(t, "../acp", "../codec", "../acp/acpv2")
	for sentence, decided := range describedDemands {
		if found[sentence] == "" {
			t.Errorf("no schema contains %q any more", sentence)
		}
		if reason, ok := strings.CutPrefix(decided, "- "); ok && reason != "" {
			continue
		}
		for word := range strings.FieldsSeq(decided) {
			if r, _ := requirement.Find(word); r == nil && !regexp.MustCompile(`(?m)^func (\([^)]*\) )?`+word+`[\[(]`).MatchString(sources) {
				t.Errorf("%q: %s is neither a requirement nor a function", sentence, word)
			}
		}
	}
	t.Logf("%d sentences", len(found))
}

var (
	sentences = regexp.MustCompile(`(?:[.!?])\s+|\n\n`)
	demanding = regexp.MustCompile(`\bMUST\b|\b[Uu]nique\b|[Oo]nly (when|if)`)
)

// describe visits the descriptions within a schema.
func describe(schema any, visit func(description string)) {
	switch s := schema.(type) {
	case map[string]any:
		for name, below := range s {
			if text, ok := below.(string); ok && name == "description" {
				visit(text)
			}
			describe(below, visit)
		}
	case []any:
		for _, below := range s {
			describe(below, visit)
		}
	}
}

// sourcesOf returns the source text of the packages in folders, without their tests.
func sourcesOf(t *testing.T, folders ...string) string {
	t.Helper()
	var all strings.Builder
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") }) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
	}
	return all.String()
}
