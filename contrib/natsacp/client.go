package natsacp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// client is a client's connection to a gateway. It has a link for each session, and one for the first initialize, which
// the first session takes over.
type client struct {
	gateway   *Gateway
	principal string
	ctx       context.Context
	cancel    context.CancelFunc
	work      sync.WaitGroup // links

	writing sync.Mutex
	stream  rpc.FastStream

	mu         sync.Mutex
	room       *sync.Cond      // links have taken messages, or ctx has ended
	initialize json.RawMessage // the parameters
	home       *link           // for what is not about a session
	links      map[string]*link
	sessions   map[string]*link

	trace     *tracer
	marked    bool                // the positions are kept, because its streams have a history
	positions map[string]position // where in the log the client is, by session
	missed    map[string]missed   // what it has missed of sessions that it has not resumed yet
}

func newClient(g *Gateway, ctx context.Context, stream rpc.FastStream, peer *remote.Peer) *client {
	c := &client{
		gateway: g, principal: peer.Principal, stream: stream, links: map[string]*link{}, sessions: map[string]*link{},
		trace:     newTracer(g.opts.Hooks),
		marked:    peer.Transport == remote.HTTP && g.opts.Server.History != nil,
		positions: map[string]position{}, missed: map[string]missed{},
	}
	c.room = sync.NewCond(&c.mu)
	c.ctx, c.cancel = context.WithCancel(ctx)
	return c
}

// read handles the client's messages until it ends.
func (c *client) read() error {
	stop := context.AfterFunc(c.ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.room.Broadcast()
	})
	defer stop()
	d := codec.NewDecoder(nil)
	for {
		line, err := c.stream.ReadLine(nil)
		if dropped, goesOn := wire.AsUnread(err); goesOn {
			if !dropped.Response && !dropped.ID.IsNull() {
				c.refuse(dropped.ID, rpc.ErrInvalidRequest.WithMessagef("%s", dropped.Failure().Message))
			}
			continue
		}
		if errors.Is(err, io.EOF) || errors.Is(err, remote.ErrExpired) {
			return nil
		}
		if err != nil {
			return err
		}
		c.handle(d, line)
	}
}

// end lets go of all agents.
func (c *client) end() {
	c.mu.Lock() // a link that is over starts another one before this, or not at all
	c.cancel()
	c.mu.Unlock()
	c.work.Wait()
	c.trace.end()
}

// write sends messages, each with a newline. If it fails the client is gone, and read returns the reason.
func (c *client) write(lines []byte) {
	c.writing.Lock()
	defer c.writing.Unlock()
	_ = c.stream.WriteLines(lines)
}

func (c *client) refuse(id rpc.ID, err error) {
	c.trace.failed(id, err)
	c.write(append(errorLine(id, err), '\n'))
}

// handle handles a message of the client.
func (c *client) handle(d *codec.Decoder, line []byte) {
	m := wire.Parse(d, line)
	session := ""
	if m.Kind == wire.KindRequest || m.Kind == wire.KindNotification {
		if !isClear(d, line, "jsonrpc", "id", "method", "params") || !isClear(d, m.Params, "sessionId", "cursor") {
			c.gateway.log.Warn("natsacp: an ambiguous message was refused", "principal", c.principal)
			if m.Kind == wire.KindRequest {
				c.refuse(m.ID, rpc.ErrInvalidRequest.WithMessagef("a member occurs twice, or its name is capitalized differently"))
			}
			return
		}
		session = string(wire.TextMember(d, m.Params, "sessionId"))
	}
	text := append(wire.AppendLine(nil, line), '\n')
	switch m.Kind {
	case wire.KindRequest:
		it := item{line: text, request: true, id: wire.Canonical(m.ID), method: string(m.Method), session: session}
		c.trace.began(true, m.ID, m, session)
		l, err := c.route(it, m.Params)
		switch {
		case errors.Is(err, errNothing):
			c.trace.ended(true, m.ID, wire.Message{})
			c.write(append(resultLine(m.ID, json.RawMessage("{}")), '\n'))
		case err != nil:
			c.refuse(m.ID, err)
		default:
			c.put(l, it)
		}
	case wire.KindResponse:
		c.trace.ended(false, m.ID, m)
		c.put(c.asker(m.ID), item{line: text})
	case wire.KindNotification:
		c.notify(d, m, session, text)
	default:
		id, lost := unread(line, m, "the client's")
		if l := c.asker(id); lost != nil && l != nil {
			c.put(l, item{line: append(lost, '\n')})
			return
		}
		c.write(append(wire.ErrorLine(m.ID, m.Failure), '\n'))
	}
}

// asker returns the link to the agent that has asked something under an id, or nil.
func (c *client) asker(id rpc.ID) *link {
	text, _ := id.Str()
	text, ok := strings.CutPrefix(text, idPrefix)
	if !ok {
		return nil
	}
	name, _, _ := strings.Cut(text, ":")
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.links[name]
}

