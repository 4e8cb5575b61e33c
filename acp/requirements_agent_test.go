package acp_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/tier"
)

// prompting is an agent whose prompts are handled by run.
func prompting(run func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) error) acp.AgentHandlers {
	return acp.AgentHandlers{
		Prompt: func(ctx context.Context, session *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			if err := run(ctx, session, req); err != nil {
				return nil, err
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
	}
}

const (
	prompt1   = `-> session/prompt#"p" {"sessionId":"s","prompt":[]}` + "\n"
	answered1 = `<- #"p" {"stopReason":"end_turn"}` + "\n"
)

// chunk is the update with a text of the agent's, a JSON string.
func chunk(text string) string {
	return `<- session/update {"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":` + text + `}}}` + "\n"
}

func TestAgentsVersion(t *testing.T) {
	const ours = `<- #1 {"protocolVersion":1,"...":""}`
	for name, versions := range map[string]map[string]string{
		"INI8_Supported": {`1`: ours, `1.0`: ours},
		"INI9_Other":     {`9999`: ours, `65535`: ours, `0`: ours, `2`: ours},
		"INI9_None": {
			`"1"`: `<- #1 -32602 {"pointer":"/protocolVersion","...":""}`, `-1`: `<- #1 -32602 {"pointer":"/protocolVersion","...":""}`,
			`1.5`: `<- #1 -32602 {"pointer":"/protocolVersion","...":""}`, `70000`: `<- #1 -32602 {"pointer":"/protocolVersion","...":""}`,
			`null`: `<- #1 -32602 {"pointer":"/protocolVersion","...":""}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for version, answer := range versions {
				script := `-> initialize#1 {"protocolVersion":` + version + "}\n" + answer + "\n"
				if name == "INI9_None" {
					script += hello(`{}`) // the next attempt is fine
				}
				playClient(t, acp.AgentHandlers{}, nil, script)
			}
		})
	}
}

// tryEverything makes every call for which a client's capability is needed, and returns the methods of
// those that were not refused.
func tryEverything(ctx context.Context, t *testing.T, s *acp.AgentSession) (made []string) {
	form := acp.NewCreateElicitationRequestForm("?", acp.NewElicitationFormModeSession(
		acp.ElicitationSchema{}, acp.ElicitationSessionScope{SessionID: s.ID()}))
	url := acp.NewCreateElicitationRequestURL("?", acp.NewElicitationURLModeSession(
		"e", "https://example.com", acp.ElicitationSessionScope{SessionID: s.ID()}))
	update := func(u acp.SessionUpdate) func() error { return func() error { return s.Update(ctx, u) } }
	client := s.Conn()
	return supported(t, []namedCall{
		{"fs/read_text_file", func() error { _, err := s.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: "/x"}); return err }},
		{"fs/write_text_file", func() error { _, err := s.WriteTextFile(ctx, &acp.WriteTextFileRequest{Path: "/x"}); return err }},
		{"terminal/create", func() error {
			terminal, err := s.CreateTerminal(ctx, &acp.CreateTerminalRequest{Command: "x"})
			if err == nil {
				err = terminal.Close(ctx)
			}
			return err
		}},
		{"terminal/kill", func() error {
			_, err := client.KillTerminal(ctx, &acp.KillTerminalRequest{SessionID: s.ID(), TerminalID: "t"})
			return err
		}},
		{"terminal/output", func() error {
			_, err := client.TerminalOutput(ctx, &acp.TerminalOutputRequest{SessionID: s.ID(), TerminalID: "t"})
			return err
		}},
		{"terminal/wait_for_exit", func() error {
			_, err := client.WaitForTerminalExit(ctx, &acp.WaitForTerminalExitRequest{SessionID: s.ID(), TerminalID: "t"})
			return err
		}},
		{"form", func() error { _, err := client.CreateElicitation(ctx, &form); return err }},
		{"url", func() error { _, err := client.CreateElicitation(ctx, &url); return err }},
		{"elicitation/complete", func() error {
			return client.CompleteElicitation(ctx, &acp.CompleteElicitationNotification{ElicitationID: "e"})
		}},
		{"notice", update(acp.NewSessionUpdateNotice(acp.Notice{Severity: "info", Title: "x"}))},
		{"compaction_update", update(acp.NewSessionUpdateCompactionUpdate(acp.CompactionUpdate{CompactionID: "x", Status: "completed"}))},
		{"compaction_summary_chunk", update(acp.NewSessionUpdateCompactionSummaryChunk(acp.CompactionSummaryChunk{
			CompactionID: "x", Content: acp.TextBlock("x"),
		}))},
	})
}

