// Package proc starts commands so that they can be ended together with all processes that they start: in a
// session and process group of their own on Unix, in a job object on Windows.
package proc

import (
	"os/exec"
	"syscall"
)

// attributes returns the attributes of cmd, with what the caller has already set in them.
func attributes(cmd *exec.Cmd) *syscall.SysProcAttr {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	return cmd.SysProcAttr
}
