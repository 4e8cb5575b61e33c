package reconnect_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/reconnect"
	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

func TestMain(m *testing.M) {
	if kind := os.Getenv("ACP_TEST_AGENT"); kind != "" {
		a := &agent{loads: true, kind: kind}
		if err := acp.ServeAgent(context.Background(), acp.Stdio(), a.handlers(), nil); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// agent keeps its sessions outside of its connections. Its prompts hang, die, or end at once, as their text says.
type agent struct {
	resumes, loads bool
	settings       bool   // its sessions have modes and options, which a new connection finds as they were at first
	kind           string // of one that is a process
	features       acp.Features
	prompts        acp.Opt[acp.SessionSystemPromptCapabilities]

	mu      sync.Mutex
	log     []string   // what it was asked
	down    bool       // cannot be connected to
	forgets bool       // it knows no session
	stream  rpc.Stream // of the last connection
	servers []string   // the names of those of sessions
	running sync.WaitGroup
}

func (a *agent) note(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.log = append(a.log, fmt.Sprintf(format, args...))
}

// prompted notes the system prompt of a session that is restored.
func (a *agent) prompted(prompt acp.Opt[acp.SystemPrompt]) {
	if p, ok := prompt.Get(); ok {
		text := p.Content[0].Text()
		a.note("system prompt: %s", text)
	}
}

// given notes the MCP servers of a session.
func (a *agent) given(servers []acp.MCPServer) {
	for _, server := range servers {
		a.set(func() { a.servers = append(a.servers, server.Variant.(*acp.MCPServerStdio).Name) })
	}
}

func (a *agent) asked() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	log := a.log
	a.log = nil
	return log
}

func (a *agent) set(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

// kill cuts the last connection.
func (a *agent) kill() {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.stream.Close() // of a pipe it does not fail
}

// kept is a transport whose stream the agent keeps; the agent's mu is held.
type kept struct {
	acp.Transport
	a *agent
}

func (k kept) Connect(ctx context.Context) (stream rpc.Stream, err error) {
	k.a.stream, err = k.Transport.Connect(ctx)
	return k.a.stream, err
}

func (a *agent) handlers() acp.AgentHandlers {
	h := acp.AgentHandlers{
		NewSession: func(_ context.Context, _ *acp.AgentConn, req *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			a.note("new %s %d", req.Cwd, len(req.MCPServers))
			a.given(req.MCPServers)
			res := &acp.NewSessionResponse{SessionID: "s"}
			switch {
			case a.kind == "dies":
				os.Exit(3)
			case req.Cwd == "/poison":
				res.SessionID = "poison"
			}
			if a.settings {
				res.Modes, res.ConfigOptions = modes, acp.Some(options("small"))
			}
			return res, nil
		},
		Prompt: func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			text := req.Prompt[0].Variant.(*acp.ContentBlockText).Text
			a.note("prompt %s", text)
			switch text {
			case "hang":
				<-ctx.Done()
				return nil, ctx.Err()
			case "die":
				os.Exit(3)
			case "ask":
				_, err := s.RequestPermission(ctx, acp.ToolCallUpdate{ToolCallID: "t"}, acp.AllowOnce("yes", "Yes"))
				return nil, err
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
	}
	known := func() error {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.forgets {
			return acp.ErrResourceNotFound
		}
		return nil
	}
	if a.resumes {
		h.ResumeSession = func(_ context.Context, s *acp.AgentSession, req *acp.ResumeSessionRequest) (*acp.ResumeSessionResponse, error) {
			a.note("resume %s %s %d", s.ID(), req.Cwd, len(req.MCPServers))
			a.given(req.MCPServers)
			a.prompted(req.SystemPrompt)
			res := &acp.ResumeSessionResponse{}
			if a.settings {
				res.Modes, res.ConfigOptions = modes, acp.Some(options("small"))
			}
			return res, known()
		}
	}
	if a.settings {
		h.ListSessions = func(context.Context, *acp.AgentConn, *acp.ListSessionsRequest) (*acp.ListSessionsResponse, error) {
			return &acp.ListSessionsResponse{}, nil
		}
		h.DeleteSession = func(_ context.Context, _ *acp.AgentSession, req *acp.DeleteSessionRequest) (*acp.DeleteSessionResponse, error) {
			a.note("delete %s", req.SessionID)
			return &acp.DeleteSessionResponse{}, nil
		}
		h.SetSessionMode = func(_ context.Context, _ *acp.AgentSession, req *acp.SetSessionModeRequest) (*acp.SetSessionModeResponse, error) {
			a.note("mode %s", req.ModeID)
			return &acp.SetSessionModeResponse{}, nil
		}
		h.SetSessionConfigOption = func(_ context.Context, _ *acp.AgentSession, req *acp.SetSessionConfigOptionRequest) (*acp.SetSessionConfigOptionResponse, error) {
			value := req.Variant.(*acp.SetSessionConfigOptionRequestValueID).Value
			a.note("%s %s", req.ConfigID, value)
			return &acp.SetSessionConfigOptionResponse{ConfigOptions: options(value)}, nil
		}
	}
	if a.loads {
		h.LoadSession = func(ctx context.Context, s *acp.AgentSession, req *acp.LoadSessionRequest) (*acp.LoadSessionResponse, error) {
			a.note("load %s %s %d", s.ID(), req.Cwd, len(req.MCPServers))
			a.given(req.MCPServers)
			a.prompted(req.SystemPrompt)
			switch {
			case s.ID() == "poison" && a.kind == "":
				a.kill()
			case s.ID() == "poison":
				os.Exit(5)
			}
			return &acp.LoadSessionResponse{}, errors.Join(s.Update(ctx, acp.AgentMessageText("history")), known())
		}
	}
	return h
}

// modes are those of a session with settings at first, options those with a value.
var modes = acp.Some(acp.SessionModeState{CurrentModeID: "ask", AvailableModes: []acp.SessionMode{{ID: "ask", Name: "Ask"}, {ID: "code", Name: "Code"}}})

func options(value acp.SessionConfigValueID) []acp.SessionConfigOption {
	return []acp.SessionConfigOption{acp.SelectOption("model", "Model", value, acp.SelectValue("small", "Small"), acp.SelectValue("large", "Large"))}
}

// transport connects to the agent in this process.
func (a *agent) transport(context.Context) (acp.Transport, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.down {
		return nil, errors.New("nobody there")
	}
	ours, theirs := acp.Pipe()
	conn, err := acp.StartAgent(context.Background(), kept{theirs, a}, a.handlers(), &acp.AgentOptions{
		Conn: quiet(), Experimental: a.features, SystemPrompt: a.prompts,
	})
	if err != nil {
		return nil, err
	}
	a.running.Go(func() { _ = conn.Wait() })
	return ours, nil
}

// tapped judges each connection that is made. That turns end without an answer is what the tests are about.
func tapped(t *testing.T, connect func(context.Context) (acp.Transport, error)) func(context.Context) (acp.Transport, error) {
	return func(ctx context.Context) (acp.Transport, error) {
		transport, err := connect(ctx)
		if err != nil {
			return nil, err
		}
		return conformance.Tap(t, conformance.Client, transport, &conformance.TapOptions{
			Schema: conformance.V1Unstable(),
			Accept: map[string]string{
				"PRM-5": "connections break in a turn",
				"CAN-1": "connections break before the answer to a cancelled request",
			},
		}), nil
	}
}

func quiet() acp.ConnOptions { return acp.ConnOptions{Logger: slog.New(slog.DiscardHandler)} }

// events collects what a user is shown.
type events struct {
	mu   sync.Mutex
	list []reconnect.Event
	next chan reconnect.Event
}

func newEvents() *events { return &events{next: make(chan reconnect.Event, 1000)} }

func (e *events) notify(_ context.Context, ev reconnect.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, ev)
	e.next <- ev
}

// kinds waits for an event and returns all until then, without waits in a row.
func (e *events) until(t *testing.T, kind reconnect.Kind, session acp.SessionID) (kinds []string, all []reconnect.Event) {
	t.Helper()
	timeout := time.After(time.Hour)
	for {
		select {
		case ev := <-e.next:
			text := ev.Kind.String()
			if ev.Session != "" {
				text += " " + string(ev.Session)
			}
			if n := len(kinds); ev.Kind != reconnect.Waiting || n == 0 || kinds[n-1] != text {
				kinds = append(kinds, text)
			}
			all = append(all, ev)
			if ev.Kind == kind && ev.Session == session {
				return kinds, all
			}
		case <-timeout:
			t.Fatalf("no %v; got %q", kind, kinds)
		}
	}
}

// same compares what there was with what there was to be.
func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// start connects a client to an agent in this process.
func start(t *testing.T, a *agent, h acp.ClientHandlers, options *reconnect.Options) (*reconnect.Client, *events) {
	t.Helper()
	t.Cleanup(a.running.Wait)
	return tappedClient(t, a.transport, h, &acp.ClientOptions{Conn: quiet(), Experimental: a.features}, options)
}

// tappedClient connects a client, whose events are collected, and closes it in the end.
func tappedClient(t *testing.T, to func(context.Context) (acp.Transport, error), h acp.ClientHandlers, opts *acp.ClientOptions, options *reconnect.Options) (*reconnect.Client, *events) {
	t.Helper()
	ev := newEvents()
	all := reconnect.Options{}
	if options != nil {
		all = *options
	}
	notify := all.Notify
	all.Notify = func(ctx context.Context, e reconnect.Event) {
		if notify != nil {
			notify(ctx, e)
		}
		ev.notify(ctx, e)
	}
	c := must.Get(reconnect.Connect(t.Context(), tapped(t, to), h, opts, &all))(t)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c, ev
}

// process connects to this program as an agent of a kind.
func process(kind string) func(context.Context) (acp.Transport, error) {
	return func(context.Context) (acp.Transport, error) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "ACP_TEST_AGENT="+kind)
		return acp.Command(cmd), nil
	}
}

