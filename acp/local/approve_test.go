//go:build unix

package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/internal/test/must"
)

// Each write and each command is a question with all facts, and happens only if the question is answered with allow_once.
func TestAsking(t *testing.T) {
	dir := t.TempDir()
	there := filepath.Join(dir, "there.txt")
	must.Do(t, os.WriteFile(there, []byte("old"), 0o600))
	must.Do(t, os.WriteFile(filepath.Join(dir, "binary"), []byte("\xff"), 0o600))
	var asked []*acp.RequestPermissionRequest
	var answer func(*acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error)
	handlers := acp.ClientHandlers{RequestPermission: func(_ context.Context, s *acp.ClientSession, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
		if s.ID() != req.SessionID {
			t.Errorf("asked in session %s about one of %s", s.ID(), req.SessionID)
		}
		asked = append(asked, req)
		return answer(req)
	}}
	machine := must.Get(local.Serve(&handlers, local.Asking(handlers.RequestPermission), dir))(t)
	defer machine.Close()
	_, agent := connect(t, handlers, dir)
	do := map[string]func(path string) error{
		"write": func(path string) error {
			_, err := agent.WriteTextFile(t.Context(), &acp.WriteTextFileRequest{Path: path, Content: "new"})
			return err
		},
		"run": func(path string) error {
			command := acp.CreateTerminalRequest{Command: "sh", Args: []string{"-c", "echo new >" + path}, Env: []acp.EnvVariable{{Name: "LD_PRELOAD", Value: "x.so"}}}
			terminal, err := agent.CreateTerminal(t.Context(), &command)
			if err != nil {
				return err
			}
			if _, err := terminal.Wait(t.Context()); err != nil {
				return err
			}
			return terminal.Close(t.Context())
		},
	}
	choose := func(kind acp.PermissionOptionKind) func(*acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
		return func(req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			for _, o := range req.Options {
				if o.Kind == kind {
					return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(o.OptionID)}, nil
				}
			}
			t.Errorf("no option %s in %v", kind, req.Options)
			return nil, nil
		}
	}
	outcome := func(o acp.RequestPermissionOutcome) func(*acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
		return func(*acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			return &acp.RequestPermissionResponse{Outcome: o}, nil
		}
	}
	for name, answers := range map[string]func(*acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error){
		"rejected":  choose(acp.PermissionOptionKindRejectOnce),
		"cancelled": outcome(acp.PermissionCancelled()),
		"unknown":   outcome(acp.PermissionSelected("other")),
		"empty":     outcome(acp.RequestPermissionOutcome{}),
		"nothing":   func(*acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) { return nil, nil },
		"failed": func(*acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			return nil, errors.New("no answer")
		},
	} {
		for what, try := range do {
			answer = answers
			before := len(asked)
			if err := try(filepath.Join(dir, name+what)); err == nil || !strings.Contains(err.Error(), local.ErrRejected.Error()) {
				t.Errorf("%s %s: got %v", name, what, err)
			}
			if _, err := os.Stat(filepath.Join(dir, name+what)); err == nil || len(asked) != before+1 {
				t.Errorf("%s: %s happened (%v), after %d questions", name, what, err, len(asked)-before)
			}
		}
	}
	answer, asked = choose(acp.PermissionOptionKindAllowOnce), nil
	for _, name := range []string{"there.txt", "new.txt", "binary"} {
		must.Do(t, do["write"](filepath.Join(dir, name)))
	}
	must.Do(t, do["run"](filepath.Join(dir, "run.txt")))
	must.Get(os.Stat(filepath.Join(dir, "run.txt")))(t)
	var facts []string
	for _, req := range asked {
		parts := []string{string(req.ToolCall.Kind.Value()), strings.Fields(req.ToolCall.Title.Value())[0]}
		for _, at := range req.ToolCall.Locations.Value() {
			parts = append(parts, filepath.Base(at.Path))
		}
		for _, content := range req.ToolCall.Content.Value() {
			diff := content.Variant.(*acp.ToolCallContentDiff)
			parts = append(parts, filepath.Base(diff.Path), diff.OldText.Or("none"), diff.NewText)
		}
		if raw := req.ToolCall.RawInput; raw != nil {
			var input map[string]any
			if err := json.Unmarshal(raw, &input); err != nil || input["cwd"] != dir {
				t.Errorf("input %s, %v", raw, err)
			}
			delete(input, "cwd")
			raw, _ := json.Marshal(input)
			parts = append(parts, strings.ReplaceAll(string(raw), dir, "DIR"))
		}
		facts = append(facts, strings.Join(parts, " "))
	}
	want := []string{
		"edit Change there.txt there.txt old new", "edit Create new.txt new.txt none new", "edit Replace binary binary none new",
		`execute Run {"args":["-c","echo new \u003eDIR/run.txt"],"command":"sh","env":{"LD_PRELOAD":"x.so"}}`,
	}
	if got := strings.Join(facts, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("asked:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
	// Nobody is asked about what is refused anyway.
	asked = nil
	if err := do["write"](filepath.Join(filepath.Dir(dir), "outside")); err == nil || len(asked) > 0 {
		t.Errorf("outside: %v after %d questions", err, len(asked))
	}
}

// A question about a write names the file that is written, not only the links to it.
func TestAskingNamesTargets(t *testing.T) {
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	must.Do(t, errors.Join(os.MkdirAll(at("hooks/sub"), 0o700), os.WriteFile(at("hooks/there"), nil, 0o600), os.Mkdir(at("docs"), 0o700),
		os.Symlink("../hooks/there", at("docs/file")), os.Symlink("../hooks/absent", at("docs/dangling")), os.Symlink("dangling", at("docs/twice")),
		os.Symlink("hooks", at("dir")), os.Symlink("loop", at("loop"))))
	var paths []string
	var handlers acp.ClientHandlers
	machine := must.Get(local.Serve(&handlers, local.Asking(func(_ context.Context, _ *acp.ClientSession, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
		paths = nil
		for _, location := range req.ToolCall.Locations.Value() {
			paths = append(paths, strings.TrimPrefix(location.Path, dir+"/"))
		}
		return nil, nil
	}), dir))(t)
	defer machine.Close()
	_, agent := connect(t, handlers, dir)
	for name, want := range map[string]string{
		"docs/new": "docs/new", "hooks/there": "hooks/there", "docs/file": "docs/file hooks/there", "docs/dangling": "docs/dangling hooks/absent",
		"docs/twice": "docs/twice hooks/absent", "dir/new": "dir/new hooks/new", "dir/a/b": "dir/a/b hooks/a/b", "dir/sub/../x": "dir/x hooks/x", "loop": "loop",
	} {
		paths = nil
		_, _ = agent.WriteTextFile(t.Context(), &acp.WriteTextFileRequest{Path: dir + "/" + name, Content: "new"}) // it is rejected
		if got := strings.Join(paths, " "); got != want {
			t.Errorf("%s: the question names %q, want %q", name, got, want)
		}
	}
}

// Without a decision, no command runs, and nothing is offered but reading.
func TestNoApproval(t *testing.T) {
	var handlers acp.ClientHandlers
	machine := must.Get(local.Serve(&handlers, nil, t.TempDir()))(t)
	defer machine.Close()
	if handlers.ReadTextFile == nil || handlers.WriteTextFile != nil || handlers.CreateTerminal != nil || handlers.TerminalOutput != nil {
		t.Error("more is offered than reading")
	}
	roots, _ := open(t, nil)
	client, _ := connect(t, acp.ClientHandlers{}, t.TempDir())
	if _, err := local.NewTerminals(roots, nil, nil).CreateTerminal(t.Context(), client, &acp.CreateTerminalRequest{Command: "true"}); !errors.Is(err, local.ErrRejected) {
		t.Errorf("called: got %v", err)
	}
}
