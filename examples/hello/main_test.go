package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/tier"
)

const runAs = "HELLO_TEST_RUN_AS"

func TestMain(m *testing.M) {
	if os.Getenv(runAs) == "agent" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// A turn with the agent as a process of its own, which ends by itself.
func TestHello(t *testing.T) {
	tier.Need(t, tier.Normal)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), runAs+"=agent", "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = t.Output()
	conn, err := acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, acp.Command(cmd), nil), acp.ClientHandlers{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	session, err := conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	turn := session.Stream(t.Context(), acp.TextBlock("hello"))
	for update := range turn.Updates() {
		text := update.AgentText()
		said.WriteString(text)
	}
	if res, err := turn.Result(); err != nil || res.StopReason != acp.StopReasonEndTurn || said.String() != "You said: hello" {
		t.Errorf("%q, %+v, %v", &said, res, err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if err := conn.Wait(); err != nil {
		t.Errorf("the agent ended with %v", err)
	}
}