var folder = &acp.NewSessionRequest{
	Cwd: "/work", MCPServers: []acp.MCPServer{acp.NewMCPServerStdio(acp.MCPServerStdio{Name: "m", Command: "/m"})},
}

// TestREM70_Resume: a turn that the loss of a connection ends is reported, and not sent again; its session is resumed
// with its folder and servers, and continues.
func TestREM70_Resume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &agent{resumes: true, loads: true}
		c, ev := start(t, a, acp.ClientHandlers{}, nil)
		s, err := c.NewSession(t.Context(), folder)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := s.Prompt(t.Context(), acp.TextBlock("hang"))
			done <- err
		}()
		synctest.Wait()
		a.kill()
		err = <-done
		if cut, ok := errors.AsType[*reconnect.InterruptedError](err); !ok || cut.Session != "s" || !errors.Is(err, acp.ErrClosed) {
			t.Errorf("got %v", err)
		}
		kinds, all := ev.until(t, reconnect.Restored, "")
		same(t, kinds, "lost", "waiting", "restored s", "restored")
		if want := []reconnect.Interrupted{{Method: "session/prompt", Session: "s"}}; !slices.Equal(all[0].Interrupted, want) || all[0].Err == nil {
			t.Errorf("got %+v", all[0])
		}
		if got, err := s.Prompt(t.Context(), acp.TextBlock("more")); err != nil || got.StopReason != acp.StopReasonEndTurn {
			t.Errorf("got %v, %v", got, err)
		}
		same(t, a.asked(), "new /work 1", "prompt hang", "resume s /work 1", "prompt more")
		// Once more: a prompt that is begun while the connection is lost waits.
		a.kill()
		ev.until(t, reconnect.Lost, "")
		must.Get(s.Prompt(t.Context(), acp.TextBlock("again")))(t)
	})
}

