//go:build !unix

package rpc

import "os"

// interruptible returns a standard file whose Read can be interrupted by Close.
func interruptible(f *os.File) *stdFile { return pumped(f) }
