package relay

import (
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"unsafe"
)

// attach makes the kernel kill the agent if this process is killed.
func attach(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

// reachesGroup reports whether a received signal was sent by the terminal, and so also to the agent, which is in the
// same process group.
func reachesGroup(s os.Signal) bool {
	if s != syscall.SIGINT && s != syscall.SIGQUIT {
		return false
	}
	tty, err := syscall.Open("/dev/tty", syscall.O_RDONLY|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer syscall.Close(tty)
	var group int32
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(tty), syscall.TIOCGPGRP, uintptr(unsafe.Pointer(&group)))
	return errno == 0 && int(group) == syscall.Getpgrp()
}

// dieBy ends this process with a signal. It returns if that is not possible.
func dieBy(s syscall.Signal) {
	signal.Reset(s)
	// The handlers of the Go runtime would print stacks or ignore the signal.
	action := [4]uint64{}
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	runtime.LockOSThread()
	_ = syscall.Kill(syscall.Getpid(), s)
	var none syscall.Timespec
	none.Sec = 1
	_ = syscall.Nanosleep(&none, nil) // until it is delivered
}
