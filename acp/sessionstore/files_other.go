//go:build !unix

package sessionstore

// openFlags is 0: opening never blocks on this system, and os.Root refuses names of devices.
const openFlags = 0

// syncDir does nothing: directories cannot be synced on this system.
func (d *Dir) syncDir() error { return nil }
