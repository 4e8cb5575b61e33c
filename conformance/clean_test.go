package conformance_test

// The clean recordings in testdata/clean contain the messages between agents and clients that follow the protocol. Live
// programs wrote them: programs with package acp here and with package acpv2 there, in memory and with everything that
// varies fixed, and those in the folders interop as processes. mutants_test.go makes conversations that break rules
// from them.

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/cleantest"
)

// cleanDir holds the recordings. A name begins with the protocol version in use: v1, v1u (unstable), v2, v2u; or n1 or
// n2, if the client offers both.
const cleanDir = cleantest.Dir("testdata/clean")

// cleanSchema returns the schema that a clean recording follows.
func cleanSchema(name string) *conformance.Schema {
	version, _, _ := strings.Cut(name, "-")
	switch version {
	case "v1":
		return conformance.V1()
	case "v1u":
		return conformance.V1Unstable()
	case "v2":
		return conformance.V2()
	case "v2u":
		return conformance.V2Unstable()
	case "n1", "n2":
		return conformance.Negotiated(conformance.V1(), conformance.V2())
	}
	panic("a clean recording of no version: " + name)
}

// cleanNames returns the names of the recordings.
func cleanNames(tb testing.TB) (names []string) {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(string(cleanDir), "*.jsonl"))
	if err != nil || len(files) == 0 {
		tb.Fatal("no clean recordings", err)
	}
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".jsonl"))
	}
	return names
}

// readClean reads a recording.
func readClean(tb testing.TB, name string) []conformance.Message {
	tb.Helper()
	return cleanDir.Read(tb, name)
}

// cleanTalk is a conversation between an agent and a client of package acp.
type cleanTalk struct {
	agent         acp.AgentHandlers
	agentOptions  acp.AgentOptions
	client        acp.ClientHandlers
	clientOptions acp.ClientOptions
	play          func(t *testing.T, client *acp.ClientConn)
}

func (c *cleanTalk) record(t *testing.T, name string) {
	synctest.Test(t, func(t *testing.T) {
		var said conformance.Recording
		agentEnd, clientEnd := acp.Pipe()
		c.agentOptions.Info = acp.Implementation{Name: "clean-agent", Title: acp.Some("Clean agent"), Version: "1.0.0"}
		c.clientOptions.Info = acp.Implementation{Name: "clean-client", Version: "1.0.0"}
		agent, err := acp.StartAgent(t.Context(), agentEnd, c.agent, &c.agentOptions)
		if err != nil {
			t.Fatal(err)
		}
		tapped := conformance.Tap(t, conformance.Client, clientEnd, &conformance.TapOptions{Schema: cleanSchema(name), OnMessage: said.Add})
		client, err := acp.Connect(t.Context(), tapped, c.client, &c.clientOptions)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { // also when the play ends early
			if err := errors.Join(client.Close(), agent.Wait()); err != nil {
				t.Error(err)
			}
			if !t.Failed() {
				cleanDir.Keep(t, name, &said, *update)
			}
		}()
		c.play(t, client)
		synctest.Wait()
	})
}

// scenes holds the actions of an agent in a turn, by the text of the prompt.
type cleanScenes map[string]func(ctx context.Context, s *acp.AgentSession) (acp.StopReason, error)

func (scenes cleanScenes) prompt(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
	text := req.Prompt[0].Text()
	scene, ok := scenes[text]
	if !ok {
		return nil, acp.InvalidParamsf("no scene %q", text)
	}
	stop, err := scene(ctx, s)
	if err != nil {
		return nil, err
	}
	return &acp.PromptResponse{StopReason: stop}, nil
}

// says is a scene that says one thing.
func says(text string) func(context.Context, *acp.AgentSession) (acp.StopReason, error) {
	return func(ctx context.Context, s *acp.AgentSession) (acp.StopReason, error) {
		return acp.StopReasonEndTurn, s.Update(ctx, acp.AgentMessageText(text))
	}
}

// sends is a scene that sends updates and ends with a reason.
func sends(stop acp.StopReason, updates ...acp.SessionUpdate) func(context.Context, *acp.AgentSession) (acp.StopReason, error) {
	return func(ctx context.Context, s *acp.AgentSession) (acp.StopReason, error) {
		return stop, sendAll(ctx, s, updates...)
	}
}

func sendAll(ctx context.Context, s *acp.AgentSession, updates ...acp.SessionUpdate) error {
	for _, u := range updates {
		if err := s.Update(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

// newSessions answers session/new with the ids, one after the other.
func newSessions(ids ...acp.SessionID) func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
	return func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
		id := ids[0]
		ids = ids[1:]
		return &acp.NewSessionResponse{SessionID: id}, nil
	}
}

func cleanSession(t *testing.T, client *acp.ClientConn) *acp.ClientSession {
	t.Helper()
	s, err := client.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/home/ada/shop"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// prompt sends a prompt and checks how the turn ends.
func prompt(t *testing.T, s *acp.ClientSession, want acp.StopReason, text string, more ...acp.ContentBlock) {
	t.Helper()
	res, err := s.Prompt(t.Context(), append([]acp.ContentBlock{acp.TextBlock(text)}, more...)...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if res.StopReason != want {
		t.Errorf("%s: got %s, want %s", text, res.StopReason, want)
	}
}

// code checks the code of an error.
func code(t *testing.T, err error, want rpc.Code) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// selected answers permission requests with an option.
func selected(option acp.PermissionOptionID) func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
	return func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
		return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(option)}, nil
	}
}

var mayI = []acp.PermissionOption{
	acp.AllowOnce("yes", "Yes"), acp.AllowAlways("always", "Always"), acp.RejectOnce("no", "No"), acp.RejectAlways("never", "Never"),
}

func message(id acp.MessageID, text string) acp.SessionUpdate {
	return acp.NewSessionUpdateAgentMessageChunk(acp.ContentChunk{Content: acp.TextBlock(text), MessageID: acp.Some(id)})
}

func thought(id acp.MessageID, text string) acp.SessionUpdate {
	return acp.NewSessionUpdateAgentThoughtChunk(acp.ContentChunk{Content: acp.TextBlock(text), MessageID: acp.Some(id)})
}

func entries(status ...acp.PlanEntryStatus) acp.SessionUpdate {
	contents := []string{"Read the cart", "Count in cents", "Run the tests"}
	var list []acp.PlanEntry
	for i, s := range status {
		list = append(list, acp.PlanEntry{Content: contents[i], Priority: acp.PlanEntryPriorityMedium, Status: s})
	}
	return acp.UpdatePlan(list...)
}

