package natsacp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// link connects a client with an agent, for one session at most.
//
// Two goroutines work for it: one opens it and sends (run), and one handles its subscription (receive).
type link struct {
	client *client
	// What it is for. It is set before the link starts.
	first   bool     // the client's initialize is the first message; else the link sends one of its own
	attach  *Session // the agent may still run
	restore bool     // the session is loaded or resumed before the first message

	// Guarded by client.mu.
	id       string
	node     string
	gen      uint64 // 0 until it is open
	reserved bool   // it has a session, or will have
	opened   bool   // the client has it
	session  string
	params   json.RawMessage // of the request that opened the session
	queue    []item
	queued   int    // bytes in it
	sending  []item // removed from the queue; the node may have them
	moved    bool   // the node gives the session up, and answers what is being sent
	lines    uint64 // messages ever sent
	prompt   uint64 // number of the last prompt that was sent
	urging   int    // cancellations on their way, which later prompts must not overtake
	pending  map[rpc.ID]item
	answers  map[string]chan wire.Message // to requests of its own, by id
	quiet    bool                         // updates are dropped: the client has them
	resume   bool                         // the first request is session/resume
	joined   uint64                       // where in the stream the client has joined an agent that runs
	// nothing but answers is passed until that to session/resume, which is followed by the rest
	resuming bool
	missed   missed // what follows it before that
	answered bool   // it was just passed
	over     bool
	why      string
	heard    time.Time // when the node was last known to have the link
	wake     chan struct{}
	ctx      context.Context // ends when over
	cancel   context.CancelFunc

	sent uint64 // frames of data; run's

	// The goroutine of the subscription has these.
	decoder  *codec.Decoder
	expect   uint64 // the next frame in the log
	from     uint64 // where in the stream it may be
	partial  []byte
	taken    uint64 // bytes
	reported uint64
}

// item is a message of a client.
type item struct {
	line    []byte // with newline
	request bool
	urgent  bool   // a cancellation, which waits for nothing but what it cancels
	id      rpc.ID // canonical, of a request, or of the one that a $/cancel_request names
	number  uint64 // among the messages sent, of a pending request that was sent
	method  string
	session string
	since   time.Time // when it was first queued
}

// start starts a link; mu is held.
func (c *client) start(l *link) *link {
	l.client, l.pending, l.answers = c, map[rpc.ID]item{}, map[string]chan wire.Message{}
	l.wake, l.decoder = make(chan struct{}, 1), codec.NewDecoder(nil)
	l.ctx, l.cancel = context.WithCancel(c.ctx)
	c.work.Go(l.run)
	return l
}

// timeout bounds one step of opening a link.
func (l *link) timeout() (context.Context, context.CancelFunc) {
	return context.WithTimeout(l.ctx, l.client.gateway.opts.OpenTimeout)
}

// add queues a message; the client's mu is held.
func (l *link) add(it item) {
	if it.since.IsZero() {
		it.since = time.Now()
	}
	at := len(l.queue)
	if it.urgent {
		if target := l.queuedTarget(it); target >= 0 {
			at = target + 1
		}
	}
	l.queue = slices.Insert(l.queue, at, it)
	l.queued += len(it.line)
	if it.request {
		l.pending[it.id] = it
	}
	signal(l.wake)
}

// queuedTarget returns where in the queue that is which a cancellation must follow, or -1: the request that it names,
// or else the last prompt; the client's mu is held.
func (l *link) queuedTarget(cancel item) int {
	for i, it := range slices.Backward(l.queue) {
		if cancel.method == methodCancelRequest && it.request && it.id == cancel.id ||
			cancel.method == acp.MethodCancel && it.method == acp.MethodPrompt {
			return i
		}
	}
	return -1
}

// errStopped is why a link ends when its client has.
var errStopped = errors.New("the client has ended")

