package main

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/ways"
)

// optionMode is the config option that shows the modes.
const optionMode acp.SessionConfigID = "mode"

// current is the value of a select option, or "".
func current(options []acp.SessionConfigOption, id acp.SessionConfigID) acp.SessionConfigValueID {
	for _, o := range options {
		if s, ok := o.Variant.(*acp.SessionConfigOptionSelect); ok && o.ID == id {
			return s.CurrentValue
		}
	}
	return ""
}

// wantOptions checks a complete list of options: each with a value that it offers (CFG-14).
func wantOptions(t *testing.T, options []acp.SessionConfigOption, mode acp.SessionModeID, want int) {
	t.Helper()
	if len(options) != want {
		t.Errorf("got %d options, want %d", len(options), want)
	}
	for _, o := range options {
		s, ok := o.Variant.(*acp.SessionConfigOptionSelect)
		if !ok {
			continue
		}
		offered := false
		for _, v := range s.Options.Variant.(acp.SessionConfigSelectOptionsUngrouped) {
			offered = offered || v.Value == s.CurrentValue
		}
		if !offered {
			t.Errorf("option %s does not offer its value %s", o.ID, s.CurrentValue)
		}
	}
	if got := current(options, optionMode); got != acp.SessionConfigValueID(mode) {
		t.Errorf("got mode %s among the options, want %s", got, mode)
	}
}

func TestMOD2_CFG14_CFG19_InitialState(t *testing.T) {
	h := connect(t, setup{})
	s := h.session(t)
	state := s.Modes().Value()
	if len(state.AvailableModes) < 2 || state.CurrentModeID != modeAsk {
		t.Errorf("got modes %+v", state)
	}
	wantOptions(t, s.ConfigOptions().Value(), modeAsk, 3)
}

func TestMOD1_CFG22_SetMode(t *testing.T) {
	h := connect(t, setup{})
	s := h.session(t)
	wantCode(t, s.SetMode(t.Context(), "nope"), acp.ErrInvalidParams)
	if err := s.SetMode(t.Context(), modeAuto); err != nil {
		t.Fatal(err)
	}
	updates := variants[*acp.SessionUpdateConfigOptionUpdate](h.seen(s.ID()))
	if len(updates) != 1 {
		t.Fatalf("got %d updates of the options, want 1", len(updates))
	}
	wantOptions(t, updates[0].ConfigOptions, modeAuto, 3) // CFG-18
	say(t, s, "edit demo.txt", acp.StopReasonEndTurn)
	if h.wire.index(0, calls(acp.MethodRequestPermission)) >= 0 {
		t.Error("asked in mode auto")
	}
	say(t, s, "permission", acp.StopReasonEndTurn)
	if h.wire.index(0, calls(acp.MethodRequestPermission)) < 0 {
		t.Error("did not ask when that was what was asked for")
	}
}

func TestCFG16_CFG17_SetConfigOption(t *testing.T) {
	h := connect(t, setup{})
	s := h.session(t)
	set := func(id acp.SessionConfigID, value acp.SessionConfigValueID) ([]acp.SessionConfigOption, error) {
		req := acp.NewSetSessionConfigOptionRequestValueID(s.ID(), id, value)
		res, err := h.SetSessionConfigOption(t.Context(), &req)
		if err != nil {
			return nil, err
		}
		return res.ConfigOptions, nil
	}
	for _, bad := range [][2]string{{"nope", "shown"}, {"thoughts", "nope"}, {"mode", "nope"}, {"usage", "true"}, {"thoughts", ""}} {
		_, err := set(acp.SessionConfigID(bad[0]), acp.SessionConfigValueID(bad[1]))
		wantCode(t, err, acp.ErrInvalidParams)
	}
	for _, id := range []acp.SessionConfigID{optionMode, optionThoughts, "nope"} {
		req := acp.NewSetSessionConfigOptionRequestBoolean(s.ID(), id, true)
		_, err := h.SetSessionConfigOption(t.Context(), &req)
		wantCode(t, err, acp.ErrInvalidParams)
	}
	options, err := set(optionThoughts, thoughtsHidden)
	if err != nil || current(options, optionThoughts) != thoughtsHidden {
		t.Fatalf("got %v, %v", options, err)
	}
	wantOptions(t, options, modeAsk, 3)
	say(t, s, "think", acp.StopReasonEndTurn)
	if n := len(variants[*acp.SessionUpdateAgentThoughtChunk](h.seen(s.ID()))); n != 0 {
		t.Errorf("got %d thoughts, want none", n)
	}
	if options, err = set(optionMode, "auto"); err != nil {
		t.Fatal(err)
	}
	wantOptions(t, options, modeAuto, 3)
	updates := variants[*acp.SessionUpdateCurrentModeUpdate](h.seen(s.ID()))
	if len(updates) != 1 || updates[0].CurrentModeID != modeAuto { // CFG-22
		t.Errorf("got updates of the mode %v", updates)
	}
}

