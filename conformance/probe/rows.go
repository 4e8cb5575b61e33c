// Which requirements bind an agent, and what shows that they were exercised.

package probe

import (
	"slices"
	"strings"

	"github.com/acpgo/sdk/conformance"
)

// exercise says when a requirement counts as exercised, beside the scenarios that say so themselves.
type exercise struct {
	// need is a capability that the agent must advertise for the requirement to apply, or "modes" or "options", which
	// it must have.
	need string
	// on has the traits that exercise the requirement; any one of them is enough.
	on []string
	// reach says how to exercise the requirement. If it is empty, every agent must exercise it, so a MUST that never
	// ran is a failure.
	reach string
	// trait must show too if the program has the capability.
	trait, capability string
}

func anyTrait(traits ...string) exercise { return exercise{on: traits} }

func (x exercise) needs(capability string) exercise { x.need = capability; return x }
func (x exercise) shows(trait, capability string) exercise {
	x.trait, x.capability = trait, capability
	return x
}
func (x exercise) reachedBy(reach string) exercise { x.reach = reach; return x }

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
	"OVW-1": anyTrait("path").reachedBy(byTools),
	"OVW-2": anyTrait("line", "<- fs/read_text_file").reachedBy(byTools),
	"OVW-3": anyTrait("answer"),
	"OVW-4": anyTrait("-> session/cancel"),
	"OVW-5": anyTrait("message"),

	"TRN-1":  anyTrait("message"),
	"TRN-3":  anyTrait("message"),
	"TRN-4":  anyTrait("message"),
	"TRN-5":  anyTrait("message"),
	"TRN-7":  exercise{}.reachedBy("an agent that is a process of its own"),
	"TRN-10": {},

	"INI-4":  anyTrait("result initialize"),
	"INI-5":  anyTrait("result initialize"),
	"INI-6":  anyTrait("message"),
	"INI-8":  {},
	"INI-9":  {},
	"INI-11": {},
	"INI-12": anyTrait("gate"),
	"INI-14": {},
	"INI-15": {},
	"INI-16": anyTrait("turn"),
	"INI-17": anyTrait("gate"),
	"INI-18": anyTrait("option boolean", "gate"),
	"INI-19": anyTrait("auth methods").reachedBy(byAgent),

	"AUT-5":  anyTrait("auth methods").reachedBy(byAgent),
	"AUT-8":  anyTrait("result authenticate", "result logout").reachedBy(byAuth),
	"AUT-9":  anyTrait("authenticated").reachedBy(byAuth),
	"AUT-10": anyTrait("logged out").needs(canLogout).reachedBy(byAuth),

	"SES-2":  anyTrait("result session/new"),
	"SES-6":  exercise{}.needs(loadSession),
	"SES-7":  anyTrait("result session/load").needs(loadSession),
	"SES-11": anyTrait("result session/resume").needs(canResume),
	"SES-15": anyTrait("closed in a turn").needs(canClose).reachedBy(byLong),
	"SES-16": anyTrait("result session/close").needs(canClose),
	"SES-21": exercise{}.reachedBy(byTools),
	"SES-22": exercise{}.reachedBy(byTools),
	"SES-23": exercise{}.needs(canRoots).reachedBy(byTools),
	"SES-24": exercise{}.reachedBy(byTools),
	"SES-25": exercise{}.reachedBy("a fake MCP server, which acp probe brings"),
	"SES-26": exercise{}.needs(canHTTP).reachedBy("a fake MCP server, which acp probe brings"),
	"SES-28": exercise{}.reachedBy("a fake MCP server, which acp probe brings"),
	"SES-30": {},
	"SES-31": anyTrait("result session/new"),

	"LST-5":  anyTrait("result session/list").needs(canList),
	"LST-6":  anyTrait("listed").needs(canList).reachedBy("an agent that lists the sessions it has just made"),
	"LST-8":  exercise{}.needs(canList),
	"LST-11": exercise{}.needs(canList),
	"LST-12": exercise{}.needs(canList).reachedBy("an agent that has more sessions than a page holds"),
	"LST-13": anyTrait("update session_info_update").reachedBy(byAgent),
	"LST-14": exercise{}.needs(canList),

	"DEL-4": anyTrait("listed after deletion").needs(canDelete).reachedBy("an agent that lists its sessions too"),
	"DEL-5": exercise{}.needs(canDelete),
	"DEL-6": anyTrait("result session/delete").needs(canDelete),

	"MOD-2": anyTrait("modes").needs("modes"),
	"MOD-3": anyTrait("update current_mode_update").needs("modes").
		reachedBy("a prompt after which the agent changes its mode: --prompt mode=TEXT"),

	"CFG-3":  anyTrait("gate").needs("options"),
	"CFG-4":  anyTrait("option boolean").needs("options").reachedBy("an agent that has an option that is true or false"),
	"CFG-7":  anyTrait("category").needs("options").reachedBy("an agent whose options have categories"),
	"CFG-14": anyTrait("options").needs("options"),
	"CFG-17": anyTrait("result session/set_config_option").needs("options"),
	"CFG-18": anyTrait("update config_option_update").needs("options").
		reachedBy("a prompt after which the agent changes an option: --prompt mode=TEXT"),
	"CFG-19": anyTrait("modes").needs("modes"),
	"CFG-22": anyTrait("mode set").needs("modes"),

	"PRM-3":  anyTrait("messageId").reachedBy("an agent that gives its messages ids"),
	"PRM-4":  anyTrait("update usage_update").reachedBy(byAgent),
	"PRM-5":  anyTrait("turn"),
	"PRM-6":  anyTrait("answered session/request_permission").reachedBy(byPermission),
	"PRM-7":  anyTrait("turn"),
	"PRM-10": anyTrait("cancelled").reachedBy(byLong),
	"PRM-11": anyTrait("cancelled").reachedBy(byLong),
	"PRM-12": anyTrait("cancelled").reachedBy(byLong),
	"PRM-13": anyTrait("turn"),
	"PRM-16": anyTrait("turn after an idle cancel"),

	"CAN-1": anyTrait("request cancelled").reachedBy(byLong),
	"CAN-2": exercise{}.reachedBy("a fault inside the agent"),
	"CAN-3": exercise{}.reachedBy(byLong),
	"CAN-4": anyTrait("-> $/cancel_request"),
	"CAN-5": anyTrait("cancelled with an open request").reachedBy(byPermission),

	"CON-1": anyTrait("turn"),
	"CON-3": anyTrait("content image", "content audio", "content resource", "content resource_link").
		reachedBy("an agent that sends images, sounds or resources"),

	"TOL-1": anyTrait("<- session/request_permission", "update tool_call_update").reachedBy(byTools),
	"TOL-2": anyTrait("update tool_call").reachedBy(byTools),
	"TOL-3": anyTrait("update tool_call_update").reachedBy(byTools),
	"TOL-6": anyTrait("<- session/request_permission").reachedBy(byPermission),
	"TOL-7": anyTrait("location", "content diff").reachedBy(byTools),
	"TOL-8": anyTrait("content terminal").reachedBy(byTerminal),
	"TOL-9": anyTrait("update tool_call").reachedBy(byTools),

	"FS-1": anyTrait("gate"),
	"FS-2": anyTrait("gate"),
	"FS-4": anyTrait("<- fs/read_text_file", "<- fs/write_text_file").reachedBy(byTools),

	"TRM-1": anyTrait("gate"),
	"TRM-2": anyTrait("gate"),
	"TRM-3": anyTrait("terminal cwd").reachedBy(byTerminal),
	"TRM-7": anyTrait("answered terminal/create").reachedBy(byTerminal),
	"TRM-8": anyTrait("answered terminal/kill").reachedBy(byWait),

	"PLN-1": anyTrait("update plan").reachedBy(byPlan),
	"PLN-2": anyTrait("update plan").reachedBy(byPlan),
	"PLN-3": anyTrait("update plan").reachedBy(byPlan),

	"CMD-1": anyTrait("update available_commands_update").reachedBy("an agent that has slash commands"),
	"CMD-2": anyTrait("update available_commands_update").reachedBy("an agent that has slash commands"),

	"ELI-5":  anyTrait("gate"),
	"ELI-6":  anyTrait("asked without a form").reachedBy(byForm),
	"ELI-9":  exercise{}.reachedBy(byForm),
	"ELI-11": anyTrait("elicitation form").reachedBy(byForm),
	"ELI-13": anyTrait("gate"),
	"ELI-14": anyTrait("elicitation url").reachedBy(byLink),
	"ELI-16": anyTrait("elicitation declined").reachedBy(byForm),
	"ELI-17": anyTrait("elicitation declined").reachedBy(byForm),
	"ELI-18": anyTrait("elicitation declined").reachedBy(byForm),
	"ELI-19": anyTrait("elicitation url").reachedBy(byLink),
	"ELI-21": anyTrait("<- elicitation/complete").reachedBy(byLink),
	"ELI-25": anyTrait("elicitation url").reachedBy(byLink),
	"ELI-26": anyTrait("elicitation url").reachedBy(byLink),
	"ELI-27": anyTrait("elicitation form").reachedBy(byForm),
	"ELI-34": anyTrait("<- elicitation/create").reachedBy(byForm),

	"EXT-1": anyTrait("meta").reachedBy(byAgent),
	"EXT-2": anyTrait("message"),
	"EXT-3": anyTrait("message"),
	"EXT-4": {},
	"EXT-5": {},
	"EXT-6": anyTrait("extension").reachedBy("an agent that has methods of its own"),
	"EXT-7": {},
	"EXT-8": anyTrait("result initialize"),

	"ERR-1": exercise{}.reachedBy(byTools),
	"ERR-2": anyTrait("error"),
	"ERR-3": {},
	"ERR-4": {},
	"ERR-5": {},
	"ERR-6": {},
	"ERR-7": {},
	"ERR-9": anyTrait("error"),

	"SCH-1":  {},
	"SCH-2":  anyTrait("answer"),
	"SCH-3":  anyTrait("message"),
	"SCH-4":  anyTrait("message"),
	"SCH-6":  anyTrait("cancelled").reachedBy(byLong),
	"SCH-7":  anyTrait("cancelled").reachedBy(byLong),
	"SCH-9":  anyTrait("unknown elicitation action").reachedBy(byForm),
	"SCH-11": anyTrait("message"),
	"SCH-12": anyTrait("gate"),
	"SCH-13": anyTrait("gate"),
	"SCH-14": anyTrait("content terminal").reachedBy(byTerminal),
	"SCH-15": anyTrait("elicitation form").reachedBy(byForm),
	"SCH-16": anyTrait("message"),
	"SCH-17": {},

	"ADD-1":  {},
	"ADD-2":  anyTrait("turn"),
	"ADD-3":  exercise{}.reachedBy("an agent that states a capability of prompts, roots or MCP"),
	"ADD-4":  anyTrait("result session/load").needs(loadSession),
	"ADD-5":  anyTrait("result initialize"),
	"ADD-6":  anyTrait("error"),
	"ADD-7":  {},
	"ADD-9":  exercise{}.reachedBy(byPermission),
	"ADD-10": anyTrait("message"),
	"ADD-11": anyTrait("-> session/cancel"),
	"ADD-12": anyTrait("result session/load").needs(loadSession),
	"ADD-13": anyTrait("updatedAt").reachedBy("an agent that says when a session was last active"),
	"ADD-14": exercise{}.reachedBy(byPermission),
	"ADD-16": anyTrait("result session/list").needs(canList),
	"ADD-15": anyTrait("answered terminal/release").reachedBy(byTerminal),
}

