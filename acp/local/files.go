package local

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/acpgo/sdk/acp/rpc"
)

// Defaults of [FilesOptions].
const (
	// DefaultMaxFileSize is the longest text, in bytes, that is read or written by default. Even if it consists only of
	// control characters, which take six bytes each in JSON, it fits in a message of the default size.
	DefaultMaxFileSize = 10 << 20
	// DefaultMaxScan is how far into a file, in bytes, the lines of a request may begin by default.
	DefaultMaxScan = 256 << 20
)

// FilesOptions configures [NewFiles].
type FilesOptions struct {
	// MaxSize bounds a text that is read or written, in bytes; 0 is DefaultMaxFileSize. A request for some lines of a
	// larger file is served if those lines are short enough.
	MaxSize int64
	// MaxScan bounds how far into a file the first line of a window may begin, in bytes; 0 is DefaultMaxScan. A request
	// reads at most MaxScan plus MaxSize bytes; if it needed more, it fails with ErrTooFar or ErrTooLarge.
	MaxScan int64
}

// Files serves fs/read_text_file and fs/write_text_file from the disk, inside the directories of a [Roots].
//
// Only regular files of UTF-8 text are served; others are refused without blocking. Contents are not converted: line
// endings, a byte order mark and a missing newline at the end are kept.
//
// Files may be used concurrently. Requests do not wait for each other, except those that write the same file in place.
// Requests end early when their contexts end; only a file system that does not respond can delay this.
type Files struct {
	roots    *Roots
	most     bounds
	approval *Approval // nil refuses writing
	inPlace  turns     // serializes writes in place
}

// NewFiles returns a Files that serves the files inside roots. Reading needs no approval; if approval is nil, the files
// are read-only. Nil options mean the defaults.
func NewFiles(roots *Roots, approval *Approval, options *FilesOptions) *Files {
	options = cmp.Or(options, &FilesOptions{})
	return &Files{
		roots: roots,
		most: bounds{
			text: min(orDefault(options.MaxSize, DefaultMaxFileSize), math.MaxInt64/2),
			scan: min(orDefault(options.MaxScan, DefaultMaxScan), math.MaxInt64/2),
		},
		approval: approval,
	}
}

// The operations named in errors about files and working directories.
const (
	opRead  = "read"
	opWrite = "write"
	opStart = "chdir"
	opFind  = "find"
)

// read returns some lines of a file.
func (f *Files) read(ctx context.Context, session sessionKey, path string, lines window) (string, error) {
	if lines.first == 0 {
		return "", &paramError{"line", errLine}
	}
	set, err := f.roots.rootsOf(session)
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
	// It is opened later: many requests may be waiting for room, and open files are limited.
	info, err := at.root.dir.Stat(at.rel)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", ErrNotRegular
	}
	most := f.most
	size := info.Size()
	if lines == wholeText && size > most.text {
		return "", ErrTooLarge
	}
	most.text = min(most.text, size)
	most.likely = most.text
	text, err := at.reserved(ctx, lines, most)
	if errors.Is(err, ErrTooLarge) && most.text < f.most.text { // it has grown, or is in /proc and says 0
		text, err = at.reserved(ctx, lines, f.most)
	}
	if err != nil {
		return "", err
	}
	if !utf8.ValidString(text) {
		return "", ErrNotText
	}
	return text, nil
}

// reserved reads some lines once the connection has room for an answer of the greatest possible size, and then reduces
// the reservation to the actual size.
func (p place) reserved(ctx context.Context, lines window, most bounds) (string, error) {
	n := int(min(most.text, math.MaxInt))
	err := rpc.Reserve(ctx, 0) // a second reservation does not wait for more
	if err == nil {
		err = rpc.Reserve(ctx, n)
	}
	if err != nil {
		return "", err
	}
	file, err := p.open(os.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer file.Close()
	r, err := nonblockingReader(file)
	if err != nil {
		return "", err
	}
	text, err := lines.read(ctx, r, most)
	if err != nil {
		return "", err
	}
	return text, rpc.Reserve(ctx, len(text))
}

// write writes content to a file, creating the file and its directories if necessary.
func (f *Files) write(ctx context.Context, session Session, path, content string) error {
	if f.approval == nil {
		return ErrReadOnly
	}
	set, err := f.roots.rootsOf(keyOf(session))
	if err != nil {
		return err
	}
	at, err := set.locate(opWrite, path)
	if err != nil {
		return err
	}
	if int64(len(content)) > f.most.text {
		return pathError(opWrite, at, ErrTooLarge)
	}
	if err := f.approval.approveWrite(ctx, session, at, content); err != nil {
		return pathError(opWrite, at, err)
	}
	if err := f.writePlace(ctx, at, content); err != nil {
		return pathError(opWrite, at, err)
	}
	return nil
}

func (f *Files) writePlace(ctx context.Context, at place, content string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(at.hidden) > 0 {
		dir, name, info, err := at.walk(true)
		if err != nil {
			return err
		}
		defer dir.Close()
		if info == nil {
			return replace(ctx, dir, name, content, nil)
		}
		file, err := openSame(dir, name, info, os.O_WRONLY, fs.FileMode.IsRegular)
		if err != nil {
			return err
		}
		defer file.Close()
		return f.writeOpen(ctx, dir, name, info, file, content)
	}
	// Everything below happens in this directory, even if its path changes in the meantime.
	dir, err := at.directory()
	if err != nil {
		return err
	}
	defer dir.Close()
	name := filepath.Base(at.rel)
	info, err := dir.Lstat(name)
	flag := os.O_WRONLY
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return replace(ctx, dir, name, content, nil)
	case err != nil:
		return err
	case info.Mode().Type() == fs.ModeSymlink: // the link stays, and its target is written
		flag |= os.O_CREATE
	case !info.Mode().IsRegular():
		return ErrNotRegular
	}
	// A file that may not be written must not be replaced either.
	file, err := at.open(flag)
	if err != nil {
		return err
	}
	defer file.Close() // it has been synced, or not written
	return f.writeOpen(ctx, dir, name, info, file, content)
}