func TestMOD3_AgentSwitchesTheMode(t *testing.T) {
	h := connect(t, setup{})
	s := h.session(t)
	say(t, s, "switch the mode", acp.StopReasonEndTurn)
	say(t, s, "switch the mode", acp.StopReasonEndTurn)
	want := []acp.SessionModeID{modeAuto, modeAsk}
	modes := variants[*acp.SessionUpdateCurrentModeUpdate](h.seen(s.ID()))
	options := variants[*acp.SessionUpdateConfigOptionUpdate](h.seen(s.ID()))
	if len(modes) != 2 || len(options) != 2 {
		t.Fatalf("got %d updates of the mode, %d of the options", len(modes), len(options))
	}
	for i := range want {
		if modes[i].CurrentModeID != want[i] {
			t.Errorf("got mode %s, want %s", modes[i].CurrentModeID, want[i])
		}
		wantOptions(t, options[i].ConfigOptions, want[i], 3)
	}
}

func TestCFG3_BooleanOptionsAreForThoseWhoKnowThem(t *testing.T) {
	h := connect(t, setup{options: modest})
	s := h.session(t)
	wantOptions(t, s.ConfigOptions().Value(), modeAsk, 2)
	req := acp.NewSetSessionConfigOptionRequestBoolean(s.ID(), optionUsage, true)
	_, err := h.SetSessionConfigOption(t.Context(), &req)
	wantCode(t, err, acp.ErrInvalidParams)
}

// Settings are kept with the session.
func TestSettingsAreKept(t *testing.T) {
	h := connect(t, setup{})
	s := h.session(t)
	if err := s.SetMode(t.Context(), modeAuto); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	loaded, err := h.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: h.dir})
	if err != nil {
		t.Fatal(err)
	}
	wantOptions(t, loaded.ConfigOptions().Value(), modeAuto, 3)
}

func TestAUT9_AUT10_RequireAuth(t *testing.T) {
	h := connect(t, setup{requireAuth: true})
	refused := func() {
		t.Helper()
		_, err := h.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: h.dir})
		wantCode(t, err, acp.ErrAuthRequired)
		_, err = h.LoadSession(t.Context(), &acp.LoadSessionRequest{Cwd: h.dir, SessionID: "sess_A"})
		wantCode(t, err, acp.ErrAuthRequired)
	}
	refused()
	if _, err := h.Authenticate(t.Context(), &acp.AuthenticateRequest{MethodID: authAgent}); err != nil {
		t.Fatal(err)
	}
	say(t, h.session(t), "hello", acp.StopReasonEndTurn)
	if _, err := h.Logout(t.Context(), &acp.LogoutRequest{}); err != nil {
		t.Fatal(err)
	}
	refused()
}

