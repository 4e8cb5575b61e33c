//go:build unix

package local

import (
	"io"
	"os"
	"syscall"
)

// openFlags prevent opening from blocking if the file has become a FIFO or a device.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY

// nonblockingReader returns a reader of an open file that fails instead of blocking: /proc/kmsg and others pass for
// regular files and block.
func nonblockingReader(file *os.File) (io.Reader, error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &prompt{raw}, nil
}

type prompt struct{ raw syscall.RawConn }

func (r *prompt) Read(p []byte) (n int, err error) {
	failed := r.raw.Read(func(fd uintptr) bool {
		for {
			if n, err = syscall.Read(int(fd), p); err != syscall.EINTR {
				return true
			}
		}
	})
	switch {
	case failed != nil:
		return 0, failed
	case err == syscall.EAGAIN:
		return 0, ErrNotRegular
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}
