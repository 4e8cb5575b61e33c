package main

import (
	"context"
	"io"
	"log"
	"testing"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/acp/proxy"
	"github.com/acpgo/sdk/conformance/acptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The rules allow and reject; the user is asked about everything else.
func TestGuard(t *testing.T) {
	log.SetOutput(io.Discard)
	rules, err := policy.New([]policy.Rule{
		{Effect: policy.Allow, Kinds: []acp.ToolKind{acp.ToolKindExecute}, Commands: []string{"go test"}},
		{Effect: policy.Reject, Commands: []string{"rm **"}},
	}, &policy.Options{POSIXShell: true})
	if err != nil {
		t.Fatal(err)
	}
	run := func(command string) func(context.Context, *agentkit.Turn[any]) error {
		return func(ctx context.Context, turn *agentkit.Turn[any]) error {
			call, err := turn.StartToolCall(ctx, "Run", acp.WithKind(acp.ToolKindExecute), acp.WithInput(map[string]string{"command": command}))
			if err != nil {
				return err
			}
			// The request has the id alone, and what it is about is in the update before it.
			outcome, err := turn.RequestPermission(ctx, acp.ToolCallUpdate{ToolCallID: call.ID()},
				acp.AllowOnce("yes", "Yes"), acp.RejectOnce("no", "No"))
			if err != nil {
				return err
			}
			option, _ := outcome.Selected()
			return turn.Sayf(ctx, "%s", option)
		}
	}
	near, far := acp.Pipe()
	served := make(chan error, 1)
	agent := acptest.Script(t, nil, run("go test"), run("rm -r x"), run("make"), run("go test"))
	go func() { served <- proxy.Serve(t.Context(), far, agent, guard(rules), nil) }()
	client := acptest.Dial(t, near, nil)
	asked := 0
	client.Permit = func(*acp.RequestPermissionRequest) acp.RequestPermissionOutcome {
		asked++
		return acp.PermissionCancelled()
	}
	session := client.StartSession(t)
	for i, want := range []struct {
		option acp.PermissionOptionID
		asked  int
	}{{"yes", 0}, {"no", 0}, {"", 1}, {"yes", 1}} {
		if reply := client.Say(t, session, "go on"); reply.Text != string(want.option) || asked != want.asked {
			t.Errorf("%d: the agent got %q, and the user was asked %d times", i, reply.Text, asked)
		}
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
