//go:build unix && !linux

package proc

import (
	"os"
	"syscall"
)

// A leader refers to a process group; on this system only by its number.
type leader struct{}

func leaderOf(*os.Process) leader { return leader{} }

// signal signals the group, whose number is id.
func (leader) signal(id int, sig syscall.Signal) error { return syscall.Kill(-id, sig) }

func (*leader) free() {}
