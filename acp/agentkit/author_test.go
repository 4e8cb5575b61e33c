package agentkit_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
)

type anyTurn = agentkit.Turn[struct{}]

// playing is an agent whose turns do what do does, and a client with an open session. What the agent logs is in the
// house.
func playing(t *testing.T, h *house, config agentkit.Config[struct{}], do func(context.Context, *anyTurn) error) (*client, *acp.ClientSession) {
	t.Helper()
	config.Prompt = func(ctx context.Context, t *anyTurn, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		return nil, do(ctx, t)
	}
	config.Logger = slog.New(slog.NewTextHandler(h, nil))
	config.Title = func([]acp.ContentBlock) string { return "" }
	c := connect(t, agentkit.NewSessions(config), &acp.AgentOptions{Conn: acp.ConnOptions{Logger: config.Logger}}, tapped)
	return c, begin(t, c, "/w")
}

func wantStop(t *testing.T, s *acp.ClientSession, text string, want acp.StopReason) {
	t.Helper()
	if res, err := s.Prompt(t.Context(), acp.TextBlock(text)); err != nil || res.StopReason != want {
		t.Errorf("%s: the turn ended with %+v, %v, want %s", text, res, err, want)
	}
}

// A handler without a result ends the turn.
func TestNoResult(t *testing.T) {
	_, s := playing(t, newHouse(), agentkit.Config[struct{}]{}, func(ctx context.Context, t *anyTurn) error {
		return t.Sayf(ctx, "%d of %s", 1, t.Request().Prompt[0].Variant.(*acp.ContentBlockText).Text)
	})
	wantStop(t, s, "two", acp.StopReasonEndTurn)
}

// A tool runs as a call of its kind. One that fails does not end the turn, and the author learns why.
func TestTool(t *testing.T) {
	h := newHouse()
	command := exec.Command(os.Args[0], "-no-such-flag")
	failed := command.Run()
	if _, ok := errors.AsType[*exec.ExitError](failed); !ok {
		t.Fatal(failed)
	}
	_, s := playing(t, h, agentkit.Config[struct{}]{
		ToolError: func(call acp.ToolCall, err error) string {
			if call.Title == "mine" {
				return "my own words for " + err.Error()
			}
			return ""
		},
	}, func(ctx context.Context, t *anyTurn) error {
		for _, tool := range []struct {
			title string
			err   error
		}{
			{"fine", nil},
			{"secret", errors.New("disk sda1 is broken")},
			{"mine", errors.New("sda2")},
			{"status", fmt.Errorf("make: %w", failed)},
			{"rejected", agentkit.ErrRejected},
		} {
			do := func(*agentkit.ToolCall) error { return tool.err }
			if err := t.Tool(ctx, acp.ToolKindEdit, tool.title, do); err != nil {
				return err
			}
		}
		_, err := t.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: "/w/a"})
		return t.Tool(ctx, acp.ToolKindRead, "unsupported", func(*agentkit.ToolCall) error { return err })
	})
	turn, calls := s.Stream(t.Context(), acp.TextBlock("go")), []acp.ToolCall(nil)
	for u := range turn.Updates() {
		switch u := u.Variant.(type) {
		case *acp.SessionUpdateToolCall:
			calls = append(calls, acp.ToolCall(*u))
		case *acp.SessionUpdateToolCallUpdate:
			calls[len(calls)-1].Apply(acp.ToolCallUpdate(*u))
		}
	}
	if res, err := turn.Result(); err != nil || res.StopReason != acp.StopReasonEndTurn || len(calls) != 6 || calls[0].Kind != acp.ToolKindEdit {
		t.Fatalf("the turn ended with %+v, %v, after %+v", res, err, calls)
	}
	wantShows(t, calls[0], acp.ToolCallStatusCompleted)
	for i, want := range []string{"The tool failed.", "my own words for sda2", "exit status 2", "the user did not allow it", "The tool failed."} {
		wantShows(t, calls[i+1], acp.ToolCallStatusFailed, want)
	}
	for _, want := range []string{"title=secret", "disk sda1 is broken", "title=mine", "sda2", "title=status", "title=unsupported"} {
		if !strings.Contains(h.log(), want) {
			t.Errorf("the log lacks %q:\n%s", want, h.log())
		}
	}
	if strings.Contains(h.log(), "title=rejected") {
		t.Errorf("that the user has rejected a call is a warning:\n%s", h.log())
	}
}

