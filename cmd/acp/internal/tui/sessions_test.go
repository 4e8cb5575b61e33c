package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
)

// library is an agent that stores sessions.
type library struct {
	mu      sync.Mutex
	stored  []acp.SessionInfo
	loaded  []string
	deleted []string
	conn    *acp.AgentConn
}

func (l *library) handlers() acp.AgentHandlers {
	return acp.AgentHandlers{
		NewSession: func(_ context.Context, c *acp.AgentConn, req *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.conn = c
			return &acp.NewSessionResponse{SessionID: "new"}, nil
		},
		LoadSession: func(ctx context.Context, s *acp.AgentSession, req *acp.LoadSessionRequest) (*acp.LoadSessionResponse, error) {
			l.mu.Lock()
			l.loaded = append(l.loaded, fmt.Sprintf("%s in %s", s.ID(), req.Cwd))
			l.conn = s.Conn()
			l.mu.Unlock()
			if err := s.Update(ctx, acp.UserMessageText("Old question.")); err != nil {
				return nil, err
			}
			return &acp.LoadSessionResponse{}, s.Update(ctx, acp.AgentMessageText("Old answer of "+string(s.ID())+"."))
		},
		ListSessions: func(_ context.Context, _ *acp.AgentConn, req *acp.ListSessionsRequest) (*acp.ListSessionsResponse, error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			res := &acp.ListSessionsResponse{Sessions: []acp.SessionInfo{}}
			for _, s := range l.stored {
				if cwd, ok := req.Cwd.Get(); !ok || cwd == s.Cwd {
					res.Sessions = append(res.Sessions, s)
				}
			}
			return res, nil
		},
		DeleteSession: func(_ context.Context, _ *acp.AgentSession, req *acp.DeleteSessionRequest) (*acp.DeleteSessionResponse, error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.deleted = append(l.deleted, string(req.SessionID))
			return &acp.DeleteSessionResponse{}, nil
		},
	}
}

// store stores two sessions of a folder, and one of another.
func (l *library) store(dir string, now time.Time) {
	at := func(d time.Duration) acp.Opt[string] { return acp.Some(now.Add(-d).UTC().Format(time.RFC3339)) }
	l.stored = []acp.SessionInfo{
		{SessionID: "older", Cwd: dir, Title: acp.Some("The older one"), UpdatedAt: at(3 * time.Hour)},
		{SessionID: "newer", Cwd: dir, Title: acp.Some("The newer one"), UpdatedAt: at(5 * time.Minute)},
		{SessionID: "elsewhere", Cwd: os.TempDir(), Title: acp.Some("Elsewhere"), UpdatedAt: at(72 * time.Hour)},
	}
}

func (l *library) want(t *testing.T, what *[]string, want ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if strings.Join(*what, "; ") != strings.Join(want, "; ") {
		t.Fatalf("got %q, want %q", *what, want)
	}
}

func TestStoredSessions(t *testing.T) {
	l := &library{}
	inWorld(t, l.handlers(), func(o *Options) { l.store(o.Talk.Cwd, time.Now()) }, func(w *world) {
		dir := w.m.opts.Talk.Cwd
		w.settle()
		w.key("ctrl+r")
		w.sleep(time.Second)
		w.want("Stored sessions of", "5 min     The newer one", "3 h       The older one")
		w.wantNot("Elsewhere")
		w.key("ctrl+a")
		w.sleep(time.Second)
		w.want("Elsewhere", "3 days")
		w.typ("older")
		w.wantNot("newer")
		w.key("ctrl+x")
		w.want("Delete The older one?", "keep it")
		w.key("enter") // keep it
		l.want(t, &l.deleted)
		w.key("ctrl+x", "down", "enter")
		w.sleep(time.Second)
		l.want(t, &l.deleted, "older")
		w.wantNot("The older one")
		for range 5 {
			w.key("backspace")
		}
		w.key("enter")
		w.sleep(time.Second)
		l.want(t, &l.loaded, "newer in "+dir)
		w.want("Old question.", "Old answer of newer.")
		w.key("ctrl+s")
		w.want("Old question.")
	})
}

