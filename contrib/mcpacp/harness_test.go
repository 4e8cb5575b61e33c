package mcpacp_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/contrib/mcpacp"
	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/must"
)

// serveAs is the variable with a script, which makes the test binary an MCP server.
const serveAs = "MCPACP_TEST_SERVER"

func TestMain(m *testing.M) {
	if script, ok := os.LookupEnv(serveAs); ok {
		serveStdio(script)
		return
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		folder.Remove()
		buildtest.Remove()
		os.Exit(code)
	}))
}

// server declares the test binary as a server on stdio, which plays a script.
func server(t *testing.T, name, script string) acp.MCPServer {
	t.Helper()
	return stdio(name, must.Get(os.Executable())(t), []string{"-test.v"}, acp.EnvVariable{Name: serveAs, Value: script})
}

func stdio(name, command string, args []string, env ...acp.EnvVariable) acp.MCPServer {
	return acp.NewMCPServerStdio(acp.MCPServerStdio{Name: name, Command: command, Args: args, Env: env})
}

// state is the state of the agent's sessions.
type state struct{ tools *mcpacp.Set }

// config is that of an agent without a model. Each line of a prompt is a step: "tools", "resources" and "prompts" list,
// "await NAME" waits for a tool, everything else is the name of a tool with its input. The agent repeats the
// results.
func config(opts *mcpacp.Options) agentkit.Config[state] {
	patient := mcpacp.Options{}
	if opts != nil {
		patient = *opts
	}
	patient.WaitTime = time.Minute // servers may start slowly when the machine is busy
	return agentkit.Config[state]{
		Logger: slog.New(slog.DiscardHandler), // it logs failed calls
		Extend: mcpacp.Enable,
		Open: func(ctx context.Context, s *agentkit.Session[state], o *agentkit.Opening) (err error) {
			s.State.tools, err = mcpacp.Connect(ctx, s, o.MCPServers, &patient)
			return err
		},
		Prompt: func(ctx context.Context, t *agentkit.Turn[state], req *acp.PromptRequest) (*acp.PromptResponse, error) {
			for line := range strings.Lines(agentkit.PromptText(req)) {
				if err := step(ctx, t, strings.TrimSpace(line)); err != nil {
					return nil, err
				}
			}
			return nil, nil
		},
	}
}

func step(ctx context.Context, t *agentkit.Turn[state], line string) error {
	set := t.State.tools
	name, args, _ := strings.Cut(line, " ")
	switch name {
	case "tools":
		tools, err := set.Tools(ctx)
		names := make([]string, len(tools))
		for i, tool := range tools {
			names[i] = tool.Name
		}
		return errors.Join(err, t.Sayf(ctx, "tools: %s. ", strings.Join(names, " ")))
	case "await":
		for {
			changed := set.Changed()
			tools, err := set.Tools(ctx)
			if err != nil || slices.ContainsFunc(tools, func(tool *mcpacp.Tool) bool { return tool.Name == args }) {
				return err
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	case "resources":
		resources, err := set.Resources(ctx)
		for _, r := range resources {
			read, failed := set.ReadResource(ctx, r.Server, r.URI)
			if err = errors.Join(err, failed); failed == nil {
				err = errors.Join(err, t.Sayf(ctx, "%s %s: %s. ", r.Server, r.URI, read.Contents[0].Text))
			}
		}
		return err
	case "prompts":
		prompts, err := set.Prompts(ctx)
		for _, p := range prompts {
			got, failed := set.GetPrompt(ctx, p.Server, p.Name, nil)
			if err = errors.Join(err, failed); failed == nil {
				err = errors.Join(err, t.Sayf(ctx, "%s %s: %s. ", p.Server, p.Name, got.Messages[0].Content.(*mcp.TextContent).Text))
			}
		}
		return err
	}
	res, err := set.Call(ctx, t, name, json.RawMessage(args))
	if err != nil {
		return err
	}
	if res.IsError {
		return t.Sayf(ctx, "failed: %s. ", texts(res))
	}
	return t.Sayf(ctx, "result: %s. ", texts(res))
}

func texts(res *mcp.CallToolResult) string {
	var texts []string
	for _, c := range res.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			texts = append(texts, text.Text)
		} else {
			texts = append(texts, fmt.Sprintf("%T", c))
		}
	}
	return strings.Join(texts, " ")
}

