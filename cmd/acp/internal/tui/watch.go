package tui

import (
	"context"
	"hash/maphash"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// sourceMsg reports that files of the watched directory have changed.
type sourceMsg struct{}

// watchTime is the time between two looks at the watched directory.
const watchTime = 500 * time.Millisecond

// watchFiles calls changed after a file in dir was added, removed or written, as soon as two looks find the same: a
// build or a checkout, which writes many files, counts once. It polls because notifications of the system miss network
// file systems, and need one watch for each directory. It returns when ctx ends.
func watchFiles(ctx context.Context, dir string, changed func()) {
	ticker := time.NewTicker(watchTime)
	defer ticker.Stop()
	reported := fingerprint(ctx, dir)
	last := reported
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		now := fingerprint(ctx, dir)
		if now == last && now != reported && ctx.Err() == nil {
			reported = now
			changed()
		}
		last = now
	}
}

var fingerprintSeed = maphash.MakeSeed()

// fingerprint returns a hash of the names, sizes and times of the files in dir.
func fingerprint(ctx context.Context, dir string) uint64 {
	var h maphash.Hash
	h.SetSeed(fingerprintSeed)
	files := 0
	walkSources(ctx, dir, func(path string, d fs.DirEntry) bool {
		if info, err := d.Info(); err == nil { // otherwise it was just removed
			maphash.WriteComparable(&h, path)
			maphash.WriteComparable(&h, info.Size())
			maphash.WriteComparable(&h, info.ModTime().UnixNano())
		}
		files++
		return files < maxFiles
	})
	return h.Sum64()
}

// walkSources calls visit for the files in dir, until it returns false. Hidden files are left out, and in a repository
// those that Git ignores; without Git, directories of packages are. What cannot be read is left out too.
func walkSources(ctx context.Context, dir string, visit func(path string, d fs.DirEntry) bool) {
	git := exec.CommandContext(ctx, "git", "-c", "core.fsmonitor=", "ls-files", "-z", "--cached", "--others",
		"--exclude-standard") // the hook of a repository is not run
	git.Dir = dir
	if list, err := git.Output(); err == nil {
		for name := range strings.SplitSeq(string(list), "\x00") {
			path := filepath.Join(dir, filepath.FromSlash(name))
			info, err := os.Lstat(path)
			if err != nil || info.IsDir() || strings.HasPrefix(name, ".") || strings.Contains(name, "/.") {
				continue // it was removed, or is another repository
			}
			if !visit(path, fs.FileInfoToDirEntry(info)) {
				return
			}
		}
		return
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return fs.SkipAll
		case d == nil, path == dir:
			return nil
		case err != nil, strings.HasPrefix(d.Name(), "."), d.Name() == "node_modules", d.Name() == "__pycache__":
			if d.IsDir() {
				return fs.SkipDir
			}
		case !d.IsDir() && !visit(path, d):
			return fs.SkipAll
		}
		return nil
	})
}

// renew restarts the agent if its files have changed since it was started. It waits until no turn is in progress.
func (m *Model) renew() tea.Cmd {
	if !m.stale || m.connection == connecting || m.connection == lost {
		return nil
	}
	for _, c := range m.chats {
		if c.cancel != nil || c.reconnecting {
			return nil
		}
	}
	m.stale = false
	m.connection = dead
	m.dismiss(func(d dialog) bool { _, ok := d.(*deadDialog); return ok })
	return m.restart()
}
