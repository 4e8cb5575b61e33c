// Which requirements bind an agent, and what shows that they were exercised.

package probe

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
var agentRows = rows{
	{"OVW-1", anyTrait("path").reachedBy(byTools)},
	{"OVW-2", anyTrait("line", "<- fs/read_text_file").reachedBy(byTools)},
	{"OVW-3 SCH-2", anyTrait("answer")},
	{"OVW-4 ADD-11", anyTrait("-> session/cancel")},
	{"OVW-5 TRN-1 TRN-3 TRN-4 TRN-5 INI-6 EXT-2 EXT-3 SCH-3 SCH-4 SCH-11 SCH-16 ADD-10", anyTrait("message")},
	{"TRN-7", exercise{}.reachedBy("an agent that is a process of its own")},
	{"TRN-10 INI-8 INI-9 INI-11 INI-14 INI-15 SES-30 EXT-4 EXT-5 EXT-7 ERR-3 ERR-4 ERR-5 ERR-6 ERR-7 " +
		"SCH-1 SCH-17 ADD-1 ADD-7", exercise{}},
	{"INI-4 INI-5 EXT-8 ADD-5", anyTrait("result initialize")},
	{"INI-12 INI-17 FS-1 FS-2 TRM-1 TRM-2 ELI-5 ELI-13 SCH-12 SCH-13", anyTrait("gate")},
	{"INI-16 PRM-5 PRM-7 PRM-13 CON-1 ADD-2", anyTrait("turn")},
	{"INI-18", anyTrait("option boolean", "gate")},
	{"INI-19 AUT-5", anyTrait("auth methods").reachedBy(byAgent)},
	{"AUT-8", anyTrait("result authenticate", "result logout").reachedBy(byAuth)},
	{"AUT-9", anyTrait("authenticated").reachedBy(byAuth)},
	{"AUT-10", anyTrait("logged out").needs(canLogout).reachedBy(byAuth)},
	{"SES-2 SES-31", anyTrait("result session/new")},
	{"SES-6", exercise{}.needs(loadSession)},
	{"SES-7 ADD-4 ADD-12", anyTrait("result session/load").needs(loadSession)},
	{"SES-11", anyTrait("result session/resume").needs(canResume)},
	{"SES-15", anyTrait("closed in a turn").needs(canClose).reachedBy(byLong)},
	{"SES-16", anyTrait("result session/close").needs(canClose)},
	{"SES-21 SES-22 SES-24 ERR-1", exercise{}.reachedBy(byTools)},
	{"SES-23", exercise{}.needs(canRoots).reachedBy(byTools)},
	{"SES-25 SES-28", exercise{}.reachedBy("a fake MCP server, which acp probe brings")},
	{"SES-26", exercise{}.needs(canHTTP).reachedBy("a fake MCP server, which acp probe brings")},
	{"LST-5 ADD-16", anyTrait("result session/list").needs(canList)},
	{"LST-6", anyTrait("listed").needs(canList).reachedBy("an agent that lists the sessions it has just made")},
	{"LST-8 LST-11 LST-14", exercise{}.needs(canList)},
	{"LST-12", exercise{}.needs(canList).reachedBy("an agent that has more sessions than a page holds")},
	{"LST-13", anyTrait("update session_info_update").reachedBy(byAgent)},
	{"DEL-4", anyTrait("listed after deletion").needs(canDelete).reachedBy("an agent that lists its sessions too")},
	{"DEL-5", exercise{}.needs(canDelete)},
	{"DEL-6", anyTrait("result session/delete").needs(canDelete)},
	{"MOD-2 CFG-19", anyTrait("modes").needs("modes")},
	{"MOD-3", anyTrait("update current_mode_update").needs("modes").
		reachedBy("a prompt after which the agent changes its mode: --prompt mode=TEXT")},
	{"CFG-3", anyTrait("gate").needs("options")},
	{"CFG-4", anyTrait("option boolean").needs("options").
		reachedBy("an agent that has an option that is true or false")},
	{"CFG-7", anyTrait("category").needs("options").reachedBy("an agent whose options have categories")},
	{"CFG-14", anyTrait("options").needs("options")},
	{"CFG-17", anyTrait("result session/set_config_option").needs("options")},
	{"CFG-18", anyTrait("update config_option_update").needs("options").
		reachedBy("a prompt after which the agent changes an option: --prompt mode=TEXT")},
	{"CFG-22", anyTrait("mode set").needs("modes")},
	{"PRM-3", anyTrait("messageId").reachedBy("an agent that gives its messages ids")},
	{"PRM-4", anyTrait("update usage_update").reachedBy(byAgent)},
	{"PRM-6", anyTrait("answered session/request_permission").reachedBy(byPermission)},
	{"PRM-10 PRM-11 PRM-12 SCH-6 SCH-7", anyTrait("cancelled").reachedBy(byLong)},
	{"PRM-16", anyTrait("turn after an idle cancel")},
	{"CAN-1", anyTrait("request cancelled").reachedBy(byLong)},
	{"CAN-2", exercise{}.reachedBy("a fault inside the agent")},
	{"CAN-3", exercise{}.reachedBy(byLong)},
	{"CAN-4", anyTrait("-> $/cancel_request")},
	{"CAN-5", anyTrait("cancelled with an open request").reachedBy(byPermission)},
	{"CON-3", anyTrait("content image", "content audio", "content resource", "content resource_link").
		reachedBy("an agent that sends images, sounds or resources")},
	{"TOL-1", anyTrait("<- session/request_permission", "update tool_call_update").reachedBy(byTools)},
	{"TOL-2 TOL-9", anyTrait("update tool_call").reachedBy(byTools)},
	{"TOL-3", anyTrait("update tool_call_update").reachedBy(byTools)},
	{"TOL-6", anyTrait("<- session/request_permission").reachedBy(byPermission)},
	{"TOL-7", anyTrait("location", "content diff").reachedBy(byTools)},
	{"TOL-8 SCH-14", anyTrait("content terminal").reachedBy(byTerminal)},
	{"FS-4", anyTrait("<- fs/read_text_file", "<- fs/write_text_file").reachedBy(byTools)},
	{"TRM-3", anyTrait("terminal cwd").reachedBy(byTerminal)},
	{"TRM-7", anyTrait("answered terminal/create").reachedBy(byTerminal)},
	{"TRM-8", anyTrait("answered terminal/kill").reachedBy(byWait)},
	{"PLN-1 PLN-2 PLN-3", anyTrait("update plan").reachedBy(byPlan)},
	{"CMD-1 CMD-2", anyTrait("update available_commands_update").reachedBy("an agent that has slash commands")},
	{"ELI-6", anyTrait("asked without a form").reachedBy(byForm)},
	{"ELI-9", exercise{}.reachedBy(byForm)},
	{"ELI-11 ELI-27 SCH-15", anyTrait("elicitation form").reachedBy(byForm)},
	{"ELI-14 ELI-19 ELI-25 ELI-26", anyTrait("elicitation url").reachedBy(byLink)},
	{"ELI-16 ELI-17 ELI-18", anyTrait("elicitation declined").reachedBy(byForm)},
	{"ELI-21", anyTrait("<- elicitation/complete").reachedBy(byLink)},
	{"ELI-34", anyTrait("<- elicitation/create").reachedBy(byForm)},
	{"EXT-1", anyTrait("meta").reachedBy(byAgent)},
	{"EXT-6", anyTrait("extension").reachedBy("an agent that has methods of its own")},
	{"ERR-2 ERR-9 ADD-6", anyTrait("error")},
	{"SCH-9", anyTrait("unknown elicitation action").reachedBy(byForm)},
	{"ADD-3", exercise{}.reachedBy("an agent that states a capability of prompts, roots or MCP")},
	{"ADD-9 ADD-14", exercise{}.reachedBy(byPermission)},
	{"ADD-13", anyTrait("updatedAt").reachedBy("an agent that says when a session was last active")},
	{"ADD-15", anyTrait("answered terminal/release").reachedBy(byTerminal)},
}.byID()

