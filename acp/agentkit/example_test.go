package agentkit_test

import (
	"context"
	"log"
	"os"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/sessionstore"
)

// An agent that counts prompts, whose sessions are there again in its next process.
func ExampleSessions() {
	dir, err := os.MkdirTemp("", "sessions") // a real agent uses sessionstore.DefaultDir
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := sessionstore.Open(dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	type counter struct{ Prompts int }
	sessions := agentkit.NewSessions(agentkit.Config[counter]{
		Store:     store,
		WhileBusy: agentkit.Queue,
		Prompt: func(ctx context.Context, t *agentkit.Turn[counter], req *acp.PromptRequest) (*acp.PromptResponse, error) {
			t.State.Prompts++
			if err := t.SaveState(ctx); err != nil {
				return nil, err
			}
			return nil, t.Sayf(ctx, "This is prompt %d.", t.State.Prompts)
		},
	})
	defer sessions.Close()
	talk(sessions.Handlers(), sessions.Options(nil)) // a real agent calls sessions.Serve, without Close

	// Output:
	// This is prompt 1.
	// This is prompt 2.
	// loaded: [hello This is prompt 1. hello This is prompt 2.]
}
