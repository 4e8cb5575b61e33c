package engine

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// Every task begins, even if none of those before it ever ends.
func TestEveryTaskBegins(t *testing.T) {
	var g tasks
	const n = 2 * maxIdle
	for range 2 { // the second time with goroutines that are idle
		var begun sync.WaitGroup
		begun.Add(n)
		for range n {
			g.spawn(taskFunc(func() {
				begun.Done()
				begun.Wait()
			}))
		}
		begun.Wait()
	}
	g.stop()
	g.Wait()
}

// A task that ends its goroutine does not end others.
func TestTaskEndsGoroutine(t *testing.T) {
	var g tasks
	var ran atomic.Int32
	for range 10 {
		g.spawn(taskFunc(func() {
			ran.Add(1)
			// As the handler of a test does by calling FailNow.
			runtime.Goexit()
		}))
	}
	g.stop()
	g.Wait()
	if got := ran.Load(); got != 10 {
		t.Errorf("%d tasks ran, want 10", got)
	}
	if g.spawn(taskFunc(func() {})) {
		t.Error("a task was accepted after the end")
	}
}

// Tasks that are short, and arrive together, share few goroutines.
func TestShortTasksShareGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g tasks
		hold := make(chan struct{})
		g.spawn(taskFunc(func() { <-hold }))
		synctest.Wait()
		g.mu.Lock() // so that they arrive together
		for range 100 {
			g.waiting = append(g.waiting, taskFunc(func() {}))
		}
		g.send()
		g.mu.Unlock()
		synctest.Wait()
		if n := len(g.idle); n > 2*4 {
			t.Errorf("100 short tasks used %d goroutines", n)
		}
		close(hold)
		g.stop()
		g.Wait()
	})
}
