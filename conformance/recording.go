// What passed on a connection, kept: in memory for tests, and as a file.

package conformance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"unicode/utf8"
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

// entry is a line of a recording's file.
type entry struct {
	From string `json:"from"`
	// Raw is the message's line, or Bytes where that is not UTF-8.
	Raw   *string `json:"raw,omitempty"`
	Bytes []byte  `json:"bytes,omitempty"`
}

// WriteMessage writes a message as one line of a recording's file, in the form that WriteTo writes and ReadRecording
// reads:
//
//	{"from":"client","raw":"{\"jsonrpc\":\"2.0\",…}"}
//
// A line that is not UTF-8 is in the member bytes instead, in base64. The line is written in one piece;
// the findings are not written.
func WriteMessage(w io.Writer, m Message) error {
	e := entry{From: m.Direction.Sender().String()}
	if line := bytes.TrimSuffix(m.Line, []byte("\n")); utf8.Valid(line) {
		text := string(line)
		e.Raw = &text
	} else {
		e.Bytes = line
	}
	text, err := json.Marshal(e)
	if err == nil {
		_, err = w.Write(append(text, '\n'))
	}
	return err
}

// WriteTo writes the recording, a line for each message; see WriteMessage.
func (r *Recording) WriteTo(w io.Writer) (n int64, err error) {
	counted := &counter{w: w}
	for _, m := range r.Messages() {
		if err := WriteMessage(counted, m); err != nil {
			return counted.n, err
		}
	}
	return counted.n, nil
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// ReadRecording reads a recording's file; see WriteMessage. Objects without the member from, such as one
// about the recording itself, and members of other names are skipped. The messages have no findings.
func ReadRecording(from io.Reader) (*Recording, error) {
	r := &Recording{}
	in := bufio.NewReader(from)
	for number := 1; ; number++ {
		text, err := in.ReadBytes('\n')
		if len(bytes.TrimSpace(text)) > 0 {
			var e entry
			if err := json.Unmarshal(text, &e); err != nil {
				return nil, fmt.Errorf("conformance: line %d of the recording: %w", number, err)
			}
			m := Message{Line: e.Bytes}
			if e.Raw != nil {
				m.Line = []byte(*e.Raw)
			}
			switch e.From {
			case Client.String():
				m.Direction = ToAgent
			case Agent.String():
				m.Direction = ToClient
			case "":
				continue
			default:
				return nil, fmt.Errorf("conformance: line %d of the recording: from %q, which is neither client nor agent", number, clip(e.From))
			}
			r.messages = append(r.messages, m)
		}
		if errors.Is(err, io.EOF) {
			return r, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
