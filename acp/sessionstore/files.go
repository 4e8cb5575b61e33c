// This file has the names of the files of a Dir, and ensures that only regular files are opened. Other files that
// someone has put there are not followed or waited for.

package sessionstore

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/acpgo/sdk/acp"
)

const (
	headSuffix = ".json"
	logSuffix  = ".jsonl"
	tempSuffix = ".new" // the new content that is about to replace NAME.json

	plainPrefix  = "s-"
	hashedPrefix = "h-"
)

// nameOf returns the name of a session's files, without the suffix. It is the id, if that is short and has no
// characters that a file system could confuse by ignoring case, and otherwise the digest of the id. The prefix
// distinguishes the two from each other, and from names that have a special meaning on some system.
func nameOf(id acp.SessionID) string {
	const longest = 100
	foreign := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
	}
	if id != "" && len(id) <= longest && !strings.ContainsFunc(string(id), foreign) {
		return plainPrefix + string(id)
	}
	sum := sha256.Sum256([]byte(id))
	return hashedPrefix + hex.EncodeToString(sum[:])
}

// regular fails for anything except a regular file, and does not follow links.
func (d *Dir) regular(name string) (fs.FileInfo, error) {
	info, err := d.root.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w", d.file(name), errNotRegular)
	}
	return info, err
}

// open opens a regular file. With os.O_CREATE it creates the file if necessary.
func (d *Dir) open(name string, flag int) (file *os.File, size int64, err error) {
	want, err := d.regular(name)
	if errors.Is(err, fs.ErrNotExist) && flag&os.O_CREATE != 0 {
		file, err = d.root.OpenFile(name, flag|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			return file, 0, err
		}
		want, err = d.regular(name) // another process was faster
	}
	if err != nil {
		return nil, 0, err
	}
	if file, err = d.root.OpenFile(name, flag&^os.O_CREATE|openFlags, 0); err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err == nil && (!info.Mode().IsRegular() || !os.SameFile(info, want)) {
		err = fmt.Errorf("%s: %w", d.file(name), errNotRegular)
	}
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, info.Size(), nil
}

// replace writes a file atomically. The session is locked.
func (d *Dir) replace(name string, data []byte) error {
	if _, err := d.regular(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	temp := strings.TrimSuffix(name, headSuffix) + tempSuffix
	if err := d.remove(temp); err != nil { // left by a process that died
		return err
	}
	file, err := d.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	d.cutting(file, 0, data)
	_, err = file.Write(data)
	if err == nil {
		err = d.sync(file)
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		d.cutting(nil, 0, nil)
		err = d.root.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, d.remove(temp))
	}
	return d.syncDir()
}

// remove removes a file; it succeeds if the file does not exist.
func (d *Dir) remove(name string) error {
	d.cutting(nil, 0, nil)
	if err := d.root.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// cutting is called before each change to a file, with the data about to be written and its position, if the change is
// a write.
func (d *Dir) cutting(file *os.File, at int64, data []byte) {
	if d.cut != nil {
		d.cut(file, at, data)
	}
}

func (d *Dir) sync(file *os.File) error {
	if !d.opts.Sync {
		return nil
	}
	if d.synced != nil {
		d.synced(file.Name())
	}
	return file.Sync()
}
