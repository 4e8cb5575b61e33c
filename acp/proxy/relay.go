package proxy

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/hop"
	"github.com/acpgo/sdk/internal/wire"
)

// relay passes messages between two ends.
type relay struct {
	opts      Options
	log       *slog.Logger
	ends      [2]*end // by Side
	hooked    bool    // there is a hook
	conductor bool    // both ends are one connection, to a conductor
	ctx       context.Context

	initialized bool // the conductor has sent proxy/initialize; the reader's

	mu      sync.Mutex
	changed *sync.Cond // something of the following, or a lane, has changed
	clock   uint64     // counts requests
	lastID  int        // of the proxy's own requests
	running int        // hooks
	bytes   int        // of requests whose hooks run
	closed  bool       // no more hooks run
}

// end is the connection to one side.
type end struct {
	side  Side
	other *end
	*hop.End
	wrapped bool           // messages to it go in proxy/successor
	sending *codec.Decoder // for that, used while a message is sent
	prefix  string         // of the ids of the proxy's own requests to it

	onRequest, onNotification map[string]*hook

	decoder *codec.Decoder // its reader's
	busy    atomic.Int32   // len(lanes)

	// Guarded by relay.mu. The keys are canonical.
	lanes    map[string]*lane
	held     int                 // bytes in lanes, with the messages of their holders
	requests map[wire.ID]pending // from it that are not answered
	calls    map[wire.ID]*call   // of hooks, to it
	gone     *rpc.Error          // set when it answers nothing more
}

// pending is a request that is not answered.
type pending struct {
	id      wire.ID
	session string
	time    uint64 // relay.clock
	ctx     context.Context
	cancel  context.CancelCauseFunc // of its hook, or nil
}

const (
	// maxRequests is how many requests of one side are remembered. Of others it is not known to what session their
	// answers belong, and they are not answered in the name of a side that has ended. Those that must be remembered, for
	// a hook or a conductor, are refused.
	maxRequests = 1 << 16
	// maxName is how long an id, and the name of a session, may be in order to be remembered, in bytes.
	maxName = 256
)

var (
	errBusy = rpc.ErrInternal.WithMessagef("too many requests are in progress, or the id is too long")
	errID   = rpc.ErrInvalidRequest.WithMessagef("a request with this id is in progress")
)

func newRelay(hooks Hooks, opts *Options) (*relay, error) {
	p := &relay{opts: *cmp.Or(opts, &Options{})}
	p.opts.setDefaults()
	p.log = p.opts.Logger
	p.changed = sync.NewCond(&p.mu)
	all, err := hooks.all()
	if err != nil {
		return nil, err
	}
	p.hooked = len(all) > 0
	for side := range p.ends {
		p.ends[side] = &end{
			side: Side(side), prefix: newPrefix(), decoder: codec.NewDecoder(nil), sending: codec.NewDecoder(nil),
			onRequest: map[string]*hook{}, onNotification: map[string]*hook{},
			lanes: map[string]*lane{}, requests: map[wire.ID]pending{}, calls: map[wire.ID]*call{},
		}
	}
	p.ends[Client].other, p.ends[Agent].other = p.ends[Agent], p.ends[Client]
	for _, h := range all {
		if h.request {
			p.ends[h.from].onRequest[h.method] = h
		} else {
			p.ends[h.from].onNotification[h.method] = h
		}
	}
	return p, nil
}

// receive passes on a line that e has sent. It fails when the other end takes nothing more.
func (p *relay) receive(e *end, line []byte) error {
	if p.opts.Message != nil {
		p.opts.Message(e.side, line)
	}
	m := wire.Peek(e.decoder, line)
	if m.Kind == wire.KindNotification && bytes.Contains(m.Params, []byte(`"id"`)) {
		m = wire.Parse(e.decoder, line) // it may be a request whose id is its last member
	}
	switch m.Kind {
	case wire.KindNotification:
		if h := e.onNotification[string(m.Method)]; h != nil {
			return p.intercept(e, h, line)
		}
		if string(m.Method) == acp.MethodCancelRequest {
			return p.cancel(e, line)
		}
		if e.busy.Load() > 0 {
			return p.enter(e, item{line: slices.Clone(line), session: p.session(e, m.Params)})
		}
	case wire.KindRequest:
		if h := e.onRequest[string(m.Method)]; h != nil {
			return p.intercept(e, h, line)
		}
		it := item{request: true, session: p.session(e, m.Params)}
		if refusal := p.track(e, m.ID, &it); refusal != nil {
			e.refuse(m.ID, refusal)
			return nil
		}
		if e.busy.Load() > 0 {
			it.line = slices.Clone(line)
			return p.enter(e, it)
		}
	case wire.KindResponse:
		return p.respond(e, line, m)
	default:
		if id, response, ok := wire.Recover(line); ok && response {
			p.mu.Lock()
			_, called := e.calls[wire.Canonical(id)]
			p.mu.Unlock()
			if called {
				return p.respond(e, line, wire.Message{ID: id})
			}
		}
	}
	return e.other.send(line)
}

