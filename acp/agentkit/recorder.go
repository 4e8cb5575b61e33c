package agentkit

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/internal/turns"
	"github.com/acpgo/sdk/acp/sessionstore"
)

const (
	// joinedBytes is the length up to which chunks are joined.
	joinedBytes = 64 << 10
	// joinedTime is how long chunks wait to be joined, and how long the updates of a tool call wait the first time.
	// Each further wait is twice as long, so that the stored size of a long call grows with the logarithm of its
	// duration.
	joinedTime = time.Second
	// joinedCalls is the greatest number of open tool calls whose updates are joined.
	joinedCalls = 64
)

// recorder writes the updates of a session into the store. Its methods require out to be held.
type recorder struct {
	store  sessionstore.Store // may be nil
	id     acp.SessionID
	out    *sync.Mutex
	failed func(error) // gets the errors of functions that timers run

	unknown bool                // the session is not in the store yet
	early   []acp.SessionUpdate // updates to store once it is

	kind    chunkKind // kind of the pending text; 0 if there is none
	message acp.Opt[acp.MessageID]
	text    []byte
	textDue turns.Timer

	// the open calls, with their pending updates; nil if an update does not wait
	calls    map[acp.ToolCallID]*acp.ToolCallUpdate
	callsDue turns.Timer
	callTime time.Duration // how long updates wait next time

	closed bool // nothing of the session is stored or sent any more
}

type chunkKind uint8

const (
	noChunk chunkKind = iota
	userChunk
	agentChunk
	thoughtChunk
)

// chunk returns the parts of an update that is a piece of text, which can be joined with others.
func chunk(update acp.SessionUpdate) (chunkKind, *acp.ContentChunk, string) {
	var kind chunkKind
	var c *acp.ContentChunk
	switch u := update.Variant.(type) {
	case *acp.SessionUpdateUserMessageChunk:
		kind, c = userChunk, (*acp.ContentChunk)(u)
	case *acp.SessionUpdateAgentMessageChunk:
		kind, c = agentChunk, (*acp.ContentChunk)(u)
	case *acp.SessionUpdateAgentThoughtChunk:
		kind, c = thoughtChunk, (*acp.ContentChunk)(u)
	default:
		return noChunk, nil, ""
	}
	text, ok := c.Content.Variant.(*acp.ContentBlockText)
	if !ok || c.Meta != nil || text.Meta != nil || !text.Annotations.IsZero() {
		return noChunk, nil, ""
	}
	return kind, c, text.Text
}

// lasting reports whether an update remains relevant when the session is loaded.
func lasting(update acp.SessionUpdate) bool {
	switch u := update.Variant.(type) {
	case *acp.SessionUpdateSubagentUpdate: // a subagent no longer works when the session is loaded
		_, idle := u.State.Value().Variant.(*acp.StateUpdateIdle)
		return idle || u.State.IsZero()
	case *acp.SessionUpdateAvailableCommandsUpdate, *acp.SessionUpdateConfigOptionUpdate, *acp.SessionUpdateUsageUpdate,
		*acp.SessionUpdateNotice:
		return false
	default:
		return true
	}
}

// withoutTerminals removes the terminals from the content of a tool call: they are gone when the session is loaded.
func withoutTerminals(update acp.SessionUpdate) acp.SessionUpdate {
	terminal := func(c acp.ToolCallContent) bool { _, ok := c.Variant.(*acp.ToolCallContentTerminal); return ok }
	switch u := update.Variant.(type) {
	case *acp.SessionUpdateToolCall:
		if slices.ContainsFunc(u.Content, terminal) {
			call := acp.ToolCall(*u)
			call.Content = slices.DeleteFunc(slices.Clone(u.Content), terminal)
			return acp.NewSessionUpdateToolCall(call)
		}
	case *acp.SessionUpdateToolCallUpdate:
		if content := u.Content.Value(); slices.ContainsFunc(content, terminal) {
			call := acp.ToolCallUpdate(*u)
			call.Content = acp.Some(slices.DeleteFunc(slices.Clone(content), terminal))
			return acp.NewSessionUpdateToolCallUpdate(call)
		}
	default: // has no terminals
	}
	return update
}

