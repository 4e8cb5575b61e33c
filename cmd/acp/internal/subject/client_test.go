package subject

import (
	"os/exec"
	"testing"

	"github.com/acpgo/sdk/conformance/probe"
)

// TestQuitOfEndedClient is a client that has ended by itself, for example because its agent has: its user can still be said
// to end it.
func TestQuitOfEndedClient(t *testing.T) {
	cmd := exec.Command("go", "version")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	p := &client{cmd: cmd, stdin: stdin, exited: make(chan struct{})}
	close(p.exited)
	if (&Client{}).user(p)(probe.ActQuit) == nil {
		t.Error("a client that has ended cannot be ended")
	}
}