// onTheWire are the messages of the calls of tryEverything, and how they are answered.
var onTheWire = map[string]string{
	"fs/read_text_file":  `<- fs/read_text_file#$a {"sessionId":"s","path":"/x"}` + "\n" + `-> #$a {"content":""}`,
	"fs/write_text_file": `<- fs/write_text_file#$b {"sessionId":"s","path":"/x","content":""}` + "\n" + `-> #$b {}`,
	"terminal/create": `<- terminal/create#$c {"sessionId":"s","command":"x"}` + "\n" + `-> #$c {"terminalId":"t"}` + "\n" +
		`<- terminal/release#$d {"sessionId":"s","terminalId":"t"}` + "\n" + `-> #$d {}`,
	"terminal/kill":            `<- terminal/kill#$e {"sessionId":"s","terminalId":"t"}` + "\n" + `-> #$e {}`,
	"terminal/output":          `<- terminal/output#$f {"sessionId":"s","terminalId":"t"}` + "\n" + `-> #$f {"output":"","truncated":false}`,
	"terminal/wait_for_exit":   `<- terminal/wait_for_exit#$g {"sessionId":"s","terminalId":"t"}` + "\n" + `-> #$g {}`,
	"form":                     `<- elicitation/create#$h {"mode":"form","...":""}` + "\n" + `-> #$h {"action":"cancel"}`,
	"url":                      `<- elicitation/create#$i {"mode":"url","...":""}` + "\n" + `-> #$i {"action":"accept"}`,
	"elicitation/complete":     `<- elicitation/complete {"elicitationId":"e"}`,
	"notice":                   `<- session/update {"sessionId":"s","update":{"sessionUpdate":"notice","...":""}}`,
	"compaction_update":        `<- session/update {"sessionId":"s","update":{"sessionUpdate":"compaction_update","...":""}}`,
	"compaction_summary_chunk": `<- session/update {"sessionId":"s","update":{"sessionUpdate":"compaction_summary_chunk","...":""}}`,
}

// What a client did not advertise is not asked of it, and nothing of it is on the wire.
func TestAgentAsksWhatWasAdvertised(t *testing.T) {
	terminal := []string{"terminal/create", "terminal/kill", "terminal/output", "terminal/wait_for_exit"}
	for _, test := range []struct {
		name         string
		capabilities string
		asked        []string
	}{
		{"INI12_Empty", `{}`, nil},
		{"INI12_Null", `null`, nil},
		{"INI12_NullMembers", `{"fs":null,"terminal":null,"session":null,"elicitation":null,"auth":null}`, nil},
		{"INI12_Malformed", `"all"`, nil},
		{"INI12_MalformedMembers", `{"fs":true,"terminal":"yes","session":[],"elicitation":1,"auth":"all"}`, nil},
		{"INI12_MalformedFlags", `{"fs":{"readTextFile":"true","writeTextFile":1},"session":{"notices":true,"compaction":"x"},"elicitation":{"form":true,"url":1}}`, nil},
		{"FS1_FS2_Off", `{"fs":{"readTextFile":false,"writeTextFile":false},"terminal":false}`, nil},
		{"FS1_FS2_ReadOnly", `{"fs":{"readTextFile":true}}`, []string{"fs/read_text_file"}},
		{"FS1_FS2_WriteOnly", `{"fs":{"writeTextFile":true}}`, []string{"fs/write_text_file"}},
		{"TRM1_TRM2_On", `{"terminal":true}`, terminal},
		{"INI17_NoMode", `{"elicitation":{}}`, nil},
		{"INI17_NullModes", `{"elicitation":{"form":null,"url":null}}`, nil},
		{"ELI5_FormOnly", `{"elicitation":{"form":{}}}`, []string{"form"}},
		{"ELI5_URLOnly", `{"elicitation":{"url":{}}}`, []string{"url", "elicitation/complete"}},
		{"SCH12_Notices", `{"session":{"notices":{}}}`, []string{"notice"}},
		{"SCH13_Compaction", `{"session":{"compaction":{}}}`, []string{"compaction_update", "compaction_summary_chunk"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var script strings.Builder
			script.WriteString(hello(test.capabilities) + prompt1)
			for _, name := range test.asked {
				script.WriteString(onTheWire[name] + "\n")
			}
			playClient(t, prompting(func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) error {
				if made := tryEverything(ctx, t, s); !slices.Equal(made, test.asked) {
					t.Errorf("made %q, want %q", made, test.asked)
				}
				return nil
			}), nil, script.String()+answered1)
		})
	}
}

// INI-12: a client that leaves its capabilities out has none.
func TestINI12_NoCapabilities(t *testing.T) {
	playClient(t, prompting(func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) error {
		if made := tryEverything(ctx, t, s); made != nil {
			t.Errorf("made %q", made)
		}
		return nil
	}), nil, `-> initialize#1 {"protocolVersion":1}
		<- #1 {"protocolVersion":1,"...":""}
		`+prompt1+answered1)
}

