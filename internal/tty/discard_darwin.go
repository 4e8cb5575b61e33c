package tty

import (
	"syscall"
	"unsafe"
)

func discard(fd uintptr) {
	input := int32(1) // FREAD
	// fails if it is no terminal
	_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCFLUSH, uintptr(unsafe.Pointer(&input)))
}
