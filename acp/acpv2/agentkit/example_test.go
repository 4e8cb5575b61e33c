package agentkit_test

import (
	"context"
	"crypto/rand"
	"log"

	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/acp/acpv2/agentkit"
	"github.com/acpgo/sdk/acp/sessionstore"
)

// An agent whose sessions are listed, resumed with their history, also when it was started again, closed and deleted.
func Example() {
	dir, err := sessionstore.DefaultDir("my-agent")
	if err != nil {
		log.Fatal(err)
	}
	store, err := agentkit.OpenStore(dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	type state struct{ Model string }
	sessions := agentkit.NewSessions(agentkit.Config[state]{
		Store: store,
		Prompt: func(ctx context.Context, s *agentkit.Session[state], req *v2draft.PromptRequest) (v2draft.IdleStateUpdate, error) {
			message := v2draft.MessageID(rand.Text())
			return v2draft.EndTurn(), s.Update(ctx, v2draft.AgentMessageText(message, "Hello!"))
		},
	})
	defer sessions.Close()
	opts := &v2draft.AgentOptions{Info: v2draft.Implementation{Name: "my-agent", Version: "1.0"}}
	if err := v2draft.ServeAgent(context.Background(), v2draft.Stdio(), sessions.Handlers(), opts); err != nil {
		log.Print(err)
	}
}