// Every method but initialize and authenticate is only for who is logged in.
func TestRequireAuthGuardsEveryMethod(t *testing.T) {
	state := t.TempDir()
	kept := connect(t, setup{state: state}).session(t).ID()
	h := connect(t, setup{state: state, requireAuth: true, breaks: map[string]string{"PRM-1": "prompts in a session that it may not load"}})
	methods := map[string]func(acp.SessionID) error{
		acp.MethodLogout: func(acp.SessionID) error {
			_, err := h.Logout(t.Context(), &acp.LogoutRequest{})
			return err
		},
		acp.MethodNewSession: func(acp.SessionID) error {
			_, err := h.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: h.dir})
			return err
		},
		acp.MethodLoadSession: func(id acp.SessionID) error {
			_, err := h.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: id, Cwd: h.dir})
			return err
		},
		acp.MethodResumeSession: func(id acp.SessionID) error {
			_, err := h.ResumeSession(t.Context(), &acp.ResumeSessionRequest{SessionID: id, Cwd: h.dir})
			return err
		},
		acp.MethodListSessions: func(acp.SessionID) error {
			_, err := h.ListSessions(t.Context(), &acp.ListSessionsRequest{})
			return err
		},
		acp.MethodCloseSession: func(id acp.SessionID) error {
			_, err := h.CloseSession(t.Context(), &acp.CloseSessionRequest{SessionID: id})
			return err
		},
		acp.MethodDeleteSession: func(id acp.SessionID) error {
			_, err := h.DeleteSession(t.Context(), &acp.DeleteSessionRequest{SessionID: id})
			return err
		},
		acp.MethodSetSessionMode: func(id acp.SessionID) error {
			_, err := h.SetSessionMode(t.Context(), &acp.SetSessionModeRequest{SessionID: id, ModeID: modeAsk})
			return err
		},
		acp.MethodSetSessionConfigOption: func(id acp.SessionID) error {
			req := acp.NewSetSessionConfigOptionRequestValueID(id, optionMode, "ask")
			_, err := h.SetSessionConfigOption(t.Context(), &req)
			return err
		},
		acp.MethodPrompt: func(id acp.SessionID) error {
			_, err := h.Prompt(t.Context(), &acp.PromptRequest{SessionID: id, Prompt: []acp.ContentBlock{acp.TextBlock("hello")}})
			return err
		},
	}
	a, err := newAgent(config{state: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	handlers := reflect.ValueOf(a.handlers())
	served := 0
	for _, field := range handlers.Fields() {
		if field.Kind() == reflect.Func && !field.IsNil() {
			served++
		}
	}
	if served != len(methods)+1 { // authenticate
		t.Errorf("the agent serves %d methods, tried are %d", served, len(methods)+1)
	}
	refused := func(id acp.SessionID) {
		t.Helper()
		for method, call := range methods {
			if err := call(id); !errors.Is(err, acp.ErrAuthRequired) {
				t.Errorf("%s: got %v", method, err)
			}
		}
	}
	refused(kept)
	if _, err := h.Authenticate(t.Context(), &acp.AuthenticateRequest{MethodID: authAgent}); err != nil {
		t.Fatal(err)
	}
	s := h.session(t)
	if err := methods[acp.MethodLogout](""); err != nil {
		t.Fatal(err)
	}
	refused(s.ID())
	if _, err := h.Authenticate(t.Context(), &acp.AuthenticateRequest{MethodID: authAgent}); err != nil {
		t.Fatal(err)
	}
	if got := list(t, h, ""); len(got) != 2 {
		t.Errorf("%d sessions are left of 2", len(got))
	}
	say(t, s, "hello again", acp.StopReasonEndTurn)
}

// A turn does not continue after logout, which is answered when the turn is over.
func TestLogoutEndsTurns(t *testing.T) {
	ways.InMemory(t, "over HTTP, the answer to logout and the updates of a session are on two streams")
	h := connect(t, setup{requireAuth: true})
	if _, err := h.Authenticate(t.Context(), &acp.AuthenticateRequest{MethodID: authAgent}); err != nil {
		t.Fatal(err)
	}
	turn := h.session(t).Stream(t.Context(), acp.TextBlock("Write a very long story"))
	running(t, turn)
	if _, err := h.Logout(t.Context(), &acp.LogoutRequest{}); err != nil {
		t.Fatal(err)
	}
	out := h.wire.answerTo(t, 0, acp.MethodLogout)
	if _, err := turn.Result(); !errors.Is(err, acp.ErrAuthRequired) {
		t.Errorf("the turn ended with %v", err)
	}
	for _, m := range h.wire.all()[out:] {
		if m.kind() != "" {
			t.Errorf("after logout: %s", m.line)
		}
	}
}

func TestAUT10_NoAuthNeeded(t *testing.T) {
	h := connect(t, setup{})
	if _, err := h.Logout(t.Context(), &acp.LogoutRequest{}); err != nil {
		t.Fatal(err)
	}
	h.session(t)
}

// AUT-2, AUT-3: ids of terminal methods, and ids that were not offered, are refused.
func TestAUT2_AUT3_OtherMethods(t *testing.T) {
	h := connect(t, setup{requireAuth: true, breaks: map[string]string{"AUT-2": "what the agent must refuse", "AUT-3": "likewise"}})
	for _, id := range []acp.AuthMethodID{authTerminal, "nope", ""} {
		_, err := rpc.Call[acp.AuthenticateResponse](t.Context(), h.RPC(), acp.MethodAuthenticate, &acp.AuthenticateRequest{MethodID: id})
		wantCode(t, err, acp.ErrInvalidParams)
	}
	_, err := h.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: h.dir})
	wantCode(t, err, acp.ErrAuthRequired)
}

