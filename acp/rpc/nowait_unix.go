//go:build unix

package rpc

import (
	"os"
	"syscall"
	"time"
)

// nowait writes to a file without ever waiting for room. This requires a file that is in non-blocking mode, and whose
// mode is not changed by others, as other processes do with standard output.
type nowait struct {
	raw   syscall.RawConn
	write func(fd uintptr) bool // made once, for the following
	lines []byte                // its argument
	n     int                   // its result
}

// newNowait returns nil for a file that the runtime's poller does not know.
func newNowait(f *os.File) *nowait {
	raw, err := f.SyscallConn()
	if err != nil || f.SetWriteDeadline(time.Time{}) != nil {
		return nil
	}
	w := &nowait{raw: raw}
	w.write = func(fd uintptr) bool {
		w.n, _ = syscall.Write(int(fd), w.lines)
		return true // whatever has happened: it does not wait
	}
	return w
}

// try writes as much of lines as there is room for, and returns how much that is. It leaves finding out what prevents
// writing to others.
func (w *nowait) try(lines []byte) int {
	if w == nil {
		return 0
	}
	w.lines, w.n = lines, 0
	err := w.raw.Write(w.write)
	w.lines = nil
	if err != nil {
		return 0
	}
	return max(w.n, 0)
}
