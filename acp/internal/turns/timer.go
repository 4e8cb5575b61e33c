package turns

import (
	"sync"
	"time"
)

// Timer calls a function once after a delay. Lock must be held during its methods, except Wait.
type Timer struct {
	// Lock is held while the function runs.
	Lock sync.Locker

	due     *time.Timer    // nil if the timer is not set
	running sync.WaitGroup // counts functions from Set until they have returned or were stopped
}

// IsSet reports whether a function is due.
func (t *Timer) IsSet() bool { return t.due != nil }

// Set calls do after a delay, unless the timer is already set.
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
			return // it was stopped in the meantime
		}
		t.due = nil
		do()
	})
	t.due = due
}

// Stop cancels the call, if the timer is set.
func (t *Timer) Stop() {
	if t.due != nil && t.due.Stop() {
		t.running.Done()
	}
	t.due = nil
}

// Wait waits until no function is running. Call Stop first, and do not hold Lock.
func (t *Timer) Wait() { t.running.Wait() }