// TestCleanBare uses only the minimum that two sides must support.
func TestCleanBare(t *testing.T) {
	(&cleanTalk{
		agent: acp.AgentHandlers{NewSession: newSessions("sess_1"), Prompt: cleanScenes{
			"Hello": says("Hello."), "Are you there?": says("Yes."),
		}.prompt},
		play: func(t *testing.T, client *acp.ClientConn) {
			s := cleanSession(t, client)
			prompt(t, s, acp.StopReasonEndTurn, "Hello", acp.ResourceLinkBlock("cart.go", "file:///home/ada/shop/cart.go"))
			prompt(t, s, acp.StopReasonEndTurn, "Are you there?")
		},
	}).record(t, "v1-bare")
}

// TestCleanSessions is about the life of sessions: authentication, new, list, load, resume, close, delete, logout.
func TestCleanSessions(t *testing.T) {
	authenticated := false
	titles := map[acp.SessionID]string{}
	auth := func() error {
		if !authenticated {
			return acp.ErrAuthRequired.WithMessagef("authentication required")
		}
		return nil
	}
	ids := []acp.SessionID{"sess_1", "sess_2", "sess_3"}
	commands := acp.CommandsUpdate(
		acp.AvailableCommand{Name: "test", Description: "Run the tests"},
		acp.AvailableCommand{Name: "plan", Description: "Make a plan", Input: acp.Some(acp.NewAvailableCommandInputUnstructured(acp.UnstructuredCommandInput{Hint: "what to plan"}))})
	info := func(id acp.SessionID, dirs ...string) acp.SessionInfo {
		return acp.SessionInfo{
			SessionID: id, Cwd: "/home/ada/shop", AdditionalDirectories: dirs,
			Title: acp.Some(titles[id]), UpdatedAt: acp.Some("2026-08-22T10:00:00Z"),
		}
	}
	deleted := false
	(&cleanTalk{
		agent: acp.AgentHandlers{
			Authenticate: func(context.Context, *acp.AgentConn, *acp.AuthenticateRequest) (*acp.AuthenticateResponse, error) {
				authenticated = true
				return nil, nil
			},
			Logout: func(context.Context, *acp.AgentConn, *acp.LogoutRequest) (*acp.LogoutResponse, error) {
				authenticated = false
				return nil, nil
			},
			NewSession: func(ctx context.Context, conn *acp.AgentConn, _ *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
				if err := auth(); err != nil {
					return nil, err
				}
				id := ids[0]
				ids = ids[1:]
				acp.AfterResponse(ctx, func(ctx context.Context) {
					if err := conn.Session(id).Update(ctx, commands); err != nil {
						t.Error(err)
					}
				})
				return &acp.NewSessionResponse{SessionID: id}, nil
			},
			LoadSession: func(ctx context.Context, s *acp.AgentSession, _ *acp.LoadSessionRequest) (*acp.LoadSessionResponse, error) {
				return nil, sendAll(ctx, s,
					acp.NewSessionUpdateUserMessageChunk(acp.ContentChunk{Content: acp.TextBlock("Count"), MessageID: acp.Some[acp.MessageID]("msg_1")}),
					thought("msg_2", "All sums are floats."),
					acp.NewSessionUpdateToolCall(acp.ToolCall{
						ToolCallID: "call_1", Title: "Read cart.go", Kind: acp.ToolKindRead, Status: acp.ToolCallStatusCompleted,
						Locations: []acp.ToolCallLocation{{Path: "/home/ada/shop/cart.go"}},
					}),
					message("msg_3", "A float loses "), message("msg_3", "a cent."),
					commands)
			},
			ResumeSession: func(context.Context, *acp.AgentSession, *acp.ResumeSessionRequest) (*acp.ResumeSessionResponse, error) {
				return nil, nil
			},
			CloseSession: func(context.Context, *acp.AgentSession, *acp.CloseSessionRequest) (*acp.CloseSessionResponse, error) {
				return nil, nil
			},
			DeleteSession: func(context.Context, *acp.AgentSession, *acp.DeleteSessionRequest) (*acp.DeleteSessionResponse, error) {
				deleted = true
				return nil, nil
			},
			ListSessions: func(_ context.Context, _ *acp.AgentConn, req *acp.ListSessionsRequest) (*acp.ListSessionsResponse, error) {
				if cwd, ok := req.Cwd.Get(); ok && cwd != "/home/ada/shop" {
					return &acp.ListSessionsResponse{Sessions: []acp.SessionInfo{}}, nil
				}
				switch req.Cursor.Value() {
				case "":
					return &acp.ListSessionsResponse{Sessions: []acp.SessionInfo{info("sess_2", "/home/ada/lib")}, NextCursor: acp.Some("page/2 ✓")}, nil
				case "page/2 ✓":
					if deleted {
						return &acp.ListSessionsResponse{Sessions: []acp.SessionInfo{}}, nil
					}
					return &acp.ListSessionsResponse{Sessions: []acp.SessionInfo{info("sess_1")}}, nil
				}
				return nil, acp.InvalidParamsf("a cursor that was not given out")
			},
			Prompt: cleanScenes{
				"Count": func(ctx context.Context, s *acp.AgentSession) (acp.StopReason, error) {
					titles[s.ID()] = "Counting"
					return acp.StopReasonEndTurn, sendAll(ctx, s,
						thought("msg_2", "All sums are floats."),
						acp.StartToolCall("call_1", "Read cart.go", acp.WithKind(acp.ToolKindRead), acp.WithLocation("/home/ada/shop/cart.go", 1)),
						acp.UpdateToolCall("call_1", acp.WithStatus(acp.ToolCallStatusCompleted)),
						message("msg_3", "A float loses "), message("msg_3", "a cent."),
						acp.NewSessionUpdateSessionInfoUpdate(acp.SessionInfoUpdate{Title: acp.Some("Counting"), UpdatedAt: acp.Some("2026-08-22T10:00:00Z")}))
				},
				"Go on": says("On I go."),
			}.prompt,
		},
		agentOptions: acp.AgentOptions{
			AuthMethods: []acp.AuthMethod{
				acp.NewAuthMethodAgent(acp.AuthMethodAgent{ID: "browser", Name: "In the browser"}),
				acp.NewAuthMethodTerminal(acp.AuthMethodTerminal{ID: "terminal", Name: "In a terminal", Args: []string{"--login"}}),
			},
			AdditionalDirectories: true, MCP: acp.MCPCapabilities{HTTP: true, SSE: true},
		},
		clientOptions: acp.ClientOptions{TerminalAuth: true},
		play: func(t *testing.T, client *acp.ClientConn) {
			ctx := t.Context()
			setup := &acp.NewSessionRequest{
				Cwd: "/home/ada/shop", AdditionalDirectories: []string{"/home/ada/lib"},
				MCPServers: []acp.MCPServer{
					acp.NewMCPServerStdio(acp.MCPServerStdio{
						Name: "tools", Command: "/usr/bin/tools", Args: []string{"--stdio"},
						Env: []acp.EnvVariable{{Name: "LANG", Value: "C"}},
					}),
					acp.NewMCPServerHTTP(acp.MCPServerHTTP{Name: "web", URL: "https://example.com/mcp", Headers: []acp.HTTPHeader{{Name: "X-Shop", Value: "1"}}}),
					acp.NewMCPServerSSE(acp.MCPServerSSE{Name: "old", URL: "https://example.com/sse", Headers: []acp.HTTPHeader{}}),
				},
			}
			_, err := client.NewSession(ctx, setup)
			code(t, err, acp.ErrAuthRequired)
			_, err = client.Authenticate(ctx, &acp.AuthenticateRequest{MethodID: "browser"})
			must(t, err)
			one, err := client.NewSession(ctx, setup)
			must(t, err)
			synctest.Wait()
			prompt(t, one, acp.StopReasonEndTurn, "Count")
			_, err = client.NewSession(ctx, setup)
			must(t, err)
			synctest.Wait()
			for _, err := range client.Sessions(ctx, "") {
				must(t, err)
			}
			for range client.Sessions(ctx, "/nowhere") {
				t.Error("a session in /nowhere is listed")
			}
			must(t, one.Close(ctx))
			_, err = client.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: "sess_1", Cwd: "/home/ada/shop", AdditionalDirectories: []string{"/home/ada/lib"}})
			must(t, err)
			synctest.Wait()
			prompt(t, one, acp.StopReasonEndTurn, "Go on")
			must(t, one.Close(ctx))
			_, err = client.ResumeSession(ctx, &acp.ResumeSessionRequest{
				SessionID: "sess_1", Cwd: "/home/ada/shop", AdditionalDirectories: []string{"/home/ada/lib"}, MCPServers: setup.MCPServers[:1],
			})
			must(t, err)
			prompt(t, one, acp.StopReasonEndTurn, "Go on")
			must(t, one.Close(ctx))
			must(t, one.Delete(ctx))
			must(t, one.Delete(ctx))
			for info, err := range client.Sessions(ctx, "") {
				must(t, err)
				if info.SessionID == "sess_1" {
					t.Error("a deleted session is listed")
				}
			}
			_, err = client.Logout(ctx, &acp.LogoutRequest{})
			must(t, err)
			_, err = client.NewSession(ctx, setup)
			code(t, err, acp.ErrAuthRequired)
		},
	}).record(t, "v1-sessions")
}

