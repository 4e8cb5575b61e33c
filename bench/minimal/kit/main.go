// Command kit is the smallest agent made with agentkit, for the cost of its size and build.
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
