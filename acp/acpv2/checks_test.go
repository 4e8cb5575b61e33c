package acpv2_test

// This file shows what is checked of what this side sends, and what a session knows of itself.

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/test/must"
)

// refused reports a call that was sent, or was not refused for what is wrong at pointer.
func refused(t *testing.T, name string, err error, pointer string) {
	t.Helper()
	_, sent := errors.AsType[*acpv2.CallError](err)
	if e, ok := errors.AsType[*acpv2.Error](err); sent || !ok || !errors.Is(err, acpv2.ErrInvalidParams) || !strings.Contains(string(e.Data), `"`+pointer+`"`) {
		t.Errorf("%s: %v, want it refused unsent for %s", name, err, pointer)
	}
}

func TestCallsAreChecked(t *testing.T) {
	var agent *acpv2.AgentSession
	h := handlers(working(func(ctx context.Context, s *acpv2.AgentSession) (acpv2.IdleStateUpdate, error) {
		agent = s
		return acpv2.EndTurn(), nil
	}))
	conn := connect(t, h, acpv2.ClientHandlers{}, &acpv2.AgentOptions{Experimental: acpv2.AllFeatures})
	ctx := t.Context()
	must.Get(newSession(t, conn).Prompt(ctx, acpv2.TextBlock("x")))(t)
	update := func(u acpv2.SessionUpdate) func() error { return func() error { return agent.Update(ctx, u) } }
	plan := func(v acpv2.PlanUpdateContentVariant) acpv2.SessionUpdate {
		return acpv2.NewSessionUpdatePlanUpdate(acpv2.PlanUpdate{Plan: acpv2.PlanUpdateContent{Variant: v}})
	}
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
			_, err := agent.RequestPermission(ctx, &acpv2.RequestPermissionRequest{Title: "?", Options: []acpv2.PermissionOption{acpv2.AllowOnce("a", "A"), acpv2.RejectOnce("a", "B")}})
			return err
		}},
		"message":          {"/update/messageId", update(acpv2.AgentMessageText("", "x"))},
		"call":             {"/update/toolCallId", update(acpv2.StartToolCall("", "T"))},
		"call, location":   {"/update/locations/0/path", update(acpv2.StartToolCall("t", "T", acpv2.WithLocation("a", 0)))},
		"call, no JSON":    {"/update/rawInput", update(acpv2.StartToolCall("t", "T", acpv2.WithInput(func() {})))},
		"content terminal": {"/update/content/0/terminalId", update(acpv2.UpdateToolCall("t", acpv2.WithContent(acpv2.ToolTerminal(""))))},
		"content diff": {"/update/content/0/changes/0/path", update(acpv2.UpdateToolCall("t", acpv2.WithContent(acpv2.ToolDiff([]acpv2.DiffChange{
			acpv2.NewDiffChangeAdd(acpv2.DiffPathChange{Path: "a"})}))))},
		"select, twice": {"/update/configOptions/0/options/1/value", update(acpv2.ConfigUpdate(
			acpv2.SelectOption("o", "O", "a", acpv2.SelectValue("a", "A"), acpv2.SelectValue("a", "B"))))},
		"select, twice across groups": {"/update/configOptions/0/options/1/options/0/value", update(acpv2.ConfigUpdate(
			acpv2.NewSessionConfigOptionSelect("o", "O", acpv2.SessionConfigSelect{
				CurrentValue: "a", Options: acpv2.NewSessionConfigSelectOptionsGrouped([]acpv2.SessionConfigSelectGroup{
					{GroupID: "g", Name: "G", Options: []acpv2.SessionConfigSelectOption{acpv2.SelectValue("a", "A")}},
					{GroupID: "h", Name: "H", Options: []acpv2.SessionConfigSelectOption{acpv2.SelectValue("a", "A")}},
				}),
			})))},
		"select, current": {"/update/configOptions/0/currentValue", update(acpv2.ConfigUpdate(
			acpv2.SelectOption("o", "O", "b", acpv2.SelectValue("a", "A"))))},
		"command, white space": {"/update/availableCommands/0/name", update(acpv2.CommandsUpdate(
			acpv2.NewAvailableCommandCommand(acpv2.SlashCommand{Name: "make\u00a0it", Description: "x"})))},
		"command, twice": {"/update/availableCommands/1/name", update(acpv2.CommandsUpdate(
			acpv2.NewAvailableCommandCommand(acpv2.SlashCommand{Name: "go", Description: "x"}),
			acpv2.AvailableCommand{Variant: &acpv2.AvailableCommandUnknown{Tag: "_x", Raw: json.RawMessage(`{"type":"_x","name":"go","description":"x"}`)}}))},
		"plan":           {"/update/plan/planId", update(acpv2.UpdatePlan(""))},
		"plan, file":     {"/update/plan/planId", update(plan(&acpv2.PlanUpdateContentFile{URI: "file:///a"}))},
		"plan, Markdown": {"/update/plan/planId", update(plan(&acpv2.PlanUpdateContentMarkdown{}))},
		"plan, removed":  {"/update/planId", update(acpv2.NewSessionUpdatePlanRemoved(acpv2.PlanRemoved{}))},
		"subagent":       {"/update/sessionId", update(acpv2.NewSessionUpdateSubagentUpdate(acpv2.SubagentUpdate{}))},
		"subagent, path": {"/update/cwd", update(acpv2.NewSessionUpdateSubagentUpdate(acpv2.SubagentUpdate{
			SessionID: "s", Cwd: acpv2.Some[acpv2.AbsolutePath]("a")}))},
		"message between sessions": {"/update/messageId", update(acpv2.NewSessionUpdateSessionMessage(acpv2.SessionMessage{}))},
		"compaction":               {"/update/compactionId", update(acpv2.NewSessionUpdateCompactionUpdate(acpv2.CompactionUpdate{Status: acpv2.CompactionStatusCompleted}))},
		"compaction, chunk":        {"/update/compactionId", update(acpv2.NewSessionUpdateCompactionSummaryChunk(acpv2.CompactionSummaryChunk{Content: acpv2.TextBlock("x")}))},
	} {
		refused(t, name, test.call(), test.pointer)
	}
	// Variants that are nil pointers are errors too.
	for name, call := range map[string]func() error{
		"message": update(acpv2.SessionUpdate{Variant: (*acpv2.SessionUpdateAgentMessageChunk)(nil)}),
		"content": update(acpv2.UpdateToolCall("t", acpv2.WithContent(acpv2.ToolCallContent{Variant: (*acpv2.ToolCallContentDiff)(nil)}))),
		"change":  update(acpv2.UpdateToolCall("t", acpv2.WithContent(acpv2.ToolDiff([]acpv2.DiffChange{{Variant: (*acpv2.DiffChangeMove)(nil)}})))),
		"plan":    update(plan((*acpv2.PlanUpdateContentItems)(nil))),
		"subject": func() error {
			_, err := agent.RequestPermission(ctx, &acpv2.RequestPermissionRequest{Title: "?", Subject: acpv2.Some(
				acpv2.RequestPermissionSubject{Variant: (*acpv2.RequestPermissionSubjectCommand)(nil)})})
			return err
		},
	} {
		if _, refused := errors.AsType[*codec.Error](call()); !refused {
			t.Errorf("%s: a nil variant was not refused", name)
		}
	}
}

