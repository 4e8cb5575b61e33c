//go:build unix

package main

import (
	"bufio"
	"errors"
	"os/exec"
	"syscall"
	"testing"
)

// A proxy that is signalled ends an agent that does not end with its input.
func TestSignal(t *testing.T) {
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
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil { // the agent runs
		t.Error(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	err = cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 128+int(syscall.SIGTERM) {
		t.Errorf("ended with %v, want the status of SIGTERM", err)
	}
}
