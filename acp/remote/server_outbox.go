package remote

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// outbox is the outgoing half of an httpLink. Messages from the agent are put into out-streams, each of which has a
// buffer of events and at most one receiver, a GET that sends them. A stream without a receiver keeps its events. The
// link's mu guards it: callers hold it, except those of attach, detach and send.
type outbox struct {
	c      *connection
	decode *codec.Decoder // owned by the writer
	mu     *sync.Mutex
	in     *inbox
	wake   chan struct{} // wakes the agent when something happens that it may wait for

	initID      wire.ID
	initialized chan struct{} // closed when initialize has been answered
	answer      []byte        // answer to initialize; set before initialized is closed, and may then be read
	refused     bool          // whether it is an error; likewise

	requests map[wire.ID]request // of the client, in progress
	asked    map[wire.ID]string  // the session of each request of the agent in progress

	streams  map[string]*outStream
	retired  []string // sessions closed or deleted recently, oldest first
	buffered int      // bytes in streams and in flight
	full     bool     // the agent waits for room in streams
	over     bool     // nothing more will be sent: receivers send what is left, and end
	closed   error    // why the agent can no longer write
}

func newOutbox(c *connection, initialize wire.ID, in *inbox) outbox {
	return outbox{
		c:           c,
		decode:      codec.NewDecoder(nil),
		mu:          in.mu,
		in:          in,
		wake:        make(chan struct{}, 1),
		initID:      initialize,
		initialized: make(chan struct{}),
		requests:    map[wire.ID]request{initialize: {}},
		asked:       map[wire.ID]string{},
		streams:     map[string]*outStream{},
	}
}

// request is a request of the client.
type request struct {
	session  string
	received bool // the session's stream had a reader when the request arrived
	first    bool // the stream may be opened once it is answered; see answerFirst
	ends     bool // it closes or deletes the session
}

// maxAsked is for how many requests of an agent a connection remembers the session.
const maxAsked = 4096

// expect records a request of the client about a session, before the agent can read it.
func (o *outbox) expect(m wire.Message, session string) error {
	o.retired = slices.DeleteFunc(o.retired, func(s string) bool { return s == session })
	if _, twice := o.requests[m.ID]; twice && !m.ID.IsNull() {
		return invalidRequest(m.ID, "a request with this id is in progress")
	}
	if len(o.requests) >= maxRequests {
		return refuse(http.StatusServiceUnavailable, "too many requests in progress")
	}
	method := string(m.Method)
	o.requests[m.ID] = request{session, o.received(session), answerFirst[method],
		method == methodClose || method == methodDelete}
	return nil
}

// answerInitialize keeps the answer to initialize for the POST that waits for it. It returns false for other answers.
func (o *outbox) answerInitialize(m wire.Message, line []byte) bool {
	if o.answer != nil || m.ID != o.initID {
		return false
	}
	delete(o.requests, m.ID)
	o.answer = bytes.Clone(line)
	o.refused = m.Failure != nil || m.Result == nil
	close(o.initialized)
	return true
}

// received reports whether the stream of a session has a reader.
func (o *outbox) received(session string) bool {
	out := o.streams[session]
	return out != nil && out.receiver != nil
}

// write puts each line into its stream, waiting for room before each; mu is released while it waits.
func (o *outbox) write(lines []byte) error {
	defer o.roomAgain()
	for len(lines) > 0 {
		line, rest, _ := bytes.Cut(lines, newline)
		if err := o.put(line); err != nil {
			return err
		}
		lines = rest
	}
	return nil
}

// roomAgain records that the agent no longer waits.
func (o *outbox) roomAgain() {
	if o.full {
		o.full = false
		o.in.pause(false)
	}
}

// put puts one message into its stream; mu is released while it waits for room.
func (o *outbox) put(line []byte) error {
	if o.closed != nil {
		return o.closed
	}
	if o.over { // for a client that no longer needs it
		return nil
	}
	m := wire.Peek(o.decode, line)
	var session []byte
	switch m.Kind {
	case wire.KindResponse:
		if o.answerInitialize(m, line) {
			return nil
		}
		req := o.requests[m.ID]
		delete(o.requests, m.ID)
		err := o.putInto(o.streamOfAnswer(req), line)
		if req.ends && m.Failure == nil {
			o.retire(req.session)
		}
		return err
	case wire.KindRequest, wire.KindNotification:
		if !bytes.HasPrefix(m.Method, ofProtocol) {
			session = wire.TextMember(o.decode, m.Params, memberSession)
		} else if id, ok := wire.CancelledID(o.decode, m.Params); ok && string(m.Method) == wire.MethodCancelRequest {
			session = []byte(o.asked[id]) // in another stream it could arrive before the request, and have no effect
		}
	}
	if out := o.streams[string(session)]; out != nil && o.hasRoom(len(line)) {
		// The name of a session is copied only for a new stream.
		o.append(out, line)
	} else if err := o.putInto(string(session), line); err != nil {
		return err
	}
	if m.Kind == wire.KindRequest && len(o.asked) < maxAsked {
		o.asked[m.ID] = string(session)
	}
	return nil
}

