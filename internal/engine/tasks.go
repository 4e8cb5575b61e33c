package engine

import "sync"

// maxIdle is how many goroutines of a connection wait for a task.
const maxIdle = 256

// A task is what a goroutine of the connection's does.
type task interface{ run() }

type taskFunc func()

func (f taskFunc) run() { f() }

// tasks are the goroutines of handlers, workers and turns.
type tasks struct {
	sync.WaitGroup

	mu      sync.Mutex
	idle    []chan task // of goroutines that wait for a task
	stopped bool        // no more tasks
}

// spawn runs t in a goroutine, unless they were stopped, and reports whether it does.
func (g *tasks) spawn(t task) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return false
	}
	if n := len(g.idle); n > 0 {
		g.idle[n-1] <- t // the one that has worked last
		g.idle = g.idle[:n-1]
	} else {
		g.Add(1)
		go g.do(t)
	}
	return true
}

// do runs a task, and then others for as long as they come. A new goroutine grows its stack by copying it
// while it runs a handler; one that stays has the stack. Calls, 16 or more in flight, take 5 to 9 % less time.
func (g *tasks) do(t task) {
	defer g.Done()
	next := make(chan task, 1)
	for t != nil {
		t.run()
		if !g.rest(next) {
			return
		}
		t = <-next
	}
}

// rest puts a goroutine among the idle ones, unless there are enough.
func (g *tasks) rest(next chan task) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped || len(g.idle) == maxIdle {
		return false
	}
	g.idle = append(g.idle, next)
	return true
}

// stop ends the idle goroutines, and lets no others begin.
func (g *tasks) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopped = true
	for _, next := range g.idle {
		close(next)
	}
	g.idle = nil
}
