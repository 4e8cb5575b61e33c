package launch

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/acpgo/sdk/internal/plain"
)

// ProblemKind is the kind of a problem that keeps an agent from starting, or its user from using it.
type ProblemKind string

// The kinds of problems.
const (
	FolderMissing  ProblemKind = "folder missing"  // Command.Dir does not exist, or is not a directory
	ProgramMissing ProblemKind = "program missing" // the program was not found
	NotExecutable  ProblemKind = "not executable"  // it exists, but may not be run, or is not a program
	WrongSystem    ProblemKind = "wrong system"    // it is made for another system or processor
	// something needed to run the program is missing: node, a loader, a library
	InterpreterMissing ProblemKind = "interpreter missing"
	WrongNode          ProblemKind = "wrong Node.js" // it needs another version of Node.js
	Incomplete         ProblemKind = "incomplete"    // parts of the program are missing
	// a package runner cannot fetch it: network, proxy, certificate or disk
	DownloadFailed ProblemKind = "download failed"
	TooNew         ProblemKind = "too new"              // the version is newer than npm's min-release-age allows
	NotPublished   ProblemKind = "not published"        // there is no such package or version
	NoCommand      ProblemKind = "no command"           // the package has no command to run
	NotStarted     ProblemKind = "not started"          // the system refused to start it for another reason
	Exited         ProblemKind = "exited"               // it ended before it answered
	Silent         ProblemKind = "no answer"            // it did not answer in time
	Banner         ProblemKind = "banner"               // it writes text other than messages to standard output
	NotAnAgent     ProblemKind = "not an agent"         // it answers, but not as an agent
	Refused        ProblemKind = "refused"              // it refused initialize
	WrongVersion   ProblemKind = "wrong version"        // it speaks another version of the protocol
	LoginRequired  ProblemKind = "login required"       // the user has to log in first
	SessionFailed  ProblemKind = "no session"           // it starts, but cannot open a session
	Interrupted    ProblemKind = "examination not done" // the examination was interrupted
)

// Problem is a problem, described in words.
type Problem struct {
	// Kind is the kind of the problem.
	Kind ProblemKind
	// Text describes the problem in a sentence. It may repeat the program's output.
	Text string
	// Advice says what can be done about it. It may be empty.
	Advice string
	// Blocks reports whether the problem must be solved before the agent can be used. A problem that does not block may
	// affect other clients.
	Blocks bool
	// Err is the error that revealed the problem, or nil.
	Err error
}

// String returns the kind, the text and the advice, without control characters.
func (p Problem) String() string {
	text := plain.Line(fmt.Sprintf("%s: %s", p.Kind, p.Text))
	if p.Advice != "" {
		text += "\n  " + plain.Line(p.Advice)
	}
	return text
}

// sign is a pattern in the output of programs that identifies a problem.
type sign struct {
	kind    ProblemKind
	pattern *regexp.Regexp
	text    string // the text of the problem; $1 … are the groups of the pattern
	advice  string
}