// add stores an update. Only valid updates are joined: joined with an invalid one, all of them would be left out when
// the session is replayed.
func (r *recorder) add(ctx context.Context, update acp.SessionUpdate, valid bool) error {
	if r.store == nil || !lasting(update) {
		return nil
	}
	update = withoutTerminals(update)
	switch u := update.Variant.(type) {
	case *acp.SessionUpdateToolCall:
		// Pending updates of another call with this id come before it.
		err := errors.Join(r.flushText(), r.flushCall(u.ToolCallID), r.append(ctx, update))
		return errors.Join(err, r.track(u.ToolCallID, err == nil && !ends(u.Status)))
	case *acp.SessionUpdateToolCallUpdate:
		if valid {
			return r.addToCall(ctx, acp.ToolCallUpdate(*u))
		}
		return errors.Join(r.flushText(), r.flushCall(u.ToolCallID), r.append(ctx, update))
	default: // a chunk of text, or stored as it is
	}
	kind, c, text := chunk(update)
	if kind == noChunk {
		// It is stored even if the text before it could not be.
		return errors.Join(r.flushText(), r.append(ctx, update))
	}
	var err error
	if kind != r.kind || !c.MessageID.Equal(r.message) || len(r.text)+len(text) > joinedBytes {
		err = r.flushText()
		r.kind, r.message = kind, c.MessageID
	}
	r.text = append(r.text, text...)
	r.set(&r.textDue, joinedTime, (*recorder).flushText)
	return err
}

// addToCall stores an update of a tool call together with its pending updates, or keeps it pending if the call
// continues.
func (r *recorder) addToCall(ctx context.Context, u acp.ToolCallUpdate) error {
	waiting, open := r.calls[u.ToolCallID]
	goesOn := !ends(u.Status.Value())
	if open && goesOn { // its position among other updates does not matter: the call is stored already
		if waiting == nil {
			waiting = &acp.ToolCallUpdate{ToolCallID: u.ToolCallID}
			r.calls[u.ToolCallID] = waiting
		}
		merge(waiting, copied(u))
		r.set(&r.callsDue, max(joinedTime, r.callTime), (*recorder).flushCallsInTime)
		return nil
	}
	if waiting != nil {
		merge(waiting, u)
		u = *waiting
	}
	err := errors.Join(r.flushText(), r.append(ctx, acp.NewSessionUpdateToolCallUpdate(u)))
	return errors.Join(err, r.track(u.ToolCallID, err == nil && goesOn))
}

// track records whether the updates of a tool call are joined from now on. The call has no pending updates.
func (r *recorder) track(id acp.ToolCallID, open bool) (err error) {
	delete(r.calls, id)
	switch {
	case !open && len(r.calls) == 0:
		r.callsDue.Stop()
		r.callTime = 0
	case open && len(r.calls) >= joinedCalls: // some may never end
		err = r.flushCalls()
		clear(r.calls) // so the next update of each is stored at once
	}
	if open {
		if r.calls == nil {
			r.calls = map[acp.ToolCallID]*acp.ToolCallUpdate{}
		}
		r.calls[id] = nil
	}
	return err
}

// ends reports whether a tool call with this status has ended.
func ends(status acp.ToolCallStatus) bool {
	return status == acp.ToolCallStatusCompleted || status == acp.ToolCallStatusFailed
}

// copied returns a copy of an update, so that the author may change the lists and raw values in the original.
func copied(u acp.ToolCallUpdate) acp.ToolCallUpdate {
	if content, ok := u.Content.Get(); ok {
		u.Content = acp.Some(slices.Clone(content))
	}
	if locations, ok := u.Locations.Get(); ok {
		u.Locations = acp.Some(slices.Clone(locations))
	}
	u.RawInput, u.RawOutput, u.Meta = bytes.Clone(u.RawInput), bytes.Clone(u.RawOutput), maps.Clone(u.Meta)
	return u
}