func TestContinue(t *testing.T) {
	l := &library{}
	inWorld(t, l.handlers(), func(o *Options) { l.store(o.Talk.Cwd, time.Now()); o.Start.Continue = true }, func(w *world) {
		w.sleep(time.Second)
		l.want(t, &l.loaded, "newer in "+w.m.opts.Talk.Cwd)
		w.want("Old answer of newer.")
	})
	inWorld(t, (&library{}).handlers(), func(o *Options) { o.Start.Continue = true }, func(w *world) {
		w.sleep(time.Second)
		w.want("has no session to continue", "ready")
	})
}

func TestRenameCloseExport(t *testing.T) {
	inWorld(t, acp.AgentHandlers{}, nil, func(w *world) {
		w.settle()
		w.say("hello")
		w.sleep(time.Second)
		w.key("ctrl+n")
		w.sleep(time.Second)
		w.key("ctrl+s")
		w.key("up", "r")
		w.want("Title of the session")
		for range len("hello") {
			w.key("backspace")
		}
		w.typ("My title")
		w.key("enter")
		w.want("Open sessions", "My title")
		w.key("x")
		w.sleep(time.Second)
		w.wantNot("My title")
		w.key("esc", "alt+left")
		w.say("to be written")
		w.sleep(time.Second)
		w.key("alt+e")
		w.want("Write the session to")
		w.key("enter")
		w.sleep(time.Second)
		w.want("Written to")
		files, _ := filepath.Glob(filepath.Join(w.m.opts.Talk.Cwd, "session-*.txt"))
		if len(files) != 1 {
			t.Fatalf("files: %v", files)
		}
		text, err := os.ReadFile(files[0])
		if err != nil || !strings.Contains(string(text), "You said: to be written") {
			t.Errorf("%s %v", text, err)
		}
	})
}

// TestAgentEnds: when an agent ends, the reason is shown, and a key restarts it and restores the session.
func TestAgentEnds(t *testing.T) {
	l := &library{}
	inWorld(t, l.handlers(), func(o *Options) { o.Talk.NoReconnect = true }, func(w *world) {
		w.settle()
		w.say("hello")
		w.typ("draft")
		w.sleep(time.Second)
		w.m.mail.put(eventMsg{Kind: talk.Stderr, Text: "my last \x1b[2Jwords"})
		l.mu.Lock()
		conn := l.conn
		l.mu.Unlock()
		w.running.Go(func() { _ = conn.Close() })
		w.sleep(2 * time.Second)
		w.want("tester has ended", "r restart it", "my last", "agent ended", "> draft")
		w.key("r") // is typed, because there is a draft
		w.want("> draftr")
		w.key("ctrl+g", "r")
		w.sleep(2 * time.Second)
		w.want("The agent is back", "Old answer of new.", "> draftr")
		w.wantNot("has ended")
		l.want(t, &l.loaded, "new in "+w.m.opts.Talk.Cwd)
	})
}

func TestLogin(t *testing.T) {
	var mu sync.Mutex
	loggedIn := false
	handlers := acp.AgentHandlers{
		Authenticate: func(context.Context, *acp.AgentConn, *acp.AuthenticateRequest) (*acp.AuthenticateResponse, error) {
			mu.Lock()
			defer mu.Unlock()
			loggedIn = true
			return &acp.AuthenticateResponse{}, nil
		},
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			mu.Lock()
			defer mu.Unlock()
			if !loggedIn {
				return nil, acp.ErrAuthRequired
			}
			return &acp.NewSessionResponse{SessionID: "s"}, nil
		},
	}
	inWorld(t, handlers, nil, func(w *world) {
		w.sleep(time.Second)
		w.want("login methods", "In the browser")
		w.key("esc")
		w.wantNot("login methods")
		w.key("ctrl+n")
		w.sleep(time.Second)
		w.want("login methods")
		w.key("enter")
		w.sleep(time.Second)
		w.want("ready")
		w.say("hello")
		w.sleep(time.Second)
		w.want("You said: hello")
	})
}

