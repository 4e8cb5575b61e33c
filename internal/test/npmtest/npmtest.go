// Package npmtest installs npm packages for tests.
package npmtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/acpgo/sdk/internal/test/tier"
)

// Need skips a test below tier Full, and where Node.js or npm is not there. In CI the latter fails it.
func Need(t testing.TB) {
	t.Helper()
	tier.Need(t, tier.Full)
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatalf("CI must have %s: %v", tool, err)
			}
			t.Skipf("SKIPPED: it needs %s: %v", tool, err)
		}
	}
}

// Folder is a temporary folder with programs and the packages that they use. It is created when the first test needs
// it.
type Folder struct {
	// Files are patterns of what is copied into it; package.json and package-lock.json, which say what is installed,
	// are among them.
	Files []string
	// Flags has additional flags for npm.
	Flags []string

	once sync.Once
	dir  string
	err  error
}

// Dir returns the folder. Without npm it skips the test, as Need does.
func (f *Folder) Dir(t testing.TB) string {
	t.Helper()
	Need(t)
	f.once.Do(func() { f.err = f.install() })
	if f.err != nil {
		t.Fatal(f.err)
	}
	return f.dir
}

// Remove removes the folder, if it was created. Call it after all tests.
func (f *Folder) Remove() {
	if f.dir != "" {
		_ = os.RemoveAll(f.dir) // a temporary folder
	}
}

func (f *Folder) install() (err error) {
	if f.dir, err = os.MkdirTemp("", "acp-npm-"); err != nil {
		return err
	}
	for _, pattern := range f.Files {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			return fmt.Errorf("no files %s (%v)", pattern, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err == nil {
				err = os.WriteFile(filepath.Join(f.dir, filepath.Base(name)), text, 0o600)
			}
			if err != nil {
				return err
			}
		}
	}
	npm := exec.Command("npm", append([]string{"ci", "--ignore-scripts", "--no-audit", "--no-fund"}, f.Flags...)...)
	npm.Dir = f.dir
	if out, err := npm.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	return nil
}
