package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// New returns a connection, which does nothing before Start.
func New() *Conn {
	return &Conn{
		requests:      map[string]*Route{},
		notifications: map[string]*Route{},
		done:          make(chan struct{}),
		decode:        codec.NewDecoder(nil),
		sniff:         codec.NewDecoder(nil),
		sessions:      map[string]*worker{},
		inbound:       map[ID]*incoming{},
		calls:         callsInFlight{nested: map[*nestedCall]struct{}{}, stalled: map[bell]struct{}{}},
	}
}

// Start starts the connection over stream, which it owns from then on, and serves routes. Handlers get the values of
// ctx, but do not end with it.
func (c *Conn) Start(ctx context.Context, stream wire.Stream, routes []Route, cfg Config) {
	c.opts = cfg.withDefaults()
	c.decode.SetMaxItems(max(1, c.opts.MaxBytes/messagePart/itemWeight))
	c.base, c.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	c.load.room = newBell()
	c.load.limits = queueLimits{bytes: c.opts.QueueBytes, most: c.opts.QueueLimit, sessions: c.opts.MaxRequests}
	c.loops.limits, c.loops.calls, c.loops.closing = &c.load.limits, &c.calls, c.base.Done()
	c.reserving.max = int64(c.opts.MaxBytes / answersPart)
	for _, r := range routes {
		switch {
		case !r.Notification:
			c.requests[r.Method] = &r
		case r.decode != nil: // made by a constructor
			c.notifications[r.Method] = &r
		}
	}
	c.wire = wire.NewConn(stream, wire.Config{
		Handler:   &reader{Conn: c, gathered: gathered{conn: c}},
		Logger:    c.opts.Logger,
		Drain:     c.opts.DrainTime,
		SkipNoise: c.opts.SkipNoise,
		Flood:     max(c.opts.MaxBytes/floodPart, minFlood),
		Repair: func(method, member string) {
			c.ReportRepair(method, codec.Repair{Pointer: "/" + member, Msg: "null read as absent"})
		},
	})
	c.wire.Run()
	go c.supervise()
}

// supervise ends the connection after Close has been called or the peer has ended the stream. DrainTime starts at the
// end of the stream, and CloseTime when the contexts of the handlers end.
func (c *Conn) supervise() {
	defer close(c.done)
	if c.opts.End != nil {
		defer c.opts.End()
	}
	select {
	case <-c.wire.Done():
		// Messages received before are still handled.
		ctx, cancel := context.WithDeadline(c.base, c.drainUntil())
		c.awaitQueues(ctx)
		cancel()
	case <-c.base.Done():
	}
	c.tasks.stop()
	c.mu.Lock()
	c.cause = c.wire.Err()
	c.mu.Unlock()
	c.cancel(c.ending())
	c.dropQueues()

	ctx, cancel := context.WithTimeout(context.Background(), c.opts.CloseTime)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.tasks.Wait()
	}()
	select {
	case <-ended: // the handlers have answered
	case <-ctx.Done():
	}
	err := c.wire.Close(ctx)
	select {
	case <-ended:
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeErr = err
	c.stuck = !isClosed(ended)
}

// drainUntil returns the time until which messages received before the end of the stream are still handled.
func (c *Conn) drainUntil() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.readEnd.IsZero() { // sending has failed, and that time has been allowed
		return time.Now()
	}
	return c.readEnd.Add(c.opts.DrainTime)
}

// Close ends the connection: it cancels the handlers, lets them answer, sends what is pending, closes the stream, and
// waits until everything has ended. Handlers and unsent messages together get Config.CloseTime; closing the stream
// takes additional time, for a subprocess for example. The error matches ErrStuck if handlers are still running after
// that, or says why the stream could not be closed properly. Further calls wait for the same end.
func (c *Conn) Close() error {
	c.cancel(ErrClosed)
	<-c.done
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := errors.Join(c.running(), c.closeErr); err != nil {
		return fmt.Errorf("acp: closing: %w", err)
	}
	return nil
}

// Done returns a channel that is closed when the connection is over and all of its goroutines have ended, except
// handlers that have not ended within CloseTime.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Wait waits until Done is closed. It returns nil if Close ended the connection, and otherwise an error that matches
// ErrClosed and wraps the cause, which is io.EOF if the peer ended it. It matches ErrStuck if handlers are still
// running.
func (c *Conn) Wait() error {
	<-c.done
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.running(), closedErr(c.cause))
}

// running returns an error that lists the requests whose handlers are still running; mu is held.
func (c *Conn) running() error {
	if !c.stuck {
		return nil
	}
	methods := map[string]bool{}
	for _, in := range c.inbound {
		methods[in.question.(*inbound).req.Method] = true
	}
	if len(methods) == 0 {
		return ErrStuck
	}
	return fmt.Errorf("%w: %s", ErrStuck, echoed(strings.Join(slices.Sorted(maps.Keys(methods)), ", ")))
}

// dropQueues discards everything that is queued in all sessions.
func (c *Conn) dropQueues() {
	for _, q := range c.queues() {
		q.drop()
	}
}

// awaitQueues waits until everything that is queued has been handled.
func (c *Conn) awaitQueues(ctx context.Context) {
	for _, q := range c.queues() {
		select {
		case <-q.reached(q.position(), false):
		case <-ctx.Done():
			return
		}
	}
}

// queues returns the queues of all sessions.
func (c *Conn) queues() []*queue {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*queue, 0, len(c.sessions))
	for _, w := range c.sessions {
		all = append(all, &w.queue)
	}
	return all
}
