package agentkit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
)

// models is the state of a session in these tests.
type models struct{ Model string }

// exchange is an agent whose prompts call do, and its client.
type exchange struct {
	*acp.ClientConn
	*acp.ClientSession
	do func(ctx context.Context, t *agentkit.Turn[models]) error

	mu     sync.Mutex
	lines  []string
	answer acp.PermissionOptionID
	asked  []acp.PermissionOption // those of the last question
}

func dialogue(t *testing.T, config agentkit.Config[models], opts *acp.ClientOptions) *exchange {
	t.Helper()
	s := &exchange{}
	config.Prompt = func(ctx context.Context, t *agentkit.Turn[models], _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		err := s.do(ctx, t)
		if _, ok := errors.AsType[*agentkit.APIError](err); !ok { // which is public itself
			err = acp.Public(err)
		}
		return nil, err
	}
	theirs, ours := acp.Pipe()
	sessions := agentkit.NewSessions(config)
	served := make(chan error, 1)
	go func() { served <- sessions.Serve(context.Background(), theirs, nil) }()
	handlers := acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			text := line(n.Update)
			switch u := n.Update.Variant.(type) {
			case *acp.SessionUpdateNotice:
				text = fmt.Sprintf("notice: %s %s", u.Title, u.Description.Value())
			case *acp.SessionUpdateCompactionUpdate:
				text = fmt.Sprint("compaction: ", u.Status)
			}
			s.lines = append(s.lines, text)
			return nil
		},
		RequestPermission: func(_ context.Context, _ *acp.ClientSession, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.asked = req.Options
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(s.answer)}, nil
		},
	}
	var err error
	if s.ClientConn, err = acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, ours, nil), handlers, opts); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.ClientConn.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
	if s.ClientSession, err = s.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/w"}); err != nil {
		t.Fatal(err)
	}
	return s
}

// prompt calls do in a turn, and returns what the client received.
func (s *exchange) prompt(t *testing.T, do func(ctx context.Context, t *agentkit.Turn[models]) error) ([]string, error) {
	t.Helper()
	s.do = do
	_, err := s.ClientSession.Prompt(t.Context(), acp.TextBlock("Go"))
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := s.lines
	s.lines = nil
	return lines, err
}

