// This file owns the locks of files on Windows.

package sessionstore

import (
	"os"
	"syscall"
	"unsafe"
)

var (
	kernel32     = syscall.NewLazyDLL("kernel32.dll")
	lockFileEx   = kernel32.NewProc("LockFileEx")
	unlockFileEx = kernel32.NewProc("UnlockFileEx")
)

const (
	lockfileFailImmediately = 1
	lockfileExclusiveLock   = 2

	errorLockViolation syscall.Errno = 33
	errorIOPending     syscall.Errno = 997
)

// tryLock locks a file if nobody else has. The system unlocks it when the process ends.
func tryLock(file *os.File) (bool, error) {
	var at syscall.Overlapped
	ok, _, err := lockFileEx.Call(file.Fd(), lockfileFailImmediately|lockfileExclusiveLock, 0, 1, 0, uintptr(unsafe.Pointer(&at)))
	switch {
	case ok != 0:
		return true, nil
	case err == errorLockViolation || err == errorIOPending:
		return false, nil
	}
	return false, os.NewSyscallError("LockFileEx", err)
}

func unlock(file *os.File) error {
	var at syscall.Overlapped
	if ok, _, err := unlockFileEx.Call(file.Fd(), 0, 1, 0, uintptr(unsafe.Pointer(&at))); ok == 0 {
		return os.NewSyscallError("UnlockFileEx", err)
	}
	return nil
}
