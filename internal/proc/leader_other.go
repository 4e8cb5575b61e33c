//go:build unix && !linux

package proc

import (
	"os"
	"syscall"
)

// A leader names a group, here by its number alone.
type leader struct{}

func leaderOf(*os.Process) leader { return leader{} }

// signal signals the group, whose number is id.
func (leader) signal(id int, sig syscall.Signal) error { return syscall.Kill(-id, sig) }

func (*leader) free() {}
