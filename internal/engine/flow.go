package engine

import (
	"context"
	"sync"
	"sync/atomic"
)

// loops is what all loops of a connection over updates share.
type loops struct {
	limits  *queueLimits
	calls   *callsInFlight
	closing <-chan struct{} // closed when the connection ends
	bytes   atomic.Int64    // that wait for loops; see flow.makeRoom
}

// flow is what waits for the loop over a turn's updates, by its size, and what the loop's body waits for. It is the
// body as a holder.
type flow struct {
	loops   *loops
	starter holder // in which the turn was started, or nil
	more    bell   // for the loop
	room    bell   // for who delivers

	mu       flowLock
	bytes    int
	calls    int  // that the body waits for
	discard  bool // nobody will read what comes
	ended    bool // nothing more comes
	overflow bool // the loop was ended, because it held up calls
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

// throwAway notes that nobody will read what comes; mu is held. taken is to be called without it.
func (w *flow) throwAway() {
	w.count(-w.bytes)
	w.discard = true
	w.more.ring()
}

// end notes that nothing more comes. What waits still is the owner's from then on, as a result is.
func (w *flow) end() {
	w.mu.Lock()
	w.loops.bytes.Add(-w.beyond(w.bytes))
	w.ended = true
	w.mu.Unlock()
	w.more.ring()
	w.taken()
}

// beyond is how much of what waits for a loop counts for all loops together. A little does not, so that loops that
// keep up need not tell each other.
func (w *flow) beyond(bytes int) int64 { return int64(max(0, bytes-w.loops.limits.bytes/64)) }

// count changes what waits for the loop; mu is held.
func (w *flow) count(change int) {
	before := w.bytes
	w.bytes += change
	if d := w.beyond(w.bytes) - w.beyond(before); d != 0 && !w.ended {
		w.loops.bytes.Add(d)
	}
}

// taken has those look again that deliver to this loop, or to others.
func (w *flow) taken() {
	w.room.ring()
	w.loops.calls.ringStalled()
}

// await waits for more. In a handler of notifications, or another loop, that is a call.
func (w *flow) await(cancel context.CancelCauseFunc) {
	if w.starter != nil {
		calls := w.loops.calls
		defer calls.end(calls.beginIn(w.starter, cancel))
	}
	<-w.more
}

// makeRoom waits until the loop may be given so much more, and counts it; mu is held, but not while it waits. While too
// much waits to be read, the session's worker waits here, and with it the session and then the reader. While the loop's
// body, or anybody, waits for a call, it does not, up to the limit: there the body's calls fail, and if it has made none,
// it cannot be told whether the body waits for those of others, and the loop ends.
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
			continue // another loop was given something
		}
		if atLimit && !calls && waits {
			w.overflow, thrown = true, true
			w.throwAway()
			break
		}
		w.mu.Unlock()
		switch {
		case !stalled:
			// Who waits, or makes room, from now on rings; who has already is seen when it is looked again.
			stalled = true
			l.calls.stall(w.room, true)
			w.room.ring()
		case atLimit && calls: // those of another connection go on
			l.calls.overflow(func(h holder) bool { return h == w })
		}
		select {
		case <-w.room:
			w.mu.Lock()
		case <-l.closing:
			w.mu.Lock()
			w.throwAway() // a later one must not come without this one
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

// full reports whether the loop holds up who delivers to it while nobody waits for a call, and whether also while
// somebody does. All loops together have four times as much as one, or twice; there each may have as much as is left for
// others, so that those which are read find room. What is alone always has it. mu is held.
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
