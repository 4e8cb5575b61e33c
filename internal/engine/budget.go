package engine

import (
	"slices"
	"sync"
	"sync/atomic"
)

// itemWeight is how many bytes an element of an array, or a member of a map, counts in addition to its text: about as
// much memory as the smallest ones take.
const itemWeight = 64

// The parts of Config.MaxBytes, as divisors. No part waits for another one, because a handler that fills one may be
// waiting for an answer, or a request, that would fill the other.
const (
	requestsPart = 2  // requests in progress get half
	answersPart  = 8  // reservations of handlers for answers
	limitPart    = 8  // QueueLimit: for all queues; all loops get twice as much
	queuePart    = 64 // QueueBytes
	floodPart    = 16 // unsent answers of the reader
	messagePart  = 4  // values of one message, in addition to its text
)

// minFlood is how many bytes of the reader's answers may be unsent at least: two readers that each waited for the other
// to read would wait forever.
const minFlood = 1 << 20

// taskSize is how many bytes a goroutine of a connection counts, with everything it needs to serve one message.
const taskSize = 8 << 10

// requestSize returns how many bytes a request counts.
func requestSize(id ID, method string, params []byte, items int) int {
	size := taskSize + len(method) + len(params) + items*itemWeight
	if text, ok := id.Str(); ok {
		size += len(text)
	} else if _, ok := id.Int(); !ok {
		size += len(id.String())
	}
	return size
}

// A reservation is a request's wait for room for its answer.
type reservation struct {
	by    *atomic.Int64 // how much the request has reserved
	size  int64
	ready chan struct{} // closed when the reservation is granted
}

// reserving holds the reservations of requests for their answers.
type reserving struct {
	max int64

	mu      sync.Mutex
	held    int64
	waiting []*reservation // in the order of arrival, so that large ones get their turn
}

// reservedNoMore is what a request has reserved when it is over.
const reservedNoMore = -1

// reserve reserves room, or queues the reservation. done reports whether it has been decided.
func (b *reserving) reserve(r *reservation) (done bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	had := r.by.Load()
	switch {
	case had == reservedNoMore:
		return true, nil
	case had == 0 && len(b.waiting) > 0:
		// those that came first
	case b.roomFor(r, had):
		b.grant(r, had)
		b.next() // it may be smaller
		return true, nil
	case had > 0:
		return true, errNoRoom
	}
	b.waiting = append(b.waiting, r)
	return false, nil
}

var errNoRoom = refusal(codeInternalError, "too many large answers in progress", nil)

// roomFor reports whether a request that has reserved had bytes, or 0, may have r instead. A request that is the only
// one always may. mu is held.
func (b *reserving) roomFor(r *reservation, had int64) bool {
	others := b.held - had
	return others == 0 || others+r.size <= b.max || r.size <= had
}

// grant grants r to its request, which had reserved had bytes, or 0, unless the request is over. mu is held.
func (b *reserving) grant(r *reservation, had int64) {
	if r.by.CompareAndSwap(had, r.size) {
		b.held += r.size - had
	}
}

// next grants queued reservations as long as there is room. mu is held.
func (b *reserving) next() {
	for len(b.waiting) > 0 {
		r := b.waiting[0]
		had := max(0, r.by.Load()) // another goroutine of the handler may also have reserved
		if !b.roomFor(r, had) {
			return
		}
		b.grant(r, had)
		close(r.ready)
		b.waiting = b.waiting[1:]
	}
}

// withdraw removes a reservation whose caller has given up.
func (b *reserving) withdraw(r *reservation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = slices.DeleteFunc(b.waiting, func(other *reservation) bool { return other == r })
	b.next() // those after it may need less
}

// free releases a request's reservation. If the request is over, it can no longer reserve.
func (b *reserving) free(by *atomic.Int64, over bool) {
	next := int64(0)
	if over {
		next = reservedNoMore
	}
	if by.Load() == 0 && by.CompareAndSwap(0, next) {
		return // as is usual
	}
	had := by.Swap(next)
	if had <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held -= had
	b.next()
}