// host is the client, and what its user sees.
type host struct {
	*acp.ClientConn
	session  *acp.ClientSession
	tap      *conformance.TapOptions
	cwd      string // of the session; "" means a new directory
	plain    bool   // it does not know notices
	quiet    bool   // nothing that the agent logs is printed
	lax      bool   // its connection may end with an error
	handlers acp.ClientHandlers
	provider *mcpacp.Provider // over ACP, if the agent enables that

	mu      sync.Mutex
	answer  acp.PermissionOptionID // "" chooses the option that allows the call once
	asked   []acp.ToolCallUpdate
	updates []acp.SessionUpdate
	watch   func(acp.SessionUpdate)
	arrived chan struct{} // has a token when there are updates
}

// open connects a client to an agent in memory, and opens a session with servers. Both end with the test.
func open(t *testing.T, opts *mcpacp.Options, servers ...acp.MCPServer) *host {
	t.Helper()
	return (&host{}).open(t, config(opts), servers...)
}

func (h *host) open(t *testing.T, config agentkit.Config[state], servers ...acp.MCPServer) *host {
	t.Helper()
	h.serve(t, config)
	return h.newSession(t, servers...)
}

// serve connects the client to an agent in memory.
func (h *host) serve(t *testing.T, config agentkit.Config[state]) {
	t.Helper()
	theirs, ours := acp.Pipe()
	served := make(chan error, 1)
	opts := &acp.AgentOptions{Info: acp.Implementation{Name: "agent", Version: "1"}, Experimental: acp.FeatureMCPOverACP}
	if h.quiet {
		opts.Conn.Logger = slog.New(slog.DiscardHandler)
	}
	go func() { served <- agentkit.NewSessions(config).Serve(context.Background(), theirs, opts) }()
	t.Cleanup(func() {
		if err := <-served; err != nil {
			t.Errorf("the agent: %v", err)
		}
	})
	h.connect(t, ours)
}

// setUp returns the handlers and options of the client.
func (h *host) setUp() (acp.ClientHandlers, *acp.ClientOptions) {
	h.arrived = make(chan struct{}, 1)
	handlers := h.handlers
	handlers.SessionUpdate, handlers.RequestPermission = h.take, h.permit
	opts := &acp.ClientOptions{Info: acp.Implementation{Name: "test", Version: "1"}, Experimental: acp.FeatureMCPOverACP}
	if !h.plain {
		opts.Session.Notices = acp.Some(acp.NoticeCapabilities{})
	}
	if h.provider != nil {
		h.provider.Enable(&handlers, opts)
	}
	return handlers, opts
}

func (h *host) connect(t *testing.T, transport acp.Transport) {
	t.Helper()
	handlers, opts := h.setUp()
	if h.tap == nil {
		h.tap = &conformance.TapOptions{Level: conformance.Advice, Schema: conformance.V1Unstable()}
	}
	h.ClientConn = must.Get(acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, transport, h.tap), handlers, opts))(t)
	t.Cleanup(func() {
		if err := h.Close(); err != nil && !h.lax {
			t.Errorf("closing: %v", err)
		}
	})
}

func (h *host) newSession(t *testing.T, servers ...acp.MCPServer) *host {
	t.Helper()
	req := &acp.NewSessionRequest{Cwd: cmp.Or(h.cwd, t.TempDir()), MCPServers: servers}
	h.session = must.Get(h.NewSession(t.Context(), req))(t)
	return h
}

func (h *host) take(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.updates = append(h.updates, n.Update)
	if h.watch != nil {
		h.watch(n.Update)
	}
	select {
	case h.arrived <- struct{}{}:
	default:
	}
	return nil
}

