//go:build unix

package rpc

import (
	"os"
	"syscall"
	"time"
)

// nowait writes to a file without ever blocking. The file must be in non-blocking mode, and no other process may change
// that mode, as may happen with standard output.
type nowait struct {
	raw   syscall.RawConn
	write func(fd uintptr) bool // created once, for the fields that follow
	lines []byte                // its argument
	n     int                   // its result
}

// newNowait returns nil for a file that the runtime's poller cannot handle.
func newNowait(f *os.File) *nowait {
	raw, err := f.SyscallConn()
	if err != nil || f.SetWriteDeadline(time.Time{}) != nil {
		return nil
	}
	w := &nowait{raw: raw}
	w.write = func(fd uintptr) bool {
		w.n, _ = syscall.Write(int(fd), w.lines)
		return true // whatever happened, do not wait
	}
	return w
}

// try writes as much of lines as fits without blocking, and returns how much that is. It does not report errors; the
// next ordinary write does.
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
