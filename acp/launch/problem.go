package launch

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"sync"

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

//go:embed signs.txt
var signsText string

// signs returns those of signs.txt.
var signs = sync.OnceValue(func() (all []sign) {
	_, blocks, _ := strings.Cut(signsText, "\n\n") // the first block explains the others
	for block := range strings.SplitSeq(blocks, "\n\n") {
		var s sign
		for line := range strings.Lines(block) {
			member, value, _ := strings.Cut(line, " ")
			switch value = strings.TrimSpace(value); member {
			case "kind":
				s.kind = ProblemKind(value)
			case "pattern":
				s.pattern = regexp.MustCompile(value)
			case "text":
				s.text = value
			case "advice":
				s.advice = value
			default:
				panic("signs.txt: " + line)
			}
		}
		all = append(all, s)
	}
	return all
})

// npmWarning matches a line of an npm warning, which may be unrelated to the failure.
var npmWarning = regexp.MustCompile(`(?m)^npm (?:warn|WARN).*\n?`)

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
	signs := signs()
	last := len(signs) - 1
	for _, s := range signs[:last] {
		if p, ok := s.find(errors); ok {
			return p, true
		}
	}
	return signs[last].find(output)
}

// short is the beginning of a text.
func short(text string) string {
	const most = 500
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
