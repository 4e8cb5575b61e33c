package acp_test

// This file shows what is checked of what this side sends: its calls, the results of its handlers, and when.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/ways"
)

// refusedAt reports a call that was sent, or that was not refused with what is wrong at pointer.
func refusedAt(t *testing.T, name string, err error, pointer string) {
	t.Helper()
	if _, sent := errors.AsType[*acp.CallError](err); sent || !errors.Is(err, acp.ErrInvalidParams) {
		t.Errorf("%s: %v, want it refused unsent for %s", name, err, pointer)
		return
	}
	e, _ := errors.AsType[*acp.Error](err)
	var data struct{ Pointer, Reason string }
	if err := json.Unmarshal(e.Data, &data); err != nil || data.Pointer != pointer || data.Reason == "" {
		t.Errorf("%s: %s, %v, want pointer %s", name, e.Data, err, pointer)
	}
}

// everything is an agent that serves all methods.
func everything() (acp.AgentHandlers, *acp.AgentOptions) {
	opts := willingAgentOptions
	opts.MCP = acp.MCPCapabilities{HTTP: true}
	return willingAgent(), &opts
}

// A client's calls are refused unsent when an id is empty, a path is not absolute, or the parameters
// are missing; nothing panics.
func TestClientCallsAreChecked(t *testing.T) {
	agent, opts := everything()
	conn, _ := pair(t, agent, opts, acp.ClientHandlers{}, nil)
	ctx := t.Context()
	s := conn.Session("")
	for name, test := range map[string]struct {
		pointer string
		call    func() error
	}{
		"authenticate":    {"/methodId", func() error { _, err := conn.Authenticate(ctx, nil); return err }},
		"new, nil":        {"/cwd", func() error { _, err := conn.NewSession(ctx, nil); return err }},
		"load, nil":       {"/sessionId", func() error { _, err := conn.LoadSession(ctx, nil); return err }},
		"resume, nil":     {"/sessionId", func() error { _, err := conn.ResumeSession(ctx, nil); return err }},
		"close, nil":      {"/sessionId", func() error { _, err := conn.CloseSession(ctx, nil); return err }},
		"delete, nil":     {"/sessionId", func() error { _, err := conn.DeleteSession(ctx, nil); return err }},
		"set_mode, nil":   {"/sessionId", func() error { _, err := conn.SetSessionMode(ctx, nil); return err }},
		"set_config, nil": {"/sessionId", func() error { _, err := conn.SetSessionConfigOption(ctx, nil); return err }},
		"prompt, nil":     {"/sessionId", func() error { _, err := conn.Prompt(ctx, nil); return err }},
		"cancel, nil":     {"/sessionId", func() error { return conn.Cancel(ctx, nil) }},
		"session close":   {"/sessionId", func() error { return s.Close(ctx) }},
		"session prompt":  {"/sessionId", func() error { _, err := s.Prompt(ctx); return err }},
		"session stream":  {"/sessionId", func() error { _, err := s.Stream(ctx).Result(); return err }},
		"session cancel":  {"/sessionId", func() error { return s.Cancel(ctx) }},
		"session mode":    {"/modeId", func() error { return conn.Session("s").SetMode(ctx, "") }},
		"session option":  {"/configId", func() error { return conn.Session("s").SetConfigOption(ctx, "", "v") }},
		"new, command":    {"/mcpServers/0/command", func() error { _, err := conn.NewSession(ctx, withServer("npx")); return err }},
		"new, drive":      {"/cwd", func() error { _, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: `1:\a`}); return err }},
		"prompt, role": {"/prompt/1/annotations/audience/0", func() error {
			_, err := conn.Session("s").Prompt(ctx, acp.TextBlock("x"), annotated("nobody"))
			return err
		}},
		"stream, role": {"/prompt/0/annotations/audience/1", func() error {
			_, err := conn.Session("s").Stream(ctx, annotated(acp.RoleUser, "nobody")).Result()
			return err
		}},
		"new, drive no ASCII": {"/cwd", func() error { _, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "é:/a"}); return err }},
	} {
		refusedAt(t, name, test.call(), test.pointer)
	}
}

// annotated returns an image for roles.
func annotated(roles ...acp.Role) acp.ContentBlock {
	return acp.ContentBlock{Variant: &acp.ContentBlockImage{
		MimeType: "image/png", Annotations: acp.Some(acp.Annotations{Audience: acp.Some(roles)}),
	}}
}

func withServer(command string) *acp.NewSessionRequest {
	return &acp.NewSessionRequest{Cwd: "/", MCPServers: []acp.MCPServer{
		acp.NewMCPServerStdio(acp.MCPServerStdio{Name: "m", Command: command}),
	}}
}

