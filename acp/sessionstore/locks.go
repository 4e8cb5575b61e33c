// This file has the locks: a session is changed by one goroutine of one process at a time. Sessions share a few lock
// files, which are never removed, so that no one locks a file that no longer exists.

package sessionstore

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"sync"

	"github.com/acpgo/sdk/internal/filelock"
)

const (
	lockCount  = 8
	lockPrefix = "lock-"
)

type locks struct {
	each [lockCount]lock
	mu   sync.Mutex
	done bool
}

// lock is one lock file. A goroutine must hold the token to lock it.
type lock struct {
	token chan struct{}
	path  string
}

func openLocks(d *Dir) (*locks, error) {
	l := &locks{}
	for i := range l.each {
		name := fmt.Sprint(lockPrefix, i)
		file, _, err := d.open(name, os.O_RDWR|os.O_CREATE) // open refuses anything except a regular file
		if err != nil {
			return nil, err
		}
		if err := file.Close(); err != nil {
			return nil, err
		}
		l.each[i] = lock{make(chan struct{}, 1), d.file(name)}
		l.each[i].token <- struct{}{}
	}
	// Check that the file system has locks.
	held, err := filelock.Try(l.each[0].path)
	switch {
	case errors.Is(err, filelock.ErrLocked):
		return l, nil
	case err != nil:
		return nil, err
	}
	return l, held.Unlock()
}

func (l *locks) closed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.done
}

// close waits until no lock is held, and reports whether this is the first call.
func (l *locks) close() bool {
	l.mu.Lock()
	first := !l.done
	l.done = true
	l.mu.Unlock()
	if !first {
		return false
	}
	for i := range l.each {
		<-l.each[i].token // and do not return it
		close(l.each[i].token)
	}
	return true
}

// get returns the lock for the session with this name.
func (l *locks) get(name string) *lock {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(name)) // it cannot fail
	return &l.each[sum.Sum32()%lockCount]
}

// tryLocked is like locked, but does nothing if the lock is held elsewhere.
func (d *Dir) tryLocked(name string, f func() error) (err error) {
	l := d.locks.get(name)
	select {
	case _, ok := <-l.token:
		if !ok {
			return ErrClosed
		}
	default:
		return nil
	}
	defer func() { l.token <- struct{}{} }()
	held, err := filelock.Try(l.path)
	if errors.Is(err, filelock.ErrLocked) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Unlock()) }()
	return f()
}

// locked calls f while the session with this name is locked.
func (d *Dir) locked(ctx context.Context, name string, f func() error) (err error) {
	l := d.locks.get(name)
	ctx, cancel := context.WithTimeoutCause(ctx, d.opts.LockTime, errBusy)
	defer cancel()
	select {
	case _, ok := <-l.token:
		if !ok {
			return ErrClosed
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { l.token <- struct{}{} }()
	held, err := filelock.Wait(ctx, l.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Unlock()) }()
	return f()
}
