package transcript_test

import (
	"context"
	"fmt"
	"log"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/transcript"
)

// A client that sends a request too early, played against an agent built with package acp.
func Example() {
	script, err := transcript.Parse("too early", []byte(`
-- transcript --
-> {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/work", "mcpServers": []}}
<- {"jsonrpc": "2.0", "id": 1, "error": {"code": -32600, "message": "$any"}}
-> {"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": {"protocolVersion": 1}}
<- {"jsonrpc": "2.0", "id": 2, "result": {"protocolVersion": 1, "...": ""}}
`))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	agentEnd, clientEnd := acp.Pipe()
	agent, err := acp.StartAgent(ctx, agentEnd, acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: "s-1"}, nil
		},
		Prompt: func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error) {
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(script.Play(ctx, conformance.Client, clientEnd))
	if err := agent.Wait(); err != nil {
		log.Fatal(err)
	}
	// Output: <nil>
}
