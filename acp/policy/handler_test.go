package policy_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/acp/reconnect"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
)

var options = []acp.PermissionOption{
	acp.AllowAlways("aa", "Always"), acp.AllowOnce("ao", "Yes"), acp.RejectAlways("ra", "Never"), acp.RejectOnce("ro", "No"),
}

// asked is a user who always chooses the same, and is counted.
type asked struct {
	choose acp.PermissionOptionID
	times  int
}

func (a *asked) ask(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
	a.times++
	return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(a.choose)}, nil
}

func agentName(*acp.ClientSession) string  { return "A" }
func workingDir(*acp.ClientSession) string { return "/proj" }

// permission is a request for permission.
func permission(t *testing.T, call string, options ...acp.PermissionOption) *acp.RequestPermissionRequest {
	t.Helper()
	c := request(t, call).ToolCall
	u := acp.ToolCallUpdate{ToolCallID: c.ToolCallID, RawInput: c.RawInput, Name: c.Name}
	if c.Kind != "" {
		u.Kind = acp.Some(c.Kind)
	}
	if c.Locations != nil {
		u.Locations = acp.Some(c.Locations)
	}
	return &acp.RequestPermissionRequest{SessionID: "s", ToolCall: u, Options: options}
}

// answer is which option a handler chooses; "-" is none.
func answer(t *testing.T, h policy.AskFunc, session acp.SessionID, req *acp.RequestPermissionRequest) acp.PermissionOptionID {
	t.Helper()
	res := must.Get(h(t.Context(), new(acp.ClientConn).Session(session), req))(t)
	if id, ok := res.Outcome.Selected(); ok {
		return id
	}
	return "-"
}

// The option is chosen by its kind, and nothing is chosen that does more than was decided.
func TestOptions(t *testing.T) {
	p := newPolicy(t, inProject+"\n"+noSecrets)
	once, always, reject, never := options[1], options[0], options[3], options[2]
	for name, test := range map[string]struct {
		path        string
		options     []acp.PermissionOption
		allowAlways bool
		want        acp.PermissionOptionID
		asks        bool
	}{
		"allowed":                          {"/proj/a", options, false, "ao", false},
		"allowed, but not once":            {"/proj/a", []acp.PermissionOption{always, reject}, false, "u", true},
		"allowed for always":               {"/proj/a", []acp.PermissionOption{always, reject}, true, "aa", false},
		"allowed once if it may be always": {"/proj/a", options, true, "ao", false},
		"allowed in two ways":              {"/proj/a", []acp.PermissionOption{once, acp.AllowOnce("ao2", "Yes, and more")}, false, "u", true},
		"allowed by an id of two":          {"/proj/a", []acp.PermissionOption{once, acp.RejectOnce("ao", "No")}, false, "u", true},
		"rejected by an id of two":         {"/proj/.env", []acp.PermissionOption{once, acp.RejectOnce("ao", "No")}, false, "u", true},
		"rejected":                         {"/proj/.env", options, false, "ro", false},
		"rejected, but not once":           {"/proj/.env", []acp.PermissionOption{once, never}, false, "ra", false},
		"rejected, with no option for it":  {"/proj/.env", []acp.PermissionOption{once, always}, false, "u", true},
		"nothing matches":                  {"/x", options, false, "u", true},
		"nothing matches, reject always":   {"/x", []acp.PermissionOption{once, never}, false, "u", true},
	} {
		user := &asked{choose: "u"}
		o := &policy.HandlerOptions{Agent: agentName, Cwd: workingDir, AllowAlways: test.allowAlways}
		got := answer(t, policy.Handler(p, user.ask, o), "s", permission(t, reads(test.path), test.options...))
		if got != test.want || (user.times > 0) != test.asks {
			t.Errorf("%s: got %q, asked %d times", name, got, user.times)
		}
		nobody := answer(t, policy.Handler(p, nil, o), "s", permission(t, reads(test.path), test.options...))
		switch {
		case !test.asks && nobody != test.want:
			t.Errorf("%s, without a user: got %q", name, nobody)
		case test.asks && nobody != "ro" && nobody != "-":
			t.Errorf("%s, without a user: got %q", name, nobody)
		}
	}
}

