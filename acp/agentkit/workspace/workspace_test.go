package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/agentkit/workspace"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // passing tests print nothing
	goleak.VerifyTestMain(m)
}

type turn = agentkit.Turn[*workspace.Workspace]

// host is a client of an agent whose only prompt calls do.
type host struct {
	calls map[acp.ToolCallID]acp.ToolCall
	asked func() // is called when the agent asks for permission, which it gets; nil dismisses the question
	// read, if set, replaces the client's method.
	read func(context.Context, *acp.ClientSession, *acp.ReadTextFileRequest) (*acp.ReadTextFileResponse, error)
}

// during calls do in a turn of a session in dir, with a client that has files and terminals, or with one that has neither.
// If do is nil, the session cannot be opened.
func during(t *testing.T, bare bool, dir string, do func(ctx context.Context, t *turn) error) *host {
	t.Helper()
	h := &host{}
	h.run(t, bare, dir, do)
	return h
}

func (h *host) run(t *testing.T, bare bool, dir string, do func(ctx context.Context, t *turn) error) {
	t.Helper()
	sessions := agentkit.NewSessions(agentkit.Config[*workspace.Workspace]{
		Open: func(_ context.Context, s *agentkit.Session[*workspace.Workspace], _ *agentkit.Opening) (err error) {
			s.State, err = workspace.Open(s, &workspace.Options{Unset: []string{"WORKSPACE_SECRET"}, Hidden: []string{"", filepath.Join(dir, "own")}})
			return err
		},
		Prompt: func(ctx context.Context, t *turn, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
			return nil, acp.Public(do(ctx, t))
		},
	})
	ours, theirs := acp.Pipe()
	served := make(chan error, 1)
	go func() { served <- sessions.Serve(context.Background(), theirs, nil) }()
	h.calls = map[acp.ToolCallID]acp.ToolCall{}
	handlers := acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
			switch u := n.Update.Variant.(type) {
			case *acp.SessionUpdateToolCall:
				h.calls[u.ToolCallID] = acp.ToolCall(*u)
			case *acp.SessionUpdateToolCallUpdate:
				call := h.calls[u.ToolCallID]
				call.Apply(acp.ToolCallUpdate(*u))
				h.calls[u.ToolCallID] = call
			}
			return nil
		},
		RequestPermission: func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			if h.asked == nil {
				return &acp.RequestPermissionResponse{Outcome: acp.PermissionCancelled()}, nil
			}
			h.asked()
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected("allow")}, nil
		},
	}
	if !bare {
		machine := must.Get(local.Serve(&handlers, local.Trusted(), dir))(t)
		defer machine.Close()
	}
	if h.read != nil {
		handlers.ReadTextFile = h.read
	}
	client := must.Get(acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, ours, nil), handlers, nil))(t)
	defer func() {
		if err := errors.Join(client.Close(), <-served); err != nil {
			t.Error(err)
		}
	}()
	s, err := client.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: dir})
	if do == nil {
		if err == nil || !strings.Contains(err.Error(), "no such file") {
			t.Errorf("opened in %s: %v", dir, err)
		}
		return
	}
	must.Do(t, err)
	if _, err := s.Prompt(t.Context(), acp.TextBlock("Go")); err != nil {
		t.Error(err)
	}
}

// both runs a test with a client that has files and terminals, and with one that has neither.
func both(t *testing.T, test func(t *testing.T, bare bool, dir string)) {
	t.Helper()
	for _, bare := range []bool{false, true} {
		t.Run(fmt.Sprintf("bare %v", bare), func(t *testing.T) {
			dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
			test(t, bare, dir)
		})
	}
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
}

