package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp/codec"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/wire"
)

// httpLink is the stream of an agent whose client speaks HTTP.
//
// POSTs put messages into the inbox, of which the agent reads. The agent writes into out-streams, each of which has a
// buffer of events and at most one receiver, a GET that sends them. A stream without a receiver keeps its events.
type httpLink struct {
	c           *connection
	initID      wire.ID
	initialized chan struct{} // closed when initialize is answered
	answer      []byte        // to initialize; set before initialized is closed
	refused     bool          // it is an error; likewise

	decode *codec.Decoder // the writer's

	mu       sync.Mutex
	inbox    [][]byte
	inBytes  int
	waiting  []*arrival // requests that wait for room, the first one first
	waitSize int        // their bytes
	inWake   chan struct{}
	inEnd    error // why the agent reads no more
	closed   error // why the agent cannot write any more

	streams  map[string]*outStream
	retired  []string   // sessions that were closed or deleted lately, the first one first
	last     *outStream // to which a message was added last
	buffered int        // bytes in streams, and under way
	progress uint64     // changes with what the agent may wait for
	full     bool       // the agent waits for room in streams
	outWake  chan struct{}

	requests map[wire.ID]request // the client's, in progress
	asked    map[wire.ID]string  // the session of each request of the agent's in progress

	active int // POSTs and GETs under way
	expiry *time.Timer
	over   bool // nothing more will be sent: receivers send what there is, and end
}

// request is a request of the client.
type request struct {
	session  string
	received bool // somebody read the session's stream when it came
	first    bool // the stream may be opened when it is answered; see comesFirst
	ends     bool // it closes or deletes the session
}

// arrival is a request that waits for room.
type arrival struct {
	line  []byte
	taken chan struct{} // closed when it is in the inbox
}

// outStream is one stream of events: the connection's own, or that of a session.
type outStream struct {
	session  string
	blocks   []*block // the last one may be added to
	kept     int      // bytes in them, and those that the receiver is sending
	slow     bool     // the receiver was waited for in vain; see pace
	spare    *block   // a short one
	receiver *receiver
	history  History // or nil
	begun    bool    // a receiver has got some of it
}

// block is a row of whole events, which are sent together. It has up to blockSize bytes, or one event.
type block struct{ events []byte }

// blockSize is how long a block may be, so that streams with much in them take little more memory than that.
const blockSize = 64 << 10

// blocks are those that were needed for more than a few messages.
var blocks = sync.Pool{New: func() any { return new(block) }}

// add adds an event, and returns how long it is. Its id is empty if it has none.
func (out *outStream) add(id string, line []byte) (size int) {
	size = len(line) + framing
	if id != "" {
		size += len(beforeID) + len(id) + 1
	}
	var b *block
	if n := len(out.blocks); n > 0 {
		b = out.blocks[n-1]
	}
	if b == nil || len(b.events)+size > blockSize {
		if b, out.spare = out.spare, nil; b == nil {
			b = blocks.Get().(*block)
		}
		out.blocks = append(out.blocks, b)
	}
	if id != "" {
		b.events = append(append(append(b.events, beforeID...), id...), '\n')
	}
	b.events = append(append(b.events, beforeEvent...), line...)
	// JSON has them between tokens only, where they are space, but an event's lines end with them.
	wire.ReplaceAll(b.events[len(b.events)-len(line):], '\r', ' ')
	b.events = append(b.events, behindEvent...)
	out.kept += size
	return size
}

// next takes the first block, or nil.
func (out *outStream) next() *block {
	if len(out.blocks) == 0 {
		return nil
	}
	b := out.blocks[0]
	out.blocks = slices.Delete(out.blocks, 0, 1)
	out.begun = true
	return b
}

// done keeps a block for later messages: of this stream, of any, or not at all if it is too long.
func (out *outStream) done(b *block) {
	b.events = b.events[:0]
	switch size := cap(b.events); {
	case size < blockSize/4:
		out.spare = b
	case size <= 2*blockSize:
		blocks.Put(b)
	}
}

// receiver is a GET that reads a stream.
type receiver struct {
	start    string // the cursor before what it gets, if it is the first that gets anything, and there is a history
	rc       *http.ResponseController
	wake     chan struct{}
	replaced chan struct{} // closed when another one takes over
	done     chan struct{} // closed when it has ended
	over     bool          // replaced is closed, or done will be
}