// isClear reports whether all agents read the same values of some members of an object. Some read the last one of a
// name, and some do not distinguish capitals, so that they could be made to use the session of another user.
func isClear(d *codec.Decoder, text []byte, names ...string) bool {
	d.Reset(text)
	if len(text) == 0 || d.Kind() != '{' {
		return true
	}
	seen := 0
	for o := d.Object(); o.Next(); d.Skip() {
		for i, name := range names {
			if !bytes.EqualFold(o.Name(), []byte(name)) {
				continue
			}
			if string(o.Name()) != name || seen&(1<<i) != 0 {
				return false
			}
			seen |= 1 << i
		}
	}
	return true
}

// notify handles a notification.
func (c *client) notify(d *codec.Decoder, m wire.Message, session string, text []byte) {
	c.mu.Lock()
	l := c.home
	if session != "" {
		l = c.sessions[session]
	}
	it := item{line: text, method: string(m.Method)}
	urgent := it.method == acp.MethodCancel
	if it.method == wire.MethodCancelRequest {
		id, _ := wire.CancelledID(d, m.Params) // if it names none, it is dropped at the node
		urgent, it.id = true, wire.Canonical(id)
		for _, other := range c.links {
			if _, ok := other.out.pending[it.id]; ok {
				l = other
			}
		}
	}
	c.mu.Unlock()
	if l != nil && urgent {
		l.urge(it)
		return
	}
	c.put(l, it)
}

// route returns the link for a request.
func (c *client) route(it item, params []byte) (*link, error) {
	opens := it.method == acp.MethodLoadSession || it.method == acp.MethodResumeSession
	deletes := it.method == acp.MethodDeleteSession
	var record *Session
	if it.session != "" && (opens || deletes) {
		var err error
		if record, err = c.gateway.fleet.session(c.ctx, c.principal, it.session); err != nil {
			c.gateway.log.Warn("natsacp: a record was not read", "error", err)
			return nil, rpc.ErrInternal
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case it.method == acp.MethodInitialize:
		if c.initialize != nil {
			return nil, rpc.ErrInvalidRequest.WithMessagef("initialize was called before")
		}
		c.initialize = slices.Clone(params)
		if c.home == nil || c.home.phase == over { // else the first attempt has failed
			c.home = c.start(&link{begins: plain})
		}
		return c.home, nil
	case it.method == acp.MethodNewSession:
		l := c.spare()
		l.use, l.params = reserved, slices.Clone(params)
		return l, nil
	case it.method == acp.MethodForkSession:
		return nil, rpc.ErrMethodNotFound.WithMessagef("sessions of a fleet cannot be forked")
	case it.session == "":
		return c.homeLink(), nil
	}
	l := c.sessions[it.session]
	switch {
	case opens && record == nil:
		return nil, acp.SessionNotFound(acp.SessionID(it.session))
	case l != nil && l.phase != over:
		return l, nil
	case opens:
		return c.open(it, params, record), nil
	case l != nil:
		return c.again(l), nil
	case !deletes:
		return nil, acp.SessionNotFound(acp.SessionID(it.session))
	case record == nil:
		return nil, errNothing
	case record.Node != "": // its agent is about to end, or another connection has it
		return c.start(&link{attach: record}), nil
	}
	return c.homeLink(), nil
}

// errNothing reports that there is nothing to be deleted.
var errNothing = errors.New("there is no such session")

// open returns a link for a request that opens a session; mu is held.
func (c *client) open(it item, params []byte, record *Session) *link {
	var l *link
	if record.Node == "" {
		l = c.spare()
	} else {
		l = &link{attach: record}
		defer c.start(l)
	}
	l.use, l.session, l.params = reserved, it.session, slices.Clone(params)
	if l.resume = it.method == acp.MethodResumeSession; l.resume {
		l.missed = c.missed[it.session]
	}
	delete(c.missed, it.session)
	c.sessions[it.session] = l
	return l
}

// spare returns a link that has no session; mu is held.
func (c *client) spare() *link {
	if l := c.homeLink(); l.use == vacant {
		return l
	}
	return c.start(&link{})
}

// homeLink returns the link for what is not about a session; mu is held.
func (c *client) homeLink() *link {
	if c.home == nil || c.home.phase == over {
		c.home = c.start(&link{})
	}
	return c.home
}

// again returns a new link in place of one that is over, for what that has not sent; mu is held.
func (c *client) again(old *link, items ...item) *link {
	l := &link{use: old.use, session: old.session, params: old.params, missed: old.missed}
	if l.session != "" {
		l.begins = restored
		c.sessions[l.session] = l
	} else if items[0].method == acp.MethodInitialize {
		l.begins = plain
	}
	if c.home == old {
		c.home = l
	}
	c.start(l)
	for _, it := range items {
		l.add(it)
	}
	return l
}

// put queues a message on a link, and waits while too much is queued. A message for no link is dropped.
func (c *client) put(l *link, it item) {
	if l == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for l.out.size > c.gateway.opts.MaxQueued && c.ctx.Err() == nil && l.phase != over {
		c.room.Wait()
	}
	if l.phase == over {
		if next := c.sessions[l.session]; next != nil && next != l { // it has moved meanwhile
			l = next
		}
	}
	if l.phase == over && it.request {
		failure := rpc.ErrInternal.WithMessagef("%s", l.why)
		c.work.Go(func() { c.refuse(it.id, failure) }) // it may wait, and mu is held
		return
	}
	l.add(it)
}

// lull is a pause before another attempt.
const lull = 200 * time.Millisecond
