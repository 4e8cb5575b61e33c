// Package launch starts the programs that probes are about, and ends them with all that they have started.
package launch

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance/probe"
)

// Command is a program to start.
type Command struct {
	Args []string
	// Env are variables beside those of this process, "NAME=VALUE".
	Env []string
	// Dir is where it starts; "" is where this process is.
	Dir string
	// Rung is how long it may take to end after it was asked to, before it is killed.
	Rung time.Duration
	// MaxMessage bounds a message, in bytes; 0 is that of package rpc.
	MaxMessage int
}

// mark is the variable by which processes are found that have left the group of the one that was started.
const mark = "ACP_PROBE_LAUNCH"

// Resolve finds the program, so that it is found wherever it starts.
func (c *Command) Resolve() error {
	path, err := exec.LookPath(c.Args[0])
	if err != nil {
		return err
	}
	if path, err = filepath.Abs(path); err != nil {
		return err
	}
	c.Args = slices.Clone(c.Args)
	c.Args[0] = path
	if c.Dir == "" {
		return nil
	}
	info, err := os.Stat(c.Dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is no folder", c.Dir)
	}
	return err
}

// Launch starts it.
func (c *Command) Launch(ctx context.Context, _ string) (*probe.Target, error) {
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Dir = c.Dir
	id := mark + "=" + rand.Text()
	cmd.Env = slices.Concat(os.Environ(), c.Env, []string{id})
	transport := rpc.Command(cmd)
	// The end of the input comes from the probe, which waits for what follows.
	transport.StopTime, transport.KillTime, transport.MaxMessage = time.Nanosecond, c.Rung, c.MaxMessage
	stderr := &probe.Stderr{}
	cmd.Stderr = stderr
	inner, err := transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	stream := rpc.Wrap(inner, rpc.Wrapper{Close: func() error {
		err := inner.Close()
		sweep(id)
		return err
	}})
	return &probe.Target{Stream: stream, Stderr: stderr, Raw: inner.(rpc.FastStream).WriteLines, Process: true}, nil
}