// TestREM70_Load: an agent that cannot resume replays the history, which is announced first.
func TestREM70_Load(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &agent{loads: true}
		var ev *events
		c, ev := start(t, a, acp.ClientHandlers{SessionUpdate: func(context.Context, *acp.ClientSession, *acp.SessionNotification) error {
			ev.notify(t.Context(), reconnect.Event{Kind: 100})
			return nil
		}}, nil)
		must.Get(c.NewSession(t.Context(), folder))(t)
		a.kill()
		kinds, _ := ev.until(t, reconnect.Restored, "")
		same(t, kinds, "lost", "waiting", "replaying s", "Kind(100)", "restored s", "restored")
	})
}

// TestREM70_SystemPrompt: a session is restored with the system prompt that it was made with.
func TestREM70_SystemPrompt(t *testing.T) {
	for _, resumes := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			a := &agent{
				resumes: resumes, loads: true, features: acp.FeatureSystemPrompt,
				prompts: acp.Some(acp.SessionSystemPromptCapabilities{}),
			}
			c, ev := start(t, a, acp.ClientHandlers{}, nil)
			prompt := acp.SystemPrompt{Mode: acp.SystemPromptModeAppend, Content: []acp.ContentBlock{acp.TextBlock("Be brief.")}}
			must.Get(c.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/work", SystemPrompt: acp.Some(prompt)}))(t)
			a.kill()
			ev.until(t, reconnect.Restored, "")
			if got := a.asked(); len(got) != 3 || got[2] != "system prompt: Be brief." {
				t.Errorf("asked: %q", got)
			}
		})
	}
}

