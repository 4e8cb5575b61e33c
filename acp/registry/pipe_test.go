//go:build unix

package registry_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/acpgo/sdk/internal/test/must"
)

// TestPipes: nothing waits for a file that is a pipe, which nobody writes.
func TestPipes(t *testing.T) {
	pipe := func(name string) {
		t.Helper()
		must.Do(t, os.MkdirAll(filepath.Dir(name), 0o700))
		must.Do(t, syscall.Mkfifo(name, 0o600))
	}
	s := newServer(t)
	s.set()
	c := s.client(t)
	pipe(filepath.Join(c.Dir, "registry.json"))
	pipe(filepath.Join(c.Dir, "agents", "one", "installed.json"))
	if list, err := c.List(t.Context()); err != nil || list == nil {
		t.Errorf("got %v, %v", list, err)
	}
	if _, err := c.Find("one"); err == nil {
		t.Error("it is installed")
	}
}