// maxRequests is how many requests of a client may be in progress: more than an agent takes, see rpc.Options.
const maxRequests = 16 << 10

// maxAsked is how many requests of an agent a connection remembers the sessions of.
const maxAsked = 4096

func newHTTPLink(c *connection, initialize wire.ID) *httpLink {
	l := &httpLink{
		c:           c,
		initID:      initialize,
		initialized: make(chan struct{}),
		decode:      codec.NewDecoder(nil),
		inWake:      make(chan struct{}, 1),
		outWake:     make(chan struct{}, 1),
		streams:     map[string]*outStream{},
		requests:    map[wire.ID]request{initialize: {}},
		asked:       map[wire.ID]string{},
	}
	return l
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// enter notes that a request of HTTP uses the connection, which lives at least until leave. It returns false if the
// connection has ended.
func (l *httpLink) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over || l.inEnd != nil && !errors.Is(l.inEnd, ErrServerClosed) {
		return false
	}
	if l.active++; l.expiry != nil {
		l.expiry.Stop()
	}
	return true
}

func (l *httpLink) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active--; l.active > 0 || l.inEnd != nil || l.over {
		return
	}
	if l.expiry == nil {
		l.expiry = time.AfterFunc(l.c.server.opts.Expiry, l.expire)
	} else {
		l.expiry.Reset(l.c.server.opts.Expiry)
	}
}

func (l *httpLink) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active == 0 {
		l.endForClient(ErrExpired)
	}
}

// opened reports whether initialize was answered with a result.
func (l *httpLink) opened() bool { return !l.refused }

// queue puts a message into the inbox; mu is not held.
func (l *httpLink) queue(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.push(line)
}

// push is queue with mu held.
func (l *httpLink) push(line []byte) {
	l.inbox = append(l.inbox, line)
	l.inBytes += len(line)
	signal(l.inWake)
}

// deliver passes a message to the agent. session is the session that it is about, and named is the one in the header. A
// request waits for room.
func (l *httpLink) deliver(ctx context.Context, m wire.Message, session, named string, line []byte) error {
	max := l.c.server.opts.MaxQueued
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inEnd != nil || l.closed != nil {
		return errGone
	}
	switch m.Kind {
	case wire.KindRequest:
		return l.deliverRequest(ctx, m, session, line)
	case wire.KindResponse:
		if of, ok := l.asked[m.ID]; ok {
			if named != "" && of != "" && named != of {
				return refuse(http.StatusBadRequest, HeaderSession+" is not the session of the request")
			}
			delete(l.asked, m.ID)
		}
	}
	if l.inBytes > 0 && l.inBytes+len(line) > 4*max {
		return refuse(http.StatusServiceUnavailable, "the agent does not read")
	}
	l.push(line)
	return nil
}

// deliverRequest is deliver for a request; mu is held, but not while it waits.
func (l *httpLink) deliverRequest(ctx context.Context, m wire.Message, session string, line []byte) error {
	if _, twice := l.requests[m.ID]; twice && !m.ID.IsNull() {
		return invalidRequest(m.ID, "a request with this id is in progress")
	}
	if len(l.requests) >= maxRequests {
		return refuse(http.StatusServiceUnavailable, "too many requests in progress")
	}
	out := l.streams[session]
	l.requests[m.ID] = request{
		session:  session,
		received: out != nil && out.receiver != nil,
		first:    comesFirst[string(m.Method)],
		ends:     string(m.Method) == methodClose || string(m.Method) == methodDelete,
	}
	if len(l.retired) > 0 {
		l.retired = slices.DeleteFunc(l.retired, func(s string) bool { return s == session })
	}
	if len(l.waiting) == 0 && l.roomFor(line) {
		l.push(line)
		return nil
	}
	if l.waitSize > 0 && l.waitSize+len(line) > l.c.server.opts.MaxQueued {
		delete(l.requests, m.ID)
		return refuse(http.StatusServiceUnavailable, "too many requests wait for the agent")
	}
	a := &arrival{line: line, taken: make(chan struct{})}
	l.waiting = append(l.waiting, a)
	l.waitSize += len(line)
	l.mu.Unlock()
	select {
	case <-a.taken:
	case <-ctx.Done():
	}
	l.mu.Lock()
	if i := slices.Index(l.waiting, a); i >= 0 { // given up
		l.waiting = slices.Delete(l.waiting, i, i+1)
		l.waitSize -= len(line)
		delete(l.requests, m.ID)
		return refuse(http.StatusServiceUnavailable, "the request was given up")
	}
	if a.line != nil { // the connection ended before it was taken
		delete(l.requests, m.ID)
		return errGone
	}
	return nil
}