func TestFiles(t *testing.T) {
	both(t, func(t *testing.T, bare bool, dir string) {
		put(t, dir, "a.txt", "one\ntwo\nthree\n")
		put(t, dir, "binary", "a\x00b")
		put(t, dir, "huge", "")
		outside := t.TempDir()
		put(t, outside, "secret", "x")
		for _, err := range []error{os.Truncate(filepath.Join(dir, "huge"), 1<<30), os.Symlink(outside, filepath.Join(dir, "link"))} {
			if err != nil {
				t.Fatal(err)
			}
		}
		during(t, bare, dir, func(ctx context.Context, turn *turn) error {
			w := turn.State
			for _, test := range []struct {
				path        string
				line, limit uint32
				want        string
				err         error // what the error matches
			}{
				{path: "a.txt", want: "one\ntwo\nthree\n"},
				{path: filepath.Join(dir, "a.txt"), line: 2, limit: 1, want: "two\n"},
				{path: "a.txt", line: 3, want: "three\n"},
				{path: "a.txt", line: 9},
				{path: "none", err: fs.ErrNotExist},
				{path: "../secret", err: local.ErrOutside},
				{path: filepath.Join(outside, "secret"), err: local.ErrOutside},
				{path: "link/secret", err: local.ErrOutside},
				{path: "link/none", err: local.ErrOutside},
			} {
				text, err := w.Read(ctx, test.path, test.line, test.limit)
				if text != test.want || !errors.Is(err, test.err) || test.err == nil && err != nil {
					t.Errorf("Read %q, %d, %d: %q, %v; want %q, %v", test.path, test.line, test.limit, text, err, test.want, test.err)
				}
			}
			for path, want := range map[string]error{"huge": local.ErrTooLarge, ".": local.ErrNotRegular} {
				if _, err := w.Read(ctx, path, 0, 0); err == nil || bare && !errors.Is(err, want) {
					t.Errorf("Read %q: %v", path, err)
				}
			}
			if _, err := w.Read(ctx, "binary", 0, 0); bare && !errors.Is(err, local.ErrNotText) {
				t.Errorf("Read of a binary file: %v", err)
			}
			if err := w.Write(ctx, "new/dir/b.txt", "b"); err != nil {
				t.Errorf("Write: %v", err)
			}
			if text, err := os.ReadFile(filepath.Join(dir, "new", "dir", "b.txt")); string(text) != "b" {
				t.Errorf("the file has %q, %v", text, err)
			}
			for _, path := range []string{"../b", "link/b"} {
				if err := w.Write(ctx, path, "b"); !errors.Is(err, local.ErrOutside) {
					t.Errorf("Write %q: %v", path, err)
				}
				if _, err := w.List(ctx, path); !errors.Is(err, local.ErrOutside) {
					t.Errorf("List %q: %v", path, err)
				}
				if _, err := w.Search(ctx, path, "x"); !errors.Is(err, local.ErrOutside) {
					t.Errorf("Search %q: %v", path, err)
				}
			}
			if names, err := w.List(ctx, "."); err != nil || names != "a.txt\nbinary\nhuge\nlink\nnew/\n" {
				t.Errorf("List: %q, %v", names, err)
			}
			return nil
		})
	})
}

func TestSearch(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "a.txt", "one\ntwo\n")
	put(t, dir, "binary", "two\x00")
	must.Do(t, os.MkdirAll(filepath.Join(dir, "sub", "node_modules"), 0o700))
	put(t, dir, "sub/b.txt", "two, too\n")
	put(t, dir, "sub/node_modules/c.txt", "two\n")
	put(t, dir, "large.txt", strings.Repeat("a long line of text\n", 10_000))
	during(t, true, dir, func(ctx context.Context, turn *turn) error {
		for _, test := range []struct{ path, want string }{
			{"", filepath.Join(dir, "a.txt") + ":2:two\n" + filepath.Join(dir, "sub", "b.txt") + ":1:two, too\n"},
			{"sub", filepath.Join(dir, "sub", "b.txt") + ":1:two, too\n"},
			{"a.txt", filepath.Join(dir, "a.txt") + ":2:two\n"},
		} {
			if found, err := turn.State.Search(ctx, test.path, "t[w]o"); found != test.want || err != nil {
				t.Errorf("Search in %q: %q, %v", test.path, found, err)
			}
		}
		if found, err := turn.State.Search(ctx, "", "long"); len(found) != 64<<10 || err != nil {
			t.Errorf("found %d bytes, %v", len(found), err)
		}
		if _, err := turn.State.Search(ctx, "", "("); err == nil {
			t.Error("a pattern that is not valid")
		}
		if _, err := turn.State.Search(ctx, "none", "x"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a directory that does not exist: %v", err)
		}
		return nil
	})
}

