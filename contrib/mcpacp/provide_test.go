package mcpacp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/contrib/mcpacp"
	"github.com/acpgo/sdk/internal/test/must"
)

// pair is a client that provides, and an agent in memory.
type pair struct {
	provider *mcpacp.Provider
	client   *acp.ClientConn
	agent    *acp.AgentConn
	sessions chan *acp.NewSessionRequest // that the agent was asked for
	opened   atomic.Int32
	logged   *lines // by the provider

	mu       sync.Mutex
	notified []*acp.MessageMCPNotification // to the agent
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// start connects a client to an agent that advertises can. It judges what both send; newSession, if it is set, runs before
// the agent answers session/new.
func start(t *testing.T, can acp.MCPCapabilities, enable bool, newSession func(*pair)) *pair {
	t.Helper()
	p := &pair{sessions: make(chan *acp.NewSessionRequest, 10), logged: &lines{}}
	p.provider = &mcpacp.Provider{Logger: slog.New(slog.NewTextHandler(p.logged, nil))}
	near, far := acp.Pipe()
	tap := &conformance.TapOptions{Schema: conformance.V1Unstable(), Accept: map[string]string{"ADD-2": "not every test makes a session"}}
	p.agent = must.Get(acp.StartAgent(t.Context(), conformance.Tap(t, conformance.Agent, far, tap), acp.AgentHandlers{
		NewSession: func(_ context.Context, _ *acp.AgentConn, req *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			p.sessions <- req
			if newSession != nil {
				newSession(p)
			}
			return &acp.NewSessionResponse{SessionID: acp.SessionID(fmt.Sprint("s", p.opened.Add(1)))}, nil
		},
		Prompt: func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error) {
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
		MessageMCPNotification: func(_ context.Context, _ *acp.AgentConn, n *acp.MessageMCPNotification) error {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.notified = append(p.notified, n)
			return nil
		},
	}, &acp.AgentOptions{Info: acp.Implementation{Name: "agent", Version: "1"}, MCP: can, Experimental: acp.FeatureMCPOverACP}))(t)
	var handlers acp.ClientHandlers
	options := acp.ClientOptions{Info: acp.Implementation{Name: "client", Version: "1"}}
	if enable {
		p.provider.Enable(&handlers, &options)
	}
	p.client = must.Get(acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, near, tap), handlers, &options))(t)
	t.Cleanup(func() {
		if err := errors.Join(p.client.Close(), p.agent.Wait()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// provide offers a server.
func (p *pair) provide(t *testing.T, server *mcp.Server) *mcpacp.Offer {
	t.Helper()
	return must.Get(p.provider.Provide(p.client, "tools", server))(t)
}

// newSession opens a session with a server.
func (p *pair) newSession(t *testing.T, offer *mcpacp.Offer) {
	t.Helper()
	must.Get(p.client.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/", MCPServers: []acp.MCPServer{offer.Declaration}}))(t)
}

// notifications returns those that the agent got, as METHOD PARAMS without _meta.
func (p *pair) notifications() (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.notified {
		params := n.Params.Value()
		delete(params, "_meta")
		text, err := json.Marshal(params)
		if err != nil {
			panic(err)
		}
		all = append(all, string(n.RequestID)+" "+n.Method+" "+string(text))
	}
	return all
}

// tools is a server for tests, whose tools say when they run, and wait.
type tools struct {
	*mcp.Server
	began   chan context.Context // of the tool hang
	release chan struct{}        // ends the tool hang
}

func newTools() *tools {
	s := &tools{
		Server: mcp.NewServer(&mcp.Implementation{Name: "tools", Version: "1"}, nil),
		began:  make(chan context.Context, 100), release: make(chan struct{}),
	}
	named := func(name string) *mcp.Tool { return &mcp.Tool{Name: name, Description: "for tests"} }
	add(s.Server, named("echo"), func(_ context.Context, _ *mcp.CallToolRequest, text string) (*mcp.CallToolResult, error) {
		return textResult("You said: " + text), nil
	})
	addText(s.Server, named("fail"), func(context.Context, *mcp.CallToolRequest) (string, error) { return "", errors.New("no such file") })
	addText(s.Server, named("panic"), func(context.Context, *mcp.CallToolRequest) (string, error) { panic("out of cheese") })
	addText(s.Server, named("progress"), func(ctx context.Context, req *mcp.CallToolRequest) (string, error) {
		for _, message := range []string{"one", "two"} {
			n := &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Message: message}
			if err := req.Session.NotifyProgress(ctx, n); err != nil {
				return "", err
			}
		}
		return "done", nil
	})
	add(s.Server, named("ask"), func(context.Context, *mcp.CallToolRequest, string) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"name": &mcp.ElicitParams{Message: "Your name?"}}}, nil
	})
	addText(s.Server, named("hang"), func(ctx context.Context, req *mcp.CallToolRequest) (string, error) {
		s.began <- ctx
		<-s.release
		n := &mcp.ProgressNotificationParams{ProgressToken: "p", Message: "still there"}
		if err := req.Session.NotifyProgress(context.WithoutCancel(ctx), n); (err != nil) != (ctx.Err() != nil) {
			panic(err)
		}
		return "late", nil
	})
	addText(s.Server, named("wait"), func(ctx context.Context, _ *mcp.CallToolRequest) (string, error) {
		s.began <- ctx
		<-ctx.Done()
		return "", ctx.Err()
	})
	return s
}

