// This file owns what of a conversation is stored, and that the chunks of a message are stored as one.

package agentkit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/sessionstore"
)

const (
	// joinedBytes is how long chunks grow that are joined.
	joinedBytes = 64 << 10
	// joinedTime is how long they wait.
	joinedTime = time.Second
)

// recorder writes the updates of a session into the store. Its owner holds out.
type recorder struct {
	store  sessionstore.Store // or nil
	id     acp.SessionID
	out    *sync.Mutex
	failed func(error) // is told what the timer's flush returns

	kind    chunkKind // of the text that waits; 0 is none
	message acp.Opt[acp.MessageID]
	text    []byte
	timer   *time.Timer
	running sync.WaitGroup // the timer's function, from when it is set until it has returned or cannot run
	closed  bool           // nothing of the session is stored or sent any more
}

type chunkKind uint8

const (
	noChunk chunkKind = iota
	userChunk
	agentChunk
	thoughtChunk
)

// chunk takes an update apart that is a piece of text, which can be joined with others.
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

// lasting reports whether an update is about more than the moment.
func lasting(update acp.SessionUpdate) bool {
	switch update.Variant.(type) {
	case *acp.SessionUpdateAvailableCommandsUpdate, *acp.SessionUpdateConfigOptionUpdate, *acp.SessionUpdateUsageUpdate, *acp.SessionUpdateNotice:
		return false
	}
	return true
}

// withoutTerminals leaves the terminals out of what a tool call shows: they are gone when the session is loaded.
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
	}
	return update
}

// add stores an update.
func (r *recorder) add(ctx context.Context, update acp.SessionUpdate) error {
	if r.store == nil || !lasting(update) {
		return nil
	}
	kind, c, text := chunk(update)
	if kind == noChunk {
		// What is sent is stored, and the store does not wait for long. That the text before it could not be stored is no
		// reason to leave it out.
		return errors.Join(r.flush(), r.store.Append(context.WithoutCancel(ctx), r.id, withoutTerminals(update)))
	}
	var err error
	if kind != r.kind || !c.MessageID.Equal(r.message) || len(r.text)+len(text) > joinedBytes {
		err = r.flush()
		r.kind, r.message = kind, c.MessageID
	}
	r.text = append(r.text, text...)
	r.arm()
	return err
}

// put stores updates as they are, behind what waits.
func (r *recorder) put(ctx context.Context, updates []acp.SessionUpdate) error {
	if r.store == nil {
		return nil
	}
	if err := r.flush(); err != nil {
		return err
	}
	return r.store.Append(ctx, r.id, updates...)
}

// arm sets the time at which what waits is stored.
func (r *recorder) arm() {
	if r.timer != nil {
		return
	}
	r.running.Add(1)
	var timer *time.Timer
	timer = time.AfterFunc(joinedTime, func() {
		defer r.running.Done()
		r.out.Lock()
		defer r.out.Unlock()
		if r.timer != timer {
			return // it was stored meanwhile
		}
		if err := r.flush(); err != nil {
			r.failed(err)
		}
	})
	r.timer = timer
}

// disarm keeps the timer from doing anything.
func (r *recorder) disarm() {
	if r.timer != nil && r.timer.Stop() {
		r.running.Done()
	}
	r.timer = nil
}

// flush stores the chunks that wait.
func (r *recorder) flush() error {
	r.disarm()
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
	return r.store.Append(context.Background(), r.id, update)
}

// close stores what waits, and waits for the timer. Nothing is stored or sent afterwards. out is not held.
func (r *recorder) close() error {
	r.out.Lock()
	r.closed = true
	err := r.flush()
	r.out.Unlock()
	r.running.Wait()
	return err
}
