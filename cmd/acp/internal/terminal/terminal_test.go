//go:build linux || darwin

// Package terminal tests the program acp in a terminal. The agents are run by this test binary.
package terminal

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/acpgo/sdk/internal/test/gentest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

var (
	update   = flag.Bool("update", false, "write testdata/screens and docs/run.svg")
	pictures = flag.String("pictures", "", "draw the screens as SVG in a `DIR`, of a light terminal if $SCREEN_LIGHT is set, in place of comparing them")
)

// The exit statuses of acp.
const (
	statusOK       = 0
	statusFindings = 1
	statusFailed   = 3
	statusBySignal = 128 // plus the number of the signal
)

func TestMain(m *testing.M) {
	if os.Getenv("GORACE") == "" { // otherwise programs wait for a second when they exit
		os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	testscript.Main(tests{m}, map[string]func(){"stage": stage, "coder": stage})
}

// tests runs the tests of the package with a directory in $PATH for the programs that they build.
type tests struct{ *testing.M }

var builtDir string

func (m tests) Run() int {
	var err error
	if builtDir, err = os.MkdirTemp("", "acp-terminal-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(builtDir)
	os.Setenv("PATH", builtDir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return m.M.Run()
}

// buildACP builds acp once, without the durations of tool calls and turns, which differ between runs.
var buildACP = sync.OnceValues(func() (string, error) {
	args := []string{"build", "-ldflags=-X main.longTime=1h", "-o", filepath.Join(builtDir, "acp")}
	if gentest.Race {
		args = append(args, "-race")
	}
	build := exec.Command("go", append(args, "../..")...)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return filepath.Join(builtDir, "acp"), nil
})

// acpPath returns the path of acp. It skips the test in the tiers without terminals.
func acpPath(t testing.TB) string {
	t.Helper()
	tier.Need(t, tier.Full)
	path := must.Get(buildACP())(t)
	return path
}
