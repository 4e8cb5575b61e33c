package natsacp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/acpgo/sdk/internal/wire"
)

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
	if it.method == wire.MethodCancelRequest {
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
