// This file owns reading and writing the files of a client.

package local

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"
	"unicode/utf8"
)

// DefaultMaxFileSize is the longest text, in bytes, that is read or written when nothing else is asked for. Even if
// all of it is control characters, which take six bytes each in JSON, it fits in a message of the default size.
const DefaultMaxFileSize = 10 << 20

// FilesOptions configure [NewFiles].
type FilesOptions struct {
	// MaxSize bounds a text that is read or written, in bytes; 0 is DefaultMaxFileSize. A request for some lines of a
	// larger file is served if those lines are short enough.
	MaxSize int64
	// ReadOnly refuses writing.
	ReadOnly bool
}

// Files serves fs/read_text_file and fs/write_text_file from the disk, inside the directories of a
// [Roots].
//
// Only regular files of UTF-8 text are served; everything else is refused without waiting for it. No
// byte is changed on the way: line endings, a byte order mark and a missing newline at the end stay.
//
// Files may be used concurrently. A reader sees a file as it was before or after a write, never in
// between, as long as only this Files writes it.
type Files struct {
	roots    *Roots
	maxSize  int64
	readOnly bool
	inPlace  sync.RWMutex // held for writing while a file is overwritten where it is
}

// NewFiles serves the files inside roots. Nil options are the defaults.
func NewFiles(roots *Roots, options *FilesOptions) *Files {
	if options == nil {
		options = &FilesOptions{}
	}
	return &Files{
		roots:    roots,
		maxSize:  min(orDefault(options.MaxSize, DefaultMaxFileSize), math.MaxInt64-1),
		readOnly: options.ReadOnly,
	}
}

// What the errors of files and working directories say was tried.
const (
	opRead  = "read"
	opWrite = "write"
	opStart = "chdir"
)

// read returns some lines of a file.
func (f *Files) read(ctx context.Context, session sessionKey, path string, lines window) (string, error) {
	if lines.first == 0 {
		return "", &paramError{"line", errLine}
	}
	set, err := f.roots.of(session)
	if err != nil {
		return "", err
	}
	at, err := set.locate(opRead, path)
	if err != nil {
		return "", err
	}
	text, err := f.readPlace(ctx, at, lines)
	if err != nil {
		return "", pathError(opRead, at, err)
	}
	return text, nil
}

func (f *Files) readPlace(ctx context.Context, at place, lines window) (string, error) {
	f.inPlace.RLock()
	defer f.inPlace.RUnlock()
	file, err := at.open(os.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := lines.read(ctx, file, f.maxSize)
	if err != nil {
		return "", err
	}
	if !utf8.ValidString(text) {
		return "", ErrNotText
	}
	return text, nil
}

// write makes content the text of a file, which is created when it is missing, with its directories.
func (f *Files) write(session sessionKey, path, content string) error {
	if f.readOnly {
		return ErrReadOnly
	}
	set, err := f.roots.of(session)
	if err != nil {
		return err
	}
	at, err := set.locate(opWrite, path)
	if err != nil {
		return err
	}
	if int64(len(content)) > f.maxSize {
		return pathError(opWrite, at, ErrTooLarge)
	}
	if err := f.writePlace(at, content); err != nil {
		return pathError(opWrite, at, err)
	}
	return nil
}

func (f *Files) writePlace(at place, content string) error {
	info, err := at.root.dir.Lstat(at.rel)
	if errors.Is(err, fs.ErrNotExist) {
		if err := at.root.dir.MkdirAll(filepath.Dir(at.rel), 0o777); err != nil {
			return err
		}
		return at.replace(content, nil)
	}
	if err != nil {
		return err
	}
	switch {
	case info.Mode().Type() == fs.ModeSymlink: // the link stays, what it means is written
		return f.overwrite(at, content)
	case !info.Mode().IsRegular():
		return ErrNotRegular
	}
	// A file that may not be written is not to be replaced either.
	file, err := at.open(os.O_WRONLY)
	if err != nil {
		return err
	}
	file.Close() // nothing was written, so nothing can be lost
	if err := at.replace(content, info); !errors.Is(err, errIrreplaceable) {
		return err
	}
	return f.overwrite(at, content)
}

// overwrite writes a file where it is. A crash in the middle leaves it incomplete.
func (f *Files) overwrite(at place, content string) (err error) {
	f.inPlace.Lock()
	defer f.inPlace.Unlock()
	file, err := at.open(os.O_WRONLY | os.O_CREATE)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err = file.WriteString(content)
	return err
}

// open opens a regular file. Whatever else is there is neither opened, as far as that can be known
// before, nor waited for.
func (p place) open(flag int) (*os.File, error) {
	info, err := p.root.dir.Stat(p.rel)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return nil, ErrNotRegular
	case err != nil && !(errors.Is(err, fs.ErrNotExist) && flag&os.O_CREATE != 0):
		return nil, err
	}
	file, err := p.root.dir.OpenFile(p.rel, flag|openFlags, 0o666)
	if err != nil {
		return nil, err
	}
	if info, err = file.Stat(); err == nil && !info.Mode().IsRegular() {
		err = ErrNotRegular
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// errIrreplaceable says that nothing was changed because this file can only be written where it is:
// its directory takes no new file, its owner or mode cannot be kept, or it is a mount point.
var errIrreplaceable = errors.New("cannot be replaced")

// replace puts a new file with the content in the place of old, or where nothing is when old is nil,
// in one step. The new file keeps the permissions and the owner of the old one; hard links to the old
// one keep the old content. A crash may leave a file ".acp-*" behind.
func (p place) replace(content string, old fs.FileInfo) (err error) {
	perm := fs.FileMode(0o666)
	if old != nil {
		perm = old.Mode().Perm()
	}
	dir := p.root.dir
	temp := filepath.Join(filepath.Dir(p.rel), ".acp-"+rand.Text())
	file, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if errors.Is(err, fs.ErrPermission) && old != nil {
		return fmt.Errorf("%w: %w", errIrreplaceable, err)
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, dir.Remove(temp))
		}
	}()
	if err := errors.Join(fill(file, content, old), file.Close()); err != nil {
		return err
	}
	if err := dir.Rename(temp, p.rel); err != nil {
		if old != nil {
			err = fmt.Errorf("%w: %w", errIrreplaceable, err)
		}
		return err
	}
	return nil
}

// fill writes a new file and brings it to the disk, so that its name never means less than all of it.
func fill(file *os.File, content string, old fs.FileInfo) error {
	if old != nil {
		// The umask may have taken bits away, and a new owner may take more.
		if err := cmp.Or(keepOwner(file, old), file.Chmod(old.Mode().Perm())); err != nil {
			return fmt.Errorf("%w: %w", errIrreplaceable, err)
		}
	}
	if _, err := file.WriteString(content); err != nil {
		return err
	}
	return file.Sync()
}