// roomFor reports whether a request may be put into the inbox; mu is held.
func (l *httpLink) roomFor(line []byte) bool {
	o := &l.c.server.opts
	return (l.inBytes == 0 || l.inBytes+len(line) <= o.MaxQueued) && !l.full
}

// admit takes requests in that have waited for room; mu is held.
func (l *httpLink) admit() {
	for len(l.waiting) > 0 && l.roomFor(l.waiting[0].line) {
		a := l.waiting[0]
		l.waiting = slices.Delete(l.waiting, 0, 1)
		l.waitSize -= len(a.line)
		l.push(a.line)
		a.line = nil
		close(a.taken)
	}
}

// Read returns the next message that the client has sent.
func (l *httpLink) Read() ([]byte, error) { return l.ReadLine(nil) }

func (l *httpLink) ReadLine(beforeWait func()) ([]byte, error) {
	for {
		line, err := l.take()
		if line != nil || err != nil {
			return line, err
		}
		if beforeWait != nil {
			beforeWait()
		}
		<-l.inWake
	}
}

// take takes a message out of the inbox; nil if there is none.
func (l *httpLink) take() ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed != nil:
		return nil, l.closed
	case len(l.inbox) > 0:
		line := l.inbox[0]
		if l.inbox[0] = nil; len(l.inbox) == 1 {
			l.inbox = nil
		} else {
			l.inbox = l.inbox[1:]
		}
		l.inBytes -= len(line)
		l.admit()
		return line, nil
	default:
		return nil, l.inEnd
	}
}

// Write sends one message.
func (l *httpLink) Write(message []byte) error {
	return l.WriteLines(append(wire.AppendLine(nil, message), '\n'))
}

// WriteLines puts each line into its stream, and waits for room before each.
func (l *httpLink) WriteLines(lines []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.roomAgain()
	for len(lines) > 0 {
		end := bytes.IndexByte(lines, '\n')
		if err := l.put(lines[:end]); err != nil {
			return err
		}
		lines = lines[end+1:]
		if out := l.last; out != nil && out.kept > pacedBytes && out.receiver != nil && !out.slow {
			l.pace(out)
		}
	}
	return nil
}

// roomAgain notes that the agent does not wait any more; mu is held.
func (l *httpLink) roomAgain() {
	if l.full {
		l.full = false
		l.admit()
	}
}

// TryWriteLines is WriteLines if there is room for all of it.
func (l *httpLink) TryWriteLines(lines []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := &l.c.server.opts
	// Each line can need a stream of its own.
	if l.closed != nil || l.buffered+len(lines)+bytes.Count(lines, newline)*framing > o.MaxBuffered ||
		len(l.streams)+bytes.Count(lines, newline) > o.MaxStreams {
		return false
	}
	for len(lines) > 0 {
		end := bytes.IndexByte(lines, '\n')
		// There is room, so that only what ends the connection keeps it from being put, and WriteLines would say that of the
		// next message.
		_ = l.put(lines[:end])
		lines = lines[end+1:]
	}
	return true
}

var newline = []byte{'\n'}

const (
	beforeID    = "id: "
	beforeEvent = "data: "
	behindEvent = "\n\n"
	framing     = len(beforeEvent) + len(behindEvent)
)

// put puts one message into its stream; mu is held, but not while it waits for room.
func (l *httpLink) put(line []byte) error {
	if l.closed != nil {
		return l.closed
	}
	if l.over { // for a client that wants nothing more
		return nil
	}
	m := wire.Peek(l.decode, line)
	var session []byte
	switch m.Kind {
	case wire.KindResponse:
		if l.answerInitialize(m, line) {
			return nil
		}
		req := l.requests[m.ID]
		err := l.putInto(l.streamOfAnswer(m.ID), line)
		if req.ends && m.Failure == nil {
			l.retire(req.session)
		}
		return err
	case wire.KindRequest, wire.KindNotification:
		if !bytes.HasPrefix(m.Method, ofProtocol) {
			session = wire.TextMember(l.decode, m.Params, memberSession)
		}
	}
	if out := l.streams[string(session)]; out != nil && l.hasRoom(len(line)) {
		// The name of a session is copied only for a new stream.
		l.append(out, line)
	} else if err := l.putInto(string(session), line); err != nil {
		return err
	}
	if m.Kind == wire.KindRequest && len(l.asked) < maxAsked {
		l.asked[m.ID] = string(session)
	}
	return nil
}

