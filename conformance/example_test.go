package conformance_test

import (
	"context"
	"fmt"
	"log"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
)

// A test whose agent sends text content without a text. The tap is at one end of the connection and sees both
// directions.
func ExampleTap() {
	t := &printer{} // in a test, its *testing.T
	defer t.end()
	ctx := context.Background()
	agentEnd, clientEnd := acp.Pipe()
	agent, err := acp.StartAgent(ctx, agentEnd, acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: "s-1"}, nil
		},
		Prompt: func(ctx context.Context, session *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
			wrong := map[string]any{"sessionId": "s-1", "update": map[string]any{
				"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text"},
			}}
			if err := rpc.Notify(ctx, session, acp.MethodSessionUpdate, wrong); err != nil {
				return nil, err
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	client, err := acp.Connect(ctx, conformance.Tap(t, conformance.Client, clientEnd, nil), acp.ClientHandlers{}, nil)
	if err != nil {
		log.Fatal(err)
	}
	session, err := client.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/work"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := session.Prompt(ctx, acp.TextBlock("hello")); err != nil {
		log.Fatal(err)
	}
	if err := client.Close(); err != nil {
		log.Fatal(err)
	}
	if err := agent.Wait(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// failed: agent → client: INI-6 MUST: session/update: /update/content: missing property "text" (ContentBlock text)
	// 	{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":{"content":{"type":"text"},"sessionUpdate":"agent_message_chunk"}}}
}

// printer is a conformance.TB that prints.
type printer struct{ cleanups []func() }

func (*printer) Helper()                           {}
func (*printer) Errorf(format string, args ...any) { fmt.Printf("failed: "+format+"\n", args...) }
func (*printer) Logf(string, ...any)               {}
func (p *printer) Cleanup(f func())                { p.cleanups = append(p.cleanups, f) }

func (p *printer) end() {
	for _, f := range p.cleanups {
		f()
	}
}
