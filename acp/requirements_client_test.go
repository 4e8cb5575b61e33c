package acp_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/ways"
)

// callAgent makes every call for which an agent's capability is needed, and returns the names of those
// that were not refused.
func callAgent(t *testing.T, conn *acp.ClientConn) (made []string) {
	ctx := t.Context()
	session := conn.Session("s")
	setup := func(edit func(*acp.NewSessionRequest)) func() error {
		return func() error {
			req := &acp.NewSessionRequest{Cwd: "/"}
			edit(req)
			_, err := conn.NewSession(ctx, req)
			return err
		}
	}
	server := func(s acp.MCPServer) func() error {
		return setup(func(req *acp.NewSessionRequest) { req.MCPServers = []acp.MCPServer{s} })
	}
	prompt := func(block acp.ContentBlock) func() error {
		return func() error { _, err := session.Prompt(ctx, block); return err }
	}
	return supported(t, []namedCall{
		{"session/load", func() error {
			_, err := conn.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: "s", Cwd: "/"})
			return err
		}},
		{"session/resume", func() error {
			_, err := conn.ResumeSession(ctx, &acp.ResumeSessionRequest{SessionID: "s", Cwd: "/"})
			return err
		}},
		{"session/close", func() error { return session.Close(ctx) }},
		{"session/delete", func() error { return session.Delete(ctx) }},
		{"session/list", func() error { _, err := conn.ListSessions(ctx, nil); return err }},
		{"logout", func() error { _, err := conn.Logout(ctx, nil); return err }},
		{"roots", setup(func(req *acp.NewSessionRequest) { req.AdditionalDirectories = []string{"/x"} })},
		{"no roots", setup(func(req *acp.NewSessionRequest) { req.AdditionalDirectories = []string{} })},
		{"http", server(acp.NewMCPServerHTTP(acp.MCPServerHTTP{Name: "x", URL: "https://example.com"}))},
		{"sse", server(acp.NewMCPServerSSE(acp.MCPServerSSE{Name: "x", URL: "https://example.com"}))},
		{"image", prompt(acp.ImageBlock("aGk=", "image/png"))},
		{"audio", prompt(acp.AudioBlock("aGk=", "audio/wav"))},
		{"resource", prompt(acp.ResourceBlock(acp.TextResource("x", "file:///x")))},
	})
}

// toTheAgent are the messages of the calls of callAgent, and their answers.
var toTheAgent = map[string]string{
	"session/load":   `-> session/load#$a {"sessionId":"s","cwd":"/","mcpServers":[]}` + "\n" + `<- #$a {}`,
	"session/resume": `-> session/resume#$b {"sessionId":"s","cwd":"/"}` + "\n" + `<- #$b {}`,
	"session/close":  `-> session/close#$c {"sessionId":"s"}` + "\n" + `<- #$c {}`,
	"session/delete": `-> session/delete#$d {"sessionId":"s"}` + "\n" + `<- #$d {}`,
	"session/list":   `-> session/list#$e {}` + "\n" + `<- #$e {"sessions":[]}`,
	"logout":         `-> logout#$f {}` + "\n" + `<- #$f {}`,
	"roots":          `-> session/new#$g {"cwd":"/","mcpServers":[],"additionalDirectories":["/x"]}` + "\n" + `<- #$g {"sessionId":"s"}`,
	"no roots":       `-> session/new#$m {"cwd":"/","mcpServers":[],"additionalDirectories":[]}` + "\n" + `<- #$m {"sessionId":"s2"}`,
	"http":           `-> session/new#$h {"cwd":"/","mcpServers":[{"type":"http","...":""}]}` + "\n" + `<- #$h {"sessionId":"s"}`,
	"sse":            `-> session/new#$i {"cwd":"/","mcpServers":[{"type":"sse","...":""}]}` + "\n" + `<- #$i {"sessionId":"s"}`,
	"image":          `-> session/prompt#$j {"sessionId":"s","prompt":[{"type":"image","...":""}]}` + "\n" + `<- #$j {"stopReason":"end_turn"}`,
	"audio":          `-> session/prompt#$k {"sessionId":"s","prompt":[{"type":"audio","...":""}]}` + "\n" + `<- #$k {"stopReason":"end_turn"}`,
	"resource":       `-> session/prompt#$l {"sessionId":"s","prompt":[{"type":"resource","...":""}]}` + "\n" + `<- #$l {"stopReason":"end_turn"}`,
}

