package tui

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/internal/test/must"
)

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
