// Rules of the page file-system. Version 2 has no files of the client.

package rules

import (
	"regexp"

	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/judge"
)

var fileSystemRules = []judge.Rule{
	{ID: "FS-2", On: requests(judge.MethodReadFile, judge.MethodWriteFile),
		Check: func(e *judge.Event) { e.Needs(&e.Client, clientCapability[e.Method]) }},
	{ID: "FS-6", On: failures(judge.MethodReadFile), Check: func(e *judge.Event) {
		code, ok := e.Content.Integer("code")
		switch {
		case !ok:
		case code == codeNotFound && !e.Given("data", "uri") && !e.Given("data", "sessionId"):
			e.Broken("/data", "data.uri does not name the file").Because(e.Request.At, "the request").Mildly(finding.Advice)
		case code != codeNotFound && noSuchFile.MatchString(e.Text("message")):
			e.Broken("/code", "got code %d, want %d for a file that does not exist", code, codeNotFound).
				Because(e.Request.At, "the request")
		}
	}},
}

// noSuchFile matches the messages of systems and libraries for a file that does not exist.
var noSuchFile = regexp.MustCompile(`(?i)\bENOENT\b|no such file|file (does not|doesn't) exist|file not found`)
