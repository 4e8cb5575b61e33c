package parrot

import (
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/conformance"
)

func TestTurn(t *testing.T) {
	agentEnd, clientEnd := acp.Pipe()
	tapped := conformance.Tap(t, conformance.Client, clientEnd, nil)
	agent, err := acp.StartAgent(t.Context(), agentEnd, Handlers(), &acp.AgentOptions{Info: acp.Implementation{Name: "parrot", Version: "1.0"}})
	if err != nil {
		t.Fatal(err)
	}
	client, err := acp.Connect(t.Context(), tapped, acp.ClientHandlers{}, &acp.ClientOptions{Info: acp.Implementation{Name: "test", Version: "1.0"}})
	if err != nil {
		t.Fatal(err)
	}
	session, err := client.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/work"})
	if err != nil {
		t.Fatal(err)
	}
	res, err := session.Prompt(t.Context(), acp.TextBlock("hello"))
	if err != nil || res.StopReason != acp.StopReasonEndTurn {
		t.Fatal(res, err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	if err := agent.Wait(); err != nil {
		t.Error(err)
	}
}
