package natsacp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// seat is an agent on a node, with its link to a client.
//
// Three goroutines work for it: one reads from the agent (run), one writes to it (feed), and the one that handles the
// node's subscription (accept) never waits.
type seat struct {
	node      *Node
	id        string // of the link
	principal string
	agent     rpc.FastStream
	ctx       context.Context // ends with the agent
	cancel    context.CancelFunc
	log       *slog.Logger
	begun     time.Time
	trace     *tracer

	logging sync.Mutex // held while a batch is published
	seq     uint64     // of the last frame in the log
	stored  uint64     // where in the stream it is

	answering uint64 // the client of the last answer of the agent; run's

	recording sync.Mutex // held while the record is changed
	session   *Session   // nil if there is none
	prompts   int        // not answered

	mu       sync.Mutex
	gen      uint64
	gateway  string    // of the client that is attached, or empty
	detached time.Time // when it went

	received uint64   // frames of data from this client
	partial  []byte   // the beginning of a message
	queue    [][]byte // messages for the agent
	queued   int      // bytes in it
	fed      uint64   // messages of this client that the agent has
	feeding  bool     // the last of them is still on its way
	waiting  *nats.Msg
	cancels  []cancellation
	further  [][]byte      // requests for more pages, which are not the client's
	wake     chan struct{} // something is to be fed

	calls map[int64]call // of clients, by the id that the agent has
	next  int64
	asked map[rpc.ID][]byte // requests of the agent, as the client has them

	sent   uint64 // bytes
	base   uint64 // how many of them when this client attached
	taken  uint64 // how many of them may be sent before the client takes more, less the window
	room   chan struct{}
	beaten uint64          // the last seq that was reported
	result json.RawMessage // of the request that opened the session

	draining bool // leave when idle
	leaving  bool // the agent ends, and the session continues elsewhere
	held     []*nats.Msg
	fenced   bool
	why      string // why it ends, or empty
}

// call is a request of a client.
type call struct {
	gen     uint64
	id      rpc.ID
	method  string
	session string
	cwd     string // of a new session
	prompt  Prompt // if it is one with an idempotency key

	// Of session/list.
	params map[string]json.RawMessage
	own    []json.RawMessage // from the pages that were read
	pages  int
}

type cancellation struct {
	line  []byte
	after uint64
}

func newSeat(n *Node, o opening) *seat {
	return &seat{
		node: n, id: o.Link, principal: o.Principal, gateway: o.Gateway, gen: 1, begun: time.Now(),
		log: n.log.With("link", o.Link), trace: newTracer(n.opts.Hooks),
		wake: make(chan struct{}, 1), room: make(chan struct{}, 1),
		calls: map[int64]call{}, asked: map[rpc.ID][]byte{},
	}
}

