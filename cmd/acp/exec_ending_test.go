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
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// An oddRun is acp exec with the odd agent.
type oddRun struct {
	*exec.Cmd
	out  io.ReadCloser
	mark string // in the environment of all processes
}

// odd starts acp exec with the odd agent, and returns when it has printed first.
func odd(t *testing.T, prompt, first string, args ...string) *oddRun {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, "acp", append(append([]string{"exec"}, args...), prompt, "--", "oddagent")...)
	mark := "ODD_CHILD=" + dir
	c.Dir, c.Env, c.Stderr = dir, append(os.Environ(), mark, "XDG_STATE_HOME="+dir, "XDG_CONFIG_HOME="+dir), &strings.Builder{}
	out := must.Get(c.StdoutPipe())(t)
	must.Do(t, c.Start())
	var seen []byte
	for one := make([]byte, 1); !bytes.HasSuffix(seen, []byte(first)); seen = append(seen, one[0]) {
		if _, err := out.Read(one); err != nil {
			t.Fatalf("%q, %v\n%s", seen, err, c.Stderr)
		}
	}
	return &oddRun{c, out, mark}
}

// ends checks how acp exec ends, and that it leaves nothing behind.
func (o *oddRun) ends(t *testing.T, status int) {
	t.Helper()
	_, err := io.Copy(io.Discard, o.out)
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	expectExit(t, errors.Join(err, o.Wait()), status)
	if t.Failed() {
		t.Log(o.Stderr)
	}
	if left := left(t, o.mark); len(left) > 0 {
		t.Errorf("still there: %q", left)
	}
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
			o := odd(t, "hang", "hanging")
			must.Do(t, o.Process.Signal(s))
			o.ends(t, 128+int(s))
		})
	}
}

// An agent that hears nothing is killed by the second signal. Without it the program ends after cancelGrace at the earliest;
// a busy machine may make the program as slow once, but not three times.
func TestExecSecondSignal(t *testing.T) {
	var took time.Duration
	for range 3 {
		o := odd(t, "deaf", "hanging")
		begun := time.Now()
		over := make(chan struct{})
		var signals sync.WaitGroup
		signals.Go(func() {
			// Signals that come at once are one; the second that is seen kills.
			for pace := time.NewTicker(10 * time.Millisecond); o.Process.Signal(syscall.SIGINT) == nil; {
				select {
				case <-pace.C:
				case <-over:
					pace.Stop()
					return
				}
			}
		})
		o.ends(t, 130)
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
	stderr := must.Get(c.StderrPipe())(t)
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
			o := odd(t, "flood", first, "--format", format)
			must.Do(t, o.out.Close())
			o.ends(t, statusPipe)
		})
	}
	t.Run("stuck", func(t *testing.T) {
		o := odd(t, "flood", "flood ")
		must.Do(t, o.Process.Signal(syscall.SIGINT))
		o.out = io.NopCloser(strings.NewReader("")) // nobody reads it
		o.ends(t, 130)
	})
}

// The time passes, whether the agent has begun its turn by then or not.
func TestExecTimeout(t *testing.T) {
	tier.Need(t, tier.Normal)
	o := odd(t, "hang", "", "--timeout", "1s")
	o.ends(t, statusTimeout)
	if text := fmt.Sprint(o.Stderr); !strings.Contains(text, "not done within 1s") {
		t.Error(text)
	}
}
