package hostile

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// Live runs a victim, and writes its report: the numbers of goroutines and MiB at most, the goroutines that are left, and
// the error.
func Live(r *Report, victim func() error) error {
	before := runtime.NumGoroutine()
	watch := watch()
	err := victim()
	most, memory := watch()
	r.Note("%d goroutines and %d MiB of Go's at most", most, memory)
	if most > maxGoroutines {
		r.Problem("%d goroutines, want %d at most", most, maxGoroutines)
	}
	if left := settle(before); left > before {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		r.Problem("%d goroutines are left, %d at the start: %.3000s", left, before, stacks)
	}
	if err != nil {
		r.Problem("%v", err)
	}
	return r.Ran()
}

// maxGoroutines is how many goroutines a connection may have: one for each request in progress, one for each
// session with notifications that wait, of which there may be 4096 each.
const maxGoroutines = 3 * 4096

// watch looks at goroutines and memory until the function that it returns is called, which says how many there were,
// and how many MiB Go had of the system. That is without what the race detector has.
func watch() (most func() (goroutines int, memory uint64)) {
	stop, done := make(chan struct{}), make(chan struct{})
	goroutines, memory := 0, uint64(0)
	go func() {
		defer close(done)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
		for {
			metrics.Read(samples)
			goroutines = max(goroutines, runtime.NumGoroutine())
			memory = max(memory, samples[0].Value.Uint64()-samples[1].Value.Uint64())
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	return func() (int, uint64) {
		close(stop)
		<-done
		return goroutines, memory >> 20
	}
}

// settle waits until there are no more goroutines than there were, for a while, and returns how many there are.
func settle(before int) int {
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if n := runtime.NumGoroutine(); n <= before {
			return n
		}
	}
	return runtime.NumGoroutine()
}
