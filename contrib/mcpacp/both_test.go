package mcpacp_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/reconnect"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/contrib/mcpacp"
)

// together connects a client that provides a server to an agent that connects to it, over the ACP connection or over HTTP,
// and returns a session, and the agent's messages in it. Both sides end with the test.
func together(t *testing.T, server *mcp.Server, overACP bool) (session *acp.ClientSession, said *strings.Builder) {
	t.Helper()
	theirs, ours := acp.Pipe()
	opts := &acp.AgentOptions{Info: acp.Implementation{Name: "agent", Version: "1"}, Experimental: acp.FeatureMCPOverACP}
	served := make(chan error, 1)
	go func() { served <- agentkit.NewSessions(config(nil)).Serve(context.Background(), theirs, opts) }()
	said = &strings.Builder{}
	handlers := acp.ClientHandlers{
		RequestPermission: func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected("allow")}, nil
		},
		SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
			if chunk, ok := n.Update.Variant.(*acp.SessionUpdateAgentMessageChunk); ok {
				text := chunk.Content.Text()
				said.WriteString(text)
			}
			return nil
		},
	}
	options := acp.ClientOptions{Info: acp.Implementation{Name: "client", Version: "1"}, Experimental: acp.FeatureMCPOverACP}
	var provider mcpacp.Provider
	if overACP {
		provider.Enable(&handlers, &options)
	}
	tap := conformance.Tap(t, conformance.Client, ours, &conformance.TapOptions{Schema: conformance.V1Unstable()})
	conn, err := acp.Connect(t.Context(), tap, handlers, &options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(conn.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
	offer, err := provider.Provide(conn, "own", server)
	if err != nil || offer.Bridged == overACP {
		t.Fatal(offer, err)
	}
	session, err = conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: t.TempDir(), MCPServers: []acp.MCPServer{offer.Declaration}})
	if err != nil {
		t.Fatal(err)
	}
	return session, said
}

// addNew adds a tool "new" to a server.
func addNew(server *mcp.Server) {
	mcp.AddTool(server, &mcp.Tool{Name: "new"}, func(context.Context, *mcp.CallToolRequest, input) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "I am new"}}}, nil, nil
	})
}

// A client that provides tools and an agent that connects to them work together, over the connection and over HTTP: lists,
// calls, progress, failures, and tools that are added in a turn.
func TestBothSides(t *testing.T) {
	for name, overACP := range map[string]bool{"acp": true, "http": false} {
		t.Run(name, func(t *testing.T) {
			server := newTools(nil)
			mcp.AddTool(server.Server, &mcp.Tool{Name: "grow"}, func(context.Context, *mcp.CallToolRequest, input) (*mcp.CallToolResult, any, error) {
				addNew(server.Server)
				return nil, nil, nil
			})
			session, said := together(t, server.Server, overACP)
			prompt := strings.Join([]string{"tools", `own__echo {"text":"hello"}`, "own__progress {}", "own__fail {}", "own__grow {}", "await own__new", "own__new {}"}, "\n")
			if _, err := session.Prompt(t.Context(), acp.TextBlock(prompt)); err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"tools: own__ask own__echo", "result: You said: hello.", "result: done.", "failed: no such file.", "result: I am new."} {
				if !strings.Contains(said.String(), want) {
					t.Errorf("no %q in %s", want, said)
				}
			}
		})
	}
}

// A client that reconnects provides its tools on each connection: a restored session calls them, and not the server of a
// connection that is gone. An agent that cannot connect to them has its sessions without.
func TestAcrossReconnects(t *testing.T) {
	for _, way := range []string{"acp", "http", "neither"} {
		t.Run(way, func(t *testing.T) {
			store, err := sessionstore.Open(t.TempDir(), nil)
			if err != nil {
				t.Fatal(err)
			}
			c := config(nil)
			c.Store = store
			opts := &acp.AgentOptions{Info: acp.Implementation{Name: "agent", Version: "1"}, Experimental: acp.FeatureMCPOverACP}
			agent := agentkit.NewSessions(c)
			own, opts := agent.Handlers(), agent.Options(opts)
			if way != "neither" {
				c.Extend(&own, opts)
			}
			var served *acp.AgentConn // the last connection
			transport := func(context.Context) (_ acp.Transport, err error) {
				theirs, ours := acp.Pipe()
				if served, err = acp.StartAgent(context.Background(), theirs, own, opts); err != nil {
					return nil, err
				}
				return conformance.Tap(t, conformance.Client, ours, &conformance.TapOptions{Schema: conformance.V1Unstable()}), nil
			}
			logged := &lines{}
			tools := mcpacp.Provider{Logger: slog.New(slog.NewTextHandler(logged, nil))}
			said, restored := &lines{}, make(chan struct{}, 1)
			handlers := acp.ClientHandlers{
				RequestPermission: func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
					return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected("allow")}, nil
				},
				SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
					if chunk, ok := n.Update.Variant.(*acp.SessionUpdateAgentMessageChunk); ok {
						text := chunk.Content.Text()
						_, _ = said.Write([]byte(text))
					}
					return nil
				},
			}
			options := acp.ClientOptions{Info: acp.Implementation{Name: "client", Version: "1"}}
			if way == "acp" {
				tools.Enable(&handlers, &options)
			}
			client, err := reconnect.Connect(t.Context(), transport, handlers, &options, &reconnect.Options{
				MinBackoff: time.Millisecond,
				Servers:    tools.For("own", newTools(nil).Server),
				Notify: func(_ context.Context, e reconnect.Event) {
					if e.Kind == reconnect.Restored && e.Session != "" {
						restored <- struct{}{}
					}
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			session, err := client.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			prompt := acp.TextBlock("tools\nown__echo {\"text\":\"hello\"}")
			if way == "neither" {
				prompt = acp.TextBlock("tools")
			}
			_, err = session.Prompt(t.Context(), prompt)
			err = errors.Join(err, served.Close())
			<-restored
			_, err2 := session.Prompt(t.Context(), prompt)
			err = errors.Join(err, err2, client.Close(), served.Close())
			agent.Close()
			if err = errors.Join(err, store.Close()); err != nil {
				t.Error(err)
			}
			switch n := strings.Count(said.String(), "result: You said: hello."); {
			case way == "neither" && (n != 0 || strings.Count(logged.String(), "cannot use a server") != 2):
				t.Errorf("said %s, logged %s", said, logged)
			case way != "neither" && n < 2:
				t.Errorf("the agent said %s", said)
			}
		})
	}
}

// A subscription ends by no timeout of either side: after a month without a message, the agent learns of a new tool.
func TestMOA16_NoTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newTools(nil)
		session, said := together(t, server.Server, true)
		if _, err := session.Prompt(t.Context(), acp.TextBlock("tools")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * 24 * time.Hour)
		addNew(server.Server)
		if _, err := session.Prompt(t.Context(), acp.TextBlock("await own__new\nown__new {}")); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(said.String(), "result: I am new. ") {
			t.Errorf("the agent said %s", said)
		}
	})
}
