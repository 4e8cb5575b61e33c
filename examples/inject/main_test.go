package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/proxy"
	"github.com/acpgo/sdk/conformance/acptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The agent gets the file with every prompt, as it is then.
func TestInject(t *testing.T) {
	file := filepath.Join(t.TempDir(), "notes.md")
	repeat := func(ctx context.Context, turn *agentkit.Turn[any]) error {
		return turn.Sayf(ctx, "%s", agentkit.PromptText(turn.Request()))
	}
	near, far := acp.Pipe()
	served := make(chan error, 1)
	agent := acptest.Script(t, nil, repeat, repeat)
	go func() { served <- proxy.Serve(t.Context(), far, agent, inject(file), nil) }()
	client := acptest.Dial(t, near, nil)
	session := client.StartSession(t)
	if _, err := session.Prompt(t.Context(), acp.TextBlock("/help")); err == nil || !strings.Contains(err.Error(), "notes.md") {
		t.Errorf("without a file the prompt fails with %v", err)
	}
	for _, notes := range []string{"Be brief.", "Be kind."} {
		if err := os.WriteFile(file, []byte(notes), 0o600); err != nil {
			t.Fatal(err)
		}
		if reply := client.Say(t, session, "/help"); !strings.HasPrefix(reply.Text, "/help") || !strings.HasSuffix(reply.Text, notes) {
			t.Errorf("the agent got %q", reply.Text)
		}
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
