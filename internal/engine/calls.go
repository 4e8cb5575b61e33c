package engine

import (
	"context"
	"slices"
	"sync/atomic"
)

// bell wakes one goroutine, which then checks again whether it must wait. It may ring without need.
type bell chan struct{}

func newBell() bell { return make(bell, 1) }

func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// A holder prevents notifications from being handled while it runs: it is a handler of one, or the body of a loop over
// the updates of a turn. Only the reader can end a call that a holder waits for, so during such a call the reader must
// not wait for the holder: more is queued for it, up to a limit, at which the call fails. Calls made with the context
// that a holder was given are its calls.
type holder interface {
	// beginWait records that the holder waits for one more call; it returns false if the holder has returned.
	// callsInFlight.mu is held.
	beginWait() bool
	// endWait records that one of these calls has ended.
	endWait()
	// outer returns the holder inside which this one runs, or nil.
	outer() holder
}

// holderKey is the context key of the holder.
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

// callsInFlight holds the calls that wait for the peer.
type callsInFlight struct {
	waits  atomic.Int64 // number of callers that wait for the peer
	stalls atomic.Int32 // len(stalled); saves callers the lock

	mu      callsLock
	nested  map[*nestedCall]struct{} // calls that holders wait for
	stalled map[bell]struct{}        // bells of the loops that block the reader
}

// begin records that the caller waits for the peer. The caller must wait with the context that begin returns, and then
// call end.
func (f *callsInFlight) begin(ctx context.Context) (context.Context, *nestedCall) {
	h := holderOf(ctx)
	if h == nil {
		return ctx, f.beginIn(nil, nil)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, f.beginIn(h, cancel)
}

// beginIn is begin for a caller inside h, which may be nil. cancel ends the caller's wait.
func (f *callsInFlight) beginIn(h holder, cancel context.CancelCauseFunc) *nestedCall {
	var call *nestedCall
	if h != nil {
		call = &nestedCall{cancel: cancel}
		f.register(call, h)
	}
	// After the holders know of the call: otherwise a loop could reach its limit in between, take this call for that of
	// somebody else, and end instead of failing it.
	f.waits.Add(1)
	f.ringStalled()
	return call
}

// register tells h, and the holders inside which it runs, that they wait for the call.
func (f *callsInFlight) register(call *nestedCall, h holder) {
	// With the lock held, so that anyone who sees that a holder waits for a call also finds the call.
	f.mu.Lock()
	defer f.mu.Unlock()
	for ; h != nil; h = h.outer() {
		if h.beginWait() {
			call.holders = append(call.holders, h)
		}
	}
	f.nested[call] = struct{}{}
}

// end is called when the caller no longer waits.
func (f *callsInFlight) end(call *nestedCall) {
	f.waits.Add(-1)
	if call == nil {
		return
	}
	f.mu.Lock()
	delete(f.nested, call)
	f.mu.Unlock()
	call.cancel(context.Canceled)
	for _, h := range call.holders {
		h.endWait()
	}
}

// overflow ends the calls of the holders that match with ErrOverflow.
func (f *callsInFlight) overflow(match func(holder) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for call := range f.nested {
		if slices.ContainsFunc(call.holders, match) {
			call.cancel(ErrOverflow)
		}
	}
}

// stall records whether a loop blocks the reader. Its bell rings when a call begins to wait, or another loop has
// room.
func (f *callsInFlight) stall(loop bell, stalled bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if stalled {
		f.stalled[loop] = struct{}{}
		f.stalls.Add(1)
	} else {
		delete(f.stalled, loop)
		f.stalls.Add(-1)
	}
}

// ringStalled makes the loops that block the reader check again.
func (f *callsInFlight) ringStalled() {
	if f.stalls.Load() == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for loop := range f.stalled {
		loop.ring()
	}
}
