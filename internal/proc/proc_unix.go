//go:build unix

package proc

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// A Group is a command and the processes that it started, except those that have moved to another session or group. Its
// methods are safe for concurrent use.
type Group struct {
	mu     sync.Mutex
	id     int // 0 once the group is known to be empty, because its number may then belong to another group
	leader leader
}

// Start starts a command. The command has no controlling terminal, so a password prompt fails instead of being stopped
// in the background, and a Ctrl-C meant for this program does not reach it.
func Start(cmd *exec.Cmd) (*Group, error) {
	// A new session has a new group; setting both is an error.
	a := attributes(cmd)
	a.Setsid, a.Setpgid = true, false
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &Group{id: cmd.Process.Pid, leader: leaderOf(cmd.Process)}, nil
}

// Ask asks all processes to end, and returns true.
func (g *Group) Ask() bool {
	g.signal(syscall.SIGTERM)
	return true
}

// Kill ends all processes.
func (g *Group) Kill() { g.signal(syscall.SIGKILL) }

// Reaped tells the Group that the exit status of the command itself has been collected. If no other process is left,
// the system may reuse the group's number.
func (g *Group) Reaped() { g.signal(0) }

// Free releases the system resources of the group, which can no longer be signaled.
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
	// Another error means that some process may not be signaled; the others still can.
	if err := g.leader.signal(g.id, sig); err == syscall.ESRCH {
		g.id = 0
	}
}

// EndedBy returns the signal that ended a process, and its usual name: package syscall has only descriptions. The name
// is "" if no signal did.
func EndedBy(state *os.ProcessState) (sig syscall.Signal, name string) {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return 0, ""
	}
	sig = status.Signal()
	if name, ok = signalNames[sig]; !ok {
		name = fmt.Sprintf("SIG%d", int(sig))
	}
	return sig, name
}

var signalNames = map[syscall.Signal]string{
	syscall.SIGHUP: "SIGHUP", syscall.SIGINT: "SIGINT", syscall.SIGQUIT: "SIGQUIT", syscall.SIGILL: "SIGILL",
	syscall.SIGTRAP: "SIGTRAP", syscall.SIGABRT: "SIGABRT", syscall.SIGBUS: "SIGBUS", syscall.SIGFPE: "SIGFPE",
	syscall.SIGKILL: "SIGKILL", syscall.SIGUSR1: "SIGUSR1", syscall.SIGSEGV: "SIGSEGV", syscall.SIGUSR2: "SIGUSR2",
	syscall.SIGPIPE: "SIGPIPE", syscall.SIGALRM: "SIGALRM", syscall.SIGTERM: "SIGTERM", syscall.SIGXCPU: "SIGXCPU",
	syscall.SIGXFSZ: "SIGXFSZ", syscall.SIGVTALRM: "SIGVTALRM", syscall.SIGPROF: "SIGPROF", syscall.SIGSYS: "SIGSYS",
	syscall.SIGIO: "SIGIO",
}
