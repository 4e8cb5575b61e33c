//go:build !linux

package local

import (
	"errors"
	"os"
)

// replaces says that existing files are overwritten in place, because package syscall does not report enough about a
// file here, such as its access control list, to create another one like it.
const replaces = false

func resemble(*os.File, *os.File) error { return errors.ErrUnsupported }

// handlePath returns "": on this system no path refers to an open directory.
func handlePath(*os.File) string { return "" }