// start starts the agent.
func (s *seat) start(ctx context.Context) error {
	agent := translate.Transport(s.node.agent(s.principal), translate.ClientSide, 1, &translate.Options{
		Chosen: func(version int) { s.node.protocol.Store(int64(version)) },
	})
	stream, err := agent.Connect(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.agent = stream.(rpc.FastStream) // that of translate is one
	if s.why != "" {
		s.cancel()
	}
	return nil
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// accept handles a frame of a gateway.
func (s *seat) accept(fr frame, m *nats.Msg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case fr.kind == frameTaken && fr.gen == 0 && s.why == "": // a node asks
		respond(m, []byte{replyOK})
		return
	case fr.kind == frameData && fr.gen == s.gen && fr.seq <= s.received && s.waiting == nil:
		respond(m, []byte{replyOK}) // again; whatever becomes of the agent, it was accepted
		return
	case s.why != "" && !s.leaving, fr.kind != frameAttach && fr.gen != s.gen:
		respond(m, []byte{replyNone})
		return
	}
	if s.leaving {
		if fr.kind != frameTaken {
			s.held = append(s.held, m)
		}
		return
	}
	switch fr.kind {
	case frameData:
		switch {
		case fr.seq == s.received+1:
			s.received++
			s.take(fr.data)
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
		respond(m, []byte{replyOK})
	case frameCancel:
		s.cancels = append(s.cancels, cancellation{slices.Clone(fr.data), fr.arg})
		signal(s.wake)
		respond(m, []byte{replyOK})
	case frameTaken:
		s.taken = max(s.taken, s.base+fr.arg)
		signal(s.room)
		respond(m, []byte{replyOK})
	case frameDetach:
		respond(m, []byte{replyOK})
		s.detach()
	case frameAttach:
		if s.idle() {
			s.held = append(s.held, m)
			s.leave()
			return
		}
		s.gen++
		s.gateway, s.received, s.fed, s.partial, s.cancels = string(fr.data), 0, 0, nil, nil
		s.queue, s.queued, s.waiting = nil, 0, nil
		s.taken = s.sent + 1<<62 // until it is known where the new client begins
		signal(s.room)
		gen := s.gen
		s.node.work.Go(func() { s.attach(gen, m) })
	}
}

// take puts data of the client into the queue; mu is held.
func (s *seat) take(data []byte) {
	for {
		end, rest, ok := bytes.Cut(data, []byte{'\n'})
		if !ok {
			s.partial = append(s.partial, data...)
			break
		}
		line := append(s.partial, end...)
		s.partial, data = nil, rest
		s.queue = append(s.queue, line)
		s.queued += len(line)
	}
	signal(s.wake)
}

// attach tells a new client's gateway where in the log it begins, and what the agent waits for.
func (s *seat) attach(gen uint64, m *nats.Msg) {
	s.logging.Lock()
	defer s.logging.Unlock()
	s.mu.Lock()
	if s.gen != gen {
		s.mu.Unlock()
		return
	}
	var again []byte
	for _, line := range s.asked {
		again = append(append(again, line...), '\n')
	}
	s.taken, s.base, s.beaten = s.sent, s.sent, 0
	s.mu.Unlock()
	s.tell(frame{kind: frameReplay, gen: gen})
	respond(m, (&frame{kind: replyOK, gen: gen, seq: s.seq, arg: s.stored}).encode())
	if err := s.publish(again); err != nil {
		s.fence(err.Error())
	}
}

// detach records that the client has gone; mu is held.
func (s *seat) detach() {
	s.gateway, s.detached = "", time.Now()
	signal(s.room)
	s.leaveIfIdle()
}

// check is called from time to time, with the gateways that are alive.
func (s *seat) check(gateways map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gateway != "" && !gateways[s.gateway] && time.Since(s.begun) > s.node.fleet.lease {
		s.detach()
	}
	unused := s.received == 0 && s.gen == 1 && time.Since(s.begun) > time.Minute
	if unused || s.gateway == "" && time.Since(s.detached) > s.node.opts.Grace {
		s.stopLocked("the client has gone")
	}
}

func (s *seat) leaveWhenIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	s.leaveIfIdle()
}

// idle reports whether the agent has nothing to do; mu is held.
func (s *seat) idle() bool { return len(s.calls) == 0 && len(s.queue) == 0 && !s.feeding }

// leaveIfIdle ends the agent if there is no turn, and either no client or a better place; mu is held.
func (s *seat) leaveIfIdle() {
	if (s.draining || s.gateway == "") && s.idle() && len(s.partial) == 0 {
		s.leave()
	}
}

// leave ends the agent so that the session can continue elsewhere; mu is held.
func (s *seat) leave() {
	if s.why != "" {
		return
	}
	s.leaving, s.why = true, "the session has moved"
	if s.agent == nil {
		return // start and run see it
	}
	if half, ok := s.agent.(rpc.HalfCloser); !ok || half.CloseWrite() != nil {
		s.cancel()
		return
	}
	time.AfterFunc(s.node.opts.CloseTime, s.cancel)
}

// stop ends the agent.
func (s *seat) stop(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopLocked(why)
}

func (s *seat) stopLocked(why string) {
	if s.why != "" && !s.leaving {
		return
	}
	s.leaving, s.why = false, why
	for _, m := range s.held {
		respond(m, []byte{replyNone})
	}
	s.held = nil
	if s.cancel != nil {
		s.cancel()
	}
}

// fence ends the agent of a session that another node may have. Nothing of it is published any more.
func (s *seat) fence(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.fenced {
		s.log.Warn("natsacp: an agent is ended", "reason", why)
	}
	s.fenced = true
	s.stopLocked(why)
}

// run passes on what the agent sends, until it ends.
func (s *seat) run() {
	closed := make(chan error, 1)
	stop := context.AfterFunc(s.ctx, func() { closed <- s.agent.Close() })
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		s.feed()
	}()
	err := s.relay()
	s.cancel()
	if stop() {
		closed <- s.agent.Close()
	}
	if e := <-closed; e != nil && !errors.Is(e, rpc.ErrClosed) {
		err = e // for a subprocess, how it ended
	}
	<-fed
	s.trace.end()
	s.finish(err)
	s.node.remove(s)
}