func TestINI19_TerminalAuth(t *testing.T) {
	offers := func(h *host) (agent, terminal bool) {
		for _, m := range h.Initialized().AuthMethods {
			switch m.Variant.(type) {
			case *acp.AuthMethodAgent:
				agent = true
			case *acp.AuthMethodTerminal:
				terminal = true
			}
		}
		return agent, terminal
	}
	if agent, terminal := offers(connect(t, setup{})); !agent || !terminal {
		t.Errorf("offered to a client with a terminal: %t, %t", agent, terminal)
	}
	if agent, terminal := offers(connect(t, setup{options: modest})); !agent || terminal {
		t.Errorf("offered to a client without: %t, %t", agent, terminal)
	}
}

func TestINI4_INI14_Initialize(t *testing.T) {
	h := connect(t, setup{})
	said := h.Initialized()
	caps := said.AgentCapabilities
	s := caps.SessionCapabilities
	for name, ok := range map[string]bool{
		"agentInfo":             said.AgentInfo.Present(),
		"loadSession":           caps.LoadSession,
		"image":                 caps.PromptCapabilities.Image,
		"audio":                 caps.PromptCapabilities.Audio,
		"embeddedContext":       caps.PromptCapabilities.EmbeddedContext,
		"list":                  s.List.Present(),
		"delete":                s.Delete.Present(),
		"resume":                s.Resume.Present(),
		"close":                 s.Close.Present(),
		"additionalDirectories": s.AdditionalDirectories.Present(),
		"logout":                caps.Auth.Logout.Present(),
		"http":                  caps.MCPCapabilities.HTTP,
		"no sse":                !caps.MCPCapabilities.SSE,
	} {
		if !ok {
			t.Errorf("initialize: %s", name)
		}
	}
}

// elicitation answers with one response, whatever is asked.
func elicitation(res acp.CreateElicitationResponse) func(*acp.ClientHandlers) {
	return func(h *acp.ClientHandlers) {
		h.CreateElicitation = func(context.Context, *acp.ClientConn, *acp.CreateElicitationRequest) (*acp.CreateElicitationResponse, error) {
			return &res, nil
		}
	}
}

func accept(content map[string]acp.ElicitationContentValue) acp.CreateElicitationResponse {
	return acp.NewCreateElicitationResponseAccept(acp.ElicitationAcceptAction{Content: acp.Some(content)})
}

