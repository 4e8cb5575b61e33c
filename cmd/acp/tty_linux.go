package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// discardInput discards what was typed into a terminal and not yet read.
func discardInput(file *os.File) {
	_ = unix.IoctlSetInt(int(file.Fd()), unix.TCFLSH, unix.TCIFLUSH) // it fails for what is not a terminal
}
