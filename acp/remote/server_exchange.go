package remote

import (
	"bytes"
	"maps"
	"net/http"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// exchange tracks the requests in progress of both sides of an httpLink. The link's mu guards it, except for the fields
// that are read after initialized is closed.
type exchange struct {
	initID      wire.ID
	initialized chan struct{} // closed when initialize has been answered
	answer      []byte        // answer to initialize; set before initialized is closed
	refused     bool          // whether it is an error; likewise

	requests map[wire.ID]request // requests of the client
	asked    map[wire.ID]string  // the session of each request of the agent
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

func newExchange(initialize wire.ID) exchange {
	return exchange{
		initID:      initialize,
		initialized: make(chan struct{}),
		requests:    map[wire.ID]request{initialize: {}},
		asked:       map[wire.ID]string{},
	}
}

// begin records a request of the client about a session.
func (e *exchange) begin(m wire.Message, session string, received bool) error {
	if _, twice := e.requests[m.ID]; twice && !m.ID.IsNull() {
		return invalidRequest(m.ID, "a request with this id is in progress")
	}
	if len(e.requests) >= maxRequests {
		return refuse(http.StatusServiceUnavailable, "too many requests in progress")
	}
	method := string(m.Method)
	e.requests[m.ID] = request{session, received, answerFirst[method], method == methodClose || method == methodDelete}
	return nil
}

// end removes and returns a request of the client.
func (e *exchange) end(id wire.ID) request {
	req := e.requests[id]
	delete(e.requests, id)
	return req
}

// answerInitialize keeps the answer to initialize for the POST that waits for it. It returns false for other answers.
func (e *exchange) answerInitialize(m wire.Message, line []byte) bool {
	if e.answer != nil || m.ID != e.initID {
		return false
	}
	delete(e.requests, m.ID)
	e.answer = bytes.Clone(line)
	e.refused = m.Failure != nil || m.Result == nil
	close(e.initialized)
	return true
}

// ask records a request of the agent about a session.
func (e *exchange) ask(id wire.ID, session []byte) {
	if len(e.asked) < maxAsked {
		e.asked[id] = string(session)
	}
}

// sessionOfCancelled returns the session of the agent's request that a $/cancel_request names. In another stream the
// cancellation could arrive before the request, and would have no effect.
func (e *exchange) sessionOfCancelled(d *codec.Decoder, params []byte) []byte {
	if id, ok := wire.CancelledID(d, params); ok {
		return []byte(e.asked[id])
	}
	return nil
}

// forget removes the agent's requests about a session that has ended: the client may no longer read its stream.
func (e *exchange) forget(session string) {
	maps.DeleteFunc(e.asked, func(_ wire.ID, of string) bool { return of == session })
}

// answered records an answer of the client. named is the session in its header.
func (e *exchange) answered(id wire.ID, named string) error {
	of, ok := e.asked[id]
	if ok && named != "" && of != "" && named != of {
		return refuse(http.StatusBadRequest, HeaderSession+" is not the session of the request")
	}
	delete(e.asked, id)
	return nil
}
