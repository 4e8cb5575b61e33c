package natsacp

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// tracer calls hooks for the messages that are passed on between a client and its agents.
type tracer struct {
	hooks rpc.Hooks
	work  sync.WaitGroup

	mu   sync.Mutex
	open map[traced]chan wire.Message // requests that are not answered
	over bool
}

// traced is a request of the client or of an agent.
type traced struct {
	ofClient bool
	id       rpc.ID
}

func newTracer(hooks rpc.Hooks) *tracer {
	if hooks.Start != nil {
		hooks = hooks.Start(nil, hooks)
	}
	return &tracer{hooks: hooks, open: map[traced]chan wire.Message{}}
}

// info describes a message to hooks. Nothing that they change has an effect.
func info(m wire.Message, session string, incoming bool) *rpc.CallInfo {
	var p struct {
		Meta codec.Meta `json:"_meta"`
	}
	if json.Unmarshal(m.Params, &p) != nil {
		p.Meta = nil // it is not an object, or has another _meta
	}
	return &rpc.CallInfo{
		Method: string(m.Method), ID: m.ID, Incoming: incoming, Notification: m.Kind == wire.KindNotification,
		Session: session, Size: len(m.Params), Meta: p.Meta, Params: json.RawMessage(m.Params),
	}
}

// began reports a request of the client, or of an agent, that is passed on under an id. The message is valid only
// during the call.
func (t *tracer) began(ofClient bool, id rpc.ID, m wire.Message, session string) {
	wrap := t.hooks.Call
	if ofClient {
		wrap = t.hooks.Serve
	}
	key, answer := traced{ofClient, wire.Canonical(id)}, make(chan wire.Message, 1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if wrap == nil || t.over || t.open[key] != nil {
		return
	}
	t.open[key] = answer
	m.Params = append([]byte(nil), m.Params...)
	call := info(m, session, ofClient)
	t.work.Go(func() {
		_ = wrap(context.Background(), call, func(context.Context) error { // the error is that of the answer
			m, ok := <-answer
			if !ok {
				return rpc.ErrClosed
			}
			if call.Result = json.RawMessage(m.Result); m.Failure != nil {
				return failed(m.Failure)
			}
			return nil
		})
	})
}

// ended reports the answer to a request.
func (t *tracer) ended(ofClient bool, id rpc.ID, m wire.Message) {
	key := traced{ofClient, wire.Canonical(id)}
	t.mu.Lock()
	defer t.mu.Unlock()
	if answer := t.open[key]; answer != nil {
		m.Result = append([]byte(nil), m.Result...)
		answer <- m
		delete(t.open, key)
	}
}

// answered reports the answer of an agent to a request of the client. The line is valid only during the call.
func (t *tracer) answered(id rpc.ID, line []byte) {
	if t.hooks.Serve != nil {
		t.ended(true, id, wire.Parse(codec.NewDecoder(nil), line))
	}
}

// failed reports that a request of the client has failed.
func (t *tracer) failed(id rpc.ID, err error) {
	t.ended(true, id, wire.Message{Failure: failure(err)})
}

// updated reports an update that is passed on.
func (t *tracer) updated(d *codec.Decoder, line []byte) {
	if t.hooks.Call == nil {
		return
	}
	m := wire.Parse(d, line)
	if m.Kind != wire.KindNotification || string(m.Method) != acp.MethodSessionUpdate {
		return
	}
	call := info(m, string(wire.TextMember(d, m.Params, "sessionId")), false)
	_ = t.hooks.Call(context.Background(), call, func(context.Context) error { return nil }) // as next
}

// end reports that the connection is over.
func (t *tracer) end() {
	t.mu.Lock()
	t.over = true
	for key, answer := range t.open {
		close(answer)
		delete(t.open, key)
	}
	t.mu.Unlock()
	t.work.Wait()
	if t.hooks.End != nil {
		t.hooks.End()
	}
}
