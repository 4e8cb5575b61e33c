package report

import (
	"sync"

	"github.com/acpgo/sdk/conformance/recording"
)

// queue holds the entries that were read but not yet judged. The judge takes all of them at once, so that input from a
// pipe is judged immediately, and a file in large batches.
type queue struct {
	mu      sync.Mutex
	changed sync.Cond
	filling *batch
	err     error // from reading, which has ended
	stopped bool  // no more entries are wanted
	ended   chan struct{}
}

// batch is a number of entries with their lines.
type batch struct {
	entries []recording.Entry
	text    []byte
}

// The bounds of a batch. One entry may be larger than maxBatchBytes.
const (
	maxBatch      = 1024
	maxBatchBytes = 1 << 20
)

func newQueue() *queue {
	q := &queue{filling: &batch{}, ended: make(chan struct{})}
	q.changed.L = &q.mu
	return q
}

// fill reads until the end or until stop is called.
func (q *queue) fill(reader *recording.Reader) {
	defer close(q.ended)
	for {
		e, err := reader.Read()
		if !q.put(e, err) {
			return
		}
	}
}

// put adds an entry, or the error that ends the reading, and reports whether more is wanted.
func (q *queue) put(e *recording.Entry, err error) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.changed.Signal()
	if err != nil {
		q.err = err
		return false
	}
	for !q.stopped && (len(q.filling.entries) >= maxBatch || len(q.filling.text) >= maxBatchBytes) {
		q.changed.Wait()
	}
	b := q.filling
	start := len(b.text)
	b.text = append(b.text, e.Line...)
	copied := *e
	copied.Line = b.text[start:len(b.text):len(b.text)]
	b.entries = append(b.entries, copied)
	return !q.stopped
}

// take waits for entries and returns them. It reuses the batch used, which may be nil. The error is the one that ended
// the reading.
func (q *queue) take(used *batch) (*batch, error) {
	if used == nil || cap(used.text) > 2*maxBatchBytes {
		used = &batch{}
	}
	clear(used.entries)
	used.entries, used.text = used.entries[:0], used.text[:0]
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.filling.entries) == 0 {
		if q.err != nil {
			return nil, q.err
		}
		q.changed.Wait()
	}
	b := q.filling
	q.filling = used
	q.changed.Signal()
	return b, nil
}

// stop ends the reading.
func (q *queue) stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stopped = true
	q.changed.Signal()
}
