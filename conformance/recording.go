package conformance

import (
	"bytes"
	"context"
	"slices"
	"sync"
)

// Recording keeps the messages of a connection in memory, in order. Its Add method can be used as OnMessage of a Tap or
// a Monitor. The zero value is an empty recording. Its methods are safe for concurrent use.
type Recording struct {
	mu       sync.Mutex
	messages []Message
	changed  chan struct{} // closed and replaced by each Add, if an Await is waiting
}

// Add appends a message, with a copy of its line.
func (r *Recording) Add(m Message) {
	m.Line = bytes.Clone(m.Line)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages = append(r.messages, m)
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// Messages returns all messages so far. The lines must not be changed.
func (r *Recording) Messages() []Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.messages)
}

// Sent returns the lines that one side has written, each with a newline.
func (r *Recording) Sent(by Side) []byte {
	var text []byte
	for _, m := range r.Messages() {
		if m.Direction.Sender() == by {
			text = append(append(text, m.Line...), '\n')
		}
	}
	return text
}

// Await waits for the first message at or after the index from that matches, and returns its index. If ctx ends first,
// it returns the cause of ctx.
func (r *Recording) Await(ctx context.Context, from int, match func(Message) bool) (int, error) {
	for i := from; ; {
		r.mu.Lock()
		if r.changed == nil {
			r.changed = make(chan struct{})
		}
		changed, next := r.changed, slices.Clone(r.messages[min(i, len(r.messages)):])
		r.mu.Unlock()
		if at := slices.IndexFunc(next, match); at >= 0 {
			return i + at, nil
		}
		i += len(next)
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}
