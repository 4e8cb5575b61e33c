//go:build unix

package local

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

func fifo(t *testing.T, path string) string {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// Nothing but regular files is opened; a FIFO in particular would make the reader wait for ever.
func TestSpecialFiles(t *testing.T) {
	dir := t.TempDir()
	fifo(t, filepath.Join(dir, "fifo"))
	link(t, "fifo", filepath.Join(dir, "link"))
	listener, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	files := NewFiles(openRoots(t, dir, "/dev"), nil)
	for _, path := range []string{filepath.Join(dir, "fifo"), filepath.Join(dir, "link"), filepath.Join(dir, "socket"), "/dev/null", "/dev/zero", "/dev/tty"} {
		if got, err := files.read(t.Context(), session, path, wholeText); !errors.Is(err, ErrNotRegular) {
			t.Errorf("read %s: got %q, %v, want %v", path, got, err, ErrNotRegular)
		}
		if err := files.write(session, path, "x"); !errors.Is(err, ErrNotRegular) {
			t.Errorf("write %s: got %v, want %v", path, err, ErrNotRegular)
		}
	}
	for _, path := range []string{filepath.Join(dir, "fifo", "x"), "/dev/null/x"} {
		if _, err := files.read(t.Context(), session, path, wholeText); !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("read %s: got %v", path, err)
		}
		if err := files.write(session, path, "x"); !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("write %s: got %v", path, err)
		}
	}
}

// A file that became a FIFO after it was looked at is found out without waiting.
func TestOpenDoesNotWait(t *testing.T) {
	dir := t.TempDir()
	path := fifo(t, filepath.Join(dir, "fifo"))
	root := openRoots(t, dir).fixed.dirs[0].dir
	file, err := root.OpenFile(filepath.Base(path), os.O_RDONLY|openFlags, 0)
	if err != nil {
		t.Fatal(err)
	}
	file.Close()
}

// Files of /proc say that they are empty and are not.
func TestProcFiles(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("has no /proc")
	}
	files := NewFiles(openRoots(t, "/proc"), nil)
	if got, err := files.read(t.Context(), session, "/proc/version", window{1, 1}); err != nil || !strings.HasPrefix(got, "Linux") {
		t.Errorf("/proc/version: got %q, %v", got, err)
	}
	for _, path := range []string{"/proc/self/root/etc/passwd", "/proc/self/cwd/doc.go", "/proc/self/exe"} {
		if got, err := files.read(t.Context(), session, path, wholeText); !errors.Is(err, ErrOutside) {
			t.Errorf("%s: got %d bytes, %v, want %v", path, len(got), err, ErrOutside)
		}
	}
}

func TestWriteKeepsMode(t *testing.T) {
	old := syscall.Umask(0o027)
	defer syscall.Umask(old)
	dir := t.TempDir()
	files := NewFiles(openRoots(t, dir), nil)
	for _, mode := range []fs.FileMode{0o600, 0o644, 0o755, 0o666, 0o777, 0o400 | 0o200} {
		path := filepath.Join(dir, mode.String())
		put(t, path, "old")
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if err := files.write(session, path, "new"); err != nil {
			t.Errorf("%v: %v", mode, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != mode || get(t, path) != "new" {
			t.Errorf("%v became %v, %v", mode, info.Mode(), err)
		}
	}
	path := filepath.Join(dir, "new", "file")
	if err := files.write(session, path, "new"); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]fs.FileMode{path: 0o640, filepath.Dir(path): fs.ModeDir | 0o750} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: got %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
}

// A file is replaced, not written into: whoever has it open keeps the old text, and a link keeps it.
func TestWriteReplaces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.txt")
	put(t, path, "old")
	if err := os.Link(path, filepath.Join(dir, "hard")); err != nil {
		t.Fatal(err)
	}
	if err := NewFiles(openRoots(t, dir), nil).write(session, path, "new"); err != nil {
		t.Fatal(err)
	}
	if got := get(t, path); got != "new" {
		t.Errorf("the file has %q", got)
	}
	if got := get(t, filepath.Join(dir, "hard")); got != "old" {
		t.Errorf("the other link has %q", got)
	}
}

func TestWriteKeepsOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can have files of others")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "a.txt")
	put(t, path, "old")
	if err := os.Chown(path, 12345, 23456); err != nil {
		t.Fatal(err)
	}
	if err := NewFiles(openRoots(t, dir), nil).write(session, path, "new"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if owner := info.Sys().(*syscall.Stat_t); owner.Uid != 12345 || owner.Gid != 23456 {
		t.Errorf("belongs to %d:%d", owner.Uid, owner.Gid)
	}
}

func TestWritePermissions(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may do anything")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "sub", "a.txt")
	put(t, path, "old")
	sub := filepath.Dir(path)
	files := NewFiles(openRoots(t, dir), nil)
	chmod := func(path string, mode fs.FileMode) {
		t.Helper()
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}

	chmod(path, 0o444)
	if err := files.write(session, path, "new"); !errors.Is(err, fs.ErrPermission) || get(t, path) != "old" {
		t.Errorf("a read-only file: got %v", err)
	}
	chmod(path, 0o644)

	chmod(sub, 0o555)
	defer chmod(sub, 0o755)
	if err := files.write(session, path, "new"); err != nil || get(t, path) != "new" {
		t.Errorf("in a read-only directory: got %v", err)
	}
	if err := files.write(session, filepath.Join(sub, "b.txt"), "new"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a new file in a read-only directory: got %v", err)
	}

	chmod(path, 0o200)
	if _, err := files.read(t.Context(), session, path, wholeText); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("an unreadable file: got %v", err)
	}
}
