package conduct

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// A Component is a proxy or an agent.
type Component struct {
	// Name appears in errors and logs after the component's place in the chain, for example the program's name. It may be
	// empty.
	Name string
	// Transport connects to the component. It is opened once, when the client sends its first initialize, in a goroutine
	// of its own.
	Transport rpc.Transport
}

// Options configure Run. The zero value of each field works.
type Options struct {
	// Trace receives each message as a line of JSON; the help of the command acp conduct describes them. Secrets are not
	// masked. A writer that blocks stops the chain. An error ends the trace, not the chain.
	Trace io.Writer
	// Logger receives warnings about the chain that are not errors of Run. Nil means slog.Default.
	Logger *slog.Logger
	// InitTime is how long a component may take to start and to initialize its successor, and then to answer its own
	// initialize. The default is 2 minutes, because agents may be downloaded first.
	InitTime time.Duration
	// DrainTime is how long requests may still be answered after the client has ended its input; an initialize has ten
	// times as long. The default is 1 s.
	DrainTime time.Duration
}

// ComponentError reports which component has ended a chain.
type ComponentError struct {
	// Component is its place in the chain: proxy:0, proxy:1 and so on, or agent.
	Component string
	// Name is the Component's.
	Name string
	// Err is the reason. It is an *rpc.ExitError if the component was a subprocess that has ended.
	Err error
}

// Error returns the component and the reason.
func (e *ComponentError) Error() string { return label(e.Component, e.Name) + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *ComponentError) Unwrap() error { return e.Err }

// label returns the name of a component for people.
func label(place, name string) string {
	if name == "" {
		return place
	}
	return place + " (" + name + ")"
}

// Run connects to the client, and runs the chain of proxies and agent until the client or a component ends its
// connection, or ctx ends. It closes all connections before it returns. Without an agent the chain is a proxy, and the
// client is a conductor.
//
// The error is nil if the client has ended its input, and the cause of ctx if that has ended. A *ComponentError reports
// the component that has ended the chain.
func Run(ctx context.Context, client rpc.Transport, proxies []Component, agent *Component, opts *Options) error {
	if len(proxies) == 0 && agent == nil {
		return errors.New("a chain needs a proxy or an agent")
	}
	return newChain(client, proxies, agent, opts).run(ctx)
}

func newChain(client rpc.Transport, proxies []Component, agent *Component, opts *Options) *chain {
	c := &chain{began: time.Now(), decode: codec.NewDecoder(nil), inside: codec.NewDecoder(nil),
		ended: make(chan struct{}), options: *cmp.Or(opts, &Options{})}
	c.log = cmp.Or(c.options.Logger, slog.Default())
	c.options.InitTime = cmp.Or(c.options.InitTime, 2*time.Minute)
	c.options.DrainTime = cmp.Or(c.options.DrainTime, time.Second)
	c.room = sync.NewCond(&c.mu)
	c.add("client", Component{Transport: client})
	for i, proxy := range proxies {
		c.add(fmt.Sprintf("proxy:%d", i), proxy)
	}
	if agent != nil {
		c.add("agent", *agent)
		c.agent = c.ports[len(c.ports)-1]
	}

	c.initTimer = time.AfterFunc(c.options.InitTime, c.initTimeout)
	c.timers = append(c.timers, c.initTimer)
	return c
}

// run does the work of Run.
func (c *chain) run(ctx context.Context) error {
	defer func() {
		for _, timer := range c.timers {
			timer.Stop()
		}
	}()
	var cancel context.CancelFunc
	c.ctx, cancel = context.WithCancel(ctx)
	defer cancel()
	if err := c.connect(c.client()); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.end(context.Cause(ctx))
	})
	defer stop()
	<-c.ended
	cancel()
	c.starting.Wait()
	c.close()
	return c.err
}

// chain is a conductor. Everything in it and in its ports is guarded by mu, unless a comment says otherwise.
type chain struct {
	ctx      context.Context // for starting components
	options  Options
	log      *slog.Logger
	began    time.Time
	ports    []*port // the client, then the components
	agent    *port   // the last one, or nil: the client has the successor of the last proxy
	ended    chan struct{}
	starting sync.WaitGroup // components
	running  sync.WaitGroup // readers and writers

	mu        sync.Mutex
	room      *sync.Cond // a queue has become shorter, or full
	decode    *codec.Decoder
	inside    *codec.Decoder // for parts of messages
	lastID    int64          // one count for all hops: an id occurs once in the trace
	initTimer *time.Timer    // reset when an initialize is sent or answered
	initSince time.Time      // of the last reset
	started   bool
	draining  bool          // the client has ended its input
	timers    []*time.Timer // stopped by Run
	finish    bool          // the chain ends after this message
	over      bool
	closed    bool  // the components are, after the end
	err       error // of Run
	trace     []byte
}

