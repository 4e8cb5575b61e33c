package sessionstore_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/acp/sessionstore/storetest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

func TestMemory(t *testing.T) {
	tier.Need(t, tier.Normal)
	memories := sessionstore.Memories()
	storetest.Run(t, func(_ testing.TB, dir string) sessionstore.Store { return memories(dir) })
}

func TestMemoryIsBounded(t *testing.T) {
	tier.Need(t, tier.Full)
	store := sessionstore.Memories()("")
	create(t, store, "s")
	create(t, store, "t")
	long := acp.AgentMessageText(strings.Repeat("x", 100<<20))
	for _, id := range []acp.SessionID{"s", "t"} {
		must.Do(t, store.Append(t.Context(), id, long))
	}
	if err := store.Append(t.Context(), "t", long); !errors.Is(err, sessionstore.ErrTooLarge) {
		t.Errorf("a third long update: %v", err)
	}
	if err := errors.Join(store.Delete(t.Context(), "s"), store.Append(t.Context(), "t", long)); err != nil {
		t.Errorf("after a session was deleted: %v", err)
	}
}

// An agent works wherever it is started: where there is no directory for its state, or none that it can use, OpenApp warns
// and returns a store in memory.
func TestOpenApp(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: the variables and modes are those of Linux")
	}
	file := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(file, nil, 0o600))
	shared := t.TempDir()
	must.Do(t, os.MkdirAll(filepath.Join(shared, ".local", "state", "app", "sessions"), 0o700))
	must.Do(t, os.Chmod(filepath.Join(shared, ".local", "state", "app", "sessions"), 0o777))
	for _, test := range []struct {
		name, home, state, dir string
		memory                 bool
	}{
		{name: "no home", memory: true},
		{name: "a home", home: t.TempDir()},
		{name: "a home that is a file", home: file, memory: true},
		{name: "a home that cannot be created", home: filepath.Join(file, "none"), memory: true},
		{name: "a directory that others can write to", home: shared, memory: true},
		{name: "no home but a directory for state", state: t.TempDir()},
		{name: "a directory for state that is a file", home: t.TempDir(), state: file, memory: true},
		{name: "a directory", dir: t.TempDir()},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("HOME", test.home)
			t.Setenv("XDG_STATE_HOME", test.state)
			var log bytes.Buffer
			defer slog.SetDefault(slog.Default())
			slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
			store, used, err := sessionstore.OpenApp("app", test.dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			create(t, store, "s", "text")
			if got := readAll(t, store); len(got["s"]) == 0 {
				t.Error("the session was not kept")
			}
			if err := store.Close(); err != nil {
				t.Error(err)
			}
			if test.memory != (used == "") || test.memory != strings.Contains(log.String(), "level=WARN") {
				t.Errorf("the directory is %q, and the log %q", used, log.String())
			}
		})
	}
	if _, _, err := sessionstore.OpenApp("app", file, nil); err == nil {
		t.Error("a file was used as the directory")
	}
	if _, _, err := sessionstore.OpenApp("a/b", "", nil); err == nil {
		t.Error("the name of the program is not valid")
	}
}
