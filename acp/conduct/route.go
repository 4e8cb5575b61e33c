package conduct

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/hop"
	"github.com/acpgo/sdk/internal/wire"
)

// The methods that the conductor knows.
const (
	methodInitialize      = "initialize"
	methodProxyInitialize = "proxy/initialize"
	methodSuccessor       = hop.MethodSuccessor
	methodCancel          = wire.MethodCancelRequest
)

// call is a request on one hop: it was received from a port, and sent to another one.
type call struct {
	from, to *port
	id       rpc.ID    // its sender's
	n        int64     // its id at to
	method   string    // at to, without the envelope of proxy/successor; shortened
	between  [2]string // from and to in the trace
	began    time.Time
}

// waits reports whether a request from a port is in flight.
func (c *chain) waits(from *port) bool {
	for _, to := range c.ports {
		for _, call := range to.calls {
			if call.from == from {
				return true
			}
		}
	}
	return false
}

// inFlight returns the requests from a port that are in flight, in their order.
func (c *chain) inFlight(from *port) []*call {
	var all []*call
	for _, to := range c.ports {
		for _, call := range to.calls {
			if call.from == from {
				all = append(all, call)
			}
		}
	}
	slices.SortFunc(all, func(a, b *call) int { return cmp.Compare(a.n, b.n) })
	return all
}

// message handles a line that was read from a port.
func (c *chain) message(p *port, line []byte) {
	m := wire.Parse(c.decode, line)
	switch {
	case m.Kind == wire.KindResponse || m.Broken != nil && c.isOwn(m.ID):
		c.response(p, line, &m)
	case m.Kind != wire.KindInvalid:
		c.forward(p, line, &m)
	default:
		c.invalid(p, line, &m)
	}
}

// invalid handles a line that is not a message. Where a request or an answer cannot be read, its call must still end.
func (c *chain) invalid(p *port, line []byte, m *wire.Message) {
	id, response, known := wire.Recover(line)
	switch {
	case known && response:
		c.fail(p, id, fmt.Errorf("malformed answer: %s", m.Failure.Message))
	case p != c.client() && m.ID.IsNull() && wire.IsNoise(line):
		if !p.noisy {
			p.noisy = true
			c.warn(p, "dropped text that is not a message", "text", short(line))
		}
	case known && m.ID.IsNull() && m.Failure.Code == int(rpc.ErrInvalidRequest):
		c.refuse(p, id, m.Failure)
	default:
		c.refuse(p, m.ID, m.Failure)
	}
}

// isOwn reports whether an id is that of a request of the conductor, answered or not. If a malformed answer to it were
// refused, the component would take that for the answer to a request of its own.
func (c *chain) isOwn(id rpc.ID) bool { n := number(id); return n > 0 && n <= c.lastID }

// short returns at most 200 bytes of a peer's text, for logs.
func short[T string | []byte](text T) string { return string(text[:min(len(text), 200)]) }

// number returns an id as one of the conductor's own, or 0.
func number(id rpc.ID) int64 {
	n, _ := wire.Canonical(id).Int()
	return n
}

// response passes an answer on to the sender of the request.
func (c *chain) response(p *port, line []byte, m *wire.Message) {
	call := p.calls[number(m.ID)]
	switch {
	case call == nil:
		c.warn(p, "dropped an answer that matches no request", "id", short(m.ID.String()))
		if c.options.Trace != nil {
			c.traceDropped(p, m, line)
		}
		return
	case m.Broken != nil:
		c.fail(p, m.ID, fmt.Errorf("malformed answer: %w", m.Broken))
		return
	}
	if call == p.initialize && m.Result != nil {
		if err := c.initialized(p, call, m.Result); err != nil {
			c.answer(call, failureOf(c.failure(p, err)))
			return
		}
	}
	c.settle(call)
	if c.options.Trace != nil {
		c.traceResponse(call, m.Result, line)
	}
	c.append(p, call.from, func(dst []byte) []byte {
		dst = wire.AppendLine(dst, line[:m.IDAt])
		dst, _ = codec.Append(dst, &call.id) // an id can always be written
		return wire.AppendLine(dst, line[m.IDEnd:])
	})
}

