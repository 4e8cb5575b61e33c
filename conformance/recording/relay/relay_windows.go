package relay

import (
	"os"
	"os/exec"
	"os/signal"
)

// Notify prepares this process to be a relay: an interrupt, which the agent receives too, does not end it.
func Notify() (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 16)
	signal.Notify(c, os.Interrupt)
	return nil, func() { signal.Stop(c) }
}

func attach(*exec.Cmd) {}

func reachesGroup(os.Signal) bool { return true }

// Exit ends this process with the exit status of another process.
func Exit(state *os.ProcessState) { os.Exit(ExitStatus(state)) }
