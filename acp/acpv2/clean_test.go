package acpv2_test

import (
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"testing"
	"testing/synctest"

	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/cleantest"
	"github.com/acpgo/sdk/internal/test/must"
)

var update = flag.Bool("update", false, "rewrite the clean recordings of version 2, and api.txt")

// cleanTalk is a conversation between an agent and a client in memory, with everything that varies fixed: a clean
// recording in conformance/testdata/clean, from which the judge's tests make conversations that break rules.
type cleanTalk struct {
	agent         acpv2.AgentHandlers
	agentOptions  acpv2.AgentOptions
	client        acpv2.ClientHandlers
	clientOptions acpv2.ClientOptions
	play          func(t *testing.T, client *acpv2.ClientConn)
}

func (c *cleanTalk) record(t *testing.T, name string) {
	sessions := []acpv2.SessionID{"sess_1", "sess_2"}
	if c.agent.NewSession == nil {
		c.agent.NewSession = func(context.Context, *acpv2.AgentConn, *acpv2.NewSessionRequest) (*acpv2.NewSessionResponse, error) {
			id := sessions[0]
			sessions = sessions[1:]
			return &acpv2.NewSessionResponse{SessionID: id}, nil
		}
	}
	if c.agent.ListSessions == nil {
		c.agent.ListSessions = func(context.Context, *acpv2.AgentConn, *acpv2.ListSessionsRequest) (*acpv2.ListSessionsResponse, error) {
			return &acpv2.ListSessionsResponse{Sessions: []acpv2.SessionInfo{}}, nil
		}
	}
	if c.agent.ResumeSession == nil {
		c.agent.ResumeSession = nothing
	}
	c.agent.CloseSession = nothing
	synctest.Test(t, func(t *testing.T) {
		var recording conformance.Recording
		agentEnd, clientEnd := acpv2.Pipe()
		c.agentOptions.Info = acpv2.Implementation{Name: "clean-agent", Version: "1.0.0"}
		c.clientOptions.Info = acpv2.Implementation{Name: "clean-client", Version: "1.0.0"}
		agent := must.Get(acpv2.StartAgent(t.Context(), agentEnd, c.agent, &c.agentOptions))(t)
		tapped := conformance.Tap(t, conformance.Client, clientEnd, &conformance.TapOptions{Schema: conformance.V2(), OnMessage: recording.Add})
		client := must.Get(acpv2.Connect(t.Context(), tapped, c.client, &c.clientOptions))(t)
		defer func() { // also when the play ends early
			must.Do(t, errors.Join(client.Close(), agent.Wait()))
			if !t.Failed() {
				cleantest.Dir("../../conformance/testdata/clean").Keep(t, name, &recording, *update)
			}
		}()
		c.play(t, client)
		synctest.Wait()
	})
}

// cleanScenes holds the actions of an agent in a turn, by the text of the prompt. The ids of the user's messages are
// counted.
func cleanScenes(scenes map[string]work) func(context.Context, *acpv2.AgentSession, *acpv2.PromptRequest) (*acpv2.PromptResponse, error) {
	ids := []acpv2.MessageID{"user_1", "user_2", "user_3", "user_4", "user_5", "user_6", "user_7", "user_8"}
	return func(ctx context.Context, s *acpv2.AgentSession, req *acpv2.PromptRequest) (*acpv2.PromptResponse, error) {
		text := req.Prompt[0].Text()
		scene, ok := scenes[text]
		if !ok {
			return nil, acpv2.InvalidParamsf("no scene %q", text)
		}
		id := ids[0]
		ids = ids[1:]
		return s.StartTurnWith(ctx, acpv2.UserMessage{MessageID: id, Content: acpv2.Some(req.Prompt)},
			func(ctx context.Context) (acpv2.IdleStateUpdate, error) { return scene(ctx, s) })
	}
}