// booleanOption is a config option that not every client understands.
func booleanOption() acp.SessionConfigOption {
	return acp.NewSessionConfigOptionBoolean("b", "Brave", acp.SessionConfigBoolean{})
}

func authMethods() []acp.AuthMethod {
	return []acp.AuthMethod{
		acp.NewAuthMethodAgent(acp.AuthMethodAgent{ID: "a", Name: "A"}),
		acp.NewAuthMethodTerminal(acp.AuthMethodTerminal{
			ID: "t", Name: "T", Args: []string{"login"}, Env: map[string]string{"TERM": "dumb"},
		}),
	}
}

// conversation is a script for an agent, and what of the agent it needs.
type conversation struct {
	name     string
	handlers acp.AgentHandlers
	opts     *acp.AgentOptions
	script   string
}

func play(t *testing.T, tests []conversation) {
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { playClient(t, test.handlers, test.opts, test.script) })
	}
}

func TestAgentKeeps(t *testing.T) {
	tier.Need(t, tier.Normal)
	const agentMethod = `{"id":"a","name":"A"}`
	var ext acp.Extensions[acp.AgentConn]
	rpc.Handle(&ext, "_x.test/ping", func(_ context.Context, _ *acp.AgentConn, p *map[string]json.RawMessage) (*map[string]json.RawMessage, error) {
		return p, nil
	})
	play(t, []conversation{
		{
			name: "INI1_ERR6_InitializeFirst",
			script: `
				-> session/new#1 {"cwd":"/","mcpServers":[]}
				<- #1 -32600
				-> session/prompt#2 {"sessionId":"s","prompt":[]}
				<- #2 -32600
				-> session/list#3 {}
				<- #3 -32600
				-> authenticate#4 {"methodId":"a"}
				<- #4 -32600
				-> session/cancel {"sessionId":"s"}
				-> _x#5 {}
				<- #5 -32600
				` + hello(`{}`) + `
				-> session/new#6 {"cwd":"/","mcpServers":[]}
				<- #6 {"sessionId":"s1"}
				-> initialize#7 {"protocolVersion":1}
				<- #7 -32600
				`,
		},
		{
			name: "INI19_AUT4_WithoutATerminal", opts: &acp.AgentOptions{AuthMethods: authMethods()},
			script: `
				-> initialize#1 {"protocolVersion":1,"clientCapabilities":{"auth":{"terminal":false}}}
				<- #1 {"protocolVersion":1,"agentCapabilities":"$any","authMethods":[` + agentMethod + `]}
				`,
		},
		{
			name: "INI19_AUT5_WithATerminal", opts: &acp.AgentOptions{AuthMethods: authMethods()},
			script: `
				-> initialize#1 {"protocolVersion":1,"clientCapabilities":{"auth":{"terminal":true}}}
				<- #1 {"protocolVersion":1,"agentCapabilities":"$any","authMethods":[` + agentMethod + `,{"type":"terminal","id":"t","name":"T","args":["login"],"env":{"TERM":"dumb"}}]}
				`,
		},
		{
			name: "AUT2_AUT3_OtherMethods", opts: &acp.AgentOptions{AuthMethods: authMethods()},
			handlers: acp.AgentHandlers{
				Authenticate: func(context.Context, *acp.AgentConn, *acp.AuthenticateRequest) (*acp.AuthenticateResponse, error) {
					return nil, nil
				},
			},
			script: hello(`{"auth":{"terminal":true}}`) + `
				-> authenticate#1 {"methodId":"t"}
				<- #1 -32602 {"pointer":"/methodId","...":""}
				-> authenticate#2 {"methodId":"nope"}
				<- #2 -32602 {"pointer":"/methodId","...":""}
				-> authenticate#3 {"methodId":"a"}
				<- #3 {}
				`,
		},
		{
			name: "ERR3_SES4_SES9_SES13_LST3_DEL3_AUT1_NotAdvertised",
			script: hello(`{}`) + `
				-> session/load#1 {"sessionId":"s","cwd":"/","mcpServers":[]}
				<- #1 -32601 {"method":"session/load"}
				-> session/resume#2 {"sessionId":"s","cwd":"/"}
				<- #2 -32601 {"method":"session/resume"}
				-> session/close#3 {"sessionId":"s"}
				<- #3 -32601 {"method":"session/close"}
				-> session/delete#4 {"sessionId":"s"}
				<- #4 -32601 {"method":"session/delete"}
				-> session/list#5 {}
				<- #5 -32601 {"method":"session/list"}
				-> logout#6 {}
				<- #6 -32601 {"method":"logout"}
				-> authenticate#7 {"methodId":"a"}
				<- #7 -32601 {"method":"authenticate"}
				-> session/set_mode#8 {"sessionId":"s","modeId":"m"}
				<- #8 -32601 {"method":"session/set_mode"}
				-> session/set_config_option#9 {"sessionId":"s","configId":"c","value":"v"}
				<- #9 -32601 {"method":"session/set_config_option"}
				-> fs/read_text_file#10 {"sessionId":"s","path":"/x"}
				<- #10 -32601 {"method":"fs/read_text_file"}
				`,
		},
		{
			name: "OVW4_EXT7_NotificationsAreNotAnswered",
			script: hello(`{}`) + `
				-> session/cancel {"sessionId":"nope"}
				-> session/cancel {"sessionId":5}
				-> session/cancel
				-> session/new {"cwd":"/","mcpServers":[]}
				-> _x.test/note {"a":1}
				-> x/unknown [1]
				-> $/unknown {}
				`,
		},
		{
			name: "TRN3_NoBatches",
			script: `
				-> []
				<- #null -32600
				-> [{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}]
				<- #null -32600
				` + hello(`{}`),
		},
		{
			name: "TRN1_TRN4_Text",
			handlers: prompting(func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) error {
				text := req.Prompt[0].Text()
				return s.Update(ctx, acp.AgentMessageText(text))
			}),
			// The compared line is the JSON text, so that neither a newline nor half a character could be in it.
			script: hello(`{}`) + `
				->! "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"session/prompt\",\"params\":{\"sessionId\":\"s\",\"prompt\":[{\"type\":\"text\",\"text\":\"é\\n\\r\\u0000\\u2028\\ud83d\\ude00\U0001F600\\t\"}]}}"
				<-! "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s\",\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"é\\n\\r\\u0000\u2028\U0001F600\U0001F600\\t\"}}}}"
				` + answered1 + `
				->! "{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"session/prompt\",\"params\":{\"sessionId\":\"s\",\"prompt\":[{\"type\":\"text\",\"text\":\"\xff\"}]}}"
				<- #null -32700
				`,
		},
		{
			name: "SES31_CommandsFollowTheAnswer",
			handlers: acp.AgentHandlers{
				NewSession: func(ctx context.Context, client *acp.AgentConn, _ *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
					acp.AfterResponse(ctx, func(ctx context.Context) {
						if err := client.Session("s").Update(ctx, acp.AgentMessageText("at your service")); err != nil {
							t.Error(err)
						}
					})
					return &acp.NewSessionResponse{SessionID: "s"}, nil
				},
			},
			script: hello(`{}`) + `
				-> session/new#1 {"cwd":"/","mcpServers":[]}
				<- #1 {"sessionId":"s"}
				` + chunk(`"at your service"`),
		},
		{
			name: "SES30_ServersByType",
			handlers: acp.AgentHandlers{
				NewSession: func(_ context.Context, _ *acp.AgentConn, req *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
					_, stdio := req.MCPServers[0].Variant.(*acp.MCPServerStdio)
					_, http := req.MCPServers[1].Variant.(*acp.MCPServerHTTP)
					_, sse := req.MCPServers[2].Variant.(*acp.MCPServerSSE)
					if !stdio || !http || !sse {
						t.Errorf("servers %+v", req.MCPServers)
					}
					return &acp.NewSessionResponse{SessionID: "s"}, nil
				},
			},
			opts: &acp.AgentOptions{MCP: acp.MCPCapabilities{HTTP: true, SSE: true}},
			script: hello(`{}`) + `
				-> session/new#1 {"cwd":"/","mcpServers":[{"name":"a","command":"/a","args":[],"env":[]},{"type":"http","name":"b","url":"https://b","headers":[]},{"type":"sse","name":"c","url":"https://c","headers":[]}]}
				<- #1 {"sessionId":"s"}
				-> session/new#2 {"cwd":"/","mcpServers":[{"type":"pigeon","name":"d"}]}
				<- #2 -32602 {"pointer":"/mcpServers/0/type","...":""}
				-> session/new#3 {"cwd":"/","mcpServers":[{"name":"e"}]}
				<- #3 -32602 {"pointer":"/mcpServers/0","...":""}
				`,
		},
		{
			name:     "SES27_SES30_ServersNotAdvertised",
			handlers: acp.AgentHandlers{LoadSession: configuring().LoadSession, ResumeSession: configuring().ResumeSession},
			opts:     &acp.AgentOptions{MCP: acp.MCPCapabilities{HTTP: true}},
			script: hello(`{}`) + `
				-> session/new#1 {"cwd":"/","mcpServers":[{"type":"http","name":"b","url":"https://b","headers":[]},{"type":"sse","name":"c","url":"https://c","headers":[]}]}
				<- #1 -32602 {"pointer":"/mcpServers/1/type","...":""}
				-> session/load#2 {"sessionId":"s","cwd":"/","mcpServers":[{"type":"sse","name":"c","url":"https://c","headers":[]}]}
				<- #2 -32602 {"pointer":"/mcpServers/0/type","...":""}
				-> session/resume#3 {"sessionId":"s","cwd":"/","mcpServers":[{"type":"sse","name":"c","url":"https://c","headers":[]}]}
				<- #3 -32602 {"pointer":"/mcpServers/0/type","...":""}
				-> session/new#4 {"cwd":"/","mcpServers":[{"type":"http","name":"b","url":"https://b","headers":[]}]}
				<- #4 {"sessionId":"s1"}
				`,
		},
		{
			name: "CFG3_INI18_PlainClient", handlers: configuring(),
			script: hello(`{}`) + `
				-> session/new#1 {"cwd":"/","mcpServers":[]}
				<- #1 {"sessionId":"s","configOptions":[` + selectOption + `]}
				-> session/load#2 {"sessionId":"s","cwd":"/","mcpServers":[]}
				<- #2 {"configOptions":[` + selectOption + `]}
				-> session/resume#3 {"sessionId":"s","cwd":"/"}
				<- #3 {"configOptions":[` + selectOption + `]}
				-> session/set_config_option#4 {"sessionId":"s","configId":"c","value":"v"}
				<- #4 {"configOptions":[` + selectOption + `]}
				` + prompt1 + `
				<- session/update {"sessionId":"s","update":{"sessionUpdate":"config_option_update","configOptions":[` + selectOption + `]}}
				` + answered1,
		},
		{
			name: "CFG3_INI18_ClientThatKnows", handlers: configuring(),
			script: hello(`{"session":{"configOptions":{"boolean":{}}}}`) + `
				-> session/new#1 {"cwd":"/","mcpServers":[]}
				<- #1 {"sessionId":"s","configOptions":[{"id":"b","name":"Brave","type":"boolean","currentValue":false},` + selectOption + `]}
				-> session/load#2 {"sessionId":"s","cwd":"/","mcpServers":[]}
				<- #2 {"configOptions":["$any",` + selectOption + `]}
				-> session/resume#3 {"sessionId":"s","cwd":"/"}
				<- #3 {"configOptions":["$any",` + selectOption + `]}
				-> session/set_config_option#4 {"sessionId":"s","configId":"c","value":"v"}
				<- #4 {"configOptions":["$any",` + selectOption + `]}
				` + prompt1 + `
				<- session/update {"sessionId":"s","update":{"sessionUpdate":"config_option_update","configOptions":["$any",` + selectOption + `]}}
				` + answered1,
		},
		{
			name: "CFG16_ValuesHaveTheirType", handlers: configuring(),
			script: hello(`{}`) + `
				-> session/set_config_option#1 {"sessionId":"s","configId":"c","value":true}
				<- #1 -32602 {"pointer":"/value","...":""}
				-> session/set_config_option#2 {"sessionId":"s","configId":"c","type":"boolean","value":1}
				<- #2 -32602 {"pointer":"/value","...":""}
				`,
		},
		{
			name: "PRM1_ERR5_UnknownSession",
			handlers: prompting(func(_ context.Context, _ *acp.AgentSession, req *acp.PromptRequest) error {
				return acp.SessionNotFound(req.SessionID)
			}),
			script: hello(`{}`) + prompt1 + `<- #"p" -32002 {"sessionId":"s"}`,
		},
		{
			name: "PRM13_UpdatesPrecedeTheAnswer",
			handlers: prompting(func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) error {
				for _, text := range []string{"a", "b", "c"} {
					if err := s.Update(ctx, acp.AgentMessageText(text)); err != nil {
						return err
					}
				}
				return nil
			}),
			script: hello(`{}`) + prompt1 + chunk(`"a"`) + chunk(`"b"`) + chunk(`"c"`) + answered1,
		},
		{
			name: "PRM13_UpdatesOfACancelledTurnToo",
			handlers: prompting(func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) error {
				<-ctx.Done()
				return errors.Join(s.Update(ctx, acp.AgentMessageText("late")), ctx.Err())
			}),
			script: hello(`{}`) + prompt1 + `-> session/cancel {"sessionId":"s"}` + "\n" + chunk(`"late"`) + `<- #"p" {"stopReason":"cancelled"}`,
		},
		{
			name: "PRM16_CancelWithoutATurn",
			handlers: prompting(func(ctx context.Context, _ *acp.AgentSession, _ *acp.PromptRequest) error {
				return ctx.Err()
			}),
			script: hello(`{}`) + `
				-> session/cancel {"sessionId":"s"}
				-> session/cancel {"sessionId":"unknown"}
				` + prompt1 + answered1,
		},
		{
			name: "CAN1_CAN4_CancelRequest",
			handlers: prompting(func(ctx context.Context, _ *acp.AgentSession, _ *acp.PromptRequest) error {
				<-ctx.Done()
				return ctx.Err()
			}),
			script: hello(`{}`) + `
				-> session/prompt#"1" {"sessionId":"a","prompt":[]}
				-> session/prompt#1 {"sessionId":"b","prompt":[]}
				-> $/cancel_request {"requestId":77}
				-> $/cancel_request {"requestId":"77"}
				-> $/cancel_request {}
				-> $/cancel_request
				-> $/cancel_request {"requestId":{}}
				-> $/cancel_request {"requestId":1}
				<- #1 -32800
				-> $/cancel_request {"requestId":1}
				-> $/cancel_request {"requestId":"1"}
				<- #"1" -32800
				`,
		},
		{
			name: "EXT3_EXT4_EXT5_CustomRequests", handlers: acp.AgentHandlers{Extensions: &ext},
			script: hello(`{}`) + `
				-> _x.test/ping#"é" {"n":12345678901234567890}
				<- #"é" {"n":12345678901234567890}
				-> _x.test/ping#-9223372036854775808 {}
				<- #-9223372036854775808 {}
				-> _x.test/pong#3 {}
				<- #3 -32601 {"method":"_x.test/pong"}
				-> x.test/ping#4 {}
				<- #4 -32601 {"method":"x.test/ping"}
				`,
		},
		{
			name: "ERR1_UnknownCodes",
			handlers: prompting(func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) error {
				for _, code := range []acp.Code{-12345, 7} {
					_, err := s.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: "/x"})
					if e, ok := errors.AsType[*acp.Error](err); !ok || e.Code != code {
						t.Errorf("got %v, want code %d", err, code)
					}
				}
				return nil
			}),
			script: hello(`{"fs":{"readTextFile":true}}`) + prompt1 + `
				<- fs/read_text_file#$a "$any"
				-> {"jsonrpc":"2.0","id":"$a","error":{"code":-12345,"message":"?"}}
				<- fs/read_text_file#$b "$any"
				-> {"jsonrpc":"2.0","id":"$b","error":{"code":7,"message":"?"}}
				` + answered1,
		},
		{
			name: "ERR9_AuthRequiredIsTheAuthors",
			handlers: prompting(func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) error {
				_, err := s.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: "/x"})
				if !errors.Is(err, acp.ErrAuthRequired) {
					t.Errorf("got %v", err)
				}
				return err
			}),
			// That its client asked an agent to authenticate says nothing about the client at the agent.
			script: hello(`{"fs":{"readTextFile":true}}`) + prompt1 + `
				<- fs/read_text_file#$a "$any"
				-> {"jsonrpc":"2.0","id":"$a","error":{"code":-32000,"message":"?"}}
				<- #"p" -32603
				`,
		},
		{
			name: "ERR7_OVW3_BrokenLines",
			script: `
				->! "{"
				<- #null -32700
				-> 42
				<- #null -32600
				-> {}
				<- #null -32600
				-> {"jsonrpc":"1.0","id":7,"method":"initialize"}
				<- #7 -32600
				` + hello(`{}`),
		},
		{
			name: "SCH1_EXT2_MetaIsKept",
			handlers: prompting(func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) error {
				u := acp.NewSessionUpdateAgentMessageChunk(acp.ContentChunk{Content: req.Prompt[0], Meta: req.Meta})
				return s.Update(ctx, u)
			}),
			// A member beside _meta is not the protocol's, and goes nowhere.
			script: hello(`{}`) + `
				-> session/prompt#"p" {"sessionId":"s","custom":1,"prompt":[{"type":"text","text":"x","custom":2,"_meta":{"":null}}],"_meta":` + oddMeta + `}
				<- session/update {"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x","_meta":{"":null}},"_meta":` + oddMeta + `}}
				` + answered1,
		},
		{
			name: "SCH2_SCH3_IDs", handlers: acp.AgentHandlers{Extensions: &ext},
			script: hello(`{}`) + sameIDs(`0`, `-1`, `9007199254740993`, `9223372036854775807`, `-9223372036854775808`, `""`, `"1"`, `"é😀"`, `null`),
		},
		{
			name: "SCH9_ELI16_Answers",
			handlers: prompting(func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) error {
				for _, want := range []string{"unknown _x", "accepted 0", "accepted 0", "accepted 1", "declined", "cancelled"} {
					res, err := s.ElicitForm(ctx, "?", acp.ElicitationSchema{})
					if err != nil {
						return err
					}
					if got := answerOf(res); got != want {
						t.Errorf("got %q, want %q", got, want)
					}
				}
				return nil
			}),
			script: hello(`{"elicitation":{"form":{}}}`) + prompt1 + elicited(
				`{"action":"_x","content":{"a":1}}`, `{"action":"accept"}`, `{"action":"accept","content":null}`,
				`{"action":"accept","content":{"a":1}}`, `{"action":"decline","content":{"a":"?"}}`, `{"action":"cancel","content":7}`,
			) + answered1,
		},
		{
			name: "SCH17_LenientlyRead",
			handlers: acp.AgentHandlers{
				Prompt: func(_ context.Context, session *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
					text, ok := req.Prompt[0].Variant.(*acp.ContentBlockText)
					if !ok || text.Annotations.Present() || session.Conn().Initialized().ClientInfo.Present() || req.Meta != nil {
						t.Errorf("got %+v from %+v", req, session.Conn().Initialized())
					}
					return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
				},
			},
			script: `
				-> initialize#1 {"protocolVersion":1,"clientInfo":"me"}
				<- #1 {"protocolVersion":1,"...":""}
				-> session/new#2 {"cwd":"/","mcpServers":null,"additionalDirectories":null}
				<- #2 {"sessionId":"s1"}
				-> session/prompt#"p" {"sessionId":"s","prompt":[{"type":"text","text":"x","annotations":7}],"_meta":[]}
				` + answered1,
		},
		{
			name: "TRM7_TRM8_KilledAndReleased",
			handlers: prompting(func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) error {
				terminal, err := s.CreateTerminal(ctx, &acp.CreateTerminalRequest{Command: "x"})
				if err != nil {
					return err
				}
				if err := s.Update(ctx, acp.AgentMessageText("runs")); err != nil {
					return err
				}
				<-ctx.Done() // what ends the turn does not keep the terminal from being released
				return errors.Join(terminal.Kill(context.WithoutCancel(ctx)), terminal.Close(ctx))
			}),
			script: hello(`{"terminal":true}`) + prompt1 + `
				<- terminal/create#$a {"sessionId":"s","command":"x"}
				-> #$a {"terminalId":"t"}
				` + chunk(`"runs"`) + `
				-> session/cancel {"sessionId":"s"}
				<- terminal/kill#$b {"sessionId":"s","terminalId":"t"}
				-> #$b {}
				<- terminal/release#$c {"sessionId":"s","terminalId":"t"}
				-> #$c {}
				<- #"p" {"stopReason":"cancelled"}
				`,
		},
	})
}

