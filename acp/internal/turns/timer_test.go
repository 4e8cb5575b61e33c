package turns_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp/internal/turns"
)

// The function is called once, with the lock held, and may set the timer again.
func TestTimerSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		timer := turns.Timer{Lock: &mu}
		calls := 0
		var do func()
		do = func() {
			if mu.TryLock() {
				t.Error("the lock is not held")
			}
			if timer.IsSet() {
				t.Error("it is still to be called")
			}
			if calls++; calls < 3 {
				timer.Set(time.Second, do)
			}
		}
		mu.Lock()
		timer.Set(time.Second, do)
		timer.Set(time.Millisecond, func() { t.Error("the second one was called") })
		if !timer.IsSet() {
			t.Error("it is not set")
		}
		mu.Unlock()
		for _, want := range []int{0, 1, 2, 3, 3} {
			time.Sleep(900 * time.Millisecond)
			synctest.Wait()
			mu.Lock()
			if calls != min(want, calls) {
				t.Errorf("%d calls, want at most %d", calls, want)
			}
			mu.Unlock()
		}
		if calls != 3 {
			t.Errorf("%d calls", calls)
		}
		timer.Wait()
	})
}

// What is stopped is not called, also if its time came while the lock was held.
func TestTimerStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mu := make(chanLock, 1)
		timer := turns.Timer{Lock: mu}
		mu.Lock()
		timer.Stop() // which was not set
		timer.Set(time.Second, func() { t.Error("called") })
		timer.Stop()
		timer.Set(time.Second, func() { t.Error("called, and its time had come") })
		time.Sleep(2 * time.Second)
		timer.Stop()
		called := false
		timer.Set(time.Second, func() { called = true })
		mu.Unlock()
		timer.Wait()
		if !called {
			t.Error("Wait has not waited")
		}
	})
}

// chanLock is a lock on which a bubble's time advances.
type chanLock chan struct{}

func (l chanLock) Lock()   { l <- struct{}{} }
func (l chanLock) Unlock() { <-l }
