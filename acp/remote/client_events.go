package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"mime"
	"net/http"
	"time"
)

var (
	errSessionOver = errors.New("acp: the session has ended")
	errOther       = errors.New("acp: an earlier connection was lost")
	errSuspect     = errors.New("acp: the server may have lost the connection's state")
	errSilent      = errors.New("acp: the server was silent for too long")
	errNoHeaders   = errors.New("acp: timeout waiting for the headers of a stream; a proxy may be buffering responses")
)

// stream returns the stream of a session, or of the connection, and starts to open one if there is none; mu is held. A
// new one continues after a cursor, unless that is empty. stream returns nil if the connection is over.
func (s *httpStream) stream(session string, cursor []byte) *eventStream {
	if st := s.streams[session]; st != nil {
		return st
	}
	st := &eventStream{
		s:       s,
		session: session,
		r:       newEventReader(nil, s.d.opts.MaxMessage),
		resume:  make(chan struct{}, 1),
		after:   s.first.done,
		opened:  make(chan struct{}),
		kicked:  make(chan struct{}, 1),
	}
	st.r.lastID = cursor
	st.life, st.cancel = context.WithCancelCause(s.life)
	if !s.spawn(st.run) {
		st.cancel(nil)
		return nil
	}
	s.streams[session] = st
	return st
}

// await waits until the stream has been open once, and returns the reason if it cannot be opened.
func (st *eventStream) await() error {
	late, over := false, false
	select {
	case <-st.opened:
	case <-time.After(st.s.d.opts.StreamTimeout):
		late = true
	case <-st.life.Done():
		over = true // the stream may have given up, with a better error
	}
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	switch {
	case st.err != nil:
		return st.err
	case over:
		return context.Cause(st.life)
	case !late:
		return nil
	case st.failure != nil:
		return st.failure
	}
	return errNoHeaders
}

// heard returns the time of the last message.
func (st *eventStream) heard() time.Time { return time.Unix(0, st.last.Load()) }

// kick makes the stream reopen at once; mu is held.
func (st *eventStream) kick(why error) {
	select {
	case st.kicked <- struct{}{}:
	default:
	}
	if st.endGet != nil {
		st.endGet(why)
	}
}

// run keeps the stream open, reopening it whenever it is lost.
func (st *eventStream) run() {
	defer st.cancel(nil)
	o := &st.s.d.opts
	var lost error // the error that ended the stream, if it was open
	if len(st.r.lastID) > 0 {
		lost = errOther
	}
	var since time.Time  // the time since which opening it has failed
	tries, count := 0, 0 // tries since the last message; messages before it
	for {
		resp, resumed, err := st.open()
		if err == nil {
			st.isOpen(lost, resumed)
			since = time.Time{}
			lost = st.pump(resp)
			if st.life.Err() != nil {
				return // r and count may belong to the reader
			}
			if st.count > count {
				tries, count = 0, st.count
			}
			err = lost
		} else if st.final(err) {
			// The whole connection may be gone, not just the session.
			if errors.Is(err, ErrConnectionGone) && st.session != "" && st.wasOpen && !st.s.lives() {
				return
			}
			st.giveUp(err)
			return
		} else if since.IsZero() {
			since = time.Now()
		} else if time.Since(since) > o.ReopenTime {
			st.giveUp(fmt.Errorf("acp: a stream could not be reopened for %v: %w", o.ReopenTime, err))
			return
		}
		if st.life.Err() != nil || st.s.closing.Load() {
			return
		}
		st.s.d.log.Debug("acp: a stream is opened again", "session", st.session, "error", err)
		if !st.backOff(tries, err) {
			return
		}
		tries++
	}
}

// suspect reopens the connection's stream, because a 404 may refer to the connection or to a session alone. If it
// refers to the session, the stream opens, and again is closed.
func (s *httpStream) suspect() (again <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.streams[""]
	if st == nil {
		return nil
	}
	if st.again == nil {
		st.again = make(chan struct{})
	}
	st.kick(errSuspect)
	return st.again
}

// lives asks the server whether it still knows the connection.
func (s *httpStream) lives() bool {
	select {
	case <-s.suspect():
		return true
	case <-s.life.Done():
		return false
	}
}

// isOpen records that the stream is open, and reports a gap.
func (st *eventStream) isOpen(lost error, resumed bool) {
	st.s.mu.Lock()
	first := !st.wasOpen
	st.wasOpen, st.failure = true, nil
	if st.again != nil {
		close(st.again)
		st.again = nil
	}
	st.s.mu.Unlock()
	if first {
		close(st.opened)
	}
	if lost != nil && !resumed {
		st.s.d.log.Warn("acp: a stream was lost and is open again; messages may be missing", "session", st.session, "error",
			lost)
		if st.s.d.opts.OnGap != nil {
			st.s.d.opts.OnGap(st.session, lost)
		}
	}
}

// final reports whether retrying after a failure is useless. A server's answer about a session applies only to that
// session.
func (st *eventStream) final(err error) bool {
	status, ok := errors.AsType[*StatusError](err)
	if !ok {
		return errors.Is(err, errNoEvents) || errors.Is(err, errHeader)
	}
	return status.Final() || errors.Is(status, ErrConnectionGone)
}

