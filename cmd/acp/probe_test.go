package main

import (
	"bufio"
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
	"unicode"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/probe"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// badAgent is a separate program: an agent that does what its argument says.
func badAgent() {
	how := os.Args[1]
	switch how {
	case "dies":
		fmt.Fprintln(os.Stderr, "no configuration")
		os.Exit(3)
	case "silent":
		io.Copy(io.Discard, os.Stdin)
		return
	case "banner":
		fmt.Print("Welcome to the agent!\n\x1b[31mLoading\x1b[0m the model\n")
	case "floods":
		go func() {
			for line := bytes.Repeat([]byte("noise "), 1000); ; {
				os.Stderr.Write(append(line, '\n'))
			}
		}()
	case "forks":
		forks()
	case "stays":
		signal.Ignore(syscall.SIGTERM)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(lines.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		switch {
		case how == "logs" || how == "answers":
			if how == "logs" {
				os.Stderr.Write(lines.Bytes())
			}
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentInfo":{"name":"logs","version":"1"},"agentCapabilities":{}}}`+"\n", m.ID)
		case how == "errors":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"No"}}`+"\n", m.ID)
		case how == "huge" && m.Method == "initialize":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"x":"`, m.ID)
			for range 100 {
				io.WriteString(os.Stdout, strings.Repeat("x", 1<<20))
			}
			fmt.Println(`"}}`)
		case m.Method == "initialize":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentInfo":{"name":"bad","version":"1"},"agentCapabilities":{"loadSession":true,"promptCapabilities":{"image":true,"audio":true,"embeddedContext":true},"mcpCapabilities":{"http":true,"sse":true},"sessionCapabilities":{"list":{},"delete":{},"resume":{},"close":{},"additionalDirectories":{}},"auth":{"logout":{}}}}}`+"\n", m.ID)
		}
	}
	switch how {
	case "tidies":
		os.Stdout.Close()
		time.Sleep(1500 * time.Millisecond)
	case "stays":
		for {
			time.Sleep(time.Hour)
		}
	}
}

// forks leaves processes, also one of another session.
func forks() {
	for _, args := range [][]string{{"sleep", "1000"}, {"setsid", "sleep", "1000"}} {
		exec.Command(args[0], args[1:]...).Start()
	}
}

// TestProbeBadSubjects probes agents and clients with faults: each gets a verdict in time, and leaves nothing behind.
func TestProbeBadSubjects(t *testing.T) {
	for _, c := range []struct {
		what, how, fails string // requirements that must be among the failing ones
		early            bool   // one scenario shows that no other can be played
		least            tier.Tier
	}{
		{"agent", "dies", "INI-4", true, tier.Short},
		{"agent", "silent", "INI-4", true, tier.Normal},
		{"agent", "banner", "TRN-5 INI-16", false, tier.Full},
		{"agent", "floods", "INI-16", false, tier.Full},
		{"agent", "forks", "INI-16", false, tier.Normal},
		{"agent", "stays", "INI-16", false, tier.Full},
		{"agent", "errors", "INI-4", true, tier.Normal},
		{"agent", "huge", "INI-16", false, tier.Full},
		{"agent", "nothing", "INI-16", false, tier.Full},
		{"client", "dies", "INI-1 INI-2", true, tier.Normal},
		{"client", "idle", "INI-1", true, tier.Normal},
		{"client", "floods", "INI-1", true, tier.Normal},
		{"client", "garbage", "TRN-6", true, tier.Short},
		{"client", "forks", "INI-1", true, tier.Normal},
		{"client", "stays", "INI-1", true, tier.Normal},
	} {
		t.Run(c.what+" "+c.how, func(t *testing.T) {
			tier.Need(t, c.least)
			t.Parallel() // it mostly waits
			mark := "ACP_TEST_SUBJECT=" + t.Name() + fmt.Sprint(os.Getpid())
			patiently(t, func(answer string) (problems []string) {
				bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
				command, args := "probe-client", []string{"--timeout", answer, "--end-timeout", "200ms", "--env", mark}
				if c.what == "agent" {
					command, args = "probe", append(args, "--jobs", "4")
				}
				if !c.early && tier.Current() < tier.Nightly { // each scenario starts the agent again
					args = append(args, "--only", "start")
				}
				r, status := runJSON(t, command, append(args, "--", "bad"+c.what, c.how)...)
				if status != statusFindings || r.Conforms {
					bad("ended with status %d, conforms: %v", status, r.Conforms)
				}
				failed := append(r.Summary.Must, r.Summary.Broken...)
				for id := range strings.FieldsSeq(c.fails) {
					if !slices.Contains(failed, id) {
						bad("%s does not fail; what fails is %v", id, failed)
					}
				}
				played := 0
				for _, s := range r.Scenarios {
					if s.Skipped == "" {
						played++
					}
				}
				t.Logf("%d of %d played, %.1f s", played, len(r.Scenarios), r.Seconds)
				if c.what == "agent" && c.early && played > 5 {
					bad("%d scenarios were played", played)
				}
				if left := left(t, mark); len(left) > 0 {
					bad("still there: %s", strings.Join(left, ", "))
				}
				return problems
			})
		})
	}
}

