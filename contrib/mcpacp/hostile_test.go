package mcpacp_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/contrib/mcpacp"
	"github.com/acpgo/sdk/internal/test/tier"
)

// Messages that are valid JSON, but not valid MCP, do not end the agent, and other servers work on. The MCP SDK panics on
// some of them.
func TestOddMessages(t *testing.T) {
	tier.Need(t, tier.Normal)
	const capabilities = `{"protocolVersion":"2025-06-18","serverInfo":{"name":"x","version":"1"},` +
		`"capabilities":{"tools":{},"resources":{},"prompts":{}}}`
	const first = "before tools/call"
	opts := &mcpacp.Options{Logger: slog.New(slog.DiscardHandler)}
	opts.Client.ElicitationHandler = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"a": nil}}, nil
	}
	opts.Client.ElicitationCompleteHandler = func(context.Context, *mcp.ElicitationCompleteNotificationRequest) {}
	for name, raw := range map[string]map[string]string{
		"initialize":    {"initialize": `null`},
		"discover":      {"server/discover": `null`},
		"empty":         {"server/discover": `{}`},
		"list":          {"tools/list": `null`},
		"tool":          {"tools/list": `{"tools":[null,{"name":"echo","inputSchema":{"type":"object"}}]}`},
		"resources":     {"initialize": capabilities, "resources/list": `{"resources":[null]}`, "prompts/list": `{"prompts":[null]}`},
		"no resources":  {"initialize": capabilities, "resources/list": `null`, "prompts/list": `null`},
		"result":        {"tools/call": `null`},
		"content":       {"tools/call": `{"content":[null]}`},
		"type":          {"tools/call": `{"content":[{}]}`},
		"resource":      {"tools/call": `{"content":[{"type":"resource","resource":null}]}`},
		"link":          {"tools/call": `{"content":[{"type":"resource_link"}]}`},
		"input":         {"tools/call": `{"resultType":"input_required","inputRequests":{"a":null}}`},
		"progress":      {first: `{"jsonrpc":"2.0","method":"notifications/progress"}`},
		"null progress": {first: `{"jsonrpc":"2.0","method":"notifications/progress","params":null}`},
		"change":        {first: `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":null}`},
		"complete":      {first: `{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":null}`},
		"answer":        {first: `{"jsonrpc":"2.0","id":99,"result":{}}`},
		"elicitation":   {first: `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"requestedSchema":{"properties":{"a":null}}}}`},
		"sampling":      {first: `{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"messages":[null]}}`},
		"nothing":       {first: `{"jsonrpc":"2.0"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mode, err := json.Marshal(raw)
			if err != nil {
				t.Fatal(err)
			}
			h := open(t, opts, server(t, "bad", "raw "+string(mode)), server(t, "good", "plain"))
			_, _ = h.session.Prompt(t.Context(), acp.TextBlock("resources")) // an error of the turn is fine
			h.prompt(t, "tools", "bad__echo {}", "good__ask")
			h.await(t, `other: good: ask, completed: "fine"`)
		})
	}
}