// The files that .gitignore files exclude are left out, as Git does it.
func TestSearchIgnores(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, ".gitignore", "# build\n*.log\n/out/\nlogs\n!keep.log\n**/gen/*.go\nsub/[!a].txt\r\nbad[\n\\*.md\n")
	put(t, dir, "sub/.gitignore", "/local\n!kept.log\n")
	put(t, dir, "sub/deep/.gitignore", "*\n")
	for _, name := range []string{
		"a.log", "keep.log", "out/x", "sub/out/x", "logs/x", "sub/logs/x", "a/gen/x.go", "gen/x.c", "sub/a.txt", "sub/b.txt",
		"sub/local", "local", "sub/kept.log", "sub/deep/x", ".git/x", "sub/.hg/x", "node_modules/x", ".github/x", "a.md", "*.md",
	} {
		put(t, dir, name, "found\n")
	}
	all := []string{".github/x", "a.md", "gen/x.c", "keep.log", "local", "sub/a.txt", "sub/kept.log", "sub/out/x"}
	during(t, true, dir, func(ctx context.Context, turn *turn) error {
		for at, want := range map[string][]string{"": all, "sub": all[5:], "sub/deep": nil, "a.log": {"a.log"}, "out": {"out/x"}} {
			found, err := turn.State.Search(ctx, at, "^found$")
			if err != nil {
				t.Error(err)
			}
			var lines strings.Builder
			for _, name := range want {
				fmt.Fprintf(&lines, "%s:1:found\n", filepath.Join(dir, name))
			}
			if found != lines.String() {
				t.Errorf("in %q: %s; want %s", at, found, lines.String())
			}
		}
		return nil
	})
}

// The agent's own directory is not reached under any name.
func TestHidden(t *testing.T) {
	unix(t)
	both(t, func(t *testing.T, bare bool, dir string) {
		put(t, dir, "own/key", "secret\n")
		put(t, dir, "own/sub/rules", "secret\n")
		put(t, dir, "owner", "free\n")
		for name, target := range map[string]string{"a": "own", "b": "own/key", "c": "own/sub", "d": "own/new", "e": "a/sub/rules"} {
			must.Do(t, os.Symlink(target, filepath.Join(dir, name)))
		}
		h := &host{asked: func() {}}
		h.run(t, bare, dir, func(ctx context.Context, turn *turn) error {
			w := turn.State
			for _, name := range []string{"own", "own/key", "own/sub/../key", "own/none/x", "a", "a/key", "a/none", "b", "c/rules", "c/new", "d", "e"} {
				_, read := w.Read(ctx, name, 0, 0)
				_, listed := w.List(ctx, name)
				_, searched := w.Search(ctx, name, "s")
				for what, err := range map[string]error{"Read": read, "List": listed, "Search": searched, "Write": w.Write(ctx, name, "x")} {
					if err == nil || name != "d" && !errors.Is(err, local.ErrOutside) {
						t.Errorf("%s %s: %v", what, name, err)
					}
				}
			}
			blocks, err := w.Attach(ctx, &acp.PromptRequest{Prompt: []acp.ContentBlock{acp.TextBlock("@own/key @b @owner")}})
			if err != nil || len(blocks) != 1 {
				t.Errorf("attached are %+v, %v", blocks, err)
			}
			if found, err := w.Search(ctx, "", "secret|free"); found != filepath.Join(dir, "owner")+":1:free\n" || err != nil {
				t.Errorf("found %q, %v", found, err)
			}
			return nil
		})
		if text, err := os.ReadFile(filepath.Join(dir, "own", "key")); string(text) != "secret\n" || err != nil {
			t.Errorf("the key is %q, %v", text, err)
		}
		if _, err := os.Lstat(filepath.Join(dir, "own", "new")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a new file: %v", err)
		}
	})
}

// Nothing that is not a file is waited for, whoever makes one.
func TestFIFO(t *testing.T) {
	unix(t)
	dir := t.TempDir()
	for _, command := range [][]string{{"mkfifo", "fifo"}, {"ln", "-s", "fifo", "link"}, {"mkfifo", ".gitignore"}} {
		cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	put(t, dir, "a", "found\n")
	during(t, true, dir, func(ctx context.Context, turn *turn) error {
		w := turn.State
		for _, name := range []string{"fifo", "link"} {
			_, listed := w.List(ctx, name)
			_, read := w.Read(ctx, name, 0, 0)
			found, _ := w.Search(ctx, name, "x")
			if listed == nil || read == nil || found != "" || w.Write(ctx, name, "x") == nil {
				t.Errorf("%s: %v, %v, %q", name, listed, read, found)
			}
		}
		if found, err := w.Search(ctx, "", "found"); found != filepath.Join(dir, "a")+":1:found\n" || err != nil {
			t.Errorf("found %q, %v", found, err)
		}
		return nil
	})
}

// swap calls do with 0, 1, 2 and so on, until stop is called.
func swap(t *testing.T, do func(n int) error) (stop func()) {
	var swaps sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	swaps.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			if err := do(n); err != nil {
				t.Error(err)
			}
		}
	})
	return func() {
		cancel()
		swaps.Wait()
	}
}

