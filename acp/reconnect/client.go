package reconnect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/internal/wire"
)

// Options configures how a lost connection is restored. A nil *Options, and the zero value of each field, mean the
// defaults.
type Options struct {
	// Budget is how long the Client tries to reconnect, from when the connection was lost; anything not restored by
	// then is given up. The default is 10 min. It must be longer than the server takes to notice that a client is gone,
	// which is 5 min with package remote; otherwise the Client gives up sessions that are still alive on the server.
	//
	// An agent that repeatedly ends soon after it starts is given up too: when more than ten connections in a row have
	// not lasted for MaxBackoff, and Budget has passed since the first of them was lost.
	Budget time.Duration
	// MinBackoff and MaxBackoff bound the wait before each try: it starts at 1 s, grows by half each time, up to 30 s,
	// and a random part of it is used. The wait is reset when a connection has lasted for MaxBackoff.
	MinBackoff, MaxBackoff time.Duration
	// Retry reports whether to try again after connecting failed with err. The default is Temporary.
	Retry func(err error) bool
	// RetryPrompts sends a prompt again whose connection was lost before its answer arrived, with an idempotency key, so
	// that the agent runs it once. The answer is then that of the turn, wherever it ended. Agents of version 2 have such
	// keys, if their transport is a translation with translate.Options.Keys, which are the same for all connections; so
	// have agents of package agentkit with a store, and fleets of package natsacp. Any other prompt is not sent again.
	// Behind a translation, a session that has a prompt in progress is restored with session/load, whose replay shows
	// whether the agent has it. If the turn ended and nobody knows how, the prompt fails with an *InterruptedError.
	RetryPrompts bool
	// Connected is called with each new connection before its sessions are restored, for example to authenticate. An
	// error counts as a failure to connect.
	Connected func(ctx context.Context, conn *acp.ClientConn) error
	// Servers, if it is set, is called once for each new connection, after Connected. It returns the MCP servers of this
	// program, such as those of mcpacp.Provider.For, which have a new address on each connection. Every session that
	// the Client creates, loads, resumes or restores on the connection has them in addition to those of its request. An
	// error counts as a failure to connect.
	Servers func(ctx context.Context, conn *acp.ClientConn) ([]acp.MCPServer, error)
	// Login, if it is set, logs in to the agent of the connection when opening a session fails with acp.ErrAuthRequired;
	// the session is then opened again, if Login has closed the connection on the next one. launch.Login returns such a
	// function.
	Login func(ctx context.Context, conn *acp.ClientConn) error
	// Notify is called with each event, in order. It must be quick.
	Notify func(ctx context.Context, e Event)
}

// ErrNotConnected is the error of a method of a Client or a Session that would wait for a new connection and is called
// by what that connection waits for: Options.Connected, Servers or Notify, or a handler that serves the connection
// before its sessions are restored. Their contexts carry this fact; it is not found with another context. Use the
// connection that the function has as its argument, or call the method in another goroutine with another context.
var ErrNotConnected = errors.New("reconnect: this call would wait for itself: the connection is made when the " +
	"function that calls it has returned")

// Temporary reports whether a later attempt to connect may succeed, given that one failed with err. It reports false if
// the agent refused initialize, speaks another version, is not a program that can be started, or cannot do what
// Options.Connected or Servers need, or if a server refused the client.
func Temporary(err error) bool {
	if final, ok := errors.AsType[interface {
		error
		Final() bool
	}](err); ok {
		return !final.Final()
	}
	_, version := errors.AsType[*acp.VersionError](err)
	_, refused := errors.AsType[*acp.CallError](err)
	_, program := errors.AsType[*exec.Error](err)
	return !version && !refused && !program && !errors.Is(err, acp.ErrUnsupported) && !errors.Is(err, ErrNotConnected)
}

// Kind is the kind of an Event.
type Kind int

