//go:build !unix

package rpc

import "os"

// interruptible returns a form of a standard file whose reading Close interrupts.
func interruptible(f *os.File) *stdFile { return pumped(f) }
