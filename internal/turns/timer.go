package turns

import (
	"sync"
	"time"
)

// Timer calls a function once after a time. Its methods are called with Lock held, except Wait.
type Timer struct {
	// Lock is held while the function runs.
	Lock sync.Locker

	due     *time.Timer    // nil if it is not set
	running sync.WaitGroup // functions, from when they are set until they have returned or cannot run
}

// IsSet reports whether the function is still to be called.
func (t *Timer) IsSet() bool { return t.due != nil }

// Set has do called after a time, unless that is set already.
func (t *Timer) Set(after time.Duration, do func()) {
	if t.due != nil {
		return
	}
	t.running.Add(1)
	var due *time.Timer
	due = time.AfterFunc(after, func() {
		defer t.running.Done()
		t.Lock.Lock()
		defer t.Lock.Unlock()
		if t.due != due {
			return // it was stopped meanwhile
		}
		t.due = nil
		do()
	})
	t.due = due
}

// Stop keeps the function from being called.
func (t *Timer) Stop() {
	if t.due != nil && t.due.Stop() {
		t.running.Done()
	}
	t.due = nil
}

// Wait waits until no function runs and none will, because the timer is not set again. Stop it before. Lock is not held.
func (t *Timer) Wait() { t.running.Wait() }