// run opens the link, and sends what is queued.
func (l *link) run() {
	c := l.client
	sub, err := l.open()
	if err == nil && (!l.first || l.restore) {
		err = l.prepare()
	}
	for err == nil {
		select {
		case <-l.wake:
			err = l.flush()
		case <-l.ctx.Done():
			err = errStopped
		}
	}
	c.mu.Lock()
	leave := !l.over && l.node != "" // the node may still have the link
	c.mu.Unlock()
	if c.ctx.Err() == nil {
		l.finish(err)
	}
	l.cancel()
	if sub == nil {
		return
	}
	if leave {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if _, _, err := l.request(ctx, frame{kind: frameDetach, gen: l.gen}); err != nil {
			c.gateway.log.Debug("natsacp: a node does not answer", "node", l.node, "error", err)
		}
	}
	_ = sub.Unsubscribe() // it fails only when the connection is closed
}

// errSilent reports that a node may have got a frame that it did not answer.
var errSilent = errors.New("the node does not answer")

// request sends a frame to the node until it is answered. It fails with nats.ErrNoResponders if nobody got it. sure
// reports that it was sent once, so that the answer is about that.
func (l *link) request(ctx context.Context, fr frame) (reply []byte, sure bool, err error) {
	f := l.client.gateway.fleet
	subject := l.up()
	for n := 0; ; n++ {
		bound, cancel := context.WithTimeout(ctx, min(300*time.Millisecond<<min(n, 3), 2*time.Second))
		var m *nats.Msg
		m, err = f.nc.RequestWithContext(bound, subject, fr.encode())
		cancel()
		if err == nil && len(m.Data) > 0 {
			return m.Data, n == 0, nil
		}
		if errors.Is(err, nats.ErrNoResponders) && n > 0 {
			return nil, false, errSilent // it may have got an earlier one
		}
		if ctx.Err() != nil || errors.Is(err, nats.ErrNoResponders) {
			return nil, false, err
		}
	}
}

// up is the subject of the node for this link.
func (l *link) up() string {
	l.client.mu.Lock()
	defer l.client.mu.Unlock()
	return l.client.gateway.fleet.subject("up", l.node, l.id)
}

// open finds or starts the agent.
func (l *link) open() (*nats.Subscription, error) {
	ctx, cancel := l.timeout()
	defer cancel()
	if l.restore {
		s, err := l.client.gateway.fleet.session(ctx, l.client.principal, l.session)
		if err != nil {
			return nil, err
		}
		if s == nil {
			return nil, acp.SessionNotFound(acp.SessionID(l.session))
		}
		if s.Node != "" {
			l.attach = s
		}
	}
	if l.attach != nil {
		sub, err := l.join(ctx)
		if sub != nil || err != nil {
			return sub, err
		}
	}
	return l.place(ctx)
}

// subscribe receives what the node says about the link.
func (l *link) subscribe(id string) (*nats.Subscription, error) {
	c := l.client
	c.mu.Lock()
	delete(c.links, l.id)
	l.id = id
	c.links[id] = l
	c.mu.Unlock()
	return c.gateway.fleet.nc.Subscribe(c.gateway.fleet.subject("down", id), l.receive)
}

// join attaches to an agent that may still run. It returns nil if there is none, or if the node has let it go.
func (l *link) join(ctx context.Context) (*nats.Subscription, error) {
	c := l.client
	sub, err := l.subscribe(l.attach.Link)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	l.node = l.attach.Node
	c.mu.Unlock()
	for {
		nodes, err := c.gateway.alive(ctx)
		if err == nil && !nodes[l.node] {
			return nil, sub.Unsubscribe()
		}
		bound, cancel := context.WithTimeout(ctx, 5*time.Second)
		reply, _, err := l.request(bound, frame{kind: frameAttach, data: []byte(c.gateway.opts.Name)})
		cancel()
		if fr, ok := decodeFrame(reply); err == nil && ok && fr.kind == replyOK {
			c.mu.Lock()
			l.gen, l.heard, l.expect, l.from = fr.gen, time.Now(), fr.seq+1, fr.arg+1
			l.joined, l.resuming = fr.arg, l.resume
			l.first, l.restore = true, false // the agent needs neither initialize nor the session
			c.mu.Unlock()
			return sub, nil
		}
		if err == nil {
			return nil, sub.Unsubscribe()
		}
		if err := pause(ctx, lull); err != nil {
			return nil, errors.Join(errUnavailable, sub.Unsubscribe())
		}
	}
}

