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
	"strings"
)

// List implements Store. It reads the heads of all sessions.
func (d *Dir) List(ctx context.Context, q Query) (Page, error) {
	infos, err := d.infos(ctx)
	if err != nil {
		if errors.Is(err, os.ErrClosed) {
			err = errors.Join(ErrClosed, err)
		}
		return Page{}, fmt.Errorf("listing sessions: %w", err)
	}
	return pageOf(infos, q)
}

// pageOf returns the page that a query asks for, of all sessions.
func pageOf(infos []Info, q Query) (Page, error) {
	var after *Position
	if q.Cursor != "" {
		position, err := ParseCursor(q.Cursor)
		if err != nil {
			return Page{}, fmt.Errorf("listing sessions: %w", err)
		}
		after = &position
	}
	infos = slices.DeleteFunc(infos, func(i Info) bool {
		return q.Cwd != "" && i.Cwd != q.Cwd || after != nil && i.Position().Compare(*after) <= 0
	})
	slices.SortFunc(infos, func(a, b Info) int { return a.Position().Compare(b.Position()) })
	if size := q.Size(); len(infos) > size {
		return Page{infos[:size], infos[size-1].Position().Cursor()}, nil
	}
	return Page{Sessions: infos}, nil
}

// infos reads the heads of all sessions, and removes what was left by others.
func (d *Dir) infos(ctx context.Context) (infos []Info, err error) {
	if d.locks.closed() {
		return nil, ErrClosed
	}
	files, err := d.names()
	if err != nil {
		return nil, err
	}
	heads, left := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if name, ok := strings.CutSuffix(file, headSuffix); ok {
			heads[name] = true
			switch info, err := d.readHead(name); {
			case err == nil:
				infos = append(infos, info)
			case errors.Is(err, os.ErrClosed):
				return nil, err
			case !errors.Is(err, fs.ErrNotExist): // otherwise it was deleted in the meantime
				d.report(file, err)
			}
		}
	}
	for _, file := range files {
		if name, ok := strings.CutSuffix(file, tempSuffix); ok {
			left[name] = true
		} else if name, ok := strings.CutSuffix(file, logSuffix); ok && !heads[name] {
			left[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		d.tidy(name)
	}
	return infos, nil
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
// is being changed, the next list does it. A failure does not make the list fail.
func (d *Dir) tidy(name string) {
	err := d.tryLocked(name, func() error {
		err := d.removeOurs(name + tempSuffix)
		if _, lack := d.root.Lstat(name + headSuffix); errors.Is(lack, fs.ErrNotExist) {
			err = errors.Join(err, d.removeOurs(name+logSuffix))
		}
		return err
	})
	if err != nil && !errors.Is(err, ErrClosed) {
		d.report(name, fmt.Errorf("what was left of a session cannot be removed: %w", err))
	}
}

// report reports the damage of a file, once.
func (d *Dir) report(file string, err error) {
	if _, known := d.reported.LoadOrStore(file, true); !known {
		d.opts.Damaged(Damage{File: d.file(file), Err: err})
	}
}

// removeOurs removes a file that the store may have created.
func (d *Dir) removeOurs(name string) error {
	if _, err := d.regular(name); err != nil {
		return nil // it is not ours, or is gone
	}
	return d.remove(name)
}
