// Transcripts in the short form play the raw peer of an agent or a client made with this package.

package acp_test

import (
	"errors"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/transcript"
	"github.com/acpgo/sdk/internal/test/shortform"
)

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
	transcript.Run(t, shortform.Expand(t, script+`
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
	whole := shortform.Expand(t, `-> initialize#$hello {"protocolVersion":1,"...":""}
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