func sendAll(ctx context.Context, s *acpv2.AgentSession, updates ...acpv2.SessionUpdate) error {
	for _, u := range updates {
		if err := s.Update(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

func sends(end acpv2.IdleStateUpdate, updates ...acpv2.SessionUpdate) work {
	return func(ctx context.Context, s *acpv2.AgentSession) (acpv2.IdleStateUpdate, error) {
		return end, sendAll(ctx, s, updates...)
	}
}

// code checks the code of an error.
func code(t *testing.T, err error, want rpc.Code) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

func cleanSession(t *testing.T, client *acpv2.ClientConn) *acpv2.ClientSession {
	t.Helper()
	s := must.Get(client.NewSession(t.Context(), &acpv2.NewSessionRequest{Cwd: "/home/ada/shop"}))(t)
	return s
}

func cleanPrompt(t *testing.T, s *acpv2.ClientSession, text string, more ...acpv2.ContentBlock) {
	t.Helper()
	if _, err := s.Prompt(t.Context(), append([]acpv2.ContentBlock{acpv2.TextBlock(text)}, more...)...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	synctest.Wait()
}

var mayI = []acpv2.PermissionOption{acpv2.AllowOnce("yes", "Yes"), acpv2.RejectOnce("no", "No")}

func terminalOutput(id acpv2.TerminalID, text string) acpv2.SessionUpdate {
	return acpv2.NewSessionUpdateTerminalOutputChunk(acpv2.TerminalOutputChunk{
		TerminalID: id, Data: base64.StdEncoding.EncodeToString([]byte(text)),
	})
}

// TestCleanTurns is about the parts of a turn.
func TestCleanTurns(t *testing.T) {
	plan := func(status ...acpv2.PlanEntryStatus) acpv2.SessionUpdate {
		var list []acpv2.PlanEntry
		for i, s := range status {
			list = append(list, acpv2.PlanEntry{
				Content: []string{"Read the cart", "Count in cents"}[i], Priority: acpv2.PlanEntryPriorityMedium, Status: s,
			})
		}
		return acpv2.UpdatePlan("plan_1", list...)
	}
	(&cleanTalk{
		agent: acpv2.AgentHandlers{Prompt: cleanScenes(map[string]work{
			"Look at all of this": sends(acpv2.EndTurn(),
				plan("in_progress", "pending"),
				acpv2.AgentThoughtText("think_1", "Where is the cent?"),
				acpv2.AgentMessageText("msg_1", "I read "), acpv2.AgentMessageText("msg_1", "the cart."),
				acpv2.StartToolCall("call_1", "Read cart.go", acpv2.WithKind(acpv2.ToolKindRead), acpv2.WithStatus(acpv2.ToolCallStatusPending), acpv2.WithLocation("/home/ada/shop/cart.go", 1)),
				acpv2.UpdateToolCall("call_1", acpv2.WithStatus(acpv2.ToolCallStatusInProgress)),
				acpv2.NewSessionUpdateToolCallContentChunk(acpv2.ToolCallContentChunk{ToolCallID: "call_1", Content: acpv2.ToolText("func total() float64")}),
				acpv2.UpdateToolCall("call_1", acpv2.WithStatus(acpv2.ToolCallStatusCompleted)),
				plan("completed", "completed"),
				acpv2.TitleUpdate("The lost cent"),
				acpv2.NewSessionUpdateUsageUpdate(acpv2.UsageUpdate{Used: 1200, Size: 200000}),
				acpv2.CommandsUpdate(acpv2.NewAvailableCommandCommand(acpv2.SlashCommand{Name: "plan", Description: "Make a plan"}))),
			"Edit": func(ctx context.Context, s *acpv2.AgentSession) (acpv2.IdleStateUpdate, error) {
				if err := s.Update(ctx, acpv2.StartToolCall("call_2", "Edit cart.go", acpv2.WithKind(acpv2.ToolKindEdit), acpv2.WithStatus(acpv2.ToolCallStatusPending))); err != nil {
					return acpv2.IdleStateUpdate{}, err
				}
				_, err := s.RequestPermission(ctx, &acpv2.RequestPermissionRequest{
					Title: "Edit cart.go?", Subject: acpv2.Some(acpv2.PermissionForToolCall(acpv2.ToolCallRef("call_2", acpv2.WithTitle("Edit cart.go")))), Options: mayI,
				})
				if err != nil {
					return acpv2.IdleStateUpdate{}, err
				}
				return acpv2.EndTurn(), sendAll(ctx, s,
					acpv2.UpdateToolCall("call_2", acpv2.WithStatus(acpv2.ToolCallStatusInProgress)),
					acpv2.UpdateToolCall("call_2", acpv2.WithStatus(acpv2.ToolCallStatusCompleted), acpv2.WithContent(acpv2.ToolDiff([]acpv2.DiffChange{
						acpv2.NewDiffChangeModify(acpv2.DiffPathChange{Path: "/home/ada/shop/cart.go"}),
						acpv2.NewDiffChangeMove(acpv2.DiffPathPairChange{OldPath: "/home/ada/shop/a.go", Path: "/home/ada/shop/b.go"}),
					}))))
			},
			"Run the tests": sends(acpv2.MaxTurnRequests(),
				acpv2.StartToolCall("call_3", "go test", acpv2.WithKind(acpv2.ToolKindExecute), acpv2.WithStatus(acpv2.ToolCallStatusPending)),
				acpv2.NewSessionUpdateTerminalUpdate(acpv2.TerminalUpdate{
					TerminalID: "term_1", Command: acpv2.Some("go test"), Cwd: acpv2.Some[acpv2.AbsolutePath]("/home/ada/shop"), Output: acpv2.Some(acpv2.TerminalOutput{}),
				}),
				acpv2.UpdateToolCall("call_3", acpv2.WithStatus(acpv2.ToolCallStatusInProgress), acpv2.WithContent(acpv2.ToolTerminal("term_1"))),
				terminalOutput("term_1", "ok  "), terminalOutput("term_1", "shop ✓\n"),
				acpv2.NewSessionUpdateTerminalUpdate(acpv2.TerminalUpdate{TerminalID: "term_1", ExitStatus: acpv2.Some(acpv2.TerminalExitStatus{ExitCode: acpv2.Some[int64](0)})}),
				acpv2.UpdateToolCall("call_3", acpv2.WithStatus(acpv2.ToolCallStatusCompleted))),
			"Notice and compact": sends(acpv2.MaxTokens(),
				acpv2.NewSessionUpdateNotice(acpv2.Notice{Severity: acpv2.NoticeSeverityInfo, Title: "The context is nearly full"}),
				acpv2.NewSessionUpdateCompactionUpdate(acpv2.CompactionUpdate{CompactionID: "comp_1", Status: acpv2.CompactionStatusInProgress}),
				acpv2.NewSessionUpdateCompactionUpdate(acpv2.CompactionUpdate{CompactionID: "comp_1", Status: acpv2.CompactionStatusCompleted})),
			"Refuse": sends(acpv2.Refusal(), acpv2.AgentMessageText("msg_2", "I would rather not.")),
		})},
		agentOptions: acpv2.AgentOptions{Prompt: acpv2.PromptCapabilities{
			Image: acpv2.Some(acpv2.PromptImageCapabilities{}), Audio: acpv2.Some(acpv2.PromptAudioCapabilities{}), EmbeddedContext: acpv2.Some(acpv2.PromptEmbeddedContextCapabilities{}),
		}},
		client: acpv2.ClientHandlers{
			RequestPermission: func(context.Context, *acpv2.ClientSession, *acpv2.RequestPermissionRequest) (*acpv2.RequestPermissionResponse, error) {
				return &acpv2.RequestPermissionResponse{Outcome: acpv2.PermissionSelected("yes")}, nil
			},
		},
		play: func(t *testing.T, client *acpv2.ClientConn) {
			s := cleanSession(t, client)
			cleanPrompt(t, s, "Look at all of this",
				acpv2.ResourceLinkBlock("cart.go", "file:///home/ada/shop/cart.go"),
				acpv2.ImageBlock("iVBORw0KGgo=", "image/png"), acpv2.AudioBlock("UklGRg==", "audio/wav"),
				acpv2.ResourceBlock(acpv2.TextResource("module shop\n", "file:///home/ada/shop/go.mod")),
				acpv2.ResourceBlock(acpv2.BlobResource("iVBORw0KGgo=", "file:///home/ada/shop/logo.png")))
			cleanPrompt(t, s, "Edit")
			cleanPrompt(t, s, "Run the tests")
			cleanPrompt(t, s, "Notice and compact")
			cleanPrompt(t, s, "Refuse")
		},
	}).record(t, "v2-turns")
}

// TestCleanSessions is about the life of sessions, and their settings.
func TestCleanSessions(t *testing.T) {
	brief, model := false, acpv2.SessionConfigValueID("small")
	options := func() []acpv2.SessionConfigOption {
		return []acpv2.SessionConfigOption{
			acpv2.SelectOption("model", "Model", model, acpv2.SelectValue("small", "Small"), acpv2.SelectValue("large", "Large")),
			acpv2.NewSessionConfigOptionSelect("tone", "Tone", acpv2.SessionConfigSelect{
				CurrentValue: "warm",
				Options: acpv2.NewSessionConfigSelectOptionsGrouped([]acpv2.SessionConfigSelectGroup{
					{GroupID: "all", Name: "All", Options: []acpv2.SessionConfigSelectOption{acpv2.SelectValue("warm", "Warm"), acpv2.SelectValue("dry", "Dry")}},
				}),
			}),
			acpv2.BooleanOption("brief", "Brief", brief),
		}
	}
	deleted := false
	(&cleanTalk{
		agent: acpv2.AgentHandlers{
			LoginAuth:  nothing[*acpv2.AgentConn, *acpv2.LoginAuthRequest, *acpv2.LoginAuthResponse],
			LogoutAuth: nothing[*acpv2.AgentConn, *acpv2.LogoutAuthRequest, *acpv2.LogoutAuthResponse],
			NewSession: func(context.Context, *acpv2.AgentConn, *acpv2.NewSessionRequest) (*acpv2.NewSessionResponse, error) {
				return &acpv2.NewSessionResponse{SessionID: "sess_1", ConfigOptions: options()}, nil
			},
			ListSessions: func(_ context.Context, _ *acpv2.AgentConn, req *acpv2.ListSessionsRequest) (*acpv2.ListSessionsResponse, error) {
				if deleted {
					return &acpv2.ListSessionsResponse{Sessions: []acpv2.SessionInfo{}}, nil
				}
				if req.Cursor.Value() == "" {
					return &acpv2.ListSessionsResponse{Sessions: []acpv2.SessionInfo{}, NextCursor: acpv2.Some[acpv2.SessionListCursor]("page/2 ✓")}, nil
				}
				return &acpv2.ListSessionsResponse{Sessions: []acpv2.SessionInfo{{SessionID: "sess_1", Cwd: "/home/ada/shop", AdditionalDirectories: []acpv2.AbsolutePath{"/home/ada/lib"}}}}, nil
			},
			ResumeSession: func(ctx context.Context, s *acpv2.AgentSession, req *acpv2.ResumeSessionRequest) (*acpv2.ResumeSessionResponse, error) {
				if req.SessionID != "sess_1" {
					return nil, acpv2.SessionNotFound(req.SessionID)
				}
				res := &acpv2.ResumeSessionResponse{ConfigOptions: options()}
				if !req.ReplayFrom.Present() {
					return res, nil
				}
				return res, sendAll(ctx, s,
					acpv2.NewSessionUpdateUserMessage(acpv2.UserMessage{MessageID: "user_1", Content: acpv2.Some([]acpv2.ContentBlock{acpv2.TextBlock("Count")})}),
					acpv2.NewSessionUpdateAgentMessage(acpv2.AgentMessage{MessageID: "msg_1", Content: acpv2.Some([]acpv2.ContentBlock{})}),
					acpv2.AgentMessageText("msg_1", "A float loses "), acpv2.AgentMessageText("msg_1", "a cent."))
			},
			DeleteSession: func(context.Context, *acpv2.AgentSession, *acpv2.DeleteSessionRequest) (*acpv2.DeleteSessionResponse, error) {
				deleted = true
				return nil, nil
			},
			SetSessionConfigOption: func(_ context.Context, _ *acpv2.AgentSession, req *acpv2.SetSessionConfigOptionRequest) (*acpv2.SetSessionConfigOptionResponse, error) {
				switch value := req.Variant.(type) {
				case *acpv2.SetSessionConfigOptionRequestBoolean:
					brief = value.Value
				case *acpv2.SetSessionConfigOptionRequestID:
					model = value.Value
				}
				return &acpv2.SetSessionConfigOptionResponse{ConfigOptions: options()}, nil
			},
			Prompt: cleanScenes(map[string]work{
				"Count": sends(acpv2.EndTurn(), acpv2.AgentMessageText("msg_1", "A float loses "), acpv2.AgentMessageText("msg_1", "a cent.")),
				"Switch": func(ctx context.Context, s *acpv2.AgentSession) (acpv2.IdleStateUpdate, error) {
					model = "small"
					return acpv2.EndTurn(), s.Update(ctx, acpv2.ConfigUpdate(options()...))
				},
			}),
		},
		agentOptions: acpv2.AgentOptions{
			AuthMethods:           []acpv2.AuthMethod{acpv2.NewAuthMethodAgent(acpv2.AuthMethodAgent{MethodID: "browser", Name: "In the browser"})},
			AdditionalDirectories: true, MCP: acpv2.MCPCapabilities{Stdio: acpv2.Some(acpv2.MCPStdioCapabilities{}), HTTP: acpv2.Some(acpv2.MCPHTTPCapabilities{})},
		},
		play: func(t *testing.T, client *acpv2.ClientConn) {
			ctx := t.Context()
			must.Get(client.LoginAuth(ctx, &acpv2.LoginAuthRequest{MethodID: "browser"}))(t)
			dirs := []acpv2.AbsolutePath{"/home/ada/lib"}
			s := must.Get(client.NewSession(ctx, &acpv2.NewSessionRequest{
				Cwd: "/home/ada/shop", AdditionalDirectories: dirs,
				MCPServers: []acpv2.MCPServer{
					acpv2.NewMCPServerStdio(acpv2.MCPServerStdio{Name: "tools", Command: "/usr/bin/tools", Args: []string{"--stdio"}}),
					acpv2.NewMCPServerHTTP(acpv2.MCPServerHTTP{Name: "web", URL: "https://example.com/mcp"}),
				},
			}))(t)
			cleanPrompt(t, s, "Count")
			must.Do(t, s.SetConfigOption(ctx, "model", "large"))
			must.Do(t, s.SetBooleanConfigOption(ctx, "brief", true))
			cleanPrompt(t, s, "Switch")
			for _, err := range client.Sessions(ctx, "") {
				must.Do(t, err)
			}
			must.Do(t, s.Close(ctx))
			must.Get(client.ResumeSession(ctx, &acpv2.ResumeSessionRequest{
				SessionID: "sess_1", Cwd: "/home/ada/shop", AdditionalDirectories: dirs, ReplayFrom: acpv2.Some(acpv2.NewReplayFromStart(acpv2.ReplayFromStart{})),
			}))(t)
			synctest.Wait()
			must.Do(t, s.Close(ctx))
			must.Get(client.ResumeSession(ctx, &acpv2.ResumeSessionRequest{SessionID: "sess_1", Cwd: "/home/ada/shop", AdditionalDirectories: dirs}))(t)
			synctest.Wait()
			must.Do(t, s.Close(ctx))
			_, err := client.ResumeSession(ctx, &acpv2.ResumeSessionRequest{SessionID: "nope", Cwd: "/home/ada/shop"})
			code(t, err, acpv2.ErrResourceNotFound)
			must.Do(t, s.Delete(ctx))
			for range client.Sessions(ctx, "") {
				t.Error("a deleted session is listed")
			}
			must.Get(client.LogoutAuth(ctx, &acpv2.LogoutAuthRequest{}))(t)
		},
	}).record(t, "v2-sessions")
}

// TestCleanCancel is about cancellation.
func TestCleanCancel(t *testing.T) {
	(&cleanTalk{
		agent: acpv2.AgentHandlers{Prompt: cleanScenes(map[string]work{
			"Write a story": func(ctx context.Context, s *acpv2.AgentSession) (acpv2.IdleStateUpdate, error) {
				if err := s.Update(ctx, acpv2.AgentMessageText("msg_1", "Once upon ")); err != nil {
					return acpv2.IdleStateUpdate{}, err
				}
				<-ctx.Done()
				return acpv2.IdleStateUpdate{}, s.Update(context.WithoutCancel(ctx), acpv2.AgentMessageText("msg_1", "the end."))
			},
			"Delete it": func(ctx context.Context, s *acpv2.AgentSession) (acpv2.IdleStateUpdate, error) {
				if err := s.Update(ctx, acpv2.StartToolCall("call_1", "rm cart.go", acpv2.WithStatus(acpv2.ToolCallStatusPending))); err != nil {
					return acpv2.IdleStateUpdate{}, err
				}
				_, err := s.RequestPermission(context.WithoutCancel(ctx), &acpv2.RequestPermissionRequest{Title: "Delete?", Options: mayI})
				if err != nil {
					return acpv2.IdleStateUpdate{}, err
				}
				<-ctx.Done()
				return acpv2.IdleStateUpdate{}, s.Update(context.WithoutCancel(ctx), acpv2.UpdateToolCall("call_1", acpv2.WithStatus(acpv2.ToolCallStatusFailed)))
			},
			"Think": func(ctx context.Context, s *acpv2.AgentSession) (acpv2.IdleStateUpdate, error) {
				return waits(make(chan struct{}))(ctx, s)
			},
			"Say more": sends(acpv2.EndTurn(), acpv2.AgentMessageText("msg_2", "There is more.")),
			"Fail": func(context.Context, *acpv2.AgentSession) (acpv2.IdleStateUpdate, error) {
				return acpv2.IdleStateUpdate{}, acpv2.Public(errors.New("no model"))
			},
		})},
		client: acpv2.ClientHandlers{RequestPermission: holds(make(chan struct{}))},
		play: func(t *testing.T, client *acpv2.ClientConn) {
			s := cleanSession(t, client)
			for _, text := range []string{"Write a story", "Delete it", "Think"} {
				turn := s.Stream(t.Context(), acpv2.TextBlock(text))
				synctest.Wait()
				must.Do(t, s.Cancel(t.Context()))
				synctest.Wait()
				must.Get(turn.Result())(t)
			}
			cleanPrompt(t, s, "Say more")
			cleanPrompt(t, s, "Fail")
			turn := s.Stream(t.Context(), acpv2.TextBlock("Think"))
			synctest.Wait()
			must.Do(t, s.Close(t.Context()))
			must.Get(turn.Result())(t)
		},
	}).record(t, "v2-cancel")
}

// TestCleanElicitations is about questions to the user, and extensions.
func TestCleanElicitations(t *testing.T) {
	form := acpv2.ElicitationSchema{
		Type: acpv2.ElicitationSchemaTypeObject,
		Properties: map[string]acpv2.ElicitationPropertySchema{
			"name": acpv2.NewElicitationPropertySchemaString(acpv2.StringPropertySchema{Title: acpv2.Some("Your name")}),
			"age":  acpv2.NewElicitationPropertySchemaInteger(acpv2.IntegerPropertySchema{Minimum: acpv2.Some[int64](0)}),
		},
		Required: acpv2.Some([]string{"name"}),
	}
	answers := []acpv2.CreateElicitationResponse{
		acpv2.NewCreateElicitationResponseAccept(acpv2.ElicitationAcceptAction{Content: acpv2.Some(map[string]acpv2.ElicitationContentValue{
			"name": acpv2.NewElicitationContentValueString("Ada"), "age": acpv2.NewElicitationContentValueInteger(36),
		})}),
		acpv2.NewCreateElicitationResponseDecline(),
		acpv2.NewCreateElicitationResponseAccept(acpv2.ElicitationAcceptAction{}),
	}
	type members = map[string]string
	var ext rpc.Extensions[acpv2.AgentConn]
	rpc.Handle(&ext, "_shop.example/price", func(context.Context, *acpv2.AgentConn, *members) (*members, error) {
		return &members{"price": "29.98"}, nil
	})
	meta := acpv2.Meta{"shop.example": []byte(`{"prices":true}`)}
	(&cleanTalk{
		agent: acpv2.AgentHandlers{
			Extensions: &ext,
			Prompt: cleanScenes(map[string]work{
				"Ask me": func(ctx context.Context, s *acpv2.AgentSession) (acpv2.IdleStateUpdate, error) {
					for range 2 {
						if _, err := s.ElicitForm(ctx, "Who are you?", form); err != nil {
							return acpv2.IdleStateUpdate{}, err
						}
					}
					if _, err := s.ElicitURL(ctx, "Please look at this page.", "elic_1", "https://example.com/welcome"); err != nil {
						return acpv2.IdleStateUpdate{}, err
					}
					return acpv2.EndTurn(), s.Conn().CompleteElicitation(ctx, &acpv2.CompleteElicitationNotification{ElicitationID: "elic_1"})
				},
			}),
		},
		agentOptions: acpv2.AgentOptions{Initialize: func(_ context.Context, _ *acpv2.InitializeRequest, res *acpv2.InitializeResponse) error {
			res.Capabilities.Meta = meta
			return nil
		}},
		client: acpv2.ClientHandlers{
			CreateElicitation: func(context.Context, *acpv2.ClientConn, *acpv2.CreateElicitationRequest) (*acpv2.CreateElicitationResponse, error) {
				res := answers[0]
				answers = answers[1:]
				return &res, nil
			},
		},
		clientOptions: acpv2.ClientOptions{Elicitation: acpv2.ElicitationCapabilities{
			Form: acpv2.Some(acpv2.ElicitationFormCapabilities{}), URL: acpv2.Some(acpv2.ElicitationURLCapabilities{}),
		}},
		play: func(t *testing.T, client *acpv2.ClientConn) {
			s := cleanSession(t, client)
			cleanPrompt(t, s, "Ask me")
			must.Get(rpc.Call[members](t.Context(), client, "_shop.example/price", members{"item": "tea"}))(t)
			_, err := rpc.Call[members](t.Context(), client, "_shop.example/unknown", nil)
			code(t, err, acpv2.ErrMethodNotFound)
		},
	}).record(t, "v2-elicitations")
}
