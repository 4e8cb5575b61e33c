package mcpacp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/contrib/mcpacp"
)

// agentWithTools is the transport to an agent in memory, which calls the tool find_book in each turn, and says what it
// returned.
func agentWithTools(ctx context.Context) acp.Transport {
	agentEnd, clientEnd := acp.Pipe()
	var agent *acp.AgentConn
	var server acp.MCPServerACPID
	agent, err := acp.StartAgent(ctx, agentEnd, acp.AgentHandlers{
		NewSession: func(_ context.Context, _ *acp.AgentConn, req *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			server = req.MCPServers[0].Variant.(*acp.MCPServerACP).ServerID
			return &acp.NewSessionResponse{SessionID: "session-1"}, nil
		},
		Prompt: func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			title := req.Prompt[0].Text()
			res, err := agent.MessageMCP(ctx, &acp.MessageMCPRequest{
				ServerID: server, RequestID: "1", Method: "tools/call", Params: acp.Some(map[string]json.RawMessage{
					"name": acp.Raw("find_book"), "arguments": acp.Raw(map[string]string{"title": title}), "_meta": json.RawMessage("{" + modern + "}"),
				}),
			})
			if err != nil {
				return nil, err
			}
			var result mcp.CallToolResult
			if err := json.Unmarshal(res.Variant.(*acp.MessageMCPResponseResult).Result, &result); err != nil {
				return nil, err
			}
			text := result.Content[0].(*mcp.TextContent).Text
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, s.Update(ctx, acp.AgentMessageText(text))
		},
		MessageMCPNotification: func(context.Context, *acp.AgentConn, *acp.MessageMCPNotification) error { return nil },
	}, &acp.AgentOptions{MCP: acp.MCPCapabilities{ACP: true, HTTP: true}, Experimental: acp.FeatureMCPOverACP})
	if err != nil {
		log.Fatal(err)
	}
	return clientEnd
}

// A client with a tool of its own, which any agent can use.
func ExampleProvider() {
	ctx := context.Background()
	type book struct {
		Title string `json:"title"`
	}

	shelf := mcp.NewServer(&mcp.Implementation{Name: "shelf", Version: "1.0"}, nil)
	mcp.AddTool(shelf, &mcp.Tool{Name: "find_book", Description: "Finds a book on the user's shelf."},
		func(_ context.Context, _ *mcp.CallToolRequest, b book) (*mcp.CallToolResult, any, error) {
			text := fmt.Sprintf("%s is on the third board.", b.Title)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
		})

	handlers := acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
			if chunk, ok := n.Update.Variant.(*acp.SessionUpdateAgentMessageChunk); ok {
				text := chunk.Content.Text()
				fmt.Println(text)
			}
			return nil
		},
	}
	options := acp.ClientOptions{Info: acp.Implementation{Name: "reader", Version: "1.0"}}
	transport := agentWithTools(ctx)

	var tools mcpacp.Provider
	tools.Enable(&handlers, &options)
	conn, err := acp.Connect(ctx, transport, handlers, &options)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	offer, err := tools.Provide(conn, "shelf", shelf)
	if err != nil {
		log.Fatal(err)
	}
	session, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/home/ada", MCPServers: []acp.MCPServer{offer.Declaration}})
	if err != nil {
		log.Fatal(err)
	}

	fmt.Println("over HTTP:", offer.Bridged)
	if _, err := session.Prompt(ctx, acp.TextBlock("Dune")); err != nil {
		log.Fatal(err)
	}
	// Output:
	// over HTTP: false
	// Dune is on the third board.
}
