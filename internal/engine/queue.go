package engine

import (
	"context"
	"slices"
	"sync/atomic"
)

// item is one notification in a queue.
type item struct {
	route    *Route
	params   any
	handling *notificationContext
	size     int // bytes on the wire, plus itemSize
}

// itemSize is how many bytes a notification in a queue counts in addition to its parameters, which may be left out.
const itemSize = 64

// queue keeps the notifications of one session in order, up to a number of bytes. It starts no goroutine and does not
// wait: push returns what its caller must do, and a worker takes the items one at a time.
type queue struct {
	load *load

	mu      queueLock
	items   []item // queued
	batch   []item // taken by the worker; those before next have been handled, or are being handled
	next    int
	bytes   int    // size of what has not been handled
	queued  uint64 // notifications ever queued
	handled uint64
	running bool // a worker is running
	dropped bool // the connection is closing: nothing more is handled
	gone    bool // it is no longer the queue of its session
	full    bool // the reader waits for room
	nested  int  // calls in flight that a handler of this session waits for
	waiters []waiter
}

// waiter waits until position notifications have been handled.
type waiter struct {
	position  uint64
	ready     chan struct{}
	skippable bool // released early when a notification handler of this session makes a call
}

// queueLimits bounds each queue, and all queues together.
type queueLimits struct {
	bytes    int // what a queue may hold
	most     int // what it may hold while its handler waits for a call
	sessions int // how many may have a worker
}

// loadFactor is how many full queues a connection may hold.
const loadFactor = 4

// load is what all queues of a connection hold together, which is also bounded, because the peer chooses the number of
// sessions.
type load struct {
	limits queueLimits
	room   bell // wakes the reader

	_       cacheLine
	bytes   atomic.Int64 // queued
	workers atomic.Int64
	nested  atomic.Int64 // calls that notification handlers wait for
	waiting atomic.Bool  // the reader waits, or is about to wait
	_       cacheLine
}

// cacheLine separates fields that several goroutines change from those that only one changes.
type cacheLine [64]byte

// fullFor reports whether notifications of the given size may not be queued, and whether that is so even though
// handlers wait for calls. Then as many sessions may have some as the limit has room for their workers.
func (l *load) fullFor(size int) (full, overflow bool) {
	held, nested := l.bytes.Load(), l.nested.Load() > 0
	sum := held + int64(size)
	workers := l.workers.Load()
	full = held > 0 && sum > int64(loadFactor*l.limits.bytes) || workers >= int64(l.limits.sessions)
	overflow = full && nested &&
		(sum > int64(l.limits.most) || workers >= int64(max(l.limits.sessions, l.limits.most/taskSize)))
	return full && (!nested || overflow), overflow
}

// none reports whether all notifications that the reader has queued have been handled.
func (l *load) none() bool { return l.bytes.Load() == 0 }

// hold changes what is held.
func (l *load) hold(bytes, workers, nested int) {
	l.bytes.Add(int64(bytes))
	if workers != 0 || nested != 0 {
		l.workers.Add(int64(workers))
		l.nested.Add(int64(nested))
	}
	if l.waiting.Load() {
		l.room.ring()
	}
}

// pushed is the result of push.
type pushed uint8

const (
	pushQueued   pushed = iota // queued, or dropped because the connection is closing
	pushStarts                 // queued, and the caller must start the worker
	pushFull                   // not queued; the caller tries again when load.room rings
	pushOverflow               // likewise, but first the caller ends the calls that the queue's handler waits for
	pushGone                   // the session was forgotten: the caller looks it up again
)

// push queues notifications, which the load already counts. If the queue is full, the reader waits; but if the queue's
// own handler waits for a call, which only the reader can end, the queue grows instead, up to its limit, at which those
// calls fail.
func (q *queue) push(items []item, size int) pushed {
	q.mu.Lock()
	defer q.mu.Unlock()
	limits := &q.load.limits
	if sum := q.bytes + size; q.bytes > 0 && sum > limits.bytes && !q.dropped && (q.nested == 0 || sum > limits.most) {
		q.full = true
		if q.nested > 0 {
			return pushOverflow
		}
		return pushFull
	}
	if q.gone {
		return pushGone
	}
	q.queued += uint64(len(items))
	if q.dropped {
		q.handled = q.queued
		q.load.hold(-size, 0, 0)
		return pushQueued
	}
	q.items = append(q.items, items...)
	q.bytes += size
	if q.running {
		return pushQueued
	}
	q.running = true
	q.load.hold(0, 1, 0)
	return pushStarts
}