var errUnavailable = rpc.ErrInternal.WithMessagef("no node of the fleet can take the session")

// place lets a node start an agent.
func (l *link) place(ctx context.Context) (*nats.Subscription, error) {
	c := l.client
	f := c.gateway.fleet
	silent := map[string]bool{}
	full, again := false, false // for this principal
	for age := f.lease / 4; ; {
		node := c.gateway.choose(ctx, silent, age)
		if node == "" { // perhaps there is a new one, or an agent was about to end
			if full && again {
				return nil, rpc.ErrInternal.WithMessagef("the user has too many sessions")
			}
			again = true
			clear(silent)
			age = lull
			if pause(ctx, lull) != nil {
				return nil, errUnavailable
			}
			continue
		}
		silent[node] = true
		sub, err := l.subscribe(unique())
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		l.gen, l.expect, l.from, l.heard = 1, 1, 1, time.Now()
		c.mu.Unlock()
		// strings cannot fail
		text, _ := json.Marshal(opening{Link: l.id, Principal: c.principal, Gateway: c.gateway.opts.Name})
		bound, cancel := context.WithTimeout(ctx, 5*time.Second)
		m, err := f.nc.RequestWithContext(bound, f.subject("open", node), text)
		cancel()
		var answer opened
		if err == nil {
			err = json.Unmarshal(m.Data, &answer)
		}
		if err == nil && answer.Error != "" {
			return nil, errors.Join(rpc.ErrInternal.WithMessagef("%s", answer.Error), sub.Unsubscribe())
		}
		if err == nil && answer.Node != "" {
			c.mu.Lock()
			l.node = answer.Node
			c.mu.Unlock()
			return sub, nil
		}
		full = full || answer.Full
		if err := sub.Unsubscribe(); err != nil {
			return nil, err
		}
	}
}

// prepare initializes the agent, and restores the session.
func (l *link) prepare() error {
	c := l.client
	ctx, cancel := l.timeout()
	defer cancel()
	result, err := l.call(ctx, acp.MethodInitialize, c.initialize)
	if err != nil || !l.restore {
		return err
	}
	var r struct {
		AgentCapabilities struct {
			LoadSession         bool
			SessionCapabilities struct{ Resume json.RawMessage }
		}
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return err
	}
	var params map[string]json.RawMessage
	if err := json.Unmarshal(l.params, &params); err != nil {
		return err
	}
	if params["sessionId"], err = json.Marshal(l.session); err != nil {
		return err
	}
	method := acp.MethodResumeSession
	if resume := r.AgentCapabilities.SessionCapabilities.Resume; resume == nil || string(resume) == "null" {
		if method = acp.MethodLoadSession; !r.AgentCapabilities.LoadSession {
			return rpc.ErrInternal.WithMessagef("the session is lost: the agent cannot load sessions")
		}
	}
	c.mu.Lock()
	l.quiet = true
	c.mu.Unlock()
	for {
		if _, err = l.call(ctx, method, params); err == nil || pause(ctx, lull) != nil {
			break
		}
		// Another node has not let the session go yet, or was faster. Then the client can attach there.
		if taken, e := l.elsewhere(ctx); e == nil && taken {
			err = unsentError{err}
			break
		}
	}
	c.mu.Lock()
	l.quiet = false
	c.mu.Unlock()
	return err
}

// call sends a request of the gateway's own, and returns its result.
func (l *link) call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	c := l.client
	answer := make(chan wire.Message, 1)
	c.mu.Lock()
	id := ownPrefix + strconv.Itoa(len(l.answers)+1)
	l.answers[id] = answer
	l.lines++
	c.mu.Unlock()
	line := requestLine(idText(rpc.StringID(id)), method, params)
	if err := l.send(append(line, '\n')); err != nil {
		return nil, err
	}
	select {
	case m := <-answer:
		if m.Failure != nil {
			return nil, &rpc.Error{Code: rpc.Code(m.Failure.Code), Message: m.Failure.Message, Data: m.Failure.Data}
		}
		return m.Result, nil
	case <-l.ctx.Done():
		return nil, errStopped
	case <-ctx.Done():
		return nil, rpc.ErrInternal.WithMessagef("the agent does not answer %s", method)
	}
}

