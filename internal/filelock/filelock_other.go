//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package filelock

import (
	"errors"
	"os"
)

func open(string) (*os.File, error) { return nil, errors.ErrUnsupported }
