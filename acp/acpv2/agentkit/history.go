package agentkit

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/internal/turns"
)

const (
	waitingBytes = 64 << 10    // how many bytes wait to be stored
	waitingTime  = time.Second // how long they wait
	updateBytes  = 64          // approximate size of an update without its text
)

// recorder writes the updates of a session into the store. Its methods require out to be held.
type recorder struct {
	store  Store
	id     acp.SessionID
	failed func(error) // gets the errors of functions that the timer runs

	waiting []v2draft.SessionUpdate // pending chunks
	kind    item                    // the item of the pending text after them; the zero value means none
	text    []byte
	size    int // size of both in bytes
	due     turns.Timer
}

// kind is what an id refers to.
type kind uint8

const (
	userMessage kind = iota + 1
	agentMessage
	thought
	toolCall
	terminal
	compaction
)

// item is what chunks are added to.
type item struct {
	kind kind
	id   string
}

// messageChunk returns the parts of a chunk of a message.
func messageChunk(update v2draft.SessionUpdate) (item, *v2draft.ContentChunk) {
	switch u := update.Variant.(type) {
	case *v2draft.SessionUpdateUserMessageChunk:
		return item{userMessage, string(u.MessageID)}, (*v2draft.ContentChunk)(u)
	case *v2draft.SessionUpdateAgentMessageChunk:
		return item{agentMessage, string(u.MessageID)}, (*v2draft.ContentChunk)(u)
	case *v2draft.SessionUpdateAgentThoughtChunk:
		return item{thought, string(u.MessageID)}, (*v2draft.ContentChunk)(u)
	default:
		return item{}, nil
	}
}

// plainText returns the text of a chunk that has nothing else, which can be joined with others.
func plainText(c *v2draft.ContentChunk) (string, bool) {
	if c == nil || c.Meta != nil {
		return "", false
	}
	text, ok := c.Content.Variant.(*v2draft.ContentBlockText)
	if !ok || text.Meta != nil || !text.Annotations.IsZero() {
		return "", false
	}
	return text.Text, true
}

// add stores an update, or keeps it pending, if it is about more than the moment.
func (r *recorder) add(ctx context.Context, update v2draft.SessionUpdate) error {
	switch update.Variant.(type) {
	case *v2draft.SessionUpdateStateUpdate, *v2draft.SessionUpdateAvailableCommandsUpdate, *v2draft.SessionUpdateConfigOptionUpdate,
		*v2draft.SessionUpdateSessionInfoUpdate, *v2draft.SessionUpdateUsageUpdate, *v2draft.SessionUpdateNotice:
		return nil
	default: // stored
	}
	of, chunk := messageChunk(update)
	output, _ := update.Variant.(*v2draft.SessionUpdateTerminalOutputChunk)
	if text, ok := plainText(chunk); ok {
		if of != r.kind {
			r.join()
			r.kind, r.size = of, r.size+updateBytes
		}
		r.text, r.size = append(r.text, text...), r.size+len(text)
	} else {
		r.join()
		if output == nil || output.Meta != nil { // the caller may change the data that it refers to
			r.waiting = append(r.waiting, update)
			return r.flush()
		}
		own := *output
		r.waiting = append(r.waiting, v2draft.SessionUpdate{Variant: &own})
		r.size += updateBytes + len(own.Data)
	}
	if r.size >= waitingBytes {
		return r.flush()
	}
	r.flushLater()
	return nil
}

// join makes one update of the pending text.
func (r *recorder) join() {
	if r.kind == (item{}) {
		return
	}
	c := v2draft.ContentChunk{MessageID: v2draft.MessageID(r.kind.id), Content: v2draft.TextBlock(string(r.text))}
	var update v2draft.SessionUpdate
	switch r.kind.kind {
	case userMessage:
		update = v2draft.NewSessionUpdateUserMessageChunk(c)
	case agentMessage:
		update = v2draft.NewSessionUpdateAgentMessageChunk(c)
	default:
		update = v2draft.NewSessionUpdateAgentThoughtChunk(c)
	}
	r.waiting = append(r.waiting, update)
	r.kind, r.text = item{}, r.text[:0]
}

