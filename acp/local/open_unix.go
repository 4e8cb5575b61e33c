//go:build unix

// This file owns what opening and replacing files needs of Unix.

package local

import (
	"io/fs"
	"os"
	"syscall"
)

// openFlags keep the opening of what turned into a FIFO or a device from waiting for its other side.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY

// keepOwner gives file the owner and group of old, which it is going to replace.
func keepOwner(file *os.File, old fs.FileInfo) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	is, ok1 := info.Sys().(*syscall.Stat_t)
	was, ok2 := old.Sys().(*syscall.Stat_t)
	if !ok1 || !ok2 || is.Uid == was.Uid && is.Gid == was.Gid {
		return nil
	}
	return file.Chown(int(was.Uid), int(was.Gid))
}
