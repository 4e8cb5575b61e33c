package agentkit

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/acpgo/sdk/acp"
)

// Plan is a plan of a turn whose steps are done one after the other, or several at once. Its methods are safe for
// concurrent use, and those of a nil Plan do nothing. For plans that change in other ways, send acp.UpdatePlan with
// Turn.Update.
type Plan struct {
	show func([]acp.PlanEntry) error

	mu      sync.Mutex
	entries []acp.PlanEntry
	err     error // from showing it the first time
}

// Plan shows a plan whose steps are pending. ctx is the turn's context or derived from it. If the plan cannot be shown,
// the next call of Start or Done returns the error too.
func (t *turn) Plan(ctx context.Context, steps ...string) *Plan {
	p := &Plan{show: func(entries []acp.PlanEntry) error { return t.Update(ctx, acp.UpdatePlan(entries...)) }}
	for _, step := range steps {
		p.entries = append(p.entries, acp.PlanEntry{
			Content: step, Priority: acp.PlanEntryPriorityMedium, Status: acp.PlanEntryStatusPending,
		})
	}
	p.err = p.show(slices.Clone(p.entries))
	return p
}

// Start shows that work on a step, counted from 0, has begun.
func (p *Plan) Start(step int) error { return p.set(step, acp.PlanEntryStatusInProgress) }

// Done shows that a step, counted from 0, is completed.
func (p *Plan) Done(step int) error { return p.set(step, acp.PlanEntryStatusCompleted) }

// Do runs a step, counted from 0: it shows that work on it has begun, calls do, and shows that the step is completed
// or, if do returns an error, failed: the protocol has no such status, so the step is pending again, and its text says
// so.
func (p *Plan) Do(step int, do func() error) error {
	if err := p.Start(step); err != nil {
		return err
	}
	if err := do(); err != nil {
		return errors.Join(err, p.fail(step))
	}
	return p.Done(step)
}

func (p *Plan) fail(step int) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	p.entries[step].Content += " (failed)"
	p.mu.Unlock()
	return p.set(step, acp.PlanEntryStatusPending)
}

func (p *Plan) set(step int, status acp.PlanEntryStatus) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.entries[step].Status = status
	first := p.err
	p.err = nil
	return errors.Join(first, p.show(slices.Clone(p.entries)))
}
