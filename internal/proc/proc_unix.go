//go:build unix

package proc

import (
	"os/exec"
	"sync"
	"syscall"
)

// A Group is a command and the processes that it started, except those that left for a session or
// group of their own. Its methods are safe for concurrent use.
type Group struct {
	mu sync.Mutex
	id int // 0 once it is known to be empty: the number may then be another group's
}

// Start starts a command. It has no controlling terminal, so that a password prompt fails instead of
// stopping in the background, and a Ctrl-C meant for this program does not reach it.
func Start(cmd *exec.Cmd) (*Group, error) {
	// A new session brings a new group; asking for both is an error.
	a := attributes(cmd)
	a.Setsid, a.Setpgid = true, false
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &Group{id: cmd.Process.Pid}, nil
}

// Ask asks all processes to end and reports that they were asked.
func (g *Group) Ask() bool {
	g.signal(syscall.SIGTERM)
	return true
}

// Kill ends all processes.
func (g *Group) Kill() { g.signal(syscall.SIGKILL) }

// Reaped says that the command's own exit was collected. If it left nobody behind, the group's number
// is free from here on.
func (g *Group) Reaped() { g.signal(0) }

// Free gives back what the system holds for the group, which is nothing here.
func (g *Group) Free() {}

func (g *Group) signal(sig syscall.Signal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.id == 0 {
		return
	}
	// Other failures mean that some process may not be signalled, which is no reason to lose the rest.
	if err := syscall.Kill(-g.id, sig); err == syscall.ESRCH {
		g.id = 0
	}
}