// What an agent did not advertise is not asked of it, and nothing of it is on the wire.
func TestClientAsksWhatWasAdvertised(t *testing.T) {
	for _, test := range []struct {
		name         string
		capabilities string
		asked        []string
	}{
		{"INI12_Empty", `{}`, nil},
		{"INI12_Null", `null`, nil},
		{"INI12_NullMembers", `{"loadSession":null,"promptCapabilities":null,"mcpCapabilities":null,"sessionCapabilities":null,"auth":null}`, nil},
		{"INI12_Malformed", `[]`, nil},
		{"INI12_MalformedMembers", `{"loadSession":"yes","promptCapabilities":true,"mcpCapabilities":1,"sessionCapabilities":"all","auth":[]}`, nil},
		{"INI12_MalformedFlags", `{"promptCapabilities":{"image":"true"},"mcpCapabilities":{"http":1},"sessionCapabilities":{"list":true,"close":1,"delete":"x"},"auth":{"logout":true}}`, nil},
		{"SES3_SES4_Load", `{"loadSession":true}`, []string{"session/load"}},
		{"SES8_SES9_Resume", `{"sessionCapabilities":{"resume":{}}}`, []string{"session/resume"}},
		{"SES12_SES13_Close", `{"sessionCapabilities":{"close":{}}}`, []string{"session/close"}},
		{"SES19_Roots", `{"sessionCapabilities":{"additionalDirectories":{}}}`, []string{"roots", "no roots"}},
		{"SES27_HTTP", `{"mcpCapabilities":{"http":true}}`, []string{"http"}},
		{"SES27_SSE", `{"mcpCapabilities":{"sse":true}}`, []string{"sse"}},
		{"LST2_LST3_List", `{"sessionCapabilities":{"list":{}}}`, []string{"session/list"}},
		{"DEL1_DEL2_DEL3_Delete", `{"sessionCapabilities":{"delete":{}}}`, []string{"session/delete"}},
		{"AUT1_Logout", `{"auth":{"logout":{}}}`, []string{"logout"}},
		{"PRM2_CON2_Image", `{"promptCapabilities":{"image":true}}`, []string{"image"}},
		{"PRM2_CON2_Audio", `{"promptCapabilities":{"audio":true}}`, []string{"audio"}},
		{"PRM2_CON2_Resource", `{"promptCapabilities":{"embeddedContext":true}}`, []string{"resource"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var script []string
			for _, name := range test.asked {
				script = append(script, toTheAgent[name])
			}
			playAgent(t, acp.ClientHandlers{}, nil, `{"protocolVersion":1,"agentCapabilities":`+test.capabilities+`}`,
				strings.Join(script, "\n"), func(conn *acp.ClientConn) {
					if made := callAgent(t, conn); !slices.Equal(made, test.asked) {
						t.Errorf("made %q, want %q", made, test.asked)
					}
				})
		})
	}
}

// INI-10: a client closes the connection to an agent whose version it does not speak, and says so.
func TestINI10_AgentOfAnotherVersion(t *testing.T) {
	for _, version := range []string{"0", "2", "9999", "65535"} {
		theirs, ours := ways.Pipe(t)
		sent := make(chan []string, 1)
		go func() { sent <- rawServe(t, theirs, `{"protocolVersion":`+version+`}`) }()
		_, err := acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, ours, sentBy(conformance.Client)), acp.ClientHandlers{}, nil)
		if e, ok := errors.AsType[*acp.VersionError](err); !ok || !strings.Contains(err.Error(), "version "+version) {
			t.Errorf("%s: got %v, %v", version, e, err)
		}
		if lines := <-sent; len(lines) != 1 {
			t.Errorf("%s: the client sent %q", version, lines)
		}
	}
}

