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
var clientRows = map[string]exercise{
	"OVW-1": anyTrait("path"),
	"OVW-3": anyTrait("answer"),
	"OVW-4": anyTrait("<- session/update"),
	"OVW-5": anyTrait("message"),

	"TRN-1":  anyTrait("message"),
	"TRN-3":  anyTrait("message"),
	"TRN-4":  anyTrait("message"),
	"TRN-6":  anyTrait("message"),
	"TRN-7":  exercise{}.reachedBy("a client that starts the agent as a process"),
	"TRN-10": exercise{}.reachedBy(byQuit),

	"INI-1":  anyTrait("-> initialize"),
	"INI-2":  anyTrait("-> initialize"),
	"INI-3":  anyTrait("-> initialize"),
	"INI-6":  anyTrait("message"),
	"INI-7":  anyTrait("prompted"),
	"INI-10": {},
	"INI-11": {},
	"INI-12": anyTrait("gate"),
	"INI-13": anyTrait("answer"),
	"INI-17": exercise{}.reachedBy("a client that advertises elicitation without a mode"),

	"AUT-1":  anyTrait("gate"),
	"AUT-2":  {},
	"AUT-3":  anyTrait("-> authenticate").reachedBy(byLogin),
	"AUT-4":  anyTrait("-> authenticate").reachedBy(byLogin),
	"AUT-6":  exercise{}.reachedBy("a user who logs in in a terminal"),
	"AUT-11": {},

	"SES-1":  anyTrait("-> session/new"),
	"SES-3":  anyTrait("gate"),
	"SES-4":  anyTrait("gate"),
	"SES-5":  anyTrait("-> session/load").reachedBy(byLoad),
	"SES-8":  anyTrait("gate"),
	"SES-9":  anyTrait("gate"),
	"SES-10": anyTrait("-> session/resume").reachedBy(byResume),
	"SES-12": anyTrait("gate"),
	"SES-13": anyTrait("gate"),
	"SES-14": anyTrait("-> session/close").reachedBy(byClose),
	"SES-17": anyTrait("roots").reachedBy(byRoots),
	"SES-18": exercise{}.reachedBy(byRoots),
	"SES-19": anyTrait("gate"),
	"SES-20": anyTrait("cwd"),
	"SES-27": anyTrait("gate"),
	"SES-29": anyTrait("mcp stdio").reachedBy(byServers),
	"SES-30": anyTrait("mcp").reachedBy(byServers),

	"LST-1":  anyTrait("-> session/list").reachedBy(byList),
	"LST-2":  anyTrait("gate"),
	"LST-3":  anyTrait("gate"),
	"LST-4":  anyTrait("filtered list").reachedBy("a user who lists the sessions of a folder"),
	"LST-9":  anyTrait("second page").reachedBy(byList),
	"LST-10": anyTrait("second page").reachedBy(byList),
	"LST-13": {},

	"DEL-1": anyTrait("gate"),
	"DEL-2": anyTrait("gate"),
	"DEL-3": anyTrait("gate"),

	"MOD-1": anyTrait("-> session/set_mode").reachedBy(byMode),

	"CFG-6":  {},
	"CFG-15": {},
	"CFG-16": anyTrait("-> session/set_config_option").shows("boolean set", booleanOptions).reachedBy(byOption),

	"PRM-1":  anyTrait("prompted"),
	"PRM-2":  anyTrait("gate"),
	"PRM-9":  exercise{}.reachedBy(byCancel),
	"PRM-14": exercise{}.reachedBy(byCancel),
	"PRM-15": anyTrait("second prompt").reachedBy(byTwo),

	"CAN-1": {},
	"CAN-2": exercise{}.reachedBy("a client that itself gives up what the agent waits for when its user cancels"),
	"CAN-3": {},
	"CAN-4": anyTrait("<- $/cancel_request"),
	"CAN-5": exercise{}.reachedBy("a client that sends the agent a request before it answers the agent's"),

	"CON-2": anyTrait("gate"),
	"CON-3": anyTrait("content image", "content audio", "content resource", "content resource_link").reachedBy(byContent),

	"TOL-3": {},
	"TOL-4": exercise{}.reachedBy(byCancel),
	"TOL-5": anyTrait("outcome selected").reachedBy(byAllow),

	"FS-3": exercise{}.needs(canWrite),
	"FS-4": exercise{}.needs(canRead),
	"FS-5": anyTrait("result fs/write_text_file").needs(canWrite),
	"FS-6": exercise{}.needs(canRead),

	"TRM-4":  exercise{}.needs(canRun),
	"TRM-5":  exercise{}.needs(canRun),
	"TRM-6":  exercise{}.needs(canRun),
	"TRM-9":  exercise{}.needs(canRun),
	"TRM-10": exercise{}.needs(canRun),
	"TRM-11": exercise{}.needs(canRun),
	"TRM-12": exercise{}.needs(canRun),

	"ELI-8":  anyTrait("elicitation accept").needs(canForm).reachedBy(byAccept),
	"ELI-15": anyTrait("elicitation accept").needs(canForm).reachedBy(byAccept),
	"ELI-16": anyTrait("elicitation accept", "elicitation decline", "elicitation cancel").needs(canForm).
		reachedBy(byAccept),
	"ELI-22": exercise{}.needs(canOpen),
	"ELI-23": anyTrait("unstated mode").reachedBy("a client that lacks a mode of elicitation"),
	"ELI-28": exercise{}.needs(canOpen),
	"ELI-34": exercise{}.needs(canForm),

	"EXT-1": anyTrait("meta").reachedBy("a client that sends _meta"),
	"EXT-2": anyTrait("message"),
	"EXT-3": anyTrait("message"),
	"EXT-4": {},
	"EXT-5": {},
	"EXT-6": anyTrait("extension").reachedBy("a client that has methods of its own"),
	"EXT-7": {},
	"EXT-8": anyTrait("-> initialize"),

	"ERR-1": {},
	"ERR-2": anyTrait("error"),
	"ERR-3": {},
	"ERR-4": {},
	"ERR-7": {},
	"ERR-8": exercise{}.reachedBy(byGone),

	"SCH-1":  {},
	"SCH-2":  anyTrait("answer"),
	"SCH-3":  anyTrait("message"),
	"SCH-4":  anyTrait("message"),
	"SCH-8":  {},
	"SCH-10": exercise{}.needs(canForm),
	"SCH-11": anyTrait("message"),
	"SCH-16": anyTrait("message"),
	"SCH-17": {},

	"ADD-1":  {},
	"ADD-6":  anyTrait("error"),
	"ADD-8":  exercise{}.reachedBy(byCancel),
	"ADD-9":  {},
	"ADD-10": anyTrait("message"),
	"ADD-11": anyTrait("<- $/cancel_request"),
	"ADD-17": exercise{}.reachedBy(byAllow),
}

// onlyAtAgents are requirements of both sides that show at agents alone.
var onlyAtAgents = []string{"OVW-2"}
