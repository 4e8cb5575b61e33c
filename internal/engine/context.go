package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// lateContext is the result of context.WithCancelCause, which is called only when someone asks for more than whether it
// has ended. Most handlers do not, and each call takes 4 % less time.
type lateContext struct {
	parent context.Context
	used   atomic.Bool // made or cause is set

	mu    sync.Mutex
	made  context.Context // nil if no one has asked
	end   context.CancelCauseFunc
	cause error // why it has ended without having been made
}

// cancel ends it.
func (l *lateContext) cancel(cause error) {
	l.mu.Lock()
	end := l.end
	if l.made == nil && l.cause == nil {
		if l.cause = context.Cause(l.parent); l.cause == nil {
			l.cause = cause
		}
		l.used.Store(true)
	}
	l.mu.Unlock()
	if end != nil {
		end(cause)
	}
}

// make makes it.
func (l *lateContext) make() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.made == nil {
		parent := l.parent
		if l.cause != nil { // parent may have ended since, for another reason
			parent = context.WithoutCancel(parent)
		}
		if l.made, l.end = context.WithCancelCause(parent); l.cause != nil {
			l.end(l.cause)
		}
		l.used.Store(true)
	}
	return l.made
}

// Deadline implements context.Context.
func (l *lateContext) Deadline() (time.Time, bool) { return l.parent.Deadline() }

// Done implements context.Context.
func (l *lateContext) Done() <-chan struct{} { return l.make().Done() }

// Err implements context.Context.
func (l *lateContext) Err() error {
	if !l.used.Load() { // nearly always, and asked twice for each update
		return l.parent.Err()
	}
	l.mu.Lock()
	made, cause := l.made, l.cause
	l.mu.Unlock()
	switch {
	case made != nil:
		return made.Err()
	case cause != nil:
		return context.Canceled
	}
	return l.parent.Err()
}

// Value implements context.Context. Package context asks for a value to find the cause.
func (l *lateContext) Value(key any) any {
	if key == (holderKey{}) { // which this package asks for before each call
		return l.parent.Value(key)
	}
	return l.make().Value(key)
}