// The same of an agent's calls, and of what its updates say.
func TestAgentCallsAreChecked(t *testing.T) {
	client := willingClient()
	clientOpts := willingClientOptions
	_, agent := pairThat(t, unmade, acp.AgentHandlers{}, nil, client, &clientOpts)
	ctx := t.Context()
	s, nobody := agent.Session("s"), agent.Session("")
	update := func(u acp.SessionUpdate) func() error { return func() error { return s.Update(ctx, u) } }
	ask := func(call acp.ToolCallUpdate, options ...acp.PermissionOption) func() error {
		return func() error { _, err := s.RequestPermission(ctx, call, options...); return err }
	}
	call := acp.ToolCallRef("t")
	wrong := annotated(acp.RoleAssistant, "nobody")
	form := func(name string, format acp.StringFormat) func() error {
		return func() error {
			_, err := s.ElicitForm(ctx, "m", acp.ElicitationSchema{Properties: map[string]acp.ElicitationPropertySchema{
				"a":  acp.NewElicitationPropertySchemaString(acp.StringPropertySchema{Format: acp.Some(acp.StringFormatEmail)}),
				name: acp.NewElicitationPropertySchemaString(acp.StringPropertySchema{Format: acp.Some(format)}),
			}})
			return err
		}
	}
	for name, test := range map[string]struct {
		pointer string
		call    func() error
	}{
		"read, nil":          {"/sessionId", func() error { _, err := agent.ReadTextFile(ctx, nil); return err }},
		"session read, nil":  {"/path", func() error { _, err := s.ReadTextFile(ctx, nil); return err }},
		"session write, nil": {"/path", func() error { _, err := s.WriteTextFile(ctx, nil); return err }},
		"read, line 0": {"/line", func() error {
			_, err := s.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: "/a", Line: acp.Some[uint32](0)})
			return err
		}},
		"no session":           {"/sessionId", func() error { return nobody.Update(ctx, acp.AgentMessageText("x")) }},
		"terminal, no session": {"/sessionId", func() error { _, err := nobody.CreateTerminal(ctx, nil); return err }},
		"terminal, cwd": {"/cwd", func() error {
			_, err := s.CreateTerminal(ctx, &acp.CreateTerminalRequest{Command: "x", Cwd: acp.Some("a")})
			return err
		}},
		"output": {"/terminalId", func() error {
			_, err := agent.TerminalOutput(ctx, &acp.TerminalOutputRequest{SessionID: "s"})
			return err
		}},
		"permission, nil":     {"/sessionId", func() error { _, err := agent.RequestPermission(ctx, nil); return err }},
		"permission, no call": {"/toolCall/toolCallId", ask(acp.ToolCallUpdate{})},
		"permission, twice":   {"/options/1/optionId", ask(call, acp.AllowOnce("a", "A"), acp.RejectOnce("a", "B"))},
		"permission, no id":   {"/options/0/optionId", ask(call, acp.AllowOnce("", "A"))},
		"permission, kind":    {"/options/0/kind", ask(call, acp.PermissionOption{OptionID: "a", Name: "A", Kind: "perhaps"})},
		"elicit":              {"/elicitationId", func() error { _, err := s.ElicitURL(ctx, "m", "", "https://x"); return err }},
		"elicit, no session":  {"/sessionId", func() error { _, err := nobody.ElicitForm(ctx, "m", acp.ElicitationSchema{}); return err }},
		"elicit, type": {"/requestedSchema/type", func() error {
			_, err := s.ElicitForm(ctx, "m", acp.ElicitationSchema{Type: "list"})
			return err
		}},
		"elicit, format":      {"/requestedSchema/properties/b~1c/format", form("b/c", "telephone")},
		"message, role":       {"/update/content/annotations/audience/1", update(acp.NewSessionUpdateAgentMessageChunk(acp.ContentChunk{Content: wrong}))},
		"thought, role":       {"/update/content/annotations/audience/1", update(acp.NewSessionUpdateAgentThoughtChunk(acp.ContentChunk{Content: wrong}))},
		"replay, role":        {"/update/content/annotations/audience/1", update(acp.NewSessionUpdateUserMessageChunk(acp.ContentChunk{Content: wrong}))},
		"tool content, role":  {"/update/content/1/content/annotations/audience/1", update(acp.UpdateToolCall("t", acp.WithContent(acp.ToolText("x"), acp.ToolCallContent{Variant: &acp.ToolCallContentContent{Content: wrong}})))},
		"summary, role":       {"/update/summary/0/annotations/audience/1", update(acp.NewSessionUpdateCompactionUpdate(acp.CompactionUpdate{CompactionID: "c", Status: acp.CompactionStatusCompleted, Summary: acp.Some([]acp.ContentBlock{wrong})}))},
		"summary chunk, role": {"/update/content/annotations/audience/1", update(acp.NewSessionUpdateCompactionSummaryChunk(acp.CompactionSummaryChunk{CompactionID: "c", Content: wrong}))},
		"complete, nil":       {"/elicitationId", func() error { return agent.CompleteElicitation(ctx, nil) }},
		"call without id":     {"/update/toolCallId", update(acp.StartToolCall("", "T"))},
		"call, kind":          {"/update/kind", update(acp.StartToolCall("t", "T", acp.WithKind("sing")))},
		"call, status":        {"/update/status", update(acp.StartToolCall("t", "T", acp.WithStatus("done")))},
		"update without id":   {"/update/toolCallId", update(acp.UpdateToolCall(""))},
		"update, kind":        {"/update/kind", update(acp.UpdateToolCall("t", acp.WithKind("sing")))},
		"update, status":      {"/update/status", update(acp.UpdateToolCall("t", acp.WithStatus("done")))},
		"update, location":    {"/update/locations/1/path", update(acp.UpdateToolCall("t", acp.WithLocation("/a", 1), acp.WithLocation("b", 0)))},
		"call, location":      {"/update/locations/0/path", update(acp.StartToolCall("t", "T", acp.WithLocation("a", 1)))},
		"update, diff":        {"/update/content/1/path", update(acp.UpdateToolCall("t", acp.WithContent(acp.ToolText("x"), acp.ToolDiff("a", ""))))},
		"update, terminal":    {"/update/content/0/terminalId", update(acp.UpdateToolCall("t", acp.WithContent(acp.ToolTerminal(""))))},
		"update, no JSON":     {"/update/rawInput", update(acp.UpdateToolCall("t", acp.WithInput(func() {})))},
		"call, no JSON":       {"/update/rawOutput", update(acp.StartToolCall("t", "T", acp.WithOutput(make(chan int))))},
		"plan, status":        {"/update/entries/0/status", update(acp.UpdatePlan(acp.PlanEntry{Content: "x", Priority: acp.PlanEntryPriorityLow, Status: "soon"}))},
		"plan, priority":      {"/update/entries/0/priority", update(acp.UpdatePlan(acp.PlanEntry{Content: "x", Status: acp.PlanEntryStatusPending}))},
		"mode":                {"/update/currentModeId", update(acp.ModeUpdate(""))},
		"compaction":          {"/update/compactionId", update(acp.NewSessionUpdateCompactionUpdate(acp.CompactionUpdate{Status: acp.CompactionStatusCompleted}))},
		"compaction, chunk":   {"/update/compactionId", update(acp.NewSessionUpdateCompactionSummaryChunk(acp.CompactionSummaryChunk{Content: acp.TextBlock("x")}))},
		"boolean option":      {"/update/configOptions/0/type", update(acp.ConfigUpdate(acp.BooleanOption("b", "B", true)))},
		"options of the same id": {"/update/configOptions/1", update(acp.ConfigUpdate(
			acp.SelectOption("a", "A", "v", acp.SelectValue("v", "V")), acp.SelectOption("a", "A", "v", acp.SelectValue("v", "V"))))},
	} {
		refusedAt(t, name, test.call(), test.pointer)
	}
	if err := s.Update(ctx, acp.StartToolCall("t", "T", acp.WithKind("sing"))); err == nil || !strings.Contains(err.Error(), `"sing" is not one of the values of acp.ToolKind: read, edit, `) {
		t.Errorf("the error does not name the type: %v", err)
	}
	for _, u := range []acp.SessionUpdate{
		acp.StartToolCall("t", "T"),
		acp.UpdateToolCall("t", acp.WithStatus(acp.ToolCallStatusCompleted), acp.WithInput(json.RawMessage(`null`))),
		acp.ConfigUpdate(acp.SelectOption("a", "A", "v", acp.SelectValue("v", "V"))),
	} {
		if err := s.Update(ctx, u); err != nil {
			t.Error(err)
		}
	}
}

