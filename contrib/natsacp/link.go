package natsacp

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
)

// link connects a client with an agent, for one session at most.
//
// Two goroutines work for it: one opens it and sends (run), and one handles its subscription (receive).
type link struct {
	client *client
	// What it is for. It is set before the link starts.
	begins  beginning
	attach  *Session        // the agent may still run
	session string          // or set when it is known
	params  json.RawMessage // of the request that opened the session
	resume  bool            // that was session/resume

	// Guarded by client.mu, as are all but those at the end.
	id     string
	node   string // where the agent is
	gen    uint64 // 0 until it is known, and nothing is received
	phase  phase
	use    use
	filter filter
	out    queue
	missed missed    // what follows the answer to session/resume
	joined uint64    // where in the stream the client has joined an agent that runs
	why    string    // it is over
	heard  time.Time // when the node was last known to have the link
	wake   chan struct{}
	ctx    context.Context // ends when it is over
	cancel context.CancelFunc

	sent uint64 // frames of data; run's

	incoming
}

// beginning is what a new agent gets before the client's messages.
type beginning int

const (
	introduced beginning = iota // initialize
	restored                    // initialize, and the request that restores the session
	plain                       // nothing: the client's initialize is the first message
)

// phase is how far a link is on its way to its end.
type phase int

const (
	seeking phase = iota // an agent
	live
	moved // the node gives the session up, and answers what is being sent
	over
)

// use is what a link has of a session.
type use int

const (
	vacant use = iota
	reserved
	taken // the client has the session
)

// filter is what does not reach the client.
type filter int

const (
	everything filter = iota // passes
	noUpdates                // until a request of the gateway's own is answered: the client has them
	answers                  // only they pass, until that to session/resume, which is followed by the rest
)

// start starts a link; mu is held.
func (c *client) start(l *link) *link {
	l.client, l.out = c, newQueue()
	l.wake, l.decoder = make(chan struct{}, 1), codec.NewDecoder(nil)
	l.ctx, l.cancel = context.WithCancel(c.ctx)
	c.work.Go(l.run)
	return l
}

// timeout bounds one step of opening a link.
func (l *link) timeout() (context.Context, context.CancelFunc) {
	return context.WithTimeout(l.ctx, l.client.gateway.opts.OpenTimeout)
}

// add queues a message; mu is held.
func (l *link) add(it item) {
	l.out.add(it)
	signal(l.wake)
}

// errStopped is why a link ends when its client has.
var errStopped = errors.New("the client has ended")

// run opens the link, and sends what is queued.
func (l *link) run() {
	c := l.client
	sub, err := l.open()
	for err == nil {
		select {
		case <-l.wake:
			err = l.flush()
		case <-l.ctx.Done():
			err = errStopped
		}
	}
	c.mu.Lock()
	leave := l.phase == live || l.phase == moved // the node may still have the link
	c.mu.Unlock()
	if c.ctx.Err() == nil {
		l.finish(err)
	}
	l.cancel()
	if sub == nil {
		return
	}
	if leave {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if _, _, err := l.request(ctx, frame{kind: frameDetach, gen: l.gen}); err != nil {
			c.gateway.log.Debug("natsacp: a node does not answer", "node", l.node, "error", err)
		}
	}
	_ = sub.Unsubscribe() // it fails only when the connection is closed
}

// check ends the link if its node is not alive or does not have it.
func (l *link) check(nodes map[string]bool) {
	c := l.client
	c.mu.Lock()
	node, waits, silent := l.node, len(l.out.pending) > 0, time.Since(l.heard) > c.gateway.fleet.lease
	begun := l.phase != seeking
	c.mu.Unlock()
	switch {
	case !begun || !silent:
	case !nodes[node]:
		l.finish(errLost(node))
	case waits:
		c.work.Go(func() {
			ctx, cancel := context.WithTimeout(c.ctx, c.gateway.fleet.lease)
			defer cancel()
			reply, _, err := l.request(ctx, frame{kind: frameTaken, gen: l.gen})
			if err == nil && reply[0] != replyOK {
				l.finish(errNone)
			}
		})
	}
}

// finish ends the link. Requests that the agent may have are answered with an error. What was not sent yet continues
// elsewhere.
func (l *link) finish(why error) {
	c := l.client
	c.mu.Lock()
	if l.phase == over {
		c.mu.Unlock()
		return
	}
	// a node that gives a session up has answered what it had
	_, unsent := errors.AsType[unsentError](why)
	next := l.out.rest(unsent || l.phase == moved)
	l.phase, l.why = over, why.Error()
	l.cancel()
	delete(c.links, l.id)
	failure := rpc.ErrorOf(why)
	_, public := errors.AsType[*rpc.Error](why)
	if !public {
		failure = rpc.ErrInternal.WithMessagef("interrupted: %s", why)
	}
	late := len(next) > 0 && time.Since(next[0].since) > c.gateway.opts.OpenTimeout
	if public || late || c.ctx.Err() != nil { // it could not be opened: neither could another one
		next = nil
	}
	for _, it := range next {
		if it.request {
			delete(l.out.pending, it.id)
		}
	}
	var text []byte
	for id, it := range l.out.pending {
		if it.answer == nil {
			c.trace.failed(id, failure)
			text = append(append(text, errorLine(id, failure)...), '\n')
		}
	}
	l.out = newQueue()
	if len(next) > 0 {
		c.again(l, next...)
	}
	c.room.Broadcast()
	c.mu.Unlock()
	if len(text) > 0 {
		c.write(text)
	}
}
