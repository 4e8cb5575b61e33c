package engine

import (
	"context"
	"slices"
	"sync/atomic"
)

// item is one notification in a queue.
type item struct {
	route    *Route
	params   any
	handling *notificationContext
	size     int // bytes on the wire, and itemSize
}

// itemSize is what a notification in a queue counts for beside its parameters, which may be left out.
const itemSize = 64

// queue is the notifications of one session.
type queue struct {
	mu      queueLock
	items   []item // queued
	batch   []item // taken by the worker; those before next are handled, or being handled
	next    int
	bytes   int    // of what is not handled
	queued  uint64 // notifications ever queued
	handled uint64
	running bool // there is a worker
	dropped bool // the connection is closing: nothing more is handled
	gone    bool // no longer the connection's session of this id
	nested  int  // calls in flight that a handler of this session waits for
	full    bool // the reader waits for room
	waiters []waiter
}

// waiter waits until position notifications were handled.
type waiter struct {
	position  uint64
	ready     chan struct{}
	skippable bool // released early when a notification handler of this session makes a call
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
		s = &session{conn: c, id: id, queue: queue{dropped: c.base.Err() != nil}}
		c.sessions[id] = s
	}
	return s
}

// lookUp returns a session and how much was queued in it so far; it is nil when all of that was handled.
func (c *Conn) lookUp(id string) (*session, uint64) {
	c.mu.Lock()
	s := c.sessions[id]
	c.mu.Unlock()
	if s == nil {
		return nil, 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handled == s.queued {
		return nil, 0
	}
	return s, s.queued
}

// release forgets a session that has nothing going on.
func (c *Conn) release(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.gone && !s.running && len(s.items) == 0 && len(s.incoming)+len(s.questions)+len(s.outgoing) == 0 {
		delete(c.sessions, s.id)
		s.gone = true
		s.items, s.batch = nil, nil // the connection may still know the session
	}
}

// gathered are the reader's notifications that are not queued yet. They belong to one session. Queued
// together they need one lock instead of one each, for which the reader and the worker would compete: a
// flood of small ones takes 8 % less time.
type gathered struct {
	session *session // the last that got one, which may be gone
	items   []item
	size    int
}

// maxGathered bounds what is gathered, in bytes, and so does a small part of a queue.
const maxGathered = 16 << 10

// gather takes up a notification of the session with an id. Only the reader calls it.
func (c *Conn) gather(id string, it item) {
	g := &c.gathered
	if g.session == nil || g.session.id != id {
		c.enqueue()
		g.session = c.session(id)
	}
	g.items = append(g.items, it)
	g.size += it.size
	if g.size > min(maxGathered, c.opts.QueueBytes/16) {
		c.enqueue()
	}
}

// enqueue queues what was gathered. Only the reader calls it.
func (c *Conn) enqueue() {
	g := &c.gathered
	if len(g.items) == 0 {
		return
	}
	c.load.reserve(c, g.size)
	for !g.session.push(g.items, g.size) {
		g.session = c.session(g.session.id)
	}
	clear(g.items)
	g.items, g.size = g.items[:0], 0
}

// load is what all queues of a connection hold together, which is bounded too: the peer chooses how many
// sessions there are.
type load struct {
	_       cacheLine
	bytes   atomic.Int64 // queued
	workers atomic.Int64
	nested  atomic.Int64 // calls that notification handlers wait for
	loops   atomic.Int64 // bytes that wait for loops over updates; see flow.makeRoom
	waiting atomic.Bool  // the reader waits, or is about to
	_       cacheLine
}

// cacheLine keeps what several goroutines change apart from what only one does.
type cacheLine [64]byte

// loadFactor is how many full queues a connection holds.
const loadFactor = 4

// reserve counts notifications that are about to be queued. It waits until that may be, as push does for a
// single session. Only the reader calls it.
func (l *load) reserve(c *Conn, size int) {
	if full, _ := l.full(c, size); full {
		l.waiting.Store(true)
		for full, overflow := l.full(c, size); full && c.base.Err() == nil; full, overflow = l.full(c, size) {
			if overflow {
				c.overflow(isHandling)
			}
			select {
			case <-c.room:
			case <-c.base.Done():
			}
		}
		l.waiting.Store(false)
	}
	l.bytes.Add(int64(size))
}

// full reports whether another notification may not be queued, and whether that is so although handlers
// wait for calls. Then as many sessions may have some as QueueLimit has room for their workers.
func (l *load) full(c *Conn, size int) (full, overflow bool) {
	held, nested := l.bytes.Load(), l.nested.Load() > 0
	sum := held + int64(size)
	workers := l.workers.Load()
	full = held > 0 && sum > int64(loadFactor*c.opts.QueueBytes) || workers >= int64(c.opts.MaxRequests)
	overflow = full && nested &&
		(sum > int64(c.opts.QueueLimit) || workers >= int64(max(c.opts.MaxRequests, c.opts.QueueLimit/taskSize)))
	return full && (!nested || overflow), overflow
}

// hold changes what is held.
func (c *Conn) hold(bytes, workers, nested int) {
	l := &c.load
	l.bytes.Add(int64(bytes))
	if workers != 0 || nested != 0 {
		l.workers.Add(int64(workers))
		l.nested.Add(int64(nested))
	}
	if l.waiting.Load() {
		c.room.ring()
	}
}

// push queues notifications. When the queue is full it waits, and with it the reader; but if the
// queue's own handler waits for a call, which only the reader can end, the queue grows instead, up to
// its limit, at which those calls fail. It returns false when the session was released meanwhile.
func (s *session) push(items []item, size int) bool {
	opts := &s.conn.opts
	s.mu.Lock()
	for s.bytes > 0 && s.bytes+size > opts.QueueBytes && !s.dropped {
		if s.nested > 0 && s.bytes+size <= opts.QueueLimit {
			break
		}
		overflow := s.nested > 0
		s.full = true
		s.mu.Unlock()
		if overflow {
			s.conn.overflow(func(h holder) bool {
				run, ok := h.(*notificationContext)
				return ok && run.session == s
			})
		}
		select {
		case <-s.conn.room:
		case <-s.conn.base.Done():
			s.drop() // as all of them are about to be
		}
		s.mu.Lock()
	}
	if s.gone {
		s.mu.Unlock()
		return false
	}
	s.queued += uint64(len(items))
	if s.dropped {
		s.handled = s.queued
		s.mu.Unlock()
		s.conn.hold(-size, 0, 0)
		return true
	}
	s.items = append(s.items, items...)
	s.bytes += size
	start := !s.running
	s.running = true
	s.mu.Unlock()
	if start {
		s.conn.hold(0, 1, 0)
		if !s.conn.spawn(s) {
			s.abandon()
		}
	}
	return true
}

// run handles what is queued, and ends when nothing is.
func (s *session) run() {
	var it item
	handling := false
	defer func() {
		if !handling {
			return
		}
		// The handler has ended its goroutine, as a test's FailNow does.
		s.mu.Lock()
		s.done(&it)
		s.mu.Unlock()
		if !s.conn.spawn(s) {
			s.abandon()
		}
	}()
	s.mu.Lock()
	for s.take(&it) {
		s.mu.Unlock()
		it.handling.Context, it.handling.session = s.conn.base, s
		handling = true
		s.conn.handleNotification(it.handling, s, &it)
		handling = false
		s.mu.Lock()
		s.done(&it)
	}
	s.mu.Unlock()
	s.conn.release(s)
}

// take takes the next notification; without one the worker ends. mu is held.
func (s *session) take(it *item) bool {
	if s.next == len(s.batch) {
		s.batch, s.items, s.next = s.items, s.batch[:0], 0
	}
	if len(s.batch) == 0 || s.dropped {
		s.running = false
		s.conn.hold(0, -1, 0)
		return false
	}
	*it = s.batch[s.next]
	s.batch[s.next] = item{}
	s.next++
	return true
}

// done notes that a notification was handled; mu is held.
func (s *session) done(it *item) {
	h, freed := it.handling, 0
	h.returned = true
	s.nested -= h.calls
	if !s.dropped {
		freed = it.size
		s.bytes -= it.size
		s.handled++
		s.advanced()
	}
	s.conn.hold(-freed, 0, -h.calls)
}

// advanced wakes those that wait for the notifications handled so far; mu is held.
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
	if s.full {
		s.full = false
		s.conn.room.ring()
	}
}