// A name that the protocol does not have may be passed on in the member in which it was read.
func TestReadNamesMayBeSent(t *testing.T) {
	a, c := ways.Pipe(t)
	passed := make(chan error, 4)
	agent := willingAgent()
	agent.Prompt = func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
		block := req.Prompt[0]
		passed <- s.Update(ctx, acp.NewSessionUpdateUserMessageChunk(acp.ContentChunk{Content: block}))
		passed <- s.Update(ctx, acp.NewSessionUpdateUserMessageChunk(acp.ContentChunk{Content: annotated("editor")}))
		var update acp.SessionUpdate
		if err := json.Unmarshal([]byte(`{"sessionUpdate":"tool_call_update","toolCallId":"t","kind":"hum","status":"hummed"}`), &update); err != nil {
			t.Error(err)
		}
		passed <- s.Update(ctx, update)
		// The same by the structures of a program that reads one message and sends another.
		var plan acp.Plan
		if err := json.Unmarshal([]byte(`{"entries":[{"content":"x","priority":"huge","status":"stuck"}]}`), &plan); err != nil {
			t.Error(err)
		}
		passed <- s.Update(ctx, acp.UpdatePlan(acp.PlanEntry{Content: "y", Priority: plan.Entries[0].Priority, Status: plan.Entries[0].Status}))
		var res acp.PromptResponse
		return &res, json.Unmarshal([]byte(`{"stopReason":"out_of_credit"}`), &res)
	}
	opts := willingAgentOptions
	served, err := acp.StartAgent(t.Context(), a, agent, &opts)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rpc.Connect(t.Context(), c, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := call(t, client, acp.MethodInitialize, initializeParams); err != nil {
		t.Fatal(err)
	}
	if err := call(t, client, acp.MethodPrompt,
		`{"sessionId":"s","prompt":[{"type":"text","text":"x","annotations":{"audience":["user","reviewer"]}}]}`); err != nil {
		t.Fatal(err)
	}
	if err := <-passed; err != nil {
		t.Errorf("a role that the client has sent is not passed on: %v", err)
	}
	refusedAt(t, "a role of the agent's own", <-passed, "/update/content/annotations/audience/0")
	if err := <-passed; err != nil {
		t.Errorf("an update that was read is not passed on: %v", err)
	}
	if err := <-passed; err != nil {
		t.Errorf("a plan entry with values that were read: %v", err)
	}
	if err := errors.Join(client.Close(), served.Wait()); err != nil {
		t.Error(err)
	}
}

