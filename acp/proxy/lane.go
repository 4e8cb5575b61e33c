package proxy

import (
	"context"
	"encoding/json"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/wire"
)

// A lane exists for a session and a direction while a hook holds it: with a message of the session, or with the answer
// to one. Later messages wait in it. Its fields are guarded by relay.mu.
type lane struct {
	of     *end // the side whose messages wait
	name   string
	queue  []item
	holder *running

	// The calls that the hook waits for before it has sent its message on.
	waits int
	since uint64 // relay.clock when the first of them began
	same  bool   // one of them is to the side whose messages wait
}

// item is a message that may wait. Its slices are its own.
type item struct {
	line     []byte
	session  string
	hook     *hook
	msg      wire.Message // of a message with a hook
	ctx      context.Context
	cancel   context.CancelCauseFunc
	answers  *call // of a hook
	request  bool
	response bool
	time     uint64 // relay.clock when the request was received or sent that it is, or answers
}

// passes reports whether a message need not wait for the holder. While the holder waits for a call, the called side may
// need the message in order to answer.
func (l *lane) passes(it *item) bool {
	if it.answers != nil && it.answers.by == l.holder {
		return true
	}
	return l.waits > 0 && (it.response && it.time > l.since || it.request && l.same)
}

// enter passes a message on, or queues it if its lane is held. The reader of e calls it.
func (p *relay) enter(e *end, it item) error {
	p.mu.Lock()
	l, ok := e.lanes[it.session]
	switch {
	case !ok && it.hook == nil && it.answers == nil, ok && l.passes(&it):
		p.mu.Unlock()
		return p.process(e, nil, &it)
	case !ok:
		l = &lane{of: e, name: it.session}
		e.lanes[it.session] = l
		e.busy.Add(1)
		p.mu.Unlock()
		return p.process(e, l, &it)
	}
	l.queue = append(l.queue, it)
	e.held += it.size()
	p.mu.Unlock()
	return nil
}

// itemSize is what a message takes besides its text, in bytes.
const itemSize = 512

func (it *item) size() int { return len(it.line) + itemSize }

// process passes a message on, or gives it to a hook. That hook then holds the lane, unless the lane is nil.
func (p *relay) process(e *end, l *lane, it *item) error {
	switch {
	case it.hook != nil:
		p.start(e, l, it)
	case it.answers != nil:
		p.answer(it.answers, answerOf(it.line, it.msg), l)
	default:
		return e.other.send(it.line)
	}
	return nil
}

// release ends the hold of a lane, and passes on what waits up to the next message that has a hook.
func (p *relay) release(l *lane) {
	if l == nil {
		return
	}
	p.mu.Lock()
	l.holder, l.waits = nil, 0
	for {
		if len(l.queue) == 0 {
			delete(l.of.lanes, l.name)
			l.of.busy.Add(-1)
			p.changed.Broadcast()
			p.mu.Unlock()
			return
		}
		it := l.queue[0]
		l.queue[0] = item{}
		l.queue = l.queue[1:]
		l.of.held -= it.size()
		p.changed.Broadcast()
		p.mu.Unlock()
		// The reader of the connection reports why nothing can be sent.
		_ = p.process(l.of, l, &it)
		if it.hook != nil || it.answers != nil {
			return
		}
		p.mu.Lock()
	}
}

// makeRoom waits while too much of what e has sent is held. The reader of e calls it.
func (p *relay) makeRoom(e *end) {
	if e.busy.Load() == 0 {
		return
	}
	e.other.Rest() // this may take long
	defer e.other.Resume()
	p.mu.Lock()
	defer p.mu.Unlock()
	for e.held > p.opts.MaxHeld && p.ctx.Err() == nil {
		for _, l := range e.lanes {
			if l.waits > 0 {
				p.giveUp(l.holder)
			}
		}
		p.changed.Wait()
	}
}

// giveUp ends the calls of a hook with ErrOverflow. The caller holds p.mu.
func (p *relay) giveUp(h *running) {
	for _, e := range p.ends {
		for _, c := range e.calls {
			if c.by == h && c.own && !c.over {
				c.end(answer{err: rpc.ErrOverflow})
			}
		}
	}
}

// answer is the answer to a call of a hook.
type answer struct {
	line   []byte
	result json.RawMessage
	err    error
}