// take records that the notification in it, if any, has been handled, and takes the next one. If there is none, it
// returns false: the worker must end.
func (q *queue) take(it *item) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if it.handling != nil {
		q.doneLocked(it)
	}
	if q.next == len(q.batch) {
		q.batch, q.items, q.next = q.items, q.batch[:0], 0
	}
	if len(q.batch) == 0 || q.dropped {
		q.running = false
		q.load.hold(0, -1, 0)
		return false
	}
	*it = q.batch[q.next]
	q.batch[q.next] = item{}
	q.next++
	return true
}

// done records that a notification has been handled.
func (q *queue) done(it *item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.doneLocked(it)
}

func (q *queue) doneLocked(it *item) {
	h, freed := it.handling, 0
	h.returned = true
	q.nested -= h.calls
	if !q.dropped {
		freed = it.size
		q.bytes -= it.size
		q.handled++
		q.advanced()
	}
	q.load.hold(-freed, 0, -h.calls)
}

// advanced wakes the waiters for the notifications handled so far; mu is held.
func (q *queue) advanced() {
	n := 0
	for n < len(q.waiters) && q.waiters[n].position <= q.handled {
		close(q.waiters[n].ready)
		n++
	}
	q.waiters = q.waiters[n:]
	q.changed()
}

// changed wakes the reader if it waits for room in the queue; mu is held.
func (q *queue) changed() {
	if q.full {
		q.full = false
		q.load.room.ring()
	}
}

// current returns the position of the notification that is being handled.
func (q *queue) current() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.handled + 1
}

// position returns how many notifications have been queued so far.
func (q *queue) position() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.queued
}

// unhandled returns position, and whether some of these notifications have not been handled yet.
func (q *queue) unhandled() (position uint64, some bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.queued, q.handled != q.queued
}

var closedChan = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// reached returns a channel that is closed when position notifications have been handled. A request of the peer, and
// the calls of its handler, are skippable: they are released early when a notification handler waits for a call,
// because the peer may need the answer to the request before it can answer that call.
func (q *queue) reached(position uint64, skippable bool) <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.handled >= position || skippable && q.nested > 0 {
		return closedChan
	}
	w := waiter{position, make(chan struct{}), skippable}
	// Positions are taken in the order of the wire, but waited for in any order.
	i := len(q.waiters)
	for i > 0 && q.waiters[i-1].position > position {
		i--
	}
	q.waiters = slices.Insert(q.waiters, i, w)
	return w.ready
}

// drop discards what is queued.
func (q *queue) drop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dropped = true
	q.load.hold(-q.bytes, 0, 0)
	q.items, q.batch, q.next, q.bytes = nil, nil, 0, 0
	q.handled = q.queued
	q.advanced()
}

// abandon drops a queue whose worker can no longer run.
func (q *queue) abandon() {
	q.drop()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running = false
	q.load.hold(0, -1, 0)
}

// retire ends a queue that is empty and has no worker, and reports whether it did.
func (q *queue) retire() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.gone || q.running || len(q.items) > 0 {
		return false
	}
	q.gone = true
	q.items, q.batch = nil, nil // the connection may still refer to the session
	return true
}

// notificationContext is one run of a notification handler, and its context.
type notificationContext struct {
	context.Context
	queue *queue

	// Guarded by queue.mu.
	calls    int  // that the handler waits for
	returned bool // the handler has returned
}

// Value returns h itself under holderKey.
func (h *notificationContext) Value(key any) any {
	if key == (holderKey{}) {
		return h
	}
	return h.Context.Value(key)
}

// beginWait implements holder. Skippable waiters are released.
func (h *notificationContext) beginWait() bool {
	q := h.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if h.returned {
		return false
	}
	h.calls++
	q.nested++
	q.load.hold(0, 0, 1)
	q.waiters = slices.DeleteFunc(q.waiters, func(w waiter) bool {
		if w.skippable {
			close(w.ready)
		}
		return w.skippable
	})
	q.changed()
	return true
}

func (h *notificationContext) endWait() {
	q := h.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if !h.returned {
		h.calls--
		q.nested--
		q.load.hold(0, 0, -1)
	}
}

func (*notificationContext) outer() holder { return nil }

func isHandling(h holder) bool {
	_, ok := h.(*notificationContext)
	return ok
}

// insideHandler reports whether ctx belongs to a notification handler that has not returned.
func insideHandler(ctx context.Context) bool {
	for h := holderOf(ctx); h != nil; h = h.outer() {
		if h, ok := h.(*notificationContext); ok {
			h.queue.mu.Lock()
			defer h.queue.mu.Unlock()
			return !h.returned
		}
	}
	return false
}