// rawServe answers everything with one result, and returns what came, when the client has ended the
// connection.
func rawServe(t *testing.T, transport acp.Transport, result string) (lines []string) {
	return rawAnswer(t, transport, `{"jsonrpc":"2.0","id":ID,"result":`+result+`}`)
}

// rawAnswer answers everything with one message, in which ID is the id of what it answers.
func rawAnswer(t *testing.T, transport acp.Transport, answer string) (lines []string) {
	stream, err := transport.Connect(context.Background())
	if err != nil {
		t.Error(err)
		return nil
	}
	defer stream.Close()
	for {
		line, err := stream.Read()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			return lines
		}
		lines = append(lines, string(line))
		var envelope struct{ ID json.RawMessage }
		if err := json.Unmarshal(line, &envelope); err != nil {
			t.Error(err)
			return lines
		}
		if err := stream.Write([]byte(strings.Replace(answer, "ID", string(envelope.ID), 1))); err != nil {
			t.Error(err)
		}
	}
}

const plainAgent = `{"protocolVersion":1}`

func TestClientKeeps(t *testing.T) {
	var completed []acp.ElicitationID
	const prompted = `-> session/prompt#$p {"sessionId":"s","prompt":[]}` + "\n"
	const ask = `{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"}]}`
	asked := make(chan struct{}, 2)
	pending := func(ctx context.Context, _ *acp.ClientSession, _ *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
		asked <- struct{}{}
		<-ctx.Done()
		return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected("yes")}, nil
	}
	prompt := func(conn *acp.ClientConn) {
		if res, err := conn.Session("s").Prompt(t.Context()); err != nil || res.StopReason != acp.StopReasonEndTurn {
			t.Errorf("got %v, %v", res, err)
		}
	}
	wants := func(what error, err error) {
		t.Helper()
		if _, sent := errors.AsType[*acp.CallError](err); sent || !errors.Is(err, what) {
			t.Errorf("got %v, want %v, unsent", err, what)
		}
	}
	var ext acp.Extensions[acp.ClientConn]
	rpc.Handle(&ext, "_x.test/ping", func(_ context.Context, _ *acp.ClientConn, p *struct{}) (*struct{}, error) { return p, nil })
	for _, test := range []struct {
		name        string
		handlers    acp.ClientHandlers
		opts        *acp.ClientOptions
		initialized string
		script      string
		do          func(*acp.ClientConn)
	}{
		{
			name: "INI1_SES1_LST1_DEL1_PRM1_InitializeFirst",
			// The peer of playAgent has read initialize as the first message, and answered it.
			script: `
				-> session/new#$a {"cwd":"/","mcpServers":[]}
				<- #$a {"sessionId":"s"}
				` + prompted + `<- #$p {"stopReason":"end_turn"}`,
			do: func(conn *acp.ClientConn) {
				session, err := conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/"})
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := session.Prompt(t.Context()); err != nil {
					t.Error(err)
				}
			},
		},
		{
			name: "AUT2_AUT3_OfferedMethodsOnly",
			initialized: `{"protocolVersion":1,"authMethods":[{"type":"terminal","id":"t","name":"T"},{"id":"a","name":"A"},7,` +
				`{"type":"agent","id":"b","name":"B"},{"type":"env_var","id":"e","name":"E","vars":[]}]}`,
			script: `
				-> authenticate#$a {"methodId":"a"}
				<- #$a {}
				-> authenticate#$b {"methodId":"b"}
				<- #$b {}
				-> authenticate#$e {"methodId":"e"}
				<- #$e {}
				`,
			do: func(conn *acp.ClientConn) {
				for _, id := range []acp.AuthMethodID{"t", "nope", "", "a", "b", "e"} {
					ok := id == "a" || id == "b" || id == "e" // whatever type the schema does not know
					_, err := conn.Authenticate(t.Context(), &acp.AuthenticateRequest{MethodID: id})
					if _, sent := errors.AsType[*acp.CallError](err); sent || (err == nil) != ok {
						t.Errorf("%q: %v", id, err)
					}
				}
			},
		},
		{
			name:        "OVW1_SES17_SES20_SES29_LST4_PathsAreAbsolute",
			initialized: `{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"list":{},"resume":{},"additionalDirectories":{}}}}`,
			do: func(conn *acp.ClientConn) {
				ctx := t.Context()
				_, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "rel"})
				wants(acp.ErrInvalidParams, err)
				_, err = conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/", AdditionalDirectories: []string{"/x", "y"}})
				wants(acp.ErrInvalidParams, err)
				_, err = conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/", MCPServers: []acp.MCPServer{
					{Variant: &acp.MCPServerStdio{Name: "m", Command: "m"}},
				}})
				wants(acp.ErrInvalidParams, err)
				_, err = conn.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: "s", Cwd: "~"})
				wants(acp.ErrInvalidParams, err)
				_, err = conn.ResumeSession(ctx, &acp.ResumeSessionRequest{SessionID: "s", Cwd: ""})
				wants(acp.ErrInvalidParams, err)
				_, err = conn.ListSessions(ctx, &acp.ListSessionsRequest{Cwd: acp.Some("rel")})
				wants(acp.ErrInvalidParams, err)
			},
		},
		{
			name:        "LST9_LST10_CursorsAreHandedBack",
			initialized: `{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"list":{}}}}`,
			script: `
				-> session/list#$a {"cwd":"/"}
				<- #$a {"sessions":[{"sessionId":"1","cwd":"/"}],"nextCursor":" \u0000é\n\u2028😀%2F\"\\=="}
				-> session/list#$b {"cwd":"/","cursor":" \u0000é\n\u2028😀%2F\"\\=="}
				<- #$b {"sessions":[],"nextCursor":""}
				-> session/list#$c {"cwd":"/","cursor":""}
				<- #$c {"sessions":[{"sessionId":"2","cwd":"/"}],"nextCursor":null}
				`,
			do: func(conn *acp.ClientConn) {
				var ids []acp.SessionID
				for info, err := range conn.Sessions(t.Context(), "/") {
					if err != nil {
						t.Error(err)
					}
					ids = append(ids, info.SessionID)
				}
				if !slices.Equal(ids, []acp.SessionID{"1", "2"}) {
					t.Errorf("got %q", ids)
				}
			},
		},
		{
			name: "MOD1_OfferedModesOnly",
			script: `
				-> session/new#$a {"cwd":"/","mcpServers":[]}
				<- #$a {"sessionId":"s","modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"},{"id":"code","name":"Code"}]}}
				-> session/set_mode#$b {"sessionId":"s","modeId":"code"}
				<- #$b {}
				-> session/set_mode#$c {"sessionId":"t","modeId":"nope"}
				<- #$c -32602
				`,
			do: func(conn *acp.ClientConn) {
				session, err := conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/"})
				if err != nil {
					t.Error(err)
					return
				}
				wants(acp.ErrInvalidParams, session.SetMode(t.Context(), "nope"))
				if err := session.SetMode(t.Context(), "code"); err != nil {
					t.Error(err)
				}
				// Of this one no modes are known.
				if err := conn.Session("t").SetMode(t.Context(), "nope"); !errors.Is(err, acp.ErrInvalidParams) {
					t.Error(err)
				}
			},
		},
		{
			name: "CFG15_CFG16_UnknownTypesAreLeft",
			script: `
				-> session/new#$a {"cwd":"/","mcpServers":[]}
				<- #$a {"sessionId":"s","configOptions":[{"id":"x","name":"X","type":"slider","min":0},7,` + selectOption + `]}
				-> session/set_config_option#$b {"sessionId":"s","configId":"x","type":"boolean","value":true}
				<- #$b {"configOptions":[` + selectOption + `,{"id":"x","name":"X","type":"slider"}]}
				-> session/set_config_option#$c {"sessionId":"s","configId":"c","value":"v"}
				<- #$c {"configOptions":[]}
				`,
			do: func(conn *acp.ClientConn) {
				session, err := conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/"})
				if err != nil {
					t.Error(err)
					return
				}
				options := session.ConfigOptions().Value()
				if len(options) != 2 {
					t.Errorf("got %+v", options)
					return
				}
				_, unknown := options[0].Variant.(*acp.SessionConfigOptionUnknown)
				_, choice := options[1].Variant.(*acp.SessionConfigOptionSelect)
				if !unknown || !choice {
					t.Errorf("got %T, %T", options[0].Variant, options[1].Variant)
				}
				if err := session.SetBooleanConfigOption(t.Context(), "x", true); err != nil {
					t.Error(err)
				}
				wants(acp.ErrInvalidParams, session.SetConfigOption(t.Context(), "nope", "v"))
				wants(acp.ErrInvalidParams, session.SetConfigOption(t.Context(), "c", "nope"))
				wants(acp.ErrInvalidParams, session.SetBooleanConfigOption(t.Context(), "c", true))
				if err := session.SetConfigOption(t.Context(), "c", "v"); err != nil {
					t.Error(err)
				}
			},
		},
		{
			name: "PRM9_TOL4_PendingPermissions", handlers: acp.ClientHandlers{RequestPermission: pending},
			script: prompted + `
				<- session/request_permission#"a" ` + ask + `
				<- session/request_permission#"b" ` + ask + `
				-> session/cancel {"sessionId":"s"}
				->& #"a" {"outcome":{"outcome":"cancelled"}}
				->& #"b" {"outcome":{"outcome":"cancelled"}}
				<- session/request_permission#"race" ` + ask + `
				-> #"race" {"outcome":{"outcome":"cancelled"}}
				<- #$p {"stopReason":"cancelled"}
				`,
			do: func(conn *acp.ClientConn) {
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					<-asked
					<-asked
					cancel()
				}()
				if res, err := conn.Session("s").Prompt(ctx); err != nil || res.StopReason != acp.StopReasonCancelled {
					t.Errorf("got %v, %v", res, err)
				}
			},
		},
		{
			name: "TOL5_OfferedOptionsOnly", handlers: acp.ClientHandlers{RequestPermission: choose("always")},
			script: prompted + `
				<- session/request_permission#"a" ` + ask + `
				-> #"a" -32603
				<- #$p {"stopReason":"end_turn"}
				`,
			do: prompt,
		},
		{
			name: "CAN1_CAN4_CancelRequest",
			handlers: acp.ClientHandlers{
				RequestPermission: func(ctx context.Context, _ *acp.ClientSession, _ *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				},
			},
			script: prompted + `
				<- session/request_permission#1 ` + ask + `
				<- session/request_permission#"1" ` + ask + `
				<- $/cancel_request {"requestId":2}
				<- $/cancel_request {}
				<- $/cancel_request
				<- $/cancel_request {"requestId":"1"}
				-> #"1" -32800
				<- $/cancel_request {"requestId":1}
				-> #1 -32800
				<- $/cancel_request {"requestId":1}
				<- #$p {"stopReason":"end_turn"}
				`,
			do: prompt,
		},
		{
			name: "ELI22_UnknownCompletions",
			handlers: acp.ClientHandlers{
				CreateElicitation: declines,
				CompleteElicitation: func(_ context.Context, _ *acp.ClientConn, n *acp.CompleteElicitationNotification) error {
					if completed = append(completed, n.ElicitationID); !slices.Equal(completed, []acp.ElicitationID{"e"}) {
						t.Errorf("completed: %q, want e once", completed)
					}
					return nil
				},
			},
			opts: &acp.ClientOptions{Elicitation: acp.ElicitationCapabilities{URL: acp.Some(acp.ElicitationURLCapabilities{})}},
			script: prompted + `
				<- elicitation/create#"a" {"mode":"url","sessionId":"s","message":"?","elicitationId":"e","url":"https://example.com"}
				-> #"a" {"action":"decline"}
				<- elicitation/complete {"elicitationId":"e"}
				<- elicitation/complete {"elicitationId":"e"}
				<- elicitation/complete {"elicitationId":"nope"}
				<- elicitation/complete {}
				<- #$p {"stopReason":"end_turn"}
				`,
			do: prompt,
		},
		{
			name:     "ELI23_INI17_UnadvertisedModes",
			handlers: acp.ClientHandlers{CreateElicitation: declines},
			opts:     &acp.ClientOptions{Elicitation: acp.ElicitationCapabilities{URL: acp.Some(acp.ElicitationURLCapabilities{})}},
			script: prompted + `
				<- elicitation/create#"a" {"mode":"form","sessionId":"s","message":"?","requestedSchema":{"type":"object"}}
				-> #"a" -32602 {"pointer":"/mode","...":""}
				<- elicitation/create#"b" {"mode":"url","sessionId":"s","message":"?","elicitationId":"e","url":"https://example.com"}
				-> #"b" {"action":"decline"}
				<- #$p {"stopReason":"end_turn"}
				`,
			do: prompt,
		},
		{
			name:     "SCH8_UnknownModes",
			handlers: acp.ClientHandlers{CreateElicitation: declines},
			opts: &acp.ClientOptions{Elicitation: acp.ElicitationCapabilities{
				URL: acp.Some(acp.ElicitationURLCapabilities{}), Form: acp.Some(acp.ElicitationFormCapabilities{}),
			}},
			script: prompted + `
				<- elicitation/create#"a" {"mode":"_x","sessionId":"s","message":"?","requestedSchema":{"type":"object"},"url":"https://example.com"}
				-> #"a" -32602 {"pointer":"/mode","...":""}
				<- #$p {"stopReason":"end_turn"}
				`,
			do: prompt,
		},
		{
			name: "ELI34_OneScope", handlers: acp.ClientHandlers{CreateElicitation: declines},
			opts: &acp.ClientOptions{Elicitation: acp.ElicitationCapabilities{Form: acp.Some(acp.ElicitationFormCapabilities{})}},
			script: prompted + `
				<- elicitation/create#"a" {"mode":"form","message":"?","requestedSchema":{"type":"object"}}
				-> #"a" -32602
				<- elicitation/create#"c" {"sessionId":"s","message":"?","requestedSchema":{"type":"object"}}
				-> #"c" -32602
				<- elicitation/create#"d" {"mode":"form","sessionId":"s","toolCallId":"t","message":"?","requestedSchema":{"type":"object"}}
				-> #"d" {"action":"decline"}
				<- elicitation/create#"e" {"mode":"form","requestId":1,"message":"?","requestedSchema":{"type":"object"}}
				-> #"e" {"action":"decline"}
				<- #$p {"stopReason":"end_turn"}
				`,
			do: prompt,
		},
		{
			name: "EXT3_EXT4_EXT5_EXT7_OVW4_CustomMethods", handlers: acp.ClientHandlers{Extensions: &ext},
			script: prompted + `
				<- _x.test/ping#"é" {}
				-> #"é" {}
				<- _x.test/ping#-9223372036854775808 {}
				-> #-9223372036854775808 {}
				<- _x.test/pong#2 {}
				-> #2 -32601 {"method":"_x.test/pong"}
				<- _x.test/note {}
				<- x/unknown [1]
				<- session/update {"sessionId":7}
				<- #$p {"stopReason":"end_turn"}
				`,
			do: prompt,
		},
		{
			name: "ERR1_UnknownCodes",
			script: `
				-> session/set_mode#$a {"sessionId":"s","modeId":"m"}
				<- {"jsonrpc":"2.0","id":"$a","error":{"code":-12345,"message":"?"}}
				-> session/set_mode#$b {"sessionId":"s","modeId":"m"}
				<- {"jsonrpc":"2.0","id":"$b","error":{"code":7,"message":"?"}}
				`,
			do: func(conn *acp.ClientConn) {
				for _, code := range []acp.Code{-12345, 7} {
					err := conn.Session("s").SetMode(t.Context(), "m")
					if e, ok := errors.AsType[*acp.Error](err); !ok || e.Code != code {
						t.Errorf("got %v", err)
					}
				}
			},
		},
		{
			name: "ERR3_NotAdvertised",
			script: prompted + `
				<- fs/read_text_file#1 {"sessionId":"s","path":"/x"}
				-> #1 -32601 {"method":"fs/read_text_file"}
				<- fs/write_text_file#2 {"sessionId":"s","path":"/x","content":""}
				-> #2 -32601 {"method":"fs/write_text_file"}
				<- terminal/create#3 {"sessionId":"s","command":"x"}
				-> #3 -32601 {"method":"terminal/create"}
				<- terminal/kill#4 {"sessionId":"s","terminalId":"t"}
				-> #4 -32601 {"method":"terminal/kill"}
				<- elicitation/create#5 {"mode":"form","sessionId":"s","message":"?","requestedSchema":{"type":"object"}}
				-> #5 -32601 {"method":"elicitation/create"}
				<- session/prompt#6 {"sessionId":"s","prompt":[]}
				-> #6 -32601 {"method":"session/prompt"}
				<- #$p {"stopReason":"end_turn"}
				`,
			do: prompt,
		},
		{
			name: "ERR7_OVW3_TRN3_BrokenLines",
			script: prompted + `
				<-! "{"
				-> #null -32700
				<- 42
				-> #null -32600
				<- []
				-> #null -32600
				<- [{"jsonrpc":"2.0","id":1,"method":"x"}]
				-> #null -32600
				<- {"jsonrpc":"1.0","id":7,"method":"x"}
				-> #7 -32600
				<- #$p {"stopReason":"end_turn"}
				`,
			do: prompt,
		},
		{
			name:        "ERR8_GoneIsFine",
			initialized: `{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"close":{},"delete":{}}}}`,
			script: `
				-> session/close#$a {"sessionId":"s"}
				<- {"jsonrpc":"2.0","id":"$a","error":{"code":-32002,"message":"?"}}
				-> session/delete#$b {"sessionId":"s"}
				<- {"jsonrpc":"2.0","id":"$b","error":{"code":-32002,"message":"?"}}
				-> session/close#$c {"sessionId":"s"}
				<- {"jsonrpc":"2.0","id":"$c","error":{"code":-32603,"message":"?"}}
				`,
			do: func(conn *acp.ClientConn) {
				s := conn.Session("s")
				closed, err := conn.CloseSession(t.Context(), &acp.CloseSessionRequest{SessionID: "s"})
				if closed == nil || err != nil {
					t.Error(closed, err)
				}
				if err := s.Delete(t.Context()); err != nil {
					t.Error(err)
				}
				if err := s.Close(t.Context()); err == nil {
					t.Error("another error counts as success")
				}
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.initialized == "" {
				test.initialized = plainAgent
			}
			playAgent(t, test.handlers, test.opts, test.initialized, test.script, test.do)
		})
	}
}

// declines answers every elicitation.
func declines(context.Context, *acp.ClientConn, *acp.CreateElicitationRequest) (*acp.CreateElicitationResponse, error) {
	return new(acp.NewCreateElicitationResponseDecline()), nil
}