const (
	// pacedBytes is how much of a stream that is read an agent may be ahead.
	pacedBytes = 1 << 20
	// paceTime is for how long it then waits for a receiver that takes nothing.
	paceTime = 100 * time.Millisecond
)

// pace waits until a receiver has taken most of its stream, so that a burst takes little memory; mu is held, but not
// meanwhile. It does not wait for long when nothing is taken: until MaxBuffered other streams go on.
func (l *httpLink) pace(out *outStream) {
	timer := time.NewTimer(paceTime)
	defer timer.Stop()
	for !l.over && !out.slow && out.receiver != nil && out.kept > pacedBytes/2 {
		before := out.kept
		late := l.awaitTaken(timer)
		switch {
		case out.kept < before:
			timer.Reset(paceTime)
		case late:
			out.slow = true
		}
	}
}

// ofProtocol is the prefix of the names of the connection's own methods.
var ofProtocol = []byte("$/")

// answerInitialize keeps the answer to initialize for the POST that waits for it; mu is held.
func (l *httpLink) answerInitialize(m wire.Message, line []byte) bool {
	if l.answer != nil || m.ID != l.initID {
		return false
	}
	delete(l.requests, m.ID)
	l.answer = bytes.Clone(line)
	l.refused = m.Failure != nil || m.Result == nil
	close(l.initialized)
	return true
}

// streamOfAnswer says into which stream an answer goes, and that its request is over; mu is held. An answer is behind
// what its session was sent before, so it is in the same stream: except that a client can wait for the answer before
// it reads that.
func (l *httpLink) streamOfAnswer(id wire.ID) (session string) {
	req, ok := l.requests[id]
	if !ok {
		return ""
	}
	delete(l.requests, id)
	if out := l.streams[req.session]; req.first && !req.received && (out == nil || out.receiver == nil) {
		return ""
	}
	return req.session
}

// putInto puts a message into the stream of a session, when there is room; mu is held, but not while it waits.
func (l *httpLink) putInto(session string, line []byte) error {
	for !l.over {
		if l.hasRoom(len(line)) {
			if out := l.streamFor(session); out != nil {
				l.append(out, line)
				return nil
			}
		}
		if err := l.awaitRoom(); err != nil {
			return err
		}
	}
	return l.closed
}

// hasRoom reports whether the given number of bytes may be kept in addition; mu is held.
func (l *httpLink) hasRoom(size int) bool {
	return l.buffered == 0 || l.buffered+size+framing <= l.c.server.opts.MaxBuffered
}

// awaitTaken waits until some of the kept data was taken, or it is late; mu is held, but not while waiting.
func (l *httpLink) awaitTaken(timer *time.Timer) (late bool) {
	l.mu.Unlock()
	defer l.mu.Lock()
	select {
	case <-l.outWake:
		return false
	case <-timer.C:
		return true
	}
}

// awaitRoom waits until some of the kept data was taken; mu is held, but not while waiting. It fails when the
// connection has ended, and ends it if nothing was taken for a long time.
func (l *httpLink) awaitRoom() error {
	stall := l.c.server.opts.StallTimeout
	progress := l.progress
	timer := time.NewTimer(stall)
	defer timer.Stop()
	l.full = true
	for !l.over && progress == l.progress {
		late := l.awaitTaken(timer)
		if late && progress == l.progress && !l.over {
			l.c.log.Warn("acp: a connection is ended, because its client does not read", "buffered", l.buffered)
			l.close(ErrStalled, ErrStalled)
		}
	}
	return l.closed
}

// streamFor returns the stream of a session, a new one if need be, or nil if there are too many; mu is held.
func (l *httpLink) streamFor(session string) *outStream {
	if out := l.streams[session]; out != nil {
		return out
	}
	if len(l.streams) >= l.c.server.opts.MaxStreams {
		l.sweep()
		if len(l.streams) >= l.c.server.opts.MaxStreams {
			return nil
		}
	}
	out := &outStream{session: session}
	if history := l.c.server.opts.History; history != nil {
		out.history = history(l.c.peer, session)
	}
	l.streams[session] = out
	return out
}

