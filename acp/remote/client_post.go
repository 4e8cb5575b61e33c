package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/wire"
)

var (
	errFirst      = errors.New("acp: the first message must be initialize")
	errNoID       = errors.New("acp: the server answered initialize without " + HeaderConnection)
	errWrongID    = errors.New("acp: the server answered initialize with a different message")
	errNotMessage = errors.New("acp: not a message")
)

func (s *httpStream) Write(message []byte) error {
	if err := s.makeRoom(len(message)); err != nil {
		return err
	}
	s.enqueue(message)
	return nil
}

func (s *httpStream) WriteLines(lines []byte) error {
	for line := range bytes.Lines(lines) {
		if err := s.Write(bytes.TrimSuffix(line, []byte{'\n'})); err != nil {
			return err
		}
	}
	return nil
}

func (s *httpStream) makeRoom(n int) error {
	return s.awaitQueue(s.life, func() bool { return s.queued == 0 || s.queued+n <= s.d.opts.MaxQueued })
}

// enqueue puts a message into its lane.
func (s *httpStream) enqueue(line []byte) {
	m := wire.Parse(s.encode, line)
	p := &post{
		message: wire.AppendLine(make([]byte, 0, len(line)), line),
		kind:    m.Kind,
		method:  string(m.Method),
		id:      m.ID,
		made:    make(chan struct{}),
		done:    make(chan struct{}),
	}
	if m.Kind != wire.KindResponse && !strings.HasPrefix(p.method, "$/") {
		p.session = string(wire.TextMember(s.encode, m.Params, "sessionId"))
	}
	var cancels *rpc.ID
	if p.method == wire.MethodCancelRequest {
		if id, ok := wire.CancelledID(s.encode, m.Params); ok {
			cancels = &id
		}
	}
	s.encode.Reset(nil) // line may be long

	s.mu.Lock()
	defer s.mu.Unlock()
	s.queued += len(p.message)
	p.after = appendPost(p.after, s.first)
	switch p.kind {
	case wire.KindRequest:
		c := &call{post: p, naming: p.method == methodNew || p.method == methodFork}
		s.forget(p.id) // if a program uses an id twice, it gets the answer to the later request
		s.calls[p.id] = c
		if c.naming {
			s.naming.Add(1)
		}
	case wire.KindResponse:
		p.session = s.asked[p.id]
		delete(s.asked, p.id)
		s.line(lane{p.session, true}, p)
		return
	case wire.KindInvalid:
		s.start(p, func() { s.unsent(p, fmt.Errorf("%w: %s", errNotMessage, m.Failure.Message)) })
		return
	}
	switch {
	case p.method == methodInitialize && p.kind == wire.KindRequest && s.streams[""] == nil:
		s.first = p
		s.start(p, func() { s.initialize(p) })
	case p.method == methodCancel:
		// It overtakes all other pending messages except the prompt that it is for. Later prompts come after it.
		p.after = appendPost(p.after, s.prompts[p.session])
		s.cancels[p.session] = p
		s.start(p, func() { s.send(p) })
	case cancels != nil:
		if c := s.calls[*cancels]; c != nil {
			p.after = appendPost(p.after, c.post)
		}
		s.start(p, func() { s.send(p) })
	default:
		if p.method == methodPrompt {
			p.after = appendPost(p.after, s.cancels[p.session])
			s.prompts[p.session] = p
		}
		s.line(lane{p.session, false}, p)
	}
}

// appendPost appends a post to wait for, if it is not nil and still pending.
func appendPost(to []*post, p *post) []*post {
	if p == nil {
		return to
	}
	select {
	case <-p.done:
		return to
	default:
		return append(to, p)
	}
}

// line appends a post to a lane, and starts the lane's goroutine if it has none; mu is held.
func (s *httpStream) line(l lane, p *post) {
	waiting, runs := s.lanes[l]
	s.lanes[l] = append(waiting, p)
	if !runs && !s.spawn(func() { s.runLane(l) }) {
		delete(s.lanes, l)
	}
}

// runLane sends the messages in a lane until there are none left.
func (s *httpStream) runLane(l lane) {
	for {
		s.mu.Lock()
		waiting := s.lanes[l]
		if len(waiting) == 0 {
			delete(s.lanes, l)
			s.mu.Unlock()
			return
		}
		p := waiting[0]
		waiting[0] = nil
		s.lanes[l] = waiting[1:]
		s.mu.Unlock()
		s.send(p)
		s.taken(p)
	}
}

// start runs f for a post outside the lanes; mu is held.
func (s *httpStream) start(p *post, f func()) {
	s.spawn(func() {
		f()
		s.taken(p)
	})
}

// taken records that a post no longer waits.
func (s *httpStream) taken(p *post) {
	close(p.done)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queued -= len(p.message)
	if s.change != nil {
		close(s.change)
		s.change = nil
	}
	for _, last := range []map[string]*post{s.prompts, s.cancels} {
		if last[p.session] == p {
			delete(last, p.session)
		}
	}
}

