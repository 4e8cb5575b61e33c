package engine

import (
	"context"
	"slices"
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
	// beginWait notes that the holder waits for one call more, and reports false when it has returned;
	// callsInFlight.mu is held.
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
	waits  atomic.Int64 // callers that wait for the peer
	stalls atomic.Int32 // how many are in stalled; spares callers the lock

	mu      callsLock
	nested  map[*nestedCall]struct{} // those that a holder waits for
	stalled map[bell]struct{}        // of the loops that hold up the reader
}

// begin notes that the caller waits for the peer. It must wait with the context that is returned, and then call end.
func (f *callsInFlight) begin(ctx context.Context) (context.Context, *nestedCall) {
	h := holderOf(ctx)
	if h == nil {
		return ctx, f.beginIn(nil, nil)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, f.beginIn(h, cancel)
}

// beginIn is begin for a caller within a holder, or nil. cancel ends its waiting.
func (f *callsInFlight) beginIn(h holder, cancel context.CancelCauseFunc) *nestedCall {
	f.waits.Add(1)
	f.ringStalled()
	if h == nil {
		return nil
	}
	call := &nestedCall{cancel: cancel}
	// Under the lock, so that whoever finds that a holder waits for a call finds the call.
	f.mu.Lock()
	defer f.mu.Unlock()
	for ; h != nil; h = h.outer() {
		if h.beginWait() {
			call.holders = append(call.holders, h)
		}
	}
	f.nested[call] = struct{}{}
	return call
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

// stall notes that a loop holds up the reader, or does not any more. Its bell rings when a call begins to wait, or
// another loop has room.
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

// ringStalled has the loops that hold up the reader look again.
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
