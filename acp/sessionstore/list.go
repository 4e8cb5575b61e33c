package sessionstore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sort"
	"strings"
	"time"
)

// index holds what is known about all sessions. busy has a capacity of one: the goroutine that puts a value in may use
// the other fields.
type index struct {
	busy   chan struct{}
	heads  map[string]indexed // by file name
	sorted []Info             // in the order of lists
	folder time.Time          // modification time of the directory at the scan, or zero if it is not conclusive
	stays  map[string]bool    // leftovers that cannot be removed, already reported
}

// indexed is a head that has been read.
type indexed struct {
	info   Info
	file   fs.FileInfo
	sure   bool // the next change to the file will have a different time
	broken bool
}

// settled is how long ago the last change of a directory must be for the next one to have a different time. Some file
// systems keep times to two seconds.
const settled = 3 * time.Second

// List implements Store. Unless nothing has changed in the directory, it checks the time of each session's file, and
// reads the heads of the files that have changed since the last call.
func (d *Dir) List(ctx context.Context, q Query) (Page, error) {
	page, err := d.list(ctx, q)
	if err != nil {
		if errors.Is(err, os.ErrClosed) {
			err = errors.Join(ErrClosed, err)
		}
		return Page{}, fmt.Errorf("listing sessions: %w", err)
	}
	return page, nil
}

func (d *Dir) list(ctx context.Context, q Query) (page Page, err error) {
	var after *Position
	if q.Cursor != "" {
		position, err := ParseCursor(q.Cursor)
		if err != nil {
			return page, err
		}
		after = &position
	}
	switch {
	case d.locks.closed():
		return page, ErrClosed
	case ctx.Err() != nil:
		return page, context.Cause(ctx)
	}
	select {
	case d.index.busy <- struct{}{}:
		defer func() { <-d.index.busy }()
	case <-ctx.Done():
		return page, context.Cause(ctx)
	}
	if err := d.scan(ctx); err != nil {
		return page, err
	}
	infos := d.index.sorted
	first := 0
	if after != nil {
		first = sort.Search(len(infos), func(i int) bool { return infos[i].Position().Compare(*after) > 0 })
	}
	size := q.Size()
	for _, info := range infos[first:] {
		if q.Cwd != "" && info.Cwd != q.Cwd {
			continue
		}
		if len(page.Sessions) == size {
			page.Next = page.Sessions[size-1].Position().Cursor()
			break
		}
		info.AdditionalDirectories = slices.Clone(info.AdditionalDirectories)
		page.Sessions = append(page.Sessions, info)
	}
	return page, nil
}

// scan updates the index. The caller must have put a value into busy.
func (d *Dir) scan(ctx context.Context) error {
	began := time.Now()
	folder, err := d.root.Stat(".")
	if err != nil {
		return err
	}
	x := &d.index
	if !x.folder.IsZero() && x.folder.Equal(folder.ModTime()) {
		return nil
	}
	names, err := d.names()
	if err != nil {
		return err
	}
	heads := make(map[string]indexed, len(names))
	same := true
	logs, temps := map[string]bool{}, map[string]bool{}
	for _, file := range names {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if name, ok := strings.CutSuffix(file, logSuffix); ok {
			logs[name] = true
			continue
		}
		if name, ok := strings.CutSuffix(file, tempSuffix); ok {
			temps[name] = true
			continue
		}
		name, ok := strings.CutSuffix(file, headSuffix)
		if !ok {
			continue
		}
		entry, known, err := d.entry(name, x.heads[name])
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted in the meantime
		}
		if err != nil {
			return err
		}
		same = same && known
		heads[name] = entry
	}
	if !same || len(heads) != len(x.heads) || x.sorted == nil {
		x.sorted = make([]Info, 0, len(heads))
		for _, entry := range heads {
			if !entry.broken {
				x.sorted = append(x.sorted, entry.info)
			}
		}
		slices.SortFunc(x.sorted, func(a, b Info) int { return a.Position().Compare(b.Position()) })
	}
	x.heads = heads
	x.folder = time.Time{}
	if began.Sub(folder.ModTime()) > settled {
		x.folder = folder.ModTime()
	}
	maps.DeleteFunc(logs, func(name string, _ bool) bool { _, ok := heads[name]; return ok })
	maps.Copy(temps, logs)
	for _, name := range slices.Sorted(maps.Keys(temps)) {
		d.tidy(name)
	}
	return nil
}

// names returns the names of all files that may belong to sessions.
func (d *Dir) names() ([]string, error) {
	dir, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	return slices.DeleteFunc(names, func(name string) bool {
		return !strings.HasPrefix(name, plainPrefix) && !strings.HasPrefix(name, hashedPrefix)
	}), err
}

// entry returns the index entry of a file. known reports whether the file has not changed.
func (d *Dir) entry(name string, old indexed) (entry indexed, known bool, err error) {
	file := name + headSuffix
	entry.file, err = d.root.Lstat(file)
	if err != nil {
		return entry, false, err
	}
	changed := entry.file.ModTime()
	if old.sure && os.SameFile(old.file, entry.file) && old.file.ModTime().Equal(changed) &&
		old.file.Size() == entry.file.Size() {
		return old, true, nil
	}
	entry.sure = time.Since(changed) > settled
	entry.info, err = d.readHead(name)
	if errors.Is(err, fs.ErrNotExist) {
		return entry, false, err
	}
	if err != nil {
		entry.broken = true
		d.opts.Damaged(Damage{File: d.file(file), Err: err})
	}
	return entry, false, nil
}

// readHead reads the first line of a session's file.
func (d *Dir) readHead(name string) (Info, error) {
	file, _, err := d.open(name+headSuffix, os.O_RDONLY)
	if err != nil {
		return Info{}, err
	}
	defer file.Close()
	line, _, err := readLine(bufio.NewReaderSize(file, 1<<10), MaxInfo)
	if err != nil {
		return Info{}, err
	}
	return parseHead(line, name)
}

// tidy removes leftovers of a deletion, a creation or a change that was interrupted. It does not wait: if the session
// is being changed, the next list does it. A failure does not make the list fail, and is reported once.
func (d *Dir) tidy(name string) {
	done, err := d.tryLocked(name, func() error {
		err := d.removeOurs(name + tempSuffix)
		if _, lack := d.root.Lstat(name + headSuffix); errors.Is(lack, fs.ErrNotExist) {
			err = errors.Join(err, d.removeOurs(name+logSuffix))
		}
		return err
	})
	x := &d.index
	switch {
	case !done:
		x.folder = time.Time{} // scan again even if nothing changes
	case err == nil:
		delete(x.stays, name)
	case errors.Is(err, ErrClosed):
	case !x.stays[name]:
		if x.stays == nil {
			x.stays = map[string]bool{}
		}
		x.stays[name] = true
		d.opts.Damaged(Damage{File: d.file(name), Err: fmt.Errorf("what was left of a session cannot be removed: %w", err)})
	}
}

// removeOurs removes a file that the store may have created.
func (d *Dir) removeOurs(name string) error {
	if _, err := d.regular(name); err != nil {
		return nil // it is not ours, or is gone
	}
	return d.remove(name)
}
