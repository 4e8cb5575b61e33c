// This file owns that one session is changed by one at a time, of all goroutines and processes. Sessions share a few
// lock files, which are never removed, so that nobody locks a file that is no longer there.

package sessionstore

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"sync"
	"time"
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

// lock is one lock file. Whoever takes the token may lock it.
type lock struct {
	token chan struct{}
	file  *os.File
}

func openLocks(d *Dir) (l *locks, err error) {
	l = &locks{}
	for i := range l.each {
		file, _, openErr := d.open(fmt.Sprintf("%s%d", lockPrefix, i), os.O_RDWR|os.O_CREATE)
		err = errors.Join(err, openErr)
		l.each[i] = lock{make(chan struct{}, 1), file}
		l.each[i].token <- struct{}{}
	}
	if err == nil { // does the file system have locks?
		if _, err = tryLock(l.each[0].file); err == nil {
			err = unlock(l.each[0].file)
		}
	}
	if err != nil {
		l.close()
	}
	return l, err
}

func (l *locks) closed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.done
}

// close waits for those who hold a lock, and reports whether it was called for the first time.
func (l *locks) close() bool {
	l.mu.Lock()
	first := !l.done
	l.done = true
	l.mu.Unlock()
	if !first {
		return false
	}
	for i := range l.each {
		<-l.each[i].token // and does not give it back
		if file := l.each[i].file; file != nil {
			_ = file.Close() // nothing was written to it
		}
		close(l.each[i].token)
	}
	return true
}

// locked calls f while nobody else changes the session of this name.
func (d *Dir) locked(ctx context.Context, name string, f func() error) (err error) {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(name)) // it does not fail
	l := &d.locks.each[sum.Sum32()%lockCount]

	limit := time.NewTimer(d.opts.LockTime)
	defer limit.Stop()
	select {
	case _, ok := <-l.token:
		if !ok {
			return ErrClosed
		}
	case <-limit.C:
		return errBusy
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { l.token <- struct{}{} }()
	// The systems' waits for locks cannot be given up, so ask again and again. Another process holds a lock for
	// the time of a write.
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		locked, err := tryLock(l.file)
		if err != nil {
			return fmt.Errorf("locking: %w", err)
		}
		if locked {
			break
		}
		again := time.NewTimer(wait)
		select {
		case <-again.C:
		case <-limit.C:
			return errBusy
		case <-ctx.Done():
			again.Stop()
			return context.Cause(ctx)
		}
	}
	defer func() {
		if unlockErr := unlock(l.file); unlockErr != nil {
			err = errors.Join(err, fmt.Errorf("unlocking: %w", unlockErr))
		}
	}()
	return f()
}
