// This file owns who waits for the reader: callers, and handlers and loops that hold notifications up while they
// call.

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
	if c.calls.stalls.Load() > 0 {
		c.mu.Lock()
		for w := range c.calls.stalled {
			w.room.ring()
		}
		c.mu.Unlock()
	}
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

// throwAway notes that nobody will read what comes; mu is held.
func (w *flow) throwAway() {
	w.discard, w.bytes = true, 0
	w.more.ring()
	w.room.ring()
}

// await waits for more. In a handler of notifications, or another loop, that is a call.
func (w *flow) await(cancel context.CancelCauseFunc) {
	if w.starter != nil {
		defer w.conn.endCall(w.conn.beginCallIn(w.starter, cancel))
	}
	<-w.more
}

// makeRoom waits until the loop may be given so much more; mu is held, but not while it waits. While too much waits to
// be read, the session's worker waits here, and with it the session and then the reader. While the loop's body, or
// anybody, waits for a call, it does not, up to the limit: there the body's calls fail, and if it has made none, it
// cannot be told whether the body waits for those of others, and the loop ends.
func (w *flow) makeRoom(size int) {
	c, stalled := w.conn, false
	for w.bytes > 0 && w.bytes+size > c.opts.QueueBytes && !w.discard && !w.ended {
		full, calls, waits := w.bytes+size > c.opts.QueueLimit, w.calls > 0, c.calls.waits.Load() > 0
		if !full && (calls || waits) {
			break
		}
		if full && !calls && waits {
			w.overflow = true
			w.throwAway()
			break
		}
		w.mu.Unlock()
		switch {
		case full && calls:
			c.overflow(func(h holder) bool { return h == w })
		case !stalled:
			// Who waits from now on rings; who does already is seen when it is looked again.
			stalled = true
			c.stall(w, true)
			w.room.ring()
		}
		select {
		case <-w.room:
			w.mu.Lock()
		case <-c.base.Done():
			w.mu.Lock()
			w.throwAway() // a later one must not come without this one
		}
	}
	if stalled {
		w.mu.Unlock()
		c.stall(w, false)
		w.mu.Lock()
	}
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
