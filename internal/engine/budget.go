package engine

import (
	"context"
	"slices"
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

// Load is what a connection holds at one moment; package rpc says what the fields mean.
type Load struct{ Requests, Queued, Loops int }

// Load returns what the connection holds.
func (c *Conn) Load() Load {
	return Load{Requests: int(c.requested.Load()), Queued: int(c.load.bytes.Load()), Loops: int(c.load.loops.Load())}
}

// takes reports whether there is room for another request of the peer's. One that is alone always has it. Only the
// reader adds to what is held.
func (c *Conn) takes(size int) bool {
	held := c.requested.Load()
	return held == 0 || held+int64(size) <= int64(c.opts.MaxBytes/requestsPart)
}

// discharge takes a request out of the budget when its handler has returned, and what the handler left for afterwards.
func (in *inbound) discharge() {
	in.unreserve(true)
	in.conn.requested.Add(int64(-in.size))
}

// A reservation is a request that waits for room for its answer.
type reservation struct {
	in    *inbound
	size  int64
	ready chan struct{} // closed when it has it
}

// reserving is what requests have reserved for their answers; guarded by Conn.mu.
type reserving struct {
	held    int64
	waiting []*reservation // in the order in which they came, so that large ones get their turn
}

// reservedNoMore is what inbound.reserved is when nothing more belongs to the request.
const reservedNoMore = -1

// Reserve waits until the handler of the request that ctx belongs to may make an answer that takes n bytes. What is
// reserved is free again when the answer was handed to the writer, or the request is over. Another call replaces what the
// request has reserved: it never waits, because two that wait while each holds a part would wait for each other, and fails
// if there is no room for more. Reserve returns the cause of ctx when that ends first. Outside the handler of a request
// it does nothing.
func Reserve(ctx context.Context, n int) error {
	in, ok := ctx.Value(inboundKey{}).(*inbound)
	switch {
	case !ok:
		return nil
	case n <= 0:
		in.unreserve(false)
		return nil
	}
	r := &reservation{in, int64(n), make(chan struct{})}
	if done, err := in.conn.reserve(r); done {
		return err
	}
	select {
	case <-r.ready:
		return nil
	case <-ctx.Done():
	case <-in.conn.base.Done():
		ctx = in.conn.base
	}
	in.conn.withdrawReservation(r)
	return context.Cause(ctx)
}

// reserve reserves room, or puts the reservation among those that wait, and says whether it was done with.
func (c *Conn) reserve(r *reservation) (done bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	had := r.in.reserved.Load()
	switch {
	case had == reservedNoMore:
		return true, nil
	case had == 0 && len(c.reserving.waiting) > 0:
		// those that came first
	case c.roomFor(r, had):
		c.grant(r, had)
		c.reserveNext() // it may be less
		return true, nil
	case had > 0:
		return true, errNoRoom
	}
	c.reserving.waiting = append(c.reserving.waiting, r)
	return false, nil
}

var errNoRoom = refusal(codeInternalError, "too many large answers in progress", nil)

// roomFor reports whether a request that has reserved something, or 0, may have r instead. One that is alone always
// may. mu is held.
func (c *Conn) roomFor(r *reservation, had int64) bool {
	others := c.reserving.held - had
	return others == 0 || others+r.size <= int64(c.opts.MaxBytes/answersPart) || r.size <= had
}

// grant gives r to its request, which had reserved something, or 0, unless that is over. mu is held.
func (c *Conn) grant(r *reservation, had int64) {
	if r.in.reserved.CompareAndSwap(had, r.size) {
		c.reserving.held += r.size - had
	}
}

// reserveNext grants what waits, as far as there is room. mu is held.
func (c *Conn) reserveNext() {
	for len(c.reserving.waiting) > 0 {
		r := c.reserving.waiting[0]
		had := max(0, r.in.reserved.Load()) // another goroutine of the handler may have reserved too
		if !c.roomFor(r, had) {
			return
		}
		c.grant(r, had)
		close(r.ready)
		c.reserving.waiting = c.reserving.waiting[1:]
	}
}

// withdrawReservation forgets a reservation for which nobody waits any more.
func (c *Conn) withdrawReservation(r *reservation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reserving.waiting = slices.DeleteFunc(c.reserving.waiting, func(other *reservation) bool { return other == r })
	c.reserveNext() // those behind it may need less
}

// unreserve frees what the request has reserved. If nothing more belongs to the request, it can reserve no more.
func (in *inbound) unreserve(over bool) {
	next := int64(0)
	if over {
		next = reservedNoMore
	}
	if in.reserved.Load() == 0 && in.reserved.CompareAndSwap(0, next) {
		return // as most
	}
	had := in.reserved.Swap(next)
	if had <= 0 {
		return
	}
	c := in.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reserving.held -= had
	c.reserveNext()
}