// answer ends a call with an error of the conductor.
func (c *chain) answer(call *call, e *wire.Error) {
	c.settle(call)
	start := len(call.from.pending)
	c.append(call.to, call.from, func(dst []byte) []byte { return append(dst, wire.ErrorLine(call.id, e)...) })
	if c.options.Trace != nil {
		c.traceResponse(call, nil, call.from.pending[start:])
	}
}

// settle forgets a call that is answered.
func (c *chain) settle(call *call) {
	delete(call.to.calls, call.n)
	if key := wire.Canonical(call.id); call.from.requests[key] == call {
		delete(call.from.requests, key)
	}
	if call == call.to.initialize {
		call.to.initialize = nil
		c.restartInit() // for the component before it
	}
	if c.draining && !c.waits(c.client()) {
		c.finish = true
	}
}

// initialized checks the successful answer of a component to initialize: see rule 5 of the package.
func (c *chain) initialized(p *port, call *call, result []byte) error {
	var version rpc.ID // like an id, a version is a number or a text, and 1 equals 1.0
	_ = codec.Unmarshal(c.member(result, "protocolVersion"), &version)
	version = wire.Canonical(version)
	if p != c.agent && p != c.client() {
		switch {
		case p.below == nil:
			return fmt.Errorf("answered %s without initializing its successor", methodProxyInitialize)
		case *p.below != version:
			return fmt.Errorf("changed the protocolVersion of its successor from %.20s to %.20s", p.below, version)
		}
	}
	call.from.below = &version
	return nil
}

// member returns the value of a member of an object, or nil.
func (c *chain) member(object []byte, name string) []byte {
	if len(object) == 0 {
		return nil
	}
	c.inside.Reset(object)
	if c.inside.Kind() != '{' {
		return nil
	}
	var value []byte
	for o := c.inside.Object(); o.Next(); {
		c.inside.Kind() // moves on to the value
		at := c.inside.Offset()
		found := string(o.Name()) == name
		c.inside.Skip()
		if found {
			value = c.inside.Slice(at)
		}
	}
	return value
}

// outgoing is a request or notification to send.
type outgoing struct {
	to         *port
	method     []byte
	params     []byte // nil when absent
	wrapped    bool   // in proxy/successor
	initialize bool   // an initialize to a successor
}

// refusal is an error of the conductor itself.
func refusal(code rpc.Code, message string) *wire.Error {
	return &wire.Error{Code: int(code), Message: message}
}

// forward passes a request or notification on.
func (c *chain) forward(p *port, line []byte, m *wire.Message) {
	request := m.Kind == wire.KindRequest
	if string(m.Method) == methodCancel && !request {
		c.cancel(p, m)
		return
	}
	out, refused := c.direct(p, m)
	if refused == nil {
		refused = admit(&out, m)
	}
	if refused != nil {
		c.reject(p, m, refused)
		return
	}
	if !c.started {
		c.start()
	}
	var sent *call
	if request {
		c.lastID++
		sent = &call{from: p, to: out.to, id: m.ID, n: c.lastID, method: short(out.method), began: time.Now()}
		out.to.calls[sent.n] = sent
		p.requests[wire.Canonical(m.ID)] = sent
		if out.initialize {
			out.to.initialize, out.to.below = sent, nil
			c.restartInit()
		}
	}
	if c.options.Trace != nil {
		c.traceMessage(p, &out, sent)
	}
	asIs := !out.wrapped && len(out.method) > 0 && &out.method[0] == &m.Method[0]
	c.append(p, out.to, func(dst []byte) []byte {
		switch {
		case asIs && !request:
			return wire.AppendLine(dst, line)
		case asIs:
			dst = wire.AppendLine(dst, line[:m.IDAt])
			dst = strconv.AppendInt(dst, sent.n, 10)
			return wire.AppendLine(dst, line[m.IDEnd:])
		}
		var id *rpc.ID
		if request {
			id = new(rpc.IntID(sent.n))
		}
		if out.wrapped {
			return hop.AppendWrapped(dst, id, string(out.method), out.params)
		}
		return hop.AppendMessage(dst, id, string(out.method), out.params)
	})
}