// flush stores everything that is pending, with a bounded time. Updates that were sent are stored even if a turn was
// cancelled.
func (r *recorder) flush() error {
	r.due.Stop()
	r.join()
	if len(r.waiting) == 0 {
		return nil
	}
	err := r.store.Append(context.Background(), r.id, r.waiting...)
	if len(r.waiting) > 1 && errors.Is(err, sessionstore.ErrTooLarge) { // that is no reason to leave out the others
		err = nil
		for _, update := range r.waiting {
			err = errors.Join(err, r.store.Append(context.Background(), r.id, update))
		}
	}
	clear(r.waiting)
	r.waiting, r.size = r.waiting[:0], 0
	return err
}

// flushLater schedules flush, unless it is already scheduled.
func (r *recorder) flushLater() {
	if r.due.IsSet() {
		return
	}
	r.due.Set(waitingTime, func() {
		if err := r.flush(); err != nil {
			r.failed(err)
		}
	})
}

// history is the part of a replayed history that the client has been shown.
type history struct {
	whole    map[item]bool // shown items, and whether each was replaced as a whole
	open     map[item]int  // items that have not ended, in the order in which they were shown
	statuses map[string]v2draft.CompactionStatus
}

func newHistory() *history {
	return &history{whole: map[item]bool{}, open: map[item]int{}, statuses: map[string]v2draft.CompactionStatus{}}
}

// ahead records the next update, and returns the updates that must be shown before it: the client may already have the
// item that a chunk is added to, and would then have the chunk twice.
func (h *history) ahead(update v2draft.SessionUpdate) []v2draft.SessionUpdate {
	none := v2draft.Some([]v2draft.ContentBlock{})
	switch u := update.Variant.(type) {
	case *v2draft.SessionUpdateUserMessage:
		h.replaced(item{userMessage, string(u.MessageID)}, !u.Content.IsZero())
	case *v2draft.SessionUpdateAgentMessage:
		h.replaced(item{agentMessage, string(u.MessageID)}, !u.Content.IsZero())
	case *v2draft.SessionUpdateAgentThought:
		h.replaced(item{thought, string(u.MessageID)}, !u.Content.IsZero())
	case *v2draft.SessionUpdateUserMessageChunk:
		return h.emptied(item{userMessage, string(u.MessageID)},
			v2draft.NewSessionUpdateUserMessage(v2draft.UserMessage{MessageID: u.MessageID, Content: none}))
	case *v2draft.SessionUpdateAgentMessageChunk:
		return h.emptied(item{agentMessage, string(u.MessageID)},
			v2draft.NewSessionUpdateAgentMessage(v2draft.AgentMessage{MessageID: u.MessageID, Content: none}))
	case *v2draft.SessionUpdateAgentThoughtChunk:
		return h.emptied(item{thought, string(u.MessageID)},
			v2draft.NewSessionUpdateAgentThought(v2draft.AgentThought{MessageID: u.MessageID, Content: none}))
	case *v2draft.SessionUpdateToolCallUpdate:
		call := item{toolCall, string(u.ToolCallID)}
		switch status := u.Status.Value(); {
		case hasEnded(status):
			h.ended(call)
		case !u.Status.IsZero() || h.isNew(call): // which is pending
			h.goesOn(call)
		}
		h.replaced(call, !u.Content.IsZero())
	case *v2draft.SessionUpdateToolCallContentChunk:
		call := item{toolCall, string(u.ToolCallID)}
		if h.isNew(call) {
			h.goesOn(call)
		}
		return h.emptied(call, v2draft.NewSessionUpdateToolCallUpdate(v2draft.ToolCallUpdate{
			ToolCallID: u.ToolCallID, Content: v2draft.Some([]v2draft.ToolCallContent{}),
		}))
	case *v2draft.SessionUpdateTerminalUpdate:
		shown := item{terminal, string(u.TerminalID)}
		switch {
		case u.ExitStatus.Present():
			h.ended(shown)
		case !u.ExitStatus.IsZero() || h.isNew(shown):
			h.goesOn(shown)
		}
		h.replaced(shown, !u.Output.IsZero())
	case *v2draft.SessionUpdateTerminalOutputChunk:
		shown := item{terminal, string(u.TerminalID)}
		if h.isNew(shown) {
			h.goesOn(shown)
		}
		return h.emptied(shown, v2draft.NewSessionUpdateTerminalUpdate(v2draft.TerminalUpdate{
			TerminalID: u.TerminalID, Output: v2draft.Some(v2draft.TerminalOutput{}),
		}))
	case *v2draft.SessionUpdateCompactionUpdate:
		of := item{compaction, string(u.CompactionID)}
		switch u.Status {
		case v2draft.CompactionStatusCompleted, v2draft.CompactionStatusFailed, v2draft.CompactionStatusCancelled:
			h.ended(of)
		default:
			h.goesOn(of)
		}
		h.replaced(of, !u.Summary.IsZero())
		h.statuses[of.id] = u.Status
	case *v2draft.SessionUpdateCompactionSummaryChunk:
		of := item{compaction, string(u.CompactionID)}
		if h.isNew(of) {
			h.goesOn(of)
			h.statuses[of.id] = v2draft.CompactionStatusInProgress
		}
		return h.emptied(of, v2draft.NewSessionUpdateCompactionUpdate(v2draft.CompactionUpdate{
			CompactionID: u.CompactionID, Status: h.statuses[of.id], Summary: none,
		}))
	default: // is about nothing that is tracked
	}
	return nil
}