// oddMeta is a value of _meta that makes every assumption wrong.
var oddMeta = `{"":{"a":[null,true,{"b":[]}]},"n":12345678901234567890,"f":1e400,"é":"` + strings.Repeat("x", 1<<20) + `","traceparent":7}`

// sameIDs pings with each id.
func sameIDs(ids ...string) string {
	var script strings.Builder
	for _, id := range ids {
		script.WriteString("-> _x.test/ping#" + id + " {}\n<- #" + id + " {}\n")
	}
	return script.String()
}

// Updates for a new session that its handler sends follow the answer, in order, and are dropped if there is no session. Those for
// the session that is forked, and for one with a turn in progress, are not kept back.
func TestSES31_UpdatesFollowTheAnswer(t *testing.T) {
	begin := func(ctx context.Context, client *acp.AgentConn, cwd string) (acp.SessionID, error) {
		s := client.Session("new")
		say := func(ctx context.Context, s *acp.AgentSession, text string) {
			update := acp.AgentMessageText(text)
			if err := s.Update(ctx, update); err != nil {
				t.Error(err)
			}
			update.Variant.(*acp.SessionUpdateAgentMessageChunk).Content = acp.TextBlock("changed") // what was sent stays as it was
		}
		say(ctx, s, "one")
		acp.AfterResponse(ctx, func(after context.Context) {
			if cwd != "/refused" {
				say(after, s, "two")
			}
			say(context.WithoutCancel(ctx), s, "four") // behind those that wait
		})
		say(context.WithoutCancel(ctx), s, "three")
		say(ctx, client.Session("s"), "known")
		if err := s.Update(ctx, acp.CommandsUpdate(acp.AvailableCommand{Name: "x", Meta: acp.Meta{"x": json.RawMessage("{")}})); err == nil {
			t.Error("sent what cannot be encoded")
		}
		if err := s.Update(ctx, acp.AgentMessageText(strings.Repeat("x", 2048))); !errors.Is(err, acp.ErrOverflow) {
			t.Errorf("too much: %v", err)
		}
		if cwd == "/refused" {
			return "", acp.InvalidParamsf("no")
		}
		return s.ID(), nil
	}
	handlers := acp.AgentHandlers{
		NewSession: func(ctx context.Context, client *acp.AgentConn, req *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			id, err := begin(ctx, client, req.Cwd)
			return &acp.NewSessionResponse{SessionID: id}, err
		},
		ForkSession: func(ctx context.Context, s *acp.AgentSession, req *acp.ForkSessionRequest) (*acp.ForkSessionResponse, error) {
			id, err := begin(ctx, s.Conn(), req.Cwd)
			return &acp.ForkSessionResponse{SessionID: id}, err
		},
		Prompt: prompting(func(ctx context.Context, _ *acp.AgentSession, _ *acp.PromptRequest) error {
			<-ctx.Done()
			return nil
		}).Prompt,
	}
	said := func(session string, texts ...string) (script string) {
		for _, text := range texts {
			script += strings.ReplaceAll(chunk(`"`+text+`"`), `"sessionId":"s"`, `"sessionId":"`+session+`"`)
		}
		return script
	}
	const (
		began   = "<- #1 {\"sessionId\":\"new\"}\n"
		refused = "<- #1 -32602\n"
		ended   = "-> session/cancel {\"sessionId\":\"s\"}\n<- #\"p\" {\"stopReason\":\"cancelled\"}\n"
	)
	all, known := said("new", "one", "two", "three", "four"), said("s", "known")
	for name, script := range map[string]string{
		"new":          prompt1 + `-> session/new#1 {"cwd":"/","mcpServers":[]}` + "\n" + known + began + all + ended,
		"refused new":  prompt1 + `-> session/new#1 {"cwd":"/refused","mcpServers":[]}` + "\n" + known + refused + ended,
		"fork":         `-> session/fork#1 {"sessionId":"s","cwd":"/"}` + "\n" + known + began + all,
		"refused fork": `-> session/fork#1 {"sessionId":"s","cwd":"/refused"}` + "\n" + known + refused,
	} {
		t.Run(name, func(t *testing.T) {
			opts := &acp.AgentOptions{Experimental: acp.FeatureFork}
			opts.Conn.QueueBytes = 1024
			playClient(t, handlers, opts, hello(`{}`)+script)
		})
	}
}

