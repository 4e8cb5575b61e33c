package names

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/internal/filelock"
	"github.com/acpgo/sdk/internal/test/must"
)

// Names are stored for an agent and a directory, and locked while they are in use.
func TestStore(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	s := must.Get(Default())(t)
	a, b := Key{"agent", "/one", "fix"}, Key{"agent", "/two", "fix"}
	if id, err := s.Get(a); id != "" || err != nil {
		t.Errorf("got %q, %v", id, err)
	}
	for k, id := range map[Key]acp.SessionID{a: "s1", b: "s2"} {
		must.Do(t, s.Set(k, "old"))
		must.Do(t, s.Set(k, id))
	}
	if id, err := s.Get(a); id != "s1" || err != nil {
		t.Errorf("got %q, %v", id, err)
	}
	must.Do(t, s.Set(Key{"other", "/two", "more"}, "s3"))
	if list, err := s.List("/two"); err != nil || len(list) != 2 || list[0].Name != "more" || list[1].Session != "s2" || list[1].Name != "fix" {
		t.Errorf("of all agents: %v, %v", list, err)
	}
	if id, err := s.Get(Key{"agent", "/one/./", "fix"}); id != "s1" || err != nil {
		t.Errorf("by another path: got %q, %v", id, err)
	}
	lock := must.Get(s.Lock(a))(t)
	if _, err := s.Lock(a); !errors.Is(err, filelock.ErrLocked) {
		t.Errorf("locked twice: %v", err)
	}
	must.Do(t, lock.Unlock())
	must.Do(t, os.WriteFile(s.file(a)+".json", []byte("{"), 0o600))
	if _, err := s.Get(a); err == nil {
		t.Error("a torn file was read")
	}
	left, err := filepath.Glob(filepath.Join(s.Dir, "new-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
