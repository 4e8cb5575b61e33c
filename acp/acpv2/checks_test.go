package v2draft_test

// This file shows what is checked of what this side sends, and what a session knows of itself.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/acp/codec"
	"github.com/acpgo/sdk/acp/rpc"
)

// refused reports a call that was sent, or was not refused for what is wrong at pointer.
func refused(t *testing.T, name string, err error, pointer string) {
	t.Helper()
	_, sent := errors.AsType[*v2draft.CallError](err)
	if e, ok := errors.AsType[*v2draft.Error](err); sent || !ok || !errors.Is(err, v2draft.ErrInvalidParams) || !strings.Contains(string(e.Data), `"`+pointer+`"`) {
		t.Errorf("%s: %v, want it refused unsent for %s", name, err, pointer)
	}
}

func TestCallsAreChecked(t *testing.T) {
	var agent *v2draft.AgentSession
	h := handlers(working(func(ctx context.Context, s *v2draft.AgentSession) (v2draft.IdleStateUpdate, error) {
		agent = s
		return v2draft.EndTurn(), nil
	}))
	conn := connect(t, h, v2draft.ClientHandlers{}, nil)
	ctx := t.Context()
	if _, err := newSession(t, conn).Prompt(ctx, v2draft.TextBlock("x")); err != nil {
		t.Fatal(err)
	}
	update := func(u v2draft.SessionUpdate) func() error { return func() error { return agent.Update(ctx, u) } }
	nobody := conn.Session("")
	for name, test := range map[string]struct {
		pointer string
		call    func() error
	}{
		"new, nil":        {"/cwd", func() error { _, err := conn.NewSession(ctx, nil); return err }},
		"resume, nil":     {"/sessionId", func() error { _, err := conn.ResumeSession(ctx, nil); return err }},
		"prompt, nil":     {"/sessionId", func() error { _, err := conn.RunTurn(ctx, nil); return err }},
		"stream, nil":     {"/sessionId", func() error { _, err := conn.StreamTurn(ctx, nil).Result(); return err }},
		"cancel, nil":     {"/sessionId", func() error { return conn.Cancel(ctx, nil) }},
		"close":           {"/sessionId", func() error { return nobody.Close(ctx) }},
		"tool call":       {"/toolCallId", func() error { return conn.Session(session).CancelToolCall(ctx, "") }},
		"terminal":        {"/terminalId", func() error { return conn.Session(session).CancelTerminal(ctx, "") }},
		"permission, nil": {"/sessionId", func() error { _, err := agent.Conn().RequestPermission(ctx, nil); return err }},
		"permission": {"/options/1/optionId", func() error {
			_, err := agent.RequestPermission(ctx, &v2draft.RequestPermissionRequest{Title: "?", Options: []v2draft.PermissionOption{v2draft.AllowOnce("a", "A"), v2draft.RejectOnce("a", "B")}})
			return err
		}},
		"message":          {"/update/messageId", update(v2draft.AgentMessageText("", "x"))},
		"call":             {"/update/toolCallId", update(v2draft.StartToolCall("", "T"))},
		"call, location":   {"/update/locations/0/path", update(v2draft.StartToolCall("t", "T", v2draft.WithLocation("a", 0)))},
		"call, no JSON":    {"/update/rawInput", update(v2draft.StartToolCall("t", "T", v2draft.WithInput(func() {})))},
		"content terminal": {"/update/content/0/terminalId", update(v2draft.UpdateToolCall("t", v2draft.WithContent(v2draft.ToolTerminal(""))))},
		"content diff": {"/update/content/0/changes/0/path", update(v2draft.UpdateToolCall("t", v2draft.WithContent(v2draft.ToolDiff([]v2draft.DiffChange{
			v2draft.NewDiffChangeAdd(v2draft.DiffPathChange{Path: "a"})}))))},
		"select, twice": {"/update/configOptions/0/options/1/value", update(v2draft.ConfigUpdate(
			v2draft.SelectOption("o", "O", "a", v2draft.SelectValue("a", "A"), v2draft.SelectValue("a", "B"))))},
		"select, twice across groups": {"/update/configOptions/0/options/1/options/0/value", update(v2draft.ConfigUpdate(
			v2draft.NewSessionConfigOptionSelect("o", "O", v2draft.SessionConfigSelect{
				CurrentValue: "a", Options: v2draft.NewSessionConfigSelectOptionsGrouped([]v2draft.SessionConfigSelectGroup{
					{GroupID: "g", Name: "G", Options: []v2draft.SessionConfigSelectOption{v2draft.SelectValue("a", "A")}},
					{GroupID: "h", Name: "H", Options: []v2draft.SessionConfigSelectOption{v2draft.SelectValue("a", "A")}},
				}),
			})))},
		"select, current": {"/update/configOptions/0/currentValue", update(v2draft.ConfigUpdate(
			v2draft.SelectOption("o", "O", "b", v2draft.SelectValue("a", "A"))))},
		"command, white space": {"/update/availableCommands/0/name", update(v2draft.CommandsUpdate(
			v2draft.NewAvailableCommandCommand(v2draft.SlashCommand{Name: "make\u00a0it", Description: "x"})))},
		"command, twice": {"/update/availableCommands/1/name", update(v2draft.CommandsUpdate(
			v2draft.NewAvailableCommandCommand(v2draft.SlashCommand{Name: "go", Description: "x"}),
			v2draft.AvailableCommand{Variant: &v2draft.AvailableCommandUnknown{Tag: "_x", Raw: json.RawMessage(`{"type":"_x","name":"go","description":"x"}`)}}))},
		"plan":              {"/update/plan/planId", update(v2draft.WholePlan(""))},
		"compaction":        {"/update/compactionId", update(v2draft.NewSessionUpdateCompactionUpdate(v2draft.CompactionUpdate{Status: v2draft.CompactionStatusCompleted}))},
		"compaction, chunk": {"/update/compactionId", update(v2draft.NewSessionUpdateCompactionSummaryChunk(v2draft.CompactionSummaryChunk{Content: v2draft.TextBlock("x")}))},
	} {
		refused(t, name, test.call(), test.pointer)
	}
	// Variants that are nil pointers are errors too.
	for name, call := range map[string]func() error{
		"message": update(v2draft.SessionUpdate{Variant: (*v2draft.SessionUpdateAgentMessageChunk)(nil)}),
		"content": update(v2draft.UpdateToolCall("t", v2draft.WithContent(v2draft.ToolCallContent{Variant: (*v2draft.ToolCallContentDiff)(nil)}))),
		"change":  update(v2draft.UpdateToolCall("t", v2draft.WithContent(v2draft.ToolDiff([]v2draft.DiffChange{{Variant: (*v2draft.DiffChangeMove)(nil)}})))),
		"plan": update(v2draft.NewSessionUpdatePlanUpdate(v2draft.PlanUpdate{
			Plan: v2draft.PlanUpdateContent{Variant: (*v2draft.PlanUpdateContentItems)(nil)}})),
		"subject": func() error {
			_, err := agent.RequestPermission(ctx, &v2draft.RequestPermissionRequest{Title: "?", Subject: v2draft.Some(
				v2draft.RequestPermissionSubject{Variant: (*v2draft.RequestPermissionSubjectCommand)(nil)})})
			return err
		},
	} {
		if _, refused := errors.AsType[*codec.Error](call()); !refused {
			t.Errorf("%s: a nil variant was not refused", name)
		}
	}
}