// The kinds of events.
const (
	// Lost: the connection was lost. Err is the reason, and Interrupted lists the calls that were in progress.
	Lost Kind = iota + 1
	// Waiting: the next try is made after Wait. Err is the reason why the last one failed, if there was one.
	Waiting
	// Replaying: Session is about to be loaded; its history arrives again as updates, so the client should clear what
	// it has shown of it.
	Replaying
	// Restored: Session is restored; Differences lists what has changed in it. Without a Session: the connection is
	// restored, with all sessions that could be restored.
	Restored
	// SessionLost: Session could not be restored. Err is the reason. If it matches acp.ErrAuthRequired, the user may
	// log in and load the session again.
	SessionLost
	// GaveUp: the Client is over. Err is the reason.
	GaveUp
)

var kindNames = [...]string{"", "lost", "waiting", "replaying", "restored", "session lost", "gave up"}

// String returns the kind in one or two words.
func (k Kind) String() string {
	if k > 0 && int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// Event is something that a user may want to know; see Kind for which fields are set.
type Event struct {
	Kind        Kind
	Session     acp.SessionID
	Err         error
	Wait        time.Duration
	Interrupted []Interrupted
	Differences []Difference
}

// Difference is a setting of a session that the agent did not keep when the connection was lost, and whose value now
// differs from the previous one.
type Difference struct {
	// Mode reports whether the setting is the session's mode; otherwise Option is the id of the config option.
	Mode   bool
	Option acp.SessionConfigID
	// Was and Is are the old and the new value: the id of the mode, or the value of the option, where booleans are
	// "true" or "false".
	Was, Is string
}

// Interrupted is a call that was in progress when a connection was lost. It is not sent again, unless it is a prompt
// and Options.RetryPrompts says so.
type Interrupted struct {
	// Method is the method of the call: session/prompt is a turn, session/request_permission a question to the user.
	Method string
	// Session is the session of the call, or "".
	Session acp.SessionID
	// Incoming reports whether the agent made the call.
	Incoming bool
}

// InterruptedError is the error of a prompt whose connection was lost before its answer arrived, and whose outcome is
// not known. The agent may have done all or part of the work. It matches acp.ErrClosed.
type InterruptedError struct {
	// Session is the session.
	Session acp.SessionID
	// Err is the error that ended the connection.
	Err error
}

// Error implements the error interface.
func (e *InterruptedError) Error() string {
	return fmt.Sprintf("the turn of session %s was interrupted, and may be done in part: %v", e.Session, e.Err)
}

// Unwrap returns Err.
func (e *InterruptedError) Unwrap() error { return e.Err }

// Client is a client that reconnects to its agent when the connection is lost. Its methods are safe for concurrent use.
// It has one goroutine, which Close waits for.
type Client struct {
	transport func(context.Context) (acp.Transport, error)
	handlers  acp.ClientHandlers
	opts      acp.ClientOptions
	options   Options

	life context.Context
	end  context.CancelCauseFunc
	done chan struct{}

	mu          sync.Mutex
	link        *link         // nil while there is none
	change      chan struct{} // closed when conn changes, or the Client is over
	err         error         // why the Client is over
	sessions    []*Session    // in the order in which they were opened
	calls       int           // number of calls in progress
	interrupted []Interrupted // calls interrupted since the connection was made
}

// link is a connection, or an attempt to make one.
type link struct {
	client  *Client
	conn    *acp.ClientConn
	servers []acp.MCPServer // of Options.Servers
	ready   bool            // the sessions are restored; guarded by the client's mu
}

// linkKey is the key, in contexts, of the *link that waits for the function that has the context.
type linkKey struct{}

// within returns ctx for functions that the link waits for.
func (l *link) within(ctx context.Context) context.Context {
	return context.WithValue(ctx, linkKey{}, l)
}

// with returns MCP servers of a session with those of Options.Servers.
func (l *link) with(servers []acp.MCPServer) []acp.MCPServer {
	return slices.Concat(servers, l.servers)
}

// Connect connects to an agent. The function transport is called for each connection, and returns its transport: that
// of remote.Dial, which can connect many times, or that of acp.Command, which must be a new one each time. handlers and
// opts are those of acp.Connect; ctx bounds the first connection, whose error is returned. A handler finds the
// connection of its call in its session.
func Connect(
	ctx context.Context, transport func(context.Context) (acp.Transport, error),
	handlers acp.ClientHandlers, opts *acp.ClientOptions, options *Options,
) (*Client, error) {
	c := &Client{transport: transport, handlers: handlers, done: make(chan struct{}), change: make(chan struct{}),
		opts: *cmp.Or(opts, &acp.ClientOptions{}), options: *cmp.Or(options, &Options{})}
	p := &c.options
	p.Budget = cmp.Or(p.Budget, 10*time.Minute)
	p.MinBackoff = cmp.Or(p.MinBackoff, time.Second)
	p.MaxBackoff = cmp.Or(p.MaxBackoff, 30*time.Second)
	if p.Retry == nil {
		p.Retry = Temporary
	}
	l, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.link, l.ready = l, true
	c.mu.Unlock()
	c.life, c.end = context.WithCancelCause(context.WithoutCancel(ctx))
	go c.run(l.conn)
	return c, nil
}

// watch wraps a hook so that calls interrupted by the end of a connection are recorded, and handlers find their link.
func (l *link) watch(hook rpc.Middleware) rpc.Middleware {
	c := l.client
	return func(ctx context.Context, call *rpc.CallInfo, next func(context.Context) error) error {
		if call.Incoming {
			ctx = l.within(ctx)
		}
		watched := func(ctx context.Context) error {
			if call.Notification {
				return next(ctx)
			}
			c.mu.Lock()
			c.calls++
			c.mu.Unlock()
			err := next(ctx)
			c.mu.Lock()
			defer c.mu.Unlock()
			if errors.Is(err, acp.ErrClosed) || call.Incoming && errors.Is(context.Cause(ctx), acp.ErrClosed) {
				c.interrupted = append(c.interrupted, Interrupted{call.Method, acp.SessionID(call.Session), call.Incoming})
			}
			if c.calls--; c.calls == 0 {
				c.changed()
			}
			return err
		}
		if hook == nil {
			return watched(ctx)
		}
		return hook(ctx, call, watched)
	}
}

// connectTimeout is the default of acp.ClientOptions.ConnectTimeout.
const connectTimeout = 2 * time.Minute

func (c *Client) connect(ctx context.Context) (*link, error) {
	// The bound for all tries together must not bound a single one.
	timeout := cmp.Or(max(c.opts.ConnectTimeout, 0), connectTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout,
		fmt.Errorf("no answer within %v: %w", timeout, context.DeadlineExceeded))
	defer cancel()
	transport, err := c.transport(ctx)
	if err != nil {
		return nil, err
	}
	l, opts := &link{client: c}, c.opts
	if c.options.RetryPrompts {
		opts.Initialize = func(req *acp.InitializeRequest) {
			_ = req.ClientCapabilities.Meta.Set(translate.MetaIdempotencyKey, true) // a bool can be written
			if c.opts.Initialize != nil {
				c.opts.Initialize(req)
			}
		}
	}
	hooks := &opts.Conn.Hooks
	hooks.Call, hooks.Serve = l.watch(hooks.Call), l.watch(hooks.Serve)
	if l.conn, err = acp.Connect(ctx, ending{transport, c.ends}, c.handlers, &opts); err != nil {
		return nil, err
	}
	if c.options.Connected != nil {
		err = c.options.Connected(l.within(ctx), l.conn)
	}
	if err == nil && c.options.Servers != nil {
		l.servers, err = c.options.Servers(l.within(ctx), l.conn)
	}
	if err != nil {
		return nil, errors.Join(err, l.conn.Close())
	}
	return l, nil
}

// ending is a transport that reports when its stream ends. The connection is over only later, when its handlers have
// ended; calls made in between could only fail.
type ending struct {
	acp.Transport
	ended func()
}

func (t ending) Connect(ctx context.Context) (rpc.Stream, error) {
	stream, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return rpc.Wrap(stream, rpc.Wrapper{Read: func(next func() ([]byte, error), _ func()) ([]byte, error) {
		line, err := next()
		if err != nil {
			if _, goesOn := wire.AsUnread(err); !goesOn {
				t.ended()
			}
		}
		return line, err
	}}), nil
}

// ends records that no more messages arrive on the connection. A new connection is made only once it is over.
func (c *Client) ends() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link = nil
}