func (c *chain) client() *port { return c.ports[0] }

func (c *chain) add(place string, component Component) {
	c.ports = append(c.ports, &port{
		Component: component,
		index:     len(c.ports),
		place:     place,
		calls:     map[int64]*call{},
		requests:  map[rpc.ID]*call{},
		wake:      sync.NewCond(&c.mu),
		written:   make(chan struct{}),
	})
}

// connect opens a connection. It is called without the lock.
func (c *chain) connect(p *port) error {
	stream, err := p.Transport.Connect(c.ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p.stream = wire.Fast(stream)
	c.flush(p)
	c.running.Go(func() { c.read(p) })
	c.running.Go(func() { c.write(p) })
	return nil
}

// start starts the components, each in a goroutine: a slow one must not block the others, or the end of the chain.
func (c *chain) start() {
	c.started = true
	for _, p := range c.ports[1:] {
		c.starting.Go(func() {
			if err := c.connect(p); err != nil {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.end(c.failure(p, fmt.Errorf("cannot start: %w", err)))
			}
		})
	}
}

// failure is an error of a component, or of the client.
func (c *chain) failure(p *port, err error) error {
	if p == c.client() {
		return fmt.Errorf("client: %w", err)
	}
	return &ComponentError{p.place, p.Name, err}
}

func (c *chain) endAfter(d time.Duration, err error) {
	c.timers = append(c.timers, time.AfterFunc(d, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.end(err)
	}))
}

// end ends the chain, for the first reason given. The requests of the client that are in flight fail with err.
func (c *chain) end(err error) {
	if c.over {
		return
	}
	if err == nil || c.ctx.Err() != nil {
		c.reportUnanswered()
	}
	if err != nil {
		e := failureOf(err)
		for _, call := range c.inFlight(c.client()) {
			if c.answer(call, e); c.client().queued() >= soft {
				e.Data = nil // thousands of requests must not repeat it
			}
		}
	}
	c.over, c.err = true, err
	c.flush(c.client())
	c.writeTrace()
	close(c.ended)
	c.room.Broadcast()
	for _, p := range c.ports {
		p.wake.Signal()
	}
}

// failureOf returns the error response for an error of the chain.
func failureOf(err error) *wire.Error {
	e := refusal(rpc.ErrInternal, err.Error())
	component, ok := errors.AsType[*ComponentError](err)
	if !ok {
		e.Message = "the conductor has ended: " + e.Message
		return e
	}
	data := struct {
		Component string `json:"component"`
		Name      string `json:"name,omitempty"`
		Status    string `json:"status,omitempty"`
		Stderr    string `json:"stderr,omitempty"`
	}{Component: component.Component, Name: component.Name}
	if exit, ok := errors.AsType[*rpc.ExitError](err); ok {
		data.Status, data.Stderr = exit.State.String(), exit.Stderr
	}
	e.Data, _ = json.Marshal(data) // strings can always be encoded
	return e
}

// reportUnanswered logs which components have not answered requests, how many, and the oldest. Requests whose method a
// component has itself requested were passed on, and are left out.
func (c *chain) reportUnanswered() {
	method := func(call *call) string { return strings.TrimPrefix(call.method, "proxy/") }
	for _, p := range c.ports {
		passed := map[string]bool{}
		for _, call := range c.inFlight(p) {
			passed[method(call)] = true
		}
		var oldest *call
		count := 0
		for _, call := range p.calls {
			if passed[method(call)] {
				continue
			}
			if count++; oldest == nil || call.n < oldest.n {
				oldest = call
			}
		}
		if oldest != nil {
			c.log.Warn("requests were not answered", "by", p.String(), "method", method(oldest), "count", count,
				"for", time.Since(oldest.began).Round(time.Millisecond))
		}
	}
}

// flushTime bounds how long the last messages of a chain that has ended may take to be written.
const flushTime = 2 * time.Second

// close closes all connections. The client's is last, so that requests which it makes meanwhile are answered.
func (c *chain) close() {
	flushed := func(p *port) {
		select {
		case <-p.written:
		case <-time.After(flushTime):
		}
	}
	var closing sync.WaitGroup
	c.mu.Lock()
	for _, p := range c.ports[1:] {
		if p.stream == nil {
			continue // it did not start
		}
		closing.Go(func() {
			flushed(p)
			if err := p.stream.Close(); err != nil {
				c.log.Warn("closing", "component", p.String(), "error", err)
			}
		})
	}
	c.mu.Unlock()
	closing.Wait()
	c.mu.Lock()
	c.closed = true
	c.client().wake.Signal()
	c.mu.Unlock()
	flushed(c.client())
	err := c.client().stream.Close()
	c.running.Wait()
	if err != nil && c.err == nil {
		c.err = c.failure(c.client(), err)
	}
}