// TestREM70_OpenedTwice: a session that was opened twice is restored once, and not after it was closed. Its prompts then
// fail at once.
func TestREM70_OpenedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &agent{loads: true}
		c, ev := start(t, a, acp.ClientHandlers{}, nil)
		load := func(cwd string) *reconnect.Session {
			s := must.Get(c.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: "s", Cwd: cwd}))(t)
			return s
		}
		first, second := load("/a"), load("/b")
		a.asked()
		a.kill()
		ev.until(t, reconnect.Restored, "")
		same(t, a.asked(), "load s /b 0")
		must.Do(t, second.Close(t.Context()))
		for range 2 {
			if _, err := first.Prompt(t.Context(), acp.TextBlock("more")); !errors.Is(err, acp.ErrResourceNotFound) {
				t.Errorf("got %v", err)
			}
			a.kill()
			ev.until(t, reconnect.Restored, "")
		}
		if got := a.asked(); len(got) > 0 {
			t.Errorf("asked: %q", got)
		}
	})
}

// TestREM70_Adopt: a session that was opened by another call is restored like others.
func TestREM70_Adopt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &agent{resumes: true}
		c, ev := start(t, a, acp.ClientHandlers{}, nil)
		conn := must.Get(c.Conn(t.Context()))(t)
		opened := must.Get(conn.NewSession(t.Context(), folder))(t)
		s := must.Get(c.Adopt(t.Context(), &acp.LoadSessionRequest{SessionID: opened.ID(), Cwd: folder.Cwd, MCPServers: folder.MCPServers}))(t)
		a.kill()
		ev.until(t, reconnect.Restored, "")
		must.Get(s.Prompt(t.Context(), acp.TextBlock("go on")))(t)
		same(t, a.asked(), "new /work 1", "resume s /work 1", "prompt go on")
	})
}

// TestServers: every session has the servers of the current connection, however it was opened.
func TestServers(t *testing.T) {
	for _, resumes := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			a := &agent{resumes: resumes, loads: true}
			tokens := 0
			c, ev := start(t, a, acp.ClientHandlers{}, &reconnect.Options{
				Servers: func(context.Context, *acp.ClientConn) ([]acp.MCPServer, error) {
					tokens++
					return []acp.MCPServer{acp.NewMCPServerStdio(acp.MCPServerStdio{Name: fmt.Sprint("token ", tokens), Command: "/own"})}, nil
				},
			})
			must.Get(c.NewSession(t.Context(), folder))(t)
			must.Get(c.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: "t", Cwd: "/t"}))(t)
			for range 2 {
				a.kill()
				ev.until(t, reconnect.Restored, "")
			}
			how := "load"
			if resumes {
				how = "resume"
			}
			want := []string{"m", "token 1", "token 1", "m", "token 2", "token 2", "m", "token 3", "token 3"}
			if !slices.Equal(a.servers, want) {
				t.Errorf("with %s: the servers were %q, want %q", how, a.servers, want)
			}
			if folder.MCPServers[0].Variant.(*acp.MCPServerStdio).Name != "m" || len(folder.MCPServers) != 1 {
				t.Errorf("the request was changed: %+v", folder)
			}
		})
	}
}