// What the user decides for always is remembered for the same request in the same session, and for nothing else.
func TestRememberedForASession(t *testing.T) {
	user := &asked{choose: "aa"}
	var failed []error
	h := policy.Handler(newPolicy(t, ``), user.ask, &policy.HandlerOptions{
		Agent: agentName, Cwd: workingDir, Failed: func(_ *acp.ClientSession, err error) { failed = append(failed, err) },
	})
	steps := []struct {
		session acp.SessionID
		call    string
		asks    bool
	}{
		{"s", runs("cd /tmp && rm -rf x"), true},
		{"s", runs("cd /tmp && rm -rf x"), false},
		{"s", runs("rm -rf x"), true}, // in another folder
		{"s2", runs("cd /tmp && rm -rf x"), true},
		{"s", edits("/proj/a[1]"), true},
		{"s", edits("/proj/a[1]"), false},
		{"s", edits("/proj/a1"), true},
		{"s", reads("/proj/a[1]"), true},
		{"s", edits("/proj/a[1]", "/proj/b"), true},
		{"s", `"kind":"other","name":"mcp__x"`, true},
		{"s", `"kind":"other","name":"mcp__x","rawInput":{"n":2}`, false},
		{"s", `"kind":"other","name":"mcp__y"`, true},
		{"s", `"kind":"other"`, true},
		{"s", `"kind":"other"`, true}, // it has nothing to know it by
		{"s", runs(`echo "$(x)"`), true},
		{"s", runs(`echo "$(x)"`), false},
		{"s", `"kind":"execute","rawInput":{"command":["echo","$(x)"]}`, true},
		{"s", `"kind":"execute"`, true},
		{"s", `"kind":"execute"`, true},
		{"s", edits("/proj/../x"), true},
		{"s", edits("/proj/../x"), true},
	}
	for i, step := range steps {
		before := user.times
		answer(t, h, step.session, permission(t, step.call, options...))
		if asks := user.times > before; asks != step.asks {
			t.Errorf("step %d, %s: asked: %v", i, step.call, asks)
		}
	}
	if len(failed) != 6 {
		t.Errorf("what was not remembered: %v", failed)
	}
}

// A refusal for always holds, for what it was said of.
func TestRememberedRefusal(t *testing.T) {
	user := &asked{choose: "ra"}
	h := policy.Handler(newPolicy(t, allCommands), nil, &policy.HandlerOptions{Agent: agentName, Cwd: workingDir})
	if got := answer(t, h, "s", permission(t, runs("make"), options...)); got != "ao" {
		t.Errorf("got %q", got)
	}
	memory := &policy.SessionMemory{}
	h = policy.Handler(newPolicy(t, ``), user.ask, &policy.HandlerOptions{Agent: agentName, Cwd: workingDir, Memory: memory})
	answer(t, h, "s", permission(t, runs("make"), options...))
	answer(t, h, "s", permission(t, edits("/proj/a", "/proj/b"), options...)) // each alone was not refused
	h = policy.Handler(newPolicy(t, allCommands+"\n"+inProject), user.ask, &policy.HandlerOptions{Agent: agentName, Cwd: workingDir, Memory: memory})
	for call, want := range map[string]acp.PermissionOptionID{
		runs("make"): "ro", runs("make test"): "ao", edits("/proj/a"): "ao",
	} {
		if got := answer(t, h, "s", permission(t, call, options...)); got != want {
			t.Errorf("%s: got %q", call, got)
		}
	}
	if user.times != 2 {
		t.Errorf("asked %d times", user.times)
	}
	memory.Forget("s")
	if rules, err := memory.Rules("s"); err != nil || len(rules) != 0 {
		t.Errorf("still remembered: %v, %v", rules, err)
	}
}

