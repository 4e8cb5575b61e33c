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
		Prompt: func(ctx context.Context, s *agentkit.Session[state], req *acpv2.PromptRequest) (acpv2.IdleStateUpdate, error) {
			message := acpv2.MessageID(rand.Text())
			return acpv2.EndTurn(), s.Update(ctx, acpv2.AgentMessageText(message, "Hello!"))
		},
	})
	defer sessions.Close()
	opts := &acpv2.AgentOptions{Info: acpv2.Implementation{Name: "my-agent", Version: "1.0"}}
	if err := acpv2.ServeAgent(context.Background(), acpv2.Stdio(), sessions.Handlers(), opts); err != nil {
		log.Print(err)
	}
}
