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
	// drainDelay is how long the exit of a command waits for the end of its output, which others hold
	// open when the command leaves them running.
	drainDelay = 250 * time.Millisecond
	// killDelay is how long a killed command may take to end. Only the system can make it longer.
	killDelay = 5 * time.Second
)

// An exitStatus says how a command ended: with a code, by a signal, or neither if the system lost it.
type exitStatus struct {
	code   int64  // of 32 bits, negative for none
	signal string // "SIGKILL"; "" for none
}

// A terminal is a command that is started.
type terminal struct {
	id      acp.TerminalID
	session sessionKey
	cmd     *exec.Cmd // nil until it is launched
	group   *proc.Group
	pipe    *os.File // where stdout and stderr come out, in the order they were written
	output  *output
	show    func([]byte) // gets all output as it comes; may be nil

	started  chan struct{} // closed when start has returned
	startErr error         // what it returned

	drained chan struct{} // closed when the output has ended
	exited  chan struct{} // closed when status is known
	gone    chan struct{} // closed when both are
	status  exitStatus
}

// start has launch start the command. The caller frees the terminal, also when that failed.
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
	// This is a separate file, not cmd.StdoutPipe, so that cmd.Wait returns when the command exits, whichever processes
	// still hold its output.
	t.cmd.Stdout, t.cmd.Stderr = in, in
	t.group, err = proc.Start(t.cmd)
	in.Close() // the command has its own
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
		if err != nil { // the end of the file, or closed
			return
		}
	}
}

// reap waits for the command and publishes its status once the output that precedes it is in.
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

// wait waits until the command has ended, and says how.
func (t *terminal) wait(ctx context.Context) (*exitStatus, error) {
	select {
	case <-t.exited:
		return &t.status, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// kill asks the command and the processes that it started to end, and kills them if that takes longer than grace, or if
// ctx does not allow waiting. It does not wait for the effect.
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

// free kills the command if it still runs and waits until nothing of the terminal is left. A command that is
// just being started is waited for.
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
