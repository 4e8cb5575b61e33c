package inspect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"sync"
)

// eventLog is the events for the pages, one JSON document a line, in a file: pages read at their own pace, and memory
// does not grow with the number of events. A position in the log is an offset in the file.
type eventLog struct {
	file *os.File

	mu      sync.Mutex
	written int64  // bytes in the file
	buf     []byte // bytes that follow them
	changed chan struct{}
	err     error
}

// bufferedEvents is the number of bytes that are gathered for a write.
const bufferedEvents = 64 << 10

func newEventLog(file *os.File) *eventLog { return &eventLog{file: file, changed: make(chan struct{})} }

// add appends an event.
func (l *eventLog) add(event any) {
	line, err := json.Marshal(event)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.fail(err)
		return
	}
	l.buf = append(append(l.buf, line...), '\n')
	if len(l.buf) >= bufferedEvents {
		l.flush()
	}
	l.wake()
}

// wake tells those who wait that there may be something new.
func (l *eventLog) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// touch wakes those who wait, although the log has not grown: a state has changed.
func (l *eventLog) touch() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wake()
}

// fail keeps the first error.
func (l *eventLog) fail(err error) {
	if l.err == nil {
		l.err = fmt.Errorf("the list of events: %w", err)
	}
}

func (l *eventLog) flush() {
	n, err := l.file.Write(l.buf)
	l.written += int64(n)
	l.buf = l.buf[:copy(l.buf, l.buf[n:])]
	if err != nil {
		l.fail(err)
	}
}

// next returns a channel that is closed at the next change.
func (l *eventLog) next() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// read returns events from a position, of about size bytes, and the position after them. There is always at least one,
// unless the position is the end.
func (l *eventLog) read(from int64, size int) (events []json.RawMessage, to int64, end bool, err error) {
	l.mu.Lock()
	if len(l.buf) > 0 {
		l.flush()
	}
	last, err := l.written, l.err
	l.mu.Unlock()
	if err != nil {
		return nil, from, false, err
	}
	if from < 0 || from > last {
		return nil, from, false, fmt.Errorf("there is no position %d", from)
	}
	events = []json.RawMessage{}
	for ; ; size *= 2 {
		text := make([]byte, min(int64(size), last-from))
		if _, err := l.file.ReadAt(text, from); err != nil {
			return nil, from, false, err
		}
		whole := bytes.LastIndexByte(text, '\n') + 1
		if whole == 0 && len(text) == size {
			continue // the event is longer
		}
		for line := range bytes.Lines(text[:whole]) {
			events = append(events, line[:len(line)-1])
		}
		to = from + int64(whole)
		return events, to, to == last, nil
	}
}
