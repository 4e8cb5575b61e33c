//go:build unix

package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

func fifo(t *testing.T, path string) string {
	t.Helper()
	must.Do(t, syscall.Mkfifo(path, 0o666))
	return path
}

// Nothing but regular files is opened; a FIFO in particular would make the reader wait for ever.
func TestSpecialFiles(t *testing.T) {
	dir := t.TempDir()
	fifo(t, filepath.Join(dir, "fifo"))
	link(t, "fifo", filepath.Join(dir, "link"))
	listener := must.Get(net.Listen("unix", filepath.Join(dir, "socket")))(t)
	defer listener.Close()
	files := NewFiles(openRoots(t, dir, "/dev"), Trusted(), nil)
	for _, path := range []string{filepath.Join(dir, "fifo"), filepath.Join(dir, "link"), filepath.Join(dir, "socket"), "/dev/null", "/dev/zero", "/dev/tty"} {
		if info, err := os.Stat(path); err != nil || info.Mode().IsRegular() {
			t.Errorf("this machine has no %s: %v", path, err)
			continue
		}
		if got, err := files.read(t.Context(), session, path, wholeText); !errors.Is(err, ErrNotRegular) {
			t.Errorf("read %s: got %q, %v, want %v", path, got, err, ErrNotRegular)
		}
		if err := files.write(t.Context(), session, path, "x"); !errors.Is(err, ErrNotRegular) {
			t.Errorf("write %s: got %v, want %v", path, err, ErrNotRegular)
		}
	}
	for _, path := range []string{filepath.Join(dir, "fifo", "x"), "/dev/null/x"} {
		if _, err := files.read(t.Context(), session, path, wholeText); !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("read %s: got %v", path, err)
		}
		if err := files.write(t.Context(), session, path, "x"); !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("write %s: got %v", path, err)
		}
	}
}

// A file that became a FIFO after it was looked at is found out without waiting.
func TestOpenDoesNotWait(t *testing.T) {
	dir := t.TempDir()
	path := fifo(t, filepath.Join(dir, "fifo"))
	root := openRoots(t, dir).fixed.dirs[0].dir
	file := must.Get(root.OpenFile(filepath.Base(path), os.O_RDONLY|openFlags, 0))(t)
	file.Close()
}