func TestELI9_ELI18_FormAnswers(t *testing.T) {
	text := acp.NewElicitationContentValueString
	const wrong = "That is not an answer to what I asked.\n\n"
	const none = "Then I go on without an answer.\n\n"
	for name, test := range map[string]struct {
		handlers func(*acp.ClientHandlers)
		want     string
		expect   []string
	}{
		"whole":        {elicitation(accept(map[string]acp.ElicitationContentValue{"name": text("Ada"), "colour": text("blue")})), "Hello Ada, who likes blue.\n\n", nil},
		"required":     {elicitation(accept(map[string]acp.ElicitationContentValue{"name": text("Ada")})), "Hello Ada, who likes no colour.\n\n", nil},
		"no name":      {elicitation(accept(map[string]acp.ElicitationContentValue{"colour": text("blue")})), wrong, nil},
		"empty name":   {elicitation(accept(map[string]acp.ElicitationContentValue{"name": text("")})), wrong, nil},
		"other colour": {elicitation(accept(map[string]acp.ElicitationContentValue{"name": text("Ada"), "colour": text("mauve")})), wrong, nil},
		"other type":   {elicitation(accept(map[string]acp.ElicitationContentValue{"name": acp.NewElicitationContentValueInteger(3)})), wrong, nil},
		"no content":   {elicitation(acp.NewCreateElicitationResponseAccept(acp.ElicitationAcceptAction{})), wrong, nil},
		"decline":      {elicitation(acp.NewCreateElicitationResponseDecline()), none, nil},
		"cancel":       {elicitation(acp.NewCreateElicitationResponseCancel()), none, nil},
		"unknown": { // SCH-9
			elicitation(acp.CreateElicitationResponse{Variant: &acp.CreateElicitationResponseUnknown{Tag: "_x", Raw: []byte(`{"action":"_x"}`)}}),
			none, nil,
		},
		"error": {
			func(h *acp.ClientHandlers) {
				h.CreateElicitation = func(context.Context, *acp.ClientConn, *acp.CreateElicitationRequest) (*acp.CreateElicitationResponse, error) {
					return nil, acp.ErrInvalidRequest
				}
			},
			"My question failed: elicitation/create: Invalid request (-32600)\n\n", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := connect(t, setup{handlers: test.handlers, expect: test.expect})
			s := h.session(t)
			say(t, s, "form", acp.StopReasonEndTurn)
			if got := spoken(h.seen(s.ID())); got != test.want+"You said: form" {
				t.Errorf("said %q, want %q", got, test.want)
			}
		})
	}
}

func TestELI19_ELI21_URLs(t *testing.T) {
	var ids, completed []acp.ElicitationID
	h := connect(t, setup{handlers: func(h *acp.ClientHandlers) {
		h.CreateElicitation = func(_ context.Context, _ *acp.ClientConn, req *acp.CreateElicitationRequest) (*acp.CreateElicitationResponse, error) {
			ids = append(ids, req.Variant.(*acp.CreateElicitationRequestURL).ElicitationID)
			res := acp.NewCreateElicitationResponseAccept(acp.ElicitationAcceptAction{})
			return &res, nil
		}
		h.CompleteElicitation = func(_ context.Context, _ *acp.ClientConn, n *acp.CompleteElicitationNotification) error {
			completed = append(completed, n.ElicitationID)
			return nil
		}
	}})
	s := h.session(t)
	say(t, s, "link", acp.StopReasonEndTurn)
	say(t, s, "link", acp.StopReasonEndTurn)
	h.wire.await(t, 0, "the completion", calls(acp.MethodCompleteElicitation))
	if err := h.Close(); err != nil { // all notifications were handled then
		t.Fatal(err)
	}
	if len(ids) != 2 || ids[0] == ids[1] || len(completed) != 2 || completed[0] != ids[0] || completed[1] != ids[1] {
		t.Errorf("asked with ids %v, completed %v", ids, completed)
	}
}

// ELI-13: without URL mode nothing falls back to a form.
func TestELI13_OnlyForms(t *testing.T) {
	h := connect(t, setup{options: func(o *acp.ClientOptions) { o.Elicitation.URL = acp.Opt[acp.ElicitationURLCapabilities]{} }})
	s := h.session(t)
	say(t, s, "link", acp.StopReasonEndTurn)
	if h.wire.index(0, calls(acp.MethodCreateElicitation)) >= 0 {
		t.Error("asked all the same")
	}
	say(t, s, "form", acp.StopReasonEndTurn)
	if h.wire.index(0, calls(acp.MethodCreateElicitation)) < 0 {
		t.Error("did not ask with the form")
	}
}
