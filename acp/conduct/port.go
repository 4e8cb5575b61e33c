package conduct

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/wire"
)

const (
	// soft is the length of a queue, in bytes, at which the ports that send to it are not read any more.
	soft = 1 << 20
	// hard is the same for ports whose own queue is at soft.
	hard = 16 << 20
	// stallTime is how long a port may wait at hard.
	stallTime = time.Minute
	// batch is how many bytes are collected for one write.
	batch = 64 << 10
	// maxCalls is how many requests may be in flight to a component: one that never answers must not fill the memory.
	maxCalls = 10_000
	// maxID is how long the id of a request may be, in bytes, because it is kept until the answer.
	maxID = 1 << 10
	// maxWarnings is how many warnings the log has about what a port sends: a component must not fill it.
	maxWarnings = 100
	// lingerTime is how long after a failed write the component's output may end; that end has the better reason.
	lingerTime = time.Second
)

// port is the conductor's connection to the client or to a component.
type port struct {
	Component
	index  int
	place  string          // in the chain, for traces and errors
	stream wire.FastStream // nil before it has started

	calls      map[int64]*call  // requests to it in flight, by the conductor's ids
	requests   map[rpc.ID]*call // requests from it in flight, by its own ids
	initialize *call            // the initialize to it that is in flight, as a successor
	below      *rpc.ID          // of a proxy: the protocolVersion in its successor's answer to the last initialize
	noisy      bool             // something that was not a message was logged
	warnings   int
	touched    []*port // appended to since the reader has flushed

	pending []byte // appended, not taken by the writer
	spare   []byte
	writing int        // bytes that the writer has taken
	handed  bool       // pending is the writer's to take
	wake    *sync.Cond // handed was set, or the chain is over
	written chan struct{}
}

// String returns the name of the port for people.
func (p *port) String() string { return label(p.place, p.Name) }

// queued is the length of the queue: bytes that the other side has not taken.
func (p *port) queued() int { return len(p.pending) + p.writing }

// read reads a connection until it ends. After the end of the chain it drops what it reads, so that a component can
// write what it has, and end.
func (c *chain) read(p *port) {
	flush := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.flush(p.touched...)
		p.touched = p.touched[:0]
		c.writeTrace()
	}
	for {
		line, err := p.stream.ReadLine(flush)
		if !c.take(p, line, err) {
			return
		}
	}
}

// take forwards one message, and waits until the next one may be read. It reports false at the end of the connection.
func (c *chain) take(p *port, line []byte, err error) (more bool) {
	dropped, goesOn := wire.AsUnread(err)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.over:
		if p == c.client() && err == nil && c.err != nil {
			c.tooLate(line)
		}
		return err == nil || goesOn
	case err == nil:
		c.message(p, line)
	case goesOn:
		c.unread(p, dropped)
	default:
		c.flush(p.touched...)
		c.endOf(p, err)
		return false
	}
	if c.finish {
		c.end(nil)
	}
	if len(c.trace) >= batch {
		c.writeTrace()
	}
	for _, to := range p.touched {
		if to.queued() >= batch {
			c.flush(to)
		}
		c.awaitRoom(p, to)
	}
	return true
}

// endOf ends the chain because a connection has ended.
func (c *chain) endOf(p *port, err error) {
	switch {
	case p != c.client():
		c.end(c.failure(p, err))
	case !errors.Is(err, io.EOF):
		c.end(c.failure(p, err))
	case !c.waits(p):
		c.end(nil)
	default:
		c.draining = true
		drain := c.options.DrainTime
		if c.ports[1].initialize != nil {
			drain *= 10 // programs start more slowly than they answer
		}
		c.endAfter(drain, nil)
	}
}