// admit refuses what would need too much memory, and an initialize whose answer could not be checked.
func admit(out *outgoing, m *wire.Message) *wire.Error {
	switch {
	case out.initialize && m.Kind != wire.KindRequest:
		return refusal(rpc.ErrInvalidRequest, methodInitialize+" is a request")
	case out.initialize && out.to.initialize != nil:
		return refusal(rpc.ErrInvalidRequest, out.to.String()+" has not answered the previous initialize")
	case m.IDEnd-m.IDAt > maxID:
		return refusal(rpc.ErrInvalidRequest, fmt.Sprintf("the id is longer than %d bytes", maxID))
	case m.Kind == wire.KindRequest && len(out.to.calls) >= maxCalls:
		return refusal(rpc.ErrInternal, fmt.Sprintf("%s has %d requests in flight", out.to, len(out.to.calls)))
	}
	return nil
}

// reject refuses a request, or drops a notification, that is not forwarded.
func (c *chain) reject(p *port, m *wire.Message, e *wire.Error) {
	start := len(p.pending)
	request := m.Kind == wire.KindRequest
	if request {
		c.refuse(p, m.ID, e)
	} else {
		c.warn(p, "dropped a notification", "method", short(m.Method), "error", e)
	}
	if c.options.Trace == nil {
		return
	}
	out := &outgoing{to: &port{place: "conductor"}, method: m.Method, params: m.Params}
	if !request {
		c.traceMessage(p, out, nil)
		return
	}
	c.lastID++
	rejected := &call{n: c.lastID}
	c.traceMessage(p, out, rejected)
	c.traceResponse(rejected, nil, p.pending[start:])
}

// direct decides where a request or notification goes, and in which form.
func (c *chain) direct(p *port, m *wire.Message) (outgoing, *wire.Error) {
	out := outgoing{method: m.Method, params: m.Params}
	method := string(m.Method)
	switch {
	case method == methodCancel:
		return out, refusal(rpc.ErrInvalidRequest, methodCancel+" is a notification")
	case p == c.client():
		return c.fromClient(out, method)
	case method == methodProxyInitialize:
		return out, refusal(rpc.ErrMethodNotFound, methodProxyInitialize+" is sent by conductors alone")
	case method == methodSuccessor && p == c.agent:
		return out, refusal(rpc.ErrMethodNotFound, "the last component of the chain has no successor")
	case method == methodSuccessor:
		return c.toSuccessor(p, m.Params)
	}
	out.to = c.ports[p.index-1]
	return c.wrap(out, out.to != c.client())
}

// fromClient decides it for a message from the client.
func (c *chain) fromClient(out outgoing, method string) (outgoing, *wire.Error) {
	first := methodInitialize
	if c.agent == nil {
		first = methodProxyInitialize
	}
	switch {
	case method == first:
		return c.initialize(out, c.ports[1]), nil
	case method == methodInitialize:
		return out, refusal(rpc.ErrInvalidRequest, "this chain has no agent: as a proxy it is initialized by "+
			methodProxyInitialize)
	case method == methodProxyInitialize:
		return out, refusal(rpc.ErrInvalidRequest, "this chain has an agent: it is initialized by "+methodInitialize)
	case !c.started:
		return out, refusal(rpc.ErrInvalidRequest, "not initialized")
	case method == methodSuccessor && c.agent != nil:
		return out, refusal(rpc.ErrMethodNotFound, "this chain has an agent, and no successor")
	case method == methodSuccessor:
		// From the successor of the last proxy, by way of the client.
		inner, refused := c.unwrap(out.params)
		if refused != nil {
			return out, refused
		}
		inner.to = c.ports[len(c.ports)-1]
		return c.wrap(inner, true)
	}
	out.to = c.ports[1]
	return out, nil
}

