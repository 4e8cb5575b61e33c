package engine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// bell wakes one goroutine that looks again for what it waits for. It may ring for nothing.
type bell chan struct{}

func newBell() bell { return make(bell, 1) }

func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// A holder is what keeps notifications from being handled while it runs: a handler of one, or the body of a loop over
// the updates of a turn. Only the reader can end a call that a holder waits for, so while there is one the reader must
// not wait for the holder: more is kept for it, up to a limit, at which the call fails. Calls made with the context
// that a holder was given are its calls.
type holder interface {
	// beginWait notes that the holder waits for one call more, and reports false when it has returned; Conn.mu is held.
	beginWait() bool
	// endWait notes that it does not any more.
	endWait()
	// outer is the holder that this one runs in, or nil.
	outer() holder
}

// holderKey is the context key under which a holder is found.
type holderKey struct{}

func holderOf(ctx context.Context) holder {
	h, _ := ctx.Value(holderKey{}).(holder)
	return h
}

// nestedCall is a call that holders wait for.
type nestedCall struct {
	cancel  context.CancelCauseFunc
	holders []holder
}

// callsInFlight are the calls that wait for the peer.
type callsInFlight struct {
	waits   atomic.Int64             // callers that wait for the peer
	nested  map[*nestedCall]struct{} // those that a holder waits for; guarded by Conn.mu
	stalled map[*flow]struct{}       // loops that hold up the reader; guarded by Conn.mu
	stalls  atomic.Int32             // how many these are; spares callers the lock
}

// beginCall notes that the caller waits for the peer. It must wait with the context that is returned, and then call endCall.
func (c *Conn) beginCall(ctx context.Context) (context.Context, *nestedCall) {
	h := holderOf(ctx)
	if h == nil {
		return ctx, c.beginCallIn(nil, nil)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, c.beginCallIn(h, cancel)
}

// beginCallIn is beginCall for a caller within a holder, or nil. cancel ends its waiting.
func (c *Conn) beginCallIn(h holder, cancel context.CancelCauseFunc) *nestedCall {
	c.calls.waits.Add(1)
	c.ringStalled()
	if h == nil {
		return nil
	}
	f := &nestedCall{cancel: cancel}
	// Under the lock, so that whoever finds that a holder waits for a call finds the call.
	c.mu.Lock()
	defer c.mu.Unlock()
	for ; h != nil; h = h.outer() {
		if h.beginWait() {
			f.holders = append(f.holders, h)
		}
	}
	c.calls.nested[f] = struct{}{}
	return f
}

// ringStalled has the loops that hold up the reader look again.
func (c *Conn) ringStalled() {
	if c.calls.stalls.Load() == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.calls.stalled {
		w.room.ring()
	}
}

// endCall is called when the caller no longer waits.
func (c *Conn) endCall(f *nestedCall) {
	c.calls.waits.Add(-1)
	if f == nil {
		return
	}
	c.mu.Lock()
	delete(c.calls.nested, f)
	c.mu.Unlock()
	f.cancel(context.Canceled)
	for _, h := range f.holders {
		h.endWait()
	}
}

// overflow ends the calls of the holders that match with ErrOverflow.
func (c *Conn) overflow(match func(holder) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for f := range c.calls.nested {
		if slices.ContainsFunc(f.holders, match) {
			f.cancel(ErrOverflow)
		}
	}
}

// flow is what waits for the loop over a turn's updates, by its size, and what the loop's body waits for. It is the
// body as a holder.
type flow struct {
	conn    *Conn
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

func (w *flow) init(c *Conn, starter holder) {
	w.conn, w.starter, w.more, w.room = c, starter, newBell(), newBell()
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
	w.conn.load.loops.Add(-w.beyond(w.bytes))
	w.ended = true
	w.mu.Unlock()
	w.more.ring()
	w.taken()
}

// beyond is how much of what waits for a loop counts for all loops together. A little does not, so that loops that
// keep up need not tell each other.
func (w *flow) beyond(bytes int) int64 { return int64(max(0, bytes-w.conn.opts.QueueBytes/64)) }

// count changes what waits for the loop; mu is held.
func (w *flow) count(change int) {
	before := w.bytes
	w.bytes += change
	if d := w.beyond(w.bytes) - w.beyond(before); d != 0 && !w.ended {
		w.conn.load.loops.Add(d)
	}
}

// taken has those look again that deliver to this loop, or to others.
func (w *flow) taken() {
	w.room.ring()
	w.conn.ringStalled()
}

// await waits for more. In a handler of notifications, or another loop, that is a call.
func (w *flow) await(cancel context.CancelCauseFunc) {
	if w.starter != nil {
		defer w.conn.endCall(w.conn.beginCallIn(w.starter, cancel))
	}
	<-w.more
}

// makeRoom waits until the loop may be given so much more, and counts it; mu is held, but not while it waits. While too
// much waits to be read, the session's worker waits here, and with it the session and then the reader. While the loop's
// body, or anybody, waits for a call, it does not, up to the limit: there the body's calls fail, and if it has made none,
// it cannot be told whether the body waits for those of others, and the loop ends.
func (w *flow) makeRoom(size int) {
	c, stalled, thrown := w.conn, false, false
	for !w.discard && !w.ended {
		total := c.load.loops.Load()
		full, atLimit := w.full(size, total)
		calls, waits := w.calls > 0, c.calls.waits.Load() > 0
		if !full || !atLimit && (calls || waits) {
			more := w.beyond(w.bytes+size) - w.beyond(w.bytes)
			if more == 0 || c.load.loops.CompareAndSwap(total, total+more) {
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
			c.stall(w, true)
			w.room.ring()
		case atLimit && calls: // those of another connection go on
			c.overflow(func(h holder) bool { return h == w })
		}
		select {
		case <-w.room:
			w.mu.Lock()
		case <-c.base.Done():
			w.mu.Lock()
			w.throwAway() // a later one must not come without this one
			thrown = true
		}
	}
	if stalled || thrown {
		w.mu.Unlock()
		if stalled {
			c.stall(w, false)
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
	opts := &w.conn.opts
	if own := w.bytes + size; w.bytes > 0 {
		full, atLimit = own > opts.QueueBytes, own > opts.QueueLimit
	}
	if more := w.beyond(w.bytes+size) - w.beyond(w.bytes); more > 0 && total > 0 {
		full = full || total+more > int64(loadFactor*opts.QueueBytes)
		atLimit = atLimit || total+w.beyond(w.bytes+size) > int64(2*opts.QueueLimit)
	}
	return full, full && atLimit
}

// stall notes that a loop holds up the reader, or does not any more.
func (c *Conn) stall(w *flow, stalled bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stalled {
		c.calls.stalled[w] = struct{}{}
		c.calls.stalls.Add(1)
	} else {
		delete(c.calls.stalled, w)
		c.calls.stalls.Add(-1)
	}
}