// A link that takes the place of a directory or a file in the meantime does not lead a search out.
func TestSearchWhileLinksChange(t *testing.T) {
	unix(t)
	dir, outside := t.TempDir(), t.TempDir()
	put(t, outside, "a", "secret\n")
	put(t, dir, "in/a", "public\n")
	in, kept := filepath.Join(dir, "in"), filepath.Join(dir, "kept")
	during(t, true, dir, func(ctx context.Context, turn *turn) error {
		defer swap(t, func(int) error {
			return errors.Join(os.Rename(in, kept), os.Symlink(outside, in), os.Remove(in), os.Rename(kept, in))
		})()
		for range 300 {
			if found, _ := turn.State.Search(ctx, "", "."); strings.Contains(found, "secret") {
				t.Fatalf("found %q", found)
			}
		}
		return nil
	})
}

// What is hidden stays so while a link on the way is changed between the check and the use.
func TestHiddenWhileLinksChange(t *testing.T) {
	unix(t)
	dir := t.TempDir()
	for _, own := range []string{"own", "own/sub"} {
		put(t, dir, own+"/a", "secret\n")
		put(t, dir, own+"/only", "secret\n")
	}
	put(t, dir, "free/a", "public\n")
	put(t, dir, "free/sub/a", "public\n")
	for link, to := range map[string]string{"x": "own", "y": "own/a"} { // otherwise Write makes a directory x
		must.Do(t, os.Symlink(to, filepath.Join(dir, link)))
	}
	during(t, true, dir, func(ctx context.Context, turn *turn) error {
		defer swap(t, func(n int) (err error) {
			target, next := []string{"own", "free"}[n%2], filepath.Join(dir, "next")
			for link, to := range map[string]string{"x": target, "y": target + "/a"} {
				err = errors.Join(err, os.Symlink(to, next), os.Rename(next, filepath.Join(dir, link)))
			}
			return err
		})()
		w := turn.State
		for n := range 800 {
			read, _ := w.Read(ctx, "x/a", 0, 0)
			inner, _ := w.Read(ctx, "x/sub/a", 0, 0)
			leaf, _ := w.Read(ctx, "y", 0, 0)
			listed, _ := w.List(ctx, "x")
			found := ""
			if n%10 == 0 {
				found, _ = w.Search(ctx, "x", ".")
			}
			_ = w.Write(ctx, "x/new", "x")
			_ = w.Write(ctx, "x/made/new", "x")
			_ = w.Write(ctx, "y", "public\n")
			if text := read + inner + leaf + listed + found; strings.Contains(text, "secret") || strings.Contains(text, "only") {
				t.Fatalf("attempt %d: read %q, %q and %q, listed %q, found %q", n, read, inner, leaf, listed, found)
			}
		}
		return nil
	})
	if text, err := os.ReadFile(filepath.Join(dir, "own", "a")); string(text) != "secret\n" || err != nil {
		t.Errorf("what is hidden is now %q, %v", text, err)
	}
	for _, name := range []string{"new", "made"} {
		if _, err := os.Lstat(filepath.Join(dir, "own", name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s was written: %v", name, err)
		}
	}
}

func TestEditAndReplace(t *testing.T) {
	both(t, func(t *testing.T, bare bool, dir string) {
		put(t, dir, "a.txt", "one two one")
		h := &host{asked: func() {}}
		h.run(t, bare, dir, func(ctx context.Context, turn *turn) error {
			w := turn.State
			tool := func(run func(call *agentkit.ToolCall) error) (err error) {
				ended := turn.Tool(ctx, acp.ToolKindEdit, "Edit", func(call *agentkit.ToolCall) error {
					err = run(call)
					return err
				})
				return errors.Join(err, ended)
			}
			edit := func(path, old, replacement string, all bool) error {
				return tool(func(call *agentkit.ToolCall) error { return w.Edit(ctx, call, path, old, replacement, all) })
			}
			replace := func(path, text string) error {
				return tool(func(call *agentkit.ToolCall) error { return w.Replace(ctx, call, path, text) })
			}
			for _, test := range []struct {
				path, old string
				want      string
			}{
				{"a.txt", "one", "2 times"}, {"a.txt", "three", "not in the file"}, {"a.txt", "", "not in the file"},
				{"none", "one", "not exist"}, {"../a.txt", "one", "outside"},
			} {
				if err := edit(test.path, test.old, "x", false); err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("Edit %q, %q: %v; want an error with %q", test.path, test.old, err, test.want)
				}
			}
			if err := replace("../a.txt", "x"); !errors.Is(err, local.ErrOutside) {
				t.Errorf("Replace outside: %v", err)
			}
			h.asked = func() { put(t, dir, "a.txt", "1 1 2") }
			if err := edit("a.txt", "two", "2", false); err == nil || !strings.Contains(err.Error(), "changed in the meantime") {
				t.Errorf("changed in the meantime: %v", err)
			}
			h.asked = nil // and the question is dismissed, which leaves the file as it is
			if err := edit("a.txt", "1", "x", true); !errors.Is(err, agentkit.ErrDismissed) {
				t.Errorf("dismissed: %v", err)
			}
			h.asked = func() {}
			return errors.Join(edit("a.txt", "1", "one", true), edit("a.txt", "2", "two", false), replace("sub/b.txt", "old"), replace("sub/b.txt", "new"))
		})
		for name, want := range map[string]string{"a.txt": "one one two", "sub/b.txt": "new"} {
			if text, err := os.ReadFile(filepath.Join(dir, name)); string(text) != want || err != nil {
				t.Errorf("%s has %q, %v", name, text, err)
			}
		}
		for _, call := range h.calls {
			if call.Status != acp.ToolCallStatusCompleted {
				continue
			}
			if diff, ok := call.Content[0].Variant.(*acp.ToolCallContentDiff); !ok || !filepath.IsAbs(diff.Path) {
				t.Errorf("%s shows %+v", call.Title, call.Content)
			}
		}
	})
}

