package acp_test

// This file shows what is checked of what this side sends: its calls, the results of its handlers, and when.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
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
		"URL, no session":     {"/sessionId", func() error { _, err := nobody.ElicitURL(ctx, "m", "e", "https://x"); return err }},
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
		must.Do(t, s.Update(ctx, u))
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
	served := must.Get(acp.StartAgent(t.Context(), a, agent, &opts))(t)
	client := must.Get(rpc.Connect(t.Context(), c, nil, nil))(t)
	must.Do(t, call(t, client, acp.MethodInitialize, initializeParams))
	must.Do(t, call(t, client, acp.MethodPrompt,
		`{"sessionId":"s","prompt":[{"type":"text","text":"x","annotations":{"audience":["user","reviewer"]}}]}`))
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
	must.Do(t, errors.Join(client.Close(), served.Wait()))
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