// onlyAtClients are requirements of both sides that show at clients alone.
var onlyAtClients = []string{"AUT-4"}

// Trials says how the probes try a requirement: a line for each probe that does.
func Trials(id string) []string {
	var lines []string
	for _, probe := range []struct {
		command string
		about   *subject
	}{{"acp probe", &agents}, {"acp probe --protocol 2", &drafts}, {"acp probe-client", &clients}} {
		x, listed := probe.about.rows[id]
		if !listed {
			continue
		}
		var names []string
		for _, s := range probe.about.scenarios() {
			if slices.Contains(s.Exercises, id) {
				names = append(names, s.Name)
			}
		}
		line := probe.command + ": "
		if len(names) > 0 {
			line += "in " + strings.Join(names, ", ")
		}
		if len(names) == 0 || len(x.on) > 0 {
			line += map[bool]string{true: "in all scenarios that show it",
				false: ", and in all others that show it"}[len(names) == 0]
		}
		switch x.need {
		case "":
		case "modes", "options":
			line += "; only if the agent has " + x.need
		default:
			line += "; only if the " + probe.about.word + " advertises " + x.need
		}
		if x.reach != "" {
			line += "; it needs " + x.reach
		}
		lines = append(lines, line)
	}
	return lines
}

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
	case r.Side == conformance.Client && about.side == conformance.Agent, about.side == conformance.Agent &&
		slices.Contains(onlyAtClients, r.ID):
		return "binds clients"
	case about.side == conformance.Client && (r.Side == conformance.Agent || slices.Contains(onlyAtAgents, r.ID)):
		return "binds agents"
	}
	return ""
}
