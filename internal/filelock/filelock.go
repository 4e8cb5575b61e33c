// Package filelock keeps processes apart that work on the same files: who holds the lock of a file works, others wait.
// A lock ends with its process, however that ends. It also keeps apart holders within one process.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// ErrLocked says that somebody else holds a lock.
var ErrLocked = errors.New("somebody else holds the lock")

// Lock is a lock that is held.
type Lock struct{ file *os.File }

// Try takes the lock of a file, which is created if it is not there, and which nobody removes. If somebody else holds
// it, the error matches ErrLocked.
func Try(name string) (*Lock, error) {
	file, err := open(name)
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", name, err)
	}
	return &Lock{file}, nil
}

// Wait takes the lock of a file as Try does, and waits while somebody else holds it.
func Wait(ctx context.Context, name string) (*Lock, error) {
	// The systems have no wait that a context could end.
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		lock, err := Try(name)
		if !errors.Is(err, ErrLocked) {
			return lock, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// Unlock gives the lock back.
func (l *Lock) Unlock() error { return l.file.Close() }
