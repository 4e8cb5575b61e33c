//go:build unix

package sessionstore

import (
	"errors"
	"syscall"
)

// openFlags prevent opening from blocking if the file has become a FIFO or a device.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY | syscall.O_NOFOLLOW

// syncDir syncs the names of files to the disk.
func (d *Dir) syncDir() error {
	if !d.opts.Sync {
		return nil
	}
	dir, err := d.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(d.sync(dir), dir.Close())
}
