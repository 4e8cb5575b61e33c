// This file owns order and backpressure: the queue of a session's notifications, its worker, and what
// waits for them.

package rpc

import (
	"context"
	"slices"
	"sync"
)

// item is one notification in a queue.
type item struct {
	route  *Route
	params any
	size   int // bytes on the wire
}

// session is what the connection knows of one session of the peer's, or, under "", of everything that
// belongs to none. Sessions come and go with traffic.
type session struct {
	conn *Conn
	id   string

	mu      sync.Mutex
	items   []item
	spare   []item
	bytes   int    // of items, and of what the worker has taken and not handled
	queued  uint64 // notifications ever queued
	handled uint64
	running bool // there is a worker
	dropped bool // the connection is closing: nothing more is handled
	gone    bool // no longer the connection's session of this id
	nested  int  // calls in flight that a handler of this session waits for
	waiters []waiter
	change  chan struct{} // set while somebody waits for room; closed when there may be some

	// The engine's, guarded by conn.mu.
	turns      []*inbound // turns of the peer's in progress
	asks       []*inbound // requests in progress that a cancelled turn answers
	own        []*ownTurn // turns of this side in progress
	cancelling int        // turns of this side that were cancelled and are not over
}

// waiter waits until position notifications were handled.
type waiter struct {
	position uint64
	ready    chan struct{}
	request  bool // a request of the peer's waits, not a response
}

// session returns the session with an id.
func (c *Conn) session(id string) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sessionLocked(id)
}

func (c *Conn) sessionLocked(id string) *session {
	s := c.sessions[id]
	if s == nil {
		s = &session{conn: c, id: id, dropped: c.stopped}
		c.sessions[id] = s
	}
	return s
}

// release forgets a session that has nothing going on.
func (c *Conn) release(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.gone && !s.running && len(s.items) == 0 && len(s.turns)+len(s.asks)+len(s.own)+s.cancelling == 0 {
		delete(c.sessions, s.id)
		s.gone = true
	}
}

// enqueue queues a notification of the session with an id. Only the reader calls it.
func (c *Conn) enqueue(id string, it item) {
	for !c.session(id).push(it) {
	}
}

// push queues a notification. When the queue is full it waits, and with it the reader; but if the
// queue's own handler waits for a call, which only the reader can end, the queue grows instead, up to
// its limit, at which those calls fail. It returns false when the session was released meanwhile.
func (s *session) push(it item) bool {
	opts := &s.conn.opts
	s.mu.Lock()
	for s.bytes > 0 && s.bytes+it.size > opts.QueueBytes && !s.dropped {
		if s.nested > 0 && s.bytes+it.size <= opts.QueueLimit {
			break
		}
		overflow := s.nested > 0
		if s.change == nil {
			s.change = make(chan struct{})
		}
		change := s.change
		s.mu.Unlock()
		if overflow {
			s.conn.flights.fail(func(f *flight) bool { return f.within == s })
		}
		select {
		case <-change:
		case <-s.conn.base.Done():
		}
		s.mu.Lock()
	}
	if s.gone {
		s.mu.Unlock()
		return false
	}
	s.queued++
	if s.dropped {
		s.handled = s.queued
		s.mu.Unlock()
		return true
	}
	s.items = append(s.items, it)
	s.bytes += it.size
	start := !s.running
	s.running = true
	s.mu.Unlock()
	if start && !s.conn.spawn(s.work) {
		s.drop()
	}
	return true
}

// work handles what is queued, and ends when nothing is.
func (s *session) work() {
	ctx := context.WithValue(s.conn.base, handlerKey{}, s)
	s.mu.Lock()
	for len(s.items) > 0 && !s.dropped {
		batch := s.items
		s.items, s.spare = s.spare[:0], nil
		for i := range batch {
			s.mu.Unlock()
			s.conn.handleNotification(ctx, s, &batch[i])
			s.mu.Lock()
			s.bytes -= batch[i].size
			batch[i] = item{}
			s.handled++
			s.advanced()
			if s.dropped {
				break
			}
		}
		s.spare = batch
	}
	s.running = false
	if s.dropped {
		s.handled = s.queued
		s.advanced()
	}
	s.mu.Unlock()
	s.conn.release(s)
}

// advanced lets go on what waited for the notifications handled so far; mu is held.
func (s *session) advanced() {
	n := 0
	for n < len(s.waiters) && s.waiters[n].position <= s.handled {
		close(s.waiters[n].ready)
		n++
	}
	s.waiters = s.waiters[n:]
	s.changed()
}

// changed wakes a push that waits for room; mu is held.
func (s *session) changed() {
	if s.change != nil {
		close(s.change)
		s.change = nil
	}
}

// position is how many notifications were queued so far.
func (s *session) position() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queued
}

var handledAlready = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// reached returns a channel that is closed when position notifications were handled. A request of the
// peer's is let go earlier when a handler waits for a call, because the peer may need that request's
// answer before it can answer the call.
func (s *session) reached(position uint64, request bool) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handled >= position || request && s.nested > 0 {
		return handledAlready
	}
	w := waiter{position, make(chan struct{}), request}
	// Positions are taken in the order of the wire, but waited for in any.
	i := len(s.waiters)
	for i > 0 && s.waiters[i-1].position > position {
		i--
	}
	s.waiters = slices.Insert(s.waiters, i, w)
	return w.ready
}

// nest notes that a handler of the session waits for one call more, or one less.
func (s *session) nest(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nested += n
	if s.nested > 0 {
		s.waiters = slices.DeleteFunc(s.waiters, func(w waiter) bool {
			if w.request {
				close(w.ready)
			}
			return w.request
		})
		s.changed()
	}
}

// drop throws away what is queued.
func (s *session) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped = true
	s.items, s.bytes = nil, 0
	s.handled = s.queued
	s.advanced()
}

// dropQueues throws away what is queued in all sessions.
func (c *Conn) dropQueues() {
	for _, s := range c.allSessions() {
		s.drop()
	}
}

// awaitQueues waits until everything queued was handled.
func (c *Conn) awaitQueues(ctx context.Context) {
	for _, s := range c.allSessions() {
		select {
		case <-s.reached(s.position(), false):
		case <-ctx.Done():
			return
		}
	}
}

func (c *Conn) allSessions() []*session {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*session, 0, len(c.sessions))
	for _, s := range c.sessions {
		all = append(all, s)
	}
	return all
}

// handlerKey is the context key under which a notification handler's session is found.
type handlerKey struct{}

// handlerOf returns the session whose notification handler ctx belongs to, or nil.
func handlerOf(ctx context.Context) *session {
	s, _ := ctx.Value(handlerKey{}).(*session)
	return s
}
