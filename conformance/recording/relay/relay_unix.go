//go:build unix

package relay

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/acpgo/sdk/internal/proc"
)

// forwarded has the signals to pass on. Others end the relay or cannot be caught.
var forwarded = []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1,
	syscall.SIGUSR2}

// Notify prepares this process to be a relay: signals that ask it to end are sent to the channel for Options.Signals
// instead, and writing to a closed pipe returns an error. The returned function undoes this.
func Notify() (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 16)
	signal.Notify(c, forwarded...)
	// The agent would inherit an ignored signal.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	return c, func() {
		signal.Stop(c)
		signal.Stop(broken)
	}
}

// Exit ends this process in the same way as another process ended, with the same exit status or the same signal.
func Exit(state *os.ProcessState) {
	if s, name := proc.EndedBy(state); name != "" {
		// A core dump, if any, is that of the other process.
		_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
		dieBy(s)
	}
	os.Exit(ExitStatus(state))
}
