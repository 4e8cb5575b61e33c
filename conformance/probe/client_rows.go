// Which requirements bind a client, and what shows that they were exercised.

package probe

// How to reach what depends on what the client's user does.
const (
	byCancel = "a user who cancels a turn, or a client that cancels it on an interrupt"
	byList   = "a user who lists the sessions"
	byLoad   = "a user who loads a session"
	byResume = "a user who resumes a session"
	byClose  = "a user who closes a session"
	byGone   = "a user who closes or deletes a session"
	byMode   = "a user who changes the mode"
	byOption = "a user who changes an option, and switches one on or off if the client supports that: --type " +
		"option=TEXT, --type toggle=TEXT"
	byRoots   = "a client with more than one root"
	byServers = "a client with MCP servers"
	byLogin   = "a client that authenticates when the agent requires it"
	byAllow   = "a user who grants permissions"
	byAccept  = "a user who fills in forms"
	byContent = "a user who sends more than text"
	byTwo     = "a user who sends a second prompt"
	byQuit    = "a user who ends the client"
)

const (
	canRead  = "fs.readTextFile"
	canWrite = "fs.writeTextFile"
	canRun   = "terminal"
	canForm  = "elicitation.form"
	canOpen  = "elicitation.url"

	booleanOptions = "session.configOptions.boolean"
)

// clientRows are the requirements that bind clients and that a machine can judge. Some of them bind agents by their
// words, and a client too.
var clientRows = rows{
	{"OVW-1", anyTrait("path")},
	{"OVW-3 INI-13 SCH-2", anyTrait("answer")},
	{"OVW-4", anyTrait("<- session/update")},
	{"OVW-5 TRN-1 TRN-3 TRN-4 TRN-6 INI-6 EXT-2 EXT-3 SCH-3 SCH-4 SCH-11 SCH-16 ADD-10", anyTrait("message")},
	{"TRN-7", exercise{}.reachedBy("a client that starts the agent as a process")},
	{"TRN-10", exercise{}.reachedBy(byQuit)},
	{"INI-1 INI-2 INI-3 EXT-8", anyTrait("-> initialize")},
	{"INI-7 PRM-1", anyTrait("prompted")},
	{"INI-10 INI-11 AUT-2 AUT-11 LST-13 CFG-6 CFG-15 CAN-1 CAN-3 TOL-3 EXT-4 EXT-5 EXT-7 ERR-1 ERR-3 " +
		"ERR-4 ERR-7 SCH-1 SCH-8 SCH-17 ADD-1 ADD-9", exercise{}},
	{"INI-12 AUT-1 SES-3 SES-4 SES-8 SES-9 SES-12 SES-13 SES-19 SES-27 LST-2 LST-3 DEL-1 DEL-2 DEL-3 " +
		"PRM-2 CON-2", anyTrait("gate")},
	{"INI-17", exercise{}.reachedBy("a client that advertises elicitation without a mode")},
	{"AUT-3 AUT-4", anyTrait("-> authenticate").reachedBy(byLogin)},
	{"AUT-6", exercise{}.reachedBy("a user who logs in in a terminal")},
	{"SES-1", anyTrait("-> session/new")},
	{"SES-5", anyTrait("-> session/load").reachedBy(byLoad)},
	{"SES-10", anyTrait("-> session/resume").reachedBy(byResume)},
	{"SES-14", anyTrait("-> session/close").reachedBy(byClose)},
	{"SES-17", anyTrait("roots").reachedBy(byRoots)},
	{"SES-18", exercise{}.reachedBy(byRoots)},
	{"SES-20", anyTrait("cwd")},
	{"SES-29", anyTrait("mcp stdio").reachedBy(byServers)},
	{"SES-30", anyTrait("mcp").reachedBy(byServers)},
	{"LST-1", anyTrait("-> session/list").reachedBy(byList)},
	{"LST-4", anyTrait("filtered list").reachedBy("a user who lists the sessions of a folder")},
	{"LST-9 LST-10", anyTrait("second page").reachedBy(byList)},
	{"MOD-1", anyTrait("-> session/set_mode").reachedBy(byMode)},
	{"CFG-16", anyTrait("-> session/set_config_option").shows("boolean set", booleanOptions).reachedBy(byOption)},
	{"PRM-9 PRM-14 TOL-4 ADD-8", exercise{}.reachedBy(byCancel)},
	{"PRM-15", anyTrait("second prompt").reachedBy(byTwo)},
	{"CAN-2", exercise{}.reachedBy("a client that itself gives up what the agent waits for when its user cancels")},
	{"CAN-4 ADD-11", anyTrait("<- $/cancel_request")},
	{"CAN-5", exercise{}.reachedBy("a client that sends the agent a request before it answers the agent's")},
	{"CON-3", anyTrait("content image", "content audio", "content resource", "content resource_link").
		reachedBy(byContent)},
	{"TOL-5", anyTrait("outcome selected").reachedBy(byAllow)},
	{"FS-3", exercise{}.needs(canWrite)},
	{"FS-4 FS-6", exercise{}.needs(canRead)},
	{"FS-5", anyTrait("result fs/write_text_file").needs(canWrite)},
	{"TRM-4 TRM-5 TRM-6 TRM-9 TRM-10 TRM-11 TRM-12", exercise{}.needs(canRun)},
	{"ELI-8 ELI-15", anyTrait("elicitation accept").needs(canForm).reachedBy(byAccept)},
	{"ELI-16", anyTrait("elicitation accept", "elicitation decline", "elicitation cancel").needs(canForm).
		reachedBy(byAccept)},
	{"ELI-22 ELI-28", exercise{}.needs(canOpen)},
	{"ELI-23", anyTrait("unstated mode").reachedBy("a client that lacks a mode of elicitation")},
	{"ELI-34 SCH-10", exercise{}.needs(canForm)},
	{"EXT-1", anyTrait("meta").reachedBy("a client that sends _meta")},
	{"EXT-6", anyTrait("extension").reachedBy("a client that has methods of its own")},
	{"ERR-2 ADD-6", anyTrait("error")},
	{"ERR-8", exercise{}.reachedBy(byGone)},
	{"ADD-17", exercise{}.reachedBy(byAllow)},
}.byID()
