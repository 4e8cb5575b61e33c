// Package input reads the files that a user names. None of them holds up the program for ever: a named pipe may have
// nobody at its other end.
package input

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// patience is how long what is no regular file may take: a command in <(…) may have to do something first.
const patience = 30 * time.Second

// ReadFile reads a file that has at most so many bytes.
func ReadFile(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path) // what is wrong is said by opening it
	regular := err == nil && info.Mode().IsRegular()
	pipe := err == nil && info.Mode()&os.ModeNamedPipe != 0
	flag := os.O_RDONLY
	if pipe {
		flag |= syscall.O_NONBLOCK // to open it does not wait for a writer
	}
	file, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if !regular {
		_ = file.SetReadDeadline(time.Now().Add(patience)) // what has none is read at once, or is a terminal
	}
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fmt.Errorf("%s: not read to its end within %v", path, patience)
	case err != nil:
		return nil, err
	case int64(len(text)) > most:
		return nil, fmt.Errorf("%s has more than %d bytes", path, most)
	case len(text) == 0 && pipe:
		return nil, fmt.Errorf("%s is a pipe into which nobody writes", path)
	}
	return text, nil
}

// Create makes a file to be written, or empties it. Of a named pipe somebody has to read.
func Create(path string) (*os.File, error) {
	flag := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	info, err := os.Stat(path)
	pipe := err == nil && info.Mode()&os.ModeNamedPipe != 0
	if pipe {
		flag = os.O_WRONLY | syscall.O_NONBLOCK // to open it does not wait for a reader
	}
	file, err := os.OpenFile(path, flag, 0o600)
	if pipe && errors.Is(err, syscall.ENXIO) {
		return nil, fmt.Errorf("%s is a pipe from which nobody reads", path)
	}
	return file, err
}
