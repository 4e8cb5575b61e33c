package conformance

import (
	"bytes"
	"slices"
	"sync"
)

// Recording keeps the messages of a connection in memory, in order. Its Add method can be used as OnMessage of a Tap or
// a Monitor. The zero value is an empty recording. Its methods are safe for concurrent use.
type Recording struct {
	mu       sync.Mutex
	messages []Message
}

// Add appends a message, with a copy of its line.
func (r *Recording) Add(m Message) {
	m.Line = bytes.Clone(m.Line)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages = append(r.messages, m)
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