// elsewhere reports whether another agent that may be alive has the session.
func (l *link) elsewhere(ctx context.Context) (bool, error) {
	f := l.client.gateway.fleet
	s, err := f.session(ctx, l.client.principal, l.session)
	if err != nil || s == nil || s.Node == "" || s.Link == l.id {
		return false, err
	}
	nodes, err := l.client.gateway.alive(ctx)
	return nodes[s.Node], err
}

// ownPrefix begins the ids of the gateway's own requests.
const ownPrefix = "acp-fleet:"

// flush sends what is queued.
func (l *link) flush() error {
	c := l.client
	for {
		c.mu.Lock()
		l.sending = nil
		size, n := 0, 0
		for n < len(l.queue) && (n == 0 || size+len(l.queue[n].line) <= maxPayload/2) &&
			(l.urging == 0 || l.queue[n].method != acp.MethodPrompt) {
			size += len(l.queue[n].line)
			n++
		}
		moved := l.moved
		if !moved && !l.over {
			for _, it := range l.queue[:n] {
				if l.lines++; it.method == acp.MethodPrompt {
					l.prompt = l.lines
				}
				if p, ok := l.pending[it.id]; ok && it.request {
					p.number = l.lines
					l.pending[it.id] = p
				}
			}
			l.sending, l.queue = l.queue[:n:n], l.queue[n:]
			l.queued -= size
			c.room.Broadcast()
		}
		if len(l.queue) == 0 {
			l.queue = nil
		}
		items := l.sending
		c.mu.Unlock()
		if moved {
			return errMoved
		}
		if len(items) == 0 {
			return nil
		}
		data := make([]byte, 0, size)
		for _, it := range items {
			data = append(data, it.line...)
		}
		if err := l.send(data); err != nil {
			return err
		}
	}
}

// send sends data to the node. It returns an unsentError if the node does not have any of it.
func (l *link) send(data []byte) error {
	c := l.client
	f := c.gateway.fleet
	size := f.payload() - 64 // for the frame
	for begin := 0; begin < len(data); begin += size {
		part := data[begin:min(begin+size, len(data))]
		l.sent++
		tried := begin > 0
		for {
			reply, sure, err := l.request(l.ctx, frame{kind: frameData, gen: l.gen, seq: l.sent, data: part})
			if err == nil {
				switch reply[0] {
				case replyOK:
				case replyMoved:
					return errMoved
				default:
					lost := errors.New("the node has lost the session")
					if sure && !tried {
						return unsentError{lost}
					}
					return lost
				}
				break
			}
			silent := errors.Is(err, errSilent)
			if tried = tried || silent; !silent && !errors.Is(err, nats.ErrNoResponders) {
				return err
			}
			// It has died, or lost its connection.
			nodes, err := c.gateway.alive(l.ctx)
			switch {
			case err == nil && !nodes[l.node] && tried:
				return errLost(l.node)
			case err == nil && !nodes[l.node]:
				return unsentError{errLost(l.node)}
			}
			if err := pause(l.ctx, lull); err != nil {
				return err
			}
		}
	}
	return nil
}

// unsentError is why a link ends when the node does not have what was being sent.
type unsentError struct{ error }

// errMoved is why a link ends when its node gives the session up in good order.
var errMoved error = unsentError{errors.New("the session has moved")}

func errLost(node string) error { return fmt.Errorf("node %s has died", node) }

