// Package proc starts commands so that everything they start can be ended with them: a session and
// process group of their own on Unix, a job object on Windows.
package proc

import (
	"os/exec"
	"syscall"
)

// attributes returns the attributes of cmd to add to, and keeps what its maker has set.
func attributes(cmd *exec.Cmd) *syscall.SysProcAttr {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	return cmd.SysProcAttr
}
