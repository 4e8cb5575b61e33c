package engine

import (
	"slices"
	"sync"
	"sync/atomic"
)

// itemWeight is what an element of an array, or a member of a map, counts for beside its text: about as much memory as
// the smallest take.
const itemWeight = 64

// The parts of Config.MaxBytes. No part waits for another one, because what fills it may wait for what would fill
// that: a handler for an answer, or for a request of the peer's.
const (
	requestsPart = 2  // requests in progress have a half
	answersPart  = 8  // what handlers have reserved for answers
	limitPart    = 8  // QueueLimit: all queues have as much, and all loops twice as much
	queuePart    = 64 // QueueBytes
	floodPart    = 16 // unsent answers of the reader's
	messagePart  = 4  // what the values of one message count for beside their text
)

// minFlood is how many answers of the reader's may be unsent at least: two readers that wait for each other to read
// would wait forever.
const minFlood = 1 << 20

// taskSize is what a goroutine of a connection's, and what it needs to serve one message, count for.
const taskSize = 8 << 10

// requestSize is what a request counts for.
func requestSize(id ID, method string, params []byte, items int) int {
	size := taskSize + len(method) + len(params) + items*itemWeight
	if text, ok := id.Str(); ok {
		size += len(text)
	} else if _, ok := id.Int(); !ok {
		size += len(id.String())
	}
	return size
}

// A reservation is a request that waits for room for its answer.
type reservation struct {
	by    *atomic.Int64 // what the request has reserved
	size  int64
	ready chan struct{} // closed when it has it
}

// reserving is what requests have reserved for their answers.
type reserving struct {
	max int64

	mu      sync.Mutex
	held    int64
	waiting []*reservation // in the order in which they came, so that large ones get their turn
}

// reservedNoMore is what a request has reserved when nothing more belongs to it.
const reservedNoMore = -1

// reserve reserves room, or puts the reservation among those that wait, and says whether it was done with.
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
		b.next() // it may be less
		return true, nil
	case had > 0:
		return true, errNoRoom
	}
	b.waiting = append(b.waiting, r)
	return false, nil
}

var errNoRoom = refusal(codeInternalError, "too many large answers in progress", nil)

// roomFor reports whether a request that has reserved something, or 0, may have r instead. One that is alone always
// may. mu is held.
func (b *reserving) roomFor(r *reservation, had int64) bool {
	others := b.held - had
	return others == 0 || others+r.size <= b.max || r.size <= had
}

// grant gives r to its request, which had reserved something, or 0, unless that is over. mu is held.
func (b *reserving) grant(r *reservation, had int64) {
	if r.by.CompareAndSwap(had, r.size) {
		b.held += r.size - had
	}
}

// next grants what waits, as far as there is room. mu is held.
func (b *reserving) next() {
	for len(b.waiting) > 0 {
		r := b.waiting[0]
		had := max(0, r.by.Load()) // another goroutine of the handler may have reserved too
		if !b.roomFor(r, had) {
			return
		}
		b.grant(r, had)
		close(r.ready)
		b.waiting = b.waiting[1:]
	}
}

// withdraw forgets a reservation for which nobody waits any more.
func (b *reserving) withdraw(r *reservation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = slices.DeleteFunc(b.waiting, func(other *reservation) bool { return other == r })
	b.next() // those behind it may need less
}

// free frees what a request has reserved. If the request is over, it can reserve no more.
func (b *reserving) free(by *atomic.Int64, over bool) {
	next := int64(0)
	if over {
		next = reservedNoMore
	}
	if by.Load() == 0 && by.CompareAndSwap(0, next) {
		return // as most
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
