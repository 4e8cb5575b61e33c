package inspect

import (
	"errors"
	"os"
	"sync"
)

// spool is the file of a source. Once the source has ended, it is open only while it is used: a recording may have more
// connections than the system allows open files.
type spool struct {
	path string

	mu   sync.Mutex
	file *os.File // nil if it is not kept open
}

func newSpool(path string) (*spool, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	return &spool{path: path, file: file}, err
}

// do uses the file.
func (s *spool) do(use func(*os.File) (int, error)) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	file := s.file
	if file == nil {
		if file, err = os.OpenFile(s.path, os.O_RDWR|os.O_APPEND, 0); err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
	}
	return use(file)
}

// ReadAt implements io.ReaderAt.
func (s *spool) ReadAt(b []byte, from int64) (int, error) {
	return s.do(func(f *os.File) (int, error) { return f.ReadAt(b, from) })
}

// Write appends to the file.
func (s *spool) Write(b []byte) (int, error) {
	return s.do(func(f *os.File) (int, error) { return f.Write(b) })
}

// Close closes the file, which can still be used.
func (s *spool) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	file := s.file
	s.file = nil
	if file == nil {
		return nil
	}
	return file.Close()
}