// TestCleanTurns is about the parts of a turn.
func TestCleanTurns(t *testing.T) {
	files := map[string]string{"/home/ada/shop/cart.go": "package cart\n\nfunc total() float64\n"}
	edit := func(ctx context.Context, s *acp.AgentSession) (acp.StopReason, error) {
		res, err := s.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: "/home/ada/shop/cart.go", Line: acp.Some[uint32](1), Limit: acp.Some[uint32](100)})
		if err != nil {
			return "", err
		}
		id := acp.ToolCallID("call_2")
		text := strings.Replace(res.Content, "float64", "int", 1)
		if err := s.Update(ctx, acp.StartToolCall(id, "Edit cart.go", acp.WithKind(acp.ToolKindEdit), acp.WithStatus(acp.ToolCallStatusPending),
			acp.WithContent(acp.ToolEdit("/home/ada/shop/cart.go", res.Content, text)), acp.WithLocation("/home/ada/shop/cart.go", 3),
			acp.WithInput(map[string]string{"path": "cart.go"}))); err != nil {
			return "", err
		}
		outcome, err := s.RequestPermission(ctx, acp.ToolCallRef(id), mayI...)
		if err != nil {
			return "", err
		}
		if option, _ := outcome.Selected(); option != "yes" {
			return acp.StopReasonEndTurn, s.Update(ctx, acp.UpdateToolCall(id, acp.WithStatus(acp.ToolCallStatusFailed)))
		}
		if err := s.Update(ctx, acp.UpdateToolCall(id, acp.WithStatus(acp.ToolCallStatusInProgress))); err != nil {
			return "", err
		}
		if _, err := s.WriteTextFile(ctx, &acp.WriteTextFileRequest{Path: "/home/ada/shop/cart.go", Content: text}); err != nil {
			return "", err
		}
		return acp.StopReasonEndTurn, s.Update(ctx, acp.UpdateToolCall(id, acp.WithStatus(acp.ToolCallStatusCompleted), acp.WithOutput(map[string]int{"lines": 3})))
	}
	chosen := acp.PermissionOptionID("yes")
	(&cleanTalk{
		agent: acp.AgentHandlers{NewSession: newSessions("sess_1"), Prompt: cleanScenes{
			"Look at all of this": func(ctx context.Context, s *acp.AgentSession) (acp.StopReason, error) {
				id := acp.ToolCallID("call_1")
				return acp.StopReasonEndTurn, sendAll(ctx, s,
					acp.CommandsUpdate(acp.AvailableCommand{Name: "plan", Description: "Make a plan"}),
					entries("in_progress", "pending", "pending"),
					thought("think_1", "Where is "), thought("think_1", "the cent?"),
					message("msg_1", "I read "), message("msg_1", "the cart."),
					acp.StartToolCall(id, "Read cart.go", acp.WithKind(acp.ToolKindRead), acp.WithStatus(acp.ToolCallStatusPending), acp.WithName("read")),
					acp.UpdateToolCall(id, acp.WithStatus(acp.ToolCallStatusInProgress)),
					acp.UpdateToolCall(id, acp.WithTitle("Read the cart"), acp.WithContent(
						acp.ToolText("func total() float64"), acp.ToolContent(acp.ImageBlock("iVBORw0KGgo=", "image/png")),
						acp.ToolContent(acp.ResourceLinkBlock("cart.go", "file:///home/ada/shop/cart.go")))),
					acp.UpdateToolCall(id, acp.WithStatus(acp.ToolCallStatusCompleted)),
					entries("completed", "in_progress", "pending"),
					message("msg_2", "It is in the sum."),
					acp.NewSessionUpdateAgentMessageChunk(acp.ContentChunk{Content: acp.ImageBlock("iVBORw0KGgo=", "image/png"), MessageID: acp.Some[acp.MessageID]("msg_2")}),
					entries("completed", "completed", "completed"),
					acp.NewSessionUpdateSessionInfoUpdate(acp.SessionInfoUpdate{Title: acp.Some("The lost cent"), UpdatedAt: acp.Some("2026-08-22T10:00:00Z")}),
					acp.NewSessionUpdateSessionInfoUpdate(acp.SessionInfoUpdate{Title: acp.Null[string]()}),
					acp.NewSessionUpdateUsageUpdate(acp.UsageUpdate{Used: 1200, Size: 200000, Cost: acp.Some(acp.Cost{Amount: 0.02, Currency: "EUR"})}))
			},
			"Edit": edit,
			"Notice and compact": sends(acp.StopReasonEndTurn,
				acp.NewSessionUpdateNotice(acp.Notice{Severity: acp.NoticeSeverityInfo, Title: "The context is nearly full"}),
				acp.NewSessionUpdateCompactionUpdate(acp.CompactionUpdate{CompactionID: "comp_1", Status: acp.CompactionStatusInProgress}),
				acp.NewSessionUpdateCompactionSummaryChunk(acp.CompactionSummaryChunk{CompactionID: "comp_1", Content: acp.TextBlock("They looked for a cent.")}),
				acp.NewSessionUpdateCompactionUpdate(acp.CompactionUpdate{CompactionID: "comp_1", Status: acp.CompactionStatusCompleted}),
				acp.AgentMessageText("Less to remember.")),
			"Too many tokens":   sends(acp.StopReasonMaxTokens, acp.AgentMessageText("And so on and so")),
			"Too many requests": sends(acp.StopReasonMaxTurnRequests, acp.AgentMessageText("I ask once more.")),
			"Refuse":            sends(acp.StopReasonRefusal, acp.AgentMessageText("I would rather not.")),
			"Be silent":         sends(acp.StopReasonEndTurn),
		}.prompt},
		agentOptions: acp.AgentOptions{Prompt: acp.PromptCapabilities{Image: true, Audio: true, EmbeddedContext: true}},
		client: acp.ClientHandlers{
			RequestPermission: func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
				return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(chosen)}, nil
			},
			ReadTextFile: func(_ context.Context, _ *acp.ClientSession, req *acp.ReadTextFileRequest) (*acp.ReadTextFileResponse, error) {
				return &acp.ReadTextFileResponse{Content: files[req.Path]}, nil
			},
			WriteTextFile: func(_ context.Context, _ *acp.ClientSession, req *acp.WriteTextFileRequest) (*acp.WriteTextFileResponse, error) {
				files[req.Path] = req.Content
				return nil, nil
			},
		},
		clientOptions: acp.ClientOptions{Session: acp.ClientSessionCapabilities{
			Notices: acp.Some(acp.NoticeCapabilities{}), Compaction: acp.Some(acp.CompactionCapabilities{}),
		}},
		play: func(t *testing.T, client *acp.ClientConn) {
			s := cleanSession(t, client)
			prompt(t, s, acp.StopReasonEndTurn, "Look at all of this",
				acp.ResourceLinkBlock("cart.go", "file:///home/ada/shop/cart.go"),
				acp.ImageBlock("iVBORw0KGgo=", "image/png"), acp.AudioBlock("UklGRg==", "audio/wav"),
				acp.ResourceBlock(acp.TextResource("module shop\n", "file:///home/ada/shop/go.mod")),
				acp.ResourceBlock(acp.BlobResource("iVBORw0KGgo=", "file:///home/ada/shop/logo.png")))
			prompt(t, s, acp.StopReasonEndTurn, "Edit")
			prompt(t, s, acp.StopReasonEndTurn, "Notice and compact")
			prompt(t, s, acp.StopReasonMaxTokens, "Too many tokens")
			prompt(t, s, acp.StopReasonMaxTurnRequests, "Too many requests")
			prompt(t, s, acp.StopReasonRefusal, "Refuse")
			prompt(t, s, acp.StopReasonEndTurn, "Be silent")
		},
	}).record(t, "v1-turns")
	// A second session, so that the first recording has each tool call once.
	chosen = "no"
	(&cleanTalk{
		agent: acp.AgentHandlers{NewSession: newSessions("sess_1"), Prompt: cleanScenes{"Edit": edit}.prompt},
		client: acp.ClientHandlers{
			RequestPermission: selected(chosen),
			ReadTextFile: func(_ context.Context, _ *acp.ClientSession, req *acp.ReadTextFileRequest) (*acp.ReadTextFileResponse, error) {
				return &acp.ReadTextFileResponse{Content: "package cart\n"}, nil
			},
		},
		play: func(t *testing.T, client *acp.ClientConn) {
			prompt(t, cleanSession(t, client), acp.StopReasonEndTurn, "Edit")
		},
	}).record(t, "v1-rejected")
}

