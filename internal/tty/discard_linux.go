//go:build 386 || amd64 || arm || arm64 || loong64 || riscv64 || s390x

package tty

import "syscall"

func discard(fd uintptr) {
	// TCFLSH, which package syscall does not have
	const flush = 0x540b
	_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, fd, flush, uintptr(syscall.TCIFLUSH)) // fails if it is no terminal
}