// isNew reports whether an item has not been shown before.
func (h *history) isNew(i item) bool {
	_, known := h.whole[i]
	return !known
}

// replaced records an item, and whether it was replaced as a whole.
func (h *history) replaced(i item, whole bool) { h.whole[i] = h.whole[i] || whole }

// emptied returns an update that empties an item, unless it was replaced as a whole before.
func (h *history) emptied(i item, update v2draft.SessionUpdate) []v2draft.SessionUpdate {
	if h.whole[i] {
		return nil
	}
	h.whole[i] = true
	return []v2draft.SessionUpdate{update}
}

// goesOn records an item that has not ended.
func (h *history) goesOn(i item) {
	if _, ok := h.open[i]; !ok {
		h.open[i] = len(h.whole)
	}
}

func (h *history) ended(i item) { delete(h.open, i) }

// ends returns updates which show that nothing is in progress any more.
func (h *history) ends() (updates []v2draft.SessionUpdate) {
	items := slices.SortedFunc(maps.Keys(h.open), func(a, b item) int {
		return cmp.Or(h.open[a]-h.open[b], cmp.Compare(a.kind, b.kind), strings.Compare(a.id, b.id))
	})
	for _, i := range items {
		switch i.kind {
		case toolCall:
			updates = append(updates, v2draft.UpdateToolCall(v2draft.ToolCallID(i.id), v2draft.WithStatus(v2draft.ToolCallStatusFailed)))
		case terminal:
			updates = append(updates, v2draft.NewSessionUpdateTerminalUpdate(v2draft.TerminalUpdate{
				TerminalID: v2draft.TerminalID(i.id), ExitStatus: v2draft.Some(v2draft.TerminalExitStatus{}),
			}))
		case compaction:
			updates = append(updates, v2draft.NewSessionUpdateCompactionUpdate(v2draft.CompactionUpdate{
				CompactionID: v2draft.CompactionID(i.id), Status: v2draft.CompactionStatusFailed,
			}))
		}
	}
	return updates
}
