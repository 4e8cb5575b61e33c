package mcpacp_test

import (
	"context"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/contrib/mcpacp"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// Messages that are valid JSON, but not valid MCP, do not end the agent, and other servers work on. The MCP SDK panics on
// some of them.
func TestOddMessages(t *testing.T) {
	tier.Need(t, tier.Normal)
	const all = `initialize: result {"protocolVersion":"2025-06-18","serverInfo":{"name":"x","version":"1"},` +
		`"capabilities":{"tools":{"listChanged":true},"resources":{},"prompts":{}}}` + "\n"
	opts := &mcpacp.Options{Logger: slog.New(slog.DiscardHandler)}
	opts.Client.ElicitationHandler = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"a": nil}}, nil
	}
	opts.Client.ElicitationCompleteHandler = func(context.Context, *mcp.ElicitationCompleteNotificationRequest) {}
	for script := range strings.Lines(string(must.Get(os.ReadFile("testdata/odd.txt"))(t))) {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			if !strings.HasPrefix(script, "initialize") {
				script = all + script
			}
			h := open(t, opts, server(t, "bad", script), server(t, "good", ""))
			for _, list := range []string{"resources", "prompts"} {
				_, _ = h.session.Prompt(t.Context(), acp.TextBlock(list)) // an error of the turn is fine
			}
			h.prompt(t, "tools", "bad__echo {}", "good__ask")
			h.await(t, `other: good: ask, completed: "fine"`)
		})
	}
}

// Of the panics that a server causes, ten are logged.
func TestPanicFlood(t *testing.T) {
	tier.Need(t, tier.Normal)
	logged := &lines{}
	opts := &mcpacp.Options{Logger: slog.New(slog.NewTextHandler(logged, nil))}
	h := open(t, opts, server(t, "bad", `echo: result {"resultType":"input_required","inputRequests":{"a":null}}`))
	h.prompt(t, slices.Repeat([]string{"bad__echo {}"}, 12)...)
	want := append(slices.Repeat([]string{"handler panicked"}, 10), "are not logged")
	if got := regexp.MustCompile("handler panicked|are not logged").FindAllString(logged.String(), -1); !slices.Equal(got, want) {
		t.Errorf("logged %q, want %q", got, want)
	}
}

// After notifications without the params that they need, a server's later notifications are handled.
func TestNoParams(t *testing.T) {
	tier.Need(t, tier.Normal)
	last := make(chan struct{})
	opts := &mcpacp.Options{Logger: slog.New(slog.DiscardHandler)}
	opts.Client.ProgressNotificationHandler = func(context.Context, *mcp.ProgressNotificationClientRequest) { close(last) }
	open(t, opts, server(t, "bad", `
echo: lines 2 {"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":null}
echo: line {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"x","progress":1}}
echo: says fine`)).prompt(t, "bad__echo {}")
	select {
	case <-last:
	case <-time.After(time.Minute):
		t.Error("the last notification was not handled")
	}
}

// Requests of a server are refused while the agent's handlers are busy with many others.
func TestRequestFlood(t *testing.T) {
	tier.Need(t, tier.Normal)
	var asked atomic.Int32
	opts := &mcpacp.Options{CallTime: time.Minute}
	opts.Client.ElicitationHandler = func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		asked.Add(1)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	h := open(t, opts, server(t, "bad", `
ask: lines 100 {"jsonrpc":"2.0","id":"e$i","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object"}}}
answer 84: line {"jsonrpc":"2.0","id":$asked,"result":{"content":[{"type":"text","text":"84 were refused"}]}}`), server(t, "good", ""))
	h.prompt(t, "bad__ask", "good__ask")
	h.sees(t, `other: bad: ask, completed: "84 were refused"`, "agent: result: 84 were refused. ",
		`other: good: ask, completed: "fine"`, "agent: result: fine. ")
	if asked.Load() != 16 {
		t.Errorf("the agent was asked %d times", asked.Load())
	}
}
