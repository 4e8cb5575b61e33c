// Package tty knows a little about terminals.
package tty

import (
	"os"
	"syscall"
)

// File is an *os.File, or embeds one.
type File interface {
	Stat() (os.FileInfo, error)
	SyscallConn() (syscall.RawConn, error)
}

// Is reports whether a File, or any other value, is a terminal or another character device.
func Is(file any) bool {
	f, ok := file.(File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Discard discards what was typed on a terminal and has not been read yet, an unfinished line too. It does nothing to a
// file that is no terminal, and on systems other than Linux and macOS.
func Discard(file File) {
	if conn, err := file.SyscallConn(); err == nil {
		_ = conn.Control(discard) // the file is closed
	}
}