// A failed call shows the client's own error, an exit status, and what the author says.
func TestToolErrorShows(t *testing.T) {
	answered := func(method string) error {
		return &acp.CallError{Method: method, Err: rpc.ErrInternal.WithMessagef("No such file or directory").WithData(map[string]int{"errno": 2})}
	}
	zero, two := acp.TerminalExitStatus{ExitCode: acp.Some[uint32](0)}, acp.TerminalExitStatus{ExitCode: acp.Some[uint32](2)}
	if err := zero.Err(); err != nil {
		t.Errorf("a command that ended well: %v", err)
	}
	for want, err := range map[string]error{
		`No such file or directory: {"errno":2}`: fmt.Errorf("reading: %w", answered(acp.MethodReadTextFile)),
		"The tool failed.":                       answered(acp.MethodPrompt), // of another agent
		"exit status 2":                          two.Err(),
		"signal: SIGKILL":                        acp.TerminalExitStatus{Signal: acp.Some("SIGKILL")}.Err(),
		"the user did not allow it":              agentkit.ErrRejected,
	} {
		call, started := agentkit.StartToolCall(t.Context(), &sink{}, "Tool")
		if started != nil {
			t.Fatal(started)
		}
		must.Do(t, call.Fail(err))
		wantShows(t, call.State(), acp.ToolCallStatusFailed, want)
	}
}

// A message that was not sent because the author made it wrong ends the turn, and the author learns of it.
func TestMistakesEndTheTurn(t *testing.T) {
	for name, do := range map[string]func(context.Context, *anyTurn, *agentkit.ToolCall) error{
		"a relative path": func(_ context.Context, _ *anyTurn, call *agentkit.ToolCall) error {
			return call.Diff("relative.txt", "", "text")
		},
		"two options with one id": func(ctx context.Context, _ *anyTurn, call *agentkit.ToolCall) error {
			_, err := call.Ask(ctx, acp.AllowOnce("a", "A"), acp.RejectOnce("a", "B"))
			return err
		},
	} {
		h := newHouse()
		c, s := playing(t, h, agentkit.Config[struct{}]{}, func(ctx context.Context, t *anyTurn) error {
			return t.Tool(ctx, acp.ToolKindEdit, "Edit", func(call *agentkit.ToolCall) error { return do(ctx, t, call) }, agentkit.WithToolCallID("c"))
		})
		_, err := s.Prompt(t.Context(), acp.TextBlock("go"))
		wantError(t, name, err, rpc.ErrInternal)
		wantLines(t, "told", c.heard(), "call: c Edit pending", "call: c failed")
		if n := strings.Count(h.log(), "acp: not sent"); n != 2 || !strings.Contains(h.log(), "title=Edit") { // of the call, and of the turn
			t.Errorf("%s: logged %d times:\n%s", name, n, h.log())
		}
	}
}

// A dismissed question ends the turn as cancelled, in Sessions and in HandlePrompt.
func TestDismissed(t *testing.T) {
	use := func(ctx context.Context, s agentkit.Asker) error {
		call, err := agentkit.StartToolCall(ctx, s, "Edit", agentkit.WithToolCallID("c"))
		if err != nil {
			return err
		}
		_, err = call.Ask(ctx)
		return call.End(err)
	}
	c, s := playing(t, newHouse(), agentkit.Config[struct{}]{}, func(ctx context.Context, t *anyTurn) error { return use(ctx, t) })
	wantStop(t, s, "go", acp.StopReasonCancelled)
	wantLines(t, "told", c.heard(), "call: c Edit pending", "call: c failed")

	other := converse(t, func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		return nil, use(ctx, s)
	}, (&client{}).handlers())
	other.turn(acp.StopReasonCancelled)
}

type deciderFunc func(agentkit.Place, acp.ToolCall) (acp.PermissionOptionKind, string, error)

