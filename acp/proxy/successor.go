package proxy

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/hop"
	"github.com/acpgo/sdk/internal/wire"
)

// With a conductor, both ends are one connection, and messages to and from the successor are wrapped in
// proxy/successor. All requests that are passed on come from the conductor, with different ids, and go back to it. So
// each keeps its id: the conductor's answer to the request with an id answers the conductor's own request with that id,
// and cancelling one cancels the other.

// send sends a message to the end. With a conductor, what is for the successor is wrapped.
func (e *end) send(line []byte) error {
	if !e.wrapped {
		return e.Send(line)
	}
	return e.SendFunc(func(dst []byte) []byte {
		m := wire.Parse(e.sending, line)
		if m.Kind != wire.KindRequest && m.Kind != wire.KindNotification || string(m.Method) == acp.MethodCancelRequest {
			return wire.AppendLine(dst, line)
		}
		return hop.AppendWrapped(dst, idOf(&m), string(m.Method), m.Params)
	})
}

// idOf returns the id of a request, or nil for a notification.
func idOf(m *wire.Message) *wire.ID {
	if m.Kind == wire.KindNotification {
		return nil
	}
	return new(m.ID)
}

var malformed = wire.Error{Code: int(rpc.ErrInternal), Message: "the answer is malformed"}

// reserved reports whether a method belongs to connections and chains, and cannot have a hook.
func reserved(method string) bool {
	return method == acp.MethodCancelRequest || method == acp.MethodInitializeProxy || method == acp.MethodProxySuccessor
}

// conduct passes on a line that the conductor has sent.
func (p *relay) conduct(d *codec.Decoder, line []byte) error {
	client, agent := p.ends[Client], p.ends[Agent]
	m := wire.Parse(d, line)
	method := string(m.Method)
	refuse := func(why *rpc.Error) error {
		if m.Kind == wire.KindNotification {
			p.log.Warn("acp/proxy: a notification of the conductor is ignored", "method", method, "error", why)
		} else {
			client.refuse(m.ID, why)
		}
		return nil
	}
	switch {
	case m.Kind == wire.KindResponse:
		if e := p.endOf(m.ID, true); e != nil {
			return p.receive(e, line)
		}
		return nil // late, or of no request
	case m.Kind == wire.KindInvalid:
		if id, response, ok := wire.Recover(line); ok && response {
			if e := p.endOf(id, true); e != nil {
				return p.receive(e, wire.ErrorLine(id, &malformed))
			}
			return nil
		}
		return refuse(&rpc.Error{Code: rpc.Code(m.Failure.Code), Message: m.Failure.Message})
	case method == acp.MethodCancelRequest:
		id, _ := wire.CancelledID(d, m.Params)
		if e := p.endOf(id, false); e != nil {
			return p.receive(e, line)
		}
		return nil
	case method == acp.MethodInitialize:
		return refuse(rpc.ErrInvalidRequest.WithMessagef("this proxy has no agent: it needs one, or a conductor that " +
			"starts it with proxy/initialize"))
	case method == acp.MethodInitializeProxy && m.Kind == wire.KindRequest:
		p.initialized = true
		return p.receive(client, hop.AppendMessage(nil, &m.ID, acp.MethodInitialize, m.Params))
	case method != acp.MethodProxySuccessor:
		return p.receive(client, line)
	}
	inner, params, err := hop.Unwrap(d, m.Params)
	if err == nil && reserved(inner) {
		err = errors.New("this method is not for a successor")
	}
	if err != nil {
		return refuse(rpc.InvalidParamsf("%v", err))
	}
	return p.receive(agent, hop.AppendMessage(nil, idOf(&m), inner, params))
}

// endOf returns the end that a request with an id is to, if answered is set, or from.
func (p *relay) endOf(id wire.ID, answered bool) *end {
	id = wire.Canonical(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.ends {
		_, called := e.calls[id]
		request, passed := e.other.requests[id]
		_, sent := e.requests[id]
		if answered && (called || passed && request.cancel == nil) || !answered && sent {
			return e
		}
	}
	return nil
}

// checkInitialized checks the answer of a hook to proxy/initialize: it must follow the successor's answer, and have the
// same protocol version.
func checkInitialized(result json.RawMessage, successor answer) error {
	if successor.result == nil {
		return errors.New("a hook of initialize must call next")
	}
	var got, want struct {
		ProtocolVersion json.RawMessage `json:"protocolVersion"`
	}
	if json.Unmarshal(result, &got) != nil || json.Unmarshal(successor.result, &want) != nil ||
		!bytes.Equal(got.ProtocolVersion, want.ProtocolVersion) {
		return errors.New("a hook of initialize must not change the protocol version")
	}
	return nil
}