// intercept gives a message to its hook.
func (p *relay) intercept(e *end, h *hook, line []byte) error {
	it := item{line: slices.Clone(line), hook: h, request: h.request}
	it.msg = wire.Parse(e.decoder, it.line)
	kind := wire.KindNotification
	if h.request {
		kind = wire.KindRequest
	}
	if it.msg.Kind != kind { // the other side may read it in another way than the hook would
		why := rpc.ErrorOf(rpc.ErrInvalidRequest)
		if failure := it.msg.Failure; failure != nil {
			why = &rpc.Error{Code: rpc.Code(failure.Code), Message: failure.Message}
		}
		e.refuse(it.msg.ID, why)
		return nil
	}
	it.session = p.session(e, it.msg.Params)
	it.ctx, it.cancel = context.WithCancelCause(p.ctx)
	if h.request {
		if refusal := p.track(e, it.msg.ID, &it); refusal != nil {
			it.cancel(nil)
			e.refuse(it.msg.ID, refusal)
			return nil
		}
	}
	return p.enter(e, it)
}

// session returns the session that parameters or a result name, or "".
func (p *relay) session(e *end, raw []byte) string {
	if !p.hooked || len(raw) == 0 {
		return ""
	}
	e.decoder.Reset(raw)
	if e.decoder.Kind() != '{' {
		return ""
	}
	name, _ := e.decoder.LenientTag("sessionId")
	return string(name)
}

// track remembers a request until it is answered, or says why it is refused.
func (p *relay) track(e *end, id wire.ID, it *item) *rpc.Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clock++
	it.time = p.clock
	key := wire.Canonical(id)
	_, used := e.requests[key]
	if p.conductor && !used {
		_, used = e.other.requests[key] // both are requests of the conductor
	}
	if used && (p.conductor || it.hook != nil) {
		return errID
	}
	if _, number := id.Int(); used || len(e.requests) >= maxRequests || !number && len(id.String()) > maxName {
		if p.conductor || it.hook != nil {
			return errBusy
		}
		return nil
	}
	session := it.session
	if len(session) > maxName && it.hook == nil {
		session = ""
	}
	if it.hook != nil {
		if p.bytes > p.opts.MaxHeld {
			return errBusy
		}
		p.bytes += it.size()
	}
	e.requests[key] = pending{id, session, it.time, it.ctx, it.cancel}
	return nil
}

// respond passes on an answer of e.
func (p *relay) respond(e *end, line []byte, m wire.Message) error {
	id := wire.Canonical(m.ID)
	p.mu.Lock()
	c := e.calls[id]
	delete(e.calls, id)
	request, known := e.other.requests[id]
	if known && request.cancel == nil {
		delete(e.other.requests, id)
	}
	p.mu.Unlock()
	if c != nil {
		line = slices.Clone(line)
		it := item{line: line, msg: wire.Parse(e.decoder, line), answers: c, response: true, time: c.time,
			session: c.by.session}
		if c.own {
			p.answer(c, answerOf(line, it.msg), nil)
			return nil
		}
		if s := p.session(e, it.msg.Result); s != "" {
			it.session = s // a new one
		}
		return p.enter(e, it)
	}
	if known && request.cancel != nil {
		return nil // the hook answers it
	}
	if e.busy.Load() > 0 {
		it := item{line: slices.Clone(line), response: true, time: request.time, session: request.session}
		if s := p.session(e, m.Result); s != "" {
			it.session = s
		}
		return p.enter(e, it)
	}
	return e.other.send(line)
}

// cancel ends the context of a hook whose request is cancelled, or passes the cancellation on after the request.
func (p *relay) cancel(e *end, line []byte) error {
	id, ok := wire.CancelledID(e.decoder, wire.Parse(e.decoder, line).Params)
	p.mu.Lock()
	request, known := e.requests[wire.Canonical(id)]
	p.mu.Unlock()
	if ok && known && request.cancel != nil {
		request.cancel(errCancelled)
		return nil
	}
	if e.busy.Load() > 0 {
		return p.enter(e, item{line: slices.Clone(line), session: request.session})
	}
	return e.other.send(line)
}

// lost fails the calls that e was to answer.
func (p *relay) lost(e *end, why *rpc.Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.gone = why
	for _, c := range e.calls {
		c.end(answer{err: why})
	}
	clear(e.calls)
}

// disown answers the requests that e can no longer answer.
func (p *relay) disown(e *end) {
	p.mu.Lock()
	var ids []wire.ID
	for key, request := range e.other.requests {
		if request.cancel == nil {
			ids = append(ids, request.id)
			delete(e.other.requests, key)
		}
	}
	why := e.gone
	p.mu.Unlock()
	for _, id := range ids {
		e.other.refuse(id, why)
	}
}

// refuse answers a request of e with an error. If writing fails, e has ended, which its reader reports.
func (e *end) refuse(id wire.ID, why *rpc.Error) {
	_ = e.send(wire.ErrorLine(id, &wire.Error{Code: int(why.Code), Message: why.Message, Data: why.Data}))
}