// giveUp ends the stream for good: for the connection's stream, everything ends; for a session's stream, the calls
// whose answers would arrive on it.
func (st *eventStream) giveUp(err error) {
	s := st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.session == "" {
		s.gone = errors.Is(err, ErrConnectionGone)
		st.err = err
		if st.wasOpen {
			s.finish(err)
			return
		}
	}
	st.err = err
	if s.streams[st.session] == st {
		delete(s.streams, st.session)
	}
	if !st.wasOpen {
		close(st.opened)
		return
	}
	s.d.log.Warn("acp: the stream of a session is lost", "session", st.session, "error", err)
	for _, c := range s.calls {
		if c.post.session == st.session {
			s.drop(c.post, err)
		}
	}
}

// backOff waits before the stream is reopened: longer each time, and for a random part of that time, so that clients do
// not reconnect all at once.
func (st *eventStream) backOff(tries int, err error) bool {
	o := &st.s.d.opts
	longest := min(float64(o.MinBackoff)*math.Pow(1.5, float64(tries)), float64(o.MaxBackoff))
	wait := rand.N(time.Duration(longest) + 1)
	asked := st.r.retry
	if status, ok := errors.AsType[*StatusError](err); ok {
		asked = max(asked, status.RetryAfter)
	}
	wait = max(wait, min(asked, longestRetry))
	select {
	case <-time.After(wait):
		return true
	case <-st.kicked:
		return true
	case <-st.life.Done():
		return false
	}
}

// longestRetry is how long a server may make a client wait before it opens a stream again.
const longestRetry = 5 * time.Minute

// errNoEvents is the error for a response to a GET with another content type.
var errNoEvents = errors.New("acp: the response is not an event stream")

// open makes the GET. resumed reports whether the server was asked to continue after the last event.
func (st *eventStream) open() (resp *http.Response, resumed bool, err error) {
	s := st.s
	ctx, cancel := context.WithCancelCause(st.life)
	s.mu.Lock()
	st.endGet = cancel
	id := s.id
	select {
	case <-st.kicked: // opening the stream is what it asks for
	default:
	}
	s.mu.Unlock()
	timer := time.AfterFunc(s.d.opts.StreamTimeout, func() { cancel(errNoHeaders) })
	defer timer.Stop()
	resumed = s.d.opts.Resume && len(st.r.lastID) > 0 && !bytes.ContainsFunc(st.r.lastID, unsendableRune)
	resp, err = s.d.do(ctx, http.MethodGet, nil, func(h http.Header) {
		h.Set("Accept", "text/event-stream")
		h.Set("Accept-Encoding", "identity")
		h.Set("Cache-Control", "no-cache")
		h.Set(HeaderConnection, id)
		if st.session != "" {
			h.Set(HeaderSession, st.session)
		}
		if resumed {
			h.Set("Last-Event-ID", string(st.r.lastID))
		}
	})
	if err == nil && resp.StatusCode != http.StatusOK {
		status := statusError(resp, 0)
		if resumed && status.Status == http.StatusConflict {
			st.r.lastID = nil // the server no longer has it
		}
		err = status
	} else if err == nil {
		if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/event-stream" {
			resp.Body.Close()
			err = fmt.Errorf("%w but %q", errNoEvents, secretsOf(resp).hide(kind))
		}
	}
	if err != nil {
		cancel(nil)
		what := "the connection"
		if st.session != "" {
			what = "session " + st.session
		}
		err = fmt.Errorf("acp: opening the stream of %s: %w", what, err)
		s.mu.Lock()
		st.failure = err
		s.mu.Unlock()
		return nil, false, err
	}
	return resp, resumed, nil
}

// pump reads the stream until it ends, and returns the reason.
func (st *eventStream) pump(resp *http.Response) error {
	end := st.endGet
	defer resp.Body.Close()
	defer end(nil)
	st.r.reset(resp.Body)
	limit := st.s.d.opts.IdleTimeout
	if limit < 0 {
		limit = math.MaxInt64
	}
	idle := time.AfterFunc(limit, func() {
		end(errSilent)
		st.s.silent()
	})
	defer idle.Stop()
	for {
		idle.Reset(limit)
		err := st.r.fill()
		idle.Stop() // no idle timeout while messages wait for the reader
		if !st.handOver() {
			return context.Cause(st.life)
		}
		if err != nil {
			return err
		}
	}
}

// handOver passes the data to the reader of the messages, and waits until the reader has taken it.
func (st *eventStream) handOver() bool {
	select {
	case <-st.after:
	case <-st.life.Done():
		return false
	}
	st.s.mu.Lock()
	st.s.arrive(delivery{from: st})
	st.s.mu.Unlock()
	select {
	case <-st.resume:
		return true
	case <-st.life.Done():
		return false
	}
}

// take returns the next message in the data, if there is one. The reader of the messages calls it.
func (st *eventStream) take() (line []byte, ok bool, err error) {
	for {
		ev, ok := st.r.next()
		if st.session != "" && !st.body && st.life.Err() == nil { // the session is not over
			st.s.d.arrived(st.session, st.r.lastID)
		}
		if !ok {
			return nil, false, nil
		}
		if !isMessage(ev.name) {
			st.s.d.log.Debug("acp: an event of another name was ignored", "name", string(ev.name), "session", st.session)
			continue
		}
		if line = oneLine(ev.data); ev.err == nil && len(line) == 0 {
			continue
		}
		st.count++
		st.last.Store(time.Now().UnixNano())
		return line, true, ev.err
	}
}

// isMessage reports whether an event with this name is a message.
func isMessage(name []byte) bool { return len(name) == 0 || string(name) == "message" }

// silent ends POSTs without a response for as long as the idle timeout of a stream.
func (s *httpStream) silent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, cancel := range s.flying {
		if time.Since(p.began) >= s.d.opts.IdleTimeout {
			cancel(errSilent)
		}
	}
}
