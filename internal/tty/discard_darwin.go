package tty

import (
	"syscall"
	"unsafe"
)

func discard(fd uintptr) {
	input := int32(1)                                                                                    // FREAD
	_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCFLUSH, uintptr(unsafe.Pointer(&input))) // fails if it is no terminal
}
