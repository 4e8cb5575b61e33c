package natsacp

import (
	"bytes"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// incoming is what a link knows of its log. The goroutine of the subscription has it.
type incoming struct {
	decoder  *codec.Decoder
	expect   uint64 // the next frame in the log
	from     uint64 // where in the stream it may be
	lines    lines
	taken    uint64 // bytes
	reported uint64
}

// receive handles a frame of the node.
func (l *link) receive(m *nats.Msg) {
	fr, ok := decodeFrame(m.Data)
	if !ok {
		return
	}
	c := l.client
	c.mu.Lock()
	gen, ended := l.gen, l.phase == over
	l.heard = time.Now()
	c.mu.Unlock()
	stored := sequence(m)
	switch {
	case ended || gen == 0: // beat says later what there was
	case stored > 0 || fr.gen > gen:
		l.next(fr, stored)
	case fr.kind == frameBeat && fr.gen == gen:
		if fr.seq >= l.expect {
			l.catchUp(fr.seq)
		}
		l.report()
	}
}

// next handles a frame of the log.
func (l *link) next(fr frame, stored uint64) {
	switch {
	case fr.gen > l.gen:
		l.finish(errors.New("another connection has taken the session"))
		return
	case fr.kind == frameFence:
		l.finish(errors.New("another node has taken the session"))
		return
	case fr.seq < l.expect: // it was published twice
		return
	case fr.seq > l.expect:
		l.catchUp(fr.seq)
		return
	}
	l.expect++
	l.from = stored + 1
	switch fr.kind {
	case frameEnd:
		l.finish(errors.New(string(fr.data)))
	case frameMoved:
		l.client.mu.Lock()
		idle := len(l.out.sending) == 0
		l.phase = max(l.phase, moved)
		l.client.mu.Unlock()
		if idle {
			l.finish(errMoved)
		}
	case frameData:
		if fr.gen == l.gen {
			l.deliver(fr.data, stored)
		}
		if l.taken += uint64(len(fr.data)); l.taken-l.reported > reportBytes {
			l.report()
		}
	}
}

// catchUp reads what did not arrive, up to a frame.
func (l *link) catchUp(last uint64) {
	for m, err := range l.client.gateway.fleet.follow(l.ctx, l.id, l.from) {
		switch {
		case l.ctx.Err() != nil:
			return
		case err == nil && m.kind != frameFence && m.seq > l.expect:
			err = errGap(m.seq - l.expect)
		}
		if err != nil {
			l.finish(err)
			return
		}
		if l.next(m.frame, m.stored); l.expect > last {
			return
		}
	}
}

// reportBytes is after how many bytes the node hears what the client has taken.
const reportBytes = 128 << 10

// report tells the node how much the client has taken.
func (l *link) report() {
	c := l.client
	l.reported = l.taken
	fr := frame{kind: frameTaken, gen: l.gen, arg: l.taken}
	if err := c.gateway.fleet.nc.Publish(l.up(), fr.encode()); err != nil {
		c.gateway.log.Debug("natsacp: cannot publish", "error", err)
	}
}

// deliver passes messages of the agent to the client, which may take long.
func (l *link) deliver(data []byte, stored uint64) {
	rest, at := l.lines.add(data), position{link: l.id, stored: stored}
	size := 0 // of the messages at the beginning of rest that pass
	for line := range bytes.Lines(rest) {
		at.lines++
		before := size
		size += len(line)
		switch pass, resumes := l.passes(line[:len(line)-1]); {
		case !pass:
			l.write(rest[:before], at)
		case resumes: // that does not mean that the client has what comes before it
			l.write(rest[:size], position{})
			l.resumed(stored)
		case l.client.marked:
			l.write(rest[:size], at)
		default:
			continue
		}
		rest, size = rest[size:], 0
	}
	l.write(rest, at)
}

// passes reports whether a message of the agent is for the client, and whether what the client has missed follows it.
func (l *link) passes(line []byte) (pass, resumes bool) {
	m := wire.Peek(l.decoder, line)
	c := l.client
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m.Kind {
	case wire.KindNotification:
		pass = l.filter == everything || l.filter == noUpdates && string(m.Method) != acp.MethodSessionUpdate
		if pass {
			c.trace.updated(l.decoder, line)
		}
	case wire.KindRequest:
		if pass = l.filter != answers; pass {
			asked := wire.Parse(l.decoder, line)
			c.trace.began(false, asked.ID, asked, l.session)
		}
	case wire.KindResponse:
		return l.answered(m, line)
	}
	return pass, false
}

// answered is passes for an answer; mu is held.
func (l *link) answered(m wire.Message, line []byte) (pass, resumes bool) {
	c := l.client
	id := wire.Canonical(m.ID)
	it, ok := l.out.pending[id]
	delete(l.out.pending, id)
	if it.answer != nil {
		l.filter = everything
		it.answer <- wire.Parse(l.decoder, bytes.Clone(line))
	}
	if !ok || it.answer != nil { // if it is not known, it was answered with an error
		return false, false
	}
	c.trace.answered(id, line)
	failed := m.Failure != nil
	switch it.method {
	case acp.MethodInitialize:
		if failed {
			c.initialize = nil // the client may try another one
		}
	case acp.MethodNewSession:
		if failed {
			l.use = vacant
			break
		}
		l.use = taken
		l.session = string(wire.TextMember(l.decoder, m.Result, "sessionId"))
		c.sessions[l.session] = l
	case acp.MethodLoadSession, acp.MethodResumeSession:
		if failed && l.use != taken {
			delete(c.sessions, l.session)
			l.use, l.session, l.filter, l.missed = vacant, "", everything, missed{}
			break
		}
		l.use = taken
		resumes = it.method == acp.MethodResumeSession && (l.filter == answers || l.missed.stored > 0)
	case acp.MethodCloseSession, acp.MethodDeleteSession:
		if !failed {
			delete(c.sessions, it.session)
		}
	}
	return true, resumes
}
