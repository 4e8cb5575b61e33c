package natsacp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// position is a place in the log: after the first lines of the frame that is stored there.
type position struct {
	link   string
	stored uint64 // the sequence number in the stream, or 0 if the place is not known
	lines  int
}

func (p position) String() string { return fmt.Sprintf("%d.%d.%s", p.stored, p.lines, p.link) }

func parsePosition(text string) (p position, ok bool) {
	n, err := fmt.Sscanf(text, "%d.%d.%s", &p.stored, &p.lines, &p.link)
	return p, n == 3 && err == nil && p.stored > 0 && p.lines >= 0 && checkName(p.link) == nil
}

// history is that of one HTTP stream. It is in memory for as long as the gateway has the connection. The cursors of a
// session's stream also say where in the log the client is, so that another connection can continue there, at any
// gateway, while the log has what follows.
type history struct {
	gateway *Gateway
	peer    *remote.Peer
	session string
	recent  remote.History
}

// position returns where in the log the client is.
func (h *history) position() string {
	c := h.gateway.client(h.peer)
	if c == nil || h.session == "" {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.positions[h.session]; at.stored > 0 {
		return at.String()
	}
	return ""
}

func mark(cursor, position string) string {
	if position == "" {
		return cursor
	}
	return cursor + "." + position
}

func (h *history) Start() string { return mark(h.recent.Start(), h.position()) }

func (h *history) Add(message []byte) string {
	at := h.position()
	return mark(h.recent.Add(append(append([]byte(at), ' '), message...)), at)
}

func (h *history) After(cursor string) (iter.Seq2[string, []byte], bool) {
	recent, tail, _ := strings.Cut(cursor, ".")
	missed, ok := h.recent.After(recent)
	if !ok {
		if !h.adopt(tail) {
			return nil, false
		}
		if missed, ok = h.recent.After(h.recent.Start()); !ok {
			return nil, false
		}
	}
	return func(yield func(string, []byte) bool) {
		for cursor, text := range missed {
			at, message, _ := bytes.Cut(text, []byte{' '})
			if !yield(mark(cursor, string(at)), message) {
				return
			}
		}
	}, true
}

// adopt makes the session continue where another connection has lost it, if the log has what follows.
func (h *history) adopt(text string) bool {
	c := h.gateway.client(h.peer)
	at, ok := parsePosition(text)
	if c == nil || h.session == "" || !ok {
		return false
	}
	f := h.gateway.fleet
	ctx, cancel := context.WithTimeout(c.ctx, 5*time.Second)
	defer cancel()
	r, err := f.session(ctx, c.principal, h.session)
	if err != nil || r == nil || r.Link != at.link && (r.Link != "" || r.Last != at.link) {
		return false
	}
	messages, err := f.read(ctx, f.log, f.subject("log", at.link), at.stored)
	if err != nil || len(messages) == 0 || sequence(messages[0]) != at.stored {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sessions[h.session] != nil {
		return false // it was resumed without the cursor
	}
	c.positions[h.session], c.missed[h.session] = at, missed{at, r.Epoch}
	return true
}

// missed is what a client has not received of a session: what follows a place in the log. epoch is that of the session
// when this was last known to be all.
type missed struct {
	position
	epoch uint64
}

// errMissed is why a session ends for a client that does not get what it has missed.
var errMissed = errors.New("messages were lost: the session ran on another node in the meantime")

func errGap(n uint64) error { return fmt.Errorf("%d parts of the session's messages are lost", n) }

// replay delivers what the client has missed of the session: from a place in the log to a frame, or to the end of the
// agent that wrote it. Answers are not passed, and requests only if they are after the frame where the client has
// joined: the node has sent those that are older again.
func (l *link) replay(from position, joined, end uint64) error {
	d := codec.NewDecoder(nil)
	var parts lines
	next := uint64(0)
	if end != 0 && from.stored >= end {
		return nil
	}
	for m, err := range l.client.gateway.fleet.follow(l.client.ctx, from.link, from.stored) {
		switch {
		case err != nil:
			return err
		case m.kind != frameData || end != 0 && m.stored >= end:
			return nil
		case next != 0 && m.seq != next:
			return errGap(m.seq - next)
		}
		next = m.seq + 1
		at := position{link: from.link, stored: m.stored}
		for line := range bytes.Lines(parts.add(m.data)) {
			if at.lines++; m.stored == from.stored && at.lines <= from.lines {
				continue
			}
			sent := wire.Peek(d, line)
			if sent.Kind == wire.KindNotification && string(sent.Method) != wire.MethodCancelRequest ||
				sent.Kind == wire.KindRequest && m.gen == l.gen && m.stored > joined {
				l.write(line, at)
			}
		}
		if m.stored+1 == end {
			return nil
		}
	}
	return nil
}

// logged is a frame in the log.
type logged struct {
	frame
	stored uint64 // where in the stream it is
}

// follow returns what the log of a link has from a place on. What does not arrive within a lease is lost: until then, a
// replica may be behind.
func (f *Fleet) follow(ctx context.Context, link string, from uint64) iter.Seq2[logged, error] {
	return func(yield func(logged, error) bool) {
		for begun := time.Now(); ; {
			messages, err := f.read(ctx, f.log, f.subject("log", link), from)
			for _, m := range messages {
				from = sequence(m) + 1
				if fr, ok := decodeFrame(m.Data); ok && !yield(logged{fr, from - 1}, nil) {
					return
				}
			}
			switch {
			case len(messages) > 0:
				continue
			case ctx.Err() != nil:
				err = context.Cause(ctx)
			case time.Since(begun) > f.lease:
				err = errors.Join(errors.New("messages were lost: the log does not have them"), err)
			default:
				err = pause(ctx, lull/10)
			}
			if err != nil {
				yield(logged{}, err)
				return
			}
		}
	}
}

// resumed continues a session whose session/resume was answered in the frame that is stored there.
func (l *link) resumed(stored uint64) {
	c := l.client
	c.mu.Lock()
	m, joined := l.missed, l.joined
	c.mu.Unlock()
	var err error
	if m.stored > 0 {
		err = l.verify(m)
	} else {
		m.position = position{link: l.id, stored: joined + 1}
	}
	if m.link != l.id {
		joined, stored = 0, 0
	}
	if err == nil {
		err = l.replay(m.position, joined, stored)
	}
	c.mu.Lock()
	l.missed, l.filter = missed{}, everything
	c.mu.Unlock()
	if err != nil {
		l.finish(err)
	}
}

// verify checks that nobody else has had the session since the client has lost it.
func (l *link) verify(m missed) error {
	ctx, cancel := l.timeout()
	defer cancel()
	r, err := l.client.gateway.fleet.session(ctx, l.client.principal, l.session)
	if err != nil {
		return err
	}
	if m.link != l.id {
		m.epoch++ // when this link began
	}
	if r == nil || r.Epoch != m.epoch || r.Link != l.id {
		return errMissed
	}
	return nil
}

// write sends messages to the client. at is where in the log it is then.
func (l *link) write(lines []byte, at position) {
	if len(lines) == 0 {
		return
	}
	c := l.client
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.marked {
		c.mu.Lock()
		if l.session != "" && at.stored > 0 && (l.missed.stored == 0 || l.missed.link == at.link) {
			c.positions[l.session] = at
		}
		c.mu.Unlock()
	}
	_ = c.stream.WriteLines(lines) // if it fails the client is gone, and read returns the reason
}
