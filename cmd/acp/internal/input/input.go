// Package input reads and writes files that a user names, and splits what programs write into lines. No file blocks the
// program forever: a named pipe may have no writer.
package input

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/term"
)

// patience is how long a file that is not a regular file may be silent: a command in <(…) may have to work first.
var patience = 30 * time.Second

// Open opens a file of any length, a regular file or a pipe, that is read as data arrives. A pipe must not be silent
// for longer than 30 s, except for standard input. The error does not contain the file's name.
func Open(path string) (io.ReadCloser, error) {
	file, isPipe, err := open(path, os.O_RDONLY)
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = fmt.Errorf("%s: %w", e.Op, e.Err)
	}
	if err != nil {
		return nil, err
	}
	if err := HasEnd(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if isPipe {
		return &pipe{File: file}, nil
	}
	return file, nil
}

// open opens a file. It does not wait for the other side of a named pipe.
func open(path string, flag int) (file *os.File, isPipe bool, err error) {
	info, err := os.Stat(path) // opening it reports the error
	if isPipe = err == nil && info.Mode()&os.ModeNamedPipe != 0; isPipe {
		flag = flag&^(os.O_CREATE|os.O_TRUNC) | syscall.O_NONBLOCK
	}
	file, err = os.OpenFile(path, flag, 0o600)
	return file, isPipe, err
}

// HasEnd returns an error for a directory, and for a device other than a terminal or the null device, or a file of the
// kernel that works like one, because others may have no end. It returns nil for readers other than *os.File.
func HasEnd(from io.Reader) error {
	file, ok := from.(*os.File)
	if !ok {
		return nil
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		return errors.New("a directory, not a file")
	}
	// A regular file of Linux that may keep a reader waiting is one of the kernel, such as /proc/kmsg.
	if runtime.GOOS == "linux" && info.Mode().IsRegular() && file.SetReadDeadline(time.Time{}) == nil {
		return errors.New("a device, not a file")
	}
	null, err := os.Stat(os.DevNull)
	if info.Mode()&os.ModeDevice != 0 && (err != nil || !os.SameFile(info, null)) && !term.IsTerminal(int(file.Fd())) {
		return errors.New("a device, not a file")
	}
	return nil
}

// Folder returns an error unless there is a directory with that path.
func Folder(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s: not a directory", path)
	}
	return err
}

// pipe is a named pipe.
type pipe struct {
	*os.File
	some bool // whether data has arrived
}

func (p *pipe) Read(b []byte) (int, error) {
	if err := p.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	n, err := p.File.Read(b)
	p.some = p.some || n > 0
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("no data from the pipe for %v; standard input may be silent for longer", patience)
	case err == io.EOF && !p.some:
		err = errors.New("a pipe without a writer")
	}
	return n, err
}

// ReadFile reads a file of at most the given number of bytes.
func ReadFile(path string, most int64) ([]byte, error) {
	file, isPipe, err := open(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	_ = file.SetReadDeadline(time.Now().Add(patience)) // fails for files that are read at once, and for terminals
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fmt.Errorf("%s: not fully read within %v", path, patience)
	case err != nil:
		return nil, err
	case int64(len(text)) > most:
		return nil, fmt.Errorf("%s has more than %d bytes", path, most)
	case len(text) == 0 && isPipe:
		return nil, fmt.Errorf("%s is a pipe without a writer", path)
	}
	return text, nil
}

// Create creates or truncates a file for writing. A named pipe must have a reader.
func Create(path string) (*os.File, error) {
	file, isPipe, err := open(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if isPipe && errors.Is(err, syscall.ENXIO) {
		return nil, fmt.Errorf("%s is a pipe without a reader", path)
	}
	return file, err
}