// signs are tried from first to last, so more specific ones come first.
var signs = []sign{
	{
		TooNew, regexp.MustCompile(`No matching version found for (\S+) with a date before (.+?)\.?(?:\n|$)`),
		"npm only accepts packages from before $2 (its setting min-release-age, or before), and $1 is newer",
		"Wait until the version is old enough, take an older one, or set min-release-age=0 for this package. If the agent " +
			"has a binary, npm is not needed for that.",
	},
	{
		NotPublished, regexp.MustCompile(`No matching version found for (\S+?)\.?(?:\s|$)`),
		"npm cannot find the version $1", "The version may have been withdrawn; choose another one.",
	},
	{
		NotPublished, regexp.MustCompile(`(?s)npm (?:error|ERR!) code E404.*?404\s+'?(\S*?)'? ?(?:The requested resource|could not be found|is not in)`),
		"npm cannot find the package", "The name may be wrong, or the package private: see npm whoami.",
	},
	{NotPublished, regexp.MustCompile(`npm (?:error|ERR!) code E404`), "npm cannot find the package", "The name may be wrong, or the package private: see npm whoami."},
	{
		DownloadFailed, regexp.MustCompile(`npm (?:error|ERR!) code (ENOTCACHED)`),
		"npm is set to offline ($1), and the package is not in its cache",
		"Set offline=false for npm, and start the agent once with a network.",
	},
	{
		DownloadFailed, regexp.MustCompile(`npm (?:error|ERR!) code (ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ECONNABORTED|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|EIDLETIMEOUT|ENETDOWN)`),
		"npm cannot reach its registry ($1)", "Check the network, and npm's settings proxy, https-proxy and registry.",
	},
	{
		DownloadFailed, regexp.MustCompile(`npm (?:error|ERR!) code (SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER_CERT_LOCALLY|DEPTH_ZERO_SELF_SIGNED_CERT|CERT_HAS_EXPIRED)`),
		"npm does not trust the certificate of its registry ($1)",
		"Behind a proxy of a company, set NODE_EXTRA_CA_CERTS to its certificate.",
	},
	{
		DownloadFailed, regexp.MustCompile(`npm (?:error|ERR!) code (EACCES|EPERM|EROFS|ENOSPC|EDQUOT)`),
		"npm cannot write its files ($1)", "Check the free space, and who owns npm's cache: npm config get cache.",
	},
	{DownloadFailed, regexp.MustCompile(`npm (?:error|ERR!) code (EINTEGRITY)`), "a package from npm does not match the checksum of its registry ($1)", "npm cache clean --force empties the cache."},
	{NoCommand, regexp.MustCompile(`could not determine executable to run`), "the package has no command, or several of which none has its name", "Name the command."},
	{
		WrongNode, regexp.MustCompile(`(?s)npm (?:error|ERR!) code EBADENGINE.*?[Rr]equired:? \{"?node"?: ?["']([^"']+)["']`),
		"the package needs Node.js $1", "Install that version, or put its folder first in PATH.",
	},
	{WrongNode, regexp.MustCompile(`node: bad option: (\S+)`), "Node.js does not know the option $1", "A newer version of Node.js may be needed."},
	{WrongNode, regexp.MustCompile(`No such built-in module: (\S+)`), "Node.js has no module $1", "A newer version of Node.js is needed."},
	{
		WrongNode, regexp.MustCompile(`(?i)((?:requires?|needs?|minimum|at least|upgrade to|unsupported|not supported)[^\n]{0,40}\bnode(?:\.?js)?\b[^\n]{0,30}?\d[^\n]{0,60}|\bnode(?:\.?js)?\b[^\n]{0,30}\d[^\n]{0,30}(?:or (?:higher|newer|later|above)|is required|not supported)[^\n]{0,60})`),
		"it says: $1", "Install that version of Node.js, or put its folder first in PATH.",
	},
	{Incomplete, regexp.MustCompile(`(?:Cannot find (?:module|package)) '([^']+)'`), "it cannot find its module $1", "The installation is incomplete: install it again."},
	{WrongNode, regexp.MustCompile(`(SyntaxError: [^\n]*)[\s\S]*\n(Node\.js v[\d.]+)`), "$2 does not understand the program: $1", "A newer version of Node.js may be needed."},
	{
		InterpreterMissing, regexp.MustCompile("(?:version `)?((?:GLIBC|GLIBCXX|CXXABI)_[\\d.]+)'? not found"),
		"the program needs $1, which this system does not have",
		"The system is older than the program expects; there may be a build for musl, or a package of npm.",
	},
	{InterpreterMissing, regexp.MustCompile(`error while loading shared libraries: ([^:\n]+)`), "the program needs the library $1, which is not installed", "Install the package of the system that has it."},
	{InterpreterMissing, regexp.MustCompile(`Library not loaded: (\S+)`), "the program needs the library $1, which is not installed", ""},
	{
		InterpreterMissing, regexp.MustCompile(`(?:env|/usr/bin/env): [‘'"]?([^’'":\n]+)[’'"]?: No such file or directory`),
		"the program is run by $1, which is not in PATH", "Install $1, or put its folder into PATH.",
	},
	{NotPublished, regexp.MustCompile(`(?:Because there is no version of|No solution found when resolving)[^\n]*`), "uv cannot find the package or that version of it", ""},
	{DownloadFailed, regexp.MustCompile(`error: (Failed to fetch[^\n]*|Request failed[^\n]*|Could not connect[^\n]*)`), "uv cannot fetch the package: $1", "Check the network, HTTPS_PROXY and UV_DEFAULT_INDEX."},
	{
		LoginRequired, regexp.MustCompile(`(?i)(?:^|\n)([^\n]*(?:not (?:logged|signed) in|(?:please|must|need to|have to) (?:log|sign) ?in|login required|authentication required|not authenticated|(?:no|missing|invalid) api[ _-]?key|api[ _-]?key (?:is )?(?:not set|missing|required))[^\n]*)`),
		"it says: $1", "Log in with the agent's own command, or set its key.",
	},
}

var (
	// npmWarning matches a line of an npm warning, which may be unrelated to the failure.
	npmWarning = regexp.MustCompile(`(?m)^npm (?:warn|WARN).*\n?`)
	// engineWarning is searched for in these if nothing else is found.
	engineWarning = sign{
		WrongNode, regexp.MustCompile(`npm (?:warn|WARN) EBADENGINE\s+required: \{ node: '([^']+)' \},?\n\s*npm (?:warn|WARN) EBADENGINE\s+current: \{ node: '([^']+)'`),
		"the package needs Node.js $1, and this is $2", "Install that version, or put its folder first in PATH.",
	}
)

// find searches for the sign.
func (s *sign) find(output string) (Problem, bool) {
	at := s.pattern.FindStringSubmatchIndex(output)
	if at == nil {
		return Problem{}, false
	}
	expand := func(template string) string {
		return short(strings.TrimSpace(string(s.pattern.ExpandString(nil, template, output, at))))
	}
	return Problem{Kind: s.kind, Text: expand(s.text), Advice: expand(s.advice), Blocks: true}, true
}

// Explain searches the output of a program, such as its standard error, for signs of a problem with a known cause: a
// package that cannot be fetched, a wrong version of Node.js, a missing library. Only the last 64 KiB are read.
func Explain(output string) (Problem, bool) {
	const most = 64 << 10
	output = output[max(0, len(output)-most):]
	errors := npmWarning.ReplaceAllString(output, "")
	for i := range signs {
		if p, ok := signs[i].find(errors); ok {
			return p, true
		}
	}
	return engineWarning.find(output)
}

// short is the beginning of a text.
func short(text string) string {
	const most = 500
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