// terminalHandlers adds terminals to a client: a "sleep" command ends when it is killed or released, and any other
// command ends at once.
func terminalHandlers(h *acp.ClientHandlers) {
	type terminal struct {
		status acp.TerminalExitStatus
		ended  chan struct{}
	}
	terminals := map[acp.TerminalID]*terminal{}
	next := []acp.TerminalID{"term_1", "term_2", "term_3", "term_4"}
	h.CreateTerminal = func(_ context.Context, _ *acp.ClientSession, req *acp.CreateTerminalRequest) (*acp.CreateTerminalResponse, error) {
		id := next[0]
		next = next[1:]
		terminals[id] = &terminal{ended: make(chan struct{})}
		if req.Command != "sleep" {
			terminals[id].status.ExitCode = acp.Some[uint32](0)
			close(terminals[id].ended)
		}
		return &acp.CreateTerminalResponse{TerminalID: id}, nil
	}
	h.TerminalOutput = func(_ context.Context, _ *acp.ClientSession, req *acp.TerminalOutputRequest) (*acp.TerminalOutputResponse, error) {
		term, res := terminals[req.TerminalID], &acp.TerminalOutputResponse{Output: "ok shop\n"}
		select {
		case <-term.ended:
			res.ExitStatus = acp.Some(term.status)
		default:
			res.Output, res.Truncated = "zzz ✓", true
		}
		return res, nil
	}
	h.WaitForTerminalExit = func(ctx context.Context, _ *acp.ClientSession, req *acp.WaitForTerminalExitRequest) (*acp.WaitForTerminalExitResponse, error) {
		term := terminals[req.TerminalID]
		select {
		case <-term.ended:
			return &acp.WaitForTerminalExitResponse{ExitCode: term.status.ExitCode, Signal: term.status.Signal}, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	kill := func(id acp.TerminalID) {
		select {
		case <-terminals[id].ended:
		default:
			terminals[id].status.Signal = acp.Some("SIGKILL")
			close(terminals[id].ended)
		}
	}
	h.KillTerminal = func(ctx context.Context, _ *acp.ClientSession, req *acp.KillTerminalRequest) (*acp.KillTerminalResponse, error) {
		// Recordings are compared, so the answers to kill and to a wait must not race.
		acp.AfterResponse(ctx, func(context.Context) { kill(req.TerminalID) })
		return nil, nil
	}
	h.ReleaseTerminal = func(_ context.Context, _ *acp.ClientSession, req *acp.ReleaseTerminalRequest) (*acp.ReleaseTerminalResponse, error) {
		kill(req.TerminalID)
		delete(terminals, req.TerminalID)
		return nil, nil
	}
}

// TestCleanTerminals is about the client's terminals.
func TestCleanTerminals(t *testing.T) {
	c := &cleanTalk{
		agent: acp.AgentHandlers{NewSession: newSessions("sess_1"), Prompt: cleanScenes{
			"Run the tests": func(ctx context.Context, s *acp.AgentSession) (acp.StopReason, error) {
				if err := s.Update(ctx, acp.StartToolCall("call_1", "go test", acp.WithKind(acp.ToolKindExecute), acp.WithStatus(acp.ToolCallStatusInProgress))); err != nil {
					return "", err
				}
				term, err := s.CreateTerminal(ctx, &acp.CreateTerminalRequest{
					Command: "go", Args: []string{"test"}, Cwd: acp.Some("/home/ada/shop"),
					Env: []acp.EnvVariable{{Name: "CGO_ENABLED", Value: "0"}}, OutputByteLimit: acp.Some[uint64](1 << 20),
				})
				if err != nil {
					return "", err
				}
				if err := s.Update(ctx, acp.UpdateToolCall("call_1", acp.WithContent(acp.ToolTerminal(term.ID())))); err != nil {
					return "", err
				}
				if _, err := term.Wait(ctx); err != nil {
					return "", err
				}
				if _, err := term.Output(ctx); err != nil {
					return "", err
				}
				if err := term.Close(ctx); err != nil {
					return "", err
				}
				return acp.StopReasonEndTurn, s.Update(ctx, acp.UpdateToolCall("call_1", acp.WithStatus(acp.ToolCallStatusCompleted)))
			},
			"Run too long": func(ctx context.Context, s *acp.AgentSession) (acp.StopReason, error) {
				term, err := s.CreateTerminal(ctx, &acp.CreateTerminalRequest{Command: "sleep", Args: []string{"100"}, OutputByteLimit: acp.Some[uint64](8)})
				if err != nil {
					return "", err
				}
				if err := s.Update(ctx, acp.StartToolCall("call_2", "sleep", acp.WithKind(acp.ToolKindExecute), acp.WithStatus(acp.ToolCallStatusInProgress), acp.WithContent(acp.ToolTerminal(term.ID())))); err != nil {
					return "", err
				}
				if _, err := term.Output(ctx); err != nil {
					return "", err
				}
				waited := make(chan error, 1)
				go func() { // is answered when the command is killed
					_, err := term.Wait(ctx)
					waited <- err
				}()
				synctest.Wait()
				if err := errors.Join(term.Kill(ctx), <-waited); err != nil {
					return "", err
				}
				if _, err := term.Output(ctx); err != nil {
					return "", err
				}
				if _, err := term.Wait(ctx); err != nil {
					return "", err
				}
				if err := term.Close(ctx); err != nil {
					return "", err
				}
				return acp.StopReasonEndTurn, s.Update(ctx, acp.UpdateToolCall("call_2", acp.WithStatus(acp.ToolCallStatusFailed)))
			},
			"Run and release": func(ctx context.Context, s *acp.AgentSession) (acp.StopReason, error) {
				term, err := s.CreateTerminal(ctx, &acp.CreateTerminalRequest{Command: "sleep"})
				if err != nil {
					return "", err
				}
				return acp.StopReasonEndTurn, term.Close(ctx)
			},
		}.prompt},
		play: func(t *testing.T, client *acp.ClientConn) {
			s := cleanSession(t, client)
			prompt(t, s, acp.StopReasonEndTurn, "Run the tests")
			prompt(t, s, acp.StopReasonEndTurn, "Run too long")
			prompt(t, s, acp.StopReasonEndTurn, "Run and release")
		},
	}
	terminalHandlers(&c.client)
	c.record(t, "v1-terminals")
}

// TestCleanCancel is about cancellation at several points.
func TestCleanCancel(t *testing.T) {
	until := func(ctx context.Context) (acp.StopReason, error) {
		<-ctx.Done()
		return "", context.Cause(ctx)
	}
	waits := func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	c := &cleanTalk{
		agent: acp.AgentHandlers{
			NewSession: newSessions("sess_1", "sess_2"),
			CloseSession: func(context.Context, *acp.AgentSession, *acp.CloseSessionRequest) (*acp.CloseSessionResponse, error) {
				return nil, nil
			},
			Prompt: cleanScenes{
				"Write a story": func(ctx context.Context, s *acp.AgentSession) (acp.StopReason, error) {
					if err := sendAll(ctx, s, message("msg_1", "Once upon "), message("msg_1", "a time ")); err != nil {
						return "", err
					}
					_, err := until(ctx)
					return "", errors.Join(err, s.Update(context.WithoutCancel(ctx), message("msg_1", "the end came early.")))
				},
				"Delete it": func(ctx context.Context, s *acp.AgentSession) (acp.StopReason, error) {
					if err := s.Update(ctx, acp.StartToolCall("call_1", "rm cart.go", acp.WithKind(acp.ToolKindDelete), acp.WithStatus(acp.ToolCallStatusPending))); err != nil {
						return "", err
					}
					_, err := s.RequestPermission(context.WithoutCancel(ctx), acp.ToolCallRef("call_1"), mayI...)
					if err != nil {
						return "", err
					}
					if _, err := until(ctx); err == nil {
						t.Error("not cancelled")
					}
					return "", errors.Join(context.Cause(ctx), s.Update(context.WithoutCancel(ctx), acp.UpdateToolCall("call_1", acp.WithStatus(acp.ToolCallStatusFailed))))
				},
				"Read it": func(ctx context.Context, s *acp.AgentSession) (acp.StopReason, error) {
					_, err := s.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: "/home/ada/shop/slow.go"})
					return "", err
				},
				"Run it": func(ctx context.Context, s *acp.AgentSession) (acp.StopReason, error) {
					term, err := s.CreateTerminal(ctx, &acp.CreateTerminalRequest{Command: "sleep"})
					if err != nil {
						return "", err
					}
					_, err = term.Wait(ctx)
					time.Sleep(time.Second) // in the bubble: until the client has answered
					return "", errors.Join(err, term.Close(ctx))
				},
				"Think":    func(ctx context.Context, _ *acp.AgentSession) (acp.StopReason, error) { return until(ctx) },
				"Say more": says("There is more."),
			}.prompt,
		},
		client: acp.ClientHandlers{
			RequestPermission: func(ctx context.Context, _ *acp.ClientSession, _ *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
				return nil, waits(ctx)
			},
			ReadTextFile: func(ctx context.Context, _ *acp.ClientSession, _ *acp.ReadTextFileRequest) (*acp.ReadTextFileResponse, error) {
				return nil, waits(ctx)
			},
		},
		play: func(t *testing.T, client *acp.ClientConn) {
			s := cleanSession(t, client)
			must(t, s.Cancel(t.Context())) // in an idle session
			for _, text := range []string{"Write a story", "Delete it", "Read it", "Run it", "Think"} {
				turn := s.Stream(t.Context(), acp.TextBlock(text))
				synctest.Wait()
				turn.Cancel()
				synctest.Wait()
				res, err := turn.Result()
				if err != nil || res.StopReason != acp.StopReasonCancelled {
					t.Errorf("%s: got %v, %v", text, res, err)
				}
			}
			prompt(t, s, acp.StopReasonEndTurn, "Say more")
			other := cleanSession(t, client)
			turn := other.Stream(t.Context(), acp.TextBlock("Think"))
			synctest.Wait()
			must(t, other.Close(t.Context()))
			if res, err := turn.Result(); err != nil || res.StopReason != acp.StopReasonCancelled {
				t.Errorf("closed: got %v, %v", res, err)
			}
		},
	}
	terminalHandlers(&c.client)
	c.record(t, "v1-cancel")
}

