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
	// ErrBusy reports that a session is working on another prompt.
	ErrBusy = acp.ErrInvalidRequest.WithMessagef("Invalid request: the session is busy with another turn")
)

// Table holds the open sessions of an agent's connections. V is what agentkit keeps for a session. Connections do not
// see each other's sessions. Its methods are safe for concurrent use.
type Table[C Conn, V any] struct {
	most int
	life func(V) *Life

	mu       sync.Mutex
	conns    map[C]*account[V]
	closed   bool
	done     chan struct{} // closed by Close
	watchers sync.WaitGroup
}

// account holds the sessions of a connection.
type account[V any] struct {
	open     map[acp.SessionID]V
	closing  map[acp.SessionID]*Life // with handlers that are still running, or not freed yet
	changing map[acp.SessionID]bool  // true while a session is being opened, false while it is being closed or deleted
}

// NewTable returns a table in which each connection may have at most the given number of open sessions. life returns
// the life of a session.
func NewTable[C Conn, V any](most int, life func(V) *Life) *Table[C, V] {
	return &Table[C, V]{most: most, life: life, conns: map[C]*account[V]{}, done: make(chan struct{})}
}

// Close closes all sessions, and waits until they are freed, except those with running handlers. Afterwards no session
// can be opened.
func (t *Table[C, V]) Close() {
	t.mu.Lock()
	if !t.closed {
		t.closed = true
		close(t.done)
	}
	t.mu.Unlock()
	t.watchers.Wait()
}

// Use finds an open session for a handler, which must call release when it no longer uses it.
func (t *Table[C, V]) Use(conn C, id acp.SessionID) (v V, release func(), err error) {
	return t.use(conn, id, 0)
}

// UseForPrompt is Use for a prompt, which keeps the session busy.
func (t *Table[C, V]) UseForPrompt(conn C, id acp.SessionID) (v V, release func(), err error) {
	return t.use(conn, id, 1)
}

func (t *Table[C, V]) use(conn C, id acp.SessionID, prompts int) (v V, release func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.conns[conn]
	if of == nil {
		return v, nil, acp.SessionNotFound(id)
	}
	if _, changing := of.changing[id]; changing {
		return v, nil, errChanging
	}
	open, ok := of.open[id]
	if !ok {
		return v, nil, acp.SessionNotFound(id)
	}
	life := t.life(open)
	life.acquire(prompts)
	return open, func() { life.release(prompts) }, nil
}

// Opening reserves a session that is about to be opened: until done is called, it cannot be used. If it is open, it is
// closed first; that is refused while it is busy. Opening fails if the connection has too many open sessions.
func (t *Table[C, V]) Opening(ctx context.Context, conn C, id acp.SessionID) (done func(), err error) {
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

// Closing closes a session, waits until it is freed, and prevents it from being opened until done is called. It reports
// whether the session was open.
func (t *Table[C, V]) Closing(ctx context.Context, conn C, id acp.SessionID) (was bool, done func(), err error) {
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

// change prevents a session from being opened, closed, deleted and used until done is called. If the session is open,
// handlers no longer find it; a busy one cannot be opened again.
func (t *Table[C, V]) change(conn C, id acp.SessionID, opening bool) (was *Life, done func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, nil, acp.ErrClosed
	}
	of := t.conns[conn]
	if of == nil {
		of = &account[V]{open: map[acp.SessionID]V{}, closing: map[acp.SessionID]*Life{}, changing: map[acp.SessionID]bool{}}
		t.conns[conn] = of
		t.watchers.Go(func() { t.watch(conn) })
	}
	// An earlier call that closed it may have given up waiting.
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

// room returns an error if the connection has too many sessions. Those that are being opened count.
func (t *Table[C, V]) room(conn C) error {
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
		return acp.ErrInvalidRequest.WithMessagef("Invalid request: %d sessions are open, the maximum: close one", t.most)
	}
	return nil
}

// Put adds an open session. It reports false if the connection is over; then the caller must close the session.
func (t *Table[C, V]) Put(conn C, id acp.SessionID, v V) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.conns[conn]
	if of == nil {
		return false
	}
	of.open[id] = v
	return true
}

// watch closes the sessions of a connection when the connection is over.
func (t *Table[C, V]) watch(conn C) {
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
