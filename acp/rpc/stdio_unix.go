//go:build unix

package rpc

import (
	"os"
	"syscall"
)

// interruptible returns a duplicate of a standard file that the runtime's poller can wait for, so that Close interrupts
// a Read or a Write. This requires non-blocking mode, which is a property of the open file and not of the duplicate: it
// is set only for pipes and sockets that standard error does not share, and Close resets it.
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