// A file remembers over the end of the program, for the agent and the working directory.
func TestRememberedInAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "remembered.jsonl")
	user := &asked{choose: "aa"}
	p := newPolicy(t, ``)
	in := func(agent, cwd string) policy.AskFunc {
		return policy.Handler(p, user.ask, &policy.HandlerOptions{
			Agent: func(*acp.ClientSession) string { return agent }, Cwd: func(*acp.ClientSession) string { return cwd }, Memory: policy.NewFile(path),
		})
	}
	for i, step := range []struct {
		agent, cwd string
		asks       bool
	}{{"A", "/proj", true}, {"A", "/proj", false}, {"B", "/proj", true}, {"A", "/other", true}, {"", "/proj", true}, {"", "/proj", true}, {"A", "", true}} {
		before := user.times
		answer(t, in(step.agent, step.cwd), "s", permission(t, runs("make"), options...))
		if asks := user.times > before; asks != step.asks {
			t.Errorf("step %d: asked: %v", i, asks)
		}
	}
	info := must.Get(os.Stat(path))(t)
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v", info.Mode())
	}
	rules, err := policy.NewFile(path).Rules("")
	if err != nil || len(rules) != 3 {
		t.Errorf("%v, %v", rules, err)
	}
}

// Wherever a write is cut, everything written before is still there, and so is what is written afterwards.
func TestTornFile(t *testing.T) {
	first := policy.Rule{Effect: policy.Allow, Lines: []string{"a"}}
	second := policy.Rule{Effect: policy.Allow, ReadOnly: true, Lines: []string{"b"}, Reason: "ü"}
	third := policy.Rule{Effect: policy.Allow, Lines: []string{"c"}}
	whole := first.String() + "\n" + second.String() + "\n"
	for cut := len(first.String()) + 1; cut <= len(whole); cut++ {
		path := filepath.Join(t.TempDir(), "f")
		must.Do(t, os.WriteFile(path, []byte(whole[:cut]), 0o600))
		f := policy.NewFile(path)
		if err := f.Add("", third); err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		rules, err := f.Rules("")
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		want := fmt.Sprint([]policy.Rule{first, third})
		torn := 1
		if cut >= len(whole)-1 {
			want, torn = fmt.Sprint([]policy.Rule{first, second, third}), 0
		} else if cut == len(first.String())+1 {
			torn = 0
		}
		if fmt.Sprint(rules) != want || f.DamagedEntries() != torn {
			t.Errorf("cut at %d: %v, %d torn", cut, rules, f.DamagedEntries())
		}
	}
}

// What is no rule is an error, and so is a file that others may write to.
func TestFileErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for text, want := range map[string]string{
		"\n{\"effect\":\"allow\",\"x\":1}\n": "line 2: unknown member",
		"{\"effect\":\"allow\"}\n":           "line 1: a rule that allows needs",
		"{\"effect\":\"ask\"} {}\n":          "line 1: invalid JSON: offset 17",
		"nonsense\n":                         "line 1: expected object",
		strings.Repeat(" ", 5<<20):           "longer than",
	} {
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		f := policy.NewFile(path)
		if _, err := f.Rules(""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v", text, err)
		}
		if err := f.Add("", policy.Rule{Effect: policy.Ask}); err == nil {
			t.Errorf("%.40q: a rule was added", text)
		}
		// Nothing is allowed while it cannot be read.
		var failed error
		h := policy.Handler(newPolicy(t, inProject), nil, &policy.HandlerOptions{
			Memory: f, Failed: func(_ *acp.ClientSession, err error) { failed = err },
		})
		if got := answer(t, h, "s", permission(t, reads("/proj/a"), options...)); got != "ro" || failed == nil {
			t.Errorf("%.40q: got %q, %v", text, got, failed)
		}
	}
	if runtime.GOOS == "windows" {
		return
	}
	must.Do(t, errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o622)))
	if _, err := policy.NewFile(path).Rules(""); err == nil || !strings.Contains(err.Error(), "writable by others") {
		t.Errorf("got %v", err)
	}
}

