//go:build !unix

package sessionstore

// openFlags are none: opening never waits here, and os.Root refuses names of devices.
const openFlags = 0

// syncDir does nothing: directories cannot be synchronized here.
func (d *DirOf[U]) syncDir() error { return nil }