// A login in a terminal is there, and sets each variable once.
func TestLoginsAreChecked(t *testing.T) {
	twice := &acpv2.AuthMethodTerminal{MethodID: "tty", Name: "T", Env: []acpv2.EnvVariable{{Name: "A", Value: "1"}, {Name: "A", Value: "2"}}}
	var h acpv2.AgentHandlers
	h.LoginAuth, h.LogoutAuth = nothing, nothing
	for want, login := range map[string]*acpv2.AuthMethodTerminal{`"A" twice`: twice, "AuthMethods": nil} {
		_, agent := acpv2.Pipe()
		served, err := acpv2.StartAgent(t.Context(), agent, h, &acpv2.AgentOptions{Info: info, AuthMethods: []acpv2.AuthMethod{{Variant: login}}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, %v, want %s", served, err, want)
		}
	}
}

// What a handler returns is not sent if it names an option twice.
func TestResultsAreChecked(t *testing.T) {
	option := acpv2.SelectOption("o", "O", "v", acpv2.SelectValue("v", "V"))
	bad := []acpv2.SessionConfigOption{option, option}
	h := handlers(unprompted)
	h.ResumeSession = func(_ context.Context, _ *acpv2.AgentSession, req *acpv2.ResumeSessionRequest) (*acpv2.ResumeSessionResponse, error) {
		if req.SessionID == session {
			return &acpv2.ResumeSessionResponse{ConfigOptions: bad[:1]}, nil
		}
		return &acpv2.ResumeSessionResponse{ConfigOptions: bad}, nil
	}
	h.SetSessionConfigOption = func(context.Context, *acpv2.AgentSession, *acpv2.SetSessionConfigOptionRequest) (*acpv2.SetSessionConfigOptionResponse, error) {
		return &acpv2.SetSessionConfigOptionResponse{ConfigOptions: bad}, nil
	}
	h.NewSession = func(context.Context, *acpv2.AgentConn, *acpv2.NewSessionRequest) (*acpv2.NewSessionResponse, error) {
		return &acpv2.NewSessionResponse{SessionID: "new", ConfigOptions: bad}, nil
	}
	conn := connect(t, h, acpv2.ClientHandlers{}, nil)
	ctx := t.Context()
	_, made := conn.NewSession(ctx, &acpv2.NewSessionRequest{Cwd: "/"})
	s := must.Get(conn.ResumeSession(ctx, &acpv2.ResumeSessionRequest{SessionID: session, Cwd: "/"}))(t)
	_, resumed := conn.ResumeSession(ctx, &acpv2.ResumeSessionRequest{SessionID: "another", Cwd: "/"})
	for what, err := range map[string]error{"resumed": resumed, "made": made, "set": s.SetConfigOption(ctx, "o", "v")} {
		if !errors.Is(err, rpc.ErrInternal) || !strings.Contains(err.Error(), "/configOptions/1") {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

// Config options and commands follow what the agent says.
func TestSessionFollowsItsAgent(t *testing.T) {
	options := func(current acpv2.SessionConfigValueID) []acpv2.SessionConfigOption {
		return []acpv2.SessionConfigOption{acpv2.SelectOption("o", "O", current, acpv2.SelectValue(current, "V"), acpv2.SelectValue("x", "X"))}
	}
	h := handlers(working(func(ctx context.Context, s *acpv2.AgentSession) (acpv2.IdleStateUpdate, error) {
		send(t, ctx, s, acpv2.ConfigUpdate(options("later")...), acpv2.CommandsUpdate(acpv2.NewAvailableCommandCommand(acpv2.SlashCommand{Name: "go", Description: "Go"})))
		return acpv2.EndTurn(), nil
	}))
	h.NewSession = func(context.Context, *acpv2.AgentConn, *acpv2.NewSessionRequest) (*acpv2.NewSessionResponse, error) {
		return &acpv2.NewSessionResponse{SessionID: session, ConfigOptions: options("first")}, nil
	}
	h.SetSessionConfigOption = func(context.Context, *acpv2.AgentSession, *acpv2.SetSessionConfigOptionRequest) (*acpv2.SetSessionConfigOptionResponse, error) {
		return &acpv2.SetSessionConfigOptionResponse{ConfigOptions: []acpv2.SessionConfigOption{acpv2.SelectOption("o", "O", "x", acpv2.SelectValue("x", "X"))}}, nil
	}
	s := newSession(t, connect(t, h, acpv2.ClientHandlers{}, nil))
	current := func() acpv2.SessionConfigValueID {
		return s.ConfigOptions()[0].Variant.(*acpv2.SessionConfigOptionSelect).CurrentValue
	}
	refused(t, "value", s.SetConfigOption(t.Context(), "o", "nope"), "/value")
	refused(t, "option", s.SetConfigOption(t.Context(), "nope", "x"), "/configId")
	if err := s.SetConfigOption(t.Context(), "o", "x"); err != nil || current() != "x" {
		t.Errorf("%s, %v", current(), err)
	}
	must.Get(s.Prompt(t.Context(), acpv2.TextBlock("x")))(t)
	if current() != "later" || len(s.AvailableCommands()) != 1 {
		t.Errorf("%s, %+v", current(), s.AvailableCommands())
	}
}

// Before a session is resumed its options are not known, and any may be set; once the agent has said that it has
// none, none may.
func TestOptionsBeforeTheyAreKnown(t *testing.T) {
	came, resumed := make(chan struct{}), make(chan struct{})
	h := handlers(unprompted)
	h.ResumeSession = func(context.Context, *acpv2.AgentSession, *acpv2.ResumeSessionRequest) (*acpv2.ResumeSessionResponse, error) {
		close(came)
		<-resumed
		return nil, nil
	}
	h.SetSessionConfigOption = func(context.Context, *acpv2.AgentSession, *acpv2.SetSessionConfigOptionRequest) (*acpv2.SetSessionConfigOptionResponse, error) {
		return nil, acpv2.ErrMethodNotFound
	}
	conn := connect(t, h, acpv2.ClientHandlers{}, nil)
	opened := make(chan error, 1)
	go func() {
		_, err := conn.ResumeSession(context.Background(), &acpv2.ResumeSessionRequest{SessionID: session, Cwd: "/"})
		opened <- err
	}()
	<-came
	s := conn.Session(session)
	if err := s.SetConfigOption(t.Context(), "o", "v"); !errors.Is(err, acpv2.ErrMethodNotFound) {
		t.Errorf("got %v, want the agent's answer", err)
	}
	close(resumed)
	must.Do(t, <-opened)
	refused(t, "no options", s.SetConfigOption(t.Context(), "o", "v"), "/configId")
}

// A client that asks by the older member of _meta is offered terminal methods, and a command of an MCP server
// that is not an absolute path is reported and kept.
func TestWhatIsTakenLeniently(t *testing.T) {
	var repairs []string
	h := handlers(unprompted)
	h.LoginAuth, h.LogoutAuth = nothing, nothing
	conn := raw(t, h, &acpv2.AgentOptions{
		Info: info,
		AuthMethods: []acpv2.AuthMethod{
			acpv2.NewAuthMethodTerminal(acpv2.AuthMethodTerminal{MethodID: "terminal", Name: "T"}),
		},
		MCP:  acpv2.MCPCapabilities{Stdio: acpv2.Some(acpv2.MCPStdioCapabilities{})},
		Conn: acpv2.ConnOptions{Hooks: acpv2.Hooks{Repair: func(method string, r codec.Repair) { repairs = append(repairs, method+r.Pointer) }}},
	})
	res, err := rpc.Call[acpv2.InitializeResponse](t.Context(), conn, "initialize", json.RawMessage(
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
