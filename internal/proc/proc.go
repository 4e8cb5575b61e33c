// Package proc starts commands so that they can be ended together with the processes that they start: in a session and
// process group of their own on Unix, in a job object on Windows. On Unix, a process that leaves the group by setsid or
// setpgid is out of reach: it could be found only through a cgroup or PR_SET_CHILD_SUBREAPER, which belong to the
// application and not to a library.
package proc

import (
	"os/exec"
	"syscall"
)

// attributes returns the attributes of cmd, including those that the caller has set.
func attributes(cmd *exec.Cmd) *syscall.SysProcAttr {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	return cmd.SysProcAttr
}
