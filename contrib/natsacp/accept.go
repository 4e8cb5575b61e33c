package natsacp

import (
	"bytes"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
)

// accept handles a frame of a gateway.
func (s *seat) accept(fr frame, m *nats.Msg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changed.Broadcast()
	switch {
	case fr.kind == frameTaken && fr.gen == 0 && s.state <= leaving: // a node asks
		respond(m, []byte{replyOK})
		return
	case fr.kind == frameData && fr.gen == s.gen && fr.seq <= s.received && s.waiting == nil:
		respond(m, []byte{replyOK}) // again; whatever becomes of the agent, it was accepted
		return
	case s.state > leaving, fr.kind != frameAttach && fr.gen != s.gen:
		respond(m, []byte{replyNone})
		return
	case s.state == leaving && fr.kind != frameTaken:
		s.held = append(s.held, m)
		return
	}
	switch fr.kind {
	case frameData:
		switch {
		case fr.seq == s.received+1:
			s.received++
			for line := range bytes.Lines(s.lines.add(fr.data)) {
				line = line[:len(line)-1]
				s.queue = append(s.queue, line)
				s.queued += len(line)
			}
			if s.queued > s.node.opts.Window {
				s.waiting = m
				return
			}
		case s.waiting != nil && fr.seq == s.received: // again
			s.waiting = m
			return
		case fr.seq > s.received:
			return // cannot be: the one before was not answered
		}
	case frameCancel:
		s.urgent = append(s.urgent, urgent{slices.Clone(fr.data), fr.arg, fr.gen})
	case frameTaken:
		s.taken = max(s.taken, fr.arg)
	case frameDetach:
		s.detach()
	case frameAttach:
		if s.idle() {
			s.held = append(s.held, m)
			s.leave()
		} else {
			s.attach(string(fr.data), m)
		}
		return
	}
	respond(m, []byte{replyOK})
}

// attach replaces the client; mu is held. Its gateway hears where in the log it begins when what is being written is.
func (s *seat) attach(gateway string, m *nats.Msg) {
	s.gen++
	s.gateway, s.received, s.fed, s.lines = gateway, 0, 0, lines{}
	s.urgent = slices.DeleteFunc(s.urgent, func(u urgent) bool { return u.gen != 0 })
	s.queue, s.queued, s.waiting = nil, 0, nil
	for i := range s.out {
		if s.out[i].gen != 0 { // another client may use the same id
			s.size -= len(s.out[i].data)
			s.out[i].data = nil
		}
	}
	s.joining = m
}

// detach records that the client has gone; mu is held.
func (s *seat) detach() {
	s.gateway, s.detached = "", time.Now()
	s.leaveIfIdle()
}

// check is called from time to time, with the gateways that are alive.
func (s *seat) check(gateways map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changed.Broadcast()
	if s.gateway != "" && !gateways[s.gateway] && time.Since(s.begun) > s.node.fleet.lease {
		s.detach()
	}
	unused := s.received == 0 && s.gen == 1 && time.Since(s.begun) > time.Minute
	if unused || s.gateway == "" && time.Since(s.detached) > s.node.opts.Grace {
		s.end(ending, "the client has gone")
	}
}
