//go:build unix

package proc

import (
	"os/exec"
	"sync"
	"syscall"
)

// A Group is a command and the processes that it started, except those that have moved to a session or
// group of their own. Its methods are safe for concurrent use.
type Group struct {
	mu     sync.Mutex
	id     int // 0 once it is known to be empty: the number may then be another group's
	leader leader
}

// Start starts a command. It has no controlling terminal, so that a password prompt fails instead of
// stopping in the background, and a Ctrl-C meant for this program does not reach it.
func Start(cmd *exec.Cmd) (*Group, error) {
	// A new session has a new group; setting both is an error.
	a := attributes(cmd)
	a.Setsid, a.Setpgid = true, false
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &Group{id: cmd.Process.Pid, leader: leaderOf(cmd.Process)}, nil
}

// Ask asks all processes to end and reports that they were asked.
func (g *Group) Ask() bool {
	g.signal(syscall.SIGTERM)
	return true
}

// Kill ends all processes.
func (g *Group) Kill() { g.signal(syscall.SIGKILL) }

// Reaped tells the Group that the command's own exit status was collected. If no other process is left, the
// system may use the group's number again.
func (g *Group) Reaped() { g.signal(0) }

// Free releases the system's resources of the group, which cannot be signalled any more.
func (g *Group) Free() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.id = 0
	g.leader.free()
}

func (g *Group) signal(sig syscall.Signal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.id == 0 {
		return
	}
	// Another error means that some process may not be signalled: the others still may.
	if err := g.leader.signal(g.id, sig); err == syscall.ESRCH {
		g.id = 0
	}
}
