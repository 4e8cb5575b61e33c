package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"syscall"
)

// errIrreplaceable reports that nothing was changed because the file must be written in place: a new file would lack
// some of its attributes, its directory does not allow new files, or it is a mount point.
var errIrreplaceable = errors.New("cannot be replaced")

// replace atomically replaces old with a new file that has the given content, or creates the file if old is nil. The
// new file has the permissions, the owner and the attributes of the old one; hard links to the old file keep the old
// content. A crash may leave a file ".acp-*" behind.
func replace(ctx context.Context, dir *os.Root, name, content string, old *os.File) (err error) {
	perm := fs.FileMode(0o666)
	if old != nil {
		perm = 0o600 // until it gets those of the old file
	}
	temp := ".acp-" + rand.Text()
	file, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil && old != nil {
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
	if err := errors.Join(fill(ctx, file, content, old), file.Close()); err != nil {
		return err
	}
	err = dir.Rename(temp, name)
	if err != nil && old != nil && isImmovable(err) {
		return fmt.Errorf("%w: %w", errIrreplaceable, err)
	}
	return err
}

// isImmovable reports whether a file cannot be replaced, although it can be written.
func isImmovable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.EXDEV)
}

// fill writes a new file and syncs it, so that its name never refers to a part of it.
func fill(ctx context.Context, file *os.File, content string, old *os.File) error {
	if old != nil {
		if err := resemble(file, old); err != nil {
			return fmt.Errorf("%w: %w", errIrreplaceable, err)
		}
	}
	for len(content) > 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n := min(len(content), 1<<20)
		if _, err := file.WriteString(content[:n]); err != nil {
			return err
		}
		content = content[n:]
	}
	if err := file.Sync(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// The operations of a file that overwrite needs.
type overwritable interface {
	io.WriterAt
	Stat() (fs.FileInfo, error)
	Chmod(fs.FileMode) error
	Truncate(size int64) error
	Sync() error
}

// overwrite replaces the text of a file in place, so that the file keeps all its attributes except the setuid and
// setgid permissions, which new content must not get. The part of a longer text that exceeds the old one is written
// first: if the disk is full, the old text stays. Once begun it does not end early: a failure in the middle, or a
// crash, leaves a mixture of both texts.
func overwrite(file overwritable, content string) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	const run = fs.ModeSetuid | fs.ModeSetgid
	if mode := info.Mode(); mode&run != 0 {
		// The system does the same, except for the superuser.
		if err := file.Chmod(mode &^ run); err != nil {
			return err
		}
	}
	begin, old := []byte(content), info.Size()
	if int64(len(begin)) > old {
		_, err := file.WriteAt(begin[old:], old)
		if err == nil {
			err = file.Sync() // some systems report only now that the disk is full
		}
		if err != nil {
			return errors.Join(err, file.Truncate(old))
		}
		begin = begin[:old]
	}
	if _, err := file.WriteAt(begin, 0); err != nil {
		return fmt.Errorf("the file is left incomplete: %w", reason(err))
	}
	if err := file.Truncate(int64(len(content))); err != nil {
		return fmt.Errorf("the file is left with the end of its old text: %w", reason(err))
	}
	return file.Sync()
}

// turns serializes writes in place to the same file. The zero value is ready to use.
type turns struct {
	mu    sync.Mutex
	files []*turn // files being written or waited for
}

// A turn is a file being written in place.
type turn struct {
	file  fs.FileInfo
	free  chan struct{} // has an element while no one writes
	users int           // number of writers and waiters; guarded by turns.mu
}

// take waits until no one writes the file, and returns the function that ends the turn.
func (t *turns) take(ctx context.Context, file fs.FileInfo) (done func(), err error) {
	turn := t.join(file)
	select {
	case <-turn.free:
		return func() {
			turn.free <- struct{}{}
			t.leave(turn)
		}, nil
	case <-ctx.Done():
		t.leave(turn)
		return nil, context.Cause(ctx)
	}
}

func (t *turns) join(file fs.FileInfo) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, turn := range t.files {
		if os.SameFile(turn.file, file) {
			turn.users++
			return turn
		}
	}
	turn := &turn{file: file, free: make(chan struct{}, 1), users: 1}
	turn.free <- struct{}{}
	t.files = append(t.files, turn)
	return turn
}

func (t *turns) leave(which *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if which.users--; which.users == 0 {
		t.files = slices.DeleteFunc(t.files, func(other *turn) bool { return other == which })
	}
}
