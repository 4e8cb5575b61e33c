// Package await waits for calls that cannot be cancelled.
package await

import (
	"context"
	"time"
)

// Do calls do, and after ctx ends waits at most patience longer; then it returns the cause of ctx. The goroutine of a
// call that still hangs ends when the call does, because nothing can end a read from a terminal, the opening of a pipe
// without a peer, or what a file system does that does not respond.
func Do[T any](ctx context.Context, patience time.Duration, do func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := do()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-done:
		return r.value, r.err
	case <-time.After(patience):
		return *new(T), context.Cause(ctx)
	}
}
