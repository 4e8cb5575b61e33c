package view

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/acpgo/sdk/acp"
)

// Snapshot is a conversation as it was at one time. It is immutable, and may be read by several goroutines while the
// State grows. The values that it returns must not be changed.
type Snapshot struct {
	// Version is the version of the State; it grows with every change.
	Version uint64
	// Plan is the agent's plan, as last reported.
	Plan acp.Opt[acp.Plan]
	// Plans are the agent's plans that have an id, in the order in which they were made.
	//
	// Experimental: any minor release may change or remove it. It needs [acp.FeaturePlans].
	Plans []Plan
	// Modes holds the session's modes and the current one. Without a list of modes, only the current one is known.
	Modes acp.Opt[acp.SessionModeState]
	// ConfigOptions are the session's options with their values.
	ConfigOptions acp.Opt[[]acp.SessionConfigOption]
	// Commands are the commands that the user may begin a prompt with; nil until the agent sends them.
	Commands []acp.AvailableCommand
	// Usage reports how full the agent's context is, and what the session has cost.
	Usage acp.Opt[acp.UsageUpdate]
	// Title is the session's title, and UpdatedAt is when it was last changed; each is null after an update that
	// cleared it.
	Title, UpdatedAt acp.Opt[string]
	// Meta is the _meta of the last update of the session's info that had one.
	Meta acp.Meta
	// Versions tells when the fields above were last reported.
	Versions Versions

	generation uint64
	items      vector[Item]
	turns      vector[TurnState]
}

// Versions holds the version of the State when each field of a Snapshot was last reported, or reset; 0 means never. To
// find out whether a part must be redrawn, a client compares its version with that in the snapshot drawn last; for the
// items, see [Snapshot.Changed].
type Versions struct {
	Plan          uint64
	Plans         uint64
	Modes         uint64
	ConfigOptions uint64
	Commands      uint64
	Usage         uint64
	Info          uint64 // Title, UpdatedAt and Meta
}

// Plan is a plan that has an id.
type Plan struct {
	// ID is the plan's id, or "" for content of an unknown type without a planId.
	ID      acp.PlanID
	Content acp.PlanUpdateContent
	Meta    acp.Meta
}

func planID(content acp.PlanUpdateContent) acp.PlanID {
	switch c := content.Variant.(type) {
	case *acp.PlanUpdateContentItems:
		return c.PlanID
	case *acp.PlanUpdateContentFile:
		return c.PlanID
	case *acp.PlanUpdateContentMarkdown:
		return c.PlanID
	default:
		var known struct{ PlanID acp.PlanID }
		raw, err := content.MarshalJSON()
		if err == nil {
			err = json.Unmarshal(raw, &known)
		}
		if err != nil {
			return ""
		}
		return known.PlanID
	}
}

// First returns the index of the oldest item kept, which is the number of older items that were dropped.
func (s *Snapshot) First() int { return s.items.first }

// End returns the index that the next item will have.
func (s *Snapshot) End() int { return s.items.next }

// Item returns the item with the given index, or nil if it was dropped or does not exist yet.
func (s *Snapshot) Item(index int) *Item {
	if !s.items.has(index) {
		return nil
	}
	return s.items.get(index)
}

// Items returns an iterator over the items, oldest first.
func (s *Snapshot) Items() iter.Seq[*Item] { return s.items.each }

// Changed returns an iterator over the items that were added or changed after an older snapshot of the same State, in
// order. After Reset, and if since is nil, these are all items: see SameHistory.
func (s *Snapshot) Changed(since *Snapshot) iter.Seq[*Item] {
	if !s.SameHistory(since) {
		return s.Items()
	}
	return func(yield func(*Item) bool) { s.items.changed(&since.items, yield) }
}

// SameHistory reports whether both snapshots are of the same State and it was not reset between them, so that an index
// refers to the same item in both.
func (s *Snapshot) SameHistory(other *Snapshot) bool {
	return other != nil && s.generation == other.generation
}

// Added returns the text that was appended to an item since an older snapshot of the same State. ok is false if the
// item is not a message, or was not one in the older snapshot.
func (i *Item) Added(since *Snapshot) (text string, ok bool) {
	m, ok := i.Variant.(*Message)
	if !ok || since == nil || since.Item(i.Index) == nil {
		return "", false
	}
	old, ok := since.Item(i.Index).Variant.(*Message)
	if !ok || len(old.blocks) > 0 || len(m.blocks) > 0 || old.text != m.text {
		return "", false
	}
	return m.tail[len(old.tail):], true
}

// Turns returns an iterator over the turns that still have items, oldest first.
func (s *Snapshot) Turns() iter.Seq[*TurnState] { return s.turns.each }

// Turn returns the turn with the given number, or nil if it does not exist or was dropped with its items.
func (s *Snapshot) Turn(number int) *TurnState {
	if !s.turns.has(number - 1) {
		return nil
	}
	return s.turns.get(number - 1)
}

// Idle reports whether the last turn that this client began is over, and no other one has begun.
func (s *Snapshot) Idle() bool {
	last := s.Turn(s.turns.next)
	return last != nil && last.Ended && !last.Replayed
}

// Snapshot returns the current conversation: the same value if nothing has changed since the last call. After it, the
// first change of an item copies the list of items, without their contents.
func (s *State) Snapshot() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.take()
}

// take is Snapshot; mu is held.
func (s *State) take() *Snapshot {
	if s.snapshot == nil {
		c := s.now
		c.Version = s.version
		s.snapshot = &c
		s.epoch++ // the contents of the snapshot are no longer written to
	}
	return s.snapshot
}

// Watch yields the current snapshot, and one after each change until ctx ends. If the loop's body is slow, changes in
// the meantime are combined: a slow reader misses no result, and does not block the State.
func (s *State) Watch(ctx context.Context) iter.Seq[*Snapshot] {
	return func(yield func(*Snapshot) bool) {
		for seen := (*Snapshot)(nil); ctx.Err() == nil; {
			s.mu.Lock()
			snapshot := s.take()
			if s.wake == nil {
				s.wake = make(chan struct{})
			}
			wake := s.wake
			s.mu.Unlock()
			if snapshot != seen {
				if seen = snapshot; !yield(snapshot) {
					return
				}
				continue
			}
			select {
			case <-wake:
			case <-ctx.Done():
			}
		}
	}
}