func TestRun(t *testing.T) {
	unix(t)
	t.Setenv("WORKSPACE_SECRET", "key")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "key")
	both(t, func(t *testing.T, bare bool, dir string) {
		h := during(t, bare, dir, func(ctx context.Context, turn *turn) error {
			return turn.Tool(ctx, acp.ToolKindExecute, "Run", func(call *agentkit.ToolCall) error {
				shell := local.DefaultShell()
				req := &acp.CreateTerminalRequest{Command: shell[0], Args: append(shell[1:], "pwd; echo key=$WORKSPACE_SECRET$ANTHROPIC_AUTH_TOKEN; exit 3")}
				res, err := turn.State.Run(ctx, call, req)
				if err != nil {
					return err
				}
				want := dir + "\nkey=\n"
				if !bare {
					want = dir + "\nkey=keykey\n" // the client's environment is its own
				}
				if res.Output != want || res.ExitStatus.Value().ExitCode.Value() != 3 {
					t.Errorf("it printed %q, and ended with %+v", res.Output, res.ExitStatus.Value())
				}
				return nil
			})
		})
		for _, call := range h.calls {
			text := call.Content[0].Text()
			_, terminal := call.Content[0].Variant.(*acp.ToolCallContentTerminal)
			if terminal == bare || bare && text != "```\n"+dir+"\nkey=\n```" {
				t.Errorf("the call shows %q, %+v", text, call.Content)
			}
		}
	})
}

// A command that takes too long is killed with the processes that it has started, which would keep its output open.
func TestRunTooLong(t *testing.T) {
	unix(t)
	both(t, func(t *testing.T, bare bool, dir string) {
		late := errors.New("too late")
		during(t, bare, dir, func(ctx context.Context, turn *turn) error {
			return turn.Tool(ctx, acp.ToolKindExecute, "Run", func(call *agentkit.ToolCall) error {
				short, cancel := context.WithTimeoutCause(ctx, 200*time.Millisecond, late)
				defer cancel()
				shell := local.DefaultShell()
				req := &acp.CreateTerminalRequest{Command: shell[0], Args: append(shell[1:], "echo begun; sleep 100 & sleep 100")}
				res, err := turn.State.Run(short, call, req)
				if !errors.Is(err, late) || res == nil || !strings.HasPrefix("begun\n", res.Output) {
					t.Errorf("%+v, %v", res, err)
				}
				return nil
			})
		})
	})
}

