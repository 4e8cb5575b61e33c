// Package buildtest builds the programs that tests run.
package buildtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// Main is a TestMain that builds programs before the tests, and looks for goroutines that are left after them. It sets each
// variable to the path of the program of a package.
func Main(m *testing.M, programs map[string]*string) {
	dir, err := os.MkdirTemp("", "acp-programs-")
	for pkg, path := range programs {
		if err == nil {
			*path = filepath.Join(dir, filepath.Base(pkg)+".exe")
			build := exec.Command("go", "build", "-o", *path, pkg)
			build.Stderr = os.Stderr
			err = build.Run()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "building programs for the tests:", err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir) // a temporary folder
		os.Exit(code)
	}))
}
