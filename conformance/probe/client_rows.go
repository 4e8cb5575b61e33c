// Which requirements bind a client, and what shows that they were exercised.

package probe

// How to reach what depends on what the client's user does.
const (
	byCancel  = "a user who cancels a turn, or a client that an interrupt makes cancel it"
	byList    = "a user who lists the sessions"
	byLoad    = "a user who loads a session"
	byResume  = "a user who resumes a session"
	byClose   = "a user who closes a session"
	byGone    = "a user who closes or deletes a session"
	byMode    = "a user who changes the mode"
	byOption  = "a user who changes an option"
	byRoots   = "a client with more than one root"
	byServers = "a client with MCP servers"
	byLogin   = "a client that authenticates when the agent wants it"
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
)

// clientRows are the requirements that bind clients and that a machine can judge. Some of them bind agents by their words,
// and a client too.
var clientRows = map[string]exercise{
	"OVW-1": on("path"),
	"OVW-3": on("answer"),
	"OVW-4": on("<- session/update"),
	"OVW-5": on("message"),

	"TRN-1":  on("message"),
	"TRN-3":  on("message"),
	"TRN-4":  on("message"),
	"TRN-6":  on("message"),
	"TRN-7":  exercise{}.by("a client that starts the agent as a process"),
	"TRN-10": exercise{}.by(byQuit),

	"INI-1":  on("-> initialize"),
	"INI-2":  on("-> initialize"),
	"INI-3":  on("-> initialize"),
	"INI-6":  on("message"),
	"INI-7":  on("prompted"),
	"INI-10": {},
	"INI-11": {},
	"INI-12": on("gate"),
	"INI-13": on("answer"),
	"INI-17": exercise{}.by("a client that states elicitation without a mode"),

	"AUT-1":  on("gate"),
	"AUT-2":  {},
	"AUT-3":  on("-> authenticate").by(byLogin),
	"AUT-4":  on("-> authenticate").by(byLogin),
	"AUT-6":  exercise{}.by("a user who logs in in a terminal"),
	"AUT-11": {},

	"SES-1":  on("-> session/new"),
	"SES-3":  on("gate"),
	"SES-4":  on("gate"),
	"SES-5":  on("-> session/load").by(byLoad),
	"SES-8":  on("gate"),
	"SES-9":  on("gate"),
	"SES-10": on("-> session/resume").by(byResume),
	"SES-12": on("gate"),
	"SES-13": on("gate"),
	"SES-14": on("-> session/close").by(byClose),
	"SES-17": on("roots").by(byRoots),
	"SES-18": exercise{}.by(byRoots),
	"SES-19": on("gate"),
	"SES-20": on("cwd"),
	"SES-27": on("gate"),
	"SES-29": on("mcp stdio").by(byServers),
	"SES-30": on("mcp").by(byServers),

	"LST-1":  on("-> session/list").by(byList),
	"LST-2":  on("gate"),
	"LST-3":  on("gate"),
	"LST-4":  on("filtered list").by("a user who lists the sessions of a folder"),
	"LST-9":  on("second page").by(byList),
	"LST-10": on("second page").by(byList),
	"LST-13": {},

	"DEL-1": on("gate"),
	"DEL-2": on("gate"),
	"DEL-3": on("gate"),

	"MOD-1": on("-> session/set_mode").by(byMode),

	"CFG-6":  {},
	"CFG-15": {},
	"CFG-16": on("-> session/set_config_option").by(byOption),

	"PRM-1":  on("prompted"),
	"PRM-2":  on("gate"),
	"PRM-9":  exercise{}.by(byCancel),
	"PRM-14": exercise{}.by(byCancel),
	"PRM-15": on("second prompt").by(byTwo),

	"CAN-1": {},
	"CAN-2": exercise{}.by("a client that by itself gives up what the agent waits for, when its user cancels"),
	"CAN-3": {},
	"CAN-4": on("<- $/cancel_request"),
	"CAN-5": exercise{}.by("a client that asks the agent something before it answers it"),

	"CON-2": on("gate"),
	"CON-3": on("content image", "content audio", "content resource", "content resource_link").by(byContent),

	"TOL-3": {},
	"TOL-4": exercise{}.by(byCancel),
	"TOL-5": on("outcome selected").by(byAllow),

	"FS-3": exercise{}.needs(canWrite),
	"FS-4": exercise{}.needs(canRead),
	"FS-5": on("result fs/write_text_file").needs(canWrite),
	"FS-6": exercise{}.needs(canRead),

	"TRM-4":  exercise{}.needs(canRun),
	"TRM-5":  exercise{}.needs(canRun),
	"TRM-6":  exercise{}.needs(canRun),
	"TRM-9":  exercise{}.needs(canRun),
	"TRM-10": exercise{}.needs(canRun),
	"TRM-11": exercise{}.needs(canRun),
	"TRM-12": exercise{}.needs(canRun),

	"ELI-8":  on("elicitation accept").needs(canForm).by(byAccept),
	"ELI-15": on("elicitation accept").needs(canForm).by(byAccept),
	"ELI-16": on("elicitation accept", "elicitation decline", "elicitation cancel").needs(canForm).by(byAccept),
	"ELI-22": exercise{}.needs(canOpen),
	"ELI-23": on("unstated mode").by("a client that lacks a mode of elicitation"),
	"ELI-28": exercise{}.needs(canOpen),
	"ELI-34": exercise{}.needs(canForm),

	"EXT-1": on("meta").by("a client that sends _meta"),
	"EXT-2": on("message"),
	"EXT-3": on("message"),
	"EXT-4": {},
	"EXT-5": {},
	"EXT-6": on("extension").by("a client that has methods of its own"),
	"EXT-7": {},
	"EXT-8": on("-> initialize"),

	"ERR-1": {},
	"ERR-2": on("error"),
	"ERR-3": {},
	"ERR-4": {},
	"ERR-7": {},
	"ERR-8": exercise{}.by(byGone),

	"SCH-1":  {},
	"SCH-2":  on("answer"),
	"SCH-3":  on("message"),
	"SCH-4":  on("message"),
	"SCH-8":  {},
	"SCH-10": exercise{}.needs(canForm),
	"SCH-11": on("message"),
	"SCH-16": on("message"),
	"SCH-17": {},

	"ADD-1":  {},
	"ADD-6":  on("error"),
	"ADD-8":  exercise{}.by(byCancel),
	"ADD-9":  {},
	"ADD-10": on("message"),
	"ADD-11": on("<- $/cancel_request"),
}

// onlyAtAgents are requirements of both sides that show at agents alone.
var onlyAtAgents = []string{"OVW-2"}
