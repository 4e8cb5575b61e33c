package local

import (
	"context"
	"sync"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
)

// Session is a session as passed to a client's handlers: an *acp.ClientSession, or the ClientSession of acp/unstable.
// Connection and id together identify the session, because agents choose the ids. The handlers of this package use the
// session that they are given, not the id in the request.
type Session interface {
	ID() acp.SessionID
	RPC() *rpc.Conn
}

// Handler is a handler in the form that the ClientHandlers of acp (S is *acp.ClientSession) and of acp/unstable use.
type Handler[S Session, P, R any] = func(ctx context.Context, session S, params *P) (*R, error)

// adapt makes a handler of this package one for the sessions of a package's ClientHandlers.
func adapt[S Session, P, R any](h Handler[Session, P, R]) Handler[S, P, R] {
	return func(ctx context.Context, session S, params *P) (*R, error) { return h(ctx, session, params) }
}

// A sessionKey names a session among those of all connections.
type sessionKey struct {
	conn *rpc.Conn
	id   acp.SessionID
}

func keyOf(s Session) sessionKey { return sessionKey{s.RPC(), s.ID()} }

// A watcher tells its owner when connections end. The owner's lock guards conns.
type watcher struct {
	conns map[*rpc.Conn]struct{} // those that are watched
	stop  chan struct{}          // closed when the owner is closed
	tasks sync.WaitGroup         // one for each of conns; the owner waits for them after it closed stop
}

func newWatcher() watcher {
	return watcher{conns: make(map[*rpc.Conn]struct{}), stop: make(chan struct{})}
}

// watch arranges for ended to be called once conn is over, which must forget it. It returns false if conn is already
// over. The owner holds its lock, and has not closed stop.
func (w *watcher) watch(conn *rpc.Conn, ended func(*rpc.Conn)) bool {
	if isOver(conn) {
		return false
	}
	if _, ok := w.conns[conn]; !ok {
		w.conns[conn] = struct{}{}
		w.tasks.Go(func() {
			select {
			case <-conn.Done():
				ended(conn)
			case <-w.stop:
			}
		})
	}
	return true
}

func isOver(conn *rpc.Conn) bool {
	select {
	case <-conn.Done():
		return true
	default:
		return false
	}
}
