//go:build !linux

package local

import (
	"errors"
	"os"
)

// replaces says that existing files are written where they are: what package syscall tells of a file here, such as
// nothing of its access control list, is not enough to make another one like it.
const replaces = false

func resemble(*os.File, *os.File) error { return errors.ErrUnsupported }

// handlePath returns "": here no path means an open directory.
func handlePath(*os.File) string { return "" }