// merge merges u, the later update of a tool call, into to. Members that are absent or null change nothing.
func merge(to *acp.ToolCallUpdate, u acp.ToolCallUpdate) {
	mergeOpt(&to.Kind, u.Kind)
	mergeOpt(&to.Status, u.Status)
	mergeOpt(&to.Title, u.Title)
	mergeOpt(&to.Name, u.Name)
	mergeOpt(&to.Content, u.Content)
	mergeOpt(&to.Locations, u.Locations)
	if u.RawInput != nil && string(u.RawInput) != "null" {
		to.RawInput = u.RawInput
	}
	if u.RawOutput != nil && string(u.RawOutput) != "null" {
		to.RawOutput = u.RawOutput
	}
	if u.Meta != nil {
		to.Meta = u.Meta
	}
}

func mergeOpt[T any](to *acp.Opt[T], u acp.Opt[T]) {
	if u.Present() {
		*to = u
	}
}

// put stores updates unchanged, after the pending ones.
func (r *recorder) put(ctx context.Context, updates []acp.SessionUpdate) error {
	if r.store == nil {
		return nil
	}
	if err := r.flushText(); err != nil {
		return err
	}
	return r.append(ctx, updates...)
}

// append passes updates to the store, with a bounded time: an update that was sent is stored even if ctx has ended.
func (r *recorder) append(ctx context.Context, updates ...acp.SessionUpdate) error {
	if r.unknown {
		r.early = append(r.early, updates...)
		return nil
	}
	return r.store.Append(context.WithoutCancel(ctx), r.id, updates...)
}

// markStored records that the store now has the session, and stores the early updates.
func (r *recorder) markStored(ctx context.Context) error {
	early := r.early
	r.unknown, r.early = false, nil
	if len(early) == 0 {
		return nil
	}
	return r.append(ctx, early...)
}

// set schedules do to be called after a time, with out held, unless it is already scheduled.
func (r *recorder) set(due *turns.Timer, after time.Duration, do func(*recorder) error) {
	if due.IsSet() {
		return
	}
	due.Set(after, func() {
		if err := do(r); err != nil {
			r.failed(err)
		}
	})
}

// flush stores everything that is pending.
func (r *recorder) flush() error {
	r.callTime = 0
	return errors.Join(r.flushText(), r.flushCalls())
}

// flushText stores the pending chunks.
func (r *recorder) flushText() error {
	r.textDue.Stop()
	if r.kind == noChunk {
		return nil
	}
	c := acp.ContentChunk{Content: acp.TextBlock(string(r.text)), MessageID: r.message}
	var update acp.SessionUpdate
	switch r.kind {
	case userChunk:
		update = acp.NewSessionUpdateUserMessageChunk(c)
	case agentChunk:
		update = acp.NewSessionUpdateAgentMessageChunk(c)
	case thoughtChunk:
		update = acp.NewSessionUpdateAgentThoughtChunk(c)
	}
	r.kind, r.text = noChunk, r.text[:0]
	return r.append(context.Background(), update)
}

// flushCalls stores the pending updates of tool calls. Updates that cannot be stored stay pending.
func (r *recorder) flushCalls() error {
	r.callsDue.Stop()
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(r.calls)) {
		errs = append(errs, r.flushCall(id))
	}
	return errors.Join(errs...)
}

// flushCallsInTime is flushCalls for updates that have waited for callTime.
func (r *recorder) flushCallsInTime() error {
	r.callTime = 2 * max(joinedTime, r.callTime)
	return r.flushCalls()
}

// flushCall stores the pending updates of one tool call.
func (r *recorder) flushCall(id acp.ToolCallID) error {
	waiting := r.calls[id]
	if waiting == nil {
		return nil
	}
	err := r.append(context.Background(), acp.NewSessionUpdateToolCallUpdate(*waiting))
	if err == nil {
		r.calls[id] = nil
	}
	return err
}

// close stores the pending updates, and waits for the timers. Nothing is stored or sent afterwards. out is not held.
func (r *recorder) close() error {
	r.out.Lock()
	r.closed = true
	err := r.flush()
	r.out.Unlock()
	r.textDue.Wait()
	r.callsDue.Wait()
	return err
}
