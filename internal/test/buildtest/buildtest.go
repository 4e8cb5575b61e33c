// Package buildtest builds the programs that tests run.
package buildtest

import (
	"debug/buildinfo"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// Variable names a folder with programs that were built before the tests: each has the last element of its package's
// path as its name, with ".exe" on every system. A program that is not there, or is another package's, is built.
// Nothing looks whether a program is older than its sources: whoever sets the variable makes a new folder for each run
// of the tests, as the Makefile does.
const Variable = "ACP_BIN_DIR"

// programs has the programs that this process has built.
var programs struct {
	sync.Mutex
	dir   string
	paths map[string]string
}

// Program returns the path of the program of a package, which the first call builds. A TestMain should call [Remove]
// after all tests.
func Program(t testing.TB, pkg string) string {
	t.Helper()
	path := must.Get(build(pkg))(t)
	return path
}

// WriteFile is like os.WriteFile, for a program that a test starts afterwards. No process may start while the file is
// open, because it would inherit the descriptor, and the system does not run a program that is open for writing ("text
// file busy").
func WriteFile(path, text string, mode os.FileMode) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, []byte(text), mode)
}

// Remove removes the programs that Program has built.
func Remove() {
	programs.Lock()
	defer programs.Unlock()
	_ = os.RemoveAll(programs.dir) // a temporary folder; none is ""
	programs.dir, programs.paths = "", nil
}

// Main is a TestMain that builds programs before the tests, and looks for goroutines that are left after them. It sets
// each variable to the path of the program of a package. In the tier Short it builds nothing: tests of programs need a
// slower one.
func Main(m *testing.M, programs map[string]*string) {
	flag.Parse()
	if tier.Current() == tier.Short {
		clear(programs)
	}
	for pkg, path := range programs {
		var err error
		if *path, err = build(pkg); err != nil {
			fmt.Fprintln(os.Stderr, err)
			Remove()
			os.Exit(1)
		}
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		Remove()
		os.Exit(code)
	}))
}

func build(pkg string) (path string, err error) {
	name := filepath.Base(pkg) + ".exe"
	if dir := os.Getenv(Variable); dir != "" {
		if path = filepath.Join(dir, name); isProgram(path, pkg) {
			return path, nil
		}
	}
	programs.Lock()
	defer programs.Unlock()
	if path := programs.paths[pkg]; path != "" {
		return path, nil
	}
	if programs.dir == "" {
		if programs.dir, err = os.MkdirTemp("", "acp-programs-"); err != nil {
			return "", err
		}
		programs.paths = map[string]string{}
	}
	dir, err := os.MkdirTemp(programs.dir, "")
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, name)
	cmd := exec.Command("go", "build", "-o", path, pkg)
	if strings.HasPrefix(pkg, ".") { // it may be in a module of its own
		cmd.Dir, cmd.Args[4] = pkg, "."
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s for the tests: %w\n%s", pkg, err, out)
	}
	programs.paths[pkg] = path
	return path, nil
}

// isProgram reports whether a file is the program of a package, which is an import path or, after a dot, a folder.
func isProgram(file, pkg string) bool {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return false
	}
	if !strings.HasPrefix(pkg, ".") {
		return info.Path == pkg
	}
	dir, err := filepath.Abs(filepath.FromSlash(pkg))
	below, ok := strings.CutPrefix(info.Path, info.Main.Path+"/")
	return err == nil && ok && strings.HasSuffix(filepath.ToSlash(dir), "/"+below)
}