// What a handler returns is checked too. The peer gets an internal error that says what is wrong, the
// owner a warning.
func TestResultsAreChecked(t *testing.T) {
	ways.InMemory(t, unopened)
	boolean := acp.Some([]acp.SessionConfigOption{acp.BooleanOption("b", "B", true)})
	var logged syncBuffer
	logs := acp.ConnOptions{Logger: slog.New(slog.NewTextHandler(&logged, nil))}
	agent := acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{}, nil
		},
		LoadSession: func(_ context.Context, s *acp.AgentSession, _ *acp.LoadSessionRequest) (*acp.LoadSessionResponse, error) {
			if s.ID() == "no mode" {
				return &acp.LoadSessionResponse{Modes: acp.Some(acp.SessionModeState{
					CurrentModeID: "a", AvailableModes: []acp.SessionMode{{ID: "a", Name: "A"}, {Name: "B"}},
				})}, nil
			}
			return &acp.LoadSessionResponse{ConfigOptions: boolean}, nil
		},
		ResumeSession: func(_ context.Context, s *acp.AgentSession, _ *acp.ResumeSessionRequest) (*acp.ResumeSessionResponse, error) {
			if s.ID() == "no mode" {
				return &acp.ResumeSessionResponse{Modes: acp.Some(acp.SessionModeState{})}, nil
			}
			return &acp.ResumeSessionResponse{ConfigOptions: boolean}, nil
		},
		SetSessionConfigOption: func(context.Context, *acp.AgentSession, *acp.SetSessionConfigOptionRequest) (*acp.SetSessionConfigOptionResponse, error) {
			return &acp.SetSessionConfigOptionResponse{ConfigOptions: boolean.Value()}, nil
		},
		ListSessions: func(_ context.Context, _ *acp.AgentConn, req *acp.ListSessionsRequest) (*acp.ListSessionsResponse, error) {
			if req.Cursor.Present() {
				return &acp.ListSessionsResponse{Sessions: []acp.SessionInfo{{SessionID: "s", Cwd: "/", AdditionalDirectories: []string{"/a", "b"}}}}, nil
			}
			if req.Cwd.Present() {
				return &acp.ListSessionsResponse{Sessions: []acp.SessionInfo{{SessionID: "s", Cwd: "here"}}}, nil
			}
			return &acp.ListSessionsResponse{Sessions: []acp.SessionInfo{{Cwd: "/"}}}, nil
		},
		Prompt: func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error) {
			return &acp.PromptResponse{StopReason: "bored"}, nil
		},
	}
	client := terminals(func(context.Context, *acp.CreateTerminalRequest) (*acp.CreateTerminalResponse, error) {
		return &acp.CreateTerminalResponse{}, nil
	}, func(acp.TerminalID) {})
	client.RequestPermission = func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
		return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected("nope")}, nil
	}
	conn, served := pairThat(t, map[string]string{
		"PRM-1": "no session is made", "ADD-2": "no session is made", "LST-10": "the cursor says which result is wrong",
	}, agent, &acp.AgentOptions{Conn: logs}, client, &acp.ClientOptions{Conn: logs})
	ctx := t.Context()
	for name, test := range map[string]struct {
		pointer string
		call    func() error
	}{
		"new": {"/sessionId", func() error { _, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/"}); return err }},
		"load": {"/configOptions/0/type", func() error {
			_, err := conn.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: "l", Cwd: "/"})
			return err
		}},
		"resume": {"/configOptions/0/type", func() error {
			_, err := conn.ResumeSession(ctx, &acp.ResumeSessionRequest{SessionID: "r", Cwd: "/"})
			return err
		}},
		"option": {"/configOptions/0/type", func() error { return conn.Session("s").SetConfigOption(ctx, "a", "v") }},
		"modes": {"/modes/currentModeId", func() error {
			_, err := conn.ResumeSession(ctx, &acp.ResumeSessionRequest{SessionID: "no mode", Cwd: "/"})
			return err
		}},
		"modes, list": {"/modes/availableModes/1/id", func() error {
			_, err := conn.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: "no mode", Cwd: "/"})
			return err
		}},
		"list, directory": {"/sessions/0/additionalDirectories/1", func() error {
			_, err := conn.ListSessions(ctx, &acp.ListSessionsRequest{Cursor: acp.Some("next")})
			return err
		}},
		"list": {"/sessions/0/sessionId", func() error { _, err := conn.ListSessions(ctx, nil); return err }},
		"list, cwd": {"/sessions/0/cwd", func() error {
			_, err := conn.ListSessions(ctx, &acp.ListSessionsRequest{Cwd: acp.Some("/")})
			return err
		}},
		"prompt": {"/stopReason", func() error { _, err := conn.Session("s").Prompt(ctx); return err }},
		"terminal": {"/terminalId", func() error {
			_, err := served.Session("s").CreateTerminal(ctx, &acp.CreateTerminalRequest{Command: "x"})
			return err
		}},
		"permission": {"/outcome/optionId", func() error {
			_, err := served.Session("s").RequestPermission(ctx, acp.ToolCallRef("t"), acp.AllowOnce("a", "A"))
			return err
		}},
	} {
		logged.reset()
		err := test.call()
		answer, sent := errors.AsType[*acp.CallError](err)
		if !sent || !errors.Is(err, rpc.ErrInternal) || !strings.Contains(answer.Err.Message, test.pointer+": ") {
			t.Errorf("%s: %v, want %s", name, err, test.pointer)
		}
		if warned := logged.String(); !strings.Contains(warned, "level=WARN") || !strings.Contains(warned, test.pointer) {
			t.Errorf("%s: logged %q", name, warned)
		}
	}
}

// The owner of an agent is warned of modes and config options that no handler sets, when the session is opened.
func TestOffersWithoutHandlers(t *testing.T) {
	modes := acp.Some(acp.SessionModeState{CurrentModeID: "a", AvailableModes: []acp.SessionMode{{ID: "a", Name: "A"}}})
	options := acp.Some([]acp.SessionConfigOption{acp.SelectOption("o", "O", "v", acp.SelectValue("v", "V"))})
	var logged syncBuffer
	opts := &acp.AgentOptions{Conn: acp.ConnOptions{Logger: slog.New(slog.NewTextHandler(&logged, nil))}}
	agent := acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: "s", Modes: modes, ConfigOptions: options}, nil
		},
		LoadSession: func(context.Context, *acp.AgentSession, *acp.LoadSessionRequest) (*acp.LoadSessionResponse, error) {
			return &acp.LoadSessionResponse{Modes: modes, ConfigOptions: options}, nil
		},
		ResumeSession: func(context.Context, *acp.AgentSession, *acp.ResumeSessionRequest) (*acp.ResumeSessionResponse, error) {
			return &acp.ResumeSessionResponse{Modes: modes, ConfigOptions: options}, nil
		},
	}
	open := func(t *testing.T, agent acp.AgentHandlers) (warnings []string) {
		conn, _ := pair(t, agent, opts, acp.ClientHandlers{}, nil)
		for _, call := range []func() error{
			func() error { _, err := conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/"}); return err },
			func() error {
				_, err := conn.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: "s", Cwd: "/"})
				return err
			},
			func() error {
				_, err := conn.ResumeSession(t.Context(), &acp.ResumeSessionRequest{SessionID: "s", Cwd: "/"})
				return err
			},
		} {
			logged.reset()
			if err := call(); err != nil {
				t.Error(err)
			}
			warnings = append(warnings, logged.String())
		}
		return warnings
	}
	for _, warned := range open(t, agent) {
		if strings.Count(warned, "level=WARN") != 2 || !strings.Contains(warned, "method=session/set_mode") || !strings.Contains(warned, "method=session/set_config_option") {
			t.Errorf("logged %q", warned)
		}
	}
	agent.SetSessionMode = func(context.Context, *acp.AgentSession, *acp.SetSessionModeRequest) (*acp.SetSessionModeResponse, error) {
		return nil, nil
	}
	agent.SetSessionConfigOption = func(context.Context, *acp.AgentSession, *acp.SetSessionConfigOptionRequest) (*acp.SetSessionConfigOptionResponse, error) {
		return &acp.SetSessionConfigOptionResponse{ConfigOptions: options.Value()}, nil
	}
	for _, warned := range open(t, agent) {
		if warned != "" {
			t.Errorf("with the handlers: logged %q", warned)
		}
	}
}

