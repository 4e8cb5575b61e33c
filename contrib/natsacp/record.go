package natsacp

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
)

// record is the record of the session that an agent has. Its methods write it, by compare-and-set.
type record struct {
	node            *Node
	principal, link string

	mu      sync.Mutex // held while the record is changed
	session *Session   // nil if there is none
	prompts int        // not answered
}

func (r *record) timeout() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), r.node.fleet.lease)
}

// find returns the record of a session of the same principal, or nil.
func (r *record) find(ctx context.Context, id string) (*Session, error) {
	return r.node.fleet.session(ctx, r.principal, id)
}

// change changes the record, if there is one.
func (r *record) change(change func(*Session)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.session == nil {
		return nil
	}
	ctx, cancel := r.timeout()
	defer cancel()
	if change(r.session); !r.node.leased() {
		return errTaken
	}
	return r.node.fleet.store(ctx, r.session)
}

// turnBegins records a prompt.
func (r *record) turnBegins(p Prompt) error {
	return r.change(func(s *Session) {
		r.prompts++
		s.begun(p)
		s.Turn = Turn{Number: s.Turn.Number + 1, State: TurnRunning}
	})
}

// maxPrompts is how many of them a record has.
const maxPrompts = 32

// begun adds a prompt to a record.
func (r *Session) begun(p Prompt) {
	if p.Key != "" {
		r.Prompts = append(r.Prompts[max(0, len(r.Prompts)-maxPrompts+1):], p)
	}
}

// turnEnded records the answer to a prompt.
func (r *record) turnEnded(stop string) error {
	return r.change(func(s *Session) {
		if r.prompts--; r.prompts <= 0 {
			s.Turn.State, s.Turn.StopReason = TurnDone, stop
		}
	})
}

// interrupt records that the turn has ended with its agent.
func (s *Session) interrupt() {
	if s.Turn.State == TurnRunning {
		s.Turn.State = TurnInterrupted
	}
}

// claim makes a session the node's own.
func (r *record) claim(id, cwd string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.session != nil {
		if r.session.ID == id {
			return nil
		}
		return rpc.ErrInvalidRequest.WithMessagef("the agent has another session")
	}
	f := r.node.fleet
	ctx, cancel := r.timeout()
	defer cancel()
	s, err := r.find(ctx, id)
	if err != nil {
		return err
	}
	if s == nil {
		return acp.SessionNotFound(acp.SessionID(id))
	}
	if s.Node != "" {
		nodes, err := f.alive(ctx, nodePrefix)
		if err != nil {
			return err
		}
		if nodes[s.Node] {
			probe := frame{kind: frameTaken}
			m, err := f.nc.RequestWithContext(ctx, f.subject("up", s.Node, s.Link), probe.encode())
			if err != nil || string(m.Data) != string(replyNone) {
				return rpc.ErrInternal.WithMessagef("the session is at another node")
			}
		}
	}
	old := cmp.Or(s.Link, s.Last)
	s.Node, s.Link, s.Last, s.Cwd = r.node.opts.Name, r.link, "", cmp.Or(cwd, s.Cwd)
	s.Epoch++
	s.interrupt()
	if err := f.store(ctx, s); err != nil {
		if errors.Is(err, errTaken) {
			return rpc.ErrInternal.WithMessagef("another node was faster")
		}
		return err
	}
	r.session = s
	if old == "" || old == r.link { // this agent has had it before
		return nil
	}
	// From here on, nobody reads what the previous node may still write.
	fence := nats.NewMsg(f.subject("log", old))
	fence.Data = (&frame{kind: frameFence}).encode()
	return f.publish(ctx, fence)
}

// release gives up the session.
func (r *record) release() error {
	err := r.change(func(s *Session) {
		s.Node, s.Link, s.Last = "", "", s.Link
		s.interrupt()
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.session = nil
	if errors.Is(err, errTaken) { // by another node, or deleted
		return nil
	}
	return err
}

// create records a new session.
func (r *record) create(id, cwd string) error {
	ctx, cancel := r.timeout()
	defer cancel()
	s := &Session{ID: id, Principal: r.principal, Cwd: cwd, Node: r.node.opts.Name, Link: r.link, Epoch: 1,
		Created: time.Now().UTC()}
	if err := r.node.fleet.store(ctx, s); err != nil {
		if errors.Is(err, errTaken) {
			return rpc.ErrInternal.WithMessagef("the agent has given a new session the id of another one")
		}
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.session = s
	return nil
}

// delete removes the record of a session.
func (r *record) delete(id string) error {
	ctx, cancel := r.timeout()
	defer cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.session
	if s == nil || s.ID != id {
		var err error
		if s, err = r.find(ctx, id); s == nil || err != nil {
			return err
		}
	} else {
		r.session = nil
	}
	return r.node.fleet.forget(ctx, s)
}

// prompt changes what is remembered of a prompt with an idempotency key, if the session has had it.
func (r *record) prompt(p Prompt, change func(s *Session, i int)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.session == nil || p.Key == "" {
		return
	}
	if i := slices.IndexFunc(r.session.Prompts, func(other Prompt) bool { return other.Key == p.Key }); i >= 0 {
		change(r.session, i)
	}
}
