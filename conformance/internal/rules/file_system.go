// Rules of the page file-system. Version 2 has no files of the client.

package rules

import (
	"regexp"

	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/judge"
)

var fileSystemRules = []judge.Rule{
	{
		ID: "FS-2",
		Breaks: "fs/read_text_file to a client that does not advertise fs.readTextFile, or fs/write_text_file to one " +
			"that does " +
			"not advertise fs.writeTextFile.",
		On:    requests(judge.MethodReadFile, judge.MethodWriteFile),
		Check: func(e *judge.Event) { e.Needs(&e.Client, clientCapability[e.Method]) },
	},
	{
		ID: "FS-6",
		Breaks: "An answer to fs/read_text_file whose message says that the file does not exist, with a code other " +
			"than -32002; " +
			"or (as advice) one with the code -32002 that does not name the file in data.uri.",
		On: failures(judge.MethodReadFile),
		Check: func(e *judge.Event) {
			code, ok := e.Content.Integer("code")
			switch {
			case !ok:
			case code == codeNotFound && !e.Given("data", "uri") && !e.Given("data", "sessionId"):
				e.Broken("/data", "data.uri does not name the file").Because(e.Request.At, "the request").Mildly(finding.Advice)
			case code != codeNotFound && noSuchFile.MatchString(e.Text("message")):
				e.Broken("/code", "got code %d, want %d for a file that does not exist", code, codeNotFound).
					Because(e.Request.At, "the request")
			}
		},
	},
}

// noSuchFile matches the messages of systems and libraries for a file that does not exist.
var noSuchFile = regexp.MustCompile(`(?i)\bENOENT\b|no such file|file (does not|doesn't) exist|file not found`)