// syncBuffer is a buffer for several goroutines.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func (b *syncBuffer) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.b.Reset()
}

// Before initialize was answered neither side is served anything else, notifications included, and neither
// sends anything else.
func TestInitializeComesFirst(t *testing.T) {
	var invalid syncBuffer
	a, c := acp.Pipe()
	cancelled := make(chan acp.SessionID, 10)
	agent, err := acp.StartAgent(t.Context(), conformance.Tap(t, conformance.Agent, a, sentBy(conformance.Agent)), complete(acp.AgentHandlers{
		Cancel: func(_ context.Context, session *acp.AgentSession, _ *acp.CancelNotification) error {
			cancelled <- session.ID()
			return nil
		},
	}), &acp.AgentOptions{Conn: acp.ConnOptions{Hooks: acp.Hooks{
		Invalid: func(_ []byte, reason error) { fmt.Fprintln(&invalid, reason) },
	}}})
	if err != nil {
		t.Fatal(err)
	}
	client, err := rpc.Connect(t.Context(), c, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	unsent := func(what string, err error) {
		t.Helper()
		if _, sent := errors.AsType[*acp.CallError](err); sent || !errors.Is(err, acp.ErrInvalidRequest) {
			t.Errorf("%s: %v", what, err)
		}
	}
	unsent("an update", agent.Session("s").Update(t.Context(), acp.AgentMessageText("early")))
	_, err = agent.Session("s").RequestPermission(t.Context(), acp.ToolCallRef("t"))
	unsent("a question", err)
	_, err = agent.Session("s").ReadTextFile(t.Context(), &acp.ReadTextFileRequest{Path: "/a"})
	unsent("a gated call", err)

	if err := rpc.Notify(t.Context(), client, acp.MethodCancel, json.RawMessage(`{"sessionId":"early"}`)); err != nil {
		t.Error(err)
	}
	if err := call(t, client, acp.MethodPrompt, `{"sessionId":"early","prompt":[]}`); !errors.Is(err, acp.ErrInvalidRequest) {
		t.Errorf("a prompt: %v", err)
	}
	if err := call(t, client, acp.MethodInitialize, initializeParams); err != nil {
		t.Error(err)
	}
	if err := rpc.Notify(t.Context(), client, acp.MethodCancel, json.RawMessage(`{"sessionId":"late"}`)); err != nil {
		t.Error(err)
	}
	if id := <-cancelled; id != "late" {
		t.Errorf("the handler was given the cancellation of %q", id)
	}
	if got := invalid.String(); !strings.Contains(got, acp.MethodCancel) || !strings.Contains(got, "initialize") {
		t.Errorf("the owner was told %q", got)
	}
	if err := errors.Join(client.Close(), agent.Wait()); err != nil {
		t.Error(err)
	}
}

// The same for a client, whose agent is not to ask before it has answered.
func TestAgentThatAsksBeforeItsAnswer(t *testing.T) {
	a, c := acp.Pipe()
	ext := &rpc.Extensions[rpc.Conn]{}
	rpc.Handle(ext, acp.MethodInitialize, func(ctx context.Context, conn *rpc.Conn, _ *json.RawMessage) (*json.RawMessage, error) {
		_, err := rpc.Call[json.RawMessage](ctx, conn, acp.MethodRequestPermission,
			json.RawMessage(`{"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[]}`))
		if !errors.Is(err, acp.ErrInvalidRequest) {
			t.Errorf("an early question: %v", err)
		}
		return new(json.RawMessage(`{"protocolVersion":1}`)), nil
	})
	agent, err := rpc.Connect(t.Context(), a, ext, nil)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, c, sentBy(conformance.Client)), acp.ClientHandlers{
		RequestPermission: func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			t.Error("an early question was passed on")
			return nil, nil
		},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(conn.Close(), agent.Wait()); err != nil {
		t.Error(err)
	}
}

// A command of an MCP server that is not an absolute path is reported, and the session is made.
func TestRelativeCommandOfAnMCPServer(t *testing.T) {
	var repairs []string
	var commands []string
	conn := bareClient(t, acp.AgentHandlers{
		NewSession: func(_ context.Context, _ *acp.AgentConn, req *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			commands = append(commands, req.MCPServers[0].Variant.(*acp.MCPServerStdio).Command)
			return &acp.NewSessionResponse{SessionID: "s"}, nil
		},
	}, &acp.AgentOptions{Conn: acp.ConnOptions{Hooks: acp.Hooks{Start: func(_ *rpc.Conn, hooks acp.Hooks) acp.Hooks {
		hooks.Repair = func(method string, r codec.Repair) { repairs = append(repairs, method+" "+r.Pointer) }
		return hooks
	}}}})
	if err := call(t, conn, acp.MethodInitialize, initializeParams); err != nil {
		t.Fatal(err)
	}
	if err := call(t, conn, acp.MethodNewSession, `{"cwd":"/","mcpServers":[{"name":"m","command":"npx","args":[],"env":[]}]}`); err != nil {
		t.Error(err)
	}
	if len(commands) != 1 || commands[0] != "npx" {
		t.Errorf("the handler was given %q", commands)
	}
	if len(repairs) != 1 || repairs[0] != "session/new /mcpServers/0/command" {
		t.Errorf("the owner was told %q", repairs)
	}
}

