//go:build !unix

package rpc

import (
	"io"
	"os"
)

// interruptible returns a form of a standard file whose reading Close interrupts.
func interruptible(f *os.File) io.ReadWriteCloser { return pumped(f) }
