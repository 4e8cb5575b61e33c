package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// flagExiting is PF_EXITING of the kernel, which a process has before its files are closed.
const flagExiting = 1 << 2

// Exiting reports whether the system is ending a process, or has ended it; false also means that it is not known.
func Exiting(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) == syscall.ESRCH
	}
	// After the name in parentheses: state, parent, group, session, terminal, its group, flags.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 7 {
		return false
	}
	flags, err := strconv.ParseUint(string(fields[6]), 10, 64)
	return err == nil && flags&flagExiting != 0
}