// Modes and config options follow what the agent says, before the client's handler hears of it, and what is
// chosen is checked against that.
func TestSessionFollowsItsAgent(t *testing.T) {
	list := func(values ...acp.SessionConfigValueID) acp.SessionConfigOption {
		var choices []acp.SessionConfigSelectOption
		for _, v := range values {
			choices = append(choices, acp.SelectValue(v, string(v)))
		}
		return acp.SelectOption("model", "Model", values[0], choices...)
	}
	type known struct {
		mode  acp.SessionModeID
		value acp.SessionConfigValueID
	}
	heard := make(chan known, 10)
	what := func(s *acp.ClientSession) known {
		k := known{mode: s.Modes().Value().CurrentModeID}
		for _, o := range s.ConfigOptions().Value() {
			if choice, ok := o.Variant.(*acp.SessionConfigOptionSelect); ok {
				k.value = choice.CurrentValue
			}
		}
		return k
	}
	conn := connect(t, acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{
				SessionID: "s",
				Modes: acp.Some(acp.SessionModeState{
					CurrentModeID: "ask", AvailableModes: []acp.SessionMode{{ID: "ask", Name: "Ask"}, {ID: "code", Name: "Code"}},
				}),
				ConfigOptions: acp.Some([]acp.SessionConfigOption{list("one", "two"), acp.BooleanOption("brave", "Brave", false)}),
			}, nil
		},
		SetSessionMode: func(context.Context, *acp.AgentSession, *acp.SetSessionModeRequest) (*acp.SetSessionModeResponse, error) {
			return nil, nil
		},
		SetSessionConfigOption: func(_ context.Context, _ *acp.AgentSession, req *acp.SetSessionConfigOptionRequest) (*acp.SetSessionConfigOptionResponse, error) {
			value := req.Variant.(*acp.SetSessionConfigOptionRequestValueID).Value
			return &acp.SetSessionConfigOptionResponse{ConfigOptions: []acp.SessionConfigOption{list(value, "one")}}, nil
		},
		Prompt: func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
			err := errors.Join(s.Update(ctx, acp.ModeUpdate("ask")), s.Update(ctx, acp.ConfigUpdate(list("three"))))
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, err
		},
	}, nil, acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, s *acp.ClientSession, n *acp.SessionNotification) error {
			heard <- what(s)
			return nil
		},
	}, &acp.ClientOptions{BooleanConfig: true})
	s := start(t, conn)
	ctx := t.Context()
	expect := func(want known) {
		t.Helper()
		if got := what(s); got != want {
			t.Errorf("the session is in %+v, want %+v", got, want)
		}
	}
	expect(known{"ask", "one"})
	refusedAt(t, "mode", s.SetMode(ctx, "nope"), "/modeId")
	refusedAt(t, "option", s.SetConfigOption(ctx, "nope", "one"), "/configId")
	refusedAt(t, "value", s.SetConfigOption(ctx, "model", "three"), "/value")
	refusedAt(t, "boolean for a list", s.SetBooleanConfigOption(ctx, "model", true), "/value")
	refusedAt(t, "value for a boolean", s.SetConfigOption(ctx, "brave", "one"), "/value")
	for want, err := range map[string]error{
		`"nope" is not a mode of the session: "ask", "code"`:             s.SetMode(ctx, "nope"),
		`"nope" is not a config option of the session: "model", "brave"`: s.SetConfigOption(ctx, "nope", "one"),
		`"four" is not a value of the option "model": "one", "two"`:      s.SetConfigOption(ctx, "model", "four"),
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := errors.Join(s.SetMode(ctx, "code"), s.SetConfigOption(ctx, "model", "two")); err != nil {
		t.Fatal(err)
	}
	expect(known{"code", "two"})
	if _, err := s.Prompt(ctx); err != nil {
		t.Fatal(err)
	}
	if first := <-heard; first.mode != "ask" {
		t.Errorf("the handler of the mode's update found %+v", first)
	}
	if second := <-heard; second.value != "three" {
		t.Errorf("the handler of the options' update found %+v", second)
	}
	expect(known{"ask", "three"})
	refusedAt(t, "value of before", s.SetConfigOption(ctx, "model", "two"), "/value")
	refusedAt(t, "option of before", s.SetBooleanConfigOption(ctx, "brave", true), "/configId")
}

// A turn that was cancelled is answered so, whatever its handler returns; the rest of its answer is kept.
func TestCancelledWhateverIsReturned(t *testing.T) {
	running := make(chan struct{}, 1)
	shared := acp.PromptResponse{StopReason: acp.StopReasonEndTurn, Meta: acp.Meta{"kept": acp.Raw(1)}}
	conn := connect(t, acp.AgentHandlers{
		Prompt: func(ctx context.Context, _ *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			if len(req.Prompt) > 0 {
				running <- struct{}{}
				<-ctx.Done()
			}
			return &shared, nil
		},
	}, nil, acp.ClientHandlers{}, nil)
	s := start(t, conn)
	turn := s.Stream(t.Context(), acp.TextBlock("x"))
	<-running
	turn.Cancel()
	res, err := turn.Result()
	if err != nil || res.StopReason != acp.StopReasonCancelled || string(res.Meta["kept"]) != "1" {
		t.Errorf("%+v, %v", res, err)
	}
	if res, err := s.Prompt(t.Context()); err != nil || res.StopReason != acp.StopReasonEndTurn {
		t.Errorf("the next turn: %+v, %v", res, err)
	}
}