// TestCleanSettings is about modes and config options.
func TestCleanSettings(t *testing.T) {
	mode, model, brief := acp.SessionModeID("ask"), acp.SessionConfigValueID("small"), false
	options := func() []acp.SessionConfigOption {
		grouped := acp.NewSessionConfigOptionSelect("model", "Model", acp.SessionConfigSelect{
			CurrentValue: model,
			Options: acp.NewSessionConfigSelectOptionsGrouped([]acp.SessionConfigSelectGroup{
				{Group: "here", Name: "Here", Options: []acp.SessionConfigSelectOption{acp.SelectValue("small", "Small")}},
				{Group: "there", Name: "There", Options: []acp.SessionConfigSelectOption{acp.SelectValue("large", "Large"), acp.SelectValue("huge", "Huge")}},
			}),
		})
		grouped.Category = acp.Some(acp.SessionConfigOptionCategoryModel)
		flat := acp.SelectOption("mode", "Mode", acp.SessionConfigValueID(mode), acp.SelectValue("ask", "Ask"), acp.SelectValue("auto", "Auto"))
		flat.Category = acp.Some(acp.SessionConfigOptionCategoryMode)
		own := acp.BooleanOption("brief", "Brief", brief)
		own.Category = acp.Some[acp.SessionConfigOptionCategory]("_style")
		return []acp.SessionConfigOption{flat, grouped, own}
	}
	modes := func() acp.SessionModeState {
		return acp.SessionModeState{CurrentModeID: mode, AvailableModes: []acp.SessionMode{
			{ID: "ask", Name: "Ask", Description: acp.Some("Ask before changes")}, {ID: "auto", Name: "Auto"},
		}}
	}
	both := func(ctx context.Context, s *acp.AgentSession) error {
		return sendAll(ctx, s, acp.ModeUpdate(mode), acp.ConfigUpdate(options()...))
	}
	(&cleanTalk{
		agent: acp.AgentHandlers{
			NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
				return &acp.NewSessionResponse{SessionID: "sess_1", Modes: acp.Some(modes()), ConfigOptions: acp.Some(options())}, nil
			},
			LoadSession: func(ctx context.Context, s *acp.AgentSession, _ *acp.LoadSessionRequest) (*acp.LoadSessionResponse, error) {
				if err := s.Update(ctx, acp.UserMessageText("Switch")); err != nil {
					return nil, err
				}
				return &acp.LoadSessionResponse{Modes: acp.Some(modes()), ConfigOptions: acp.Some(options())}, nil
			},
			ResumeSession: func(context.Context, *acp.AgentSession, *acp.ResumeSessionRequest) (*acp.ResumeSessionResponse, error) {
				return &acp.ResumeSessionResponse{Modes: acp.Some(modes()), ConfigOptions: acp.Some(options())}, nil
			},
			CloseSession: func(context.Context, *acp.AgentSession, *acp.CloseSessionRequest) (*acp.CloseSessionResponse, error) {
				return nil, nil
			},
			SetSessionMode: func(ctx context.Context, s *acp.AgentSession, req *acp.SetSessionModeRequest) (*acp.SetSessionModeResponse, error) {
				if req.ModeID != "ask" && req.ModeID != "auto" {
					return nil, acp.InvalidParamsf("no such mode")
				}
				mode = req.ModeID
				return nil, both(ctx, s)
			},
			SetSessionConfigOption: func(ctx context.Context, s *acp.AgentSession, req *acp.SetSessionConfigOptionRequest) (*acp.SetSessionConfigOptionResponse, error) {
				switch value := req.Variant.(type) {
				case *acp.SetSessionConfigOptionRequestBoolean:
					brief = value.Value
				case *acp.SetSessionConfigOptionRequestValueID:
					if req.ConfigID == "mode" {
						mode = acp.SessionModeID(value.Value)
						if err := s.Update(ctx, acp.ModeUpdate(mode)); err != nil {
							return nil, err
						}
					} else {
						model = value.Value
					}
				}
				return &acp.SetSessionConfigOptionResponse{ConfigOptions: options()}, nil
			},
			Prompt: cleanScenes{"Switch": func(ctx context.Context, s *acp.AgentSession) (acp.StopReason, error) {
				mode = "ask"
				return acp.StopReasonEndTurn, both(ctx, s)
			}}.prompt,
		},
		clientOptions: acp.ClientOptions{BooleanConfig: true},
		play: func(t *testing.T, client *acp.ClientConn) {
			ctx := t.Context()
			s := cleanSession(t, client)
			must(t, s.SetMode(ctx, "auto"))
			must(t, s.SetConfigOption(ctx, "model", "huge"))
			must(t, s.SetConfigOption(ctx, "mode", "ask"))
			must(t, s.SetBooleanConfigOption(ctx, "brief", true))
			must(t, s.SetMode(ctx, "auto"))
			prompt(t, s, acp.StopReasonEndTurn, "Switch")
			must(t, s.Close(ctx))
			_, err := client.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: "sess_1", Cwd: "/home/ada/shop"})
			must(t, err)
			must(t, s.Close(ctx))
			_, err = client.ResumeSession(ctx, &acp.ResumeSessionRequest{SessionID: "sess_1", Cwd: "/home/ada/shop"})
			must(t, err)
			must(t, s.SetMode(ctx, "auto"))
		},
	}).record(t, "v1-settings")
}

