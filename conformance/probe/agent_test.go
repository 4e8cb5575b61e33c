package probe_test

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/conformance/probe"
	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/tier"
)

// exampleAgent returns a launch function for the example agent, whose state is in the home of the scenario.
func exampleAgent(t *testing.T) probe.Launch {
	t.Helper()
	binary := buildtest.Program(t, "../../internal/test/actor/actor")
	return launchCommand(func(dir string) *exec.Cmd { return exec.Command(binary, "-state", probe.Home(dir)) })
}

// TestMain turns this program into an MCP server when a test's agent starts it as one.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "mcp" {
		log, err := os.Create(os.Args[2])
		if err == nil {
			err = probe.ServeMCP(os.Stdin, os.Stdout, log)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	parallel := flag.Lookup("test.parallel")
	if given := false; parallel != nil {
		flag.Visit(func(f *flag.Flag) { given = given || f == parallel })
		if !given {
			// Most tests wait for programs and for periods of silence.
			if err := parallel.Value.Set("8"); err != nil {
				panic(err)
			}
		}
	}
	if !testing.Verbose() {
		slog.SetDefault(slog.New(slog.DiscardHandler)) // the probe's messages cause warnings
	}
	code := m.Run()
	buildtest.Remove()
	typeScript.Remove()
	os.Exit(code)
}

// mcp is the command of a fake MCP server: this program.
func mcp(file string) (string, []string) { return os.Args[0], []string{"mcp", file} }

// TestExampleAgent: the example agent meets all requirements, and several runs have the same verdicts.
func TestExampleAgent(t *testing.T) {
	tier.Need(t, tier.Full)
	t.Parallel()
	r := probe.Check(t, exampleAgent(t), &probe.Options{
		Answer: time.Minute, Quiet: 300 * time.Millisecond, Rung: time.Minute, Jobs: 8, Runs: tier.Pick(0, 0, 2, 10), MCP: mcp,
	})
	if len(r.Summary.Unstable) > 0 {
		t.Errorf("differ between runs: %s", strings.Join(r.Summary.Unstable, " "))
	}
	t.Logf("%s, in %.1f s", r.Badge, r.Seconds)
	for _, row := range r.Rows {
		if row.Verdict == probe.NotExercised && row.Reason != "only people can judge it" || row.Verdict == probe.Warn {
			t.Logf("%s %s %s: %s", row.Verdict, row.ID, row.Level, row.Reason)
			for _, f := range row.Failures {
				t.Logf("\t%s: %s: %s %s", f.Scenario, f.Method, f.Message, f.Excerpt)
			}
		}
	}
}
