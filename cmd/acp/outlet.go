package main

import (
	"context"
	"fmt"
	"io"
	"sync"
)

// maxQueued is the number of queued bytes above which write blocks.
const maxQueued = 16 << 20

// outlet writes to standard output and standard error in the order of the calls of write, in a goroutine of its own.
// write blocks only while more than maxQueued bytes are queued, and never after release.
type outlet struct {
	stdout, stderr io.Writer
	failed         func(error) // called once when standard output cannot be written

	mu       sync.Mutex
	changed  *sync.Cond
	queue    []piece
	queued   int
	err      error // of standard output
	released bool
	ended    bool
	asks     bool    // a question waits
	both     bool    // and standard output is on its terminal
	waiting  []piece // to be written after it
	size     int     // of waiting
	done     chan struct{}
}

// piece is output for one of the two files.
type piece struct {
	toStderr bool
	text     []byte
}

func newOutlet(stdout, stderr io.Writer, failed func(error)) *outlet {
	o := &outlet{stdout: stdout, stderr: stderr, failed: failed, done: make(chan struct{})}
	o.changed = sync.NewCond(&o.mu)
	go o.run()
	return o
}

// write queues output. After release, output that finds no room is dropped.
func (o *outlet) write(toStderr bool, text []byte) {
	if len(text) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.asks && (toStderr || o.both) {
		if o.size += len(text); o.size <= maxQueued {
			o.waiting = append(o.waiting, piece{toStderr, append([]byte(nil), text...)})
		}
		return
	}
	for o.queued > maxQueued && !o.released && (o.err == nil || toStderr) {
		o.changed.Wait()
	}
	if o.queued > maxQueued || o.ended || o.err != nil && !toStderr {
		return
	}
	o.put(toStderr, text)
}

// put adds to the queue; mu must be held.
func (o *outlet) put(toStderr bool, text []byte) {
	if n := len(o.queue); n > 0 && o.queue[n-1].toStderr == toStderr {
		o.queue[n-1].text = append(o.queue[n-1].text, text...)
	} else {
		o.queue = append(o.queue, piece{toStderr, append([]byte(nil), text...)})
	}
	o.queued += len(text)
	o.changed.Broadcast()
}

// ask writes a part of a question to standard error. From then until answered, other output is held, as far as it would
// appear on the terminal, where it could be mistaken for a part of the question; both says that standard output would.
func (o *outlet) ask(text string, both bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asks, o.both = true, both
	if !o.ended {
		o.put(true, []byte(text))
	}
}

// answered writes what was held.
func (o *outlet) answered() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range o.waiting {
		if !o.ended {
			o.put(p.toStderr, p.text)
		}
	}
	if o.size > maxQueued && !o.ended {
		o.put(true, fmt.Appendf(nil, "acp: while the question waited, %d bytes arrived, of which some were dropped\n",
			o.size))
	}
	o.asks, o.waiting, o.size = false, nil, 0
}

// run writes what is queued until the outlet is finished.
func (o *outlet) run() {
	defer close(o.done)
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		for len(o.queue) == 0 {
			if o.ended {
				return
			}
			o.changed.Wait()
		}
		queue := o.queue
		o.queue = nil
		for _, p := range queue {
			if p.toStderr || o.err == nil {
				o.mu.Unlock()
				err := o.print(p)
				o.mu.Lock()
				if err != nil && o.err == nil {
					o.err = err
				}
			}
			o.queued -= len(p.text)
			o.changed.Broadcast()
		}
	}
}

// print writes a piece. It returns only errors of standard output, because there is no place to report those of
// standard error.
func (o *outlet) print(p piece) error {
	if p.toStderr {
		_, _ = o.stderr.Write(p.text)
		return nil
	}
	_, err := o.stdout.Write(p.text)
	if err != nil {
		o.failed(err)
	}
	return err
}

// release ends the waiting of all calls of write.
func (o *outlet) release() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.released = true
	o.changed.Broadcast()
}

// finish waits until everything is written or ctx ends.
func (o *outlet) finish(ctx context.Context) {
	o.mu.Lock()
	o.ended = true
	o.changed.Broadcast()
	o.mu.Unlock()
	select {
	case <-o.done:
	case <-ctx.Done(): // the goroutine ends with the program
	}
}

// failure returns why standard output could not be written, or nil.
func (o *outlet) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
