//go:build unix

package rpc

import (
	"io"
	"os"
	"syscall"
	"time"
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
	return &stdFile{ReadWriter: newPolled(dup), close: func() error {
		err := dup.Close()
		if berr := syscall.SetNonblock(int(f.Fd()), false); err == nil {
			err = berr
		}
		return err
	}}
}

// polled is a file that the runtime's poller waits for.
type polled struct {
	*os.File
	raw     syscall.RawConn
	write   func(fd uintptr) bool // made once
	lines   []byte                // its argument
	written int                   // its result
}

// newPolled adds TryWrite to a file, unless the poller does not know it.
func newPolled(f *os.File) io.ReadWriteCloser {
	raw, err := f.SyscallConn()
	if err != nil || f.SetWriteDeadline(time.Time{}) != nil {
		return f
	}
	p := &polled{File: f, raw: raw}
	p.write = func(fd uintptr) bool {
		p.written, _ = syscall.Write(int(fd), p.lines)
		return true // whatever happened: it does not wait
	}
	return p
}

// TryWrite implements tryWriter.
func (p *polled) TryWrite(lines []byte) int {
	p.lines, p.written = lines, 0
	err := p.raw.Write(p.write)
	p.lines = nil
	if err != nil {
		return 0
	}
	return max(p.written, 0)
}
