package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
			c := exec.Command("acp", "conduct", stubborn, "--", stubborn)
			c.Stdin, c.Stderr = in, &stderr
			must.Do(t, c.Start())
			in.Close()
			c.Stdin = keys
			must.Get(keys.WriteString(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}` + "\n"))(t)
			var programs []string
			eventually(t, "the programs start", func() bool {
				programs = children(t, c.Process.Pid)
				return len(programs) == 2
			})
			if err := end.how(c); err != nil {
				t.Error(err)
			}
			_ = c.Wait() // the status says it
			if got := c.ProcessState.ExitCode(); got != end.status || !strings.Contains(stderr.String(), end.says) {
				t.Errorf("status %d, want %d\n%s", got, end.status, &stderr)
			}
			eventually(t, "the programs end", func() bool {
				for _, p := range programs {
					if text, err := os.ReadFile(filepath.Join("/proc", p, "stat")); err == nil {
						if state := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))[0]; state != "Z" && state != "X" {
							return false
						}
					}
				}
				return true
			})
		})
	}
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not within a minute: " + what)
		}
	}
}

// children are the numbers of the processes that a process has started.
func children(t *testing.T, pid int) (all []string) {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	must.Do(t, err)
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err == nil { // else the thread has ended
			all = append(all, strings.Fields(string(text))...)
		}
	}
	return all
}
