package registry_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/acpgo/sdk/acp/registry"
	"github.com/acpgo/sdk/internal/test/must"
)

// FuzzUnpack: whatever an archive is, nothing is written outside of its folder, no link leads out of it, and there is
// nothing in it but files, folders and links, in the bounds.
func FuzzUnpack(f *testing.F) {
	evil := []item{
		{name: "a/b", text: "text"}, {name: "l", to: "a/b"}, {name: "../outside", text: "x"}, {name: "d", to: "."}, {name: "e", to: "d/../.."},
		{name: "A/b", text: "x"}, {name: "/outside", text: "x"},
	}
	for i := range evil {
		for n := range evil[i:] {
			f.Add(byte(0), tgz(f, evil[i:i+n+1]...))
			f.Add(byte(1), zipOf(f, evil[i:i+n+1]...))
		}
	}
	f.Fuzz(func(t *testing.T, kind byte, text []byte) {
		base := t.TempDir()
		dir, archive, outside := filepath.Join(base, "in"), filepath.Join(base, "archive"), filepath.Join(base, "outside")
		name := "a.zip"
		if kind%2 == 0 {
			name = "a.tgz"
		}
		for file, content := range map[string][]byte{archive: text, outside: []byte("mine")} {
			must.Do(t, os.WriteFile(file, content, 0o600))
		}
		must.Do(t, os.Mkdir(dir, 0o700))
		root := must.Get(os.OpenRoot(dir))(t)
		defer root.Close()
		limits := registry.Limits{Unpacked: 1 << 20, Files: 50}
		_, failed := registry.Unpack(context.Background(), archive, name, root, limits)
		size, count := int64(0), 0
		err := filepath.WalkDir(base, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(dir, path)
			if err != nil || path == base || path == archive || path == dir {
				return err
			}
			if path == outside {
				content, err := os.ReadFile(path)
				if string(content) != "mine" {
					t.Errorf("%s was changed", path)
				}
				return err
			}
			if !filepath.IsLocal(rel) {
				t.Errorf("%s is outside", path)
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			switch {
			case info.Mode().IsRegular():
				size += info.Size()
			case info.Mode()&fs.ModeSymlink != 0:
				if _, err := root.Stat(rel); err != nil && failed == nil {
					t.Errorf("%s leads nowhere or outside: %v", rel, err)
				}
			case !info.IsDir():
				t.Errorf("%s is %v", rel, info.Mode())
			}
			count++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if size > limits.Unpacked+1 || failed == nil && size > limits.Unpacked || count > 2*limits.Files+1 {
			t.Errorf("%d bytes in %d files", size, count)
		}
	})
}