// urge sends a cancellation, which does not wait behind what is queued after what it cancels.
func (l *link) urge(it item) {
	c := l.client
	c.mu.Lock()
	after, open := l.prompt, l.gen != 0 && l.node != "" && !l.over && l.queuedTarget(it) < 0
	if it.method == methodCancelRequest {
		after = l.pending[it.id].number
	}
	gen := l.gen
	if open {
		l.urging++
	}
	c.mu.Unlock()
	if !open {
		c.put(l, it)
		return
	}
	c.work.Go(func() {
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			l.urging--
			signal(l.wake)
		}()
		ctx, cancel := l.timeout()
		defer cancel()
		fr := frame{kind: frameCancel, gen: gen, arg: after, data: bytes.TrimSuffix(it.line, []byte{'\n'})}
		if _, _, err := l.request(ctx, fr); err != nil {
			c.gateway.log.Debug("natsacp: a cancellation was not sent", "error", err)
		}
	})
}

// check ends the link if its node is not alive or does not have it.
func (l *link) check(nodes map[string]bool) {
	c := l.client
	c.mu.Lock()
	node, waits, heard := l.node, len(l.pending) > 0 || len(l.answers) > 0, l.heard
	c.mu.Unlock()
	switch {
	case node == "":
	case !nodes[node] && time.Since(heard) > c.gateway.fleet.lease:
		l.finish(errLost(node))
	case waits && time.Since(heard) > c.gateway.fleet.lease:
		c.work.Go(func() {
			ctx, cancel := context.WithTimeout(c.ctx, c.gateway.fleet.lease)
			defer cancel()
			reply, _, err := l.request(ctx, frame{kind: frameTaken, gen: l.gen})
			if err == nil && reply[0] != replyOK {
				l.finish(errors.New("the node has lost the session"))
			}
		})
	}
}

// receive handles a frame of the node.
func (l *link) receive(m *nats.Msg) {
	fr, ok := decodeFrame(m.Data)
	if !ok {
		return
	}
	c := l.client
	c.mu.Lock()
	gen, over := l.gen, l.over
	l.heard = time.Now()
	c.mu.Unlock()
	if over || gen == 0 {
		return // beat says later what there was
	}
	stored := sequence(m)
	switch {
	case stored > 0 || fr.gen > gen:
		l.next(fr, stored)
	case fr.kind == frameBeat && fr.gen == gen && fr.seq >= l.expect:
		l.catchUp(fr.seq)
	case fr.kind == frameFull:
		l.report()
	}
}