// TestCleanElicitations is about questions to the user.
func TestCleanElicitations(t *testing.T) {
	form := acp.ElicitationSchema{
		Type: acp.ElicitationSchemaTypeObject,
		Properties: map[string]acp.ElicitationPropertySchema{
			"name":   acp.NewElicitationPropertySchemaString(acp.StringPropertySchema{Title: acp.Some("Your name"), MinLength: acp.Some[uint32](1), MaxLength: acp.Some[uint32](40)}),
			"mail":   acp.NewElicitationPropertySchemaString(acp.StringPropertySchema{Format: acp.Some(acp.StringFormatEmail)}),
			"colour": acp.NewElicitationPropertySchemaString(acp.StringPropertySchema{Enum: acp.Some([]string{"red", "green"}), Default: acp.Some("red")}),
			"age":    acp.NewElicitationPropertySchemaInteger(acp.IntegerPropertySchema{Minimum: acp.Some[int64](0), Maximum: acp.Some[int64](150)}),
			"height": acp.NewElicitationPropertySchemaNumber(acp.NumberPropertySchema{Maximum: acp.Some(3.0)}),
			"happy":  acp.NewElicitationPropertySchemaBoolean(acp.BooleanPropertySchema{Default: acp.Some(true)}),
			"fruit": acp.NewElicitationPropertySchemaArray(acp.MultiSelectPropertySchema{
				MinItems: acp.Some[uint64](1), Items: acp.NewMultiSelectItemsString(acp.StringMultiSelectItems{Enum: []string{"apple", "pear"}}),
			}),
		},
		Required: acp.Some([]string{"name"}),
	}
	accepted := acp.NewCreateElicitationResponseAccept(acp.ElicitationAcceptAction{Content: acp.Some(map[string]acp.ElicitationContentValue{
		"name": acp.NewElicitationContentValueString("Ada"), "mail": acp.NewElicitationContentValueString("ada@example.com"),
		"colour": acp.NewElicitationContentValueString("green"), "age": acp.NewElicitationContentValueInteger(36),
		"height": acp.NewElicitationContentValueNumber(1.6), "happy": acp.NewElicitationContentValueBoolean(true),
		"fruit": acp.NewElicitationContentValueStringArray([]string{"pear"}),
	})})
	answers := []acp.CreateElicitationResponse{
		acp.NewCreateElicitationResponseAccept(acp.ElicitationAcceptAction{}), // of the page to log in
		accepted, acp.NewCreateElicitationResponseDecline(), acp.NewCreateElicitationResponseCancel(),
		acp.NewCreateElicitationResponseAccept(acp.ElicitationAcceptAction{}), // of the two pages
		acp.NewCreateElicitationResponseAccept(acp.ElicitationAcceptAction{}),
	}
	(&cleanTalk{
		agent: acp.AgentHandlers{
			// During authentication there is no session, so the question belongs to the request.
			Authenticate: func(ctx context.Context, conn *acp.AgentConn, _ *acp.AuthenticateRequest) (*acp.AuthenticateResponse, error) {
				req := acp.NewCreateElicitationRequestURL("Please log in.", acp.NewElicitationURLModeRequest(
					"elic_0", "https://example.com/login", acp.ElicitationRequestScope{RequestID: rpc.IntID(2)}))
				if _, err := conn.CreateElicitation(ctx, &req); err != nil {
					return nil, err
				}
				return nil, conn.CompleteElicitation(ctx, &acp.CompleteElicitationNotification{ElicitationID: "elic_0"})
			},
			NewSession: newSessions("sess_1"),
			Prompt: cleanScenes{
				"Ask me": func(ctx context.Context, s *acp.AgentSession) (acp.StopReason, error) {
					if err := s.Update(ctx, acp.StartToolCall("call_1", "Ask", acp.WithStatus(acp.ToolCallStatusInProgress))); err != nil {
						return "", err
					}
					for range 3 {
						req := acp.NewCreateElicitationRequestForm("Who are you?", acp.NewElicitationFormModeSession(form,
							acp.ElicitationSessionScope{SessionID: s.ID(), ToolCallID: acp.Some[acp.ToolCallID]("call_1")}))
						if _, err := s.Conn().CreateElicitation(ctx, &req); err != nil {
							return "", err
						}
					}
					return acp.StopReasonEndTurn, s.Update(ctx, acp.UpdateToolCall("call_1", acp.WithStatus(acp.ToolCallStatusCompleted)))
				},
				"Show me": func(ctx context.Context, s *acp.AgentSession) (acp.StopReason, error) {
					for _, id := range []acp.ElicitationID{"elic_1", "elic_2"} {
						if _, err := s.ElicitURL(ctx, "Please look at this page.", id, "https://example.com/welcome"); err != nil {
							return "", err
						}
					}
					return acp.StopReasonEndTurn, s.Conn().CompleteElicitation(ctx, &acp.CompleteElicitationNotification{ElicitationID: "elic_2"})
				},
			}.prompt,
		},
		agentOptions: acp.AgentOptions{AuthMethods: []acp.AuthMethod{acp.NewAuthMethodAgent(acp.AuthMethodAgent{ID: "browser", Name: "In the browser"})}},
		client: acp.ClientHandlers{
			CreateElicitation: func(context.Context, *acp.ClientConn, *acp.CreateElicitationRequest) (*acp.CreateElicitationResponse, error) {
				res := answers[0]
				answers = answers[1:]
				return &res, nil
			},
		},
		clientOptions: acp.ClientOptions{Elicitation: acp.ElicitationCapabilities{
			Form: acp.Some(acp.ElicitationFormCapabilities{}), URL: acp.Some(acp.ElicitationURLCapabilities{}),
		}},
		play: func(t *testing.T, client *acp.ClientConn) {
			_, err := client.Authenticate(t.Context(), &acp.AuthenticateRequest{MethodID: "browser"})
			must(t, err)
			s := cleanSession(t, client)
			prompt(t, s, acp.StopReasonEndTurn, "Ask me")
			prompt(t, s, acp.StopReasonEndTurn, "Show me")
		},
	}).record(t, "v1-elicitations")
}