// send sends a message, after those that must come before it.
func (s *httpStream) send(p *post) {
	for _, before := range p.after {
		if !s.awaitPost(p, before) {
			return
		}
	}
	s.mu.Lock()
	id := s.id
	s.mu.Unlock()
	if id == "" {
		s.failed(p, &unsentError{errFirst})
		return
	}
	header := p.session
	if p.session != "" && p.kind == wire.KindRequest {
		err := s.openFor(p)
		if err != nil && p.method != methodLoad && p.method != methodResume && p.method != methodClose &&
			p.method != methodDelete {
			s.failed(p, &unsentError{err})
			return
		}
		if status, ok := errors.AsType[*StatusError](err); ok && errors.Is(status, ErrConnectionGone) {
			header = "" // some servers know a session only once it is loaded
		}
	}
	err := s.post(p, id, header)
	if err != nil && p.kind != wire.KindRequest && again(err) {
		wait := s.d.opts.MinBackoff/2 + rand.N(s.d.opts.MinBackoff/2+1)
		if status, ok := errors.AsType[*StatusError](err); ok {
			wait = min(max(wait, status.RetryAfter), s.d.opts.MaxBackoff)
		}
		s.d.log.Debug("acp: a POST is tried again", "method", p.method, "error", err)
		if s.sleep(wait) {
			err = s.post(p, id, header)
		}
	}
	if err != nil {
		s.failed(p, err)
	}
}

// awaitPost waits until a message that must follow another one may be sent. It returns false if the connection is over.
func (s *httpStream) awaitPost(p, before *post) bool {
	made := before.made
	if p.kind != wire.KindNotification {
		made = nil
	}
	select {
	case <-before.done:
		return true
	case <-made:
	case <-s.life.Done():
		return false
	}
	// A server may respond to the POST of a prompt only when the turn is over, and this message may be the one that
	// cancels the turn.
	select {
	case <-before.done:
	case <-time.After(s.d.opts.StreamTimeout):
	case <-s.life.Done():
		return false
	}
	return true
}

// openFor opens the stream of the session that a request is about, and waits until it is open.
func (s *httpStream) openFor(p *post) error {
	var cursor []byte
	if p.method == methodResume {
		cursor = s.d.cursor(p.session)
	}
	s.mu.Lock()
	st := s.stream(p.session, cursor)
	s.mu.Unlock()
	if st == nil {
		return context.Cause(s.life)
	}
	return st.await()
}

// sleep waits, and reports whether the stream is still alive.
func (s *httpStream) sleep(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-s.life.Done():
		return false
	}
}

// again reports whether a POST that failed with err may succeed if repeated.
func again(err error) bool {
	if errors.Is(err, errHeader) {
		return false
	}
	status, ok := errors.AsType[*StatusError](err)
	return !ok || status.Status >= 500 || status.Status == http.StatusTooManyRequests ||
		status.Status == http.StatusRequestTimeout
}

// refused reports whether a request that failed with err was not taken by the server.
func refused(err error) bool {
	if _, unsent := errors.AsType[*unsentError](err); unsent {
		return true
	}
	status, ok := errors.AsType[*StatusError](err)
	return ok && (status.Status < 500 || status.Status == http.StatusServiceUnavailable)
}

// doubled reports whether a request may have been refused because the server already has it: a proxy that repeats a
// POST returns the second response, while the first POST is being served.
func doubled(p *post, err error) bool {
	status, ok := errors.AsType[*StatusError](err)
	if !ok || status.Status != http.StatusBadRequest {
		return false
	}
	m := wire.Parse(codec.NewDecoder(nil), []byte(status.Text))
	return m.Kind == wire.KindResponse && m.ID == p.id && m.Failure != nil && m.Failure.Code == int(rpc.ErrInvalidRequest)
}