// current is the position of the notification that is being handled.
func (s *session) current() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.handled + 1
}

// position is how many notifications were queued so far.
func (s *session) position() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queued
}

var closedChan = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// reached returns a channel that is closed when position notifications were handled. A request of the
// peer's, and what its handler calls, is skippable: it is let go earlier when a notification handler waits for
// a call, because the peer may need that request's answer before it can answer the call.
func (s *session) reached(position uint64, skippable bool) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handled >= position || skippable && s.nested > 0 {
		return closedChan
	}
	w := waiter{position, make(chan struct{}), skippable}
	// Positions are taken in the order of the wire, but waited for in any.
	i := len(s.waiters)
	for i > 0 && s.waiters[i-1].position > position {
		i--
	}
	s.waiters = slices.Insert(s.waiters, i, w)
	return w.ready
}

// drop throws away what is queued.
func (s *session) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped = true
	s.conn.hold(-s.bytes, 0, 0)
	s.items, s.batch, s.next, s.bytes = nil, nil, 0, 0
	s.handled = s.queued
	s.advanced()
}

// abandon drops a queue whose worker cannot run any more.
func (s *session) abandon() {
	s.drop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = false
	s.conn.hold(0, -1, 0)
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

// notificationContext is one run of a notification handler, and the context that it is given.
type notificationContext struct {
	context.Context
	session *session

	// Guarded by session.mu.
	calls    int  // that the handler waits for
	returned bool // the handler has returned
}

// Value returns h itself under holderKey.
func (h *notificationContext) Value(key any) any {
	if key == (holderKey{}) {
		return h
	}
	return h.Context.Value(key)
}

// beginWait implements holder. Skippable waiters are released.
func (h *notificationContext) beginWait() bool {
	s := h.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.returned {
		return false
	}
	h.calls++
	s.nested++
	s.conn.hold(0, 0, 1)
	s.waiters = slices.DeleteFunc(s.waiters, func(w waiter) bool {
		if w.skippable {
			close(w.ready)
		}
		return w.skippable
	})
	s.changed()
	return true
}

func (h *notificationContext) endWait() {
	s := h.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if !h.returned {
		h.calls--
		s.nested--
		s.conn.hold(0, 0, -1)
	}
}

func (*notificationContext) outer() holder { return nil }

func isHandling(h holder) bool {
	_, ok := h.(*notificationContext)
	return ok
}

// insideHandler reports whether ctx belongs to a notification handler that has not returned.
func insideHandler(ctx context.Context) bool {
	for h := holderOf(ctx); h != nil; h = h.outer() {
		if h, ok := h.(*notificationContext); ok {
			h.session.mu.Lock()
			defer h.session.mu.Unlock()
			return !h.returned
		}
	}
	return false
}
