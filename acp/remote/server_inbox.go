package remote

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/acpgo/sdk/internal/wire"
)

// inbox is the incoming half of an httpLink: POSTs put messages into it, and the agent reads them. The link's mu guards
// it: callers hold it, except those of read.
type inbox struct {
	mu   *sync.Mutex
	max  int           // bytes of requests; the limit for all messages is four times as much
	wake chan struct{} // wakes the agent

	lines    [][]byte
	size     int     // bytes in lines
	waiting  []*turn // requests waiting for room, oldest first
	waitSize int     // their bytes
	paused   bool    // requests must wait, because the agent waits for room in its streams
	end      error   // why nothing follows lines
	closed   error   // why the agent does not even read lines
}

// turn is the place of a request among those that wait.
type turn struct {
	id      wire.ID
	cancels [][]byte      // cancellations of the request, which follow it
	size    int           // bytes of all of them
	wake    chan struct{} // wakes the request when it may no longer have to wait
}

func (in *inbox) add(line []byte) error {
	if in.end != nil {
		return errGone
	}
	if in.size > 0 && in.size+len(line) > 4*in.max {
		return refuse(http.StatusServiceUnavailable, "the agent does not read")
	}
	in.push(line)
	return nil
}

// push is add without the checks.
func (in *inbox) push(line []byte) {
	in.lines = append(in.lines, line)
	in.size += len(line)
	signal(in.wake)
}

// addCancel is add for the cancellation of a request. If the request waits for room, the cancellation follows it.
func (in *inbox) addCancel(id wire.ID, line []byte) error {
	i := slices.IndexFunc(in.waiting, func(t *turn) bool { return t.id == id })
	switch {
	case i < 0:
		return in.add(line)
	case in.waitSize+len(line) > 4*in.max:
		return refuse(http.StatusServiceUnavailable, "the agent does not read")
	}
	t := in.waiting[i]
	t.cancels = append(t.cancels, line)
	t.size += len(line)
	in.waitSize += len(line)
	return nil
}

// addRequest is add for requests, which wait for room, in their order; mu is released while it waits.
func (in *inbox) addRequest(ctx context.Context, id wire.ID, line []byte) error {
	if len(in.waiting) > 0 && in.waitSize+len(line) > in.max {
		return refuse(http.StatusServiceUnavailable, "too many requests wait for the agent")
	}
	own := &turn{id: id, size: len(line), wake: make(chan struct{}, 1)}
	in.waiting = append(in.waiting, own)
	in.waitSize += own.size
	for in.end == nil && ctx.Err() == nil && (in.waiting[0] != own || !in.hasRoom(own.size)) {
		in.mu.Unlock()
		select {
		case <-own.wake:
		case <-ctx.Done():
		}
		in.mu.Lock()
	}
	in.waiting = slices.DeleteFunc(in.waiting, func(t *turn) bool { return t == own })
	in.waitSize -= own.size
	in.changed() // another one may be the first
	switch {
	case in.end != nil:
		return errGone
	case ctx.Err() != nil:
		return refuse(http.StatusServiceUnavailable, "the request was given up")
	}
	in.push(line)
	for _, cancel := range own.cancels {
		in.push(cancel)
	}
	return nil
}

func (in *inbox) hasRoom(size int) bool {
	return (in.size == 0 || in.size+size <= in.max) && !in.paused
}

// changed makes the first of the waiting requests check again whether it must wait.
func (in *inbox) changed() {
	if len(in.waiting) > 0 {
		signal(in.waiting[0].wake)
	}
}

// pause makes requests wait, or admits them again.
func (in *inbox) pause(paused bool) {
	in.paused = paused
	in.changed()
}

func (in *inbox) read(beforeWait func()) ([]byte, error) {
	for {
		in.mu.Lock()
		line, err := in.take()
		in.mu.Unlock()
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
		in.changed()
		return line, nil
	default:
		return nil, in.end
	}
}

// stop ends the input: the agent reads the messages in the inbox and then why, or, if closed is not nil, only closed.
// It returns false if the input has ended before.
func (in *inbox) stop(why, closed error) bool {
	if in.closed == nil {
		in.closed = closed
	}
	signal(in.wake)
	if in.end != nil {
		return false
	}
	in.end = why
	in.changed()
	return true
}
