package conformance_test

import (
	"context"
	"encoding/base64"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
)

// cleanTalkV2 is cleanTalk for version 2. It adds the handlers that every agent with sessions needs.
type cleanTalkV2 struct {
	agent         v2draft.AgentHandlers
	agentOptions  v2draft.AgentOptions
	client        v2draft.ClientHandlers
	clientOptions v2draft.ClientOptions
	play          func(t *testing.T, client *v2draft.ClientConn)
}

func (c *cleanTalkV2) record(t *testing.T, name string) {
	sessions := []v2draft.SessionID{"sess_1", "sess_2"}
	if c.agent.NewSession == nil {
		c.agent.NewSession = func(context.Context, *v2draft.AgentConn, *v2draft.NewSessionRequest) (*v2draft.NewSessionResponse, error) {
			id := sessions[0]
			sessions = sessions[1:]
			return &v2draft.NewSessionResponse{SessionID: id}, nil
		}
	}
	if c.agent.ListSessions == nil {
		c.agent.ListSessions = func(context.Context, *v2draft.AgentConn, *v2draft.ListSessionsRequest) (*v2draft.ListSessionsResponse, error) {
			return &v2draft.ListSessionsResponse{Sessions: []v2draft.SessionInfo{}}, nil
		}
	}
	if c.agent.ResumeSession == nil {
		c.agent.ResumeSession = func(context.Context, *v2draft.AgentSession, *v2draft.ResumeSessionRequest) (*v2draft.ResumeSessionResponse, error) {
			return nil, nil
		}
	}
	if c.agent.CloseSession == nil {
		c.agent.CloseSession = func(context.Context, *v2draft.AgentSession, *v2draft.CloseSessionRequest) (*v2draft.CloseSessionResponse, error) {
			return nil, nil
		}
	}
	synctest.Test(t, func(t *testing.T) {
		var recording conformance.Recording
		agentEnd, clientEnd := v2draft.Pipe()
		c.agentOptions.Info = v2draft.Implementation{Name: "clean-agent", Version: "1.0.0"}
		c.clientOptions.Info = v2draft.Implementation{Name: "clean-client", Version: "1.0.0"}
		agent, err := v2draft.StartAgent(t.Context(), agentEnd, c.agent, &c.agentOptions)
		if err != nil {
			t.Fatal(err)
		}
		tapped := conformance.Tap(t, conformance.Client, clientEnd, &conformance.TapOptions{Schema: cleanSchema(name), OnMessage: recording.Add})
		client, err := v2draft.Connect(t.Context(), tapped, c.client, &c.clientOptions)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { // also when the play ends early
			if err := errors.Join(client.Close(), agent.Wait()); err != nil {
				t.Error(err)
			}
			if !t.Failed() {
				keep(t, name, &recording)
			}
		}()
		c.play(t, client)
		synctest.Wait()
	})
}

type sceneV2 func(ctx context.Context, s *v2draft.AgentSession) (v2draft.IdleStateUpdate, error)

// scenesV2 holds the actions of an agent in a turn, by the text of the prompt. The ids of the user's messages are
// counted.
func scenesV2(scenes map[string]sceneV2) func(context.Context, *v2draft.AgentSession, *v2draft.PromptRequest) (*v2draft.PromptResponse, error) {
	ids := []v2draft.MessageID{"user_1", "user_2", "user_3", "user_4", "user_5", "user_6", "user_7", "user_8"}
	return func(ctx context.Context, s *v2draft.AgentSession, req *v2draft.PromptRequest) (*v2draft.PromptResponse, error) {
		text, _ := req.Prompt[0].Text()
		scene, ok := scenes[text]
		if !ok {
			return nil, v2draft.InvalidParamsf("no scene %q", text)
		}
		id := ids[0]
		ids = ids[1:]
		return s.StartTurnWith(ctx, v2draft.UserMessage{MessageID: id, Content: v2draft.Some(req.Prompt)},
			func(ctx context.Context) (v2draft.IdleStateUpdate, error) { return scene(ctx, s) })
	}
}

