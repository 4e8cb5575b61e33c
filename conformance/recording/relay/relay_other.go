//go:build unix && !linux

package relay

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// attach has nothing to do: the agent's input ends when this process is killed.
func attach(*exec.Cmd) {}

// reachesGroup reports whether a signal that was received here has reached the agent too, which is not known.
func reachesGroup(os.Signal) bool { return false }

// dieBy ends this process by a signal. It returns if that cannot be.
func dieBy(s syscall.Signal) {
	signal.Reset(s)
	if syscall.Kill(syscall.Getpid(), s) == nil {
		time.Sleep(time.Second) // until it is delivered
	}
}
