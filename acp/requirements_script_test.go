// The short form in which the requirements' conversations are written. It is expanded to a transcript, which plays the
// raw peer of an agent or a client made with this package.

package acp_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/transcript"
)

// A line of the short form is one of these, or a line of a transcript:
//
//	-> session/new#1 {params}    a request with the id 1, which may be any JSON or a $name
//	-> session/cancel {params}   a notification
//	<- #1 {result}               the answer to request 1
//	<- #1 -32602 {data}          or an error, with that data if any is given
var shortForm = regexp.MustCompile(`^(->|<-)([*&]?) ([a-z_$][\w$/.]*)?(?:#(\S+))?(?: (-\d+))?(?: (.+))?$`)

// expand makes a transcript of the short form.
func expand(t *testing.T, text string) *transcript.Script {
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

// hello opens a script: a client with these capabilities initializes.
func hello(capabilities string) string {
	return `-> initialize#"hello" {"protocolVersion":1,"clientCapabilities":` + capabilities + `}
		<- #"hello" {"protocolVersion":1,"...":""}
		`
}

// sentBy judges what one side sends: the other is played, and sends what is wrong on purpose.
func sentBy(side conformance.Side) *conformance.TapOptions {
	return &conformance.TapOptions{
		Ignore: func(f conformance.Finding) bool { return f.Side != side },
		Accept: map[string]string{"PRM-1": "a script begins with what it is about, in a session that nobody has made"},
	}
}

// playClient plays the client of a script against an agent. What the agent sends is validated. In the
// end it must still answer, and have said nothing that the script has not.
func playClient(t *testing.T, handlers acp.AgentHandlers, opts *acp.AgentOptions, script string) {
	t.Helper()
	ours, theirs := acp.Pipe()
	tap := sentBy(conformance.Agent)
	if opts != nil && opts.Experimental != 0 {
		tap.Schema = conformance.V1Unstable()
	}
	agent, err := acp.StartAgent(t.Context(), conformance.Tap(t, conformance.Agent, ours, tap), complete(handlers), opts)
	if err != nil {
		t.Fatal(err)
	}
	transcript.Run(t, expand(t, script+`
		-> _alive#"alive"
		<- #"alive" -32601 {"method":"_alive"}
	`), conformance.Client, theirs)
	if err := agent.Wait(); err != nil {
		t.Error(err)
	}
}

// playAgent plays the agent of a script, whose answer to initialize is given, against a client, which
// does what do says. What the client sends is validated; in the end it must have said nothing that the
// script has not.
func playAgent(
	t *testing.T, handlers acp.ClientHandlers, opts *acp.ClientOptions, initialized, script string, do func(*acp.ClientConn),
) {
	t.Helper()
	ours, theirs := acp.Pipe()
	whole := expand(t, `-> initialize#$hello {"protocolVersion":1,"...":""}
		<- #$hello `+initialized+`
		`+script+`
		-> _alive#$alive
		<- #$alive {}
	`)
	played := make(chan struct{})
	go func() {
		defer close(played)
		transcript.Run(t, whole, conformance.Agent, theirs)
	}()
	defer func() { <-played }()
	tap := sentBy(conformance.Client)
	if opts != nil {
		experiment(tap, opts.Experimental)
	}
	conn, err := acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, ours, tap), handlers, opts)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}()
	do(conn)
	if _, err := rpc.Call[struct{}](t.Context(), conn.RPC(), "_alive", nil); err != nil {
		t.Error(err)
	}
}

// namedCall is a call that one side makes.
type namedCall struct {
	name string
	make func() error
}

// supported makes the calls, and returns the names of those that the other side supports.
func supported(t *testing.T, calls []namedCall) (made []string) {
	t.Helper()
	for _, call := range calls {
		switch err := call.make(); {
		case err == nil:
			made = append(made, call.name)
		case !errors.Is(err, acp.ErrUnsupported):
			t.Errorf("%s: %v", call.name, err)
		}
	}
	return made
}
