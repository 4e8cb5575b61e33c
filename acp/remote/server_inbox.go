package remote

import (
	"context"
	"net/http"
	"slices"
	"sync"
)

// inbox is the incoming half of an httpLink: POSTs put messages into it, and the agent reads them.
type inbox struct {
	max  int           // bytes of requests; the limit for all messages is four times as much
	wake chan struct{} // wakes the agent

	mu       sync.Mutex
	lines    [][]byte
	size     int        // bytes in lines
	waiting  []*arrival // requests waiting for room, oldest first
	waitSize int        // their bytes
	paused   bool       // requests must wait, because the agent waits for room in its streams
	end      error      // why nothing follows lines
	closed   error      // why the agent does not even read lines
}

// arrival is a request that waits for room.
type arrival struct {
	line  []byte
	taken chan struct{} // closed when it is in the inbox
}

// ended returns why the client can no longer send, or nil.
func (in *inbox) ended() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.end
}

// add puts a message into the inbox.
func (in *inbox) add(line []byte) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.end != nil {
		return errGone
	}
	if in.size > 0 && in.size+len(line) > 4*in.max {
		return refuse(http.StatusServiceUnavailable, "the agent does not read")
	}
	in.push(line)
	return nil
}

// push is add without the checks; mu is held.
func (in *inbox) push(line []byte) {
	in.lines = append(in.lines, line)
	in.size += len(line)
	signal(in.wake)
}

// addRequest is add for requests, which wait for room.
func (in *inbox) addRequest(ctx context.Context, line []byte) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.end != nil {
		return errGone
	}
	if len(in.waiting) == 0 && in.roomFor(line) {
		in.push(line)
		return nil
	}
	if in.waitSize > 0 && in.waitSize+len(line) > in.max {
		return refuse(http.StatusServiceUnavailable, "too many requests wait for the agent")
	}
	a := &arrival{line: line, taken: make(chan struct{})}
	in.waiting = append(in.waiting, a)
	in.waitSize += len(line)
	in.mu.Unlock()
	select {
	case <-a.taken:
	case <-ctx.Done():
	}
	in.mu.Lock()
	if i := slices.Index(in.waiting, a); i >= 0 { // the caller gave up
		in.waiting = slices.Delete(in.waiting, i, i+1)
		in.waitSize -= len(line)
		return refuse(http.StatusServiceUnavailable, "the request was given up")
	}
	if a.line != nil { // the connection ended before it was taken
		return errGone
	}
	return nil
}

// roomFor reports whether there is room for a request; mu is held.
func (in *inbox) roomFor(line []byte) bool {
	return (in.size == 0 || in.size+len(line) <= in.max) && !in.paused
}

// admit moves waiting requests into the inbox while there is room; mu is held.
func (in *inbox) admit() {
	for len(in.waiting) > 0 && in.roomFor(in.waiting[0].line) {
		a := in.waiting[0]
		in.waiting = slices.Delete(in.waiting, 0, 1)
		in.waitSize -= len(a.line)
		in.push(a.line)
		a.line = nil
		close(a.taken)
	}
}

// pause makes requests wait, or admits them again.
func (in *inbox) pause(paused bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.paused = paused; !paused {
		in.admit()
	}
}

// read returns the next message.
func (in *inbox) read(beforeWait func()) ([]byte, error) {
	for {
		line, err := in.take()
		if line != nil || err != nil {
			return line, err
		}
		if beforeWait != nil {
			beforeWait()
		}
		<-in.wake
	}
}

// take removes and returns a message, or nil if there is none.
func (in *inbox) take() ([]byte, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case in.closed != nil:
		return nil, in.closed
	case len(in.lines) > 0:
		line := in.lines[0]
		if in.lines[0] = nil; len(in.lines) == 1 {
			in.lines = nil
		} else {
			in.lines = in.lines[1:]
		}
		in.size -= len(line)
		in.admit()
		return line, nil
	default:
		return nil, in.end
	}
}

// stop ends the input: the agent reads the messages in the inbox and then why, or, if closed is not nil, only closed.
// It returns false if the input has ended before.
func (in *inbox) stop(why, closed error) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed == nil {
		in.closed = closed
	}
	signal(in.wake)
	if in.end != nil {
		return false
	}
	in.end = why
	for _, a := range in.waiting {
		close(a.taken)
	}
	in.waiting, in.waitSize = nil, 0
	return true
}