// TestCallsThatWouldWaitForThemselves fail, in each function that the connection waits for.
func TestCallsThatWouldWaitForThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &agent{loads: true}
		var c *reconnect.Client
		var s *reconnect.Session
		refused, first := map[string]bool{}, true
		try := func(where string) func(context.Context) {
			return func(ctx context.Context) {
				if first {
					return
				}
				_, adopting := c.Adopt(ctx, &acp.LoadSessionRequest{SessionID: "other"})
				_, prompting := s.Prompt(ctx, acp.TextBlock("x"))
				if !errors.Is(adopting, reconnect.ErrNotConnected) || !errors.Is(prompting, reconnect.ErrNotConnected) {
					t.Errorf("%s: got %v, %v", where, adopting, prompting)
				}
				refused[where] = true
			}
		}
		c, ev := start(t, a, acp.ClientHandlers{
			SessionUpdate: func(ctx context.Context, _ *acp.ClientSession, _ *acp.SessionNotification) error {
				try("handler")(ctx)
				return nil
			},
		}, &reconnect.Options{
			Connected: func(ctx context.Context, _ *acp.ClientConn) error {
				try("Connected")(ctx)
				return nil
			},
			Servers: func(ctx context.Context, _ *acp.ClientConn) ([]acp.MCPServer, error) {
				try("Servers")(ctx)
				return nil, nil
			},
			Notify: func(ctx context.Context, e reconnect.Event) {
				if e.Kind == reconnect.Lost {
					try("Notify")(ctx)
				}
			},
		})
		s = must.Get(c.NewSession(t.Context(), folder))(t)
		first = false
		a.kill()
		ev.until(t, reconnect.Restored, "")
		first = true
		if len(refused) != 4 {
			t.Errorf("refused: %v", refused)
		}
		must.Get(s.Prompt(t.Context(), acp.TextBlock("more")))(t)
	})
}

// TestSessionMethods: settings are set, and deleted sessions are not restored.
func TestSessionMethods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &agent{resumes: true, settings: true}
		c, ev := start(t, a, acp.ClientHandlers{}, nil)
		s, err := c.NewSession(t.Context(), folder)
		if err != nil {
			t.Fatal(err)
		}
		a.kill()
		ev.until(t, reconnect.Lost, "")
		err = errors.Join(s.SetMode(t.Context(), "code"), s.SetConfigOption(t.Context(), "model", "large"))
		if err != nil {
			t.Error(err)
		}
		if err := s.SetBooleanConfigOption(t.Context(), "model", true); !errors.Is(err, acp.ErrInvalidParams) {
			t.Errorf("got %v", err)
		}
		same(t, a.asked(), "new /work 1", "resume s /work 1", "mode code", "model large")
		must.Do(t, s.Delete(t.Context()))
		a.kill()
		ev.until(t, reconnect.Restored, "")
		if _, err := s.Live(t.Context()); !errors.Is(err, acp.ErrResourceNotFound) {
			t.Errorf("got %v", err)
		}
		same(t, a.asked(), "delete s")
	})
}

// TestREM70_SessionLost: what cannot be brought back is said, and the rest continues.
func TestREM70_SessionLost(t *testing.T) {
	for name, a := range map[string]*agent{"cannot": {}, "does not know": {resumes: true, forgets: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, ev := start(t, a, acp.ClientHandlers{}, nil)
				s, err := c.NewSession(t.Context(), folder)
				if err != nil {
					t.Fatal(err)
				}
				a.kill()
				kinds, _ := ev.until(t, reconnect.Restored, "")
				same(t, kinds, "lost", "waiting", "session lost s", "restored")
				if _, err := s.Prompt(t.Context(), acp.TextBlock("more")); err == nil || !strings.Contains(err.Error(), "session s could not be restored") {
					t.Errorf("got %v", err)
				}
				if s, err = c.NewSession(t.Context(), folder); err != nil {
					t.Fatal(err)
				}
				must.Get(s.Prompt(t.Context(), acp.TextBlock("more")))(t)
			})
		})
	}
}

// TestREM70_Permission: a question to the user that is open when the connection is lost is among what was interrupted.
func TestREM70_Permission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &agent{resumes: true}
		c, ev := start(t, a, acp.ClientHandlers{
			RequestPermission: func(ctx context.Context, _ *acp.ClientSession, _ *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			},
		}, nil)
		s := must.Get(c.NewSession(t.Context(), folder))(t)
		go func() { _, _ = s.Prompt(t.Context(), acp.TextBlock("ask")) }()
		synctest.Wait()
		a.kill()
		_, all := ev.until(t, reconnect.Lost, "")
		want := []reconnect.Interrupted{
			{Method: "session/prompt", Session: "s"},
			{Method: "session/request_permission", Session: "s", Incoming: true},
		}
		got := all[0].Interrupted
		slices.SortFunc(got, func(a, b reconnect.Interrupted) int { return strings.Compare(a.Method, b.Method) })
		if !slices.Equal(got, want) {
			t.Errorf("got %+v", got)
		}
		ev.until(t, reconnect.Restored, "")
	})
}

