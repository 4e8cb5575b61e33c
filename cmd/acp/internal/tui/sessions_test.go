package tui

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
)

func TestFindings(t *testing.T) {
	inWorld(t, acp.AgentHandlers{}, func(o *Options) { o.Talk.Findings = func(conformance.Finding) {} }, func(w *world) {
		w.settle()
		w.want("0 findings")
		hooks{w.m.mail.put}.options(w.m.opts).Findings(conformance.Finding{Rule: "SES-7", Message: "it is wrong \x1b[2J"})
		w.sleep(time.Second)
		w.want("1 finding")
		w.key("alt+v")
		w.want("Findings: 1", "SES-7", "it is wrong")
		w.key("esc")
		w.want("ready")
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
