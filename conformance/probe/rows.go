// Which requirements bind an agent, and what shows that they were exercised.

package probe

import (
	"slices"

	"github.com/acpgo/sdk/conformance"
)

// exercise says when a requirement counts as exercised, beside the scenarios that say so themselves.
type exercise struct {
	// need is a capability that the agent must state for the requirement to apply, or "modes" or "options", which it must
	// have.
	need string
	// on are traits, of which any exercises the requirement.
	on []string
	// reach says how the requirement is exercised where it was not. Without it every agent must exercise it: a MUST that
	// never ran is then a failure.
	reach string
}

func on(traits ...string) exercise { return exercise{on: traits} }

func (x exercise) needs(capability string) exercise { x.need = capability; return x }
func (x exercise) by(reach string) exercise         { x.reach = reach; return x }

// How to reach what depends on what the agent does.
const (
	byTools      = "prompts after which the agent reads and edits files: --prompt read=TEXT, --prompt edit=TEXT"
	byTerminal   = "a prompt after which the agent runs a command in the client's terminal: --prompt terminal=TEXT"
	byWait       = "a prompt after which the agent runs a command that lasts: --prompt wait=TEXT"
	byPermission = "a prompt after which the agent asks for permission: --prompt permission=TEXT"
	byPlan       = "a prompt after which the agent makes a plan: --prompt plan=TEXT"
	byForm       = "a prompt after which the agent asks with a form: --prompt form=TEXT"
	byLink       = "a prompt after which the agent asks to open a link: --prompt link=TEXT"
	byLong       = "a prompt whose turn lasts until it is cancelled: --prompt long=TEXT"
	byAuth       = "a way to authenticate without a person: --auth METHOD"
	byAgent      = "an agent that does this of its own accord"
)

const (
	loadSession = "loadSession"
	canResume   = "sessionCapabilities.resume"
	canClose    = "sessionCapabilities.close"
	canList     = "sessionCapabilities.list"
	canDelete   = "sessionCapabilities.delete"
	canRoots    = "sessionCapabilities.additionalDirectories"
	canLogout   = "auth.logout"
	canHTTP     = "mcpCapabilities.http"
)

