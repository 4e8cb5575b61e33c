//go:build unix && !linux

package relay

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// attach does nothing: the agent's input ends if this process is killed.
func attach(*exec.Cmd) {}

// reachesGroup reports whether a received signal has also reached the agent, which is unknown here.
func reachesGroup(os.Signal) bool { return false }

// dieBy ends this process with a signal. It returns if that is not possible.
func dieBy(s syscall.Signal) {
	signal.Reset(s)
	if syscall.Kill(syscall.Getpid(), s) == nil {
		time.Sleep(time.Second) // until it is delivered
	}
}
