//go:build !windows

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// odd starts acp exec with the odd agent, and returns when it has printed first. What it returns are the processes
// of the agent.
func odd(t *testing.T, prompt, first string, args ...string) (c *exec.Cmd, out io.ReadCloser, pids []int) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "pids")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	c = exec.CommandContext(ctx, "acp", append(append([]string{"exec"}, args...), prompt, "--", "oddagent")...)
	c.Dir = dir
	c.Env = append(os.Environ(), "ODD_CHILD="+file, "XDG_STATE_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	c.Stderr = &strings.Builder{}
	out, err := c.StdoutPipe()
	must.Do(t, err)
	must.Do(t, c.Start())
	var seen []byte
	for one := make([]byte, 1); !bytes.HasSuffix(seen, []byte(first)); seen = append(seen, one[0]) {
		if _, err := out.Read(one); err != nil {
			t.Fatalf("%q, %v\n%s", seen, err, c.Stderr)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil && first != "" {
		t.Fatal(err)
	}
	for word := range strings.FieldsSeq(string(text)) {
		pid, err := strconv.Atoi(word)
		must.Do(t, err)
		pids = append(pids, pid)
	}
	return c, out, pids
}

// ended checks how acp exec has ended, and that it has left nothing behind.
func ended(t *testing.T, c *exec.Cmd, out io.Reader, pids []int, status int) {
	t.Helper()
	_, err := io.Copy(io.Discard, out)
	expectExit(t, errors.Join(err, c.Wait()), status)
	if t.Failed() {
		t.Log(c.Stderr)
	}
	for _, pid := range pids {
		// A process that was killed may be a zombie until its new parent has waited for it.
		for end := time.Now().Add(time.Minute); lives(pid); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Errorf("process %d is left", pid)
				break
			}
		}
	}
}

// lives reports whether a process runs.
func lives(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return runtime.GOOS != "linux"
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}

// Signals cancel the turn, and the status is that of the signal.
func TestExecSignals(t *testing.T) {
	// A program that runs with nohup leaves the signal ignored to the programs that it starts, unless it handles it.
	handled := make(chan os.Signal, 1)
	signal.Notify(handled, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(handled) })
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			c, out, pids := odd(t, "hang", "hanging")
			must.Do(t, c.Process.Signal(s))
			ended(t, c, out, pids, 128+int(s))
		})
	}
}

// An agent that hears nothing is killed by the second signal. Without it the program ends after cancelGrace at the earliest;
// a busy machine may make the program as slow once, but not three times.
func TestExecSecondSignal(t *testing.T) {
	var took time.Duration
	for range 3 {
		c, out, pids := odd(t, "deaf", "hanging")
		begun := time.Now()
		over := make(chan struct{})
		var signals sync.WaitGroup
		signals.Go(func() {
			// Signals that come at once are one; the second that is seen kills.
			for pace := time.NewTicker(10 * time.Millisecond); c.Process.Signal(syscall.SIGINT) == nil; {
				select {
				case <-pace.C:
				case <-over:
					pace.Stop()
					return
				}
			}
		})
		ended(t, c, out, pids, 130)
		close(over)
		signals.Wait()
		if took = time.Since(begun); took < cancelGrace {
			return
		}
	}
	t.Errorf("it took %v", took)
}

// A signal while the agent starts.
func TestExecSignalAtStart(t *testing.T) {
	c := exec.CommandContext(t.Context(), "acp", "exec", "--verbose", "Hello", "--", "sh", "-c", "echo started >&2; cat >&2")
	c.Env = append(os.Environ(), "XDG_CONFIG_HOME="+t.TempDir())
	stderr, err := c.StderrPipe()
	must.Do(t, err)
	must.Do(t, c.Start())
	lines := bufio.NewScanner(stderr)
	for lines.Scan() && lines.Text() != "agent: started" {
	}
	must.Do(t, c.Process.Signal(syscall.SIGTERM))
	for lines.Scan() {
	}
	expectExit(t, c.Wait(), 143)
}

// Somebody closes standard output, or does not read it.
func TestExecClosedOutput(t *testing.T) {
	tier.Need(t, tier.Normal)
	for format, first := range map[string]string{"text": "flood ", "json": `"flood `} {
		t.Run(format, func(t *testing.T) {
			c, out, pids := odd(t, "flood", first, "--format", format)
			must.Do(t, out.Close())
			ended(t, c, strings.NewReader(""), pids, statusPipe)
		})
	}
	t.Run("stuck", func(t *testing.T) {
		c, _, pids := odd(t, "flood", "flood ")
		must.Do(t, c.Process.Signal(syscall.SIGINT))
		ended(t, c, strings.NewReader(""), pids, 130)
	})
}

// The time passes, whether the agent has begun its turn by then or not.
func TestExecTimeout(t *testing.T) {
	tier.Need(t, tier.Normal)
	c, out, pids := odd(t, "hang", "", "--timeout", "1s")
	ended(t, c, out, pids, statusTimeout)
	if text := fmt.Sprint(c.Stderr); !strings.Contains(text, "not done within 1s") {
		t.Error(text)
	}
}

// Nobody is at the other end of a pipe that should be opened.
func TestExecPipeOfNobody(t *testing.T) {
	for _, flag := range []string{"--file", "--record"} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			pipe := filepath.Join(dir, "pipe")
			must.Do(t, syscall.Mkfifo(pipe, 0o600))
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			c := exec.CommandContext(ctx, "acp", "exec", "--timeout", "200ms", flag, pipe, "Hello", "--", "oddagent")
			c.Env = append(os.Environ(), "XDG_CONFIG_HOME="+dir)
			expectExit(t, c.Run(), statusTimeout)
		})
	}
}

// Nobody is at the other end of a pipe that settings name: that is reported at once, by each command.
func TestSettingsFromPipeOfNobody(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	must.Do(t, syscall.Mkfifo(pipe, 0o600))
	for name, test := range map[string]struct {
		args   []string
		status int
	}{
		"policy":  {[]string{"exec", "--policy", pipe, "Hello", "--", "oddagent"}, statusUsage},
		"mcp":     {[]string{"exec", "--mcp", pipe, "Hello", "--", "oddagent"}, statusUsage},
		"config":  {[]string{"exec", "--config", pipe, "Hello", "--", "oddagent"}, statusFailed},
		"token":   {[]string{"exec", "--token-file", pipe, "--agent", "wss://127.0.0.1:1/", "Hello"}, statusFailed},
		"headers": {[]string{"exec", "--header-file", pipe, "--agent", "wss://127.0.0.1:1/", "Hello"}, statusFailed},
		"agents":  {[]string{"agents", "--config", pipe}, statusFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			c := exec.CommandContext(ctx, "acp", test.args...)
			c.Env = append(os.Environ(), "XDG_CONFIG_HOME="+dir, "HOME="+dir)
			var stderr strings.Builder
			c.Stderr = &stderr
			expectExit(t, c.Run(), test.status)
			if !strings.Contains(stderr.String(), "pipe without a writer") {
				t.Errorf("%q", stderr.String())
			}
		})
	}
}
