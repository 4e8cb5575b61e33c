package mcpacp_test

import (
	"context"
	"fmt"
	"log"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/contrib/mcpacp"
)

// agentWithTools is the transport to an agent in memory, which calls the tool find_book in each turn, and says what it
// returned.
func agentWithTools(ctx context.Context) acp.Transport {
	agentEnd, clientEnd := acp.Pipe()
	allow := func(context.Context, agentkit.Asker, *mcpacp.Tool, *agentkit.ToolCall) error { return nil }
	c := config(&mcpacp.Options{Permit: allow})
	c.Prompt = func(ctx context.Context, t *agentkit.Turn[state], req *acp.PromptRequest) (*acp.PromptResponse, error) {
		args := acp.Raw(map[string]string{"title": agentkit.PromptText(req)})
		res, err := t.State.tools.Call(ctx, t, "shelf__find_book", args)
		if err != nil {
			return nil, err
		}
		return nil, t.Sayf(ctx, "%s", texts(res))
	}
	go func() {
		err := agentkit.NewSessions(c).Serve(ctx, agentEnd, &acp.AgentOptions{Experimental: acp.FeatureMCPOverACP})
		if err != nil {
			log.Fatal(err)
		}
	}()
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