// Terminal methods are offered to clients that ask for them by the older member of _meta.
func TestTerminalMethodsByMeta(t *testing.T) {
	for meta, offered := range map[string]bool{
		`{"terminal-auth":true}`: true, `{"terminal-auth":false}`: false, `{"terminal-auth":"yes"}`: false, `{}`: false,
	} {
		conn := bareClient(t, acp.AgentHandlers{}, &acp.AgentOptions{AuthMethods: authMethods()})
		res, err := rpc.Call[acp.InitializeResponse](t.Context(), conn, acp.MethodInitialize,
			json.RawMessage(`{"protocolVersion":1,"clientCapabilities":{"_meta":`+meta+`}}`))
		if err != nil {
			t.Fatal(err)
		}
		if got := len(res.AuthMethods) == 2; got != offered {
			t.Errorf("%s: offered %d methods", meta, len(res.AuthMethods))
		}
	}
}

// A list whose cursor repeats ends with an error.
func TestCursorThatRepeats(t *testing.T) {
	for name, cursors := range map[string][]string{"the same": {"a", "a"}, "a circle": {"a", "b", "a"}} {
		t.Run(name, func(t *testing.T) {
			page := 0
			conn, _ := pair(t, acp.AgentHandlers{
				ListSessions: func(context.Context, *acp.AgentConn, *acp.ListSessionsRequest) (*acp.ListSessionsResponse, error) {
					res := &acp.ListSessionsResponse{NextCursor: acp.Some(cursors[page%len(cursors)])}
					page++
					return res, nil
				},
			}, nil, acp.ClientHandlers{}, nil)
			var last error
			for _, err := range conn.Sessions(t.Context(), "") {
				last = err
			}
			if last == nil || !strings.Contains(last.Error(), "cursor") || page != len(cursors) {
				t.Errorf("%d pages, then %v", page, last)
			}
		})
	}
}

// What agents answer when they do not know a session counts as success of Close and Delete.
func TestSessionsThatAreGone(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		gone bool
	}{
		"the protocol's": {acp.SessionNotFound("s"), true},
		"invalid params": {acp.ErrInvalidParams.WithData(`{"error":"Session not found: s"}`), true},
		"a plain error":  {rpc.Errorf(rpc.ErrInternal, "Internal error").WithData(map[string]string{"details": "Session not found"}), true},
		"a code of yore": {rpc.Errorf(-32001, "session not found: s"), true},
		"something else": {acp.ErrInvalidParams, false},
		"a failure":      {rpc.Errorf(rpc.ErrInternal, "the disk is full"), false},
	} {
		t.Run(name, func(t *testing.T) {
			conn, _ := pair(t, acp.AgentHandlers{
				CloseSession: func(context.Context, *acp.AgentSession, *acp.CloseSessionRequest) (*acp.CloseSessionResponse, error) {
					return nil, test.err
				},
				DeleteSession: func(context.Context, *acp.AgentSession, *acp.DeleteSessionRequest) (*acp.DeleteSessionResponse, error) {
					return nil, test.err
				},
			}, nil, acp.ClientHandlers{}, nil)
			s := conn.Session("s")
			for _, err := range []error{s.Close(t.Context()), s.Delete(t.Context())} {
				if (err == nil) != test.gone {
					t.Error(err)
				}
			}
		})
	}
}

// A variant that is a nil pointer is an error that says where it is.
func TestNilVariants(t *testing.T) {
	agent, opts := everything()
	conn, served := pair(t, agent, opts, willingClient(), &willingClientOptions)
	ctx := t.Context()
	s := served.Session("s")
	update := func(u acp.SessionUpdateVariant) func() error {
		return func() error { return s.Update(ctx, acp.SessionUpdate{Variant: u}) }
	}
	ask := func(v acp.CreateElicitationRequestVariant) func() error {
		return func() error {
			_, err := served.CreateElicitation(ctx, &acp.CreateElicitationRequest{Message: "m", Variant: v})
			return err
		}
	}
	for name, test := range map[string]struct {
		pointer string
		call    func() error
	}{
		"call":    {"/update", update((*acp.SessionUpdateToolCall)(nil))},
		"update":  {"/update", update((*acp.SessionUpdateToolCallUpdate)(nil))},
		"plan":    {"/update", update((*acp.SessionUpdatePlan)(nil))},
		"mode":    {"/update", update((*acp.SessionUpdateCurrentModeUpdate)(nil))},
		"options": {"/update", update((*acp.SessionUpdateConfigOptionUpdate)(nil))},
		"unknown": {"/update", update((*acp.SessionUpdateUnknown)(nil))},
		"diff": {"/update/content/0", func() error {
			return s.Update(ctx, acp.UpdateToolCall("t", acp.WithContent(acp.ToolCallContent{Variant: (*acp.ToolCallContentDiff)(nil)})))
		}},
		"terminal": {"/update/content/0", func() error {
			return s.Update(ctx, acp.StartToolCall("t", "T", acp.WithContent(acp.ToolCallContent{Variant: (*acp.ToolCallContentTerminal)(nil)})))
		}},
		"form":       {"", ask((*acp.CreateElicitationRequestForm)(nil))},
		"url":        {"", ask((*acp.CreateElicitationRequestURL)(nil))},
		"form, mode": {"", ask(&acp.CreateElicitationRequestForm{Variant: (*acp.ElicitationFormModeSession)(nil)})},
		"server": {"/mcpServers/0", func() error {
			_, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/", MCPServers: []acp.MCPServer{{Variant: (*acp.MCPServerStdio)(nil)}}})
			return err
		}},
		"value": {"", func() error {
			s, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/"})
			if err != nil {
				return err
			}
			if err := served.Session(s.ID()).Update(ctx, acp.ConfigUpdate()); err != nil {
				return err
			}
			_, err = conn.SetSessionConfigOption(ctx, &acp.SetSessionConfigOptionRequest{
				SessionID: s.ID(), ConfigID: "a", Variant: (*acp.SetSessionConfigOptionRequestValueID)(nil),
			})
			return err
		}},
	} {
		err := test.call()
		if bad, ok := errors.AsType[*codec.Error](err); !ok || bad.Pointer != test.pointer {
			t.Errorf("%s: %v, want an error at %q", name, err, test.pointer)
		}
	}
}

