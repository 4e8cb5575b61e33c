package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

var update = flag.Bool("update", false, "write the expected output in testdata/script anew")

// race keeps programs built with the race detector from waiting for a second when they exit.
const race = "atexit_sleep_ms=0"

// programs are the programs that the test binary becomes when it is started under their names.
var programs = map[string]func(){
	"acp": main, "badagent": badAgent, "badclient": badClient, "modelagent": modelAgent, "parrot": parrot,
	"locked": locked, "oddagent": oddAgent, "passer": passer, "grabber": grabber, "trickster": trickster, "consoleclient": consoleClient,
	"hosted": hosted,
}

// beAgent makes a program an agent, until its input ends.
func beAgent(handlers acp.AgentHandlers, options *acp.AgentOptions) {
	if err := acp.ServeAgent(context.Background(), acp.Stdio(), handlers, options); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func TestMain(m *testing.M) {
	if os.Getenv("GORACE") == "" {
		os.Setenv("GORACE", race)
	}
	testscript.Main(tests{m}, programs)
}

// tests runs the tests of the package with a directory for the programs that they build.
type tests struct{ *testing.M }

func (m tests) Run() int {
	var err error
	if builtDir, err = os.MkdirTemp("", "acp-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(builtDir)
	return m.M.Run()
}

var (
	builtDir     string
	exampleAgent = build("internal/test/actor/actor")
	kitAgent     = build("examples/kit-agent")
)

// build returns a function that builds the program in a directory once and returns its path.
func build(dir string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		path := filepath.Join(builtDir, "built-"+filepath.Base(dir)+".exe")
		command := exec.Command("go", "build", "-o", path, ".")
		command.Dir = filepath.Join("../..", dir)
		if out, err := command.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%w\n%s", err, out)
		}
		return path, nil
	})
}

// TestScripts runs the program as users do, in separate processes: each file of testdata/script contains commands and
// their expected output.
func TestScripts(t *testing.T) {
	files := must.Get(filepath.Glob("testdata/script/*.txtar"))(t)
	if tier.Current() == tier.Short {
		quick := []string{"environ.txtar", "help.txtar", "login.txtar", "record.txtar", "rules.txtar", "serve.txtar", "show.txtar", "workflow.txtar"}
		files = slices.DeleteFunc(files, func(file string) bool { return !slices.Contains(quick, filepath.Base(file)) })
	}
	testscript.Run(t, testscript.Params{
		Files:               files,
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                commands,
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", os.Getenv("GORACE"))
			home := filepath.Join(env.WorkDir, "home") // for the user's configuration and agents
			env.Setenv("HOME", home)
			env.Setenv("LocalAppData", home) // on Windows
			env.Setenv("AppData", home)
			agent, err := exampleAgent()
			if err != nil {
				return err
			}
			env.Setenv("EXAMPLE", agent)
			if err := setenvGo(env); err != nil {
				return err
			}
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

// setenvGo lets scripts use the go command like this process, and the SDK of this tree.
func setenvGo(env *testscript.Env) error {
	out, err := exec.Command("go", "env", "-json", "GOCACHE", "GOFLAGS", "GOMODCACHE", "GOROOT", "GOPROXY", "GOSUMDB").Output()
	if err != nil {
		return err
	}
	var values map[string]string
	if err := json.Unmarshal(out, &values); err != nil {
		return err
	}
	sdk, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	values["SDK"] = sdk
	for name, value := range values {
		env.Setenv(name, value)
	}
	return nil
}

// commands are the commands of the scripts in addition to those of testscript.
var commands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"binary":      writeBinary,
	"binary-line": writeBinaryLine,
	"registry":    serveRegistry,
	"status":      expectStatus,
}
