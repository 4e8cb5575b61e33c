//go:build !unix

package rpc

import (
	"io"
	"os"
)

// interruptible returns a form of a standard file whose reading Close interrupts.
func interruptible(f *os.File) *stdFile { return pumped(f) }

// newPolled returns f.
func newPolled(f *os.File) io.ReadWriteCloser { return f }
