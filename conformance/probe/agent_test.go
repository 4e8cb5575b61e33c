package probe_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance/probe"
)

// exampleAgent builds the example agent and returns its launch, with a state of its own.
func exampleAgent(t *testing.T) probe.Launch {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "agent")
	if out, err := exec.Command("go", "build", "-o", binary, "../../examples/agent").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	state := t.TempDir()
	return func(ctx context.Context, dir string) (*probe.Target, error) {
		stderr := &probe.Stderr{}
		cmd := exec.Command(binary, "-state", state)
		cmd.Stderr = stderr
		transport := rpc.Command(cmd)
		transport.StopTime, transport.KillTime = time.Millisecond, 2*time.Second
		stream, err := transport.Connect(ctx)
		if err != nil {
			return nil, err
		}
		return &probe.Target{Stream: stream, Stderr: stderr, Raw: stream.(rpc.FastStream).WriteLines, Process: true}, nil
	}
}

// TestMain makes this program a server of MCP when a test's agent starts it as such.
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
			// Most tests wait for programs and for silences.
			if err := parallel.Value.Set("8"); err != nil {
				panic(err)
			}
		}
	}
	os.Exit(m.Run())
}

// mcp is the command of a fake MCP server: this program.
func mcp(file string) (string, []string) { return os.Args[0], []string{"mcp", file} }

func TestExampleAgent(t *testing.T) {
	t.Parallel()
	r := probe.Check(t, exampleAgent(t), &probe.Options{Answer: 10 * time.Second, Quiet: 300 * time.Millisecond, Jobs: 4, MCP: mcp})
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
