//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// An agent that does not end with its input is ended, whether the client has gone or the proxy is
// signalled.
func TestStubbornAgents(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*exec.Cmd, io.Closer) error{
		"client gone": func(_ *exec.Cmd, in io.Closer) error { return in.Close() },
		"signal":      func(cmd *exec.Cmd, _ io.Closer) error { return cmd.Process.Signal(syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := through(t, nil, role(t, "deaf")...)
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			timer := time.AfterFunc(2*time.Minute, func() { cmd.Process.Kill() })
			defer timer.Stop()
			var agent struct{ PID int }
			if err := json.NewDecoder(out).Decode(&agent); err != nil {
				t.Fatal(err)
			}
			if err := end(cmd, in); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, out); err != nil {
				t.Error(err)
			}
			err = cmd.Wait()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 128+int(syscall.SIGTERM) {
				t.Errorf("ended with %v, want the status of SIGTERM", err)
			}
			if err := syscall.Kill(agent.PID, 0); err != syscall.ESRCH {
				t.Errorf("the agent is still there: %v", err)
			}
		})
	}
}
