//go:build unix

package sessionstore

import (
	"errors"
	"syscall"
)

// openFlags keep the opening of what turned into a FIFO or a device from waiting for its other side.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY | syscall.O_NOFOLLOW

// syncDir has the names of files reach the disk.
func (d *DirOf[U]) syncDir() error {
	if !d.opts.Sync {
		return nil
	}
	dir, err := d.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(d.sync(dir), dir.Close())
}