// failed decides what happens to a message that was not accepted.
func (s *httpStream) failed(p *post, err error) {
	if s.life.Err() != nil {
		return
	}
	if p.kind != wire.KindRequest {
		s.unsent(p, err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if refused(err) && !doubled(p, err) {
		s.drop(p, err)
		return
	}
	if c := s.calls[p.id]; c != nil && c.post == p {
		c.unknown = err
		c.timer = time.AfterFunc(s.d.opts.AnswerTimeout, func() { s.expire(c) })
	}
}

// expire ends a call for which it is not known whether the server took it, unless something has arrived for its session
// recently: then its turn may be in progress.
func (s *httpStream) expire(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil || s.calls[c.post.id] != c {
		return
	}
	if st := s.streams[c.post.session]; st != nil && c.post.session != "" {
		if quiet := time.Since(st.heard()); quiet < s.d.opts.AnswerTimeout {
			c.timer.Reset(s.d.opts.AnswerTimeout - quiet)
			return
		}
	}
	s.drop(c.post, &OutcomeError{c.unknown})
}

// unsent reports a notification or an answer that the server did not take.
func (s *httpStream) unsent(p *post, err error) {
	s.d.log.Warn("acp: a message could not be sent", "method", p.method, "session", p.session, "error", err)
	if s.d.opts.OnUnsent != nil {
		s.d.opts.OnUnsent(p.session, p.method, err)
	}
}

// request makes a POST; id is the connection's, session that of its header.
func (s *httpStream) request(ctx context.Context, p *post, id, session string) (*http.Response, error) {
	return s.d.do(ctx, http.MethodPost, p.message, func(h http.Header) {
		h.Set("Content-Type", "application/json")
		h.Set("Accept", "application/json")
		if id != "" {
			h.Set(HeaderConnection, id)
		}
		if session != "" {
			h.Set(HeaderSession, session)
		}
	})
}

// post makes one POST. It returns when the server has taken the message, or the reason why it has not.
func (s *httpStream) post(p *post, id, session string) error {
	ctx, cancel := context.WithCancelCause(s.life)
	s.mu.Lock()
	s.flying[p] = cancel
	if p.began.IsZero() {
		close(p.made)
	}
	p.began = time.Now()
	s.mu.Unlock()
	resp, err := s.request(ctx, p, id, session)
	s.mu.Lock()
	if err == nil && resp.StatusCode == http.StatusOK && resp.ContentLength != 0 {
		// The response may take as long as the turn.
		defer s.mu.Unlock()
		delete(s.flying, p)
		if !s.spawn(func() {
			defer cancel(nil)
			s.body(p, resp)
		}) {
			cancel(nil)
			resp.Body.Close()
		}
		return nil
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.flying, p)
		s.mu.Unlock()
		cancel(nil)
	}()
	switch {
	case err != nil:
		return err
	case resp.StatusCode/100 != 2:
		status := statusError(resp, len(p.message))
		if errors.Is(status, ErrConnectionGone) {
			s.suspect()
		}
		return status
	}
	// Read to the end, so that the connection can be reused. The message was taken, whatever the rest is.
	_ = errors.Join(discard(resp.Body), resp.Body.Close())
	return nil
}

// body reads the response to a POST: one message, or events.
func (s *httpStream) body(p *post, resp *http.Response) {
	defer resp.Body.Close()
	var err error
	switch kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind {
	case "application/json", "":
		err = s.jsonBody(resp.Body)
	case "text/event-stream":
		err = s.eventBody(p, resp.Body)
	default:
		err = &unsentError{fmt.Errorf("acp: unexpected content type %q in the answer to a POST", secretsOf(resp).hide(kind))}
	}
	if err != nil && p.kind == wire.KindRequest {
		s.failed(p, err)
	}
}

// jsonBody reads one message, or nothing.
func (s *httpStream) jsonBody(body io.Reader) error {
	line, err := s.readBody(body)
	if line = oneLine(line); err != nil || len(line) == 0 {
		return err
	}
	if m := wire.Parse(codec.NewDecoder(nil), line); m.Kind == wire.KindInvalid {
		s.d.log.Debug("acp: the answer to a POST is not a message", "bytes", len(line))
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrive(delivery{line: line})
	return nil
}

func (s *httpStream) readBody(body io.Reader) ([]byte, error) {
	line, err := io.ReadAll(io.LimitReader(body, int64(s.d.opts.MaxMessage)+1))
	if err == nil && len(line) > s.d.opts.MaxMessage {
		return nil, &unsentError{&rpc.TooLongError{Limit: s.d.opts.MaxMessage}}
	}
	return line, err
}

// eventBody reads messages until the body ends, pausing until they have been read.
func (s *httpStream) eventBody(p *post, body io.Reader) error {
	st := &eventStream{s: s, session: p.session, body: true, life: s.life, r: newEventReader(body, s.d.opts.MaxMessage),
		resume: make(chan struct{}, 1), after: p.made}
	for {
		err := st.r.fill()
		if !st.handOver() || err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// initialize opens the connection: the server answers in the response to the POST, and names the connection, whose
// stream is opened before the answer is read.
func (s *httpStream) initialize(p *post) {
	line, err := s.connect(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.drop(p, err)
	} else {
		s.arrive(delivery{line: line})
	}
}

func (s *httpStream) connect(p *post) (answer []byte, err error) {
	resp, err := s.request(s.life, p, "", "")
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, statusError(resp, len(p.message))
	}
	defer resp.Body.Close()
	id := resp.Header.Get(HeaderConnection)
	s.mu.Lock()
	s.id = id // also if something is wrong, so that the server is sent the end
	s.mu.Unlock()
	line, err := s.readBody(resp.Body)
	if err != nil {
		return nil, err
	}
	line = oneLine(line)
	if !wire.Answers(line, p.id) {
		return nil, errWrongID
	}
	if m := wire.Parse(codec.NewDecoder(nil), line); m.Failure != nil {
		return line, nil // a connection is not required
	}
	if id == "" {
		return nil, errNoID
	}
	s.mu.Lock()
	st := s.stream("", nil)
	s.mu.Unlock()
	if st == nil {
		return nil, net.ErrClosed
	}
	if err := st.await(); err != nil {
		return nil, err
	}
	return line, nil
}
