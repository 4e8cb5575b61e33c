package natsacp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

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

// request sends a frame to the node until it is answered. It fails with nats.ErrNoResponders if there is no such node.
// tried reports that the node may have got it more than once, or, if it fails, once.
func (l *link) request(ctx context.Context, fr frame) (reply []byte, tried bool, err error) {
	subject := l.up()
	for n := 0; ; n++ {
		bound, cancel := context.WithTimeout(ctx, min(300*time.Millisecond<<min(n, 3), 2*time.Second))
		m, err := l.client.gateway.fleet.nc.RequestWithContext(bound, subject, fr.encode())
		cancel()
		switch {
		case err == nil && len(m.Data) > 0:
			return m.Data, n > 0, nil
		case errors.Is(err, nats.ErrNoResponders):
			return nil, n > 0, err
		case ctx.Err() != nil:
			return nil, true, err
		}
	}
}

// insist is request for as long as the node is alive.
func (l *link) insist(ctx context.Context, fr frame) (reply []byte, tried bool, err error) {
	for {
		bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		if fr.kind != frameAttach { // whoever is attached, and knows it, can detach
			context.AfterFunc(ctx, cancel)
		}
		reply, again, err := l.request(bound, fr)
		cancel()
		if tried = tried || again; err == nil || ctx.Err() != nil {
			return reply, tried, err
		}
		// It has died, or lost its connection.
		nodes, err := l.client.gateway.alive(ctx)
		if err == nil && !nodes[l.node] {
			return nil, tried, errLost(l.node)
		}
		if err := pause(ctx, lull); err != nil {
			return nil, tried, err
		}
	}
}

func errLost(node string) error { return fmt.Errorf("node %s has died", node) }

// up is the subject of the node for this link.
func (l *link) up() string {
	l.client.mu.Lock()
	defer l.client.mu.Unlock()
	return l.client.gateway.fleet.subject("up", l.node, l.id)
}

// flush sends what is queued.
func (l *link) flush() error {
	c := l.client
	for {
		c.mu.Lock()
		if l.phase == moved {
			c.mu.Unlock()
			return errMoved
		}
		data := l.out.take()
		c.room.Broadcast()
		c.mu.Unlock()
		if len(data) == 0 {
			return nil
		}
		if err := l.send(data); err != nil {
			return err
		}
	}
}

// send sends data to the node. It returns an unsentError if the node does not have any of it.
func (l *link) send(data []byte) error {
	begun := false
	for part := range slices.Chunk(data, l.client.gateway.fleet.payload()-64) { // for the frame
		l.sent++
		reply, tried, err := l.insist(l.ctx, frame{kind: frameData, gen: l.gen, seq: l.sent, data: part})
		switch {
		case err != nil:
		case reply[0] == replyMoved:
			return errMoved
		case reply[0] != replyOK:
			err = errNone
		}
		if err != nil && !tried && !begun {
			return unsentError{err}
		}
		if err != nil {
			return err
		}
		begun = true
	}
	return nil
}

// unsentError is why a link ends when the node does not have what was being sent.
type unsentError struct{ error }

// errMoved is why a link ends when its node gives the session up in good order.
var errMoved error = unsentError{errors.New("the session has moved")}

var errNone = errors.New("the node has lost the session")

// urge sends a cancellation, which does not wait behind what is queued after what it cancels.
func (l *link) urge(it item) {
	c := l.client
	c.mu.Lock()
	if (l.phase != live && l.phase != moved) || l.out.target(it) >= 0 {
		c.mu.Unlock()
		c.put(l, it)
		return
	}
	fr := frame{kind: frameCancel, gen: l.gen, arg: l.out.prompt, data: bytes.TrimSuffix(it.line, []byte{'\n'})}
	if it.method == methodCancelRequest {
		fr.arg = l.out.pending[it.id].number
	}
	l.out.urging++
	c.mu.Unlock()
	c.work.Go(func() {
		ctx, cancel := l.timeout()
		defer cancel()
		if _, _, err := l.request(ctx, fr); err != nil {
			c.gateway.log.Debug("natsacp: a cancellation was not sent", "error", err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		l.out.urging--
		signal(l.wake)
	})
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
