//go:build !unix

package sessionstore

// openFlags are none: opening waits for nobody here, and names of devices are refused by os.Root.
const openFlags = 0

// syncDir does nothing: folders cannot be synchronized here.
func (d *DirOf[U]) syncDir() error { return nil }