// TestCleanErrors is about requests that fail, extensions, and $/cancel_request.
func TestCleanErrors(t *testing.T) {
	type any = map[string]string
	var agentExt rpc.Extensions[acp.AgentConn]
	rpc.Handle(&agentExt, "_shop.example/price", func(context.Context, *acp.AgentConn, *any) (*any, error) { return &any{"price": "29.98"}, nil })
	rpc.HandleNotification(&agentExt, "_shop.example/seen", func(context.Context, *acp.AgentConn, *any) error { return nil })
	var clientExt rpc.Extensions[acp.ClientConn]
	rpc.Handle(&clientExt, "_shop.example/stock", func(context.Context, *acp.ClientConn, *any) (*any, error) { return &any{"stock": "3"}, nil })
	meta := acp.Meta{"shop.example": []byte(`{"prices":true}`)}
	(&cleanTalk{
		agent: acp.AgentHandlers{
			NewSession: func(ctx context.Context, _ *acp.AgentConn, req *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
				if req.Cwd == "/slow" {
					<-ctx.Done()
					return nil, context.Cause(ctx)
				}
				return &acp.NewSessionResponse{SessionID: "sess_1"}, nil
			},
			LoadSession: func(_ context.Context, s *acp.AgentSession, _ *acp.LoadSessionRequest) (*acp.LoadSessionResponse, error) {
				return nil, acp.SessionNotFound(s.ID())
			},
			Prompt: func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
				return cleanScenes{
					"Check the stock": func(ctx context.Context, s *acp.AgentSession) (acp.StopReason, error) {
						if _, err := rpc.Call[any](ctx, s, "_shop.example/stock", any{"item": "tea"}); err != nil {
							return "", err
						}
						_, err := s.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: "/home/ada/shop/none.go"})
						if !errors.Is(err, acp.ErrResourceNotFound) {
							t.Errorf("got %v", err)
						}
						return acp.StopReasonEndTurn, s.Update(ctx, acp.AgentMessageText("Three."))
					},
					"Fail": func(context.Context, *acp.AgentSession) (acp.StopReason, error) {
						return "", acp.Public(errors.New("no model"))
					},
				}.prompt(ctx, s, req)
			},
			Extensions: &agentExt,
		},
		agentOptions: acp.AgentOptions{Initialize: func(_ context.Context, _ *acp.InitializeRequest, res *acp.InitializeResponse) error {
			res.AgentCapabilities.Meta = meta
			return nil
		}},
		client: acp.ClientHandlers{
			ReadTextFile: func(context.Context, *acp.ClientSession, *acp.ReadTextFileRequest) (*acp.ReadTextFileResponse, error) {
				return nil, acp.ErrResourceNotFound.WithData(map[string]string{"uri": "file:///home/ada/shop/none.go"})
			},
			Extensions: &clientExt,
		},
		clientOptions: acp.ClientOptions{Initialize: func(req *acp.InitializeRequest) { req.ClientCapabilities.Meta = meta }},
		play: func(t *testing.T, client *acp.ClientConn) {
			ctx := t.Context()
			s := cleanSession(t, client)
			_, err := rpc.Call[any](ctx, client, "_shop.example/price", any{"item": "tea"})
			must(t, err)
			must(t, rpc.Notify(ctx, client, "_shop.example/seen", any{"item": "tea"}))
			must(t, rpc.Notify(ctx, client, "_shop.example/unknown", any{"item": "tea"}))
			_, err = rpc.Call[any](ctx, client, "_shop.example/unknown", nil)
			code(t, err, acp.ErrMethodNotFound)
			prompt(t, s, acp.StopReasonEndTurn, "Check the stock")
			_, err = s.Prompt(ctx, acp.TextBlock("Fail"))
			if err == nil {
				t.Error("no error")
			}
			_, err = s.Prompt(ctx, acp.TextBlock("Nothing of the sort"))
			code(t, err, acp.ErrInvalidParams)
			_, err = client.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: "nope", Cwd: "/home/ada/shop"})
			code(t, err, acp.ErrResourceNotFound)
			short, cancel := context.WithCancel(ctx)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, err := client.NewSession(short, &acp.NewSessionRequest{Cwd: "/slow"})
				if !errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
			}()
			synctest.Wait()
			cancel()
			<-ended
			synctest.Wait()
			prompt(t, s, acp.StopReasonEndTurn, "Check the stock")
		},
	}).record(t, "v1-errors")
}