// maxRetired is how many sessions that were closed keep their streams, for clients that lose the answer.
const maxRetired = 16

// retire notes that a session was closed or deleted, and forgets the stream of one for which that was long ago; mu is
// held.
func (l *httpLink) retire(session string) {
	if l.retired = append(l.retired, session); len(l.retired) <= maxRetired {
		return
	}
	old := l.retired[0]
	l.retired = slices.Delete(l.retired, 0, 1)
	if out := l.streams[old]; out != nil && out.idle() {
		delete(l.streams, old)
	}
}

// idle reports whether a stream has no reader and is empty.
func (out *outStream) idle() bool { return out.receiver == nil && len(out.blocks) == 0 }

// sweep forgets empty streams without a reader; mu is held.
func (l *httpLink) sweep() {
	for session, out := range l.streams {
		if out.idle() {
			delete(l.streams, session)
		}
	}
}

// append puts a message into a stream; mu is held.
func (l *httpLink) append(out *outStream, line []byte) {
	id := ""
	if out.history != nil {
		id = out.history.Add(line)
	}
	l.count(out.add(id, line))
	l.last = out
	l.c.server.bytesOut.Add(uint64(len(line)))
	if out.receiver != nil {
		signal(out.receiver.wake)
	}
}

// count changes how many bytes are kept; mu is held.
func (l *httpLink) count(n int) {
	l.buffered += n
	l.c.server.buffered.Add(int64(n))
}

// attach makes the caller the receiver of a stream. It ends the previous receiver, and waits for its end. If there is a
// history, the stream continues after the cursor, unless that is empty.
func (l *httpLink) attach(ctx context.Context, session, cursor string, rc *http.ResponseController) (*outStream, *receiver, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		if l.over {
			return nil, nil, errGone
		}
		out := l.streamFor(session)
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
				l.rewind(out, missed)
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
			l.advance() // the agent may have waited for this stream to be made
			return out, out.receiver, nil
		}
		if l.c.server.opts.RejectSecondStream {
			return nil, nil, refuse(http.StatusConflict, "the stream is read by another request")
		}
		old.end()
		l.mu.Unlock()
		select {
		case <-old.done:
		case <-ctx.Done():
		}
		l.mu.Lock()
		if ctx.Err() != nil {
			return nil, nil, errGone
		}
	}
}

// rewind replaces the content of a stream with the messages that its client has missed, which include that content; mu
// is held.
func (l *httpLink) rewind(out *outStream, missed iter.Seq2[string, []byte]) {
	l.drop(out)
	for id, line := range missed {
		l.count(out.add(id, line))
	}
}

// end has a receiver end, also while it writes; mu is held, so that it has not ended yet.
func (rcv *receiver) end() {
	if rcv.over {
		return
	}
	rcv.over = true
	close(rcv.replaced)
	// If deadlines are not supported, it ends when its data is taken.
	_ = rcv.rc.SetWriteDeadline(time.Now().Add(-time.Second))
}

func (l *httpLink) detach(out *outStream, rcv *receiver) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rcv.over = true
	out.receiver = nil
	if l.over {
		l.drop(out)
	}
	close(rcv.done)
	l.advance() // it may have been the last to need the stream
}

// send sends the content of a stream to the client of ctx, and reports whether there can be more.
func (l *httpLink) send(ctx context.Context, out *outStream, rcv *receiver, ew *eventWriter) (more bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(out.blocks) > 0 {
		if rcv.over {
			return false, errReplaced
		}
		if ctx.Err() != nil {
			return false, context.Cause(ctx) // what is not begun is kept for the next receiver
		}
		b := out.next()
		l.mu.Unlock()
		sent := 0
		for sent < len(b.events) && err == nil {
			n := min(len(b.events)-sent, writeChunk)
			if err = ew.write(b.events[sent : sent+n]); err == nil {
				sent += n
				l.taken(out, n)
			}
		}
		l.mu.Lock()
		if err != nil {
			l.giveBack(out, b.events, sent)
			return false, err
		}
		out.done(b)
	}
	return !l.over, nil
}

// taken records that the given number of bytes of a stream were taken; mu is not held.
func (l *httpLink) taken(out *outStream, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.release(out, n)
}

