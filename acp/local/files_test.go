package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// put writes a file of a test, with its directories.
func put(t *testing.T, path, content string) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o777))
	must.Do(t, os.WriteFile(path, []byte(content), 0o666))
}

func get(t *testing.T, path string) string {
	t.Helper()
	content := must.Get(os.ReadFile(path))(t)
	return string(content)
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		if runtime.GOOS == "windows" {
			t.Skip(err) // needs a privilege
		}
		t.Fatal(err)
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	texts := map[string]string{
		"empty":            "",
		"plain":            "a\nb\n",
		"no final newline": "a\nb",
		"CRLF":             "a\r\nb\r\n",
		"mixed endings":    "a\nb\r\nc\rd\n\n\r\n",
		"byte order mark":  "\uFEFFa\n",
		"many bytes":       "€ 😀 \u2028 \u0000 \uFFFD\n",
	}
	files := NewFiles(openRoots(t, dir), Trusted(), nil)
	for name, text := range texts {
		path := filepath.Join(dir, "sub", name+".txt")
		put(t, path, text)
		if got, err := files.read(t.Context(), session, path, wholeText); err != nil || got != text {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, text)
		}
	}
	path := filepath.Join(dir, "sub", "CRLF.txt")
	if got, err := files.read(t.Context(), session, path, window{2, 1}); err != nil || got != "b\r\n" {
		t.Errorf("second line: got %q, %v", got, err)
	}
	unclean := dir + "/sub/../sub//./CRLF.txt"
	if got, err := files.read(t.Context(), session, unclean, wholeText); err != nil || got != texts["CRLF"] {
		t.Errorf("%s: got %q, %v", unclean, got, err)
	}
}

func TestReadRefuses(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "root")
	put(t, filepath.Join(top, "secret.txt"), "secret")
	put(t, filepath.Join(top, "root-sibling", "x.txt"), "secret")
	put(t, filepath.Join(dir, "a.txt"), "text")
	put(t, filepath.Join(dir, "latin1.txt"), "caf\xe9\n")
	put(t, filepath.Join(dir, "utf16.txt"), "\xff\xfea\x00")
	put(t, filepath.Join(dir, "long.txt"), strings.Repeat("x", 101))
	put(t, filepath.Join(dir, "full.txt"), strings.Repeat("x", 100))
	files := NewFiles(openRoots(t, dir), Trusted(), &FilesOptions{MaxSize: 100})

	tests := map[string]struct {
		path  string
		lines window
		want  error
	}{
		"missing":           {filepath.Join(dir, "b.txt"), wholeText, fs.ErrNotExist},
		"missing directory": {filepath.Join(dir, "no", "b.txt"), wholeText, fs.ErrNotExist},
		"directory":         {dir, wholeText, ErrNotRegular},
		"line 0":            {filepath.Join(dir, "a.txt"), window{0, 1}, errLine},
		"relative":          {"a.txt", wholeText, errPath},
		"empty path":        {"", wholeText, errPath},
		"URI":               {"file://" + dir + "/a.txt", wholeText, errPath},
		"NUL":               {dir + "/a.txt\x00", wholeText, errPath},
		"parent":            {top, wholeText, ErrOutside},
		"outside":           {filepath.Join(top, "secret.txt"), wholeText, ErrOutside},
		"dots":              {dir + "/../secret.txt", wholeText, ErrOutside},
		"same prefix":       {filepath.Join(top, "root-sibling", "x.txt"), wholeText, ErrOutside},
		"missing outside":   {filepath.Join(top, "nothing"), wholeText, ErrOutside},
		"not UTF-8":         {filepath.Join(dir, "latin1.txt"), wholeText, ErrNotText},
		"UTF-16":            {filepath.Join(dir, "utf16.txt"), wholeText, ErrNotText},
		"too large":         {filepath.Join(dir, "long.txt"), wholeText, ErrTooLarge},
		"at the limit":      {filepath.Join(dir, "full.txt"), wholeText, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := files.read(t.Context(), session, tt.path, tt.lines)
			if !errors.Is(err, tt.want) || err != nil && got != "" {
				t.Errorf("got %q, %v, want %v", got, err, tt.want)
			}
			if err != nil && tt.want != errLine && tt.want != errPath && !strings.Contains(err.Error(), strconv.Quote(filepath.Clean(tt.path))) {
				t.Errorf("%q does not name %q", err, tt.path)
			}
		})
	}
}