// settings is an agent with modes and options.
func settings() acp.AgentHandlers {
	options := func(model acp.SessionConfigValueID, fast bool) []acp.SessionConfigOption {
		m := acp.SelectOption("model", "Model", model, acp.SelectValue("opal", "Opal"), acp.SelectValue("onyx", "Onyx"))
		m.Category = acp.Some(acp.SessionConfigOptionCategoryModel)
		return []acp.SessionConfigOption{m, acp.BooleanOption("fast", "Fast", fast)}
	}
	var mu sync.Mutex
	model, fast := acp.SessionConfigValueID("opal"), false
	return acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{
				SessionID:     "s",
				Modes:         acp.Some(acp.SessionModeState{CurrentModeID: "ask", AvailableModes: []acp.SessionMode{{ID: "ask", Name: "Ask first"}, {ID: "auto", Name: "Do it"}}}),
				ConfigOptions: acp.Some(options(model, fast)),
			}, nil
		},
		SetSessionMode: func(context.Context, *acp.AgentSession, *acp.SetSessionModeRequest) (*acp.SetSessionModeResponse, error) {
			return &acp.SetSessionModeResponse{}, nil
		},
		SetSessionConfigOption: func(_ context.Context, _ *acp.AgentSession, req *acp.SetSessionConfigOptionRequest) (*acp.SetSessionConfigOptionResponse, error) {
			mu.Lock()
			defer mu.Unlock()
			switch v := req.Variant.(type) {
			case *acp.SetSessionConfigOptionRequestValueID:
				model = v.Value
			case *acp.SetSessionConfigOptionRequestBoolean:
				fast = v.Value
			}
			return &acp.SetSessionConfigOptionResponse{ConfigOptions: options(model, fast)}, nil
		},
	}
}

func TestSettings(t *testing.T) {
	inWorld(t, settings(), nil, func(w *world) {
		w.settle()
		w.want("Ask first", "Opal")
		w.key("alt+m")
		w.want("Mode", "* Ask first", "Do it")
		w.typ("doit")
		w.wantNot("* Ask first")
		w.key("enter")
		w.sleep(time.Second)
		w.want("· Do it")
		w.key("shift+tab")
		w.sleep(time.Second)
		w.want("· Ask first")
		w.key("ctrl+l")
		w.typ("nyx")
		w.key("enter")
		w.sleep(time.Second)
		w.want("· Onyx")
		w.key("alt+o")
		w.want("Fast: off", "Model: Onyx")
		w.typ("fast")
		w.key("enter")
		w.sleep(time.Second)
		w.want("Fast: on")
		w.key("esc", "ctrl+p")
		w.typ("next-mode")
		w.key("enter")
		w.sleep(time.Second)
		w.want("· Do it")
	})
}

func TestFindings(t *testing.T) {
	inWorld(t, acp.AgentHandlers{}, func(o *Options) { o.Talk.Findings = func(conformance.Finding) {} }, func(w *world) {
		w.settle()
		w.want("0 findings")
		w.m.mail.put(foundMsg(conformance.Finding{Rule: "SES-7", Message: "it is wrong \x1b[2J"}))
		w.sleep(time.Second)
		w.want("1 finding")
		w.key("alt+v")
		w.want("Findings: 1", "SES-7", "it is wrong")
		w.key("esc")
		w.want("ready")
	})
}

// TestNarrow: every screen is usable with 20 columns: nothing is wider, and the keys are visible.
func TestNarrow(t *testing.T) {
	a := &asker{}
	h := settings()
	h.Prompt = a.prompt
	inWorld(t, h, nil, func(w *world) {
		w.update(tea.WindowSizeMsg{Width: 20, Height: 12})
		w.settle()
		w.want("ready")
		for _, key := range []string{"alt+m", "alt+o", "ctrl+l", "ctrl+s", "f1", "ctrl+p", "alt+n", "alt+e", "alt+f"} {
			w.key(key)
			w.screen()
			w.key("esc")
		}
		w.say("a prompt that is longer than the screen is wide")
		w.sleep(2 * time.Second)
		w.want("y  allow once", "N  reject alwa", "asks")
		w.key("y")
		w.sleep(time.Second)
		w.want("Thank you.")
		a.want(t, "once")
	})
}

// TestKeysAreUnique: no key has two actions on one screen.
func TestKeysAreUnique(t *testing.T) {
	for _, s := range allKeys() {
		used := map[string]string{}
		for _, b := range s.keys {
			for _, k := range b.keys {
				if before, ok := used[k]; ok && (s.screen == "Conversation" || before != b.about) {
					t.Errorf("%s: %s: %s, and %s", s.screen, k, before, b.about)
				}
				used[k] = b.about
			}
		}
	}
}