// elicited answers elicitations.
func elicited(results ...string) string {
	var script strings.Builder
	for i, result := range results {
		id := "$e" + string(rune('a'+i))
		script.WriteString("<- elicitation/create#" + id + " \"$any\"\n-> #" + id + " " + result + "\n")
	}
	return script.String()
}

func answerOf(res *acp.CreateElicitationResponse) string {
	switch v := res.Variant.(type) {
	case *acp.CreateElicitationResponseAccept:
		return "accepted " + string(rune('0'+len(v.Content.Value())))
	case *acp.CreateElicitationResponseDecline:
		return "declined"
	case *acp.CreateElicitationResponseCancel:
		return "cancelled"
	case *acp.CreateElicitationResponseUnknown:
		return "unknown " + v.Tag
	}
	return "nothing"
}

const selectOption = `{"id":"c","name":"Courage","type":"select","currentValue":"v","options":[{"value":"v","name":"V"}]}`

// configuring is an agent with two config options, of which one is boolean and only for clients that
// understand it: which they are, the library tells.
func configuring() acp.AgentHandlers {
	options := func(client *acp.AgentConn) []acp.SessionConfigOption {
		choice := acp.NewSessionConfigOptionSelect("c", "Courage", acp.SessionConfigSelect{
			CurrentValue: "v",
			Options:      acp.SessionConfigSelectOptions{Variant: acp.SessionConfigSelectOptionsUngrouped{{Value: "v", Name: "V"}}},
		})
		if !client.SupportsBooleanConfig() {
			return []acp.SessionConfigOption{choice}
		}
		return []acp.SessionConfigOption{booleanOption(), choice}
	}
	return acp.AgentHandlers{
		NewSession: func(_ context.Context, client *acp.AgentConn, _ *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: "s", ConfigOptions: acp.Some(options(client))}, nil
		},
		LoadSession: func(_ context.Context, session *acp.AgentSession, _ *acp.LoadSessionRequest) (*acp.LoadSessionResponse, error) {
			return &acp.LoadSessionResponse{ConfigOptions: acp.Some(options(session.Conn()))}, nil
		},
		ResumeSession: func(_ context.Context, session *acp.AgentSession, _ *acp.ResumeSessionRequest) (*acp.ResumeSessionResponse, error) {
			return &acp.ResumeSessionResponse{ConfigOptions: acp.Some(options(session.Conn()))}, nil
		},
		SetSessionConfigOption: func(_ context.Context, session *acp.AgentSession, _ *acp.SetSessionConfigOptionRequest) (*acp.SetSessionConfigOptionResponse, error) {
			return &acp.SetSessionConfigOptionResponse{ConfigOptions: options(session.Conn())}, nil
		},
		Prompt: prompting(func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) error {
			return s.Update(ctx, acp.NewSessionUpdateConfigOptionUpdate(acp.ConfigOptionUpdate{ConfigOptions: options(s.Conn())}))
		}).Prompt,
	}
}
