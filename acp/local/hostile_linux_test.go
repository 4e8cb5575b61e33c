package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// sparse makes a file of 8 TB that takes no room.
func sparse(t *testing.T, path string) {
	t.Helper()
	put(t, path, "")
	if err := os.Truncate(path, 8<<40); err != nil {
		t.Skip(err) // not on this file system
	}
}

// A request that wants what lies far into a file is refused after a bounded piece of it.
func TestReadIsBounded(t *testing.T) {
	tier.Need(t, tier.Normal)
	dir := t.TempDir()
	path := filepath.Join(dir, "sparse")
	sparse(t, path)
	files := NewFiles(openRoots(t, dir), Trusted(), nil)
	for _, tt := range []struct {
		lines window
		want  error
	}{
		{window{4_000_000_000, 1}, ErrTooFar},
		{window{2, -1}, ErrTooFar},
		{window{1, 1}, ErrTooLarge},
		{window{1, 1<<32 - 1}, ErrTooLarge},
		{wholeText, ErrTooLarge},
	} {
		if got, err := files.read(t.Context(), session, path, tt.lines); !errors.Is(err, tt.want) {
			t.Errorf("%v: got %d bytes, %v, want %v", tt.lines, len(got), err, tt.want)
		}
	}
	if got, err := files.read(t.Context(), session, path, window{1, 0}); err != nil || got != "" {
		t.Errorf("no lines: got %d bytes, %v", len(got), err)
	}
}

// While one request reads without end, all others are served, those included that write in place; and it ends
// with its context.
func TestReadHoldsNobodyUp(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sparse")
	sparse(t, path)
	put(t, filepath.Join(dir, "a.txt"), "text")
	link(t, "a.txt", filepath.Join(dir, "link"))
	files := NewFiles(openRoots(t, dir), Trusted(), &FilesOptions{MaxScan: 1 << 60})
	ctx, cancel := context.WithCancelCause(t.Context())
	reading := &signalling{Context: ctx, seen: make(chan struct{})}
	ended := make(chan error)
	go func() {
		_, err := files.read(reading, session, path, window{4_000_000_000, 1})
		ended <- err
	}()
	<-reading.seen

	others := make(chan error)
	go func() {
		_, err := files.read(t.Context(), session, filepath.Join(dir, "a.txt"), wholeText)
		others <- errors.Join(
			files.write(t.Context(), session, filepath.Join(dir, "link"), "by the link"),
			files.write(t.Context(), session, filepath.Join(dir, "new.txt"), "new"),
			err,
		)
	}()
	select {
	case err := <-others:
		if err != nil {
			t.Error(err)
		}
	case err := <-ended:
		t.Errorf("the long read ended: %v", err)
	case <-time.After(time.Minute):
		t.Error("others wait for the long read")
	}
	enough := errors.New("enough")
	cancel(enough)
	if err := <-ended; !errors.Is(err, enough) {
		t.Errorf("the long read: got %v, want %v", err, enough)
	}
	if t.Failed() {
		<-others
	}
}