// run waits until the connection is lost, and makes another, until the Client is over.
func (c *Client) run(conn *acp.ClientConn) {
	defer close(c.done)
	tries, losses := 0, 0
	var since time.Time // time of the first of these losses
	for {
		made := time.Now()
		select {
		case <-conn.Done():
		case <-c.life.Done():
			c.finish(context.Cause(c.life), conn.Close())
			return
		}
		lost := time.Now()
		if losses++; losses == 1 || lost.Sub(made) >= c.options.MaxBackoff {
			tries, losses, since = 0, 1, lost
		}
		why := cmp.Or(conn.Wait(), error(acp.ErrClosed))
		c.ends()
		c.settle()
		c.mu.Lock()
		event := Event{Kind: Lost, Err: why, Interrupted: c.interrupted}
		c.interrupted = nil
		c.mu.Unlock()
		c.notify(event)
		var err error
		if losses > maxLosses && lost.Sub(since) >= c.options.Budget {
			err = fmt.Errorf("the connection was lost %d times in a row, each time soon after connecting", losses)
		} else {
			conn, tries, err = c.reconnect(lost.Add(c.options.Budget), tries)
		}
		if err != nil {
			if over := context.Cause(c.life); over == nil {
				err = fmt.Errorf("%w: %w", why, err)
				c.notify(Event{Kind: GaveUp, Err: err})
			} else {
				err = over
			}
			c.finish(err, nil)
			return
		}
	}
}

