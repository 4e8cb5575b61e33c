//go:build unix

package sessionstore_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/sessionstore"
)

// What is no regular file is not waited for, not followed and not replaced.
func TestNotRegular(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("as it was"), 0o600); err != nil {
		t.Fatal(err)
	}
	store, reported := watched(t, dir, sessionstore.Options{})
	create(t, store, "real", "one")
	create(t, store, "log-fifo")
	create(t, store, "log-link")
	fifo := func(name string) {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := func(name, to string) {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	fifo("s-fifo.json")
	fifo("s-log-fifo.jsonl")
	fifo("s-orphan.jsonl")
	link("s-link.json", outside)
	link("s-inner.json", "s-real.json")
	link("s-zero.json", "/dev/zero")
	link("s-log-link.jsonl", outside)
	link("s-dangling.json", filepath.Join(filepath.Dir(outside), "none"))
	link("s-real.new", outside)
	ctx := t.Context()

	if got := listed(t, store); !slices.Equal(got, []acp.SessionID{"real", "log-link", "log-fifo"}) {
		t.Errorf("listed are %q", got)
	}
	if reports := reported(); len(reports) != 5 {
		t.Errorf("reported are %v", reports)
	}
	for _, id := range []acp.SessionID{"fifo", "link", "inner", "zero", "dangling"} {
		if _, err := store.Get(ctx, id); err == nil || errors.Is(err, sessionstore.ErrNotFound) {
			t.Errorf("getting %s: %v", id, err)
		}
		if err := store.Create(ctx, sessionstore.Record{Info: sessionstore.Info{ID: id}}); err == nil {
			t.Errorf("%s was replaced", id)
		}
	}
	for _, id := range []acp.SessionID{"fifo", "link", "log-fifo", "log-link", "dangling"} {
		if err := store.Append(ctx, id, acp.AgentMessageText("x")); err == nil {
			t.Errorf("%s was appended to", id)
		}
		for _, err := range store.Updates(ctx, id) {
			if err == nil {
				t.Errorf("%s has updates", id)
			}
		}
	}
	// What is in the way of a new file is replaced, and not written through.
	if err := store.Change(ctx, "real", func(r *sessionstore.Record) error { r.Title = "T"; return nil }); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != "as it was" {
		t.Errorf("outside there is %q, %v", text, err)
	}
	// A deletion takes away the names, and not what they lead to.
	for _, id := range []acp.SessionID{"link", "fifo", "log-link", "log-fifo"} {
		if err := store.Delete(ctx, id); err != nil {
			t.Error(err)
		}
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != "as it was" {
		t.Errorf("outside there is %q, %v", text, err)
	}
}

func TestLockIsAPipe(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "lock-0"), 0o600); err != nil {
		t.Fatal(err)
	}
	if store, err := sessionstore.Open(dir, nil); err == nil {
		store.Close()
		t.Error("opened")
	}
}

func TestPermissions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "store")
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	store, _ := watched(t, dir, sessionstore.Options{Sync: true})
	create(t, store, "s", "one")
	for path := dir; len(path) > len(filepath.Dir(filepath.Dir(dir))); path = filepath.Dir(path) {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s has the mode %v, %v", path, info.Mode(), err)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if info, err := file.Info(); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s has the mode %v, %v", file.Name(), info.Mode(), err)
		}
	}
	for _, mode := range []os.FileMode{0o770, 0o702, 0o777 | os.ModeSticky} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if store, err := sessionstore.Open(dir, nil); err == nil || !strings.Contains(err.Error(), "others may write") {
			t.Errorf("a folder with the mode %v: %v", mode, err)
			if err == nil {
				store.Close()
			}
		}
	}
}
