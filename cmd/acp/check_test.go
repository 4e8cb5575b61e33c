//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// A line of 60 MB, or of 6 MB in the faster tiers, is treated like any other if it is a message, and otherwise is one
// finding; the lines after it are judged.
func TestLongLine(t *testing.T) {
	size := tier.Pick(6_000_000, 6_000_000, 60_000_000, 60_000_000)
	bytesLong := fmt.Sprintf("(%d bytes)", size)
	for name, test := range map[string]struct {
		line, want string
		status     int
	}{
		"message": {
			`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s-1","prompt":[{"type":"text","text":"` + strings.Repeat("x", size) + `"}]}}`,
			"INI-1", statusFindings,
		},
		"no message": {strings.Repeat("x", size), bytesLong, statusFindings},
		"nesting":    {strings.Repeat("[", size), bytesLong, statusFindings},
	} {
		t.Run(name, func(t *testing.T) {
			from := map[bool]string{true: "client", false: "agent"}[name == "message"]
			raw := strings.ReplaceAll(strings.ReplaceAll(test.line, `\`, `\\`), `"`, `\"`)
			file := write(t, "long.jsonl", []byte(header+request+`{"t":1,"from":"`+from+`","raw":"`+raw+`"}`+"\n"+
				strings.Replace(banner, "Loading", "Afterwards loading", 1)+end))
			cmd := exec.CommandContext(t.Context(), "acp", "check", file)
			out, err := cmd.Output()
			expectExit(t, err, test.status)
			for _, want := range []string{test.want, "long.jsonl:4:", "Afterwards loading models"} {
				if !bytes.Contains(out, []byte(want)) {
					t.Errorf("no %q in\n%.2000s", want, out)
				}
			}
			if len(out) > 4000 {
				t.Errorf("prints %d bytes", len(out))
			}
			if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
				t.Logf("%s, peak memory %d MiB", cmd.ProcessState.UserTime(), usage.Maxrss>>10)
			}
		})
	}
}

// The reader of the output may stop reading; acp then ends as other programs do.
func TestClosedOutput(t *testing.T) {
	file := write(t, "bad.jsonl", []byte(header+request+strings.Repeat(banner, 1000)))
	for _, args := range [][]string{{"check", "--max", "-1", "--format", "json", file}, {"check", "-"}, {"show", file}, {"rules", "--format", "json"}} {
		t.Run(args[0], func(t *testing.T) {
			r, w, err := os.Pipe()
			must.Do(t, err)
			var stderr bytes.Buffer
			cmd := exec.CommandContext(t.Context(), "acp", args...)
			cmd.Stdin = strings.NewReader(header + request + strings.Repeat(banner, 1000))
			cmd.Stdout, cmd.Stderr = w, &stderr
			must.Do(t, errors.Join(r.Close(), cmd.Start(), w.Close()))
			cmd.Wait() // its error is in ProcessState
			if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGPIPE {
				t.Errorf("ended with %v", cmd.ProcessState)
			}
			if stderr.Len() > 0 {
				t.Errorf("stderr: %.1000s", &stderr)
			}
		})
	}
}

// A finding is printed when its message arrives, and an interrupt ends the input with the summary.
func TestFindingsAsTheyCome(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "acp", "check")
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	timeout := time.AfterFunc(5*time.Minute, func() { cmd.Process.Kill() })
	defer timeout.Stop()
	lines := bufio.NewScanner(out)
	find := func(want string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), want) {
				return
			}
		}
		t.Fatalf("the output ended before %q", want)
	}
	io.WriteString(in, header+request)
	for i := range 3 {
		must.Get(io.WriteString(in, banner))(t)
		find(fmt.Sprintf("stdin:%d: ", i+3))
	}
	must.Do(t, cmd.Process.Signal(os.Interrupt))
	find("stdin: 3 findings (4 messages)")
	expectExit(t, cmd.Wait(), statusFindings)
}

// An unreadable file is reported; the others are judged.
func TestNoPermission(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} { // so that other users can enter it
		must.Do(t, os.Chmod(d, 0o755))
	}
	secret, other, program := filepath.Join(dir, "secret.jsonl"), filepath.Join(dir, "other.jsonl"), filepath.Join(dir, "acp")
	path := must.Get(exec.LookPath("acp"))(t)
	text, err := os.ReadFile(path)
	err = errors.Join(err, buildtest.WriteFile(program, string(text), 0o755), os.WriteFile(secret, nil, 0), os.WriteFile(other, []byte(header+request+banner+end), 0o644))
	must.Do(t, err)
	cmd := exec.CommandContext(t.Context(), program, "check", "secret.jsonl", "other.jsonl")
	cmd.Dir = dir
	if os.Getuid() == 0 { // root can read everything
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.Output()
	expectExit(t, err, statusFailed)
	for _, want := range []string{"problem: secret.jsonl: open: permission denied\n", "other.jsonl:3: ", "other.jsonl: 1 finding (2 messages)\n"} {
		if !bytes.Contains(out, []byte(want)) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