// A login in a terminal sets each variable once.
func TestLoginsAreChecked(t *testing.T) {
	twice := []v2draft.EnvVariable{{Name: "A", Value: "1"}, {Name: "A", Value: "2"}}
	_, agent := v2draft.Pipe()
	served, err := v2draft.StartAgent(t.Context(), agent, v2draft.AgentHandlers{
		LoginAuth: func(context.Context, *v2draft.AgentConn, *v2draft.LoginAuthRequest) (*v2draft.LoginAuthResponse, error) {
			return nil, nil
		},
		LogoutAuth: func(context.Context, *v2draft.AgentConn, *v2draft.LogoutAuthRequest) (*v2draft.LogoutAuthResponse, error) {
			return nil, nil
		},
	}, &v2draft.AgentOptions{Info: info, AuthMethods: []v2draft.AuthMethod{
		v2draft.NewAuthMethodTerminal(v2draft.AuthMethodTerminal{MethodID: "tty", Name: "T", Env: twice}),
	}})
	if err == nil || !strings.Contains(err.Error(), `"A" twice`) {
		t.Errorf("got %v, %v", served, err)
	}
}

// A turn that was cancelled ends as cancelled, whatever its work returns.
func TestCancelledWhateverIsReturned(t *testing.T) {
	begun := make(chan struct{})
	conn := connect(t, handlers(working(func(ctx context.Context, _ *v2draft.AgentSession) (v2draft.IdleStateUpdate, error) {
		close(begun)
		<-ctx.Done()
		return v2draft.MaxTokens(), nil
	})), v2draft.ClientHandlers{}, nil)
	turn := newSession(t, conn).Stream(t.Context(), v2draft.TextBlock("x"))
	<-begun
	turn.Cancel()
	res, err := turn.Result()
	if stop := stopped(t, res, err); stop != "Cancelled" {
		t.Errorf("got %s", stop)
	}
}