// toSuccessor decides it for a message in the envelope of a proxy.
func (c *chain) toSuccessor(p *port, params []byte) (outgoing, *wire.Error) {
	out, refused := c.unwrap(params)
	switch {
	case refused != nil:
		return out, refused
	case p.index == len(c.ports)-1:
		out.to, out.initialize = c.client(), string(out.method) == methodInitialize
		return c.wrap(out, true)
	case string(out.method) == methodInitialize:
		return c.initialize(out, c.ports[p.index+1]), nil
	}
	out.to = c.ports[p.index+1]
	return out, nil
}

// initialize gives a message the method by which a component learns whether it has a successor.
func (c *chain) initialize(out outgoing, to *port) outgoing {
	out.to, out.initialize = to, true
	switch {
	case to != c.agent:
		out.method = []byte(methodProxyInitialize)
	case string(out.method) != methodInitialize:
		out.method = []byte(methodInitialize)
	}
	return out
}

// unwrap returns the message in the parameters of proxy/successor.
func (c *chain) unwrap(params []byte) (out outgoing, refused *wire.Error) {
	method, params, err := hop.Unwrap(c.inside, params)
	switch method {
	case methodCancel, methodProxyInitialize, methodSuccessor:
		err = errors.New(method + " applies to one hop, and is not wrapped")
	}
	if err != nil {
		return out, refusal(rpc.ErrInvalidParams, methodSuccessor+": "+err.Error())
	}
	return outgoing{method: []byte(method), params: params}, nil
}

// wrap puts a message into proxy/successor, if it must be.
func (c *chain) wrap(out outgoing, wrapped bool) (outgoing, *wire.Error) {
	if !wrapped {
		return out, nil
	}
	out.wrapped = true
	if string(out.params) == "null" {
		out.params = nil
	}
	if out.params != nil && out.params[0] != '{' && out.params[0] != '[' {
		return out, refusal(rpc.ErrInvalidRequest, "Invalid request: params is neither an object nor an array")
	}
	return out, nil
}

// cancel passes on the cancellation of a request from p: as that of the conductor's own request at the next hop.
func (c *chain) cancel(p *port, m *wire.Message) {
	id, ok := wire.CancelledID(c.inside, m.Params)
	if !ok {
		c.reject(p, m, refusal(rpc.ErrInvalidParams, "requestId is not an id"))
		return
	}
	call := p.requests[wire.Canonical(id)]
	if call == nil {
		return // it was answered meanwhile
	}
	params := strconv.AppendInt([]byte(`{"requestId":`), call.n, 10)
	params = append(params, '}')
	if c.options.Trace != nil {
		c.traceMessage(p, &outgoing{to: call.to, method: []byte(methodCancel), params: params}, nil)
	}
	c.append(p, call.to, func(dst []byte) []byte { return hop.AppendMessage(dst, nil, methodCancel, params) })
}

// restartInit gives the component that is to act next the whole InitTime.
func (c *chain) restartInit() {
	c.initSince = time.Now()
	c.initTimer.Reset(c.options.InitTime)
}

// initTimeout ends the chain because no initialize was sent or answered for InitTime. The last component that has
// received one is late, because those before it wait for it.
func (c *chain) initTimeout() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.initSince) < c.options.InitTime {
		return // restarted while this waited for the lock
	}
	if c.client().initialize != nil {
		return // for the successor, the other conductor has a timeout
	}
	for _, p := range slices.Backward(c.ports) {
		if call := p.initialize; call != nil {
			c.end(c.failure(p, fmt.Errorf("has not answered %s within %v", call.method, c.options.InitTime)))
			return
		}
	}
}
