package local

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// The operations of a file that overwrite needs.
type overwritable interface {
	io.WriterAt
	Stat() (fs.FileInfo, error)
	Chmod(fs.FileMode) error
	Truncate(size int64) error
	Sync() error
}

// overwrite replaces the text of a file in place, so that the file keeps all its attributes except the setuid and
// setgid permissions, which new content must not get. The part of a longer text that exceeds the old one is written
// first: if the disk is full, the old text stays. Once begun it does not end early: a failure in the middle, or a
// crash, leaves a mixture of both texts.
func overwrite(file overwritable, content string) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	const run = fs.ModeSetuid | fs.ModeSetgid
	if mode := info.Mode(); mode&run != 0 {
		// The system does the same, except for the superuser.
		if err := file.Chmod(mode &^ run); err != nil {
			return err
		}
	}
	begin, old := []byte(content), info.Size()
	if int64(len(begin)) > old {
		_, err := file.WriteAt(begin[old:], old)
		if err == nil {
			err = file.Sync() // some systems report only now that the disk is full
		}
		if err != nil {
			return errors.Join(err, file.Truncate(old))
		}
		begin = begin[:old]
	}
	if _, err := file.WriteAt(begin, 0); err != nil {
		return fmt.Errorf("the file is left incomplete: %w", reason(err))
	}
	if err := file.Truncate(int64(len(content))); err != nil {
		return fmt.Errorf("the file is left with the end of its old text: %w", reason(err))
	}
	return file.Sync()
}