func (f deciderFunc) Decide(s agentkit.Place, call acp.ToolCall) (acp.PermissionOptionKind, string, error) {
	return f(s, call)
}

// The policy decides before the user is asked.
func TestPolicy(t *testing.T) {
	var asked acp.ToolCall
	broken := errors.New("broken")
	answers := map[acp.ToolKind]struct {
		kind acp.PermissionOptionKind
		err  error
		want error
	}{
		acp.ToolKindRead:    {acp.PermissionOptionKindAllowOnce, nil, nil},
		acp.ToolKindEdit:    {acp.PermissionOptionKindRejectAlways, nil, agentkit.ErrRejected},
		acp.ToolKindExecute: {"", nil, agentkit.ErrDismissed}, // by the client
		acp.ToolKindFetch:   {"", broken, broken},
	}
	config := agentkit.Config[struct{}]{
		Decide: deciderFunc(func(s agentkit.Place, call acp.ToolCall) (acp.PermissionOptionKind, string, error) {
			asked = call
			return answers[call.Kind].kind, "rule 1 in " + s.(*agentkit.Session[struct{}]).Cwd(), answers[call.Kind].err
		}),
	}
	_, s := playing(t, newHouse(), config, func(ctx context.Context, turn *anyTurn) error {
		for kind, answer := range answers {
			call, err := turn.StartToolCall(ctx, "Tool", acp.WithKind(kind))
			if err != nil {
				return err
			}
			option, err := call.Ask(ctx)
			if !errors.Is(err, answer.want) || answer.want == nil && err != nil || option.Kind != answer.kind || asked.ToolCallID != call.ID() {
				t.Errorf("%s: %+v, %v", kind, option, err)
			}
			if err := call.Fail(err); err != nil {
				return err
			}
			if shown := shows(call.State()); kind == acp.ToolKindEdit && shown[0] != "not allowed: rule 1 in /w" {
				t.Errorf("the client shows %q", shown)
			}
		}
		return nil
	})
	wantStop(t, s, "go", acp.StopReasonEndTurn)
}

// A plan shows its steps, and what has become of them; a nil one shows nothing.
func TestPlan(t *testing.T) {
	var none *agentkit.Plan
	broken := errors.New("broken")
	if err := errors.Join(none.Start(0), none.Done(7)); err != nil || !errors.Is(none.Do(0, func() error { return broken }), broken) {
		t.Error(err)
	}
	var shown []string
	_, s := playing(t, newHouse(), agentkit.Config[struct{}]{}, func(ctx context.Context, t *anyTurn) error {
		p := t.Plan(ctx, "Edit", "Run")
		if err := p.Do(1, func() error { return broken }); !errors.Is(err, broken) {
			return fmt.Errorf("got %w", err)
		}
		return p.Do(0, func() error { return nil })
	})
	turn := s.Stream(t.Context(), acp.TextBlock("go"))
	for u := range turn.Updates() {
		if plan, ok := u.Variant.(*acp.SessionUpdatePlan); ok {
			var line strings.Builder
			for _, e := range plan.Entries {
				line.WriteString(fmt.Sprintf("%s %s ", e.Content, e.Status))
			}
			shown = append(shown, strings.TrimSpace(line.String()))
		}
	}
	must.Get(turn.Result())(t)
	wantLines(t, "plans", shown, "Edit pending Run pending", "Edit pending Run in_progress", "Edit pending Run (failed) pending",
		"Edit in_progress Run (failed) pending", "Edit completed Run (failed) pending")
}