// TestForkAndRename: sessions are forked and renamed if the agent supports it.
func TestForkAndRename(t *testing.T) {
	var mu sync.Mutex
	var calls []string
	note := func(call string) {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, call)
	}
	handlers := acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: "first"}, nil
		},
		ForkSession: func(_ context.Context, s *acp.AgentSession, _ *acp.ForkSessionRequest) (*acp.ForkSessionResponse, error) {
			note("fork " + string(s.ID()))
			return &acp.ForkSessionResponse{SessionID: "copy"}, nil
		},
		SetSessionTitle: func(_ context.Context, s *acp.AgentSession, req *acp.SetSessionTitleRequest) (*acp.SetSessionTitleResponse, error) {
			note("title of " + string(s.ID()) + ": " + req.Title)
			return &acp.SetSessionTitleResponse{}, nil
		},
		ResumeSession: func(context.Context, *acp.AgentSession, *acp.ResumeSessionRequest) (*acp.ResumeSessionResponse, error) {
			return &acp.ResumeSessionResponse{}, nil
		},
	}
	inWorld(t, handlers, nil, func(w *world) {
		w.sleep(time.Second)
		w.key("ctrl+s", "f")
		w.sleep(2 * time.Second)
		w.want("A copy of New session")
		w.key("ctrl+s", "r")
		w.key("ctrl+u")
		w.typ("Another way")
		w.key("enter")
		w.sleep(time.Second)
		w.want("Another way")
		mu.Lock()
		defer mu.Unlock()
		if got := strings.Join(calls, "; "); got != "fork first; title of copy: Another way" {
			t.Errorf("calls: %s", got)
		}
	})
}

func TestForkIsRefused(t *testing.T) {
	inWorld(t, acp.AgentHandlers{}, nil, func(w *world) {
		w.settle()
		w.key("ctrl+s", "f")
		w.key("esc")
		w.want("The agent cannot fork sessions.")
		w.key("ctrl+s", "D", "esc")
		w.want("The agent cannot delete sessions.")
	})
}

// write writes a file in the watched directory.
func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestWatchFiles(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	write(t, dir, ".gitignore", "*.log\nnode_modules\n")
	write(t, dir, "main.go", "package main")
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var changes atomic.Int32
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			watchFiles(ctx, dir, func() { changes.Add(1) })
		}()
		count := func(what string, want int32) {
			t.Helper()
			time.Sleep(5 * watchTime)
			if got := changes.Swap(0); got != want {
				t.Errorf("%s: %d changes reported, want %d", what, got, want)
			}
		}
		time.Sleep(watchTime / 2) // no write is at the time of a look
		count("nothing", 0)
		write(t, dir, "main.go", "package main // changed")
		count("a write", 1)
		for _, name := range []string{"a.go", "sub/b.go", "sub/deep/c.go"} {
			write(t, dir, name, "package a")
		}
		count("new files", 1)
		must.Do(t, os.Remove(filepath.Join(dir, "a.go")))
		count("a removal", 1)
		for _, name := range []string{"run.log", "sub/run.log", ".hidden", ".git/noise", "node_modules/x/index.js"} {
			write(t, dir, name, "noise")
		}
		count("ignored files", 0)
		for i := range 6 { // while files keep changing, nothing is reported
			write(t, dir, "main.go", "package main // "+string(make([]byte, i)))
			time.Sleep(watchTime)
		}
		if n := changes.Load(); n != 0 {
			t.Errorf("%d changes reported while files change", n)
		}
		count("the end of it", 1)
		stop()
		<-ended
	})
}

// A changed file restarts the agent after its turn. The prompts that wait are sent to the new one.
func TestWatchRestarts(t *testing.T) {
	l := &library{}
	handlers := l.handlers()
	var gate chan struct{}
	handlers.Prompt = func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
		if text := req.Prompt[0].Text(); text == "long" {
			<-gate
		}
		return echo(ctx, s, req)
	}
	dir := t.TempDir()
	inWorld(t, handlers, func(o *Options) {
		gate = make(chan struct{}) // of this bubble
		o.Watch, o.Talk.NoReconnect = dir, true
	}, func(w *world) {
		w.settle()
		w.say("hello")
		w.want("You said: hello")
		write(t, dir, "main.go", "1")
		w.sleep(3 * time.Second)
		w.want("Old answer of new.", "The agent is back")
		w.wantNot("has ended")
		l.want(t, &l.loaded, "new in "+w.m.opts.Talk.Cwd)

		w.say("long")
		w.say("next")
		write(t, dir, "main.go", "22")
		w.sleep(5 * time.Second)
		l.want(t, &l.loaded, "new in "+w.m.opts.Talk.Cwd)
		close(gate)
		w.sleep(3 * time.Second)
		l.want(t, &l.loaded, "new in "+w.m.opts.Talk.Cwd, "new in "+w.m.opts.Talk.Cwd)
		w.want("You said: next")
		w.wantNot("has ended")
	})
}