// Config options and commands follow what the agent says.
func TestSessionFollowsItsAgent(t *testing.T) {
	options := func(current v2draft.SessionConfigValueID) []v2draft.SessionConfigOption {
		return []v2draft.SessionConfigOption{v2draft.SelectOption("o", "O", current, v2draft.SelectValue(current, "V"), v2draft.SelectValue("x", "X"))}
	}
	h := handlers(working(func(ctx context.Context, s *v2draft.AgentSession) (v2draft.IdleStateUpdate, error) {
		send(t, ctx, s, v2draft.ConfigUpdate(options("later")...), v2draft.CommandsUpdate(v2draft.NewAvailableCommandCommand(v2draft.SlashCommand{Name: "go", Description: "Go"})))
		return v2draft.EndTurn(), nil
	}))
	h.NewSession = func(context.Context, *v2draft.AgentConn, *v2draft.NewSessionRequest) (*v2draft.NewSessionResponse, error) {
		return &v2draft.NewSessionResponse{SessionID: session, ConfigOptions: options("first")}, nil
	}
	h.SetSessionConfigOption = func(context.Context, *v2draft.AgentSession, *v2draft.SetSessionConfigOptionRequest) (*v2draft.SetSessionConfigOptionResponse, error) {
		return &v2draft.SetSessionConfigOptionResponse{ConfigOptions: []v2draft.SessionConfigOption{v2draft.SelectOption("o", "O", "x", v2draft.SelectValue("x", "X"))}}, nil
	}
	s := newSession(t, connect(t, h, v2draft.ClientHandlers{}, nil))
	current := func() v2draft.SessionConfigValueID {
		return s.ConfigOptions()[0].Variant.(*v2draft.SessionConfigOptionSelect).CurrentValue
	}
	refused(t, "value", s.SetConfigOption(t.Context(), "o", "nope"), "/value")
	refused(t, "option", s.SetConfigOption(t.Context(), "nope", "x"), "/configId")
	if err := s.SetConfigOption(t.Context(), "o", "x"); err != nil || current() != "x" {
		t.Errorf("%s, %v", current(), err)
	}
	if _, err := s.Prompt(t.Context(), v2draft.TextBlock("x")); err != nil {
		t.Fatal(err)
	}
	if current() != "later" || len(s.AvailableCommands()) != 1 {
		t.Errorf("%s, %+v", current(), s.AvailableCommands())
	}
}

// Before a session is resumed its options are not known, and any may be set; once the agent has said that it has
// none, none may.
func TestOptionsBeforeTheyAreKnown(t *testing.T) {
	came, resumed := make(chan struct{}), make(chan struct{})
	h := handlers(unprompted)
	h.ResumeSession = func(context.Context, *v2draft.AgentSession, *v2draft.ResumeSessionRequest) (*v2draft.ResumeSessionResponse, error) {
		close(came)
		<-resumed
		return nil, nil
	}
	h.SetSessionConfigOption = func(context.Context, *v2draft.AgentSession, *v2draft.SetSessionConfigOptionRequest) (*v2draft.SetSessionConfigOptionResponse, error) {
		return nil, v2draft.ErrMethodNotFound
	}
	conn := connect(t, h, v2draft.ClientHandlers{}, nil)
	opened := make(chan error, 1)
	go func() {
		_, err := conn.ResumeSession(context.Background(), &v2draft.ResumeSessionRequest{SessionID: session, Cwd: "/"})
		opened <- err
	}()
	<-came
	s := conn.Session(session)
	if err := s.SetConfigOption(t.Context(), "o", "v"); !errors.Is(err, v2draft.ErrMethodNotFound) {
		t.Errorf("got %v, want the agent's answer", err)
	}
	close(resumed)
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	refused(t, "no options", s.SetConfigOption(t.Context(), "o", "v"), "/configId")
}

