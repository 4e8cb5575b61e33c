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
	"github.com/acpgo/sdk/internal/test/must"
)

// together connects a client that provides a server to an agent that connects to it, over the ACP connection or over HTTP,
// and opens a session. Both sides end with the test.
func together(t *testing.T, server *mcp.Server, overACP bool) *host {
	t.Helper()
	h, provider := &host{}, &mcpacp.Provider{}
	if overACP {
		h.provider = provider
	}
	h.serve(t, config(nil))
	offer := must.Get(provider.Provide(h.ClientConn, "own", server))(t)
	if offer.Bridged == overACP {
		t.Fatalf("over ACP %v, bridged %v", overACP, offer.Bridged)
	}
	return h.newSession(t, offer.Declaration)
}

// addNew adds a tool "new" to a server.
func addNew(server *mcp.Server) {
	addText(server, &mcp.Tool{Name: "new"}, func(context.Context, *mcp.CallToolRequest) (string, error) { return "I am new", nil })
}

// A client that provides tools and an agent that connects to them work together, over the connection and over HTTP: lists,
// calls, progress, failures, and tools that are added in a turn.
func TestBothSides(t *testing.T) {
	for name, overACP := range map[string]bool{"acp": true, "http": false} {
		t.Run(name, func(t *testing.T) {
			server := newTools()
			addText(server.Server, &mcp.Tool{Name: "grow"}, func(context.Context, *mcp.CallToolRequest) (string, error) {
				addNew(server.Server)
				return "", nil
			})
			h := together(t, server.Server, overACP)
			h.prompt(t, "tools", `own__echo {"text":"hello"}`, "own__progress {}", "own__fail {}", "own__grow {}", "await own__new", "own__new {}")
			for _, want := range []string{"tools: own__ask own__echo", "result: You said: hello.", "result: done.", "failed: no such file.", "result: I am new."} {
				if !strings.Contains(h.said(), want) {
					t.Errorf("no %q in %s", want, h.said())
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
			store := must.Get(sessionstore.Open(t.TempDir(), nil))(t)
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
			tools := &mcpacp.Provider{Logger: slog.New(slog.NewTextHandler(logged, nil))}
			restored := make(chan struct{}, 1)
			h := &host{}
			if way == "acp" {
				h.provider = tools
			}
			handlers, options := h.setUp()
			client := must.Get(reconnect.Connect(t.Context(), transport, handlers, options, &reconnect.Options{
				MinBackoff: time.Millisecond,
				Servers:    tools.For("own", newTools().Server),
				Notify: func(_ context.Context, e reconnect.Event) {
					if e.Kind == reconnect.Restored && e.Session != "" {
						restored <- struct{}{}
					}
				},
			}))(t)
			session := must.Get(client.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: t.TempDir()}))(t)
			prompt := acp.TextBlock("tools\nown__echo {\"text\":\"hello\"}")
			if way == "neither" {
				prompt = acp.TextBlock("tools")
			}
			_, err := session.Prompt(t.Context(), prompt)
			err = errors.Join(err, served.Close())
			<-restored
			_, err2 := session.Prompt(t.Context(), prompt)
			err = errors.Join(err, err2, client.Close(), served.Close())
			agent.Close()
			must.Do(t, errors.Join(err, store.Close()))
			switch n := strings.Count(h.said(), "result: You said: hello."); {
			case way == "neither" && (n != 0 || strings.Count(logged.String(), "cannot use a server") != 2):
				t.Errorf("said %s, logged %s", h.said(), logged)
			case way != "neither" && n < 2:
				t.Errorf("the agent said %s", h.said())
			}
		})
	}
}

// A subscription ends by no timeout of either side: after a month without a message, the agent learns of a new tool.
func TestMOA16_NoTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newTools()
		h := together(t, server.Server, true)
		h.prompt(t, "tools")
		time.Sleep(30 * 24 * time.Hour)
		addNew(server.Server)
		h.prompt(t, "await own__new", "own__new {}")
		if !strings.HasSuffix(h.said(), "result: I am new. ") {
			t.Errorf("the agent said %s", h.said())
		}
	})
}
