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
//	-> session/new#1 {params}    a request with the id 1, which may be any JSON, a word or a $name
//	-> session/cancel {params}   a notification
//	<- #1 {result}               the answer to request 1
//	<- #1 -32602 {data}          or an error, with that data if any is given
var (
	shortForm = regexp.MustCompile(`^(->|<-)([*&]?)( .+)$`)
	word      = regexp.MustCompile(`^[$a-z]\w*$`)
	message   = regexp.MustCompile(`^ ([a-z_$][\w$/.]*)?(?:#(\S+))?(?: (-?\d+))?(?: (.+))?$`)
)

// Expand makes a transcript of the short form.
func Expand(t *testing.T, text string) *transcript.Script {
	t.Helper()
	var long strings.Builder
	long.WriteString("-- transcript --\n")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m := shortForm.FindStringSubmatch(line); m != nil {
			line = m[1] + m[2] + " " + strings.TrimPrefix(Message(m[3]), " ")
		}
		long.WriteString(line + "\n")
	}
	script, err := transcript.Parse(t.Name(), []byte(long.String()))
	if err != nil {
		t.Fatalf("%v in\n%s", err, long.String())
	}
	return script
}

// Message returns the message that the short form after an arrow and its mark stands for. What is not in the short form
// is returned as it is.
func Message(text string) string {
	m := message.FindStringSubmatch(text)
	if m == nil || m[1]+m[2] == "" {
		return text
	}
	return envelope(m[1], m[2], m[3], m[4])
}

func envelope(method, id, code, body string) string {
	members := []string{`"jsonrpc":"2.0"`}
	add := func(name, value string) {
		if value != "" {
			members = append(members, `"`+name+`":`+value)
		}
	}
	if word.MatchString(id) && id != "null" {
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