// The owner of an agent is warned of config options that no handler sets, when the session is opened.
func TestOffersWithoutHandlers(t *testing.T) {
	var options []v2draft.SessionConfigOption
	const text = `[{"type":"boolean","configId":"o","name":"O","currentValue":true}]`
	if err := json.Unmarshal([]byte(text), &options); err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	h := handlers(unprompted)
	h.NewSession = func(context.Context, *v2draft.AgentConn, *v2draft.NewSessionRequest) (*v2draft.NewSessionResponse, error) {
		return &v2draft.NewSessionResponse{SessionID: session, ConfigOptions: options}, nil
	}
	h.ResumeSession = func(context.Context, *v2draft.AgentSession, *v2draft.ResumeSessionRequest) (*v2draft.ResumeSessionResponse, error) {
		return &v2draft.ResumeSessionResponse{ConfigOptions: options}, nil
	}
	open := func(want int) {
		t.Helper()
		conn := connect(t, h, v2draft.ClientHandlers{}, &v2draft.AgentOptions{Conn: v2draft.ConnOptions{Logger: slog.New(slog.NewTextHandler(&logged, nil))}})
		for _, call := range []func() error{
			func() error { _, err := conn.NewSession(t.Context(), &v2draft.NewSessionRequest{Cwd: "/"}); return err },
			func() error {
				_, err := conn.ResumeSession(t.Context(), &v2draft.ResumeSessionRequest{SessionID: session, Cwd: "/"})
				return err
			},
		} {
			logged.Reset()
			if err := call(); err != nil {
				t.Error(err)
			}
			if got := logged.String(); strings.Count(got, "level=WARN") != want || strings.Count(got, "method=session/set_config_option") != want {
				t.Errorf("logged %q, want %d warnings", got, want)
			}
		}
	}
	open(1)
	h.SetSessionConfigOption = func(context.Context, *v2draft.AgentSession, *v2draft.SetSessionConfigOptionRequest) (*v2draft.SetSessionConfigOptionResponse, error) {
		return &v2draft.SetSessionConfigOptionResponse{ConfigOptions: options}, nil
	}
	open(0)
}

// A client that asks by the older member of _meta is offered terminal methods, and a command of an MCP server
// that is not an absolute path is reported and kept.
func TestWhatIsTakenLeniently(t *testing.T) {
	var repairs []string
	h := handlers(unprompted)
	h.LoginAuth = func(context.Context, *v2draft.AgentConn, *v2draft.LoginAuthRequest) (*v2draft.LoginAuthResponse, error) {
		return nil, nil
	}
	h.LogoutAuth = func(context.Context, *v2draft.AgentConn, *v2draft.LogoutAuthRequest) (*v2draft.LogoutAuthResponse, error) {
		return nil, nil
	}
	conn := raw(t, h, &v2draft.AgentOptions{
		Info: info,
		AuthMethods: []v2draft.AuthMethod{
			v2draft.NewAuthMethodTerminal(v2draft.AuthMethodTerminal{MethodID: "terminal", Name: "T"}),
		},
		MCP:  v2draft.MCPCapabilities{Stdio: v2draft.Some(v2draft.MCPStdioCapabilities{})},
		Conn: v2draft.ConnOptions{Hooks: v2draft.Hooks{Repair: func(method string, r codec.Repair) { repairs = append(repairs, method+r.Pointer) }}},
	})
	res, err := rpc.Call[v2draft.InitializeResponse](t.Context(), conn, "initialize", json.RawMessage(
		`{"protocolVersion":2,"info":{"name":"n","version":"1"},"capabilities":{"_meta":{"terminal-auth":true}}}`))
	if err != nil || len(res.AuthMethods) != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	if _, err := rpc.Call[json.RawMessage](t.Context(), conn, "session/new", json.RawMessage(
		`{"cwd":"/","mcpServers":[{"type":"stdio","name":"m","command":"npx","args":[],"env":[]}]}`)); err != nil {
		t.Error(err)
	}
	if len(repairs) != 1 || repairs[0] != "session/new/mcpServers/0/command" {
		t.Errorf("the owner was told %q", repairs)
	}
}

// MCP servers of a type that the agent did not advertise, or that nobody knows, do not reach its handlers.
func TestServersThatWereNotAdvertised(t *testing.T) {
	conn := raw(t, handlers(unprompted), &v2draft.AgentOptions{
		Info: info, MCP: v2draft.MCPCapabilities{Stdio: v2draft.Some(v2draft.MCPStdioCapabilities{})},
	})
	ask := func(method, params string) error {
		_, err := rpc.Call[json.RawMessage](t.Context(), conn, method, json.RawMessage(params))
		return err
	}
	if err := ask("initialize", `{"protocolVersion":2,"info":{"name":"n","version":"1"},"capabilities":{}}`); err != nil {
		t.Fatal(err)
	}
	for server, served := range map[string]bool{
		`{"type":"stdio","name":"m","command":"/m","args":[],"env":[]}`:  true,
		`{"type":"http","name":"m","url":"https://a.test","headers":[]}`: false,
		`{"type":"pigeon","name":"m"}`:                                   false,
	} {
		for _, method := range []string{"session/new", "session/resume"} {
			err := ask(method, `{"sessionId":"s","cwd":"/","mcpServers":[`+server+`]}`)
			if served && err != nil || !served && (!errors.Is(err, v2draft.ErrInvalidParams) || !strings.Contains(err.Error(), "/mcpServers/0/type")) {
				t.Errorf("%s with %s: %v", method, server, err)
			}
		}
	}
}