// TestCleanTogether runs turns of two sessions at the same time.
func TestCleanTogether(t *testing.T) {
	steps := map[acp.SessionID]chan struct{}{}
	c := &cleanTalk{
		agent: acp.AgentHandlers{NewSession: newSessions("sess_1", "sess_2"), Prompt: cleanScenes{
			"Work": func(ctx context.Context, s *acp.AgentSession) (acp.StopReason, error) {
				step := steps[s.ID()]
				for _, u := range []acp.SessionUpdate{
					message("msg_1", "I begin."),
					acp.StartToolCall("call_1", "Read cart.go", acp.WithStatus(acp.ToolCallStatusPending), acp.WithLocation("/home/ada/shop/cart.go", 1)),
				} {
					if err := s.Update(ctx, u); err != nil {
						return "", err
					}
					<-step
				}
				if _, err := s.RequestPermission(ctx, acp.ToolCallRef("call_1"), mayI...); err != nil {
					return "", err
				}
				<-step
				return acp.StopReasonEndTurn, sendAll(ctx, s,
					acp.UpdateToolCall("call_1", acp.WithStatus(acp.ToolCallStatusInProgress)),
					acp.UpdateToolCall("call_1", acp.WithStatus(acp.ToolCallStatusCompleted)))
			},
		}.prompt},
		client: acp.ClientHandlers{RequestPermission: selected("yes")},
		play: func(t *testing.T, client *acp.ClientConn) {
			one, two := cleanSession(t, client), cleanSession(t, client)
			steps[one.ID()], steps[two.ID()] = make(chan struct{}), make(chan struct{})
			turns := []*acp.Turn{one.Stream(t.Context(), acp.TextBlock("Work"))}
			synctest.Wait()
			turns = append(turns, two.Stream(t.Context(), acp.TextBlock("Work")))
			synctest.Wait()
			for _, id := range []acp.SessionID{"sess_1", "sess_2", "sess_2", "sess_1", "sess_2", "sess_1"} {
				steps[id] <- struct{}{}
				synctest.Wait()
			}
			for _, turn := range turns {
				if res, err := turn.Result(); err != nil || res.StopReason != acp.StopReasonEndTurn {
					t.Errorf("got %v, %v", res, err)
				}
			}
		},
	}
	c.record(t, "v1-together")
}

// TestCleanNames requires that each recording has a known version and is not empty.
func TestCleanNames(t *testing.T) {
	for _, name := range cleanNames(t) {
		cleanSchema(name)
		if len(readClean(t, name)) == 0 {
			t.Errorf("%s is empty", name)
		}
	}
}