func TestSymlinks(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "root")
	outside := filepath.Join(top, "outside")
	put(t, filepath.Join(outside, "secret.txt"), "secret")
	put(t, filepath.Join(dir, "real", "deep", "a.txt"), "inside")
	link(t, "real/deep/a.txt", filepath.Join(dir, "file"))
	link(t, "file", filepath.Join(dir, "chain"))
	link(t, "real/deep", filepath.Join(dir, "dir"))
	link(t, "../../file", filepath.Join(dir, "real", "deep", "back"))
	link(t, "../outside/secret.txt", filepath.Join(dir, "out"))
	link(t, "../outside", filepath.Join(dir, "outdir"))
	link(t, outside, filepath.Join(dir, "absolute"))
	link(t, filepath.Join(dir, "real"), filepath.Join(dir, "absolute-inside"))
	link(t, "loop", filepath.Join(dir, "loop"))
	link(t, "../outside/new.txt", filepath.Join(dir, "dangling-out"))
	link(t, "../outside/new", filepath.Join(dir, "dangling-outdir"))
	files := NewFiles(openRoots(t, dir), Trusted(), nil)

	for _, name := range []string{"file", "chain", "dir/a.txt", "real/deep/back", "dir/back"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		before := get(t, path)
		if got, err := files.read(t.Context(), session, path, wholeText); err != nil || got != before {
			t.Errorf("read %s: got %q, %v, want %q", name, got, err, before)
		}
		if err := files.write(t.Context(), session, path, "by "+name); err != nil {
			t.Errorf("write %s: %v", name, err)
		}
		if got := get(t, filepath.Join(dir, "real", "deep", "a.txt")); got != "by "+name {
			t.Errorf("write %s: the file has %q", name, got)
		}
	}
	for _, name := range []string{"file", "chain", "dir", "real/deep/back"} {
		if info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(name))); err != nil || info.Mode().Type() != fs.ModeSymlink {
			t.Errorf("%s is a link no more: %v, %v", name, info, err)
		}
	}

	for _, name := range []string{
		"out", "outdir/secret.txt", "outdir/new.txt", "outdir/new/new.txt", "absolute/secret.txt",
		"absolute-inside/deep/a.txt", "dangling-out", "dangling-outdir/x",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if got, err := files.read(t.Context(), session, path, wholeText); !errors.Is(err, ErrOutside) {
			t.Errorf("read %s: got %q, %v, want %v", name, got, err, ErrOutside)
		}
		if err := files.write(t.Context(), session, path, "broken in"); !errors.Is(err, ErrOutside) {
			t.Errorf("write %s: got %v, want %v", name, err, ErrOutside)
		}
	}
	if _, err := files.read(t.Context(), session, filepath.Join(dir, "loop"), wholeText); err == nil {
		t.Error("read loop: no error")
	}
	if err := files.write(t.Context(), session, filepath.Join(dir, "loop"), "x"); err == nil {
		t.Error("write loop: no error")
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 || get(t, filepath.Join(outside, "secret.txt")) != "secret" {
		t.Errorf("outside was touched: %v, %v", entries, err)
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	files := NewFiles(openRoots(t, dir), Trusted(), &FilesOptions{MaxSize: 1000})
	for name, content := range map[string]string{
		"new.txt":            "text\r\nwith CRLF\r\nand no end",
		"deep/er/down/a.txt": "😀",
		"empty":              "",
		"full":               strings.Repeat("x", 1000),
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		for _, content := range []string{content, content + "!", content}[:1+2*min(1, 1000-len(content))] {
			if err := files.write(t.Context(), session, path, content); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if got := get(t, path); got != content {
				t.Errorf("%s: got %q, want %q", name, got, content)
			}
		}
	}
	if err := files.write(t.Context(), session, filepath.Join(dir, "new.txt"), strings.Repeat("x", 1001)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: got %v", err)
	}
	if got := get(t, filepath.Join(dir, "new.txt")); !strings.HasPrefix(got, "text") {
		t.Errorf("a refused write changed the file to %q", got)
	}
	noTemporaries(t, dir)
}

func noTemporaries(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasPrefix(filepath.Base(path), ".acp-") {
			t.Errorf("%s was left behind", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestWriteRefuses(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "root")
	put(t, filepath.Join(dir, "file"), "text")
	files := NewFiles(openRoots(t, dir), Trusted(), nil)
	for name, tt := range map[string]struct {
		path string
		want error
	}{
		"the root":       {dir, ErrNotRegular},
		"relative":       {"a.txt", errPath},
		"outside":        {filepath.Join(top, "a.txt"), ErrOutside},
		"far outside":    {filepath.Join(top, "x", "a.txt"), ErrOutside},
		"dots":           {dir + "/../a.txt", ErrOutside},
		"below a file":   {filepath.Join(dir, "file", "a.txt"), nil},
		"far below":      {filepath.Join(dir, "file", "x", "a.txt"), nil},
		"name too long":  {filepath.Join(dir, strings.Repeat("x", 300)), nil},
		"NUL in a path":  {dir + "/a\x00b", errPath},
		"below new root": {filepath.Join(top, "root2", "a.txt"), ErrOutside},
	} {
		t.Run(name, func(t *testing.T) {
			err := files.write(t.Context(), session, tt.path, "x")
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
	readOnly := NewFiles(openRoots(t, dir), nil, nil)
	if err := readOnly.write(t.Context(), session, filepath.Join(dir, "file"), "x"); !errors.Is(err, ErrReadOnly) {
		t.Errorf("read-only: got %v", err)
	}
	if got := get(t, filepath.Join(dir, "file")); got != "text" {
		t.Errorf("the file became %q", got)
	}
	entries, err := os.ReadDir(top)
	if err != nil || len(entries) != 1 {
		t.Errorf("outside was touched: %v, %v", entries, err)
	}
	noTemporaries(t, dir)
}

func TestConcurrentWrites(t *testing.T) {
	tier.Need(t, tier.Normal)
	dir := t.TempDir()
	put(t, filepath.Join(dir, "replaced"), strings.Repeat("0", 1<<16))
	put(t, filepath.Join(dir, "target"), strings.Repeat("0", 1<<16))
	link(t, "target", filepath.Join(dir, "overwritten"))
	files := NewFiles(openRoots(t, dir), Trusted(), nil)
	for _, name := range []string{"replaced", "overwritten", "new/file"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		ofOne := func() {
			got, err := files.read(t.Context(), session, path, wholeText)
			if err != nil || len(got) != 1<<16 || strings.Trim(got, got[:1]) != "" {
				t.Errorf("%s: read %d bytes, %v, want those of one writer", name, len(got), err)
			}
		}
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for range 5 {
					if err := files.write(t.Context(), session, path, strings.Repeat(fmt.Sprint(i), 1<<16)); err != nil {
						t.Error(err)
					}
					if replaces && name != "overwritten" {
						ofOne()
					}
				}
			})
		}
		wg.Wait()
		ofOne()
	}
	noTemporaries(t, dir)
}

func TestRoots(t *testing.T) {
	top := t.TempDir()
	for _, dir := range []string{"fixed", "one", "one/inner", "two"} {
		put(t, filepath.Join(top, dir, "a.txt"), dir)
	}
	at := func(dir string) string { return filepath.Join(top, filepath.FromSlash(dir), "a.txt") }
	roots := openRoots(t, filepath.Join(top, "fixed"))
	files := NewFiles(roots, Trusted(), nil)
	must.Do(t, roots.SetSession(sibling("own"), filepath.Join(top, "one", "inner"), filepath.Join(top, "two"), filepath.Join(top, "one")))
	check := func(session acp.SessionID, dir string, want error) {
		t.Helper()
		got, err := files.read(t.Context(), sibling(session), at(dir), wholeText)
		if !errors.Is(err, want) || err == nil && got != dir {
			t.Errorf("session %s in %s: got %q, %v, want %v", session, dir, got, err, want)
		}
	}
	check("other", "fixed", nil)
	check("other", "one", ErrOutside)
	check("own", "fixed", ErrOutside)
	check("own", "one", nil)
	check("own", "one/inner", nil)
	check("own", "two", nil)
	if set, err := roots.rootsOf(sibling("own")); err != nil || set.home.names[0] != filepath.Join(top, "one", "inner") {
		t.Errorf("home is %v, %v", set.home, err)
	}

	must.Do(t, roots.SetSession(sibling("own"), filepath.Join(top, "two")))
	check("own", "two", nil)
	check("own", "one", ErrOutside)
	if err := roots.SetSession(sibling("own"), filepath.Join(top, "one"), filepath.Join(top, "nothing")); err == nil {
		t.Error("a missing directory was accepted")
	}
	check("own", "two", nil)
	roots.RemoveSession(sibling("own"))
	roots.RemoveSession(sibling("own"))
	check("own", "two", ErrOutside)
	check("own", "fixed", nil)

	roots.Close()
	check("own", "fixed", ErrClosed)
	if err := roots.SetSession(sibling("own"), top); !errors.Is(err, ErrClosed) {
		t.Errorf("SetSession after Close: %v", err)
	}

	none := openRoots(t)
	if _, err := NewFiles(none, Trusted(), nil).read(t.Context(), sibling("nobody"), at("fixed"), wholeText); err == nil || err.Error() != `unknown session "nobody"` {
		t.Errorf("no directories: got %v", err)
	}
	for _, dir := range []string{filepath.Join(top, "nothing"), at("one")} {
		if _, err := OpenRoots(top, dir); err == nil {
			t.Errorf("%s was opened", dir)
		}
	}
}

// A directory that is known by a link, such as /tmp on macOS, is reached by both of its names, and
// nested directories make one: links between them work.
func TestRootNames(t *testing.T) {
	top := t.TempDir()
	real := filepath.Join(top, "real")
	put(t, filepath.Join(real, "a.txt"), "text")
	put(t, filepath.Join(real, "inner", "b.txt"), "text")
	link(t, "real", filepath.Join(top, "alias"))
	link(t, "../a.txt", filepath.Join(real, "inner", "up"))
	files := NewFiles(openRoots(t, filepath.Join(top, "alias", "inner"), filepath.Join(top, "alias")), Trusted(), nil)
	for _, path := range []string{"alias/a.txt", "real/a.txt", "alias/inner/up", "real/inner/b.txt"} {
		if got, err := files.read(t.Context(), session, filepath.Join(top, filepath.FromSlash(path)), wholeText); err != nil || got != "text" {
			t.Errorf("%s: got %q, %v", path, got, err)
		}
	}
}

func TestRelativeRoot(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	put(t, "a.txt", "text")
	files := NewFiles(openRoots(t, "."), Trusted(), nil)
	t.Chdir("..")
	if got, err := files.read(t.Context(), session, filepath.Join(dir, "a.txt"), wholeText); err != nil || got != "text" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestFileURI(t *testing.T) {
	for path, want := range map[string]string{
		"/home/me/a b#1%.txt": "file:///home/me/a%20b%231%25.txt",
		"/ü":                  "file:///%C3%BC",
		"C:/x/a.txt":          "file:///C:/x/a.txt",
		"//host/share/a.txt":  "file://host/share/a.txt",
	} {
		if got := fileURI(filepath.FromSlash(path)); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

// Those who overwrite one file wait for each other, as long as their contexts last; those of other files do not.
func TestWritersTakeTurns(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		put(t, filepath.Join(dir, name), "old")
		link(t, name, filepath.Join(dir, "to-"+name))
	}
	info := must.Get(os.Stat(filepath.Join(dir, "a")))(t)
	roots := openRoots(t, dir)
	synctest.Test(t, func(t *testing.T) {
		files := NewFiles(roots, Trusted(), nil)
		done := must.Get(files.inPlace.take(t.Context(), info))(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		var cancelled, waiting error
		var writers sync.WaitGroup
		writers.Go(func() { cancelled = files.write(ctx, session, filepath.Join(dir, "to-a"), "cancelled") })
		writers.Go(func() { waiting = files.write(t.Context(), session, filepath.Join(dir, "to-a"), "new") })
		must.Do(t, files.write(t.Context(), session, filepath.Join(dir, "to-b"), "new"))
		synctest.Wait()
		cancel(enough)
		synctest.Wait()
		if got := get(t, filepath.Join(dir, "a")); got != "old" {
			t.Errorf("written in another's turn: %q", got)
		}
		done()
		writers.Wait()
		if !errors.Is(cancelled, enough) || waiting != nil {
			t.Errorf("got %v, want %v, and %v", cancelled, enough, waiting)
		}
		if got := get(t, filepath.Join(dir, "a")); got != "new" {
			t.Errorf("after the turn: %q", got)
		}
		if len(files.inPlace.files) != 0 {
			t.Errorf("%d turns are left", len(files.inPlace.files))
		}
	})
}

// Who overwrites a file says what a failure leaves of it.
func TestOverwriteFails(t *testing.T) {
	broken := errors.New("broken disk")
	for name, tt := range map[string]struct {
		file    brokenFile
		content string
		left    string
		says    string
	}{
		"nothing":       {brokenFile{}, "new and longer", "new and longer", ""},
		"shorter":       {brokenFile{}, "x", "x", ""},
		"the end":       {brokenFile{write: 9, err: broken}, "new and longer", "old text\n", ""},
		"the beginning": {brokenFile{write: 0, err: broken}, "new", "old text\n", "left incomplete"},
		"truncation":    {brokenFile{write: -1, truncate: true, err: broken}, "new", "new text\n", "end of its old text"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.txt")
			put(t, path, "old text\n")
			file, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			tt.file.File = file
			err = overwrite(&tt.file, tt.content)
			if !errors.Is(err, tt.file.err) || tt.says != "" && !strings.Contains(pathError(opWrite, place{root: &root{}}, err).Error(), tt.says) {
				t.Errorf("got %v, want %v and %q", err, tt.file.err, tt.says)
			}
			if got := get(t, path); got != tt.left {
				t.Errorf("%q is left, want %q", got, tt.left)
			}
		})
	}
}

// A brokenFile fails to write at one place, or to be truncated.
type brokenFile struct {
	*os.File
	write    int64
	truncate bool
	err      error
}

func (f *brokenFile) WriteAt(p []byte, off int64) (int, error) {
	if f.err != nil && off == f.write {
		return 0, &fs.PathError{Op: "write", Path: f.Name(), Err: f.err}
	}
	return f.File.WriteAt(p, off)
}

func (f *brokenFile) Truncate(size int64) error {
	if f.truncate {
		return &fs.PathError{Op: "truncate", Path: f.Name(), Err: f.err}
	}
	return f.File.Truncate(size)
}