// The user is asked before a command line runs, and the answer takes none of its time.
func TestShell(t *testing.T) {
	unix(t)
	both(t, func(t *testing.T, bare bool, dir string) {
		asked := 0
		h := &host{asked: func() {
			if asked++; asked == 3 {
				time.Sleep(150 * time.Millisecond)
			}
		}}
		defer func() {
			if asked != 3 {
				t.Errorf("asked %d times", asked)
			}
		}()
		h.run(t, bare, dir, func(ctx context.Context, turn *turn) error {
			for _, test := range []struct {
				line  string
				limit time.Duration
				out   string
				err   string
			}{
				{"echo a | tr a b", time.Minute, "b\n", "<nil>"}, {"echo a; exit 3", time.Minute, "a\n", "exit status 3"},
				{"echo a; exec sleep 100", 100 * time.Millisecond, "a\n", "stopped after 100ms"},
			} {
				err := turn.Tool(ctx, acp.ToolKindExecute, "Run", func(call *agentkit.ToolCall) error {
					out, err := turn.State.Shell(ctx, call, test.line, test.limit)
					if out != test.out || !strings.HasPrefix(fmt.Sprint(err), test.err) {
						t.Errorf("%s: %q, %v; want %q, %s", test.line, out, err, test.out, test.err)
					}
					return err
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// Clients have many errors for a missing file.
func TestMissingFile(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "here", "x")
	h := &host{read: func(context.Context, *acp.ClientSession, *acp.ReadTextFileRequest) (*acp.ReadTextFileResponse, error) {
		return nil, acp.Public(errors.New("it failed"))
	}}
	h.run(t, false, dir, func(ctx context.Context, turn *turn) error {
		if _, err := turn.State.Read(ctx, "none", 0, 0); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a missing file: %v", err)
		}
		if _, err := turn.State.Read(ctx, "here", 0, 0); err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "it failed") {
			t.Errorf("a file that the client does not read: %v", err)
		}
		return nil
	})
}

func TestDescribe(t *testing.T) {
	both(t, func(t *testing.T, bare bool, dir string) {
		during(t, bare, dir, func(ctx context.Context, turn *turn) error {
			place := "Operating system: " + runtime.GOOS + "\nWorking directory: " + dir + "\n"
			if got := turn.State.Describe(ctx); got != place {
				t.Errorf("without AGENTS.md: %q", got)
			}
			guide := filepath.Join(dir, "AGENTS.md")
			put(t, dir, "AGENTS.md", "Use tabs.")
			if got, want := turn.State.Describe(ctx), place+"\n"+guide+" says:\nUse tabs.\n"; got != want {
				t.Errorf("with AGENTS.md: %q, want %q", got, want)
			}
			put(t, dir, "AGENTS.md", strings.Repeat("x", 1<<20))
			if got := len(turn.State.Describe(ctx)); got > 66<<10 {
				t.Errorf("with a long AGENTS.md: %d bytes", got)
			}
			if err := errors.Join(os.Remove(guide), os.Mkdir(guide, 0o700)); err != nil {
				return err
			}
			if got := turn.State.Describe(ctx); !strings.Contains(got, guide+" cannot be read: ") {
				t.Errorf("with a directory: %q", got)
			}
			return nil
		})
	})
}

func TestAttach(t *testing.T) {
	both(t, func(t *testing.T, bare bool, dir string) {
		put(t, dir, "a b.txt", "x")
		put(t, dir, "a.txt", "the text")
		during(t, bare, dir, func(ctx context.Context, turn *turn) error {
			prompt := &acp.PromptRequest{Prompt: []acp.ContentBlock{acp.TextBlock("Look at @a.txt, @none, @../b and me@a.txt")}}
			blocks, err := turn.State.Attach(ctx, prompt)
			if err != nil || len(blocks) != 1 {
				t.Fatalf("%+v, %v", blocks, err)
			}
			want := fmt.Sprintf("<resource uri=%q>\nthe text\n</resource>", "file://"+filepath.ToSlash(filepath.Join(dir, "a.txt")))
			if text := agentkit.ContentText(blocks...); runtime.GOOS != "windows" && text != want {
				t.Errorf("%s, want %s", text, want)
			}
			return nil
		})
	})
}

func TestOpenMissing(t *testing.T) { during(t, true, filepath.Join(t.TempDir(), "none"), nil) }

func unix(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: the commands are those of Unix")
	}
}