// The error of showing a plan is that of the next call too.
func TestPlanIsNotStored(t *testing.T) {
	var first, second error
	config := agentkit.Config[struct{}]{Store: failing{open(t, t.TempDir())}}
	_, s := playing(t, newHouse(), config, func(ctx context.Context, t *anyTurn) error {
		p := t.Plan(ctx, "Edit")
		first, second = p.Start(0), p.Done(0)
		return nil
	})
	wantStop(t, s, "go", acp.StopReasonEndTurn)
	for i, err := range []error{first, second} {
		if n := strings.Count(fmt.Sprint(err), errDisk.Error()); !errors.Is(err, agentkit.ErrNotStored) || n != 2-i {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

// Prompts that begin with a command go to it, with the text after it, and all others to Config.Prompt.
func TestCommands(t *testing.T) {
	h := newHouse()
	run := func(name string) func(context.Context, *anyTurn, string) error {
		return func(ctx context.Context, t *anyTurn, input string) error {
			h.note("%s %q of %d", name, input, len(t.Request().Prompt))
			return t.Sayf(ctx, "done")
		}
	}
	config := agentkit.Config[struct{}]{Commands: []agentkit.Command[struct{}]{
		{Name: "plan", Description: "Plans", Run: run("plan")}, {Name: "web", Description: "Searches", Hint: "what", Run: run("web")},
	}}
	config.Open = func(_ context.Context, _ *agentkit.Session[struct{}], o *agentkit.Opening) error {
		o.Commands = append(o.Commands, acp.SlashCommand("own", "Of Open", "more"))
		return nil
	}
	c, s := playing(t, h, config, func(_ context.Context, turn *anyTurn) error {
		h.note("prompt %q", agentkit.PromptText(turn.Request()))
		return nil
	})
	for _, text := range []string{"/plan", "  /web  the\n weather ", "/planet", "plan", "/", "/own x", "see /plan"} {
		wantStop(t, s, text, acp.StopReasonEndTurn)
	}
	if _, err := s.Prompt(t.Context(), acp.ResourceLinkBlock("a", "file:///a"), acp.TextBlock("/web a")); err != nil {
		t.Error(err)
	}
	wantLines(t, "notes", h.noted(), `plan "" of 1`, `web "the\n weather" of 1`, `prompt "/planet"`, `prompt "plan"`, `prompt "/"`,
		`prompt "/own x"`, `prompt "see /plan"`, `web "a" of 2`)
	wantLines(t, "told", c.heard()[:1], "commands: 3")

	for _, wrong := range [][]agentkit.Command[struct{}]{
		{{Run: run("")}}, {{Name: "a b", Run: run("")}}, {{Name: "a"}}, {{Name: "a", Run: run("")}, {Name: "a", Run: run("")}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("taken: %+v", wrong)
				}
			}()
			agentkit.NewSessions(agentkit.Config[struct{}]{
				Prompt:   func(context.Context, *anyTurn, *acp.PromptRequest) (*acp.PromptResponse, error) { return nil, nil },
				Commands: wrong,
			})
		}()
	}
}

// Serve serves a client, and closes the sessions after it.
func TestServe(t *testing.T) {
	h := newHouse()
	config := h.config(nil)
	config.WhileBusy = agentkit.Queue // which needs options
	theirs, ours := acp.Pipe()
	served := make(chan error, 1)
	go func() { served <- agentkit.NewSessions(config).Serve(context.WithoutCancel(t.Context()), theirs, nil) }()
	c := dial(t, ours, tapped)
	ask(t, begin(t, c, "/w"), "hello")
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	wantLines(t, "notes", h.noted()[1:], "close of /w")
}

type styled struct {
	Style string
	Loud  bool
}

// Options of Select and Toggle are checked, stored and restored; the fields change between turns.
func TestSelectAndToggle(t *testing.T) {
	for _, booleans := range []bool{false, true} {
		store, h := open(t, t.TempDir()), newHouse()
		gate := make(chan struct{})
		config := agentkit.Config[styled]{
			Store: store,
			Open: func(_ context.Context, s *agentkit.Session[styled], o *agentkit.Opening) error {
				o.Select("style", "Style", &s.State.Style, "plain", "fancy")
				o.ConfigOptions[0].Description = acp.Some("How it looks")
				o.Toggle("loud", "Loud", &s.State.Loud)
				o.ConfigOptions = append(o.ConfigOptions, acp.SelectOption("own", "Own", "x", acp.SelectValue("x", "X"), acp.SelectValue("y", "Y")))
				h.note("open %+v", s.State)
				return nil
			},
			Prompt: func(ctx context.Context, turn *agentkit.Turn[styled], req *acp.PromptRequest) (*acp.PromptResponse, error) {
				h.note("begin %+v", turn.State)
				if agentkit.PromptText(req) == "wait" {
					if err := turn.Sayf(ctx, "waiting"); err != nil {
						return nil, err
					}
					<-gate
				}
				h.note("end %+v", turn.State)
				return nil, nil
			},
			SetOption: func(_ context.Context, _ *agentkit.Session[styled], req *acp.SetSessionConfigOptionRequest) ([]acp.SessionConfigOption, error) {
				value, ok := req.Select()
				h.note("set %s %s %v", req.ConfigID, value, ok)
				return []acp.SessionConfigOption{acp.SelectOption("own", "Own", value, acp.SelectValue("x", "X"), acp.SelectValue("y", "Y"))}, nil
			},
			Title: func([]acp.ContentBlock) string { return "" },
		}
		theirs, ours := acp.Pipe()
		sessions := agentkit.NewSessions(config)
		served := make(chan error, 1)
		go func() { served <- sessions.Serve(context.WithoutCancel(t.Context()), theirs, nil) }()
		c := must.Get(acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, ours, &conformance.TapOptions{Accept: map[string]string{
			"CFG-16": "values and options that are none are what is tested",
		}}), acp.ClientHandlers{}, &acp.ClientOptions{BooleanConfig: booleans}))(t)
		s, err := c.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/w"})
		if err != nil {
			t.Fatal(err)
		}
		now := func(want string) {
			t.Helper()
			var got []string
			for _, option := range s.ConfigOptions().Value() {
				switch v := option.Variant.(type) {
				case *acp.SessionConfigOptionSelect:
					got = append(got, fmt.Sprint(option.ID, "=", v.CurrentValue))
				case *acp.SessionConfigOptionBoolean:
					got = append(got, fmt.Sprint(option.ID, "=", v.CurrentValue))
				}
			}
			wantLines(t, "options", got, strings.Fields(want)...)
		}
		yes, no := "on", "off"
		loud := func(on bool) error {
			return s.SetConfigOption(t.Context(), "loud", map[bool]acp.SessionConfigValueID{true: "on", false: "off"}[on])
		}
		if booleans {
			yes, no = "true", "false"
			loud = func(on bool) error { return s.SetBooleanConfigOption(t.Context(), "loud", on) }
		}
		now("style=plain loud=" + no + " own=x")
		turn := s.Stream(t.Context(), acp.TextBlock("wait"))
		for range turn.Updates() {
			break // it has begun
		}
		must.Do(t, errors.Join(s.SetConfigOption(t.Context(), "style", "fancy"), loud(true)))
		now("style=fancy loud=" + yes + " own=x")
		close(gate)
		must.Get(turn.Result())(t)
		ask(t, s, "again")
		wantLines(t, "notes", h.noted(), "open {Style:plain Loud:false}", "begin {Style:plain Loud:false}", "end {Style:plain Loud:false}",
			"begin {Style:fancy Loud:true}", "end {Style:fancy Loud:true}")

		for name, req := range map[string]acp.SetSessionConfigOptionRequest{
			"no option":    acp.NewSetSessionConfigOptionRequestValueID(s.ID(), "none", "fancy"),
			"no value":     acp.NewSetSessionConfigOptionRequestValueID(s.ID(), "style", "loud"),
			"not a value":  acp.NewSetSessionConfigOptionRequestBoolean(s.ID(), "style", true),
			"of SetOption": acp.NewSetSessionConfigOptionRequestValueID(s.ID(), "own", "z"),
			"of a toggle":  acp.NewSetSessionConfigOptionRequestValueID(s.ID(), "loud", "true"),
		} {
			_, err := rpc.Call[acp.SetSessionConfigOptionResponse](t.Context(), c, acp.MethodSetSessionConfigOption, &req)
			wantError(t, name, err, acp.ErrInvalidParams)
		}
		must.Do(t, s.SetConfigOption(t.Context(), "own", "y"))
		wantLines(t, "notes", h.noted(), "set own y true")
		now("own=y style=fancy loud=" + yes)
		if s, err = c.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: "/w"}); err != nil {
			t.Fatal(err)
		}
		now("style=fancy loud=" + yes + " own=x")
		wantLines(t, "notes", h.noted(), "open {Style:fancy Loud:true}")
		if d := s.ConfigOptions().Value()[0].Description.Value(); d != "How it looks" {
			t.Errorf("the description is %q", d)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
}