// next handles a frame of the log.
func (l *link) next(fr frame, stored uint64) {
	switch {
	case fr.gen > l.gen:
		l.finish(errors.New("another connection has taken the session"))
	case fr.kind == frameFence:
		l.finish(errors.New("another node has taken the session"))
	case fr.seq < l.expect: // it was published twice
	case fr.seq > l.expect:
		l.catchUp(fr.seq)
	default:
		l.expect++
		l.from = stored + 1
		l.process(fr, stored)
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

func errGap(n uint64) error { return fmt.Errorf("%d parts of the session's messages are lost", n) }

// process handles a frame of the log that is the next one.
func (l *link) process(fr frame, stored uint64) {
	switch fr.kind {
	case frameEnd:
		l.finish(errors.New(string(fr.data)))
	case frameMoved:
		c := l.client
		c.mu.Lock()
		l.moved = true
		idle := len(l.sending) == 0
		c.mu.Unlock()
		if signal(l.wake); idle {
			l.finish(errMoved)
		}
	case frameData:
		if fr.gen == l.gen {
			end := bytes.LastIndexByte(fr.data, '\n') + 1
			if end > 0 {
				lines := fr.data[:end]
				if len(l.partial) > 0 {
					lines = append(l.partial, lines...)
					l.partial = nil
				}
				l.deliver(lines, stored)
			}
			l.partial = append(l.partial, fr.data[end:]...)
		}
		if l.taken += uint64(len(fr.data)); l.taken-l.reported > reportBytes {
			l.report()
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
func (l *link) deliver(lines []byte, stored uint64) {
	begin, number := 0, 0
	for at := 0; at < len(lines); {
		end := at + bytes.IndexByte(lines[at:], '\n') + 1
		number++
		switch pass := l.passes(lines[at : end-1]); {
		case !pass:
			l.write(lines[begin:at], position{l.id, stored, number - 1})
			begin = end
		case l.client.marked || l.answered:
			l.write(lines[begin:end], position{l.id, stored, number})
			begin = end
		}
		if at = end; l.answered {
			l.answered = false
			l.resumed(stored)
		}
	}
	l.write(lines[begin:], position{l.id, stored, number})
}

// passes reports whether a message of the agent is for the client, and does what follows from it.
func (l *link) passes(line []byte) bool {
	m := wire.Peek(l.decoder, line)
	c := l.client
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m.Kind {
	case wire.KindNotification:
		pass := !l.resuming && (!l.quiet || string(m.Method) != acp.MethodSessionUpdate)
		if pass {
			c.trace.updated(l.decoder, line)
		}
		return pass
	case wire.KindRequest:
		if c.trace != nil && !l.resuming {
			asked := wire.Parse(l.decoder, line)
			c.trace.began(false, asked.ID, asked, l.session)
		}
		return !l.resuming
	case wire.KindResponse:
	default:
		return false
	}
	if id, ok := m.ID.Str(); ok && strings.HasPrefix(id, ownPrefix) {
		if answer := l.answers[id]; answer != nil {
			m = wire.Parse(l.decoder, bytes.Clone(line))
			answer <- m
			l.answers[id] = nil
		}
		return false
	}
	id := wire.Canonical(m.ID)
	it, ok := l.pending[id]
	if !ok {
		return false // it was answered with an error
	}
	delete(l.pending, id)
	if c.trace != nil {
		c.trace.ended(true, id, wire.Parse(codec.NewDecoder(nil), line))
	}
	failed := m.Failure != nil
	switch it.method {
	case acp.MethodInitialize:
		if failed {
			c.initialize = nil // the client may try another one
		}
	case acp.MethodNewSession:
		if !failed {
			l.opened = true
			l.session = string(wire.TextMember(l.decoder, m.Result, "sessionId"))
			c.sessions[l.session] = l
		} else {
			l.reserved = false
		}
	case acp.MethodLoadSession, acp.MethodResumeSession:
		l.opened = l.opened || !failed
		if failed && !l.opened {
			delete(c.sessions, l.session)
			l.reserved, l.session, l.resuming, l.missed = false, "", false, missed{}
		} else if it.method == acp.MethodResumeSession {
			l.answered = l.resuming || l.missed.stored > 0
		}
	case acp.MethodCloseSession, acp.MethodDeleteSession:
		if !failed {
			delete(c.sessions, it.session)
		}
	}
	return true
}

// finish ends the link. Requests that the agent may have are answered with an error. What was not sent yet continues
// elsewhere.
func (l *link) finish(why error) {
	c := l.client
	c.mu.Lock()
	if l.over {
		c.mu.Unlock()
		return
	}
	l.over, l.why = true, why.Error()
	l.cancel()
	delete(c.links, l.id)
	queued := l.queue
	// a node that gives a session up has answered what it had
	if _, unsent := errors.AsType[unsentError](why); unsent || l.moved {
		answered := func(it item) bool { return it.request && l.pending[it.id].line == nil }
		queued = slices.Concat(slices.DeleteFunc(slices.Clone(l.sending), answered), queued)
	}
	l.queue, l.queued, l.sending = nil, 0, nil
	failure := rpc.ErrorOf(why)
	_, public := errors.AsType[*rpc.Error](why)
	if !public {
		failure = rpc.ErrInternal.WithMessagef("interrupted: %s", why)
	}
	late := len(queued) > 0 && time.Since(queued[0].since) > c.gateway.opts.OpenTimeout
	if public || late || c.ended { // it could not be opened: neither could another one
		queued = nil
	}
	for _, it := range queued {
		if it.request {
			delete(l.pending, it.id)
		}
	}
	var answers []byte
	for id := range l.pending {
		c.trace.failed(id, failure)
		answers = append(append(answers, errorLine(id, failure)...), '\n')
	}
	l.pending = nil
	if len(queued) > 0 {
		c.inherit(l, queued)
	}
	c.room.Broadcast()
	c.mu.Unlock()
	if len(answers) > 0 {
		c.write(answers)
	}
}
