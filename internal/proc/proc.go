// Package proc starts commands so that they can be ended together with the processes that they start: in a
// session and process group of their own on Unix, in a job object on Windows. On Unix a process leaves the group by
// setsid or setpgid and is then out of reach: what could find it, a cgroup or PR_SET_CHILD_SUBREAPER, is not for a
// library to take from its application.
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
