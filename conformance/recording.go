// What passed on a connection, kept in memory for tests. Files of it are package recording's.

package conformance

import (
	"bytes"
	"context"
	"slices"
	"sync"
)

// Recording keeps the messages of a connection in their order. Its Add is made for OnMessage of a Tap or
// a Monitor. The zero value is an empty recording. Its methods may be called from several goroutines.
type Recording struct {
	mu       sync.Mutex
	messages []Message
	changed  chan struct{} // closed and replaced by each Add, when somebody waits
}

// Add appends a message. It keeps a copy of the line.
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

// Sent returns what one side has written: its lines, each with its newline.
func (r *Recording) Sent(by Side) []byte {
	var text []byte
	for _, m := range r.Messages() {
		if m.Direction.Sender() == by {
			text = append(append(text, m.Line...), '\n')
		}
	}
	return text
}

// Await waits for a message that matches, the first from the given index on, and returns its index. It
// fails with the context's cause when that ends first.
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