// An agent that cannot load sessions gets a new one.
func TestWatchWithoutLoad(t *testing.T) {
	dir := t.TempDir()
	inWorld(t, acp.AgentHandlers{}, func(o *Options) { o.Watch, o.Talk.NoReconnect = dir, true }, func(w *world) {
		w.settle()
		w.say("hello")
		w.want("You said: hello")
		for _, text := range []string{"1", "22"} {
			write(t, dir, "main.go", text)
			w.sleep(3 * time.Second)
			w.say("hello " + text)
			w.want("You said: hello " + text)
			if n := len(w.m.chats); n != 1 {
				t.Errorf("%d sessions are open", n)
			}
		}
	})
}

// A prompt that is sent while the agent restarts reaches the next version, whether it loads the session or gets a new one.
func TestWatchPromptWhileRestarting(t *testing.T) {
	for name, handlers := range map[string]acp.AgentHandlers{"load": (&library{}).handlers(), "new": {}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			inWorld(t, handlers, func(o *Options) {
				o.Watch, o.Talk.NoReconnect = dir, true
				connect := o.Talk.Agent.Connect
				o.Talk.Agent.Connect = func(ctx context.Context) (acp.Transport, error) {
					time.Sleep(5 * time.Second) // it is compiled
					return connect(ctx)
				}
			}, func(w *world) {
				w.sleep(6 * time.Second)
				write(t, dir, "main.go", "1")
				w.sleep(3 * time.Second)
				w.want("Restarting the agent")
				w.say("meanwhile")
				w.typ("draft")
				w.sleep(10 * time.Second)
				w.want("You said: meanwhile", "draft")
			})
		})
	}
}

// A version that does not start is shown, and the next change tries again: at first and later.
func TestWatchBrokenVersion(t *testing.T) {
	dir := t.TempDir()
	var broken atomic.Bool
	broken.Store(true)
	inWorld(t, acp.AgentHandlers{}, func(o *Options) {
		o.Watch, o.Talk.NoReconnect = dir, true
		connect := o.Talk.Agent.Connect
		o.Talk.Agent.Connect = func(ctx context.Context) (acp.Transport, error) {
			if broken.Load() {
				return nil, errors.New("undefined: foo")
			}
			return connect(ctx)
		}
	}, func(w *world) {
		for _, text := range []string{"1", "22"} {
			w.sleep(3 * time.Second)
			w.want("has ended", "undefined: foo")
			broken.Store(false)
			write(t, dir, "main.go", text)
			w.sleep(3 * time.Second)
			w.wantNot("has ended")
			w.say("hello " + text)
			w.want("You said: hello " + text)
			broken.Store(true)
			write(t, dir, "main.go", text+text+text)
		}
	})
}

// writeFiles creates files in a directory.
func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		must.Do(t, os.MkdirAll(filepath.Dir(file), 0o700))
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	}
}

// offered returns the files of a directory that are offered.
func offered(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	for _, it := range findFiles(t.Context(), dir, time.Now()).items {
		names = append(names, strings.Trim(strings.TrimPrefix(it.value.(string), "@"), `"`))
	}
	slices.Sort(names)
	return names
}

// TestIgnoredFiles: files that Git ignores and hidden files are not offered, in a repository and below its root, nor are
// packages elsewhere.
func TestIgnoredFiles(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"plain/build/x": "", "plain/.gitignore": "build\n", "plain/node_modules/y": "", "plain/.hidden/z": "",
		"repo/.gitignore": "/build/\n*.log\n!keep.log\n", "repo/.github/ci.yml": "",
		"repo/main.go": "", "repo/build/out": "", "repo/src/build/kept": "", "repo/a.log": "", "repo/keep.log": "",
	})
	if out, err := exec.Command("git", "init", "-q", filepath.Join(dir, "repo")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, test := range []struct {
		dir  string
		want []string
	}{
		{"repo", []string{"keep.log", "main.go", "src/build/kept"}},
		{"repo/src", []string{"build/kept"}},
		{"plain", []string{"build/x"}}, // not a repository
	} {
		if got := offered(t, filepath.Join(dir, test.dir)); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.dir, got, test.want)
		}
	}
}