// TestREM71_Budget: connecting is tried for longer than a server takes to notice that its client is gone, and given up
// in the end.
func TestREM71_Budget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &agent{resumes: true}
		c, ev := start(t, a, acp.ClientHandlers{}, nil)
		s := must.Get(c.NewSession(t.Context(), folder))(t)
		a.set(func() { a.down = true })
		a.kill()
		time.Sleep(6 * time.Minute)
		a.set(func() { a.down = false })
		_, all := ev.until(t, reconnect.Restored, "")
		for i, e := range all {
			if e.Kind == reconnect.Waiting && (e.Wait < 0 || e.Wait > 30*time.Second || i > 1 && e.Err == nil) {
				t.Errorf("event %d: %+v", i, e)
			}
		}
		a.set(func() { a.down = true })
		a.kill()
		begin := time.Now()
		kinds, all := ev.until(t, reconnect.GaveUp, "")
		if took := time.Since(begin); took < 9*time.Minute || took > 11*time.Minute {
			t.Errorf("given up after %v", took)
		}
		same(t, kinds, "lost", "waiting", "gave up")
		last := all[len(all)-1].Err
		if !strings.Contains(last.Error(), "nobody there") || !errors.Is(last, acp.ErrClosed) {
			t.Errorf("got %v", last)
		}
		if err := c.Wait(); !errors.Is(err, acp.ErrClosed) || !strings.Contains(err.Error(), "nobody there") {
			t.Errorf("Wait: %v", err)
		}
		if _, err := s.Prompt(t.Context(), acp.TextBlock("more")); !errors.Is(err, acp.ErrClosed) {
			t.Errorf("Prompt: %v", err)
		}
		if _, err := c.Conn(t.Context()); !errors.Is(err, acp.ErrClosed) {
			t.Errorf("Conn: %v", err)
		}
	})
}

// TestREM71_Refused: what no time will change is not tried again.
func TestREM71_Refused(t *testing.T) {
	for _, err := range []error{
		&remote.StatusError{Status: 401}, &acp.VersionError{Got: 9}, &acp.CallError{Method: "initialize", Err: &acp.Error{Code: -32000}},
		&exec.Error{Name: "x", Err: exec.ErrNotFound},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := &agent{}
			options := &reconnect.Options{}
			n := 0
			options.Connected = func(context.Context, *acp.ClientConn) error {
				if n++; n == 2 {
					return fmt.Errorf("connecting: %w", err)
				}
				return nil
			}
			c, _ := start(t, a, acp.ClientHandlers{}, options)
			a.kill()
			if got := c.Wait(); !errors.Is(got, err) || n != 2 {
				t.Errorf("got %v after %d tries", got, n)
			}
		})
	}
	for _, err := range []error{
		&remote.StatusError{Status: 404}, &remote.StatusError{Status: 503}, &net.OpError{Op: "dial", Err: errors.New("refused")}, io.EOF,
		context.DeadlineExceeded,
	} {
		if !reconnect.Temporary(err) {
			t.Errorf("%v is not final", err)
		}
	}
}

// TestREM70_Close ends a client that waits for its next try.
func TestREM70_Close(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &agent{}
		c, ev := start(t, a, acp.ClientHandlers{}, nil)
		a.set(func() { a.down = true })
		a.kill()
		ev.until(t, reconnect.Waiting, "")
		conn := make(chan error, 1)
		go func() {
			_, err := c.Conn(t.Context())
			conn <- err
		}()
		synctest.Wait()
		must.Do(t, c.Close())
		if err := <-conn; !errors.Is(err, acp.ErrClosed) {
			t.Errorf("got %v", err)
		}
		if err := c.Wait(); err != nil {
			t.Errorf("Wait: %v", err)
		}
	})
}

// TestREM70_CrashLoop: an agent that dies right after each start is started again at longer and longer intervals.
func TestREM70_CrashLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &agent{}
		options := &reconnect.Options{MinBackoff: time.Minute, MaxBackoff: time.Hour, Budget: 100 * time.Hour}
		_, ev := start(t, a, acp.ClientHandlers{}, options)
		longest := time.Duration(0)
		for range 12 {
			a.kill()
			_, all := ev.until(t, reconnect.Restored, "")
			for _, e := range all {
				longest = max(longest, e.Wait)
			}
		}
		if longest < 5*time.Minute {
			t.Errorf("the longest wait was %v", longest)
		}
	})
}

