// Package filelock provides locks on files, which separate processes and also goroutines within one process. A lock
// ends with its process, however that ends.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// ErrLocked reports that a lock is held elsewhere.
var ErrLocked = errors.New("the lock is held elsewhere")

// Lock is a held lock.
type Lock struct{ file *os.File }

// Try takes the lock of a file, which is created if necessary, and which must not be removed. If the lock is held
// elsewhere, the error matches ErrLocked.
func Try(name string) (*Lock, error) {
	file, err := open(name)
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", name, err)
	}
	return &Lock{file}, nil
}

// Wait takes the lock of a file like Try, but waits while it is held elsewhere.
func Wait(ctx context.Context, name string) (*Lock, error) {
	// The systems have no wait that a context could interrupt.
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		lock, err := Try(name)
		if !errors.Is(err, ErrLocked) {
			return lock, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// Unlock releases the lock.
func (l *Lock) Unlock() error { return l.file.Close() }