// streamOfAnswer returns the stream for the answer to a request. An answer follows the messages sent to its
// session, so it goes into the same stream, unless the client may wait for the answer before it reads that stream.
func (o *outbox) streamOfAnswer(req request) (session string) {
	if req.first && !req.received && !o.received(req.session) {
		return ""
	}
	return req.session
}

// putInto puts a message into the stream of a session when there is room; mu is released while it waits.
func (o *outbox) putInto(session string, line []byte) error {
	for !o.over {
		if o.hasRoom(len(line)) {
			if out := o.streamFor(session); out != nil {
				o.append(out, line)
				return nil
			}
		}
		if err := o.awaitRoom(); err != nil {
			return err
		}
	}
	return o.closed
}

// hasRoom reports whether size more bytes may be kept.
func (o *outbox) hasRoom(size int) bool {
	return o.buffered == 0 || o.buffered+size+framing <= o.c.server.opts.MaxBuffered
}

// awaitRoom waits until some of the kept data is taken; mu is released while it waits. It fails if the connection has
// ended, or with ErrStalled if nothing is taken for StallTimeout.
func (o *outbox) awaitRoom() error {
	if !o.full {
		o.full = true
		o.in.pause(true)
	}
	late := false
	o.mu.Unlock()
	select {
	case <-o.wake:
	case <-time.After(o.c.server.opts.StallTimeout):
		late = len(o.wake) == 0
	}
	o.mu.Lock()
	if late && !o.over {
		o.c.log.Warn("acp: a connection is ended, because its client does not read", "buffered", o.buffered)
		return ErrStalled
	}
	return o.closed
}

// streamFor returns the stream of a session, creating it if necessary, or nil if there are too many.
func (o *outbox) streamFor(session string) *outStream {
	if out := o.streams[session]; out != nil {
		return out
	}
	if len(o.streams) >= o.c.server.opts.MaxStreams {
		o.sweep()
		if len(o.streams) >= o.c.server.opts.MaxStreams {
			return nil
		}
	}
	out := &outStream{session: session}
	if history := o.c.server.opts.History; history != nil {
		out.history = history(o.c.peer, session)
	}
	o.streams[session] = out
	return out
}

// maxRetired is how many closed sessions keep their streams, for clients that lose the answer.
const maxRetired = 16

// retire records that a session was closed or deleted, and drops the stream of the one retired longest ago if there are
// too many.
func (o *outbox) retire(session string) {
	// The client may no longer read the answers to what the agent asks about it.
	maps.DeleteFunc(o.asked, func(_ wire.ID, of string) bool { return of == session })
	if o.retired = append(o.retired, session); len(o.retired) <= maxRetired {
		return
	}
	old := o.retired[0]
	o.retired = slices.Delete(o.retired, 0, 1)
	if out := o.streams[old]; out != nil && out.idle() {
		delete(o.streams, old)
	}
}

func (o *outbox) sweep() {
	for session, out := range o.streams {
		if out.idle() {
			delete(o.streams, session)
		}
	}
}

func (o *outbox) append(out *outStream, line []byte) {
	id := ""
	if out.history != nil {
		id = out.history.Add(line)
	}
	o.count(out.add(id, line))
	o.c.server.bytesOut.Add(uint64(len(line)))
	if out.receiver != nil {
		signal(out.receiver.wake)
	}
}

func (o *outbox) count(n int) {
	o.buffered += n
	o.c.server.buffered.Add(int64(n))
}

// attach makes the caller the receiver of a stream. It ends the previous receiver, and waits until it has ended. If
// there is a history, the stream continues after the cursor, unless that is empty.
func (o *outbox) attach(ctx context.Context, session, cursor string, rc *http.ResponseController) (*outStream,
	*receiver, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		if o.over {
			return nil, nil, errGone
		}
		out := o.streamFor(session)
		if out == nil {
			return nil, nil, refuse(http.StatusTooManyRequests, "too many streams")
		}
		var missed iter.Seq2[string, []byte]
		if cursor != "" && out.history != nil {
			var ok bool
			if missed, ok = out.history.After(cursor); !ok {
				return nil, nil, refuse(http.StatusConflict, "the events after Last-Event-ID are no longer available")
			}
		}
		old := out.receiver
		if old == nil {
			if missed != nil {
				o.rewind(out, missed)
			}
			out.receiver = &receiver{
				rc:       rc,
				wake:     make(chan struct{}, 1),
				replaced: make(chan struct{}),
				done:     make(chan struct{}),
			}
			if out.history != nil && !out.begun {
				out.receiver.start = out.history.Start()
			}
			signal(o.wake) // the agent may have waited for this stream to be created
			return out, out.receiver, nil
		}
		if o.c.server.opts.RejectSecondStream {
			return nil, nil, refuse(http.StatusConflict, "the stream is read by another request")
		}
		old.end()
		o.mu.Unlock()
		select {
		case <-old.done:
		case <-ctx.Done():
		}
		o.mu.Lock()
		if ctx.Err() != nil {
			return nil, nil, errGone
		}
	}
}

