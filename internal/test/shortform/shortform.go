// Package shortform has the short form in which the conversations of requirements are written: it is expanded to a
// transcript (package conformance/transcript).
package shortform

import (
	"regexp"
	"strings"
	"testing"

	"github.com/acpgo/sdk/conformance/transcript"
)

// A line of the short form is one of these, or a line of a transcript:
//
//	-> session/new#1 {params}    a request with the id 1, which may be any JSON or a $name
//	-> session/cancel {params}   a notification
//	<- #1 {result}               the answer to request 1
//	<- #1 -32602 {data}          or an error, with that data if any is given
var shortForm = regexp.MustCompile(`^(->|<-)([*&]?) ([a-z_$][\w$/.]*)?(?:#(\S+))?(?: (-\d+))?(?: (.+))?$`)

// Expand makes a transcript of the short form.
func Expand(t *testing.T, text string) *transcript.Script {
	t.Helper()
	var long strings.Builder
	long.WriteString("-- transcript --\n")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m := shortForm.FindStringSubmatch(line); m != nil && m[3]+m[4] != "" {
			line = m[1] + m[2] + " " + envelope(m[3], m[4], m[5], m[6])
		}
		long.WriteString(line + "\n")
	}
	script, err := transcript.Parse(t.Name(), []byte(long.String()))
	if err != nil {
		t.Fatalf("%v in\n%s", err, long.String())
	}
	return script
}

func envelope(method, id, code, body string) string {
	members := []string{`"jsonrpc":"2.0"`}
	add := func(name, value string) {
		if value != "" {
			members = append(members, `"`+name+`":`+value)
		}
	}
	if strings.HasPrefix(id, "$") {
		id = `"` + id + `"`
	}
	add("id", id)
	switch {
	case method != "":
		add("method", `"`+method+`"`)
		add("params", body)
	case code == "":
		add("result", body)
	case body == "":
		add("error", `{"code":`+code+`,"message":"$any","...":""}`)
	default:
		add("error", `{"code":`+code+`,"message":"$any","data":`+body+`}`)
	}
	return "{" + strings.Join(members, ",") + "}"
}
