package local

import (
	"context"
	"sync"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
)

// Session is a session as passed to a client's handlers. *acp.ClientSession implements it; a program that serves
// requests without package acp may pass a session of its own. Connection and id together identify the session, because
// agents choose the ids. The handlers of this package use the session passed to them, not the id in the request.
type Session interface {
	ID() acp.SessionID
	RPC() *rpc.Conn
}

// handler converts a method of this package to the type of a field of acp.ClientHandlers.
func handler[P, R any](
	serve func(context.Context, Session, *P) (*R, error),
) func(context.Context, *acp.ClientSession, *P) (*R, error) {
	return func(ctx context.Context, session *acp.ClientSession, params *P) (*R, error) {
		return serve(ctx, session, params)
	}
}

// A sessionKey identifies a session among those of all connections.
type sessionKey struct {
	conn *rpc.Conn
	id   acp.SessionID
}

func keyOf(s Session) sessionKey { return sessionKey{s.RPC(), s.ID()} }

// A watcher reports the end of connections to its owner. The owner's lock guards conns.
type watcher struct {
	conns map[*rpc.Conn]struct{} // connections being watched
	stop  chan struct{}          // closed when the owner is closed
	tasks sync.WaitGroup         // one for each of conns; the owner waits for them after closing stop
}

func newWatcher() watcher {
	return watcher{conns: make(map[*rpc.Conn]struct{}), stop: make(chan struct{})}
}

// watch arranges for ended to be called once conn is over; ended must forget conn. It returns false if conn is already
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