// runJSON runs a probe, and returns its report.
func runJSON(t *testing.T, command string, args ...string) (r *probe.Report, status int) {
	t.Helper()
	const within = 10 * time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, "acp", append([]string{command, "--format", "json"}, args...)...)
	cmd.WaitDelay = time.Minute
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("no verdict within %v:\n%s\n%s", within, out.String(), stderr.String())
	}
	if json.Unmarshal(out.Bytes(), &r) != nil {
		t.Fatalf("%v\n%s\n%s", err, out.String(), stderr.String())
	}
	if out.Len() > 4<<20 {
		t.Errorf("the report has %d bytes", out.Len())
	}
	for _, s := range r.Scenarios {
		if strings.Contains(s.Skipped, "defect") {
			t.Errorf("%s: %s", s.Name, s.Skipped)
		}
	}
	return r, cmd.ProcessState.ExitCode()
}

// wrongVerdict says which other verdict than the wanted one a report has about a requirement, if it has one.
func wrongVerdict(r *probe.Report, id string, want probe.Verdict) (problems []string) {
	for _, row := range r.Rows {
		if row.ID == id && row.Verdict != want {
			problems = append(problems, fmt.Sprintf("%s: %s, want %s: %v", id, row.Verdict, want, row.Failures))
		}
	}
	return problems
}

// TestProbeStderr: an agent that blocks until its log is read is detected, and ends.
func TestProbeStderr(t *testing.T) {
	tier.Need(t, tier.Normal)
	t.Parallel()
	for how, want := range map[string]probe.Verdict{"logs": probe.Warn, "answers": probe.Pass} {
		answer := map[string]string{"logs": "5s", "answers": "2m"}[how] // one waits for the timeout, the other for the answer
		r, _ := runJSON(t, "probe", "--end-timeout", "200ms", "--timeout", answer, "--only", "stderr-unread", "--", "badagent", how)
		if wrong := wrongVerdict(r, "TRN-7", want); wrong != nil {
			t.Error(how, wrong)
		}
	}
}

// TestProbeClosedOutput: an agent that closes its output and has work to do before it exits is not killed.
func TestProbeClosedOutput(t *testing.T) {
	tier.Need(t, tier.Normal)
	r, _ := runJSON(t, "probe", "--end-timeout", "3m", "--only", "version-newer", "--", "badagent", "tidies")
	if wrong := wrongVerdict(r, "TRN-10", probe.Pass); wrong != nil {
		t.Error(wrong)
	}
}

// patiently calls check with the time limit for an answer, and again with longer limits while there are problems: on a
// busy machine even a correct answer may be late.
func patiently(t *testing.T, check func(answer string) (problems []string)) {
	t.Helper()
	var problems []string
	for _, answer := range []string{"1s", "5s", "25s"} {
		if problems = check(answer); len(problems) == 0 {
			return
		}
		t.Logf("with %s for an answer: %q", answer, problems)
	}
	t.Errorf("%q", problems)
}

