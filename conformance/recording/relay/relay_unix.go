//go:build unix

package relay

import (
	"os"
	"os/signal"
	"syscall"
)

// forwarded are the signals that are handed on. Others end the relay, or are not for processes to catch.
var forwarded = []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2}

var signalNames = map[syscall.Signal]string{
	syscall.SIGHUP: "SIGHUP", syscall.SIGINT: "SIGINT", syscall.SIGQUIT: "SIGQUIT", syscall.SIGILL: "SIGILL",
	syscall.SIGTRAP: "SIGTRAP", syscall.SIGABRT: "SIGABRT", syscall.SIGBUS: "SIGBUS", syscall.SIGFPE: "SIGFPE",
	syscall.SIGKILL: "SIGKILL", syscall.SIGUSR1: "SIGUSR1", syscall.SIGSEGV: "SIGSEGV", syscall.SIGUSR2: "SIGUSR2",
	syscall.SIGPIPE: "SIGPIPE", syscall.SIGALRM: "SIGALRM", syscall.SIGTERM: "SIGTERM", syscall.SIGXCPU: "SIGXCPU",
	syscall.SIGXFSZ: "SIGXFSZ", syscall.SIGVTALRM: "SIGVTALRM", syscall.SIGPROF: "SIGPROF", syscall.SIGSYS: "SIGSYS",
}

// Notify makes this process ready to be a relay: signals that ask it to end are for Options.Signals instead, and a closed
// pipe is an error of writing. The function it returns undoes that.
func Notify() (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 16)
	signal.Notify(c, forwarded...)
	// Ignoring it would be inherited by the agent.
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

// Exit ends this process as another one has ended: with the same exit status, or by the same signal.
func Exit(state *os.ProcessState) {
	if s, ok := signalOf(state); ok {
		// The core, if any, is the other one's.
		_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
		dieBy(s)
	}
	os.Exit(ExitStatus(state))
}
