package subject

import (
	"bytes"
	"os/exec"
	"testing"

	"github.com/acpgo/sdk/conformance/probe"
	"github.com/acpgo/sdk/internal/test/must"
)

// TestQuitOfEndedClient: a client that has already ended, for example because its agent has, can still be told to quit.
func TestQuitOfEndedClient(t *testing.T) {
	cmd := exec.Command("go", "version")
	stdin := must.Get(cmd.StdinPipe())(t)
	must.Do(t, cmd.Run())
	p := &client{cmd: cmd, stdin: stdin, exited: make(chan struct{})}
	close(p.exited)
	if (&Client{}).user(p)(probe.ActQuit) == nil {
		t.Error("a client that has ended cannot be ended")
	}
}

// typed is a client's standard input.
type typed struct{ bytes.Buffer }

func (*typed) Close() error { return nil }

// TestSessionWord: typed text contains the id of the session that was opened last. Without a session nothing can be
// typed.
func TestSessionWord(t *testing.T) {
	stdin := &typed{}
	p := &client{stdin: stdin, exited: make(chan struct{})}
	user := (&Client{Type: map[probe.Action]string{probe.ActLoad: ":load {session}"}}).user(p)
	if user(probe.ActLoad) != nil || stdin.Len() > 0 {
		t.Errorf("typed %q without a session", stdin)
	}
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s-1"}}`, `{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s-2"}}`,
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-3"}}`, `not JSON`,
	} {
		if sent, err := p.sends([]byte(message)); err != nil || string(sent) != message {
			t.Errorf("sent %s, %v", sent, err)
		}
	}
	if user(probe.ActLoad) == nil || stdin.String() != ":load s-2\n" {
		t.Errorf("typed %q", stdin)
	}
}
