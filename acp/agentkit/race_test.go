package agentkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
)

var quiet = slog.New(slog.DiscardHandler)

// A session whose prompt is about to begin is not loaded under it.
func TestLoadBesideAPrompt(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ctx, h := t.Context(), newHouse()
		config := h.config(open(t, dir))
		config.WhileBusy = agentkit.Queue
		// The first prompt is held before its handler, and the second one, which is handled, waits for its turn behind it.
		let := make(chan struct{})
		var held atomic.Bool
		serve := func(ctx context.Context, call *acp.CallInfo, next func(context.Context) error) error {
			if call.Method == acp.MethodPrompt && !held.Swap(true) {
				<-let
			}
			return next(ctx)
		}
		c := connect(t, agentkit.NewSessions(config), &acp.AgentOptions{Conn: acp.ConnOptions{Hooks: acp.Hooks{Serve: serve}, Logger: quiet}}, tapped)
		s := begin(t, c, "/w")
		answers := make(chan error, 2)
		for _, text := range []string{"one", "two"} {
			go func() {
				_, err := c.Prompt(ctx, &acp.PromptRequest{SessionID: s.ID(), Prompt: []acp.ContentBlock{acp.TextBlock(text)}})
				answers <- err
			}()
			synctest.Wait()
		}
		_, err := c.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: "/w"})
		wantError(t, "the load", err, acp.ErrInvalidRequest)
		close(let)
		for range 2 {
			if err := <-answers; err != nil {
				t.Errorf("a prompt: %v", err)
			}
		}
		if _, err := c.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: "/w"}); err != nil {
			t.Errorf("loading it later: %v", err)
		}
	})
}