// awaitRoom waits until p, which has added to the queue of another port, may be read again. If a circle of ports waited
// for each other at soft, all their queues would be at soft, and so none of them waits there: see rule 7 of the
// package.
func (c *chain) awaitRoom(p, to *port) {
	full := func() bool {
		if to == p || p.queued() >= soft {
			return to.queued() >= hard
		}
		return to.queued() >= soft
	}
	if c.over || !full() {
		return
	}
	c.flush(p.touched...)
	var stalled *time.Timer
	for !c.over && full() {
		if mutual := p.queued() >= soft; mutual && stalled == nil {
			stalled = time.AfterFunc(stallTime, func() {
				c.mu.Lock()
				defer c.mu.Unlock()
				if !full() {
					return // it was read at the last moment
				}
				c.end(c.failure(to, fmt.Errorf("does not read: %d bytes wait for it, and %d for %s", to.queued(), p.queued(), p)))
			})
		} else if !mutual && stalled != nil {
			stalled.Stop()
			stalled = nil
		}
		c.room.Wait()
	}
	if stalled != nil {
		stalled.Stop()
	}
}

// append adds a line to the queue of a port, on behalf of the reader of another one.
func (c *chain) append(from, to *port, line func([]byte) []byte) {
	before := to.queued()
	to.pending = append(line(to.pending), '\n')
	if before < soft && to.queued() >= soft {
		c.room.Broadcast() // its reader may continue
	}
	if !slices.Contains(from.touched, to) {
		from.touched = append(from.touched, to)
	}
}

// flush passes the queues to the writers.
func (c *chain) flush(ports ...*port) {
	for _, p := range ports {
		if p.stream == nil || len(p.pending) == 0 || p.handed || p.writing > 0 {
			continue // it is sent when the port has started, or by the writer
		}
		p.handed = true
		p.wake.Signal()
	}
}

// tooLate answers a request of the client that has arrived after the end of the chain, if the client reads its answers.
func (c *chain) tooLate(line []byte) {
	if m := wire.Parse(c.decode, line); m.Kind == wire.KindRequest && c.client().queued() < soft {
		c.reject(c.client(), &m, failureOf(c.err))
		c.flush(c.client())
		c.writeTrace()
	}
}

// write writes to a connection until the chain is over and nothing is left; to the client until the components are
// closed.
func (c *chain) write(p *port) {
	defer close(p.written)
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		for len(p.pending) == 0 || !p.handed && !c.over {
			if c.over && (p != c.client() || c.closed) {
				return
			}
			p.wake.Wait()
		}
		lines := p.pending
		p.pending, p.spare, p.writing = p.spare[:0], nil, len(lines)
		var err error
		for rest := lines; len(rest) > 0 && err == nil; { // in parts, so that a slow reader is seen to read
			part := rest
			if len(rest) > soft {
				part = rest[:soft+bytes.IndexByte(rest[soft:], '\n')+1]
			}
			c.mu.Unlock()
			err = p.stream.WriteLines(part)
			c.mu.Lock()
			rest = rest[len(part):]
			p.writing = len(rest)
			c.room.Broadcast()
		}
		p.writing, p.handed = 0, len(p.pending) > 0
		if cap(lines) <= soft {
			p.spare = lines
		}
		c.room.Broadcast()
		if err != nil {
			c.endAfter(lingerTime, c.failure(p, err))
			return
		}
	}
}

// unread handles a message that the stream has dropped.
func (c *chain) unread(p *port, u wire.Unread) {
	switch {
	case u.ID.IsNull():
		c.warn(p, "dropped a message", "error", u.Err)
	case u.Response:
		c.fail(p, u.ID, u.Failure())
	default:
		c.refuse(p, u.ID, u.Failure())
	}
}

// fail ends the conductor's request to a component with an error in place of the answer.
func (c *chain) fail(p *port, id rpc.ID, err error) {
	if call := p.calls[number(id)]; call != nil {
		c.answer(call, failureOf(c.failure(p, err)))
	} else {
		c.warn(p, "dropped an answer that matches no request", "error", err)
	}
}

// warn logs that something which a port has sent was dropped.
func (c *chain) warn(p *port, message string, args ...any) {
	if p.warnings++; p.warnings > maxWarnings {
		return
	}
	from := []any{"from", p.String()}
	c.log.Warn(message, append(from, args...)...)
	if p.warnings == maxWarnings {
		c.log.Warn("more of this is not logged", from...)
	}
}

// refuse answers a message with an error of the conductor itself.
func (c *chain) refuse(p *port, id rpc.ID, e *wire.Error) {
	c.append(p, p, func(dst []byte) []byte { return append(dst, wire.ErrorLine(id, e)...) })
}
