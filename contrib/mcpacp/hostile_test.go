package mcpacp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
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
	for name, results := range map[string]map[string]string{
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
		"notification":  {first: `{"jsonrpc":"2.0","id":1,"method":"notifications/progress","params":{"progressToken":"1"}}`},
		"ping":          {first: `{"jsonrpc":"2.0","method":"ping"}`},
		"cancelled":     {first: `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`},
		"null id":       {first: `{"jsonrpc":"2.0","id":null,"method":"ping"}`},
		"answers":       {first: `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}`},
		"deep":          {"tools/call": `{"content":[],"structuredContent":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`},
		"nothing":       {first: `{"jsonrpc":"2.0"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, opts, raw(t, results), server(t, "good", "plain"))
			_, _ = h.session.Prompt(t.Context(), acp.TextBlock("resources")) // an error of the turn is fine
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
	h := open(t, opts, raw(t, map[string]string{"tools/call": `{"resultType":"input_required","inputRequests":{"a":null}}`}))
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
	notifications := strings.Repeat(`{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":null}`+"\n", 2) +
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"x","progress":1}}`
	open(t, opts, raw(t, map[string]string{"before tools/call": notifications})).prompt(t, "bad__echo {}")
	select {
	case <-last:
	case <-time.After(time.Minute):
		t.Error("the last notification was not handled")
	}
}

// raw declares a server that answers methods with the given results; see misbehave.
func raw(t *testing.T, results map[string]string) acp.MCPServer {
	t.Helper()
	mode, err := json.Marshal(results)
	if err != nil {
		t.Fatal(err)
	}
	return server(t, "bad", "raw "+string(mode))
}

// Lists of resources and prompts end at MaxTools, also if they have one page.
func TestMaxTools(t *testing.T) {
	tier.Need(t, tier.Normal)
	h := open(t, &mcpacp.Options{MaxTools: 2}, raw(t, map[string]string{
		"initialize":     `{"protocolVersion":"2025-06-18","capabilities":{"resources":{},"prompts":{}},"serverInfo":{"name":"x","version":"1"}}`,
		"resources/list": `{"resources":[{"uri":"x:1","name":"1"},null,{"uri":"x:2","name":"2"},{"uri":"x:3","name":"3"}]}`,
		"resources/read": `{"contents":[null,{"uri":"x:1","text":"read"}]}`,
		"prompts/list":   `{"prompts":[{"name":"1"},{"name":"2"},{"name":"3"}]}`,
		"prompts/get":    `{"messages":[null,{"role":"user","content":{"type":"text","text":"got"}}]}`,
	}))
	for _, step := range []string{"resources", "prompts"} {
		_, err := h.session.Prompt(t.Context(), acp.TextBlock(step))
		if err == nil || !strings.Contains(err.Error(), "it has more than 2 items") {
			t.Errorf("%s: %v", step, err)
		}
	}
	if diff := cmp.Diff([]string{"agent: bad x:1: read. bad x:2: read. ", "agent: bad 1: got. bad 2: got. "}, h.seen()); diff != "" {
		t.Errorf("the user saw (-want +got):\n%s", diff)
	}
}

// Content that ACP, or a model, refuses becomes a text for the client and for the model; the other content is shown.
func TestContent(t *testing.T) {
	tier.Need(t, tier.Normal)
	const leftOut = "(A part of the result is left out: "
	for name, test := range map[string]struct {
		content string
		want    string
	}{
		"image without a type":      {`{"type":"image","data":"eA=="}`, leftOut + `image with the media type "".)`},
		"image with another type":   {`{"type":"image","data":"eA==","mimeType":"text/html"}`, leftOut + `image with the media type "text/html".)`},
		"image with an odd type":    {`{"type":"image","data":"eA==","mimeType":"image/"}`, leftOut + `image with the media type "image/".)`},
		"image without data":        {`{"type":"image","mimeType":"image/png"}`, leftOut + `image without data.)`},
		"audio without a type":      {`{"type":"audio","data":"eA=="}`, leftOut + `audio with the media type "".)`},
		"audio as an image":         {`{"type":"audio","data":"eA==","mimeType":"image/png"}`, leftOut + `audio with the media type "image/png".)`},
		"link without a name":       {`{"type":"resource_link","uri":"x:1"}`, leftOut + `ANY.)`},
		"link without an address":   {`{"type":"resource_link","name":"x"}`, leftOut + `ANY.)`},
		"resource without contents": {`{"type":"resource"}`, leftOut + `ANY.)`},
		"content of another kind":   {`{"type":"tool_use","id":"1","name":"x","input":{}}`, leftOut + `the type "tool_use".)`},
		"for a role that is none":   {`{"type":"text","text":"secret","annotations":{"audience":["root"],"priority":-7,"lastModified":"x"}}`, "secret"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, nil, raw(t, map[string]string{"tools/call": `{"content":[` + test.content + `,{"type":"text","text":"ok"}]}`}))
			h.prompt(t, "bad__echo {}")
			want := []string{fmt.Sprintf(`other: bad: echo, completed: %s "ok"`, strconv.Quote(test.want)), "agent: result: " + test.want + " ok. "}
			if diff := cmp.Diff(want, h.seen(), cmp.Comparer(like)); diff != "" {
				t.Errorf("the user saw (-want +got):\n%s", diff)
			}
		})
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
	h := open(t, opts, server(t, "bad", "asks"), server(t, "good", "plain"))
	h.prompt(t, "bad__ask", "good__ask")
	want := []string{
		`other: bad: ask, completed: "84 were refused"`, "agent: result: 84 were refused. ", `other: good: ask, completed: "fine"`, "agent: result: fine. ",
	}
	if diff := cmp.Diff(want, h.seen()); diff != "" || asked.Load() != 16 {
		t.Errorf("the agent was asked %d times, and the user saw (-want +got):\n%s", asked.Load(), diff)
	}
}

// Text that is not UTF-8 reaches the client as text that is.
func TestInvalidUTF8(t *testing.T) {
	tier.Need(t, tier.Normal)
	h := open(t, nil, server(t, "bad", "utf8"))
	h.prompt(t, "bad__ask", "bad__echo")
	for _, line := range h.seen() {
		if !utf8.ValidString(line) {
			t.Errorf("the user saw %q", line)
		}
	}
	h.await(t, "other: bad: \uFFFD")
}
