package relay

import (
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"unsafe"
)

// attach has the agent killed when this process is, which cannot do it any more.
func attach(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

// reachesGroup reports whether the terminal has sent a signal that was received here, and so to the agent too, which
// is in the same process group.
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

// dieBy ends this process by a signal. It returns if that cannot be.
func dieBy(s syscall.Signal) {
	signal.Reset(s)
	// What the runtime has set up would print stacks, or ignore the signal.
	action := [4]uint64{}
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	runtime.LockOSThread()
	_ = syscall.Kill(syscall.Getpid(), s)
	var none syscall.Timespec
	none.Sec = 1
	_ = syscall.Nanosleep(&none, nil) // until it is delivered
}
