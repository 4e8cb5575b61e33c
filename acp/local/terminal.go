package local

import (
	"context"
	"os"
	"os/exec"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/internal/proc"
)

const (
	// drainDelay is how long to wait, after a command has exited, for the end of its output, which other processes may
	// hold open.
	drainDelay = 250 * time.Millisecond
	// killDelay is how long a killed command may take to end. Only the system can delay it further.
	killDelay = 5 * time.Second
)

// An exitStatus is how a command ended: with a code, by a signal, or neither if the system lost it.
type exitStatus struct {
	code   int64  // 32 bits; negative if there is none
	signal string // such as "SIGKILL"; "" if there is none
}

// statusOf returns how a command ended.
func statusOf(state *os.ProcessState) exitStatus {
	if _, signal := proc.EndedBy(state); signal != "" {
		return exitStatus{code: -1, signal: signal}
	}
	return exitStatus{code: int64(uint32(state.ExitCode()))} // Windows has codes of 32 bits
}

// A terminal is a command that has been started.
type terminal struct {
	id      acp.TerminalID
	session sessionKey
	cmd     *exec.Cmd // nil until it is launched
	group   *proc.Group
	pipe    *os.File // the combined stdout and stderr, in the order in which they were written
	output  *output
	show    func([]byte) // gets all output as it arrives; may be nil

	started  chan struct{} // closed when start has returned
	startErr error         // the result of start

	drained chan struct{} // closed when the output has ended
	exited  chan struct{} // closed when status is known
	gone    chan struct{} // closed when both are
	status  exitStatus
}

// start calls launch to start the command. The caller frees the terminal, even if that fails.
func (t *terminal) start(launch func() error) error {
	defer close(t.started)
	t.startErr = launch()
	return t.startErr
}

// launch starts a command and watches it.
func (t *terminal) launch(cmd *exec.Cmd) error {
	t.cmd = cmd
	pipe, in, err := os.Pipe()
	if err != nil {
		return err
	}
	// This is a separate file, not cmd.StdoutPipe, so that cmd.Wait returns when the command exits, even if other
	// processes still hold its output.
	t.cmd.Stdout, t.cmd.Stderr = in, in
	t.group, err = proc.Start(t.cmd)
	in.Close() // the command has its own copy
	if err != nil {
		pipe.Close()
		return err
	}
	t.pipe = pipe
	t.drained, t.exited, t.gone = make(chan struct{}), make(chan struct{}), make(chan struct{})
	go t.drain()
	go t.reap()
	return nil
}

// drain collects the output until no process can write any more or the terminal is freed.
func (t *terminal) drain() {
	defer close(t.drained)
	defer t.pipe.Close()
	defer t.output.end()
	chunk := make([]byte, 32<<10)
	for {
		n, err := t.pipe.Read(chunk)
		if n > 0 {
			t.output.add(chunk[:n])
			if t.show != nil {
				t.show(chunk[:n])
			}
		}
		if err != nil { // end of file, or closed
			return
		}
	}
}

// reap waits for the command and publishes its status once all output before it has been collected.
func (t *terminal) reap() {
	defer close(t.gone)
	t.status = exitStatus{code: -1}
	t.cmd.Wait() // its error repeats the state, or says why there is none
	if t.cmd.ProcessState != nil {
		t.status = statusOf(t.cmd.ProcessState)
	}
	t.group.Reaped()
	select {
	case <-t.drained:
	case <-time.After(drainDelay):
	}
	close(t.exited)
	<-t.drained
}

// exit returns how the command ended, or nil while it runs.
func (t *terminal) exit() *exitStatus {
	select {
	case <-t.exited:
		return &t.status
	default:
		return nil
	}
}

// wait waits until the command has ended, and returns how.
func (t *terminal) wait(ctx context.Context) (*exitStatus, error) {
	select {
	case <-t.exited:
		return &t.status, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// kill asks the command and the processes that it started to end, and kills them if that takes longer than grace, or if
// ctx ends. It does not wait for them to end.
func (t *terminal) kill(ctx context.Context, grace time.Duration) {
	if grace > 0 && t.group.Ask() {
		select {
		case <-t.gone:
		case <-time.After(grace):
		case <-ctx.Done():
		}
	}
	t.group.Kill()
}

// free kills the command if it is still running, and waits until nothing of the terminal is left. If the command is
// being started, it waits for that first.
func (t *terminal) free(ctx context.Context, grace time.Duration) error {
	<-t.started
	if t.startErr != nil {
		return nil // there is nothing to free
	}
	t.kill(ctx, grace)
	select {
	case <-t.exited:
	case <-time.After(killDelay):
		return errStuck
	}
	t.pipe.Close() // a process that left the group may hold the other end
	<-t.gone
	t.group.Free()
	return nil
}