// A rule that would make the file longer than it may be is not added: nothing in it could be read any more.
func TestFullFile(t *testing.T) {
	f := policy.NewFile(filepath.Join(t.TempDir(), "f"))
	long := func(c string) policy.Rule {
		return policy.Rule{Effect: policy.Allow, Lines: []string{strings.Repeat(c, 3<<20)}}
	}
	must.Do(t, f.Add("", long("a")))
	if err := f.Add("", long("b")); err == nil {
		t.Error("it was added")
	}
	if rules, err := f.Rules(""); err != nil || len(rules) != 1 {
		t.Errorf("got %d rules, %v", len(rules), err)
	}
}

// Several programs may add to one file.
func TestSharedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	var wg sync.WaitGroup
	for i := range 4 {
		f := policy.NewFile(path)
		wg.Go(func() {
			for n := range 10 {
				if err := f.Add("", policy.Rule{Effect: policy.Ask, Lines: []string{fmt.Sprint(i, n)}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if rules, err := policy.NewFile(path).Rules(""); err != nil || len(rules) != 40 {
		t.Errorf("%d rules, %v", len(rules), err)
	}
}

// On a connection, a request that carries a part of the tool call is decided by what is known of it, relative to the
// directory of its session.
func TestHandlerOnAConnection(t *testing.T) {
	sessions := &view.Sessions{}
	var explained []string
	handlers := acp.ClientHandlers{
		SessionUpdate: sessions.Update,
		RequestPermission: policy.Handler(newPolicy(t, `{"effect":"allow","agent":["the agent"],"path":["./**"]}`), nil, &policy.HandlerOptions{
			Known: sessions.ToolCall,
			Decided: func(_ *acp.ClientSession, _ *acp.RequestPermissionRequest, d policy.Decision, by *acp.PermissionOption) {
				explained = append(explained, fmt.Sprintf("%s %s", d.Effect, by.Kind))
			},
		}),
	}
	agent, client := acp.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- acp.ServeAgent(t.Context(), agent, acp.AgentHandlers{
			NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
				return &acp.NewSessionResponse{SessionID: "s"}, nil
			},
			Prompt: func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
				for i, path := range []string{"/proj/a", "/etc/passwd"} {
					id := acp.ToolCallID(fmt.Sprint(i))
					if err := s.Update(ctx, acp.StartToolCall(id, "Edit", acp.WithKind(acp.ToolKindEdit), acp.WithLocation(path, 0))); err != nil {
						return nil, err
					}
					outcome, err := s.RequestPermission(ctx, acp.ToolCallRef(id, acp.WithTitle("Edit")), options...)
					if err != nil {
						return nil, err
					}
					chosen, _ := outcome.Selected()
					if err := s.Update(ctx, acp.AgentMessageText(string(chosen)+" ")); err != nil {
						return nil, err
					}
					status := acp.ToolCallStatusCompleted
					if err := s.Update(ctx, acp.UpdateToolCall(id, acp.WithStatus(status))); err != nil {
						return nil, err
					}
				}
				return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
			},
		}, &acp.AgentOptions{Info: acp.Implementation{Name: "the agent", Version: "1"}})
	}()
	conn := must.Get(acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, client, nil), handlers, nil))(t)
	s := must.Get(conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/proj"}))(t)
	state := sessions.Of(s.ID())
	state.SetSession(s)
	must.Get(view.Prompt(t.Context(), state, s, acp.TextBlock("go")))(t)
	must.Do(t, conn.Close())
	must.Do(t, <-served)
	if want := "[allow allow_once ask reject_once]"; fmt.Sprint(explained) != want {
		t.Errorf("decided %v, want %s", explained, want)
	}
	var texts strings.Builder
	for item := range state.Snapshot().Items() {
		if m, ok := item.Variant.(*view.Message); ok && m.Role == view.Agent {
			texts.WriteString(m.Text())
		}
	}
	if texts.String() != "ao ro " {
		t.Errorf("the agent got %q", texts.String())
	}
}

// What is known of a tool call that has ended says nothing of another one with its id.
func TestKnownCalls(t *testing.T) {
	p := newPolicy(t, inProject)
	for status, want := range map[acp.ToolCallStatus]acp.PermissionOptionID{
		acp.ToolCallStatusPending: "ao", acp.ToolCallStatusInProgress: "ao", acp.ToolCallStatusCompleted: "ro", acp.ToolCallStatusFailed: "ro",
	} {
		h := policy.Handler(p, nil, &policy.HandlerOptions{
			Known: func(acp.SessionID, acp.ToolCallID) (acp.ToolCall, bool) {
				call := request(t, reads("/proj/a")).ToolCall
				call.Status = status
				return call, true
			},
		})
		req := &acp.RequestPermissionRequest{ToolCall: acp.ToolCallRef("t", acp.WithTitle("T")), Options: options}
		if got := answer(t, h, "s", req); got != want {
			t.Errorf("%s: got %q", status, got)
		}
	}
}

// However long or deep a request is, it is decided about soon.
func TestHostileRequests(t *testing.T) {
	p := newPolicy(t, inProject+"\n"+gitAndGo+"\n"+noSecrets+"\n"+noRemoval)
	var paths []string
	for i := range 50_000 {
		paths = append(paths, fmt.Sprint("/proj/", i))
	}
	calls := []string{reads(paths...), runs(strings.Repeat("a ", 1<<20)), runs(strings.Repeat("sudo ", 3000))}
	for _, part := range []string{"(", "((", "$(", "`", "{ ", "$((", "${a:-", "\"$(", "<(", "[[ ", "if ", "case x in ", "a <<b\n", "\\", "a|", "!", "a() ", "${a[", "@("} {
		calls = append(calls, runs(strings.Repeat(part, 16<<10/len(part))))
	}
	for _, call := range calls {
		req := request(t, call)
		began := time.Now()
		d, err := p.Explain(req)
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%.60s…: decided after %v", call, took)
		}
		if err != nil || d.Effect == policy.Allow {
			t.Errorf("%.60s…: %s, %v", call, d.Effect, err)
		}
	}
}