// maxLosses is how many connections in a row may be lost soon after they were made, however long that takes.
const maxLosses = 10

// settle waits until the calls on a connection that is over have returned, which they do at once, unless a handler does
// not end.
func (c *Client) settle() {
	ctx, cancel := context.WithTimeout(c.life, settleTime)
	defer cancel()
	// Calls that have not returned by then are not reported.
	_ = c.await(ctx, func() bool { return c.calls == 0 })
}

const settleTime = time.Second

// reconnect connects and restores the sessions, until that succeeds or is hopeless.
func (c *Client) reconnect(deadline time.Time, tries int) (*acp.ClientConn, int, error) {
	ctx, cancel := context.WithDeadlineCause(c.life, deadline, errors.New("reconnecting took too long"))
	defer cancel()
	var last error
	for {
		wait := c.backoff(tries)
		tries++
		c.notify(Event{Kind: Waiting, Wait: wait, Err: last})
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, tries, errors.Join(context.Cause(ctx), last)
		}
		l, err := c.connect(ctx)
		if err == nil {
			if err = c.restore(ctx, l); err == nil {
				return l.conn, tries, nil
			}
			err = errors.Join(err, l.conn.Close())
		}
		if ctx.Err() != nil {
			return nil, tries, errors.Join(context.Cause(ctx), last)
		}
		if last = err; !c.options.Retry(err) {
			return nil, tries, err
		}
	}
}

// backoff returns the time to wait before a try, part of it random, so that clients do not reconnect all at once.
func (c *Client) backoff(tries int) time.Duration {
	longest := float64(c.options.MinBackoff) * math.Pow(1.5, float64(tries))
	return rand.N(time.Duration(min(longest, float64(c.options.MaxBackoff))) + 1)
}

