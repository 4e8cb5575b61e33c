package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// Of a chain whose programs ignore the end of their input and TERM nothing is left, however acp conduct ends: when its
// input ends, by a signal, and when it is killed.
func TestConductLeavesNothing(t *testing.T) {
	tier.Need(t, tier.Normal)
	stubborn := write(t, "stubborn.sh", []byte("#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 1; done\n"))
	must.Do(t, os.Chmod(stubborn, 0o700))
	for name, end := range map[string]struct {
		how    func(*exec.Cmd) error
		status int
		says   string
	}{
		"input":      {func(c *exec.Cmd) error { return c.Stdin.(*os.File).Close() }, statusOK, `msg="requests were not answered" by="proxy:0 (stubborn.sh)" method=initialize count=1`},
		"terminated": {func(c *exec.Cmd) error { return c.Process.Signal(syscall.SIGTERM) }, 143, "acp: ended by a signal: terminated"},
		"killed":     {func(c *exec.Cmd) error { return c.Process.Kill() }, -1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, keys, err := os.Pipe()
			must.Do(t, err)
			defer keys.Close()
			var stderr bytes.Buffer
			mark := "ACP_TEST_CHAIN=" + t.Name() + fmt.Sprint(os.Getpid())
			c := exec.Command("acp", "conduct", stubborn, "--", stubborn)
			c.Env = append(os.Environ(), mark)
			c.Stdin, c.Stderr = in, &stderr
			must.Do(t, c.Start())
			in.Close()
			c.Stdin = keys
			must.Get(keys.WriteString(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}` + "\n"))(t)
			named := func() int { return strings.Count(strings.Join(processesWith(t, mark), "\n"), stubborn) }
			for end := time.Now().Add(time.Minute); named() < 4; time.Sleep(time.Millisecond) { // twice by acp itself
				if time.Now().After(end) {
					t.Fatal("the programs have not started")
				}
			}
			if err := end.how(c); err != nil {
				t.Error(err)
			}
			_ = c.Wait() // the status says it
			if got := c.ProcessState.ExitCode(); got != end.status || !strings.Contains(stderr.String(), end.says) {
				t.Errorf("status %d, want %d\n%s", got, end.status, &stderr)
			}
			if left := left(t, mark); len(left) > 0 {
				t.Errorf("still there: %q", left)
			}
		})
	}
}
