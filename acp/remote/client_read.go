package remote

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/acpgo/sdk/internal/wire"
)

// maxHeld is how many bytes are held for sessions that are not known yet.
const maxHeld = 4 << 20

// next returns the oldest delivery.
func (s *httpStream) next() (a delivery, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.arrived) == 0 {
		return delivery{}, false
	}
	if a, s.arrived = s.arrived[0], s.arrived[1:]; len(s.arrived) == 0 {
		s.arrived = nil // release the underlying array
	}
	return a, true
}

func (s *httpStream) Read() ([]byte, error) { return s.ReadLine(nil) }

func (s *httpStream) ReadLine(beforeWait func()) ([]byte, error) {
	for {
		if err := context.Cause(s.life); err == net.ErrClosed {
			return nil, err
		}
		if len(s.ready) > 0 {
			line := s.ready[0]
			s.ready = s.ready[1:]
			return line, nil
		}
		if from := s.current; from != nil {
			line, ok, err := from.take()
			if err != nil {
				return nil, err
			}
			if ok {
				if s.incoming(from, line) {
					return line, nil
				}
				continue
			}
			s.current = nil
			from.resume <- struct{}{}
		}
		a, ok := s.next()
		switch {
		case a.from != nil:
			s.current = a.from
		case a.err != nil:
			return nil, a.err
		case ok:
			if s.incoming(nil, a.line) {
				return a.line, nil
			}
		case s.life.Err() != nil:
			return nil, context.Cause(s.life)
		default:
			if beforeWait != nil {
				beforeWait()
			}
			select {
			case <-s.wake:
			case <-s.life.Done():
			}
		}
	}
}

// incoming examines a message from an event stream, or from a response if from is nil, and reports whether it is to be
// read now.
func (s *httpStream) incoming(from *eventStream, line []byte) bool {
	m := wire.Peek(s.decode, line)
	if m.Kind == wire.KindNotification {
		if s.naming.Load() == 0 && string(m.Method) == methodUpdate {
			return true // nearly all messages
		}
		m = wire.Parse(s.decode, line) // the id may follow the parameters
	}
	switch m.Kind {
	case wire.KindNotification:
		return !s.hold(from, m, line)
	case wire.KindRequest:
		session := string(wire.TextMember(s.decode, m.Params, "sessionId"))
		if session == "" && from != nil {
			session = from.session
		}
		if session != "" {
			s.mu.Lock()
			s.asked[m.ID] = session
			s.mu.Unlock()
		}
	case wire.KindResponse:
		s.answered(m)
	}
	return true
}

// hold holds back a notification for an unknown session while an answer in progress may name it: older servers send the
// first updates of a session before the answer that creates it.
func (s *httpStream) hold(from *eventStream, m wire.Message, line []byte) bool {
	if s.naming.Load() == 0 || from == nil || from.session != "" {
		return false
	}
	session := string(wire.TextMember(s.decode, m.Params, "sessionId"))
	if session == "" {
		return false
	}
	s.mu.Lock()
	known := s.streams[session] != nil
	s.mu.Unlock()
	if known {
		return false
	}
	s.held = append(s.held, heldMessage{session, bytes.Clone(line)})
	if s.heldLen += len(line); s.heldLen > maxHeld {
		s.release("")
	}
	return true
}

// release queues the messages held for a session, or all held messages, to be read next.
func (s *httpStream) release(session string) {
	kept := s.held[:0]
	s.heldLen = 0
	for _, h := range s.held {
		if session == "" || h.session == session {
			s.ready = append(s.ready, h.line)
		} else {
			kept = append(kept, h)
			s.heldLen += len(h.line)
		}
	}
	clear(s.held[len(kept):])
	s.held = kept
}

// answered records an answer: its call is over, and it may name a session, whose stream is then opened.
func (s *httpStream) answered(m wire.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.forget(m.ID)
	if c == nil {
		return
	}
	if m.Failure == nil {
		switch session := c.post.session; c.post.method {
		case methodClose, methodDelete:
			if st := s.streams[session]; st != nil && session != "" {
				s.d.forget(session)
				delete(s.streams, session)
				st.cancel(errSessionOver)
			}
		case methodLoad, methodResume:
			s.stream(session, nil)
		default:
			if named := string(wire.TextMember(s.decode, m.Result, "sessionId")); named != "" && s.id != "" {
				s.stream(named, nil)
				if len(s.held) > 0 {
					s.release(named)
				}
			}
		}
	}
	if s.naming.Load() == 0 && len(s.held) > 0 {
		s.release("")
	}
}

// Close ends the connection: it sends written messages, for a short time, then tells the server, and ends the streams.
func (s *httpStream) Close() error {
	s.closeOne.Do(func() {
		s.closing.Store(true)
		ctx, cancel := context.WithTimeout(s.life, s.d.opts.CloseTimeout)
		drain, stop := context.WithTimeout(ctx, s.d.opts.CloseTimeout/2)
		// Messages that cannot be sent in time are lost.
		_ = s.awaitQueue(drain, func() bool { return s.queued == 0 })
		stop()
		cancel()
		told := s.sayEnd()
		s.fail(net.ErrClosed)
		s.tasks.Wait()
		if !told {
			s.sayEnd() // the server has named the connection in the meantime
		}
		s.d.release()
	})
	return nil
}

// sayEnd tells the server that the connection has ended, for any reason. It returns false if the server has not named
// the connection.
func (s *httpStream) sayEnd() bool {
	s.mu.Lock()
	id, gone := s.id, s.gone
	s.mu.Unlock()
	if id == "" || gone {
		return gone
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.life), s.d.opts.CloseTimeout)
	defer cancel()
	resp, err := s.d.do(ctx, http.MethodDelete, nil, func(h http.Header) { h.Set(HeaderConnection, id) })
	if err == nil && resp.StatusCode/100 != 2 {
		err = statusError(resp, 0)
	} else if err == nil {
		err = errors.Join(discard(resp.Body), resp.Body.Close())
	}
	if err != nil {
		s.d.log.Debug("acp: ending a connection over HTTP", "error", err)
	}
	return true
}