// relay reads from the agent.
func (s *seat) relay() error {
	var batch []byte
	var failed error
	answer := -1 // where in the batch an answer begins
	flush := func() {
		if failed == nil && len(batch) > 0 {
			s.logging.Lock()
			if answer >= 0 && !s.isCurrent(s.answering) {
				batch = batch[:answer] // another client may use the same id
			}
			failed = s.publish(batch)
			s.logging.Unlock()
		}
		answer = -1
		if batch = batch[:0]; cap(batch) > 2*maxPayload {
			batch = nil
		}
	}
	d := codec.NewDecoder(nil)
	for {
		line, err := s.agent.ReadLine(flush)
		if long, ok := errors.AsType[*rpc.TooLongError](err); ok {
			line, err = s.tooLong(long), nil
		} else if lost, ok := errors.AsType[*rpc.CallLostError](err); ok {
			line, err = lost.Response(), nil
		}
		if err != nil {
			flush()
			return err
		}
		var after func() error
		before := len(batch)
		if batch, after = s.fromAgent(d, batch, line); after != nil {
			answer = before
		}
		if len(batch) >= maxPayload/2 || after != nil {
			flush()
		}
		if after != nil && failed == nil {
			failed = after()
		}
		if failed != nil {
			s.fence(failed.Error())
			return failed
		}
	}
}

// tooLong returns the answer to a call whose answer is too long, or nil.
func (s *seat) tooLong(long *rpc.TooLongError) []byte {
	id, response, known := long.ID()
	if !known || !response {
		s.log.Warn("natsacp: a message of the agent is not passed on", "error", long)
		return nil
	}
	return (&rpc.CallLostError{ID: id, Err: fmt.Errorf("the response is longer than %d bytes", long.Limit)}).Response()
}

// fromAgent appends what the client gets for a message of the agent. after is called when that is in the log.
func (s *seat) fromAgent(d *codec.Decoder, dst, line []byte) (_ []byte, after func() error) {
	if len(line) == 0 {
		return dst, nil
	}
	m := wire.Peek(d, line)
	if m.Kind == wire.KindNotification && !bytes.HasPrefix(m.Method, []byte("$/")) {
		return append(wire.AppendLine(dst, line), '\n'), nil
	}
	m = wire.Parse(d, line)
	switch m.Kind {
	case wire.KindNotification:
		if string(m.Method) == methodCancelRequest {
			var asked rpc.ID
			line = s.renumber(m.Params, func(id rpc.ID) (rpc.ID, bool) {
				asked = wire.Canonical(id)
				return s.outwardID(id), true
			})
			if line == nil {
				return dst, nil
			}
			s.mu.Lock()
			if question := s.asked[asked]; question != nil { // whoever attaches gets both
				s.asked[asked] = slices.Concat(question, []byte{'\n'}, line)
			}
			s.mu.Unlock()
		}
		return append(wire.AppendLine(dst, line), '\n'), nil
	case wire.KindRequest:
		line = replaceID(line, m, s.outwardID(m.ID))
		s.mu.Lock()
		s.asked[wire.Canonical(m.ID)] = line
		s.mu.Unlock()
		return append(append(dst, line...), '\n'), nil
	case wire.KindResponse:
		return s.answered(dst, line, m)
	}
	// An answer that cannot be read ends its call, too: no other one will come.
	id, response, known := wire.Recover(line)
	if m.Broken != nil {
		id, response, known = m.ID, true, true
	}
	if !response || !known {
		s.log.Debug("natsacp: the agent printed something that is not a message")
		return dst, nil
	}
	line = (&rpc.CallLostError{ID: id, Err: errors.New("the agent's answer cannot be read")}).Response()
	return s.answered(dst, line, wire.Parse(d, line))
}

