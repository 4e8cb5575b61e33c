package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/acpgo/sdk/conformance/probe"
)

// badClient is a program of its own, a client that does what its first argument says. The others are the agent's command.
func badClient() {
	how := os.Args[1]
	if how == "dies" {
		fmt.Fprintln(os.Stderr, "no configuration")
		os.Exit(3)
	}
	agent := exec.Command(os.Args[2], os.Args[3:]...)
	in, err := agent.StdinPipe()
	if err == nil {
		err = agent.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	switch how {
	case "floods":
		for line := bytes.Repeat([]byte("noise "), 1000); ; {
			os.Stdout.Write(append(line, '\n'))
		}
	case "garbage":
		for range 100 {
			io.WriteString(in, "Welcome to the client!\n{\n[]\n")
		}
	case "forks":
		for _, args := range [][]string{{"sleep", "1000"}, {"setsid", "sleep", "1000"}} {
			exec.Command(args[0], args[1:]...).Start()
		}
	case "stays":
		signal.Ignore(syscall.SIGTERM, os.Interrupt)
		for {
			time.Sleep(time.Hour)
		}
	}
	io.Copy(io.Discard, os.Stdin) // its user ends it
}

// runJSON runs a probe whose report is JSON.
func runJSON(t *testing.T, within time.Duration, args ...string) (r *probe.Report, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, "acp", args...)
	cmd.WaitDelay = time.Second
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("no verdict within %v", within)
	}
	if json.Unmarshal(out.Bytes(), &r) != nil {
		t.Fatalf("%v\n%s\n%s", err, out.String(), stderr.String())
	}
	for _, s := range r.Scenarios {
		if strings.Contains(s.Skipped, "defect") {
			t.Errorf("%s: %s", s.Name, s.Skipped)
		}
	}
	return r, cmd.ProcessState.ExitCode()
}

// TestProbeBadClients probes clients that do what they must not: each gets a verdict within its time, and leaves nothing.
func TestProbeBadClients(t *testing.T) {
	for how, fails := range map[string]string{
		"dies": "INI-1 INI-2", "idle": "INI-1", "floods": "INI-1", "garbage": "TRN-6", "forks": "INI-1", "stays": "INI-1",
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			mark := "ACP_TEST_AGENT=" + t.Name() + fmt.Sprint(os.Getpid())
			r, status := runJSON(t, time.Minute, "probe-client", "--format", "json", "--timeout", "2s", "--end-timeout", "200ms",
				"--env", mark, "--", "badclient", how)
			if status != statusFindings || r.Conforms {
				t.Errorf("ended with status %d, conforms: %v", status, r.Conforms)
			}
			for id := range strings.FieldsSeq(fails) {
				if !slices.Contains(r.Summary.Must, id) {
					t.Errorf("%s does not fail; what fails is %v", id, r.Summary.Must)
				}
			}
			if left := processesWith(t, mark); len(left) > 0 {
				t.Errorf("still there: %s", strings.Join(left, ", "))
			}
		})
	}
}

// exampleClient builds the example client.
func exampleClient(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "client")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./examples/client")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// TestProbeClient probes the example client: nothing fails, and no MUST is left out that it can be brought to.
func TestProbeClient(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some ten seconds")
	}
	args := []string{
		"probe-client", "--format", "json", "--timeout", "10s", "--quiet", "500ms", "--jobs", "4",
		"--type", "prompt=hello", "--type", "allow=1", "--type", "reject=2", "--", exampleClient(t),
	}
	r, status := runJSON(t, 5*time.Minute, args...)
	if status != 0 || !r.Conforms {
		t.Errorf("ended with status %d, conforms: %v", status, r.Conforms)
	}
	var open []string
	for _, row := range r.Rows {
		if row.Verdict == probe.Fail || row.Verdict == probe.Warn {
			t.Errorf("%s %s: %v", row.Verdict, row.ID, row.Failures)
		}
		if row.Verdict == probe.NotExercised && row.Reason != "only people can judge it" && (row.Class == probe.Mandatory || row.Class == probe.Capability) {
			open = append(open, row.ID)
		}
		if row.ID == "TRN-7" && row.Verdict != probe.Pass {
			t.Errorf("a flood of logs: %s, %s", row.Verdict, row.Reason)
		}
	}
	// It has one session, without other roots or servers, and no list of sessions.
	if got := strings.Join(open, " "); got != "SES-5 SES-10 SES-17 SES-30 LST-1 LST-9 LST-10" {
		t.Errorf("not exercised: %s", got)
	}
}

// TestProbeClientFaults are faults that only a process can have.
func TestProbeClientFaults(t *testing.T) {
	r, status := runJSON(t, time.Minute, "probe-client", "--format", "json", "--only", "start", "--timeout", "1s", "--", "badclient", "garbage")
	if status != statusFindings || !slices.Contains(r.Summary.Must, "TRN-6") {
		t.Errorf("ended with status %d, what fails is %v", status, r.Summary.Must)
	}
}

// TestFakeAgent has a client start the fake agent by itself, twice: the second time goes on where the first ended, and the
// report is on both.
func TestFakeAgent(t *testing.T) {
	client, file := exampleClient(t), filepath.Join(t.TempDir(), "seen.jsonl")
	acp, err := exec.LookPath("acp")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, client, "-allow", "-p", "a", "-p", "b", "-p", "c", "--", acp, "fake-agent", "--report", file)
		cmd.Dir = t.TempDir()
		if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("Scenario ")) {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	seen, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer seen.Close()
	outcomes, err := probe.ReadOutcomes(seen)
	if err != nil {
		t.Fatal(err)
	}
	played := 0
	for _, out := range outcomes {
		if out.Skipped == "" {
			played++
		}
	}
	if played < 4 {
		t.Errorf("%d scenarios were played", played)
	}
	r, status := runJSON(t, time.Minute, "probe-client", "--format", "json", "--report", file)
	if status != 0 || !r.Conforms || r.Target != "acp-example-client" || r.Summary.Verdicts[probe.Pass] < 20 {
		t.Errorf("ended with status %d, target %q, %v", status, r.Target, r.Summary)
	}
	if err := os.WriteFile(file, []byte("no outcome\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err = exec.CommandContext(t.Context(), "acp", "probe-client", "--report", file).Run()
	expectExit(t, err, statusFailed)
}
