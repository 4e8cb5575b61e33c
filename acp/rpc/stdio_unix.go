//go:build unix

package rpc

import (
	"os"
	"syscall"
)

// interruptible returns a duplicate of a standard file that the runtime's poller waits for, so that
// Close interrupts a Read or Write. That takes non-blocking mode, which is a property of the open file
// and not of the duplicate: it is set for pipes and sockets only, not when standard error is the same
// one, and taken back by Close.
func interruptible(f *os.File) *stdFile {
	info, err := f.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return pumped(f)
	}
	if errInfo, err := os.Stderr.Stat(); err == nil && os.SameFile(info, errInfo) {
		return pumped(f)
	}
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		return pumped(f)
	}
	syscall.CloseOnExec(fd)
	if err := syscall.SetNonblock(fd, true); err != nil {
		syscall.Close(fd)
		return pumped(f)
	}
	dup := os.NewFile(uintptr(fd), f.Name())
	return &stdFile{ReadWriter: dup, close: func() error {
		err := dup.Close()
		if berr := syscall.SetNonblock(int(f.Fd()), false); err == nil {
			err = berr
		}
		return err
	}}
}
