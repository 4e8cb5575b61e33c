package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// discardInput discards typed input of a terminal that has not been read yet.
func discardInput(file *os.File) {
	_ = unix.IoctlSetInt(int(file.Fd()), unix.TCFLSH, unix.TCIFLUSH) // fails if file is not a terminal
}
