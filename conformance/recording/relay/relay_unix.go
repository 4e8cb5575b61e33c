//go:build unix

package relay

import (
	"os"
	"os/signal"
	"syscall"
)

// forwarded has the signals to pass on. Others end the relay or cannot be caught.
var forwarded = []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1,
	syscall.SIGUSR2}

var signalNames = map[syscall.Signal]string{
	syscall.SIGHUP: "SIGHUP", syscall.SIGINT: "SIGINT", syscall.SIGQUIT: "SIGQUIT", syscall.SIGILL: "SIGILL",
	syscall.SIGTRAP: "SIGTRAP", syscall.SIGABRT: "SIGABRT", syscall.SIGBUS: "SIGBUS", syscall.SIGFPE: "SIGFPE",
	syscall.SIGKILL: "SIGKILL", syscall.SIGUSR1: "SIGUSR1", syscall.SIGSEGV: "SIGSEGV", syscall.SIGUSR2: "SIGUSR2",
	syscall.SIGPIPE: "SIGPIPE", syscall.SIGALRM: "SIGALRM", syscall.SIGTERM: "SIGTERM", syscall.SIGXCPU: "SIGXCPU",
	syscall.SIGXFSZ: "SIGXFSZ", syscall.SIGVTALRM: "SIGVTALRM", syscall.SIGPROF: "SIGPROF", syscall.SIGSYS: "SIGSYS",
}

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

func signalOf(state *os.ProcessState) (syscall.Signal, bool) {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return status.Signal(), true
	}
	return 0, false
}

// Exit ends this process in the same way as another process ended, with the same exit status or the same signal.
func Exit(state *os.ProcessState) {
	if s, ok := signalOf(state); ok {
		// A core dump, if any, is that of the other process.
		_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
		dieBy(s)
	}
	os.Exit(ExitStatus(state))
}