// outwardID is the id under which clients know a request of this agent. It is the same for each client that attaches.
func (s *seat) outwardID(id rpc.ID) rpc.ID {
	text, _ := codec.Append(nil, &id) // an id can always be written
	return rpc.StringID(idPrefix + s.id + ":" + string(text))
}

const idPrefix = "acp:"

// inwardID is the inverse of outwardID.
func (s *seat) inwardID(id rpc.ID) (inward rpc.ID, ok bool) {
	text, isText := id.Str()
	text, ok = strings.CutPrefix(text, idPrefix+s.id+":")
	if !ok || !isText {
		return inward, false
	}
	return inward, codec.Unmarshal([]byte(text), &inward) == nil
}

// replaceID returns a message with another id.
func replaceID(line []byte, m wire.Message, id rpc.ID) []byte {
	text, _ := codec.Append(nil, &id) // an id can always be written
	out := make([]byte, 0, len(line)+len(text))
	out = append(append(append(out, line[:m.IDAt]...), text...), line[m.IDEnd:]...)
	return wire.AppendLine(out[:0], out)
}

const methodCancelRequest = "$/cancel_request"

// renumber returns a $/cancel_request with another id, or nil.
func (s *seat) renumber(params []byte, number func(rpc.ID) (rpc.ID, bool)) []byte {
	var p map[string]json.RawMessage
	var id rpc.ID
	if json.Unmarshal(params, &p) != nil || codec.Unmarshal(p["requestId"], &id) != nil {
		return nil
	}
	id, ok := number(id)
	if !ok {
		return nil
	}
	p["requestId"], _ = codec.Append(nil, &id) // an id can always be written
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": methodCancelRequest, "params": p})
	if err != nil {
		return nil
	}
	return line
}

// answered handles an answer of the agent.
func (s *seat) answered(dst, line []byte, m wire.Message) (_ []byte, after func() error) {
	n, ok := m.ID.Int()
	s.mu.Lock()
	c, known := s.calls[n]
	s.mu.Unlock()
	if !ok || !known {
		s.log.Warn("natsacp: the agent has answered something that nobody has asked")
		return dst, nil
	}
	result, err := s.effect(&c, m)
	if errors.Is(err, errFurther) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.calls[n] = c
		s.further = append(s.further, requestLine(m.ID, c))
		signal(s.wake)
		return dst, nil
	}
	s.trace.ended(true, m.ID, m)
	// The agent leaves before the client gets the answer. Otherwise a client that prompts at once could keep it here
	// forever.
	s.mu.Lock()
	defer s.mu.Unlock()
	c = s.calls[n] // another client may have taken it over
	delete(s.calls, n)
	line = replaceID(line, m, c.id)
	if err != nil {
		line = errorLine(c.id, err)
	} else if result != nil {
		line = resultLine(c.id, result)
	}
	s.answering = c.gen
	s.leaveIfIdle()
	return append(append(dst, line...), '\n'), func() error {
		if c.method == acp.MethodPrompt {
			return s.turnEnded(m)
		}
		return nil
	}
}

// errorLine returns the answer to a request that has failed.
func errorLine(id rpc.ID, err error) []byte {
	failure := rpc.ErrorOf(err)
	line, _ := wire.AppendError(nil, &id,
		&wire.Error{Code: int(failure.Code), Message: failure.Message, Data: failure.Data})
	return line // an id and a text can always be written
}

// requestLine returns a request for another page.
func requestLine(id rpc.ID, c call) []byte {
	text, _ := json.Marshal(c.params) // what was read can be written
	number, _ := codec.Append(nil, &id)
	return slices.Concat([]byte(`{"jsonrpc":"2.0","id":`), number, []byte(`,"method":"`+acp.MethodListSessions+`","params":`), text, []byte("}"))
}

func resultLine(id rpc.ID, result json.RawMessage) []byte {
	text, _ := codec.Append(nil, &id) // an id can always be written
	return slices.Concat([]byte(`{"jsonrpc":"2.0","id":`), text, []byte(`,"result":`), result, []byte("}"))
}

// publish writes messages to the log. The caller holds logging.
func (s *seat) publish(lines []byte) error {
	for part := range slices.Chunk(lines, s.node.fleet.payload()) {
		if err := s.awaitRoom(len(part)); err != nil {
			return err
		}
		if err := s.append(frameData, part); err != nil {
			return err
		}
	}
	return nil
}

