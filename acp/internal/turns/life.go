package turns

import (
	"context"
	"errors"
	"sync"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
)

// ErrSessionClosed is the cause of contexts that end because their session was closed. It tells a client that the
// session does not exist.
var ErrSessionClosed error = new(sessionClosed)

type sessionClosed struct{}

// Error implements the error interface.
func (*sessionClosed) Error() string { return "the session was closed" }

// Unwrap returns what the client sees.
func (e *sessionClosed) Unwrap() error { return acp.ErrResourceNotFound.WithMessagef("%v", e) }

// Closed returns the error of a handler whose context is ctx: ErrSessionClosed too, if the handler has failed because
// of that for a reason that the client would not see.
func Closed(ctx context.Context, err error) error {
	if err != nil && context.Cause(ctx) == ErrSessionClosed && rpc.ErrorOf(err).Code == rpc.ErrInternal {
		return errors.Join(ErrSessionClosed, err)
	}
	return err
}

// Life is the life of one session: from its preparation until it is no longer used. Init begins it.
type Life struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	free   func()
	gone   func()        // function of the table, set before the session is closed
	freed  chan struct{} // closed when the session is no longer used and free has returned

	mu      sync.Mutex
	users   int // running handlers
	prompts int // handlers of prompts among them
	closed  bool
}

// Init begins the life. free is called once, when the session is closed and no longer used.
func (l *Life) Init(free func()) {
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	l.free, l.freed = free, make(chan struct{})
}

// Context returns a context that ends when the session is closed, with the cause ErrSessionClosed, or abandoned.
func (l *Life) Context() context.Context { return l.ctx }

// Abandon ends the context of a session that was not opened after all. It does not call free.
func (l *Life) Abandon(why error) { l.cancel(why) }

// Within returns a copy of ctx that also ends when the session is closed.
func (l *Life) Within(ctx context.Context) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.ctx, func() { cancel(ErrSessionClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// acquire records that a handler uses the session, which must be open. The table's lock is held.
func (l *Life) acquire(prompts int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.users++
	l.prompts += prompts
}

// release records that the handler has ended.
func (l *Life) release(prompts int) {
	l.mu.Lock()
	l.users--
	l.prompts -= prompts
	last := l.closed && l.users == 0
	l.mu.Unlock()
	if last {
		l.end()
	}
}

// busy reports whether a prompt is running, waiting or about to run.
func (l *Life) busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.prompts > 0
}

// Close ends the session. It is freed when no handler uses it any longer.
func (l *Life) Close() {
	l.mu.Lock()
	first := !l.closed
	l.closed = true
	last := first && l.users == 0
	l.mu.Unlock()
	if first {
		l.cancel(ErrSessionClosed)
	}
	if last {
		l.end()
	}
}

// end frees the session. It is called once.
func (l *Life) end() {
	defer close(l.freed)
	defer func() {
		if l.gone != nil {
			l.gone()
		}
	}()
	l.free()
}
