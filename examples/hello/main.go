// Command hello is the smallest complete agent: it repeats each prompt.
package main

import (
	"context"
	"log"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
)

func main() {
	sessions := agentkit.NewSessions(agentkit.Config[any]{Prompt: answer})
	if err := sessions.Serve(context.Background(), acp.Stdio(), nil); err != nil {
		log.Fatal(err)
	}
}

func answer(ctx context.Context, t *agentkit.Turn[any], req *acp.PromptRequest) (*acp.PromptResponse, error) {
	return nil, t.Sayf(ctx, "You said: %s", agentkit.PromptText(req))
}