// draftRows are the requirements that bind agents of version 2 and that a machine can judge.
var draftRows = rows{
	{"OVW-1", anyTrait("path").reachedBy(byTools)},
	{"OVW-3 SCH-2", anyTrait("answer")},
	{"OVW-4 TRN-10 INI-9 INI-16 LST-5 LST-8 LST-11 LST-14 EXT-4 EXT-5 ERR-3 ERR-4 ERR-5 ERR-7 V2-2 " +
		"V2-5 V2-9 V2-10 V2-11", exercise{}},
	{"TRN-1 TRN-3 TRN-4 TRN-5 INI-6 EXT-2 EXT-3 SCH-4 SCH-11 ADD-10", anyTrait("message")},
	{"INI-19 CAN-1", exercise{}.reachedBy(byAgent)},
	{"AUT-9", anyTrait("result auth/login").reachedBy(byAuth)},
	{"AUT-10", anyTrait("logged out").reachedBy(byAuth)},
	{"AUT-8", anyTrait("result auth/login", "result auth/logout").reachedBy(byAuth)},
	{"SES-2 SES-31", anyTrait("result session/new")},
	{"LST-12", exercise{}.reachedBy("an agent that has more sessions than a page holds")},
	{"DEL-4", anyTrait("result session/delete").needs("session.delete")},
	{"DEL-5", exercise{}.needs("session.delete")},
	{"CFG-7", anyTrait("category").needs("options").reachedBy("an agent whose options have categories")},
	{"CFG-14 V2-20", anyTrait("options").needs("options")},
	{"CFG-17", anyTrait("result session/set_config_option").needs("options")},
	{"CFG-18", anyTrait("update config_option_update").needs("options").reachedBy(byAgent)},
	{"CON-3", anyTrait("content image", "content audio", "content resource", "content resource_link").
		reachedBy(byAgent)},
	{"TOL-9 V2-6", anyTrait("update tool_call_update").reachedBy(byTools)},
	{"PLN-3", anyTrait("update plan_update").reachedBy(byPlan)},
	{"CMD-2 V2-19", anyTrait("update available_commands_update").reachedBy("an agent that has slash commands")},
	{"ELI-5", anyTrait("<- elicitation/create").reachedBy(byForm)},
	{"ELI-11 ELI-27 SCH-15", anyTrait("elicitation form").reachedBy(byForm)},
	{"ELI-19 ELI-25 ELI-26", anyTrait("elicitation url").reachedBy(byLink)},
	{"ELI-21", anyTrait("<- elicitation/complete").reachedBy(byLink)},
	{"EXT-1", anyTrait("meta").reachedBy(byAgent)},
	{"EXT-6", anyTrait("extension").reachedBy("an agent that has methods of its own")},
	{"ERR-2 ERR-9 ADD-6", anyTrait("error")},
	{"SCH-1 V2-4 V2-22", exercise{}.reachedBy(byLong)},
	{"ADD-2 V2-1 V2-3 V2-15 V2-17", anyTrait("turn")},
	{"ADD-3", exercise{}.reachedBy("an agent that states a capability of prompts or roots")},
	{"ADD-5 V2-21", anyTrait("auth methods").reachedBy(byAgent)},
	{"ADD-7", anyTrait("result initialize")},
	{"ADD-14", exercise{}.reachedBy(byPermission)},
	{"ADD-16 SES-21", anyTrait("result session/list")},
	{"V2-7", anyTrait("update terminal_update").reachedBy(byTerminal)},
	{"V2-8", anyTrait("update terminal_output_chunk").reachedBy(byTerminal)},
	{"V2-14", exercise{}.reachedBy("an agent that is closed before it takes a prompt")},
	{"V2-16 V2-23", anyTrait("result session/resume")},
	{"V2-18 V2-24", anyTrait("<- session/request_permission").reachedBy(byPermission)},
}.byID()
