package local

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/must"
)

// anySession reaches the directories of OpenRoots.
type anySession struct{}

func (anySession) ID() acp.SessionID { return "s" }
func (anySession) RPC() *rpc.Conn    { return nil }

func TestFind(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	put(t, filepath.Join(dir, "sub", "a.txt"), "a")
	put(t, filepath.Join(outside, "secret"), "x")
	link(t, outside, filepath.Join(dir, "out"))
	link(t, "sub", filepath.Join(dir, "in"))
	roots := must.Get(OpenRoots(dir))(t)
	defer roots.Close()
	for path, want := range map[string]struct {
		name string
		err  error
	}{
		dir:                                 {name: "."},
		filepath.Join(dir, "sub"):           {name: "sub"},
		filepath.Join(dir, "sub", "a.txt"):  {name: "sub/a.txt"},
		filepath.Join(dir, "in", "a.txt"):   {name: "in/a.txt"},
		filepath.Join(dir, "none", "a.txt"): {name: "none/a.txt"},
		filepath.Join(dir, "out"):           {err: ErrOutside},
		filepath.Join(dir, "out", "secret"): {err: ErrOutside},
		filepath.Join(dir, "out", "none"):   {err: ErrOutside},
		filepath.Join(outside, "secret"):    {err: ErrOutside},
		"sub":                               {err: errPath},
	} {
		files, name, err := roots.Find(anySession{}, path)
		if name != want.name || !errors.Is(err, want.err) || (err == nil) != (want.err == nil) {
			t.Errorf("Find %q: %q, %v; want %q, %v", path, name, err, want.name, want.err)
		}
		if err == nil {
			if _, err := fs.Stat(files, "out/secret"); err == nil {
				t.Error("the file system follows a link that leads out")
			}
		}
	}
	must.Do(t, roots.Close())
	if _, _, err := roots.Find(anySession{}, dir); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