func (h *host) permit(_ context.Context, _ *acp.ClientSession, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(h.asked, req.ToolCall)
	answer := h.answer
	for _, o := range req.Options {
		if answer == "" && o.Kind == acp.PermissionOptionKindAllowOnce {
			answer = o.OptionID
		}
	}
	if answer == "" {
		return &acp.RequestPermissionResponse{Outcome: acp.PermissionCancelled()}, nil
	}
	return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(answer)}, nil
}

// prompt sends the lines of a prompt, and returns how the turn ended.
func (h *host) prompt(t *testing.T, lines ...string) acp.StopReason {
	t.Helper()
	return must.Get(h.session.Prompt(t.Context(), acp.TextBlock(strings.Join(lines, "\n"))))(t).StopReason
}

// said returns all texts of the agent.
func (h *host) said() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var text strings.Builder
	for _, u := range h.updates {
		if chunk, ok := u.Variant.(*acp.SessionUpdateAgentMessageChunk); ok {
			text.WriteString(chunk.Content.Text())
		}
	}
	return text.String()
}

// sees compares what the user has seen with lines, in which ANY stands for any text.
func (h *host) sees(t *testing.T, want ...string) {
	t.Helper()
	if diff := gocmp.Diff(want, h.seen(), gocmp.Comparer(like)); diff != "" {
		t.Errorf("the user saw (-want +got):\n%s", diff)
	}
}

// seen returns what the user sees: a line for each message, notice and tool call, calls as they are in the end.
func (h *host) seen() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var lines []string
	calls := map[acp.ToolCallID]*acp.ToolCall{}
	at := map[acp.ToolCallID]int{}
	last := ""
	for _, u := range h.updates {
		who := ""
		switch u := u.Variant.(type) {
		case *acp.SessionUpdateAgentMessageChunk:
			who = "agent: "
			text := u.Content.Text()
			if last == who {
				lines[len(lines)-1] += text
			} else {
				lines = append(lines, who+text)
			}
		case *acp.SessionUpdateAgentThoughtChunk: // of play
			lines = append(lines, u.Content.Text())
		case *acp.SessionUpdateNotice:
			lines = append(lines, fmt.Sprintf("notice: %s: %s", u.Title, u.Description.Value()))
		case *acp.SessionUpdateToolCall:
			call := acp.ToolCall(*u)
			calls[u.ToolCallID], at[u.ToolCallID] = &call, len(lines)
			lines = append(lines, "")
		case *acp.SessionUpdateToolCallUpdate:
			calls[u.ToolCallID].Apply(acp.ToolCallUpdate(*u))
		}
		last = who
	}
	for id, call := range calls {
		lines[at[id]] = describe(call)
	}
	return slices.DeleteFunc(lines, func(line string) bool { return line == "" })
}

func describe(call *acp.ToolCall) string {
	var line strings.Builder
	fmt.Fprintf(&line, "%s: %s, %s:", call.Kind, call.Title, call.Status)
	for _, content := range call.Content {
		if c, ok := content.Variant.(*acp.ToolCallContentContent); ok {
			if text := c.Content.Text(); text != "" {
				fmt.Fprintf(&line, " %q", text)
			} else {
				fmt.Fprintf(&line, " %s", strings.TrimPrefix(fmt.Sprintf("%T", c.Content.Variant), "*acp.ContentBlock"))
			}
		}
	}
	return line.String()
}

// await waits until the user sees a line that begins so.
func (h *host) await(t *testing.T, prefix string) {
	t.Helper()
	for !slices.ContainsFunc(h.seen(), func(line string) bool { return strings.HasPrefix(line, prefix) }) {
		h.wait(t, prefix)
	}
}

// wait waits until the user sees more.
func (h *host) wait(t *testing.T, want any) {
	t.Helper()
	select {
	case <-h.arrived:
	case <-time.After(time.Minute):
		t.Fatalf("the user never saw %q, but %q", want, h.seen())
	}
}