// restore restores the sessions on a new connection. An error is one of the connection.
func (c *Client) restore(ctx context.Context, l *link) error {
	for {
		s := c.stale(l)
		if s == nil {
			c.notify(Event{Kind: Restored})
			return nil
		}
		current, err := s.restore(ctx, l)
		closed := errors.Is(err, acp.ErrClosed) || ctx.Err() != nil
		switch {
		case err == nil:
			differences := s.become(current, nil)
			s.crashes = 0
			c.notify(Event{Kind: Restored, Session: s.id, Differences: differences})
			continue
		case closed:
			if ctx.Err() != nil {
				return err
			}
			// A session that makes the agent end each time would prevent the others from being restored.
			if s.crashes++; s.crashes < maxCrashes {
				return err
			}
			err = fmt.Errorf("the connection ended %d times while restoring the session: %w", s.crashes, err)
		}
		c.forget(s)
		s.become(nil, fmt.Errorf("session %s could not be restored: %w", s.id, err))
		c.notify(Event{Kind: SessionLost, Session: s.id, Err: err})
		if closed {
			return err
		}
	}
}

// maxCrashes is how often in a row the connection may end while a session is being restored.
const maxCrashes = 3

// stale returns a session that has not been restored on a new connection. If there is none, it makes l the current
// connection.
func (c *Client) stale(l *link) *Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sessions {
		if s.current.Conn() != l.conn {
			return s
		}
	}
	c.link, l.ready = l, true
	c.interrupted = nil // the calls that restored sessions
	c.changed()
	return nil
}

// changed wakes the goroutines that wait for a connection; mu is held.
func (c *Client) changed() {
	close(c.change)
	c.change = make(chan struct{})
}

// finish ends the Client.
func (c *Client) finish(why, closing error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link = nil
	if c.err = why; !errors.Is(why, acp.ErrClosed) {
		c.err = fmt.Errorf("%w: %w", acp.ErrClosed, why)
	}
	if closing != nil {
		c.err = errors.Join(c.err, closing)
	}
	c.changed()
}

func (c *Client) notify(e Event) {
	if c.options.Notify != nil {
		c.options.Notify((&link{client: c}).within(c.life), e)
	}
}

// Conn returns the connection; while it is lost, Conn waits for a new one. Calls on it fail with acp.ErrClosed once it
// is lost. The error matches acp.ErrClosed if the Client is over, is ErrNotConnected if the call would wait for itself,
// or is the cause of ctx.
func (c *Client) Conn(ctx context.Context) (*acp.ClientConn, error) {
	l, err := c.connected(ctx)
	if err != nil {
		return nil, err
	}
	return l.conn, nil
}

// connected waits for a connection.
func (c *Client) connected(ctx context.Context) (l *link, err error) {
	err = c.await(ctx, func() bool {
		l = c.link
		return l != nil
	})
	return l, err
}

// await waits until ready returns true; ready is called with mu held.
func (c *Client) await(ctx context.Context, ready func() bool) error {
	waiting, _ := ctx.Value(linkKey{}).(*link)
	for {
		c.mu.Lock()
		err, change := c.err, c.change
		if err == nil && ready() {
			c.mu.Unlock()
			return nil
		}
		if err == nil && waiting != nil && waiting.client == c && !waiting.ready {
			err = ErrNotConnected
		}
		c.mu.Unlock()
		if err != nil {
			return err
		}
		select {
		case <-change:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Done returns a channel that is closed when the Client is over, because it was closed or gave up.
func (c *Client) Done() <-chan struct{} { return c.done }

// Wait waits until the Client is over. It returns nil after Close, and otherwise the reason why the Client gave up.
func (c *Client) Wait() error {
	<-c.done
	if context.Cause(c.life) == errClosed {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// errClosed reports that Close was called.
var errClosed = fmt.Errorf("%w by this side", acp.ErrClosed)

// Close ends the Client and its connection, and waits for both. A handler must not call it.
func (c *Client) Close() error {
	c.end(errClosed)
	<-c.done
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(c.err, rpc.ErrStuck) {
		return c.err
	}
	return nil
}