// agentRows are the requirements that bind agents and that a machine can judge.
var agentRows = map[string]exercise{
	"OVW-1": on("path").by(byTools),
	"OVW-2": on("line", "<- fs/read_text_file").by(byTools),
	"OVW-3": on("answer"),
	"OVW-4": on("-> session/cancel"),
	"OVW-5": on("message"),

	"TRN-1":  on("message"),
	"TRN-3":  on("message"),
	"TRN-4":  on("message"),
	"TRN-5":  on("message"),
	"TRN-7":  exercise{}.by("an agent that is a process of its own"),
	"TRN-10": {},

	"INI-4":  on("result initialize"),
	"INI-5":  on("result initialize"),
	"INI-6":  on("message"),
	"INI-8":  {},
	"INI-9":  {},
	"INI-11": {},
	"INI-12": on("gate"),
	"INI-14": {},
	"INI-15": {},
	"INI-16": on("turn"),
	"INI-17": on("gate"),
	"INI-18": on("option boolean", "gate"),
	"INI-19": on("auth methods").by(byAgent),

	"AUT-5":  on("auth methods").by(byAgent),
	"AUT-8":  on("result authenticate", "result logout").by(byAuth),
	"AUT-9":  on("authenticated").by(byAuth),
	"AUT-10": on("logged out").needs(canLogout).by(byAuth),

	"SES-2":  on("result session/new"),
	"SES-6":  exercise{}.needs(loadSession),
	"SES-7":  on("result session/load").needs(loadSession),
	"SES-11": on("result session/resume").needs(canResume),
	"SES-15": on("closed in a turn").needs(canClose).by(byLong),
	"SES-16": on("result session/close").needs(canClose),
	"SES-21": exercise{}.by(byTools),
	"SES-22": exercise{}.by(byTools),
	"SES-23": exercise{}.needs(canRoots).by(byTools),
	"SES-24": exercise{}.by(byTools),
	"SES-25": exercise{}.by("a fake MCP server, which acp probe brings"),
	"SES-26": exercise{}.needs(canHTTP).by("a fake MCP server, which acp probe brings"),
	"SES-28": exercise{}.by("a fake MCP server, which acp probe brings"),
	"SES-30": {},
	"SES-31": on("result session/new"),

	"LST-5":  on("result session/list").needs(canList),
	"LST-6":  on("listed").needs(canList).by("an agent that lists the sessions it has just made"),
	"LST-8":  exercise{}.needs(canList),
	"LST-11": exercise{}.needs(canList),
	"LST-12": exercise{}.needs(canList).by("an agent that has more sessions than a page holds"),
	"LST-13": on("update session_info_update").by(byAgent),
	"LST-14": exercise{}.needs(canList),

	"DEL-4": on("listed after deletion").needs(canDelete).by("an agent that lists its sessions too"),
	"DEL-5": exercise{}.needs(canDelete),
	"DEL-6": on("result session/delete").needs(canDelete),

	"MOD-2": on("modes").needs("modes"),
	"MOD-3": on("update current_mode_update").needs("modes").by("a prompt after which the agent changes its mode: --prompt mode=TEXT"),

	"CFG-3":  on("gate").needs("options"),
	"CFG-4":  on("option boolean").needs("options").by("an agent that has an option that is true or false"),
	"CFG-7":  on("category").needs("options").by("an agent whose options have categories"),
	"CFG-14": on("options").needs("options"),
	"CFG-17": on("result session/set_config_option").needs("options"),
	"CFG-18": on("update config_option_update").needs("options").by("a prompt after which the agent changes an option: --prompt mode=TEXT"),
	"CFG-19": on("modes").needs("modes"),
	"CFG-22": on("mode set").needs("modes"),

	"PRM-3":  on("messageId").by("an agent that gives its messages ids"),
	"PRM-4":  on("update usage_update").by(byAgent),
	"PRM-5":  on("turn"),
	"PRM-6":  on("answered session/request_permission").by(byPermission),
	"PRM-7":  on("turn"),
	"PRM-10": on("cancelled").by(byLong),
	"PRM-11": on("cancelled").by(byLong),
	"PRM-12": on("cancelled").by(byLong),
	"PRM-13": on("turn"),
	"PRM-16": on("turn after an idle cancel"),

	"CAN-1": on("request cancelled").by(byLong),
	"CAN-2": exercise{}.by("a fault inside the agent"),
	"CAN-3": exercise{}.by(byLong),
	"CAN-4": on("-> $/cancel_request"),
	"CAN-5": on("cancelled with an open request").by(byPermission),

	"CON-1": on("turn"),
	"CON-3": on("content image", "content audio", "content resource", "content resource_link").by("an agent that sends images, sounds or resources"),

	"TOL-1": on("<- session/request_permission", "update tool_call_update").by(byTools),
	"TOL-2": on("update tool_call").by(byTools),
	"TOL-3": on("update tool_call_update").by(byTools),
	"TOL-6": on("<- session/request_permission").by(byPermission),
	"TOL-7": on("location", "content diff").by(byTools),
	"TOL-8": on("content terminal").by(byTerminal),
	"TOL-9": on("update tool_call").by(byTools),

	"FS-1": on("gate"),
	"FS-2": on("gate"),
	"FS-4": on("<- fs/read_text_file", "<- fs/write_text_file").by(byTools),

	"TRM-1": on("gate"),
	"TRM-2": on("gate"),
	"TRM-3": on("terminal cwd").by(byTerminal),
	"TRM-7": on("answered terminal/create").by(byTerminal),
	"TRM-8": on("answered terminal/kill").by(byWait),

	"PLN-1": on("update plan").by(byPlan),
	"PLN-2": on("update plan").by(byPlan),
	"PLN-3": on("update plan").by(byPlan),

	"CMD-1": on("update available_commands_update").by("an agent that has slash commands"),
	"CMD-2": on("update available_commands_update").by("an agent that has slash commands"),

	"ELI-5":  on("gate"),
	"ELI-6":  on("asked without a form").by(byForm),
	"ELI-9":  exercise{}.by(byForm),
	"ELI-11": on("elicitation form").by(byForm),
	"ELI-13": on("gate"),
	"ELI-14": on("elicitation url").by(byLink),
	"ELI-16": on("elicitation declined").by(byForm),
	"ELI-17": on("elicitation declined").by(byForm),
	"ELI-18": on("elicitation declined").by(byForm),
	"ELI-19": on("elicitation url").by(byLink),
	"ELI-21": on("<- elicitation/complete").by(byLink),
	"ELI-25": on("elicitation url").by(byLink),
	"ELI-26": on("elicitation url").by(byLink),
	"ELI-27": on("elicitation form").by(byForm),
	"ELI-34": on("<- elicitation/create").by(byForm),

	"EXT-1": on("meta").by(byAgent),
	"EXT-2": on("message"),
	"EXT-3": on("message"),
	"EXT-4": {},
	"EXT-5": {},
	"EXT-6": on("extension").by("an agent that has methods of its own"),
	"EXT-7": {},
	"EXT-8": on("result initialize"),

	"ERR-1": exercise{}.by(byTools),
	"ERR-2": on("error"),
	"ERR-3": {},
	"ERR-4": {},
	"ERR-5": {},
	"ERR-6": {},
	"ERR-7": {},
	"ERR-9": on("error"),

	"SCH-1":  {},
	"SCH-2":  on("answer"),
	"SCH-3":  on("message"),
	"SCH-4":  on("message"),
	"SCH-6":  on("cancelled").by(byLong),
	"SCH-7":  on("cancelled").by(byLong),
	"SCH-9":  on("unknown elicitation action").by(byForm),
	"SCH-11": on("message"),
	"SCH-12": on("gate"),
	"SCH-13": on("gate"),
	"SCH-14": on("content terminal").by(byTerminal),
	"SCH-15": on("elicitation form").by(byForm),
	"SCH-16": on("message"),
	"SCH-17": {},

	"ADD-1":  {},
	"ADD-2":  on("turn"),
	"ADD-3":  exercise{}.by("an agent that states a capability of prompts, roots or MCP"),
	"ADD-4":  on("result session/load").needs(loadSession),
	"ADD-5":  on("result initialize"),
	"ADD-6":  on("error"),
	"ADD-7":  {},
	"ADD-9":  exercise{}.by(byPermission),
	"ADD-10": on("message"),
	"ADD-11": on("-> session/cancel"),
	"ADD-12": on("result session/load").needs(loadSession),
	"ADD-13": on("updatedAt").by("an agent that says when a session was last active"),
	"ADD-14": exercise{}.by(byPermission),
	"ADD-16": on("result session/list").needs(canList),
	"ADD-15": on("answered terminal/release").by(byTerminal),
}

// onlyAtClients are requirements of both sides that show at clients alone.
var onlyAtClients = []string{"AUT-4"}

// applies reports whether a requirement binds the program, and why not.
func (about *subject) applies(r conformance.Requirement) (why string) {
	_, listed := about.rows[r.ID]
	switch {
	case listed:
		return ""
	case about.version == 2:
		return "not of version 2, or not played in it"
	case r.Page == "version-2":
		return "of version 2, which is probed apart"
	case r.Side == conformance.Client && about.side == conformance.Agent, about.side == conformance.Agent && slices.Contains(onlyAtClients, r.ID):
		return "binds clients"
	case about.side == conformance.Client && (r.Side == conformance.Agent || slices.Contains(onlyAtAgents, r.ID)):
		return "binds agents"
	}
	return ""
}
