package agentkit

import (
	"context"
	"errors"
	"slices"

	"github.com/acpgo/sdk/acp/acpv2"
)

// WhileBusy selects what to do with a prompt that arrives while another one of its session is running.
type WhileBusy int

const (
	// Queue makes the prompt wait until all earlier prompts are done.
	Queue WhileBusy = iota

	// Steer accepts the prompt, shows it to the client, and offers it to the running turn: see Session.Take. A prompt that
	// the turn did not take before it ended becomes the next turn. The client sees the work on all of them as one. Prompts
	// that are sent without waiting for answers are taken, answered, shown and stored in their order.
	Steer
)

// steered is a prompt that was received with Steer.
type steered struct {
	req     *acpv2.PromptRequest
	decided chan struct{}   // closed when it has become a turn, or a turn has taken it
	over    chan struct{}   // if it is a turn: closed when the turn has ended
	shown   chan struct{}   // closed when the client knows that it was accepted, or it has left
	before  <-chan struct{} // shown of the prompt that entered before it, if any

	// Guarded by Session.mu.
	ctx   context.Context
	taker *steered // the turn that has taken it

	// Set before over is closed.
	idle acpv2.IdleStateUpdate
	err  error
}

// errTurnLost is the error of prompts taken by a turn whose handler has panicked.
var errTurnLost = errors.New("the handler of the turn did not return")

// Waiting returns a channel that receives a value when there may be a prompt to Take. No one else receives from it. It
// is never closed, and never ready unless Config.WhileBusy is Steer.
func (s *Session[S]) Waiting() <-chan struct{} { return s.more }

// Take takes the first prompt that arrived since the turn began into the turn, or returns nil if there is none. Only
// the running turn may call it. The prompt has been shown to the client and stored. Unless Config.WhileBusy is Steer,
// Take always returns nil.
func (s *Session[S]) Take() *acpv2.PromptRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.waiting, func(p *steered) bool { return p.ctx.Err() == nil })
	if s.running == nil || i < 0 || !isClosed(s.waiting[i].shown) {
		return nil
	}
	p := s.waiting[i]
	s.waiting = slices.Delete(s.waiting, i, i+1)
	p.taker = s.running
	close(p.decided)
	return p.req
}

// enter makes a prompt the turn if none is running. Otherwise it makes the prompt wait, or refuses it if too many are
// waiting. Prompts enter in the order in which they arrived.
func (s *Session[S]) enter(ctx context.Context, req *acpv2.PromptRequest) (*steered, error) {
	p := &steered{ctx: ctx, req: req, decided: make(chan struct{}), over: make(chan struct{}), shown: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.running == nil:
		s.running = p
		close(p.decided)
	case len(s.waiting) >= s.sessions.config.MaxWaiting:
		return nil, acpv2.ErrInvalidRequest.WithMessagef("Invalid request: %d prompts are waiting, the maximum", len(s.waiting))
	default:
		s.waiting = append(s.waiting, p)
	}
	p.before, s.entered = s.entered, p.shown
	return p, nil
}

// awaitShown waits until the prompt that entered before p is shown: prompts are stored, answered and shown in their order.
func (p *steered) awaitShown(ctx context.Context) error {
	if p == nil || p.before == nil {
		return nil
	}
	select {
	case <-p.before:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// show lets the next prompt be accepted; mu is held.
func (p *steered) show() {
	if !isClosed(p.shown) {
		close(p.shown)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// leave ends the turn that a prompt has become, or removes a waiting prompt, and reports whether it did either. Without
// Steer, p is nil, and leave does nothing.
func (s *Session[S]) leave(p *steered) bool {
	if p == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p.show()
	if i := slices.Index(s.waiting, p); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
		return true
	}
	if s.running != p {
		return false
	}
	close(p.over)
	s.running = nil
	if len(s.waiting) > 0 {
		s.running = s.waiting[0]
		s.waiting = slices.Delete(s.waiting, 0, 1)
		close(s.running.decided)
		s.offer()
	}
	return true
}

// offer signals to the running turn that a prompt is waiting; mu is held.
func (s *Session[S]) offer() {
	if len(s.waiting) == 0 {
		return
	}
	select {
	case s.more <- struct{}{}:
	default: // the signal is already there
	}
}

// steer does the work of a prompt that was accepted: it waits until the prompt is the turn, or until the turn that has
// taken it ends.
func (s *Session[S]) steer(ctx context.Context, p *steered) (acpv2.IdleStateUpdate, error) {
	s.mu.Lock()
	p.ctx = ctx
	p.show()
	s.offer()
	s.mu.Unlock()
	select {
	case <-p.decided:
	case <-ctx.Done():
		if s.leave(p) {
			return acpv2.IdleStateUpdate{}, context.Cause(ctx)
		}
	}
	s.mu.Lock()
	taker := p.taker
	s.mu.Unlock()
	if taker != nil {
		<-taker.over // the same cancellation ends it
		return taker.idle, taker.err
	}
	defer s.leave(p)
	p.err = errTurnLost // in case the handler does not return
	p.idle, p.err = s.turn(ctx, p.req)
	return p.idle, p.err
}
