package engine

import (
	"sync"
	"testing"
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