// writeOpen writes a file that is open, or replaces it in dir if it is the one of that name there, which info
// describes.
func (f *Files) writeOpen(ctx context.Context, dir *os.Root, name string, info fs.FileInfo, file *os.File,
	content string) error {
	is, err := file.Stat()
	if err != nil {
		return err
	}
	if replaces && os.SameFile(is, info) {
		if err := replace(ctx, dir, name, content, file); !errors.Is(err, errIrreplaceable) {
			return err
		}
	}
	done, err := f.inPlace.take(ctx, is)
	if err != nil {
		return err
	}
	defer done()
	return overwrite(file, content)
}

// directory opens the directory of a place, creating it if necessary.
func (p place) directory() (*os.Root, error) {
	// With the dot, the path is opened as a directory only: OpenRoot alone would wait for a FIFO.
	rel := filepath.Dir(p.rel)
	dot := rel + string(filepath.Separator) + "."
	dir, err := p.root.dir.OpenRoot(dot)
	if errors.Is(err, fs.ErrNotExist) {
		if err := p.root.dir.MkdirAll(rel, 0o777); err != nil {
			return nil, err
		}
		dir, err = p.root.dir.OpenRoot(dot)
	}
	return dir, err
}

// open opens a regular file.
func (p place) open(flag int) (*os.File, error) { return p.openKind(flag, fs.FileMode.IsRegular) }

func (p place) openKind(flag int, kind func(fs.FileMode) bool) (*os.File, error) {
	if len(p.hidden) == 0 {
		return open(p.root.dir, p.rel, flag, kind)
	}
	dir, name, info, err := p.walk(false)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if info == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return openSame(dir, name, info, flag, kind)
}

// openSame opens a file or directory that walk has found, unless there is another one in its place.
func openSame(dir *os.Root, name string, info fs.FileInfo, flag int, kind func(fs.FileMode) bool) (*os.File, error) {
	file, err := open(dir, name, flag, kind)
	if err != nil {
		return nil, err
	}
	is, err := file.Stat()
	if err == nil && !os.SameFile(is, info) {
		err = errChanging
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// open opens a file of a kind. It does not open anything else, as far as it can tell beforehand, and never blocks on
// it.
func open(dir *os.Root, rel string, flag int, kind func(fs.FileMode) bool) (*os.File, error) {
	info, err := dir.Stat(rel)
	switch {
	case err == nil && !kind(info.Mode()):
		return nil, ErrNotRegular
	case err != nil && !(errors.Is(err, fs.ErrNotExist) && flag&os.O_CREATE != 0):
		return nil, err
	}
	file, err := dir.OpenFile(rel, flag|openFlags, 0o666)
	if err != nil {
		return nil, err
	}
	if info, err = file.Stat(); err == nil && !kind(info.Mode()) {
		err = ErrNotRegular
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// tree is the file system of a root. Unlike that of os.Root, it opens only directories and regular files, so that it
// does not block.
type tree struct{ top place }

func (t tree) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	at := t.top
	at.rel = filepath.FromSlash(name)
	return at.openKind(os.O_RDONLY, func(mode fs.FileMode) bool { return mode.IsRegular() || mode.IsDir() })
}

// Stat implements fs.StatFS, for files that Open refuses.
func (t tree) Stat(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrInvalid}
	}
	return t.top.root.dir.Stat(filepath.FromSlash(name))
}
