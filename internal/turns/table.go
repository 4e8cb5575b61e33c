package turns

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/acpgo/sdk/acp"
)

// Conn is a connection of an agent.
type Conn interface {
	comparable
	Done() <-chan struct{}
}

// Errors that answer requests for sessions.
var (
	errChanging = acp.ErrInvalidRequest.WithMessagef("Invalid request: the session is being opened, closed or deleted")
	// ErrBusy says that a session works for another prompt.
	ErrBusy = acp.ErrInvalidRequest.WithMessagef("Invalid request: the session is busy with another turn")
)

// Table has the sessions that the connections of an agent have open. V is what a kit has of a session. Connections do not
// see each other's sessions. Its methods are safe for concurrent use.
type Table[C Conn, ID ~string, V any] struct {
	most int
	life func(V) *Life

	mu       sync.Mutex
	conns    map[C]*account[ID, V]
	closed   bool
	done     chan struct{} // closed by Close
	watchers sync.WaitGroup
}

// account is what a connection has.
type account[ID ~string, V any] struct {
	open     map[ID]V
	closing  map[ID]*Life // with handlers that still run, or what is done afterwards
	changing map[ID]bool  // being closed or deleted, or, where it is true, opened
}

// NewTable makes a table for at most so many open sessions of a connection. life returns the life of a session.
func NewTable[C Conn, ID ~string, V any](most int, life func(V) *Life) *Table[C, ID, V] {
	return &Table[C, ID, V]{most: most, life: life, conns: map[C]*account[ID, V]{}, done: make(chan struct{})}
}

// Close closes all sessions, and waits until they are freed, but for those with handlers that still run. No session can be
// opened afterwards.
func (t *Table[C, ID, V]) Close() {
	t.mu.Lock()
	if !t.closed {
		t.closed = true
		close(t.done)
	}
	t.mu.Unlock()
	t.watchers.Wait()
}

// Use finds an open session for a handler, which calls release when it does not use it any more.
func (t *Table[C, ID, V]) Use(conn C, id ID) (v V, release func(), err error) {
	return t.use(conn, id, 0, 0)
}

// UseForPrompt is Use for a prompt, which keeps the session busy. If most is not 0, no more than most prompts use the
// session at once.
func (t *Table[C, ID, V]) UseForPrompt(conn C, id ID, most int) (v V, release func(), err error) {
	return t.use(conn, id, 1, most)
}

func (t *Table[C, ID, V]) use(conn C, id ID, prompts, most int) (v V, release func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.conns[conn]
	if of == nil {
		return v, nil, notFound(id)
	}
	if _, changing := of.changing[id]; changing {
		return v, nil, errChanging
	}
	open, ok := of.open[id]
	if !ok {
		return v, nil, notFound(id)
	}
	life := t.life(open)
	if err := life.acquire(prompts, most); err != nil {
		return v, nil, err
	}
	return open, func() { life.release(prompts) }, nil
}

// Opening keeps others from using a session until done is called, because it is about to be opened. If it is open, it is
// closed first, which is refused while it is busy. One session too many is refused.
func (t *Table[C, ID, V]) Opening(ctx context.Context, conn C, id ID) (done func(), err error) {
	was, done, err := t.change(conn, id, true)
	if err != nil {
		return nil, err
	}
	if err = wait(ctx, was); err == nil {
		err = t.room(conn)
	}
	if err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// Closing closes a session, waits until it is freed, and keeps others from opening it until done is called. It reports
// whether it was open.
func (t *Table[C, ID, V]) Closing(ctx context.Context, conn C, id ID) (was bool, done func(), err error) {
	life, done, err := t.change(conn, id, false)
	if err != nil {
		return false, nil, err
	}
	if err := wait(ctx, life); err != nil {
		done()
		return false, nil, err
	}
	return life != nil, done, nil
}

// change keeps others from opening, closing, deleting and using a session until done is called. If it is open it is taken
// away from handlers; one that is busy is not opened again.
func (t *Table[C, ID, V]) change(conn C, id ID, opening bool) (was *Life, done func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, nil, acp.ErrClosed
	}
	of := t.conns[conn]
	if of == nil {
		of = &account[ID, V]{open: map[ID]V{}, closing: map[ID]*Life{}, changing: map[ID]bool{}}
		t.conns[conn] = of
		t.watchers.Go(func() { t.watch(conn) })
	}
	// What closed it may have been given up meanwhile.
	if _, changing := of.changing[id]; changing || of.closing[id] != nil {
		return nil, nil, errChanging
	}
	open, ok := of.open[id]
	if ok {
		was = t.life(open)
	}
	if ok && opening && was.busy() {
		return nil, nil, ErrBusy
	}
	of.changing[id] = opening
	done = func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(of.changing, id)
	}
	if !ok {
		return nil, done, nil
	}
	delete(of.open, id)
	of.closing[id] = was
	was.gone = func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(of.closing, id)
	}
	return was, done, nil
}

// wait closes a session, if it is not nil, and waits until it is freed.
func wait(ctx context.Context, life *Life) error {
	if life == nil {
		return nil
	}
	life.Close()
	select {
	case <-life.freed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// room refuses one session too many; those that are being opened count.
func (t *Table[C, ID, V]) room(conn C) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.conns[conn]
	if of == nil {
		return acp.ErrClosed
	}
	count := len(of.open) + len(of.closing)
	for _, opening := range of.changing {
		if opening {
			count++
		}
	}
	if count > t.most {
		return acp.ErrInvalidRequest.WithMessagef("Invalid request: %d sessions are open, which is the most: close one", t.most)
	}
	return nil
}

// Put makes a session one that handlers find. It reports false when the connection is over: then the caller closes it.
func (t *Table[C, ID, V]) Put(conn C, id ID, v V) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.conns[conn]
	if of == nil {
		return false
	}
	of.open[id] = v
	return true
}

// watch closes the sessions of a connection when that is over.
func (t *Table[C, ID, V]) watch(conn C) {
	select {
	case <-conn.Done():
	case <-t.done:
	}
	t.mu.Lock()
	open := slices.Collect(maps.Values(t.conns[conn].open))
	delete(t.conns, conn)
	t.mu.Unlock()
	var closing sync.WaitGroup
	for _, v := range open {
		closing.Go(t.life(v).Close)
	}
	closing.Wait()
}

func notFound[ID ~string](id ID) error { return acp.SessionNotFound(acp.SessionID(id)) }