func TestToolResult(t *testing.T) {
	text := func(text string) []acp.ToolCallContent { return []acp.ToolCallContent{acp.ToolText(text)} }
	for name, test := range map[string]struct {
		call acp.ToolCall
		want string
	}{
		"raw output that is a string": {acp.ToolCall{RawOutput: acp.Raw("out"), Content: text("shown"), Status: acp.ToolCallStatusCompleted}, "out"},
		"an empty string":             {acp.ToolCall{RawOutput: acp.Raw(""), Content: text("shown"), Status: acp.ToolCallStatusCompleted}, ""},
		"content":                     {acp.ToolCall{RawOutput: acp.Raw([]int{1}), Content: text("shown"), Status: acp.ToolCallStatusCompleted}, "shown"},
		"other raw output":            {acp.ToolCall{RawOutput: acp.Raw([]int{1}), Status: acp.ToolCallStatusCompleted}, "[1]"},
		"nothing":                     {acp.ToolCall{Status: acp.ToolCallStatusCompleted}, ""},
		"a failure":                   {acp.ToolCall{Content: text("why"), Status: acp.ToolCallStatusFailed}, "error: why"},
		"a call that did not end":     {acp.ToolCall{Status: acp.ToolCallStatusInProgress}, "error: the call did not end"},
		"one that has printed":        {acp.ToolCall{Content: text("so far"), Status: acp.ToolCallStatusInProgress}, "error: the call did not end\nso far"},
	} {
		if got := agentkit.ToolResult(test.call); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// Each prompt is a message, also if the one before it got no answer. What was added to a prompt is a part of it.
func TestPromptsApart(t *testing.T) {
	s := dialogue(t, agentkit.Config[models]{Store: open(t, t.TempDir())}, nil)
	for range 2 {
		must.Get(s.prompt(t, func(ctx context.Context, turn *agentkit.Turn[models]) error {
			added := acp.ContentChunk{Content: acp.TextBlock(" with a file")}
			return turn.Record(ctx, acp.NewSessionUpdateUserMessageChunk(added))
		}))(t)
	}
	_, err := s.prompt(t, func(ctx context.Context, turn *agentkit.Turn[models]) error {
		messages, err := turn.Messages(ctx)
		var texts []string
		for _, m := range messages {
			var whole strings.Builder
			for _, block := range m.Content {
				text := block.Text()
				whole.WriteString(text)
			}
			texts = append(texts, whole.String())
		}
		wantLines(t, "the messages", texts, "Go with a file", "Go with a file", "Go")
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestNotifyAndCompact(t *testing.T) {
	capable := &acp.ClientOptions{Session: acp.ClientSessionCapabilities{
		Notices: acp.Some(acp.NoticeCapabilities{}), Compaction: acp.Some(acp.CompactionCapabilities{}),
	}}
	for name, test := range map[string]struct {
		opts           *acp.ClientOptions
		notice, begun  string
		done, notShort string
	}{
		"capable": {capable, "notice: Slow because", "compaction: in_progress", "compaction: completed", "compaction: failed"},
		"not capable": {nil, "thought: Slow: because\n", "thought: Summarizing the conversation: in_progress\n",
			"thought: Summarizing the conversation: completed\n", "thought: Summarizing the conversation: failed\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := dialogue(t, agentkit.Config[models]{Store: open(t, t.TempDir())}, test.opts)
			lines, err := s.prompt(t, func(ctx context.Context, turn *agentkit.Turn[models]) error {
				slow := acp.Notice{Severity: acp.NoticeSeverityWarning, Title: "Slow", Description: acp.Some("because")}
				return errors.Join(turn.Notify(ctx, slow), turn.Compact(ctx, func() (string, error) { return "so far", nil }))
			})
			if err != nil {
				t.Error(err)
			}
			wantLines(t, "a compaction", lines, test.notice, test.begun, test.done, "title: Go")
			lines, err = s.prompt(t, func(ctx context.Context, turn *agentkit.Turn[models]) error {
				if messages, err := turn.Messages(ctx); err != nil || len(messages) != 2 || messages[0].Role != agentkit.RoleSummary {
					t.Errorf("the messages are %+v, %v", messages, err)
				}
				return turn.Compact(ctx, func() (string, error) { return "", errors.New("too long") })
			})
			if err == nil || !strings.Contains(err.Error(), "too long") {
				t.Errorf("a compaction that fails: %v", err)
			}
			wantLines(t, "a compaction that fails", lines, test.begun, test.notShort)
		})
	}
}

// A compaction whose turn is cancelled is shown as cancelled.
func TestCompactCancelled(t *testing.T) {
	s := dialogue(t, agentkit.Config[models]{Store: open(t, t.TempDir())}, &acp.ClientOptions{
		Session: acp.ClientSessionCapabilities{Compaction: acp.Some(acp.CompactionCapabilities{})},
	})
	lines, err := s.prompt(t, func(ctx context.Context, turn *agentkit.Turn[models]) error {
		return turn.Compact(ctx, func() (string, error) {
			if err := s.ClientSession.Cancel(context.Background()); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			return "", context.Cause(ctx)
		})
	})
	if err != nil {
		t.Error(err)
	}
	wantLines(t, "a compaction", lines, "compaction: in_progress", "compaction: cancelled", "title: Go")
}

// SelectOption changes an option, and leaves that of the modes to the kit.
func TestSelectOption(t *testing.T) {
	config := agentkit.Config[models]{Store: open(t, t.TempDir())}
	config.Open = func(_ context.Context, s *agentkit.Session[models], o *agentkit.Opening) error {
		o.Modes = []acp.SessionMode{{ID: "a", Name: "A"}, {ID: "b", Name: "B"}}
		o.Select("model", "Model", &s.State.Model, "small", "large", "small")
		if values, _ := o.ConfigOptions[0].Variant.(*acp.SessionConfigOptionSelect).Options.All(); len(values) != 2 {
			t.Errorf("the values are %+v", values)
		}
		if got := o.ConfigOptions[0].Category.Value(); got != acp.SessionConfigOptionCategoryModel {
			t.Errorf("the category is %q", got)
		}
		return nil
	}
	s := dialogue(t, config, nil)
	lines, err := s.prompt(t, func(ctx context.Context, turn *agentkit.Turn[models]) error {
		for id, value := range map[acp.SessionConfigID]string{"model": "none", "mode": "b", "other": "x"} {
			if err := turn.SelectOption(ctx, id, value); err == nil {
				t.Errorf("%s can be set to %s", id, value)
			}
		}
		return turn.SelectOption(ctx, "model", "large")
	})
	if err != nil {
		t.Error(err)
	}
	wantLines(t, "the change", lines, "options: mode=a model=large", "title: Go")
	if err := s.ClientSession.SetMode(t.Context(), "b"); err != nil {
		t.Error(err)
	}
	lines, err = s.prompt(t, func(_ context.Context, turn *agentkit.Turn[models]) error {
		if turn.State.Model != "large" {
			t.Errorf("the model is %s", turn.State.Model)
		}
		return nil
	})
	wantLines(t, "the mode", lines, "options: mode=b model=large")
	if err != nil {
		t.Error(err)
	}
}

// With a Decider that remembers, Ask offers to decide always, and such a decision holds for the next call. With one that
// has modes, so have sessions.
func TestRemember(t *testing.T) {
	rules := must.Get(policy.New(nil, nil))(t)
	remembered := policy.Remembered{Policy: rules, Memory: policy.NewFile(filepath.Join(t.TempDir(), "rules.json")), Agent: "me"}
	s := dialogue(t, agentkit.Config[models]{Decide: &remembered}, nil)
	run := func(answer acp.PermissionOptionID, title string, options ...acp.ToolCallOption) (int, error) {
		t.Helper()
		s.answer, s.asked = answer, nil
		var refused error
		_, err := s.prompt(t, func(ctx context.Context, turn *agentkit.Turn[models]) error {
			return turn.Tool(ctx, acp.ToolKindExecute, title, func(call *agentkit.ToolCall) error {
				_, refused = call.Ask(ctx)
				if shown := call.State().Content; strings.HasPrefix(title, "Unknown") == (len(shown) == 0) {
					t.Errorf("%s shows %+v", title, shown)
				}
				return refused
			}, options...)
		})
		if err != nil {
			t.Error(err)
		}
		return len(s.asked), refused
	}
	list, remove := acp.WithInput(map[string]string{"command": "ls"}), acp.WithInput(map[string]string{"command": "rm x"})
	for _, test := range []struct {
		answer acp.PermissionOptionID
		option acp.ToolCallOption
		want   error
		asked  int
	}{
		{"once", list, nil, 4}, {"always", list, nil, 4}, {"no", list, nil, 0},
		{"no", remove, agentkit.ErrRejected, 4}, {"never", remove, agentkit.ErrRejected, 4}, {"once", remove, agentkit.ErrRejected, 0},
	} {
		if asked, err := run(test.answer, "Run", test.option); !errors.Is(err, test.want) || asked != test.asked {
			t.Errorf("answered %q: %v, with %d options; want %v, %d", test.answer, err, asked, test.want, test.asked)
		}
	}
	if _, err := run("always", "Unknown"); err != nil { // no rule describes it, which the call shows
		t.Errorf("a decision that cannot be remembered: %v", err)
	}
	must.Do(t, s.SetMode(t.Context(), policy.ModeReadOnly))
	if asked, err := run("once", "Run", list); !errors.Is(err, agentkit.ErrRejected) || asked != 0 {
		t.Errorf("read only: %v, with %d options", err, asked)
	}
}

func TestAPIKey(t *testing.T) {
	key := agentkit.APIKey{Variable: "AGENTKIT_TEST_KEY", File: filepath.Join(t.TempDir(), "new", "key")}
	want := func(what, want string) {
		t.Helper()
		if got, err := key.Get(); got != want || err != nil {
			t.Errorf("%s: the key is %q, %v; want %q", what, got, err, want)
		}
	}
	login := key.Login("-login")
	run := func() error { return login.Run(t.Context(), nil, "environment") }
	want("none", "")
	if err := run(); err == nil || !strings.Contains(err.Error(), "AGENTKIT_TEST_KEY is not set") {
		t.Errorf("a login without a key: %v", err)
	}
	if err := key.Enter(strings.NewReader("\n"), &bytes.Buffer{}); err == nil {
		t.Error("an empty key is stored")
	}
	var prompted bytes.Buffer
	if err := key.Enter(strings.NewReader("stored\n"), &prompted); err != nil || prompted.String() != "API key: " {
		t.Errorf("Enter: %v, with the prompt %q", err, &prompted)
	}
	if info, err := os.Stat(key.File); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the file: %v, %v", info, err)
	}
	want("stored", "stored")
	for _, mode := range []os.FileMode{0o644, 0o620, 0o602} {
		must.Do(t, os.Chmod(key.File, mode))
		if got, err := key.Get(); runtime.GOOS != "windows" && (err == nil || got != "") {
			t.Errorf("from a file with the mode %o: %q", mode, got)
		}
	}
	if err := key.Enter(strings.NewReader("stored\n"), &prompted); err != nil { // it makes the file private again
		t.Error(err)
	}
	want("stored again", "stored")
	if ok, err := login.Valid(t.Context(), nil); !ok || err != nil || run() != nil {
		t.Errorf("a login with a key: %v, %v", ok, err)
	}
	t.Setenv("AGENTKIT_TEST_KEY", "variable")
	want("variable", "variable")
	t.Setenv("AGENTKIT_TEST_KEY", "")
	for range 2 { // also if there is no file
		if err := login.Logout(t.Context(), nil); err != nil {
			t.Error(err)
		}
	}
	want("after the logout", "")
	key.Default = "none"
	want("default", "none")
}