// release is taken with mu held.
func (l *httpLink) release(out *outStream, n int) {
	l.count(-n)
	if out.kept -= n; out.kept < pacedBytes {
		out.slow = false
	}
	l.advance()
}

// advance makes the agent check again what it waits for; mu is held.
func (l *httpLink) advance() {
	l.progress++
	signal(l.outWake)
}

// giveBack puts the data that its receiver could not send back into a stream; mu is held. sent is how much of events
// was sent; the chunk after that may have arrived or not. An event that ends there is sent again only if it is an
// answer: a call without an answer would wait forever, and of two it takes the first, but a notification must not
// arrive twice. Events that end later have not arrived.
func (l *httpLink) giveBack(out *outStream, events []byte, sent int) {
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
	if lost > 0 && !l.over {
		l.c.log.Warn("acp: a stream broke while messages were sent, of which it is not known whether they came",
			"session", out.session, "messages", lost)
	}
	l.release(out, len(events)-sent-len(again))
	if len(again) > 0 {
		out.blocks = slices.Insert(out.blocks, 0, &block{again})
	}
}

// endInput implements link.
func (l *httpLink) endInput(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopInput(why)
}

// stopInput is endInput with mu held.
func (l *httpLink) stopInput(why error) {
	if l.inEnd != nil {
		return
	}
	l.inEnd = why
	signal(l.inWake)
	for _, a := range l.waiting {
		close(a.taken)
	}
	l.waiting, l.waitSize = nil, 0
	if l.expiry != nil {
		l.expiry.Stop()
	}
	l.c.endsSoon()
}

// delete ends the connection for a client that asks for it. It returns false if it has ended before.
func (l *httpLink) delete() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.endForClient(errDeleted)
}

// endForClient ends the connection for a client that wants nothing more, or has gone; mu is held.
func (l *httpLink) endForClient(why error) bool {
	if l.over || l.inEnd != nil {
		return false
	}
	l.stopInput(why)
	l.stopOutput()
	return true
}

// stopOutput makes receivers send the remaining data, and end; mu is held.
func (l *httpLink) stopOutput() {
	l.over = true
	undelivered := 0
	for _, out := range l.streams {
		if out.receiver != nil {
			signal(out.receiver.wake)
		} else {
			undelivered += out.kept
			l.drop(out)
		}
	}
	if undelivered > 0 {
		l.c.log.Info("acp: a connection ended with undelivered messages", "bytes", undelivered)
	}
	signal(l.outWake)
}

// drop discards the content of a stream; mu is held.
func (l *httpLink) drop(out *outStream) {
	l.count(-out.kept)
	out.blocks, out.spare, out.kept = nil, nil, 0
}

// close ends the connection in both directions, for the agent with these errors; mu is held.
func (l *httpLink) close(read, write error) {
	l.stopInput(read)
	if l.closed == nil {
		l.closed = write
	}
	signal(l.inWake)
	if !l.over {
		l.stopOutput()
	}
}

// Close ends the connection for the agent.
func (l *httpLink) Close() error {
	l.finish(nil)
	return nil
}

// finish implements link.
func (l *httpLink) finish(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		for _, id := range l.unanswered() {
			line, encErr := wire.AppendError(nil, &id, agentGone)
			if encErr != nil {
				continue // an id that came is one that can be sent
			}
			// It is short, and the last of its stream: that it exceeds what is kept does not matter.
			if m := (wire.Message{ID: id, Failure: agentGone}); !l.answerInitialize(m, line) {
				if out := l.streamFor(l.streamOfAnswer(id)); out != nil {
					l.append(out, line)
				}
			}
		}
	}
	why := fmt.Errorf("%w by this side", rpc.ErrClosed)
	l.close(fmt.Errorf("%w: %w", why, io.EOF), why)
}

// unanswered returns the ids of the requests in progress; mu is held.
func (l *httpLink) unanswered() (ids []wire.ID) {
	for id := range l.requests {
		ids = append(ids, id)
	}
	return ids
}

// agentGone answers the requests that an agent has left unanswered.
var agentGone = &wire.Error{Code: codeInternal, Message: "Internal error: the agent has ended"}

// cut implements link.
func (l *httpLink) cut(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.close(why, why)
	for _, out := range l.streams {
		if out.receiver != nil {
			out.receiver.end()
		}
	}
}