var _ = acp.ClientHandlers{RequestPermission: view.TrackPermissions(&view.Sessions{}, policy.Handler(nil, nil, nil))}

var (
	_ view.Prompter = (*acp.ClientSession)(nil)
	_ view.Prompter = (*reconnect.Session)(nil)
)

// What "always" stores is the line to the letter, whatever it contains, and never words that allow more.
func TestRuleFor(t *testing.T) {
	p := newPolicy(t, allCommands)
	for _, line := range []string{"git log", "git log **", "echo * **", "cd /tmp && npm test", `echo "$(x)" > y # z`} {
		for kind, effect := range map[acp.PermissionOptionKind]policy.Effect{
			acp.PermissionOptionKindAllowAlways: policy.Allow, acp.PermissionOptionKindRejectAlways: policy.Reject,
		} {
			rule, err := p.RuleFor(request(t, runs(line)), kind, policy.NewFile("x"))
			want := policy.Rule{
				Effect: effect, Agents: []string{"A"}, Kinds: []acp.ToolKind{acp.ToolKindExecute}, Cwds: []string{"/proj"},
				Lines: []string{line}, Reason: "the user said so",
			}
			if err != nil || !reflect.DeepEqual(rule, want) {
				t.Errorf("%s: got %s, %v, want %s", line, rule, err, want)
			}
			// It decides about nothing but this line.
			if d, err := newPolicy(t, rule.String()).Explain(request(t, runs(line))); err != nil || d.Effect != effect {
				t.Errorf("%s: %s, %v", line, d, err)
			}
			if d, err := newPolicy(t, rule.String()).Explain(request(t, runs(line+" x"))); err != nil || d.Effect != policy.Ask {
				t.Errorf("%s x: %s, %v", line, d, err)
			}
		}
		if rule, err := p.RuleFor(request(t, runs(line)), acp.PermissionOptionKindAllowOnce, nil); err == nil {
			t.Errorf("%s: always allowed once: %s", line, rule)
		}
	}
}