// A prompt that is sent together with the end of its session, behind another one, is cancelled with it or refused.
func TestPromptBehindAClose(t *testing.T) {
	for name, busy := range map[string]agentkit.WhileBusy{"queue": agentkit.Queue, "steer": agentkit.Steer} {
		t.Run(name, func(t *testing.T) {
			sessions := agentkit.NewSessions(agentkit.Config[state]{WhileBusy: busy, Logger: quiet, Prompt: func(
				ctx context.Context, _ *agentkit.Turn[state], _ *acp.PromptRequest,
			) (*acp.PromptResponse, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}})
			defer sessions.Close()
			near, far := acp.Pipe()
			agent, err := acp.StartAgent(t.Context(), far, sessions.Handlers(), sessions.Options(&acp.AgentOptions{Conn: acp.ConnOptions{Logger: quiet}}))
			if err != nil {
				t.Fatal(err)
			}
			client, err := conformance.Tap(t, conformance.Client, near, &conformance.TapOptions{
				// The rule takes a prompt that was sent after session/close, and before its answer, for one that it must cancel.
				Ignore: func(f conformance.Finding) bool { return f.Side == conformance.Client || f.Rule == "SES-15" },
			}).Connect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			send := func(lines ...string) {
				for _, line := range lines {
					must.Do(t, client.Write([]byte(line)))
				}
			}
			type answer struct {
				ID     int
				Result struct{ StopReason, SessionID string }
				Error  struct{ Code int }
			}
			read := func() (a answer) {
				line, err := client.Read()
				if err == nil {
					err = json.Unmarshal(line, &a)
				}
				if err != nil {
					t.Fatal(err)
				}
				return a
			}
			send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientInfo":{"name":"c","version":"1"}}}`)
			read()
			for range 300 {
				send(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`)
				id := read().Result.SessionID
				prompt := `{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":%q,"prompt":[]}}`
				send(fmt.Sprintf(prompt, 2, id), fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"session/close","params":{"sessionId":%q}}`, id), fmt.Sprintf(prompt, 4, id))
				for range 3 {
					a := read()
					if a.ID == 4 && a.Result.StopReason != "cancelled" && a.Error.Code != -32002 && a.Error.Code != -32600 {
						t.Fatalf("answered %+v", a)
					}
				}
			}
			if err := errors.Join(client.Close(), agent.Wait()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A request that is taken back while the session ends, which it has closed, does not let another one open the session
// before that has ended.
func TestTakenBackWhileASessionEnds(t *testing.T) {
	requests := map[string]func(context.Context, *client, acp.SessionID) error{
		"load": func(ctx context.Context, c *client, id acp.SessionID) error {
			_, err := c.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: id, Cwd: "/two"})
			return err
		},
		"close": func(ctx context.Context, c *client, id acp.SessionID) error {
			_, err := c.CloseSession(ctx, &acp.CloseSessionRequest{SessionID: id})
			return err
		},
		"delete": func(ctx context.Context, c *client, id acp.SessionID) error {
			_, err := c.DeleteSession(ctx, &acp.DeleteSessionRequest{SessionID: id})
			return err
		},
	}
	for name, request := range requests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				ctx, h := t.Context(), newHouse()
				config := h.config(open(t, dir))
				// A handler of the session continues although it was told to end.
				let := make(chan struct{})
				config.SetMode = func(context.Context, *agentkit.Session[state], acp.SessionModeID) error {
					<-let
					return nil
				}
				config.MaxSessions = 1
				c := connect(t, agentkit.NewSessions(config), &acp.AgentOptions{Conn: acp.ConnOptions{Logger: quiet}}, tapped)
				s := begin(t, c, "/one")
				set := make(chan error, 1)
				go func() { set <- s.SetMode(ctx, "b") }()
				synctest.Wait()
				soon, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				if err := request(soon, c, s.ID()); err == nil {
					t.Error("the request has succeeded while a handler runs")
				}
				synctest.Wait()
				if err := requests["load"](ctx, c, s.ID()); !errors.Is(err, acp.ErrInvalidRequest) {
					t.Errorf("loading it while it ends: %v", err)
				}
				if _, err := c.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/w"}); !errors.Is(err, acp.ErrInvalidRequest) {
					t.Errorf("one session more than there may be: %v", err)
				}
				wantLines(t, "notes before the end", h.noted(), "open 0 /one [], 0 prompts, mode ")
				close(let)
				<-set
				synctest.Wait()
				wantLines(t, "notes at the end", h.noted(), "close of /one")
				if err := requests["load"](ctx, c, s.ID()); err != nil {
					t.Errorf("loading it afterwards: %v", err)
				}
			})
		})
	}
}

// Of two changes at once the author is notified of one after the other, and the last one is what the session has.
func TestModesAtOnce(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ctx, h := t.Context(), newHouse()
		config := h.config(open(t, dir))
		var last acp.SessionModeID
		config.SetMode = func(_ context.Context, _ *agentkit.Session[state], mode acp.SessionModeID) error {
			last = mode
			if mode == "b" {
				time.Sleep(time.Second) // of the bubble
			}
			return nil
		}
		sessions := agentkit.NewSessions(config)
		c := connect(t, sessions, nil, tapped)
		s := begin(t, c, "/w")
		answers := make(chan error, 2)
		go func() { answers <- s.SetMode(ctx, "b") }()
		synctest.Wait()
		go func() { answers <- s.SetConfigOption(ctx, "mode", "a") }()
		synctest.Wait()
		soon, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		if err := s.SetMode(soon, "b"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a change that is taken back: %v", err)
		}
		for range 2 {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
		must.Do(t, s.Close(ctx))
		res := must.Get(c.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: "/w"}))(t)
		if modes := res.Modes().Value(); last != "a" || modes.CurrentModeID != last {
			t.Errorf("the author was told of %s last, and the mode is %s", last, modes.CurrentModeID)
		}
	})
}

// A prompt that a turn takes is stored behind what the turn has written before.
func TestTakeIsBehindTexts(t *testing.T) {
	texts := 0
	play := map[string]func(*scene) error{"one": func(s *scene) error {
		<-s.Queued()
		for range 20 {
			for _, text := range []*agentkit.Text{s.NewMessage(s.ctx), s.NewThought(s.ctx)} {
				texts++
				if _, err := text.WriteString("before"); err != nil {
					return err
				}
			}
		}
		if s.NextPrompt() == nil {
			return errors.New("nothing to take")
		}
		return nil
	}}
	onStage(t, agentkit.Steer, play, func(t *testing.T, x *stage) {
		texts = 0
		one, two := x.ask(t.Context(), "one"), x.ask(t.Context(), "two")
		(<-one).check(t, "one", acp.StopReasonMaxTokens)
		(<-two).check(t, "two", acp.StopReasonMaxTokens)
		must.Do(t, x.session.Close(t.Context()))
		x.heard()
		must.Get(x.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: x.session.ID(), Cwd: "/w"}))(t)
		before := 0
		for _, line := range x.heard() {
			if line == "user: two" {
				break
			}
			before += strings.Count(line, "before")
		}
		if before != texts {
			t.Errorf("%d of %d texts come before the prompt", before, texts)
		}
	})
}

// Terminals that are not released delay the end of their call by at most ten seconds in all.
func TestTerminalsAreReleasedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handlers := acp.ClientHandlers{
			CreateTerminal: func(context.Context, *acp.ClientSession, *acp.CreateTerminalRequest) (*acp.CreateTerminalResponse, error) {
				return &acp.CreateTerminalResponse{TerminalID: "t"}, nil
			},
			TerminalOutput: func(context.Context, *acp.ClientSession, *acp.TerminalOutputRequest) (*acp.TerminalOutputResponse, error) {
				return &acp.TerminalOutputResponse{}, nil
			},
			WaitForTerminalExit: func(context.Context, *acp.ClientSession, *acp.WaitForTerminalExitRequest) (*acp.WaitForTerminalExitResponse, error) {
				return &acp.WaitForTerminalExitResponse{}, nil
			},
			KillTerminal: func(context.Context, *acp.ClientSession, *acp.KillTerminalRequest) (*acp.KillTerminalResponse, error) {
				return &acp.KillTerminalResponse{}, nil
			},
			ReleaseTerminal: func(ctx context.Context, _ *acp.ClientSession, _ *acp.ReleaseTerminalRequest) (*acp.ReleaseTerminalResponse, error) {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			},
		}
		theirs, ours := acp.Pipe()
		agent, err := acp.StartAgent(t.Context(), theirs, acp.AgentHandlers{
			NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
				return &acp.NewSessionResponse{SessionID: "s"}, nil
			},
			Prompt: agentkit.HandlePrompt(func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
				call, err := agentkit.StartToolCall(ctx, s, "Tool")
				if err != nil {
					return nil, err
				}
				for range 5 {
					if _, err := call.Run(ctx, &acp.CreateTerminalRequest{Command: "x"}); err != nil {
						return nil, err
					}
				}
				began := time.Now()
				if err := call.Done(); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got the error %v", err)
				}
				if took := time.Since(began); took != 10*time.Second {
					t.Errorf("the end of the call took %v", took)
				}
				if call.State().Status != acp.ToolCallStatusCompleted {
					t.Errorf("the call is %s", call.State().Status)
				}
				return endTurn, nil
			}),
		}, &acp.AgentOptions{Conn: acp.ConnOptions{Logger: quiet}})
		if err != nil {
			t.Fatal(err)
		}
		conn, err := acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, ours, nil), handlers, &acp.ClientOptions{Conn: acp.ConnOptions{Logger: quiet}})
		if err != nil {
			t.Fatal(err)
		}
		s := must.Get(conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/w"}))(t)
		if _, err := s.Prompt(t.Context(), acp.TextBlock("go")); err != nil {
			t.Error(err)
		}
		if err := errors.Join(conn.Close(), agent.Wait()); err != nil {
			t.Error(err)
		}
	})
}

// A client forks a session by session/fork, and the fork goes its own way.
func TestForkMethod(t *testing.T) {
	ctx, h, store := t.Context(), newHouse(), open(t, t.TempDir())
	config := h.config(store)
	config.Fork = true
	sessions := agentkit.NewSessions(config)
	theirs, ours := acp.Pipe()
	opts := &acp.AgentOptions{MCP: acp.MCPCapabilities{HTTP: true}, Experimental: acp.FeatureUsage}
	if _, err := acp.StartAgent(ctx, theirs, sessions.Handlers(), opts); !errors.Is(err, acp.ErrExperimental) {
		t.Errorf("without Sessions.Options: %v", err)
	}
	if got := sessions.Options(opts).Experimental; got != acp.FeatureUsage|acp.FeatureFork {
		t.Errorf("enabled: %v", got)
	}
	agent := must.Get(acp.StartAgent(ctx, theirs, sessions.Handlers(), sessions.Options(opts)))(t)
	var mu sync.Mutex
	var told []string
	heard := func() []string {
		mu.Lock()
		defer mu.Unlock()
		lines := told
		told = nil
		return lines
	}
	tap := &conformance.TapOptions{Schema: conformance.V1Unstable(), Accept: map[string]string{
		"INI-6": "parameters that are refused are what is tested", "EXT-3": "as are methods", "SES-17": "and directories", "SES-19": "and directories", "SES-20": "and directories", "SES-27": "and servers", "PRM-1": "and sessions",
	}}
	conn, err := acp.Connect(ctx, conformance.Tap(t, conformance.Client, ours, tap), acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
			mu.Lock()
			defer mu.Unlock()
			switch u := n.Update.Variant.(type) {
			case *acp.SessionUpdateUserMessageChunk:
				text := u.Content.Text()
				told = append(told, "user: "+text)
			case *acp.SessionUpdateAgentMessageChunk:
				text := u.Content.Text()
				told = append(told, "agent: "+text)
			}
			return nil
		},
	}, &acp.ClientOptions{Experimental: acp.FeatureFork})
	if err != nil {
		t.Fatal(err)
	}
	s := must.Get(conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/w"}))(t)
	must.Get(s.Prompt(ctx, acp.TextBlock("one")))(t)
	fork := must.Get(s.Fork(ctx, &acp.ForkSessionRequest{Cwd: "/fork"}))(t)
	if modes := fork.Modes().Value(); modes.CurrentModeID != "a" {
		t.Errorf("the fork's modes are %+v", modes)
	}
	must.Get(fork.Prompt(ctx, acp.TextBlock("two")))(t)
	heard()
	for id, want := range map[acp.SessionID][]string{
		fork.ID(): {"user: one", "agent: did one", "user: two", "agent: did two"},
		s.ID():    {"user: one", "agent: did one"},
	} {
		must.Get(conn.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: id, Cwd: "/w"}))(t)
		wantLines(t, "replayed", heard(), want...)
	}
	for what, req := range map[string]*acp.ForkSessionRequest{
		"an unknown session": {SessionID: "none", Cwd: "/fork"},
		"no session":         {Cwd: "/fork"},
	} {
		if _, err := conn.ForkSession(ctx, req); err == nil {
			t.Errorf("%s was forked", what)
		}
	}
	for _, params := range []string{`{"sessionId":"s","cwd":"relative"}`, `{"sessionId":"s","cwd":"/w","additionalDirectories":["a"]}`, `{"cwd":"/w"}`, `[]`} {
		_, err := rpc.Call[json.RawMessage](ctx, conn.RPC(), "session/fork", json.RawMessage(params))
		wantError(t, params, err, acp.ErrInvalidParams)
	}
	for server, taken := range map[string]bool{
		`{"name":"s","command":"/bin/mcp","args":[],"env":[]}`:             true,
		`{"type":"http","name":"s","url":"http://localhost","headers":[]}`: true,
		`{"type":"sse","name":"s","url":"http://localhost","headers":[]}`:  false,
		`{"type":"pigeon","name":"s"}`:                                     false,
	} {
		params := fmt.Sprintf(`{"sessionId":%q,"cwd":"/w","mcpServers":[%s]}`, s.ID(), server)
		_, err := rpc.Call[json.RawMessage](ctx, conn.RPC(), "session/fork", json.RawMessage(params))
		if taken && err != nil {
			t.Errorf("%s: %v", params, err)
		} else if !taken {
			wantError(t, params, err, acp.ErrInvalidParams)
		}
	}
	_, err = rpc.Call[json.RawMessage](ctx, conn.RPC(), "session/spoon", struct{}{})
	wantError(t, "another method", err, acp.ErrMethodNotFound)
	infos := 0
	for _, err := range conn.Sessions(ctx, "") {
		if err != nil {
			t.Fatal(err)
		}
		infos++
	}
	if infos != 4 {
		t.Errorf("%d sessions are listed", infos)
	}
	if err := errors.Join(conn.Close(), agent.Wait()); err != nil {
		t.Error(err)
	}
	sessions.Close()
}

// An author whose agent advertises system prompts gets them however a session is opened.
func TestSystemPrompt(t *testing.T) {
	ctx, store := t.Context(), open(t, t.TempDir())
	config := newHouse().config(store)
	config.Fork = true
	var got []string
	config.Open = func(_ context.Context, _ *agentkit.Session[state], o *agentkit.Opening) error {
		got = append(got, fmt.Sprint(o.Reason, " ", o.SystemPrompt.Value().Mode))
		return nil
	}
	sessions := agentkit.NewSessions(config)
	theirs, ours := acp.Pipe()
	agent := must.Get(acp.StartAgent(ctx, theirs, sessions.Handlers(), sessions.Options(&acp.AgentOptions{
		Experimental: acp.FeatureSystemPrompt,
		SystemPrompt: acp.Some(acp.SessionSystemPromptCapabilities{}),
	})))(t)
	conn := must.Get(acp.Connect(ctx, conformance.Tap(t, conformance.Client, ours, &conformance.TapOptions{Schema: conformance.V1Unstable()}),
		acp.ClientHandlers{}, &acp.ClientOptions{Experimental: acp.FeatureFork | acp.FeatureSystemPrompt}))(t)
	prompt := acp.Some(acp.SystemPrompt{Mode: acp.SystemPromptModeAppend, Content: []acp.ContentBlock{acp.TextBlock("Be brief.")}})
	s := must.Get(conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/w", SystemPrompt: prompt}))(t)
	_, loaded := conn.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: "/w", SystemPrompt: prompt})
	_, resumed := conn.ResumeSession(ctx, &acp.ResumeSessionRequest{SessionID: s.ID(), Cwd: "/w", SystemPrompt: prompt})
	_, forked := s.Fork(ctx, &acp.ForkSessionRequest{Cwd: "/w", SystemPrompt: prompt})
	if err := errors.Join(loaded, resumed, forked, conn.Close(), agent.Wait()); err != nil {
		t.Error(err)
	}
	sessions.Close()
	wantLines(t, "opened", got,
		fmt.Sprint(agentkit.Created, " append"), fmt.Sprint(agentkit.Loaded, " append"),
		fmt.Sprint(agentkit.Resumed, " append"), fmt.Sprint(agentkit.Forked, " append"))
}
