package engine

import (
	"context"
	"sync"
	"sync/atomic"
)

// loops is the state shared by all loops of a connection over updates.
type loops struct {
	limits  *queueLimits
	calls   *callsInFlight
	closing <-chan struct{} // closed when the connection ends
	bytes   atomic.Int64    // size of the updates waiting for loops; see flow.makeRoom
}

// flow counts the size of the updates that wait for the loop over a turn's updates, and the calls that the loop's body
// waits for. As a holder, it is the body.
type flow struct {
	loops   *loops
	starter holder // the holder inside which the turn was started, or nil
	more    bell   // wakes the loop
	room    bell   // wakes the goroutine that delivers

	mu       flowLock
	bytes    int
	calls    int  // number of calls that the body waits for
	discard  bool // further updates will not be read
	ended    bool // no more updates will be delivered
	overflow bool // the loop was ended because it held up calls
	once     sync.Once
}

func (w *flow) init(l *loops, starter holder) {
	w.loops, w.starter, w.more, w.room = l, starter, newBell(), newBell()
}

func (w *flow) beginWait() bool {
	w.mu.Lock()
	w.calls++
	w.mu.Unlock()
	w.room.ring()
	return true
}

func (w *flow) endWait() {
	w.mu.Lock()
	w.calls--
	w.mu.Unlock()
	w.room.ring()
}

func (w *flow) outer() holder { return w.starter }

// throwAway records that further updates will not be read; mu is held. The caller must then call taken without it.
func (w *flow) throwAway() {
	w.count(-w.bytes)
	w.discard = true
	w.more.ring()
}

// end records that no more updates will be delivered. From then on the waiting updates belong to the caller, as a
// result does.
func (w *flow) end() {
	w.mu.Lock()
	w.loops.bytes.Add(-w.beyond(w.bytes))
	w.ended = true
	w.mu.Unlock()
	w.more.ring()
	w.taken()
}

// beyond returns how much of the updates waiting for a loop counts toward the total of all loops. A small amount does
// not count, so that loops that keep up need not synchronize with each other.
func (w *flow) beyond(bytes int) int64 { return int64(max(0, bytes-w.loops.limits.bytes/64)) }

// count changes the size of the waiting updates; mu is held.
func (w *flow) count(change int) {
	before := w.bytes
	w.bytes += change
	if d := w.beyond(w.bytes) - w.beyond(before); d != 0 && !w.ended {
		w.loops.bytes.Add(d)
	}
}

// taken makes the goroutines that deliver to this loop, or to others, check again.
func (w *flow) taken() {
	w.room.ring()
	w.loops.calls.ringStalled()
}

// await waits for more updates. Inside a notification handler, or another loop, this counts as a call.
func (w *flow) await(cancel context.CancelCauseFunc) {
	if w.starter != nil {
		calls := w.loops.calls
		defer calls.end(calls.beginIn(w.starter, cancel))
	}
	<-w.more
}

// makeRoom waits until the loop may be given size more bytes, and counts them; mu is held, but released while it waits.
// While too much is waiting to be read, the session's worker waits here, and with it the session and then the reader.
// While the loop's body, or any other caller, waits for a call, it does not wait, up to the limit: there the body's
// calls fail. If the body has made none, it may be waiting for the calls of others, which cannot be known, and the loop
// ends.
func (w *flow) makeRoom(size int) {
	l, stalled, thrown := w.loops, false, false
	for !w.discard && !w.ended {
		total := l.bytes.Load()
		full, atLimit := w.full(size, total)
		calls, waits := w.calls > 0, l.calls.waits.Load() > 0
		if !full || !atLimit && (calls || waits) {
			more := w.beyond(w.bytes+size) - w.beyond(w.bytes)
			if more == 0 || l.bytes.CompareAndSwap(total, total+more) {
				w.bytes += size
				break
			}
			continue // another loop has received something
		}
		if atLimit && !calls && waits {
			w.overflow, thrown = true, true
			w.throwAway()
			break
		}
		w.mu.Unlock()
		switch {
		case !stalled:
			// From now on, callers that begin to wait or make room ring the bell; those that did so before are seen by
			// checking again.
			stalled = true
			l.calls.stall(w.room, true)
			w.room.ring()
		case atLimit && calls: // those of another connection continue
			l.calls.overflow(func(h holder) bool { return h == w })
		}
		select {
		case <-w.room:
			w.mu.Lock()
		case <-l.closing:
			w.mu.Lock()
			w.throwAway() // a later update must not be delivered without this one
			thrown = true
		}
	}
	if stalled || thrown {
		w.mu.Unlock()
		if stalled {
			l.calls.stall(w.room, false)
		}
		if thrown {
			w.taken()
		}
		w.mu.Lock()
	}
}

// full reports whether the loop blocks the goroutine that delivers while no one waits for a call, and whether it does
// even while someone does. All loops together may have four times as much as one, or twice the limit; then each may
// have as much as is left for others, so that loops that are being read find room. An update that is alone always has
// room. mu is held.
func (w *flow) full(size int, total int64) (full, atLimit bool) {
	limits := w.loops.limits
	if own := w.bytes + size; w.bytes > 0 {
		full, atLimit = own > limits.bytes, own > limits.most
	}
	if more := w.beyond(w.bytes+size) - w.beyond(w.bytes); more > 0 && total > 0 {
		full = full || total+more > int64(loadFactor*limits.bytes)
		atLimit = atLimit || total+w.beyond(w.bytes+size) > int64(2*limits.most)
	}
	return full, full && atLimit
}