// rewind replaces the content of a stream with the messages that its client has missed, which include that content.
func (o *outbox) rewind(out *outStream, missed iter.Seq2[string, []byte]) {
	o.drop(out)
	for id, line := range missed {
		o.count(out.add(id, line))
	}
}

func (o *outbox) detach(out *outStream, rcv *receiver) {
	o.mu.Lock()
	defer o.mu.Unlock()
	rcv.over = true
	out.receiver = nil
	if o.over {
		o.drop(out)
	}
	close(rcv.done)
	signal(o.wake) // it may have been the last message that needed the stream
}

// send sends the content of a stream to the client of ctx, and reports whether there may be more.
func (o *outbox) send(ctx context.Context, out *outStream, rcv *receiver, ew *eventWriter) (more bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(out.events) > 0 {
		if rcv.over {
			return false, errReplaced
		}
		if ctx.Err() != nil {
			return false, context.Cause(ctx) // anything not yet sent is kept for the next receiver
		}
		events := out.take()
		o.mu.Unlock()
		sent := 0
		for sent < len(events) && err == nil {
			n := min(len(events)-sent, writeChunk)
			if err = ew.write(events[sent : sent+n]); err == nil {
				sent += n
				o.mu.Lock()
				o.taken(out, n)
				o.mu.Unlock()
			}
		}
		o.mu.Lock()
		if err != nil {
			o.giveBack(out, events, sent)
			return false, err
		}
		if cap(events) <= writeChunk {
			out.spare = events[:0]
		}
	}
	return !o.over, nil
}

// taken records that n bytes of a stream were taken.
func (o *outbox) taken(out *outStream, n int) {
	o.count(-n)
	out.kept -= n
	signal(o.wake)
}

// giveBack puts the data that a receiver could not send back into its stream. sent is how much of events
// was sent; the chunk after that may have arrived or not. An event that ends in that chunk is sent again only if it is
// an answer, because a call without an answer would wait forever, and a second answer is ignored, but a notification
// must not arrive twice. Events that end later have not arrived.
func (o *outbox) giveBack(out *outStream, events []byte, sent int) {
	unsure := min(sent+writeChunk, len(events))
	begin := 0
	if i := bytes.LastIndex(events[:sent], []byte(behindEvent)); i >= 0 {
		begin = i + len(behindEvent)
	}
	var again []byte
	lost := 0
	for begin < unsure {
		end := begin + bytes.Index(events[begin:], []byte(behindEvent)) + len(behindEvent)
		if end > unsure {
			break
		}
		line := events[begin : end-len(behindEvent)]
		if bytes.HasPrefix(line, []byte(beforeID)) {
			_, line, _ = bytes.Cut(line, newline)
		}
		line = line[len(beforeEvent):]
		if wire.Peek(codec.NewDecoder(nil), line).Kind == wire.KindResponse {
			again = append(again, events[begin:end]...)
		} else {
			lost++
		}
		begin = end
	}
	again = append(again, events[begin:]...)
	if lost > 0 && !o.over {
		o.c.log.Warn("acp: a stream broke while messages were being sent; it is not known whether they arrived",
			"session", out.session, "messages", lost)
	}
	o.taken(out, len(events)-sent-len(again))
	out.events = append(again, out.events...)
}

// stop makes receivers send the remaining data and end. If closed is not nil, the agent can no longer write either.
func (o *outbox) stop(closed error) {
	if o.closed == nil {
		o.closed = closed
	}
	if o.over {
		return
	}
	o.over = true
	undelivered := 0
	for _, out := range o.streams {
		if out.receiver != nil {
			signal(out.receiver.wake)
		} else {
			undelivered += out.kept
			o.drop(out)
		}
	}
	if undelivered > 0 {
		o.c.log.Info("acp: a connection ended with undelivered messages", "bytes", undelivered)
	}
	signal(o.wake)
}

func (o *outbox) drop(out *outStream) {
	o.count(-out.kept)
	out.events, out.spare, out.kept = nil, nil, 0
}

// finish answers the requests in progress with an error, and stops.
func (o *outbox) finish(why error) {
	if !o.over {
		for id, req := range o.requests {
			line := wire.ErrorLine(id, agentGone)
			// It is short, and the last message of its stream, so it may exceed the limit.
			if m := (wire.Message{ID: id, Failure: agentGone}); !o.answerInitialize(m, line) {
				delete(o.requests, id)
				if out := o.streamFor(o.streamOfAnswer(req)); out != nil {
					o.append(out, line)
				}
			}
		}
	}
	o.stop(why)
}

func (o *outbox) cut() {
	for _, out := range o.streams {
		if out.receiver != nil {
			out.receiver.end()
		}
	}
}
