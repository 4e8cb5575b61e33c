package natsacp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/wire"
)

// open finds an agent that may still run, or starts one and prepares it.
func (l *link) open() (*nats.Subscription, error) {
	ctx, cancel := l.timeout()
	defer cancel()
	if l.begins == restored {
		s, err := l.client.gateway.fleet.session(ctx, l.client.principal, l.session)
		if err != nil {
			return nil, err
		}
		if l.attach = s; s == nil {
			return nil, acp.SessionNotFound(acp.SessionID(l.session))
		}
	}
	if l.client.gateway.mayRun(ctx, l.attach) {
		if sub, err := l.join(ctx); sub != nil || err != nil {
			return sub, err
		}
	}
	sub, err := l.place(ctx)
	if err == nil && l.begins != plain {
		err = l.prepare()
	}
	return sub, err
}

// subscribe receives what a node says about the link.
func (l *link) subscribe(node, id string, gen uint64) (*nats.Subscription, error) {
	c := l.client
	c.mu.Lock()
	delete(c.links, l.id)
	l.node, l.id, l.gen, l.expect, l.from, l.heard = node, id, gen, 1, 1, time.Now()
	c.links[id] = l
	c.mu.Unlock()
	return c.gateway.fleet.nc.Subscribe(c.gateway.fleet.subject("down", id), l.receive)
}

// join attaches to an agent that may still run. It returns nil if there is none, or if the node has let it go.
func (l *link) join(ctx context.Context) (*nats.Subscription, error) {
	c := l.client
	sub, err := l.subscribe(l.attach.Node, l.attach.Link, 0)
	if err != nil {
		return nil, err
	}
	reply, _, err := l.insist(ctx, frame{kind: frameAttach, data: []byte(c.gateway.opts.Name)})
	if fr, ok := decodeFrame(reply); err == nil && ok && fr.kind == replyOK {
		c.mu.Lock()
		defer c.mu.Unlock()
		l.phase, l.gen, l.heard, l.joined = max(l.phase, live), fr.gen, time.Now(), fr.arg
		l.expect, l.from = fr.seq+1, fr.arg+1
		if l.resume {
			l.filter = answers
		}
		return sub, nil
	}
	if ctx.Err() != nil {
		return nil, errors.Join(errUnavailable, sub.Unsubscribe())
	}
	return nil, sub.Unsubscribe()
}

var errUnavailable = rpc.ErrInternal.WithMessagef("no node of the fleet can take the session")

// place lets a node start an agent.
func (l *link) place(ctx context.Context) (*nats.Subscription, error) {
	silent := map[string]bool{}
	full, again := false, false // for this principal
	for age := l.client.gateway.fleet.lease / 4; ; {
		node := l.client.gateway.choose(ctx, silent, age)
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
		sub, err := l.subscribe(node, unique(), 1)
		if err != nil {
			return nil, err
		}
		answer := l.askAgent(ctx)
		if answer.Node != "" {
			return sub, nil
		}
		full = full || answer.Full
		if err = sub.Unsubscribe(); answer.Error != "" {
			err = errors.Join(rpc.ErrInternal.WithMessagef("%s", answer.Error), err)
		}
		if err != nil {
			return nil, err
		}
	}
}

// askAgent asks a node for an agent. If it does not answer, the answer is empty.
func (l *link) askAgent(ctx context.Context) (answer opened) {
	c := l.client
	// strings cannot fail
	text, _ := json.Marshal(opening{Link: l.id, Principal: c.principal, Gateway: c.gateway.opts.Name})
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	m, err := c.gateway.fleet.nc.RequestWithContext(ctx, c.gateway.fleet.subject("open", l.node), text)
	if err != nil || json.Unmarshal(m.Data, &answer) != nil {
		return opened{}
	}
	if answer.Node != "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		l.phase = max(l.phase, live) // its agent may have ended already
	}
	return answer
}

// prepare initializes the agent, and restores the session.
func (l *link) prepare() error {
	c := l.client
	ctx, cancel := l.timeout()
	defer cancel()
	result, err := l.call(ctx, acp.MethodInitialize, c.initialize)
	if err != nil || l.begins != restored {
		return err
	}
	var r struct {
		AgentCapabilities struct {
			LoadSession         bool
			SessionCapabilities struct{ Resume json.RawMessage }
		}
	}
	var params map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(result, &r), json.Unmarshal(l.params, &params)); err != nil {
		return err
	}
	params["sessionId"], _ = json.Marshal(l.session) // a string cannot fail
	method := acp.MethodResumeSession
	if resume := r.AgentCapabilities.SessionCapabilities.Resume; resume == nil || string(resume) == "null" {
		if method = acp.MethodLoadSession; !r.AgentCapabilities.LoadSession {
			return rpc.ErrInternal.WithMessagef("the session is lost: the agent cannot load sessions")
		}
	}
	for {
		if _, err = l.call(ctx, method, params); err == nil || pause(ctx, lull) != nil {
			return err
		}
		// Another node has not let the session go yet, or was faster. Then the client can attach there.
		s, e := c.gateway.fleet.session(ctx, c.principal, l.session)
		if e == nil && s != nil && s.Link != l.id && c.gateway.mayRun(ctx, s) {
			return unsentError{err}
		}
	}
}

// ownPrefix begins the ids of the gateway's own requests.
const ownPrefix = "acp-fleet:"

// call sends a request of the gateway's own, and returns its result.
func (l *link) call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	c := l.client
	answer := make(chan wire.Message, 1)
	c.mu.Lock()
	l.out.sent++
	l.filter = noUpdates
	id := rpc.StringID(fmt.Sprint(ownPrefix, l.out.sent))
	l.out.pending[id] = item{answer: answer}
	c.mu.Unlock()
	if err := l.send(append(requestLine(idText(id), method, params), '\n')); err != nil {
		return nil, err
	}
	select {
	case m := <-answer:
		if m.Failure != nil {
			return nil, failed(m.Failure)
		}
		return m.Result, nil
	case <-l.ctx.Done():
		return nil, errStopped
	case <-ctx.Done():
		return nil, rpc.ErrInternal.WithMessagef("the agent does not answer %s", method)
	}
}
