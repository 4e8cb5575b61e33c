package natsacp

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// outbox is what a seat writes to the log. The seat's mu guards it.
type outbox struct {
	out      []saying
	size     int       // bytes in it, with those that are being written
	complete bool      // nothing follows
	joining  *nats.Msg // a client attaches

	seq    uint64 // of the last frame in the log; keep's
	stored uint64 // where in the stream it is; keep's

	sent   uint64 // bytes, since the client has attached
	taken  uint64 // how many of them the client has taken
	beaten uint64 // the last seq that was reported
}

// saying is what comes next in the log: messages, each with a newline.
type saying struct {
	data  []byte
	gen   uint64       // of the client that it is for, or 0 if that does not matter
	after func() error // called when it is in the log, or nil
}

// say adds a message; mu is held.
func (s *seat) say(line []byte, gen uint64, after func() error) {
	if gen != 0 && gen != s.gen {
		line = nil // nobody waits for it
	}
	last := len(s.out) - 1
	if last < 0 {
		s.changed.Broadcast()
	}
	if last < 0 || gen != 0 || after != nil || s.out[last].gen != 0 || s.out[last].after != nil {
		s.out = append(s.out, saying{gen: gen, after: after})
		last++
	}
	if line != nil {
		s.out[last].data = append(append(s.out[last].data, line...), '\n')
		s.size += len(line) + 1
	}
}

// awaitRoom waits while much is to be written; mu is held.
func (s *seat) awaitRoom() {
	for s.size >= maxPayload/2 && s.state < fenced && s.ctx.Err() == nil {
		s.changed.Wait()
	}
}

// keep writes the log, until it is complete, or another node has written there.
func (s *seat) keep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.state < fenced {
		switch {
		case s.joining != nil:
			s.join()
		case len(s.out) > 0:
			if err := s.write(); err != nil {
				s.end(fenced, err.Error())
			}
		case s.complete:
			return
		default:
			s.changed.Wait()
		}
	}
}

// join tells a new client's gateway where in the log it begins, and what the agent waits for; mu is held.
func (s *seat) join() {
	m := s.joining
	s.joining, s.sent, s.taken, s.beaten = nil, 0, 0, 0
	s.tell(frame{kind: frameReplay, gen: s.gen})
	respond(m, (&frame{kind: replyOK, gen: s.gen, seq: s.seq, arg: s.stored}).encode())
	var again saying
	for _, line := range s.asked {
		if !slices.ContainsFunc(s.out, func(next saying) bool { return bytes.Contains(next.data, line) }) {
			again.data = append(append(again.data, line...), '\n')
		}
	}
	s.out = slices.Insert(s.out, 0, again)
	s.size += len(again.data)
}

// write writes what comes next, up to what must be done after it; mu is held.
func (s *seat) write() error {
	var next saying
	for len(s.out) > 0 && next.after == nil && len(next.data) < maxPayload/2 {
		next.data, next.after = append(next.data, s.out[0].data...), s.out[0].after
		s.out = slices.Delete(s.out, 0, 1)
	}
	gen := s.gen
	for part := range slices.Chunk(next.data, s.node.fleet.payload()) {
		if s.isFull(len(part)) {
			s.tell(frame{kind: frameBeat, gen: s.gen, seq: s.seq})
		}
		for s.isFull(len(part)) {
			s.changed.Wait()
		}
		if s.state == fenced {
			return errors.New(s.why)
		}
		s.sent += uint64(len(part))
		s.mu.Unlock()
		err := s.append(frame{kind: frameData, gen: gen, data: part})
		s.mu.Lock()
		if err != nil {
			return err
		}
		s.size -= len(part)
		s.changed.Broadcast()
	}
	if next.after == nil {
		return nil
	}
	s.mu.Unlock()
	defer s.mu.Lock()
	return next.after()
}

// isFull reports whether the client has to take more before so many bytes are written; mu is held.
func (s *seat) isFull(size int) bool {
	return s.state < leaving && s.gateway != "" && s.joining == nil && s.sent != s.taken &&
		s.sent+uint64(size) > s.taken+uint64(s.node.opts.Window)
}

// append writes one frame, unless another node has written there.
func (s *seat) append(fr frame) error {
	fr.seq = s.seq + 1
	m := nats.NewMsg(s.node.fleet.subject("log", s.id))
	m.Data = fr.encode()
	for {
		if !s.node.leased() {
			return errors.New("the lease has ended")
		}
		stored, err := s.appendOnce(m)
		if err == nil {
			s.mu.Lock()
			s.seq, s.stored = fr.seq, stored
			s.mu.Unlock()
			return nil
		}
		if !isTemporary(err) {
			return err
		}
	}
}

// appendOnce publishes a frame after the last one, and returns where it is.
func (s *seat) appendOnce(m *nats.Msg) (stored uint64, err error) {
	f := s.node.fleet
	ctx, cancel := context.WithTimeout(context.Background(), f.lease/4)
	defer cancel()
	for after := s.stored; ; {
		ack, err := f.js.PublishMsg(ctx, m, jetstream.WithExpectLastSequencePerSubject(after))
		if err == nil {
			return ack.Sequence, nil
		}
		if !isConflict(err) {
			return 0, err
		}
		last, data, err := f.get(ctx, f.log, map[string]any{"last_by_subj": m.Subject})
		switch {
		case err != nil:
			return 0, err
		case last == 0 && after != 0: // the server has dropped what is old
			after = 0
		case bytes.Equal(data, m.Data): // an earlier attempt
			return last, nil
		default:
			return 0, errTaken
		}
	}
}

// tell sends a frame to the gateway that is not in the log. It may be lost.
func (s *seat) tell(fr frame) {
	if err := s.node.fleet.nc.Publish(s.node.fleet.subject("down", s.id), fr.encode()); err != nil {
		s.log.Debug("natsacp: cannot publish", "error", err)
	}
}