// Nobody opens a session before a login, which is that of one connection.
func TestLogin(t *testing.T) {
	store, h, ctx := open(t, t.TempDir()), newHouse(), t.Context()
	config := h.config(store)
	valid := false
	config.Login = &agentkit.Login{
		Methods: []acp.AuthMethod{acp.NewAuthMethodAgent(acp.AuthMethodAgent{ID: "key", Name: "Key"}), acp.NewAuthMethodAgent(acp.AuthMethodAgent{ID: "bad", Name: "Bad"})},
		Run: func(_ context.Context, _ *acp.AgentConn, method acp.AuthMethodID) error {
			h.note("login %s", method)
			if method == "bad" {
				return acp.InvalidParamsf("a bad key")
			}
			return nil
		},
		Valid:  func(context.Context, *acp.AgentConn) (bool, error) { return valid, nil },
		Logout: func(context.Context, *acp.AgentConn) error { h.note("logout"); return nil },
	}
	sessions := agentkit.NewSessions(config)
	c, other := connect(t, sessions, nil, tapped), connect(t, sessions, nil, tapped)
	refused := func(c *client, want error) {
		t.Helper()
		s, err := c.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/w"})
		if !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("a new session: %v, want %v", err, want)
		}
		id := acp.SessionID("none")
		if s != nil {
			id = s.ID()
		}
		_, err = c.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: id, Cwd: "/w"})
		if !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("loading: %v, want %v", err, want)
		}
		_, err = c.ListSessions(ctx, &acp.ListSessionsRequest{})
		if !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("listing: %v, want %v", err, want)
		}
	}
	refused(c, acp.ErrAuthRequired)
	_, err := c.Authenticate(ctx, &acp.AuthenticateRequest{MethodID: "bad"})
	wantError(t, "a login that is refused", err, acp.ErrInvalidParams)
	refused(c, acp.ErrAuthRequired)
	must.Get(c.Authenticate(ctx, &acp.AuthenticateRequest{MethodID: "key"}))(t)
	refused(c, nil)
	refused(other, acp.ErrAuthRequired)
	must.Get(c.Logout(ctx, &acp.LogoutRequest{}))(t)
	refused(c, acp.ErrAuthRequired)
	valid = true
	refused(other, nil)
	notes := strings.Join(h.noted(), "; ")
	if !strings.Contains(notes, "login bad; login key; open 0") || !strings.Contains(notes, "logout; open 0") {
		t.Errorf("notes: %s", notes)
	}
}

