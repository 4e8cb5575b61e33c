package engine

import (
	"context"
	"encoding/json"
)

// gathered holds notifications that the reader has not queued yet. They belong to one session. Queued together they
// need one lock instead of one each, for which the reader and the worker would compete: a flood of small notifications
// takes 8 % less time.
type gathered struct {
	conn  *Conn
	to    *worker // the worker last used, which may be gone
	items []item
	size  int
}

// maxGathered bounds the size of gathered notifications, in bytes; a small part of a queue bounds it too.
const maxGathered = 16 << 10

// add adds a notification of the session with an id.
func (g *gathered) add(id string, it item) {
	if g.to == nil || g.to.id != id {
		g.enqueue()
		g.to = g.conn.session(id)
	}
	g.items = append(g.items, it)
	g.size += it.size
	if g.size > min(maxGathered, g.conn.opts.QueueBytes/16) {
		g.enqueue()
	}
}

// enqueue queues the gathered notifications.
func (g *gathered) enqueue() {
	if len(g.items) == 0 {
		return
	}
	g.conn.reserveLoad(g.size)
	for !g.to.add(g.items, g.size) {
		g.to = g.conn.session(g.to.id)
	}
	clear(g.items)
	g.items, g.size = g.items[:0], 0
}

// reserveLoad counts notifications that are about to be queued, waiting until there is room. Only the reader calls it.
func (c *Conn) reserveLoad(size int) {
	l := &c.load
	if full, _ := l.fullFor(size); full {
		l.waiting.Store(true)
		for full, overflow := l.fullFor(size); full && c.base.Err() == nil; full, overflow = l.fullFor(size) {
			if overflow {
				c.calls.overflow(isHandling)
			}
			select {
			case <-l.room:
			case <-c.base.Done():
			}
		}
		l.waiting.Store(false)
	}
	l.bytes.Add(int64(size))
}

// add queues notifications, and waits while the queue is full. It returns false if the session was released in the
// meantime. Only the reader calls it.
func (w *worker) add(items []item, size int) bool {
	for {
		switch w.push(items, size) {
		case pushGone:
			return false
		case pushQueued:
			return true
		case pushStarts:
			w.start()
			return true
		case pushOverflow:
			w.conn.calls.overflow(func(h holder) bool {
				run, ok := h.(*notificationContext)
				return ok && run.queue == &w.queue
			})
		}
		select {
		case <-w.conn.load.room:
		case <-w.conn.base.Done():
			w.drop() // all queues are about to be dropped
		}
	}
}

func (w *worker) start() {
	if !w.conn.tasks.spawn(w) {
		w.abandon()
	}
}

// run handles queued notifications, and ends when there are none.
func (w *worker) run() {
	var it item
	handling := false
	defer func() {
		if handling { // the handler has ended its goroutine, as a test's FailNow does
			w.done(&it)
			w.start()
		}
	}()
	for w.take(&it) {
		it.handling.Context, it.handling.queue = w.conn.base, &w.queue
		handling = true
		w.conn.handleNotification(it.handling, &w.session, &it)
		handling = false
	}
	w.conn.release(&w.session)
}

// handleNotification runs on a session's worker.
func (c *Conn) handleNotification(ctx context.Context, s *session, it *item) {
	route, params, size := it.route, it.params, it.size // so that it does not escape to the heap
	name := route.Method
	var err error
	switch {
	case c.opts.Serve != nil:
		name, err = c.serveNotification(ctx, s, route, params.(*withMeta), size)
	case route.Feeds && c.feed(s, params, size), route.notify == nil:
		return
	default:
		if p, ok := params.(*fallbackParams); ok {
			name = p.method
		}
		err = c.guard(name, func() error { return route.notify(ctx, params) })
	}
	if err != nil {
		c.reportFailure(ctx, "notification handler failed", name, err, true)
	}
}

// feed passes a notification to the session's oldest turn that it belongs to, if a loop reads the turn's updates, and
// reports whether the notification is done with. While the connection is ending it drops the notification: Close ends
// turns whose updates may still be queued, and neither the handler nor another turn must get a later one if those are
// lost. It checks that again at the end, because the turn may have ended in the meantime. feed runs on the session's
// worker.
func (c *Conn) feed(s *session, params any, size int) bool {
	closing := func() bool { return c.base.Err() != nil }
	if closing() || c.feeding.Load() == 0 {
		return closing()
	}
	c.mu.Lock()
	position := s.current()
	var to func(any, int) bool
	for _, turn := range s.outgoing {
		if turn.first < position && (!turn.ended || position <= turn.last) {
			to = turn.feed
			break
		}
	}
	c.mu.Unlock()
	return to != nil && to(params, size) || closing()
}

// serveNotification runs the handler of a notification, or passes it to the loop that wants it, with the middleware. It
// also returns the name of the notification.
func (c *Conn) serveNotification(
	ctx context.Context, s *session, route *Route, kept *withMeta, size int,
) (method string, err error) {
	method = route.Method
	if p, ok := kept.params.(*fallbackParams); ok {
		method = p.method
	}
	call := &Call{
		Method: method, Incoming: true, Notification: true, Session: s.id,
		Size: kept.length, Meta: kept.meta, Params: plainParams(kept.params),
	}
	return method, c.guard(method, func() error {
		return c.opts.Serve(ctx, call, func(ctx context.Context) error {
			params := call.Params
			if p, ok := kept.params.(*fallbackParams); ok {
				params = p.replaced(params)
			}
			if route.Feeds && c.feed(s, params, size) || route.notify == nil {
				return nil
			}
			return c.guard(method, func() error { return route.notify(ctx, params) })
		})
	})
}

// withMeta holds the parameters of a queued notification, their _meta, and the length of their text.
type withMeta struct {
	params any
	meta   map[string]json.RawMessage
	length int
}
