package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "write docs/rules.md and the expected output in testdata/script anew")

// race has the programs that tests start not wait for a second at their end, as the race detector has them do.
const race = "atexit_sleep_ms=0"

func TestMain(m *testing.M) {
	if os.Getenv("GORACE") == "" {
		os.Setenv("GORACE", race)
	}
	programs := map[string]func(){
		"acp": main, "witness": witness, "badagent": badAgent, "badclient": badClient, "modelagent": modelAgent, "parrot": parrot,
		"locked": locked, "oddagent": oddAgent,
	}
	maps.Copy(programs, terminalPrograms)
	testscript.Main(m, programs)
}

// TestScripts runs the program as users do, in processes of its own: each file of testdata/script is commands, and
// what they print.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                commands,
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", os.Getenv("GORACE"))
			home := filepath.Join(env.WorkDir, "home") // where the user's configuration and agents are
			env.Setenv("HOME", home)
			env.Setenv("LocalAppData", home) // of Windows
			env.Setenv("AppData", home)
			agent, err := example()
			if err != nil {
				return err
			}
			env.Setenv("EXAMPLE", agent)
			return os.MkdirAll(home, 0o700)
		},
		Condition: func(condition string) (bool, error) {
			file, found := strings.CutPrefix(condition, "exists:")
			if !found {
				return false, fmt.Errorf("unknown condition %q", condition)
			}
			_, err := os.Stat(file)
			return err == nil, nil
		},
	})
}

// commands are those of the scripts beside testscript's own.
var commands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"binary":      writeBinary,
	"binary-line": writeBinaryLine,
	"registry":    serveRegistry,
	"status":      expectStatus,
}
