//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

// This file owns the locks of files on Unix.

package sessionstore

import (
	"os"
	"syscall"
)

// tryLock locks a file if nobody else has. The system unlocks it when the process ends.
func tryLock(file *os.File) (bool, error) {
	for {
		switch err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err {
		case nil:
			return true, nil
		case syscall.EWOULDBLOCK:
			return false, nil
		case syscall.EINTR:
		default:
			return false, os.NewSyscallError("flock", err)
		}
	}
}

func unlock(file *os.File) error {
	return os.NewSyscallError("flock", syscall.Flock(int(file.Fd()), syscall.LOCK_UN))
}