// Files of /proc say that they are empty and are not.
func TestProcFiles(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("has no /proc")
	}
	files := NewFiles(openRoots(t, "/proc"), Trusted(), nil)
	if got, err := files.read(t.Context(), session, "/proc/version", window{1, 1}); err != nil || !strings.HasPrefix(got, "Linux") {
		t.Errorf("/proc/version: got %q, %v", got, err)
	}
	if err := forPeer(files.write(t.Context(), session, "/proc/version", "x")); !errors.Is(err, rpc.ErrInternal) {
		t.Errorf("a write that fails is answered with %v", err)
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
	files := NewFiles(openRoots(t, dir), Trusted(), nil)
	for _, mode := range []fs.FileMode{0o600, 0o644, 0o755, 0o666, 0o777, 0o400 | 0o200} {
		path := filepath.Join(dir, mode.String())
		put(t, path, "old")
		must.Do(t, os.Chmod(path, mode))
		if err := files.write(t.Context(), session, path, "new"); err != nil {
			t.Errorf("%v: %v", mode, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != mode || get(t, path) != "new" {
			t.Errorf("%v became %v, %v", mode, info.Mode(), err)
		}
	}
	path := filepath.Join(dir, "new", "file")
	must.Do(t, files.write(t.Context(), session, path, "new"))
	for path, want := range map[string]fs.FileMode{path: 0o640, filepath.Dir(path): fs.ModeDir | 0o750} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: got %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
}

// A file is replaced, not written into: whoever has it open keeps the old text, and a link keeps it.
func TestWriteReplaces(t *testing.T) {
	if !replaces {
		t.Skip("files are overwritten on this system")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "a.txt")
	put(t, path, "old")
	must.Do(t, os.Link(path, filepath.Join(dir, "hard")))
	must.Do(t, NewFiles(openRoots(t, dir), Trusted(), nil).write(t.Context(), session, path, "new"))
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
	must.Do(t, os.Chown(path, 12345, 23456))
	must.Do(t, NewFiles(openRoots(t, dir), Trusted(), nil).write(t.Context(), session, path, "new"))
	info := must.Get(os.Stat(path))(t)
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
	files := NewFiles(openRoots(t, dir), Trusted(), nil)
	chmod := func(path string, mode fs.FileMode) {
		t.Helper()
		must.Do(t, os.Chmod(path, mode))
	}

	chmod(path, 0o444)
	if err := files.write(t.Context(), session, path, "new"); !errors.Is(err, fs.ErrPermission) || get(t, path) != "old" {
		t.Errorf("a read-only file: got %v", err)
	}
	chmod(path, 0o644)

	chmod(sub, 0o555)
	defer chmod(sub, 0o755)
	if err := files.write(t.Context(), session, path, "new"); err != nil || get(t, path) != "new" {
		t.Errorf("in a read-only directory: got %v", err)
	}
	if err := files.write(t.Context(), session, filepath.Join(sub, "b.txt"), "new"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a new file in a read-only directory: got %v", err)
	}

	chmod(path, 0o200)
	if _, err := files.read(t.Context(), session, path, wholeText); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("an unreadable file: got %v", err)
	}
}

// Whatever path an agent makes up, for whatever it wants to do there, it gets an answer at once, and nothing outside is
// touched.
func TestHostilePaths(t *testing.T) {
	tier.Need(t, tier.Normal)
	top := t.TempDir()
	dir := filepath.Join(top, "root")
	put(t, filepath.Join(top, "secret"), "secret")
	put(t, filepath.Join(dir, "a.txt"), "text")
	put(t, filepath.Join(dir, "sub", "b.txt"), "text")
	fifo(t, filepath.Join(dir, "fifo"))
	for name, target := range map[string]string{
		"fd": "/proc/self/fd/0", "zero": "/dev/zero", "tty": "/dev/tty", "out": "../secret", "up": "..", "far": "../../../../../../../../etc/passwd",
		"self": ".", "loop": "loop", "ping": "pong", "pong": "ping", "slash": "/", "file": "a.txt", "below": "a.txt/x", "fifolink": "fifo/x",
		"long": strings.Repeat("sub/../", 500) + "a.txt", "missing": "no/such/file",
	} {
		link(t, target, filepath.Join(dir, name))
	}
	for i := range 60 { // a chain of links, longer than any system follows
		link(t, fmt.Sprintf("chain%d", i+1), filepath.Join(dir, fmt.Sprintf("chain%d", i)))
	}
	names := []string{
		"", ".", "..", "...", "-", "~", "*", "\x00", "a\x00", "\xff\xfe", "\xed\xa0\x80", "\n", "a\nb", "\x1b[2J", "\u202e", "con", "a.txt:stream", `\`,
		"a.txt", "sub", "fifo", "fd", "zero", "tty", "out", "up", "far", "self", "loop", "ping", "slash", "file", "below", "fifolink", "long", "missing", "chain0",
		"fifo/x", "a.txt/x", "up/secret", "up/root/a.txt", "self/self/self/a.txt", "sub/../../secret", "sub/../a.txt", "slash/etc/passwd", "loop/x",
		strings.Repeat("x", 255), strings.Repeat("x", 256), strings.Repeat("x", 1<<20), strings.Repeat("é", 127), strings.Repeat("é", 128),
		strings.Repeat("x/", 2100), strings.Repeat("x/", 1<<20), strings.Repeat("../", 1<<10) + "etc/passwd", strings.Repeat("/", 1<<20) + "a.txt",
		strings.Repeat("sub/../", 400) + "a.txt", strings.Repeat("self/", 500) + "a.txt", strings.Repeat("x", 250) + ".txt",
	}
	roots := openRoots(t, dir)
	files, terminals := NewFiles(roots, Trusted(), nil), NewTerminals(roots, Trusted(), &TerminalsOptions{KillGrace: -1})
	defer terminals.Close()
	began := time.Now()
	for _, name := range names {
		for _, path := range []string{dir + "/" + name, dir + "/sub/" + name, name, "/" + name, dir + name} {
			for _, lines := range []window{wholeText, {1, 0}, {1<<32 - 1, 1<<32 - 1}, {1 << 31, -1}, {0, 0}} {
				got, err := files.read(t.Context(), session, path, lines)
				if got != "" && got != "text" && got != "new" {
					t.Errorf("read %.60q: got %.100q, %v", path, got, err)
				}
			}
			files.write(t.Context(), session, path, "new") // where it can, it does
			if id, err := terminals.create(session, command{name: "/bin/pwd", args: []string{"-P"}, cwd: acp.Some(path)}, -1); err == nil {
				got, _ := finish(t, terminals, id)
				if real, err := filepath.EvalSymlinks(dir); err != nil || !strings.HasPrefix(got, real) {
					t.Errorf("started by %.60q in %q, %v", path, got, err)
				}
				must.Do(t, terminals.release(t.Context(), session, id))
			}
		}
	}
	t.Logf("%d names in %v", len(names), time.Since(began))
	noTemporaries(t, top)
	entries, err := os.ReadDir(top)
	if err != nil || len(entries) != 2 || get(t, filepath.Join(top, "secret")) != "secret" {
		t.Errorf("outside was touched: %v, %v", entries, err)
	}
}

// A file that is larger when it is read than it was when it was opened is read as it is by then.
func TestGrowingFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	put(t, path, "one\n")
	files := NewFiles(openRoots(t, dir), Trusted(), &FilesOptions{MaxSize: 1000})
	grow := func(text string) context.Context {
		return &counting{Context: t.Context(), end: func() {
			file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			if err == nil {
				_, err = file.WriteString(text)
				err = errors.Join(err, file.Close())
			}
			if err != nil {
				t.Error(err)
			}
		}}
	}
	if got, err := files.read(grow("two\n"), session, path, wholeText); err != nil || got != "one\ntwo\n" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := files.read(grow("three\n"), session, path, window{2, 2}); err != nil || got != "two\nthree\n" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := files.read(grow(strings.Repeat("x", 1000)), session, path, wholeText); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %d bytes, %v, want %v", len(got), err, ErrTooLarge)
	}
}

// What the system calls a regular file and makes readers wait is found out without waiting.
func TestReadDoesNotWait(t *testing.T) {
	r, w, err := os.Pipe() // as files of /proc, that we have none of
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	reader := must.Get(nonblockingReader(r))(t)
	if got, err := wholeText.read(t.Context(), reader, bounds{text: 100}); !errors.Is(err, ErrNotRegular) {
		t.Errorf("got %q, %v, want %v", got, err, ErrNotRegular)
	}
	must.Get(w.WriteString("a\nb\n"))(t)
	if got, err := (window{1, 1}).read(t.Context(), reader, bounds{text: 100}); err != nil || got != "a\n" {
		t.Errorf("got %q, %v", got, err)
	}
	if err := fill(t.Context(), w, "x", nil); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("what cannot be synced is written: %v", err)
	}
}

// A counting context does something when it was asked often enough whether it has ended.
type counting struct {
	context.Context
	left int
	end  func()
}

func (c *counting) Err() error {
	if c.left == 0 {
		c.end()
	}
	c.left--
	return c.Context.Err()
}

// A FIFO is not a directory, and is not waited for.
func TestRootIsNoFIFO(t *testing.T) {
	if _, err := OpenRoots(fifo(t, filepath.Join(t.TempDir(), "fifo"))); !errors.Is(err, errDirectory) {
		t.Errorf("got %v, want %v", err, errDirectory)
	}
}