// Authentication methods that cannot be chosen are an error at start; one that is run in a terminal is not asked
// for.
func TestAuthMethodsByID(t *testing.T) {
	method := func(id acp.AuthMethodID) acp.AuthMethod {
		return acp.NewAuthMethodAgent(acp.AuthMethodAgent{ID: id, Name: "N"})
	}
	terminal := acp.NewAuthMethodTerminal(acp.AuthMethodTerminal{ID: "a", Name: "N"})
	for name, methods := range map[string][]acp.AuthMethod{
		"empty": {method("")}, "twice": {method("a"), terminal}, "nothing": {{}}, "nil": {{Variant: (*acp.AuthMethodAgent)(nil)}},
		"unknown": {{Variant: &acp.AuthMethodUnknown{Tag: "x", Raw: json.RawMessage(`{"type":"x","name":"n"}`)}}},
	} {
		transport, _ := acp.Pipe()
		_, err := acp.StartAgent(t.Context(), conformance.Tap(t, conformance.Agent, transport, nil), complete(acp.AgentHandlers{}), &acp.AgentOptions{AuthMethods: methods})
		if err == nil || !strings.Contains(err.Error(), "AuthMethods") {
			t.Errorf("%s: %v", name, err)
		}
	}
	agent, opts := everything()
	opts.AuthMethods = []acp.AuthMethod{terminal, method("b")}
	conn, _ := pair(t, agent, opts, acp.ClientHandlers{}, &acp.ClientOptions{TerminalAuth: true})
	for id, want := range map[acp.AuthMethodID]error{"a": acp.ErrUnsupported, "b": nil, "c": acp.ErrUnsupported} {
		if _, err := conn.Authenticate(t.Context(), &acp.AuthenticateRequest{MethodID: id}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", id, err, want)
		}
	}
}

// A session that was created without modes and options has none to choose, until options come later. Nothing is known
// of one that was opened elsewhere, or loaded or resumed with an answer that names none.
func TestNothingToChoose(t *testing.T) {
	agent := basicAgent()
	agent.Prompt = func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		return nil, s.Update(ctx, acp.ConfigUpdate(acp.BooleanOption("brave", "Brave", false)))
	}
	agent.SetSessionMode = func(context.Context, *acp.AgentSession, *acp.SetSessionModeRequest) (*acp.SetSessionModeResponse, error) {
		return nil, nil
	}
	agent.SetSessionConfigOption = func(_ context.Context, _ *acp.AgentSession, req *acp.SetSessionConfigOptionRequest) (*acp.SetSessionConfigOptionResponse, error) {
		option := acp.SelectOption("model", "Model", "one", acp.SelectValue("one", "One"))
		if on, ok := req.Bool(); ok {
			option = acp.BooleanOption("brave", "Brave", on)
		}
		return &acp.SetSessionConfigOptionResponse{ConfigOptions: []acp.SessionConfigOption{option}}, nil
	}
	agent.LoadSession = func(context.Context, *acp.AgentSession, *acp.LoadSessionRequest) (*acp.LoadSessionResponse, error) {
		return nil, nil
	}
	agent.ResumeSession = func(context.Context, *acp.AgentSession, *acp.ResumeSessionRequest) (*acp.ResumeSessionResponse, error) {
		return nil, nil
	}
	conn := connect(t, agent, nil, acp.ClientHandlers{}, &acp.ClientOptions{BooleanConfig: true})
	ctx, s := t.Context(), start(t, conn)
	refusedAt(t, "mode", s.SetMode(ctx, "code"), "/modeId")
	refusedAt(t, "option", s.SetConfigOption(ctx, "model", "one"), "/configId")
	refusedAt(t, "boolean option", s.SetBooleanConfigOption(ctx, "brave", true), "/configId")
	if _, err := s.Prompt(ctx, acp.TextBlock("go")); err != nil {
		t.Fatal(err)
	}
	if err := s.SetBooleanConfigOption(ctx, "brave", true); err != nil {
		t.Error(err)
	}
	loaded, err := conn.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: "loaded", Cwd: "/w"})
	if err != nil {
		t.Fatal(err)
	}
	resumed, err := conn.ResumeSession(ctx, &acp.ResumeSessionRequest{SessionID: "resumed", Cwd: "/w"})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*acp.ClientSession{conn.Session("of-another-connection"), loaded, resumed} {
		if err := errors.Join(s.SetMode(ctx, "code"), s.SetConfigOption(ctx, "model", "one")); err != nil {
			t.Errorf("%s: %v", s.ID(), err)
		}
	}
}

func TestUnserved(t *testing.T) {
	for _, err := range []error{acp.ErrUnsupported, fmt.Errorf("x: %w", &acp.CallError{Method: acp.MethodLoadSession, Err: acp.ErrMethodNotFound.WithMessagef("no")})} {
		if !acp.Unserved(err) {
			t.Errorf("%v", err)
		}
	}
	for _, err := range []error{nil, acp.ErrClosed, acp.ErrResourceNotFound} {
		if acp.Unserved(err) {
			t.Errorf("%v", err)
		}
	}
}

func TestExec(t *testing.T) {
	transport := acp.Exec("my-agent", "--acp", "x y")
	if got := transport.Cmd.Args; !slices.Equal(got, []string{"my-agent", "--acp", "x y"}) || transport.Cmd.Stderr != os.Stderr {
		t.Errorf("got %q, with standard error to %v", got, transport.Cmd.Stderr)
	}
}