// TestProbeFormats checks the reports on an agent that prints escape sequences: all requirements are in them, and
// nothing invisible reaches the terminal.
func TestProbeFormats(t *testing.T) {
	tier.Need(t, tier.Normal)
	for i, format := range formatNames() {
		t.Run(format, func(t *testing.T) {
			if i > 0 {
				tier.Need(t, tier.Normal)
			}
			t.Parallel() // it mostly waits
			patiently(t, func(answer string) []string { return probeFormat(t, format, answer) })
		})
	}
}

// probeFormat returns the problems of a report.
func probeFormat(t *testing.T, format, answer string) (problems []string) {
	t.Helper()
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	cmd := exec.CommandContext(t.Context(), "acp", "probe", "--format", format, "--timeout", answer, "--end-timeout", "200ms",
		"--output", format+"="+filepath.Join(t.TempDir(), "file"), "--only", "start,version-newer,garbage", "--", "badagent", "banner")
	text, err := cmd.Output()
	expectExit(t, err, statusFindings)
	_, file, _ := strings.Cut(cmd.Args[9], "=")
	if written, err := os.ReadFile(file); err != nil || !bytes.Equal(written, text) {
		bad("%s: the file has %d bytes, standard output %d: %v", format, len(written), len(text), err)
	}
	for _, r := range string(text) {
		if r != '\n' && !unicode.IsPrint(r) {
			bad("%s lets %U through", format, r)
		}
	}
	switch format {
	case "junit":
		if counts := expectJUnit(t, text); counts["testcase"] != len(conformance.Requirements()) || counts["failure"] < 2 {
			bad("junit has %v", counts)
		}
	case "sarif":
		expectSARIF(t, text)
	case "json":
		var r probe.Report
		if err := json.Unmarshal(text, &r); err != nil {
			bad("%v", err)
		}
		if len(r.Rows) != len(conformance.Requirements()) || r.Conforms {
			bad("%d requirements, conforms: %v", len(r.Rows), r.Conforms)
		}
	}
	for _, id := range []string{"TRN-5", "INI-16"} {
		if !bytes.Contains(text, []byte(id)) {
			bad("%s does not name %s", format, id)
		}
	}
	if format != "junit" && format != "markdown" && !bytes.Contains(text, []byte("Welcome to the agent!")) {
		bad("%s does not show the banner", format)
	}
	return problems
}

// TestProbeRepeat runs the command that is given for a failure.
func TestProbeRepeat(t *testing.T) {
	tier.Need(t, tier.Normal)
	t.Parallel()
	r, status := runJSON(t, "probe", "--timeout", "3s", "--end-timeout", "200ms", "--only", "start",
		"--env", "A=it's b", "--prompt", "text=do $x", "--", "badagent", "banner")
	if status != statusFindings {
		t.Errorf("ended with status %d", status)
	}
	repeat := r.Repeat
	if want := `acp probe --only start --env 'A=it'\''s b' --prompt 'text=do $x' -- badagent banner`; repeat != want {
		t.Fatalf("got %s, want %s", repeat, want)
	}
	err := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(repeat, "--only", "--timeout 3s --end-timeout 200ms --only", 1)).Run()
	expectExit(t, err, statusFindings)
}

// left returns the processes whose environment has a variable, where the system shows it. Killed processes get some
// time to end.
func left(t *testing.T, variable string) (found []string) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if found = processesWith(t, variable); len(found) == 0 {
			break
		}
	}
	return found
}

// processesWith returns the processes whose environment has a variable, where the system shows it.
func processesWith(t *testing.T, variable string) []string {
	files := must.Get(filepath.Glob("/proc/[0-9]*/environ"))(t)
	var found []string
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, []byte(variable)) {
			command, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline")) // it may just have ended
			found = append(found, strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	return found
}