// kind is how a server is reached.
func kind(server acp.MCPServer) string {
	switch server.Variant.(type) {
	case *acp.MCPServerACP:
		return "acp"
	case *acp.MCPServerHTTP:
		return "http"
	}
	return "neither"
}

// Provide chooses the way that the agent can, and refuses if there is none.
func TestMOA2_MOA3_Choice(t *testing.T) {
	for _, test := range []struct {
		name   string
		can    acp.MCPCapabilities
		enable bool
		want   string
	}{
		{"both", acp.MCPCapabilities{ACP: true, HTTP: true}, true, "acp"},
		{"acp alone", acp.MCPCapabilities{ACP: true}, true, "acp"},
		{"both, not enabled", acp.MCPCapabilities{ACP: true, HTTP: true}, false, "http"},
		{"http alone", acp.MCPCapabilities{HTTP: true}, true, "http"},
		{"acp alone, not enabled", acp.MCPCapabilities{ACP: true}, false, ""},
		{"sse", acp.MCPCapabilities{SSE: true}, true, ""},
		{"neither", acp.MCPCapabilities{}, true, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := start(t, test.can, test.enable, nil)
			offer, err := p.provider.Provide(p.client, "tools", newTools().Server)
			if test.want == "" {
				if !errors.Is(err, acp.ErrUnsupported) || !strings.Contains(err.Error(), "neither") {
					t.Errorf("got %v", err)
				}
				return
			}
			must.Do(t, err)
			if got := kind(offer.Declaration); got != test.want || offer.Bridged != (got == "http") {
				t.Errorf("got %s, bridged %v", got, offer.Bridged)
			}
			p.newSession(t, offer)
			if got := (<-p.sessions).MCPServers; !reflect.DeepEqual(got, []acp.MCPServer{offer.Declaration}) {
				t.Errorf("the agent got %v, want %v", got, offer.Declaration)
			}
		})
	}
}

// Provide needs a server, its name, and a connection that is not over.
func TestProvideErrors(t *testing.T) {
	p := start(t, acp.MCPCapabilities{ACP: true, HTTP: true}, true, nil)
	server := newTools().Server
	for _, test := range []struct {
		name   string
		server *mcp.Server
	}{{"", server}, {"tools", nil}} {
		if _, err := p.provider.Provide(p.client, test.name, test.server); err == nil {
			t.Errorf("%q, %v: no error", test.name, test.server)
		}
	}
	must.Do(t, p.client.Close())
	if _, err := p.provider.Provide(p.client, "tools", server); !errors.Is(err, acp.ErrClosed) {
		t.Errorf("a closed connection: got %v", err)
	}
}

// Each offer has an id of its own, by which its server alone is reached: offers at the same time, of one server or of several,
// and those after others that were closed.
func TestMOA4_ServerIDs(t *testing.T) {
	p := start(t, acp.MCPCapabilities{ACP: true}, true, nil)
	named := func(name string) *mcp.Server {
		server := mcp.NewServer(&mcp.Implementation{Name: "same", Version: "1"}, nil)
		addText(server, &mcp.Tool{Name: name}, func(context.Context, *mcp.CallToolRequest) (string, error) { return "", nil })
		return server
	}
	servers := map[string]*mcp.Server{"one": named("one"), "two": named("two")}
	ids := map[acp.MCPServerACPID]bool{}
	for range 3 {
		offers := map[string][]*mcpacp.Offer{}
		for name, server := range servers {
			for range 2 {
				offer := p.provide(t, server)
				id := offer.Declaration.Variant.(*acp.MCPServerACP).ServerID
				if id == "" || ids[id] {
					t.Errorf("the id %q is used again", id)
				}
				ids[id] = true
				offers[name] = append(offers[name], offer)
			}
		}
		for name, same := range offers {
			for _, offer := range same {
				p.expect(t, "the tools", message(offer, "1", "tools/list", ""), `"name":"`+name+`"`)
				must.Do(t, offer.Close(t.Context()))
			}
		}
	}
}