func sendAllV2(ctx context.Context, s *v2draft.AgentSession, updates ...v2draft.SessionUpdate) error {
	for _, u := range updates {
		if err := s.Update(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

func sendsV2(end v2draft.IdleStateUpdate, updates ...v2draft.SessionUpdate) sceneV2 {
	return func(ctx context.Context, s *v2draft.AgentSession) (v2draft.IdleStateUpdate, error) {
		return end, sendAllV2(ctx, s, updates...)
	}
}

func cleanSessionV2(t *testing.T, client *v2draft.ClientConn) *v2draft.ClientSession {
	t.Helper()
	s, err := client.NewSession(t.Context(), &v2draft.NewSessionRequest{Cwd: "/home/ada/shop"})
	must(t, err)
	return s
}

func promptV2(t *testing.T, s *v2draft.ClientSession, text string, more ...v2draft.ContentBlock) {
	t.Helper()
	if _, err := s.Prompt(t.Context(), append([]v2draft.ContentBlock{v2draft.TextBlock(text)}, more...)...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	synctest.Wait()
}

var mayIV2 = []v2draft.PermissionOption{v2draft.AllowOnce("yes", "Yes"), v2draft.RejectOnce("no", "No")}

func terminalOutput(id v2draft.TerminalID, text string) v2draft.SessionUpdate {
	return v2draft.NewSessionUpdateTerminalOutputChunk(v2draft.TerminalOutputChunk{
		TerminalID: id, Data: base64.StdEncoding.EncodeToString([]byte(text)),
	})
}

// TestCleanTurnsV2 is about the parts of a turn.
func TestCleanTurnsV2(t *testing.T) {
	plan := func(status ...v2draft.PlanEntryStatus) v2draft.SessionUpdate {
		var list []v2draft.PlanEntry
		for i, s := range status {
			list = append(list, v2draft.PlanEntry{
				Content: []string{"Read the cart", "Count in cents"}[i], Priority: v2draft.PlanEntryPriorityMedium, Status: s,
			})
		}
		return v2draft.WholePlan("plan_1", list...)
	}
	(&cleanTalkV2{
		agent: v2draft.AgentHandlers{Prompt: scenesV2(map[string]sceneV2{
			"Look at all of this": sendsV2(v2draft.EndTurn(),
				plan("in_progress", "pending"),
				v2draft.AgentThoughtText("think_1", "Where is the cent?"),
				v2draft.AgentMessageText("msg_1", "I read "), v2draft.AgentMessageText("msg_1", "the cart."),
				v2draft.StartToolCall("call_1", "Read cart.go", v2draft.WithKind(v2draft.ToolKindRead), v2draft.WithStatus(v2draft.ToolCallStatusPending), v2draft.WithLocation("/home/ada/shop/cart.go", 1)),
				v2draft.UpdateToolCall("call_1", v2draft.WithStatus(v2draft.ToolCallStatusInProgress)),
				v2draft.NewSessionUpdateToolCallContentChunk(v2draft.ToolCallContentChunk{ToolCallID: "call_1", Content: v2draft.ToolText("func total() float64")}),
				v2draft.UpdateToolCall("call_1", v2draft.WithStatus(v2draft.ToolCallStatusCompleted)),
				plan("completed", "completed"),
				v2draft.TitleUpdate("The lost cent"),
				v2draft.NewSessionUpdateUsageUpdate(v2draft.UsageUpdate{Used: 1200, Size: 200000}),
				v2draft.CommandsUpdate(v2draft.NewAvailableCommandCommand(v2draft.SlashCommand{Name: "plan", Description: "Make a plan"}))),
			"Edit": func(ctx context.Context, s *v2draft.AgentSession) (v2draft.IdleStateUpdate, error) {
				if err := s.Update(ctx, v2draft.StartToolCall("call_2", "Edit cart.go", v2draft.WithKind(v2draft.ToolKindEdit), v2draft.WithStatus(v2draft.ToolCallStatusPending))); err != nil {
					return v2draft.IdleStateUpdate{}, err
				}
				_, err := s.RequestPermission(ctx, &v2draft.RequestPermissionRequest{
					Title: "Edit cart.go?", Subject: v2draft.Some(v2draft.PermissionForToolCall(v2draft.AboutToolCall("call_2", v2draft.WithTitle("Edit cart.go")))), Options: mayIV2,
				})
				if err != nil {
					return v2draft.IdleStateUpdate{}, err
				}
				return v2draft.EndTurn(), sendAllV2(ctx, s,
					v2draft.UpdateToolCall("call_2", v2draft.WithStatus(v2draft.ToolCallStatusInProgress)),
					v2draft.UpdateToolCall("call_2", v2draft.WithStatus(v2draft.ToolCallStatusCompleted), v2draft.WithContent(v2draft.ToolDiff([]v2draft.DiffChange{
						v2draft.NewDiffChangeModify(v2draft.DiffPathChange{Path: "/home/ada/shop/cart.go"}),
						v2draft.NewDiffChangeMove(v2draft.DiffPathPairChange{OldPath: "/home/ada/shop/a.go", Path: "/home/ada/shop/b.go"}),
					}))))
			},
			"Run the tests": sendsV2(v2draft.MaxTurnRequests(),
				v2draft.StartToolCall("call_3", "go test", v2draft.WithKind(v2draft.ToolKindExecute), v2draft.WithStatus(v2draft.ToolCallStatusPending)),
				v2draft.NewSessionUpdateTerminalUpdate(v2draft.TerminalUpdate{
					TerminalID: "term_1", Command: v2draft.Some("go test"), Cwd: v2draft.Some[v2draft.AbsolutePath]("/home/ada/shop"), Output: v2draft.Some(v2draft.TerminalOutput{}),
				}),
				v2draft.UpdateToolCall("call_3", v2draft.WithStatus(v2draft.ToolCallStatusInProgress), v2draft.WithContent(v2draft.ToolTerminal("term_1"))),
				terminalOutput("term_1", "ok  "), terminalOutput("term_1", "shop ✓\n"),
				v2draft.NewSessionUpdateTerminalUpdate(v2draft.TerminalUpdate{TerminalID: "term_1", ExitStatus: v2draft.Some(v2draft.TerminalExitStatus{ExitCode: v2draft.Some[int64](0)})}),
				v2draft.UpdateToolCall("call_3", v2draft.WithStatus(v2draft.ToolCallStatusCompleted))),
			"Notice and compact": sendsV2(v2draft.MaxTokens(),
				v2draft.NewSessionUpdateNotice(v2draft.Notice{Severity: v2draft.NoticeSeverityInfo, Title: "The context is nearly full"}),
				v2draft.NewSessionUpdateCompactionUpdate(v2draft.CompactionUpdate{CompactionID: "comp_1", Status: v2draft.CompactionStatusInProgress}),
				v2draft.NewSessionUpdateCompactionUpdate(v2draft.CompactionUpdate{CompactionID: "comp_1", Status: v2draft.CompactionStatusCompleted})),
			"Refuse": sendsV2(v2draft.Refusal(), v2draft.AgentMessageText("msg_2", "I would rather not.")),
		})},
		agentOptions: v2draft.AgentOptions{Prompt: v2draft.PromptCapabilities{
			Image: v2draft.Some(v2draft.PromptImageCapabilities{}), Audio: v2draft.Some(v2draft.PromptAudioCapabilities{}), EmbeddedContext: v2draft.Some(v2draft.PromptEmbeddedContextCapabilities{}),
		}},
		client: v2draft.ClientHandlers{
			RequestPermission: func(context.Context, *v2draft.ClientSession, *v2draft.RequestPermissionRequest) (*v2draft.RequestPermissionResponse, error) {
				return &v2draft.RequestPermissionResponse{Outcome: v2draft.PermissionSelected("yes")}, nil
			},
		},
		play: func(t *testing.T, client *v2draft.ClientConn) {
			s := cleanSessionV2(t, client)
			promptV2(t, s, "Look at all of this",
				v2draft.ResourceLinkBlock("cart.go", "file:///home/ada/shop/cart.go"),
				v2draft.ImageBlock("iVBORw0KGgo=", "image/png"), v2draft.AudioBlock("UklGRg==", "audio/wav"),
				v2draft.ResourceBlock(v2draft.TextResource("module shop\n", "file:///home/ada/shop/go.mod")),
				v2draft.ResourceBlock(v2draft.BlobResource("iVBORw0KGgo=", "file:///home/ada/shop/logo.png")))
			promptV2(t, s, "Edit")
			promptV2(t, s, "Run the tests")
			promptV2(t, s, "Notice and compact")
			promptV2(t, s, "Refuse")
		},
	}).record(t, "v2-turns")
}

// TestCleanSessionsV2 is about the life of sessions, and their settings.
func TestCleanSessionsV2(t *testing.T) {
	brief, model := false, v2draft.SessionConfigValueID("small")
	options := func() []v2draft.SessionConfigOption {
		return []v2draft.SessionConfigOption{
			v2draft.SelectOption("model", "Model", model, v2draft.SelectValue("small", "Small"), v2draft.SelectValue("large", "Large")),
			v2draft.NewSessionConfigOptionSelect("tone", "Tone", v2draft.SessionConfigSelect{
				CurrentValue: "warm",
				Options: v2draft.NewSessionConfigSelectOptionsGrouped([]v2draft.SessionConfigSelectGroup{
					{GroupID: "all", Name: "All", Options: []v2draft.SessionConfigSelectOption{v2draft.SelectValue("warm", "Warm"), v2draft.SelectValue("dry", "Dry")}},
				}),
			}),
			v2draft.BooleanOption("brief", "Brief", brief),
		}
	}
	deleted := false
	(&cleanTalkV2{
		agent: v2draft.AgentHandlers{
			LoginAuth: func(context.Context, *v2draft.AgentConn, *v2draft.LoginAuthRequest) (*v2draft.LoginAuthResponse, error) {
				return nil, nil
			},
			LogoutAuth: func(context.Context, *v2draft.AgentConn, *v2draft.LogoutAuthRequest) (*v2draft.LogoutAuthResponse, error) {
				return nil, nil
			},
			NewSession: func(context.Context, *v2draft.AgentConn, *v2draft.NewSessionRequest) (*v2draft.NewSessionResponse, error) {
				return &v2draft.NewSessionResponse{SessionID: "sess_1", ConfigOptions: options()}, nil
			},
			ListSessions: func(_ context.Context, _ *v2draft.AgentConn, req *v2draft.ListSessionsRequest) (*v2draft.ListSessionsResponse, error) {
				if deleted {
					return &v2draft.ListSessionsResponse{Sessions: []v2draft.SessionInfo{}}, nil
				}
				if req.Cursor.Value() == "" {
					return &v2draft.ListSessionsResponse{Sessions: []v2draft.SessionInfo{}, NextCursor: v2draft.Some[v2draft.SessionListCursor]("page/2 ✓")}, nil
				}
				return &v2draft.ListSessionsResponse{Sessions: []v2draft.SessionInfo{{SessionID: "sess_1", Cwd: "/home/ada/shop", AdditionalDirectories: []v2draft.AbsolutePath{"/home/ada/lib"}}}}, nil
			},
			ResumeSession: func(ctx context.Context, s *v2draft.AgentSession, req *v2draft.ResumeSessionRequest) (*v2draft.ResumeSessionResponse, error) {
				if req.SessionID != "sess_1" {
					return nil, v2draft.SessionNotFound(req.SessionID)
				}
				res := &v2draft.ResumeSessionResponse{ConfigOptions: options()}
				if !req.ReplayFrom.Present() {
					return res, nil
				}
				return res, sendAllV2(ctx, s,
					v2draft.NewSessionUpdateUserMessage(v2draft.UserMessage{MessageID: "user_1", Content: v2draft.Some([]v2draft.ContentBlock{v2draft.TextBlock("Count")})}),
					v2draft.NewSessionUpdateAgentMessage(v2draft.AgentMessage{MessageID: "msg_1", Content: v2draft.Some([]v2draft.ContentBlock{})}),
					v2draft.AgentMessageText("msg_1", "A float loses "), v2draft.AgentMessageText("msg_1", "a cent."))
			},
			DeleteSession: func(context.Context, *v2draft.AgentSession, *v2draft.DeleteSessionRequest) (*v2draft.DeleteSessionResponse, error) {
				deleted = true
				return nil, nil
			},
			SetSessionConfigOption: func(_ context.Context, _ *v2draft.AgentSession, req *v2draft.SetSessionConfigOptionRequest) (*v2draft.SetSessionConfigOptionResponse, error) {
				switch value := req.Variant.(type) {
				case *v2draft.SetSessionConfigOptionRequestBoolean:
					brief = value.Value
				case *v2draft.SetSessionConfigOptionRequestID:
					model = value.Value
				}
				return &v2draft.SetSessionConfigOptionResponse{ConfigOptions: options()}, nil
			},
			Prompt: scenesV2(map[string]sceneV2{
				"Count": sendsV2(v2draft.EndTurn(), v2draft.AgentMessageText("msg_1", "A float loses "), v2draft.AgentMessageText("msg_1", "a cent.")),
				"Switch": func(ctx context.Context, s *v2draft.AgentSession) (v2draft.IdleStateUpdate, error) {
					model = "small"
					return v2draft.EndTurn(), s.Update(ctx, v2draft.ConfigUpdate(options()...))
				},
			}),
		},
		agentOptions: v2draft.AgentOptions{
			AuthMethods:           []v2draft.AuthMethod{v2draft.NewAuthMethodAgent(v2draft.AuthMethodAgent{MethodID: "browser", Name: "In the browser"})},
			AdditionalDirectories: true, MCP: v2draft.MCPCapabilities{Stdio: v2draft.Some(v2draft.MCPStdioCapabilities{}), HTTP: v2draft.Some(v2draft.MCPHTTPCapabilities{})},
		},
		play: func(t *testing.T, client *v2draft.ClientConn) {
			ctx := t.Context()
			_, err := client.LoginAuth(ctx, &v2draft.LoginAuthRequest{MethodID: "browser"})
			must(t, err)
			dirs := []v2draft.AbsolutePath{"/home/ada/lib"}
			s, err := client.NewSession(ctx, &v2draft.NewSessionRequest{
				Cwd: "/home/ada/shop", AdditionalDirectories: dirs,
				MCPServers: []v2draft.MCPServer{
					v2draft.NewMCPServerStdio(v2draft.MCPServerStdio{Name: "tools", Command: "/usr/bin/tools", Args: []string{"--stdio"}}),
					v2draft.NewMCPServerHTTP(v2draft.MCPServerHTTP{Name: "web", URL: "https://example.com/mcp"}),
				},
			})
			must(t, err)
			promptV2(t, s, "Count")
			must(t, s.SetConfigOption(ctx, "model", "large"))
			must(t, s.SetBooleanConfigOption(ctx, "brief", true))
			promptV2(t, s, "Switch")
			for _, err := range client.Sessions(ctx, "") {
				must(t, err)
			}
			must(t, s.Close(ctx))
			_, err = client.ResumeSession(ctx, &v2draft.ResumeSessionRequest{
				SessionID: "sess_1", Cwd: "/home/ada/shop", AdditionalDirectories: dirs, ReplayFrom: v2draft.Some(v2draft.NewReplayFromStart(v2draft.ReplayFromStart{})),
			})
			must(t, err)
			synctest.Wait()
			must(t, s.Close(ctx))
			_, err = client.ResumeSession(ctx, &v2draft.ResumeSessionRequest{SessionID: "sess_1", Cwd: "/home/ada/shop", AdditionalDirectories: dirs})
			must(t, err)
			synctest.Wait()
			must(t, s.Close(ctx))
			_, err = client.ResumeSession(ctx, &v2draft.ResumeSessionRequest{SessionID: "nope", Cwd: "/home/ada/shop"})
			code(t, err, v2draft.ErrResourceNotFound)
			must(t, s.Delete(ctx))
			for range client.Sessions(ctx, "") {
				t.Error("a deleted session is listed")
			}
			_, err = client.LogoutAuth(ctx, &v2draft.LogoutAuthRequest{})
			must(t, err)
		},
	}).record(t, "v2-sessions")
}

// TestCleanCancelV2 is about cancellation.
func TestCleanCancelV2(t *testing.T) {
	until := func(ctx context.Context, _ *v2draft.AgentSession) (v2draft.IdleStateUpdate, error) {
		<-ctx.Done()
		return v2draft.IdleStateUpdate{}, ctx.Err()
	}
	(&cleanTalkV2{
		agent: v2draft.AgentHandlers{Prompt: scenesV2(map[string]sceneV2{
			"Write a story": func(ctx context.Context, s *v2draft.AgentSession) (v2draft.IdleStateUpdate, error) {
				if err := s.Update(ctx, v2draft.AgentMessageText("msg_1", "Once upon ")); err != nil {
					return v2draft.IdleStateUpdate{}, err
				}
				<-ctx.Done()
				return v2draft.IdleStateUpdate{}, s.Update(context.WithoutCancel(ctx), v2draft.AgentMessageText("msg_1", "the end."))
			},
			"Delete it": func(ctx context.Context, s *v2draft.AgentSession) (v2draft.IdleStateUpdate, error) {
				if err := s.Update(ctx, v2draft.StartToolCall("call_1", "rm cart.go", v2draft.WithStatus(v2draft.ToolCallStatusPending))); err != nil {
					return v2draft.IdleStateUpdate{}, err
				}
				_, err := s.RequestPermission(context.WithoutCancel(ctx), &v2draft.RequestPermissionRequest{Title: "Delete?", Options: mayIV2})
				if err != nil {
					return v2draft.IdleStateUpdate{}, err
				}
				<-ctx.Done()
				return v2draft.IdleStateUpdate{}, s.Update(context.WithoutCancel(ctx), v2draft.UpdateToolCall("call_1", v2draft.WithStatus(v2draft.ToolCallStatusFailed)))
			},
			"Think":    until,
			"Say more": sendsV2(v2draft.EndTurn(), v2draft.AgentMessageText("msg_2", "There is more.")),
			"Fail": func(context.Context, *v2draft.AgentSession) (v2draft.IdleStateUpdate, error) {
				return v2draft.IdleStateUpdate{}, v2draft.Public(errors.New("no model"))
			},
		})},
		client: v2draft.ClientHandlers{
			RequestPermission: func(ctx context.Context, _ *v2draft.ClientSession, _ *v2draft.RequestPermissionRequest) (*v2draft.RequestPermissionResponse, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
		},
		play: func(t *testing.T, client *v2draft.ClientConn) {
			s := cleanSessionV2(t, client)
			for _, text := range []string{"Write a story", "Delete it", "Think"} {
				turn := s.Stream(t.Context(), v2draft.TextBlock(text))
				synctest.Wait()
				must(t, s.Cancel(t.Context()))
				synctest.Wait()
				_, err := turn.Result()
				must(t, err)
			}
			promptV2(t, s, "Say more")
			promptV2(t, s, "Fail")
			turn := s.Stream(t.Context(), v2draft.TextBlock("Think"))
			synctest.Wait()
			must(t, s.Close(t.Context()))
			_, err := turn.Result()
			must(t, err)
		},
	}).record(t, "v2-cancel")
}

// TestCleanElicitationsV2 is about questions to the user, and extensions.
func TestCleanElicitationsV2(t *testing.T) {
	form := v2draft.ElicitationSchema{
		Type: v2draft.ElicitationSchemaTypeObject,
		Properties: map[string]v2draft.ElicitationPropertySchema{
			"name": v2draft.NewElicitationPropertySchemaString(v2draft.StringPropertySchema{Title: v2draft.Some("Your name")}),
			"age":  v2draft.NewElicitationPropertySchemaInteger(v2draft.IntegerPropertySchema{Minimum: v2draft.Some[int64](0)}),
		},
		Required: v2draft.Some([]string{"name"}),
	}
	answers := []v2draft.CreateElicitationResponse{
		v2draft.NewCreateElicitationResponseAccept(v2draft.ElicitationAcceptAction{Content: v2draft.Some(map[string]v2draft.ElicitationContentValue{
			"name": v2draft.NewElicitationContentValueString("Ada"), "age": v2draft.NewElicitationContentValueInteger(36),
		})}),
		v2draft.NewCreateElicitationResponseDecline(),
		v2draft.NewCreateElicitationResponseAccept(v2draft.ElicitationAcceptAction{}),
	}
	type members = map[string]string
	var ext rpc.Extensions[v2draft.AgentConn]
	rpc.Handle(&ext, "_shop.example/price", func(context.Context, *v2draft.AgentConn, *members) (*members, error) {
		return &members{"price": "29.98"}, nil
	})
	meta := v2draft.Meta{"shop.example": []byte(`{"prices":true}`)}
	(&cleanTalkV2{
		agent: v2draft.AgentHandlers{
			Extensions: &ext,
			Prompt: scenesV2(map[string]sceneV2{
				"Ask me": func(ctx context.Context, s *v2draft.AgentSession) (v2draft.IdleStateUpdate, error) {
					for range 2 {
						if _, err := s.ElicitForm(ctx, "Who are you?", form); err != nil {
							return v2draft.IdleStateUpdate{}, err
						}
					}
					if _, err := s.ElicitURL(ctx, "Please look at this page.", "elic_1", "https://example.com/welcome"); err != nil {
						return v2draft.IdleStateUpdate{}, err
					}
					return v2draft.EndTurn(), s.Conn().CompleteElicitation(ctx, &v2draft.CompleteElicitationNotification{ElicitationID: "elic_1"})
				},
			}),
		},
		agentOptions: v2draft.AgentOptions{Initialize: func(_ context.Context, _ *v2draft.InitializeRequest, res *v2draft.InitializeResponse) error {
			res.Capabilities.Meta = meta
			return nil
		}},
		client: v2draft.ClientHandlers{
			CreateElicitation: func(context.Context, *v2draft.ClientConn, *v2draft.CreateElicitationRequest) (*v2draft.CreateElicitationResponse, error) {
				res := answers[0]
				answers = answers[1:]
				return &res, nil
			},
		},
		clientOptions: v2draft.ClientOptions{Elicitation: v2draft.ElicitationCapabilities{
			Form: v2draft.Some(v2draft.ElicitationFormCapabilities{}), URL: v2draft.Some(v2draft.ElicitationURLCapabilities{}),
		}},
		play: func(t *testing.T, client *v2draft.ClientConn) {
			s := cleanSessionV2(t, client)
			promptV2(t, s, "Ask me")
			_, err := rpc.Call[members](t.Context(), client, "_shop.example/price", members{"item": "tea"})
			must(t, err)
			_, err = rpc.Call[members](t.Context(), client, "_shop.example/unknown", nil)
			code(t, err, v2draft.ErrMethodNotFound)
		},
	}).record(t, "v2-elicitations")
}
