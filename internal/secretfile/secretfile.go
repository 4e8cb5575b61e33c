// Package secretfile says whether a file may be used for tokens and keys.
package secretfile

import (
	"fmt"
	"io/fs"
	"runtime"
)

// Check refuses a regular file that others than its owner can write to, because those would decide what is used, or
// that everybody can read. A group may read it: services get their secrets that way.
func Check(path string, info fs.FileInfo) error {
	if mode := info.Mode(); runtime.GOOS != "windows" && mode.IsRegular() && mode.Perm()&0o037 != 0 {
		return fmt.Errorf("%s: others may read or change it (mode %v); chmod 600 %[1]s", path, mode.Perm())
	}
	return nil
}