// Requests that wait for room for their answers keep no files open, of which a process may have few.
func TestWaitingReadsHoldNoFiles(t *testing.T) {
	tier.Need(t, tier.Normal)
	requests := tier.Pick(20, 20, 50, 50)
	dir := t.TempDir()
	path := filepath.Join(dir, "a.txt")
	put(t, path, strings.Repeat("x", 1<<20))
	files := NewFiles(openRoots(t, dir), Trusted(), nil)
	held := func() (n int) {
		fds := must.Get(os.ReadDir("/proc/self/fd"))(t)
		for _, fd := range fds {
			if name, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && name == path {
				n++
			}
		}
		return n
	}
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		ext := &rpc.Extensions[rpc.Conn]{}
		rpc.Handle(ext, "read", func(ctx context.Context, _ *rpc.Conn, _ *struct{}) (*string, error) {
			asked.Add(1)
			text, err := files.read(ctx, session, path, wholeText)
			return &text, err
		})
		conn, peer := budgeted(t, ext, 8<<20)
		defer conn.Close()
		defer peer.Close()
		for i := range requests {
			must.Do(t, peer.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"read"}`, i)))
		}
		synctest.Wait()
		if n := held(); n > 0 || int(asked.Load()) != requests {
			t.Errorf("%d of %d requests that wait have the file open", n, asked.Load())
		}
		for range requests {
			if text, err := peer.Read(); err != nil || len(text) < 1<<20 {
				t.Fatalf("%.200s, %v", text, err)
			}
		}
	})
}

// A signalling context tells when it is asked for the first time whether it has ended: the request is at work.
type signalling struct {
	context.Context
	once sync.Once
	seen chan struct{}
}

func (s *signalling) Err() error {
	s.once.Do(func() { close(s.seen) })
	return s.Context.Err()
}

// A write whose context has ended changes nothing.
func TestWriteObeysContext(t *testing.T) {
	tier.Need(t, tier.Normal)
	dir := t.TempDir()
	put(t, filepath.Join(dir, "a.txt"), "text")
	put(t, filepath.Join(dir, "b.txt"), "text")
	link(t, "b.txt", filepath.Join(dir, "link"))
	files := NewFiles(openRoots(t, dir), Trusted(), nil)
	enough := errors.New("enough")
	for after := range 4 { // questions whether the context has ended
		for _, name := range []string{"a.txt", "link", "new.txt"} {
			ctx, cancel := context.WithCancelCause(t.Context())
			err := files.write(&counting{Context: ctx, left: after, end: func() { cancel(enough) }}, session, filepath.Join(dir, name), strings.Repeat("x", 5<<20))
			if name != "link" || after == 0 { // to overwrite is not ended early
				if !errors.Is(err, enough) {
					t.Errorf("%s, after %d questions: got %v, want %v", name, after, err, enough)
				}
			}
			cancel(nil)
		}
		if got := get(t, filepath.Join(dir, "a.txt")); got != "text" {
			t.Errorf("after %d questions: the file has %d bytes", after, len(got))
		}
		if _, err := os.Lstat(filepath.Join(dir, "new.txt")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after %d questions: a new file: %v", after, err)
		}
		noTemporaries(t, dir)
	}
}

// An acl is a value of system.posix_acl_access that lets the user 12345 read and write, and the file's group nothing.
// Its mask makes the mode look as if the group could do what that user can.
const acl = "\x02\x00\x00\x00" +
	"\x01\x00\x06\x00\xff\xff\xff\xff" + // the owner: rw
	"\x02\x00\x06\x00\x39\x30\x00\x00" + // user 12345: rw
	"\x04\x00\x00\x00\xff\xff\xff\xff" + // the group: nothing
	"\x10\x00\x06\x00\xff\xff\xff\xff" + // the mask: rw
	"\x20\x00\x00\x00\xff\xff\xff\xff" // others: nothing

// A file that is written keeps its access control list and its other attributes: without the list, the group would
// get what the list gives to one user.
func TestWriteKeepsAttributes(t *testing.T) {
	dir := t.TempDir()
	files := NewFiles(openRoots(t, dir), Trusted(), nil)
	for name, value := range map[string]string{"user.comment": "mine", "user.empty": "", "system.posix_acl_access": acl} {
		path := filepath.Join(dir, name)
		put(t, path, "old and longer")
		if err := syscall.Setxattr(path, name, []byte(value), 0); err != nil {
			t.Skip(err) // not on this file system
		}
		before := must.Get(os.Stat(path))(t)
		for _, content := range []string{"new", strings.Repeat("long", 1<<16), ""} {
			must.Do(t, files.write(t.Context(), session, path, content))
			if got := get(t, path); got != content {
				t.Errorf("%s: the file has %d bytes, want %d", name, len(got), len(content))
			}
		}
		buf := make([]byte, 1000)
		if n, err := syscall.Getxattr(path, name, buf); err != nil || string(buf[:n]) != value {
			t.Errorf("%s is %q, %v, want %q", name, buf[:max(n, 0)], err, value)
		}
		if after, err := os.Stat(path); err != nil || after.Mode() != before.Mode() {
			t.Errorf("%s: the mode became %v, %v, was %v", name, after.Mode(), err, before.Mode())
		}
	}
	noTemporaries(t, dir)
}

// What a directory gives to new files is not given to an old one that is written.
func TestWriteAddsNoAttributes(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.txt")
	put(t, path, "old")
	must.Do(t, os.Chmod(path, 0o600))
	if err := syscall.Setxattr(dir, "system.posix_acl_default", []byte(acl), 0); err != nil {
		t.Skip(err) // not on this file system
	}
	files := NewFiles(openRoots(t, dir), Trusted(), nil)
	must.Do(t, files.write(t.Context(), session, path, "new"))
	if n, err := syscall.Getxattr(path, "system.posix_acl_access", make([]byte, 1000)); !errors.Is(err, syscall.ENODATA) {
		t.Errorf("got a list of %d bytes, %v", n, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 || get(t, path) != "new" {
		t.Errorf("got %v, %v", info, err)
	}
	noTemporaries(t, dir)
}

// New content does not run with the rights of the file's owner, however it is written.
func TestWriteDropsSetuid(t *testing.T) {
	dir := t.TempDir()
	files := NewFiles(openRoots(t, dir), Trusted(), nil)
	for _, name := range []string{"replaced", "linked", "attributed"} {
		path := filepath.Join(dir, name)
		put(t, path, "old")
		if name == "attributed" {
			if err := syscall.Setxattr(path, "user.comment", []byte("mine"), 0); err != nil {
				continue // not on this file system
			}
		}
		must.Do(t, os.Chmod(path, 0o755|fs.ModeSetuid|fs.ModeSetgid))
		written := path
		if name == "linked" {
			written = filepath.Join(dir, "link")
			link(t, name, written)
		}
		must.Do(t, files.write(t.Context(), session, written, "new"))
		if info, err := os.Stat(path); err != nil || info.Mode() != 0o755 || get(t, path) != "new" {
			t.Errorf("%s: got %v, %v", name, info.Mode(), err)
		}
	}
}

// On a full disk the old text stays, and no temporary file.
func TestWriteToFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=128k"); err != nil {
		t.Skip("only root can make a small disk: ", err)
	}
	defer func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	roots := must.Get(OpenRoots(dir))(t)
	defer roots.Close()
	files := NewFiles(roots, Trusted(), nil)
	old := strings.Repeat("old\n", 1<<10)
	put(t, filepath.Join(dir, "replaced"), old)
	put(t, filepath.Join(dir, "target"), old)
	link(t, "target", filepath.Join(dir, "link"))
	for _, name := range []string{"replaced", "link", "new"} {
		path := filepath.Join(dir, name)
		if err := files.write(t.Context(), session, path, strings.Repeat("new\n", 1<<18)); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: got %v, want %v", name, err, syscall.ENOSPC)
		}
		if name == "new" {
			if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a new file is there: %v", err)
			}
		} else if got := get(t, path); got != old {
			t.Errorf("%s: the old text became %d bytes", name, len(got))
		}
		if err := files.write(t.Context(), session, path, old+"more"); err != nil {
			t.Errorf("%s: there is room for this: %v", name, err)
		}
	}
	noTemporaries(t, dir)
}

// Whatever is moved and linked while files are written, nothing outside is written and no temporary file stays.
func TestSwapsLeaveNothing(t *testing.T) {
	tier.Need(t, tier.Normal)
	top := t.TempDir()
	dir, outside := filepath.Join(top, "root"), filepath.Join(top, "outside")
	put(t, filepath.Join(outside, "a.txt"), "secret")
	put(t, filepath.Join(dir, "sub", "a.txt"), "text")
	files := NewFiles(openRoots(t, dir), Trusted(), nil)
	sub, moved := filepath.Join(dir, "sub"), filepath.Join(dir, "moved")
	stop := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			// A writer may make the directory anew at any time.
			for os.Rename(sub, moved) != nil {
				os.RemoveAll(moved)
			}
			switch i % 3 {
			case 0:
				os.Symlink("../outside", sub)
			case 1:
				os.Symlink("moved", sub)
			case 2:
				syscall.Mkfifo(sub, 0o666)
			}
			for os.Rename(moved, sub) != nil {
				os.RemoveAll(sub)
			}
		}
	})
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for i := range 100 {
				// It may fail, as the directory may be away.
				files.write(t.Context(), session, filepath.Join(sub, "a.txt"), strings.Repeat("x", i))
				files.write(t.Context(), session, filepath.Join(sub, fmt.Sprint(i), "a.txt"), "x")
				files.read(t.Context(), session, filepath.Join(sub, "a.txt"), wholeText)
			}
		})
	}
	writers.Wait()
	close(stop)
	swapper.Wait()
	noTemporaries(t, top)
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 || get(t, filepath.Join(outside, "a.txt")) != "secret" {
		t.Errorf("outside was touched: %v, %v", entries, err)
	}
}

// A directory that is moved away is still served by the name that it had, to files and commands alike; what has
// its name by then is reached by neither.
func TestMovedRoot(t *testing.T) {
	tier.Need(t, tier.Normal)
	top := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	dir, moved := filepath.Join(top, "real"), filepath.Join(top, "moved")
	put(t, filepath.Join(dir, "a.txt"), "old")
	put(t, filepath.Join(dir, "sub", "a.txt"), "old")
	script := filepath.Join(dir, "sub", "script")
	put(t, script, "#!/bin/sh\ncat a.txt\n")
	must.Do(t, os.Chmod(script, 0o755))
	t.Setenv("PWD", top)
	roots := openRoots(t, dir)
	files, terminals := NewFiles(roots, Trusted(), nil), NewTerminals(roots, Trusted(), nil)
	defer terminals.Close()

	check := func(real string) {
		t.Helper()
		for _, in := range []string{"", "sub"} {
			path := filepath.Join(dir, in)
			if got, err := files.read(t.Context(), session, filepath.Join(path, "a.txt"), wholeText); err != nil || got != "old" {
				t.Errorf("read in %q: got %q, %v", in, got, err)
			}
			cwd := acp.Some(path)
			if in == "" {
				cwd = acp.Opt[string]{} // the first directory
			}
			pwd := path
			if real != dir {
				pwd = "" // it would name another directory, or none
			}
			for _, tt := range []struct {
				name string
				args []string
				want string
			}{
				{"cat", []string{"a.txt"}, "old"},
				{"/bin/pwd", nil, filepath.Join(real, in) + "\n"},
				{"sh", []string{"-c", "pwd"}, filepath.Join(real, in) + "\n"},
				{"awk", []string{`BEGIN { printf "%s", ENVIRON["PWD"] }`}, pwd},
				{"sub/script", nil, "old"},
				{"./script", nil, "old"},
				{"../sub/script", nil, "old"},
			} {
				if strings.Contains(tt.name, "script") && strings.HasPrefix(tt.name, "sub") != (in == "") {
					continue // is elsewhere
				}
				id, err := terminals.create(session, command{name: tt.name, args: tt.args, cwd: cwd}, -1)
				if err != nil {
					t.Errorf("%s in %q: %v", tt.name, in, err)
					continue
				}
				if got, exit := finish(t, terminals, id); got != tt.want || exit.code != 0 {
					t.Errorf("%s in %q: got %q, %v, want %q", tt.name, in, got, exit, tt.want)
				}
			}
		}
	}
	check(dir)
	must.Do(t, os.Rename(dir, moved))
	check(moved)
	put(t, filepath.Join(dir, "a.txt"), "new")
	put(t, filepath.Join(dir, "sub", "a.txt"), "new")
	check(moved)
	must.Do(t, files.write(t.Context(), session, filepath.Join(dir, "a.txt"), "old"))
	if got := get(t, filepath.Join(dir, "a.txt")); got != "new" {
		t.Errorf("what took the place of the directory was written: %q", got)
	}
	must.Do(t, os.RemoveAll(dir))
	link(t, "/", dir)
	check(moved)
}

// Whatever a working directory is swapped for, no command starts outside.
func TestSwappedWorkingDirectory(t *testing.T) {
	tier.Need(t, tier.Normal)
	top := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	dir := filepath.Join(top, "root")
	sub, moved := filepath.Join(dir, "sub"), filepath.Join(dir, "moved")
	put(t, filepath.Join(sub, "a.txt"), "text")
	terminals := NewTerminals(openRoots(t, dir), Trusted(), nil)
	defer terminals.Close()
	started := 0
	rounds := tier.Pick(60, 120, 1000, 10_000)
	for i := range rounds {
		var swap sync.WaitGroup
		swapping := make(chan struct{})
		swap.Go(func() {
			close(swapping)
			for range i % 30 {
				err := os.Rename(sub, moved)
				if i%4 != 0 {
					err = errors.Join(err, os.Symlink(top, sub))
				} else {
					err = errors.Join(err, syscall.Mkfifo(sub, 0o666))
				}
				if err := errors.Join(err, os.Remove(sub), os.Rename(moved, sub)); err != nil {
					t.Error(err)
				}
			}
		})
		<-swapping
		id, err := terminals.create(session, command{name: "/bin/pwd", args: []string{"-P"}, cwd: acp.Some(sub)}, -1)
		swap.Wait()
		if err != nil {
			continue // the directory was away
		}
		started++
		if got, exit := finish(t, terminals, id); got != sub+"\n" && got != moved+"\n" {
			t.Errorf("started in %q, %v", got, exit)
		}
		must.Do(t, terminals.release(t.Context(), session, id))
	}
	t.Logf("%d of %d started", started, rounds)
}
