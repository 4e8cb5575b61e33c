// Rules of the page file-system. Version 2 has no files of the client.

package conformance

import (
	"regexp"
)

var fileSystemRules = []rule{
	{
		ID:     "FS-2",
		Breaks: "fs/read_text_file to a client that does not state fs.readTextFile, or fs/write_text_file to one that does not state fs.writeTextFile.",
		Right: connected(`{"fs":{"readTextFile":true}}`) + `
			<- {"jsonrpc":"2.0","id":"r","method":"fs/read_text_file","params":{"sessionId":"s","path":"/work/a.go"}}
			-> {"jsonrpc":"2.0","id":"r","result":{"content":"package a"}}`,
		Wrong: `<- {"jsonrpc":"2.0","id":"r","method":"fs/read_text_file","params":{"sessionId":"s","path":"/work/a.go"}}`,
		on:    requests(methodReadFile, methodWriteFile),
		check: func(e *event) { e.needs(&e.client, clientCapability[e.method]) },
	},
	{
		ID:     "FS-6",
		Breaks: "An answer to fs/read_text_file that says in words that the file does not exist, with another code than -32002; or (as advice) one with the code -32002 that does not name the file in data.uri.",
		Right: connected(`{"fs":{"readTextFile":true}}`) + `
			<- {"jsonrpc":"2.0","id":"r","method":"fs/read_text_file","params":{"sessionId":"s","path":"/work/a.go"}}
			-> {"jsonrpc":"2.0","id":"r","error":{"code":-32002,"message":"no such file","data":{"uri":"file:///work/a.go"}}}`,
		Wrong: connected(`{"fs":{"readTextFile":true}}`) + `
			<- {"jsonrpc":"2.0","id":"r","method":"fs/read_text_file","params":{"sessionId":"s","path":"/work/a.go"}}
			-> {"jsonrpc":"2.0","id":"r","error":{"code":-32603,"message":"ENOENT: no such file or directory"}}`,
		on: failures(methodReadFile),
		check: func(e *event) {
			code, ok := integer(e.content, "code")
			switch {
			case !ok:
			case code == codeNotFound && !e.given("data", "uri") && !e.given("data", "sessionId"):
				e.broken("/data", "does not name the file in uri").because(e.request.at, "the request").mildly(Advice)
			case code != codeNotFound && noSuchFile.MatchString(e.text("message")):
				e.broken("/code", "a file that does not exist has the code %d", codeNotFound).because(e.request.at, "the request")
			}
		},
	},
}

// noSuchFile is how systems and libraries say it.
var noSuchFile = regexp.MustCompile(`(?i)\bENOENT\b|no such file|file (does not|doesn't) exist|file not found`)