// append publishes one frame to the log, unless another node has written there. The caller holds logging.
func (s *seat) append(kind byte, data []byte) error {
	s.mu.Lock()
	gen := s.gen
	s.mu.Unlock()
	s.seq++
	m := nats.NewMsg(s.node.fleet.subject("log", s.id))
	m.Data = (&frame{kind: kind, gen: gen, seq: s.seq, data: data}).encode()
	for {
		if !s.node.leased() {
			return errors.New("the lease has ended")
		}
		stored, err := s.appendOnce(m)
		if err == nil {
			s.stored = stored
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), f.lease/4)
	defer cancel()
	for after := s.stored; ; {
		ack, err := f.js.PublishMsg(ctx, m, jetstream.WithExpectLastSequencePerSubject(after))
		if err == nil {
			return ack.Sequence, nil
		}
		if !isConflict(err) {
			return 0, err
		}
		last, data, err := f.last(ctx, f.log, m.Subject)
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

// awaitRoom waits until the client has taken enough.
func (s *seat) awaitRoom(size int) error {
	for {
		s.mu.Lock()
		switch {
		case s.fenced:
			why := s.why
			s.mu.Unlock()
			return errors.New(why)
		case s.why != "" || s.gateway == "" || s.sent == s.taken || s.sent+uint64(size) <= s.taken+uint64(s.node.opts.Window):
			s.sent += uint64(size)
			s.mu.Unlock()
			return nil
		}
		gen := s.gen
		s.mu.Unlock()
		s.tell(frame{kind: frameFull, gen: gen})
		timer := time.NewTimer(beatTime)
		select {
		case <-s.room:
		case <-timer.C:
		case <-s.ctx.Done():
		}
		timer.Stop()
	}
}

// tell sends a frame to the gateway that is not in the log. It may be lost.
func (s *seat) tell(fr frame) {
	if err := s.node.fleet.nc.Publish(s.node.fleet.subject("down", s.id), fr.encode()); err != nil {
		s.log.Debug("natsacp: cannot publish", "error", err)
	}
}

// beat tells how far the log has grown, so that the gateway notices what it has missed.
func (s *seat) beat() {
	if !s.logging.TryLock() {
		return // it grows
	}
	seq := s.seq
	s.logging.Unlock()
	s.mu.Lock()
	again := s.gateway != "" && (s.beaten != seq || len(s.calls) > 0)
	s.beaten = seq
	gen := s.gen
	s.mu.Unlock()
	if again {
		s.tell(frame{kind: frameBeat, gen: gen, seq: seq})
	}
}

// feed passes messages of the client to the agent.
func (s *seat) feed() {
	d := codec.NewDecoder(nil)
	for {
		line, gen, ok := s.nextLine()
		if !ok {
			select {
			case <-s.wake:
				continue
			case <-s.ctx.Done():
				return
			}
		}
		if gen != 0 {
			line = s.fromClient(d, gen, line)
		}
		if line != nil {
			// If it fails, the agent ends, and relay returns the reason.
			_ = s.agent.Write(line)
		}
	}
}

// nextLine removes the next message for the agent. Cancellations come first. gen is 0 if it is not from a client.
func (s *seat) nextLine() (line []byte, gen uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.feeding = false
	s.leaveIfIdle() // if it was waited for
	if len(s.further) > 0 {
		s.feeding = true
		line, s.further = s.further[0], s.further[1:]
		return line, 0, true
	}
	for i, c := range s.cancels {
		if c.after <= s.fed {
			s.feeding = true
			s.cancels = slices.Delete(s.cancels, i, i+1)
			return c.line, s.gen, true
		}
	}
	if len(s.queue) == 0 {
		s.queue = nil
		return nil, 0, false
	}
	line, s.queue = s.queue[0], s.queue[1:]
	s.fed++
	s.feeding = true
	if s.queued -= len(line); s.waiting != nil && s.queued <= s.node.opts.Window/2 {
		respond(s.waiting, []byte{replyOK})
		s.waiting = nil
	}
	return line, s.gen, true
}

// fromClient returns what the agent gets for a message of the client, or nil.
func (s *seat) fromClient(d *codec.Decoder, gen uint64, line []byte) []byte {
	m := wire.Parse(d, line)
	switch m.Kind {
	case wire.KindRequest:
		c := call{gen: gen, id: m.ID, method: string(m.Method), session: string(wire.TextMember(d, m.Params, "sessionId"))}
		if c.method == acp.MethodNewSession {
			c.cwd = directory(m.Params)
		}
		if c.method == acp.MethodPrompt {
			c.prompt = keyed(m.Params)
		}
		if c.method == acp.MethodListSessions {
			_ = json.Unmarshal(m.Params, &c.params) // if they are wrong, the agent says so
		}
		s.mu.Lock()
		s.next++
		n := s.next
		s.calls[n] = c
		s.mu.Unlock()
		s.trace.began(true, rpc.IntID(n), m, c.session)
		answer, err := s.before(c, m)
		if answer == nil && err == nil {
			return replaceID(line, m, rpc.IntID(n))
		}
		s.mu.Lock()
		delete(s.calls, n)
		s.mu.Unlock()
		switch {
		case errors.Is(err, errTaken):
			s.fence(err.Error())
			return nil
		case errors.Is(err, errWaits):
			s.trace.failed(rpc.IntID(n), err)
			return nil
		}
		if answer != nil {
			s.trace.ended(true, rpc.IntID(n), wire.Message{Result: answer})
			answer = resultLine(c.id, answer)
		} else {
			s.trace.failed(rpc.IntID(n), err)
			answer = errorLine(c.id, err)
		}
		s.logging.Lock()
		defer s.logging.Unlock()
		if !s.isCurrent(c.gen) {
			return nil
		}
		if err := s.publish(append(answer, '\n')); err != nil {
			s.fence(err.Error())
		}
		return nil
	case wire.KindResponse:
		if id, ok := s.answer(m.ID); ok {
			return replaceID(line, m, id)
		}
	case wire.KindNotification:
		if string(m.Method) == methodCancelRequest {
			return s.renumber(m.Params, func(id rpc.ID) (rpc.ID, bool) { return s.number(gen, id) })
		}
		return line
	default: // an answer without a result
		if id, ok := s.answer(m.ID); ok {
			text, _ := codec.Append(nil, &id) // an id can always be written
			return slices.Concat([]byte(`{"jsonrpc":"2.0","id":`), text, []byte("}"))
		}
	}
	return nil
}

// isCurrent reports whether a client is still attached. While logging is held, what is published is then for it, or for
// nobody: a new client begins after it.
func (s *seat) isCurrent(gen uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return gen == s.gen
}

// answer returns the agent's id of its request that a client answers. It fails if another client was faster.
func (s *seat) answer(outward rpc.ID) (id rpc.ID, ok bool) {
	if id, ok = s.inwardID(outward); !ok {
		return id, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok = s.asked[wire.Canonical(id)]
	delete(s.asked, wire.Canonical(id))
	return id, ok
}

// number returns the agent's id of a client's request.
func (s *seat) number(gen uint64, id rpc.ID) (rpc.ID, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, c := range s.calls {
		if c.gen == gen && wire.Canonical(c.id) == wire.Canonical(id) {
			return rpc.IntID(n), true
		}
	}
	return id, false
}

// finish records how the agent has ended, and tells the gateway.
func (s *seat) finish(err error) {
	s.mu.Lock()
	kind, why, fenced := byte(frameEnd), s.why, s.fenced
	if s.leaving {
		kind = frameMoved
	}
	if why == "" {
		why = "the agent has ended"
		if exit, ok := errors.AsType[*rpc.ExitError](err); ok {
			why += ": " + exit.Error()
		} else if err != nil && !errors.Is(err, io.EOF) {
			s.log.Warn("natsacp: an agent has failed", "error", err)
		}
		s.why = why
	}
	s.mu.Unlock()
	if !fenced {
		if err := s.release(); err != nil {
			s.log.Warn("natsacp: a session was not released", "error", err)
		}
		s.logging.Lock()
		if err := s.append(kind, []byte(why)); err != nil {
			s.log.Debug("natsacp: cannot tell the end of an agent", "error", err)
		}
		s.logging.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.held {
		respond(m, []byte{replyMoved})
	}
	s.held, s.leaving = nil, false
}