// Without Sessions, errors of tools go to the logger of the connection.
func TestToolErrorsOfAConnection(t *testing.T) {
	h, ctx := newHouse(), t.Context()
	theirs, ours := acp.Pipe()
	agent, err := acp.StartAgent(ctx, theirs, acp.AgentHandlers{
		NewSession: newSession,
		Prompt: agentkit.HandlePrompt(func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
			call, err := agentkit.StartToolCall(ctx, s, "Read the disk")
			if err != nil {
				return nil, err
			}
			return nil, call.End(errors.New("disk sda1 is broken"))
		}),
	}, &acp.AgentOptions{Conn: acp.ConnOptions{Logger: slog.New(slog.NewTextHandler(h, nil))}})
	if err != nil {
		t.Fatal(err)
	}
	conn := must.Get(acp.Connect(ctx, conformance.Tap(t, conformance.Client, ours, nil), acp.ClientHandlers{}, nil))(t)
	session := must.Get(conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/w"}))(t)
	wantStop(t, session, "go", acp.StopReasonEndTurn)
	if err := errors.Join(conn.Close(), agent.Wait()); err != nil {
		t.Error(err)
	}
	if log := h.log(); !strings.Contains(log, "Read the disk") || !strings.Contains(log, "disk sda1 is broken") {
		t.Errorf("logged %q", log)
	}
}