// TestREM70_Subprocess: the process dies within a turn, and another one continues with the session.
func TestREM70_Subprocess(t *testing.T) {
	tier.Need(t, tier.Normal)
	updates := make(chan struct{}, 10)
	c, ev := tappedClient(t, process("1"), acp.ClientHandlers{
		SessionUpdate: func(context.Context, *acp.ClientSession, *acp.SessionNotification) error {
			updates <- struct{}{}
			return nil
		},
	}, &acp.ClientOptions{Conn: quiet()}, &reconnect.Options{MinBackoff: time.Millisecond})
	s := must.Get(c.NewSession(t.Context(), folder))(t)
	_, err := s.Prompt(t.Context(), acp.TextBlock("die"))
	if exit, ok := errors.AsType[*rpc.ExitError](err); !ok || exit.State.ExitCode() != 3 {
		t.Errorf("got %v", err)
	}
	kinds, all := ev.until(t, reconnect.Restored, "")
	same(t, kinds, "lost", "waiting", "replaying s", "restored s", "restored")
	if _, ok := errors.AsType[*rpc.ExitError](all[0].Err); !ok || len(all[0].Interrupted) != 1 {
		t.Errorf("got %+v", all[0])
	}
	if len(updates) != 1 {
		t.Errorf("%d updates", len(updates))
	}
	must.Get(s.Prompt(t.Context(), acp.TextBlock("more")))(t)
}

// TestREM70_Remote: a server stops and another begins at its address: the session continues there, with the same headers
// and cookies.
func TestREM70_Remote(t *testing.T) {
	for _, scheme := range []string{"http", "ws"} {
		t.Run(scheme, func(t *testing.T) {
			a := &agent{resumes: true}
			var mu sync.Mutex
			cookies := 0
			serve := func(l net.Listener) (*remote.Server, *httptest.Server) {
				h := remote.Handler(func(ctx context.Context, t rpc.Transport, _ *remote.Peer) error {
					return acp.ServeAgent(ctx, t, a.handlers(), &acp.AgentOptions{Conn: quiet()})
				}, &remote.HandlerOptions{Logger: slog.New(slog.DiscardHandler)})
				srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("X-Key") != "k" {
						t.Error("a request has no key")
					}
					if _, err := r.Cookie("node"); err == nil {
						mu.Lock()
						cookies++
						mu.Unlock()
					} else if r.Method == http.MethodPost || scheme == "ws" {
						http.SetCookie(w, &http.Cookie{Name: "node", Value: "7"})
					}
					h.ServeHTTP(w, r)
				}))
				if l != nil {
					srv.Listener.Close()
					srv.Listener = l
				}
				srv.Start()
				return h, srv
			}
			h, srv := serve(nil)
			address := srv.Listener.Addr().String()
			transport := remote.Dial(scheme+"://"+address, &remote.DialOptions{
				Header:     func(context.Context) (http.Header, error) { return http.Header{"X-Key": {"k"}}, nil },
				MinBackoff: time.Millisecond,
				ReopenTime: 100 * time.Millisecond,
				Logger:     slog.New(slog.DiscardHandler),
			})
			c, ev := tappedClient(t, func(context.Context) (acp.Transport, error) { return transport, nil },
				acp.ClientHandlers{}, &acp.ClientOptions{Conn: quiet()}, &reconnect.Options{MinBackoff: 20 * time.Millisecond})
			s := must.Get(c.NewSession(t.Context(), folder))(t)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			must.Do(t, h.Shutdown(ctx))
			srv.CloseClientConnections()
			srv.Close()
			ev.until(t, reconnect.Lost, "")
			l := must.Get(net.Listen("tcp", address))(t)
			mu.Lock()
			cookies = 0
			mu.Unlock()
			h, srv = serve(l)
			defer srv.Close()
			defer h.Shutdown(ctx)
			ev.until(t, reconnect.Restored, "")
			must.Get(s.Prompt(ctx, acp.TextBlock("more")))(t)
			mu.Lock()
			if cookies == 0 {
				t.Error("no cookies after the reconnection")
			}
			mu.Unlock()
			same(t, a.asked(), "new /work 1", "resume s /work 1", "prompt more")
			must.Do(t, c.Close())
		})
	}
}
