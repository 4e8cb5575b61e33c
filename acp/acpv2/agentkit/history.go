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

	waiting []acpv2.SessionUpdate // pending chunks
	kind    item                  // the item of the pending text after them; the zero value means none
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
func messageChunk(update acpv2.SessionUpdate) (item, *acpv2.ContentChunk) {
	switch u := update.Variant.(type) {
	case *acpv2.SessionUpdateUserMessageChunk:
		return item{userMessage, string(u.MessageID)}, (*acpv2.ContentChunk)(u)
	case *acpv2.SessionUpdateAgentMessageChunk:
		return item{agentMessage, string(u.MessageID)}, (*acpv2.ContentChunk)(u)
	case *acpv2.SessionUpdateAgentThoughtChunk:
		return item{thought, string(u.MessageID)}, (*acpv2.ContentChunk)(u)
	default:
		return item{}, nil
	}
}

// plainText returns the text of a chunk that has nothing else, which can be joined with others.
func plainText(c *acpv2.ContentChunk) (string, bool) {
	if c == nil || c.Meta != nil {
		return "", false
	}
	text, ok := c.Content.Variant.(*acpv2.ContentBlockText)
	if !ok || text.Meta != nil || !text.Annotations.IsZero() {
		return "", false
	}
	return text.Text, true
}

// add stores an update, or keeps it pending, if it is about more than the moment.
func (r *recorder) add(ctx context.Context, update acpv2.SessionUpdate) error {
	switch update.Variant.(type) {
	case *acpv2.SessionUpdateStateUpdate, *acpv2.SessionUpdateAvailableCommandsUpdate, *acpv2.SessionUpdateConfigOptionUpdate,
		*acpv2.SessionUpdateSessionInfoUpdate, *acpv2.SessionUpdateUsageUpdate, *acpv2.SessionUpdateNotice:
		return nil
	default: // stored
	}
	of, chunk := messageChunk(update)
	output, _ := update.Variant.(*acpv2.SessionUpdateTerminalOutputChunk)
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
		r.waiting = append(r.waiting, acpv2.SessionUpdate{Variant: &own})
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
	c := acpv2.ContentChunk{MessageID: acpv2.MessageID(r.kind.id), Content: acpv2.TextBlock(string(r.text))}
	var update acpv2.SessionUpdate
	switch r.kind.kind {
	case userMessage:
		update = acpv2.NewSessionUpdateUserMessageChunk(c)
	case agentMessage:
		update = acpv2.NewSessionUpdateAgentMessageChunk(c)
	default:
		update = acpv2.NewSessionUpdateAgentThoughtChunk(c)
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
	statuses map[string]acpv2.CompactionStatus
}

func newHistory() *history {
	return &history{whole: map[item]bool{}, open: map[item]int{}, statuses: map[string]acpv2.CompactionStatus{}}
}

// ahead records the next update, and returns the updates that must be shown before it: the client may already have the
// item that a chunk is added to, and would then have the chunk twice.
func (h *history) ahead(update acpv2.SessionUpdate) []acpv2.SessionUpdate {
	none := acpv2.Some([]acpv2.ContentBlock{})
	switch u := update.Variant.(type) {
	case *acpv2.SessionUpdateUserMessage:
		h.replaced(item{userMessage, string(u.MessageID)}, !u.Content.IsZero())
	case *acpv2.SessionUpdateAgentMessage:
		h.replaced(item{agentMessage, string(u.MessageID)}, !u.Content.IsZero())
	case *acpv2.SessionUpdateAgentThought:
		h.replaced(item{thought, string(u.MessageID)}, !u.Content.IsZero())
	case *acpv2.SessionUpdateUserMessageChunk:
		return h.emptied(item{userMessage, string(u.MessageID)},
			acpv2.NewSessionUpdateUserMessage(acpv2.UserMessage{MessageID: u.MessageID, Content: none}))
	case *acpv2.SessionUpdateAgentMessageChunk:
		return h.emptied(item{agentMessage, string(u.MessageID)},
			acpv2.NewSessionUpdateAgentMessage(acpv2.AgentMessage{MessageID: u.MessageID, Content: none}))
	case *acpv2.SessionUpdateAgentThoughtChunk:
		return h.emptied(item{thought, string(u.MessageID)},
			acpv2.NewSessionUpdateAgentThought(acpv2.AgentThought{MessageID: u.MessageID, Content: none}))
	case *acpv2.SessionUpdateToolCallUpdate:
		call := item{toolCall, string(u.ToolCallID)}
		switch status := u.Status.Value(); {
		case hasEnded(status):
			h.ended(call)
		case !u.Status.IsZero() || h.isNew(call): // which is pending
			h.goesOn(call)
		}
		h.replaced(call, !u.Content.IsZero())
	case *acpv2.SessionUpdateToolCallContentChunk:
		call := item{toolCall, string(u.ToolCallID)}
		if h.isNew(call) {
			h.goesOn(call)
		}
		return h.emptied(call, acpv2.NewSessionUpdateToolCallUpdate(acpv2.ToolCallUpdate{
			ToolCallID: u.ToolCallID, Content: acpv2.Some([]acpv2.ToolCallContent{}),
		}))
	case *acpv2.SessionUpdateTerminalUpdate:
		shown := item{terminal, string(u.TerminalID)}
		switch {
		case u.ExitStatus.Present():
			h.ended(shown)
		case !u.ExitStatus.IsZero() || h.isNew(shown):
			h.goesOn(shown)
		}
		h.replaced(shown, !u.Output.IsZero())
	case *acpv2.SessionUpdateTerminalOutputChunk:
		shown := item{terminal, string(u.TerminalID)}
		if h.isNew(shown) {
			h.goesOn(shown)
		}
		return h.emptied(shown, acpv2.NewSessionUpdateTerminalUpdate(acpv2.TerminalUpdate{
			TerminalID: u.TerminalID, Output: acpv2.Some(acpv2.TerminalOutput{}),
		}))
	case *acpv2.SessionUpdateCompactionUpdate:
		of := item{compaction, string(u.CompactionID)}
		switch u.Status {
		case acpv2.CompactionStatusCompleted, acpv2.CompactionStatusFailed, acpv2.CompactionStatusCancelled:
			h.ended(of)
		default:
			h.goesOn(of)
		}
		h.replaced(of, !u.Summary.IsZero())
		h.statuses[of.id] = u.Status
	case *acpv2.SessionUpdateCompactionSummaryChunk:
		of := item{compaction, string(u.CompactionID)}
		if h.isNew(of) {
			h.goesOn(of)
			h.statuses[of.id] = acpv2.CompactionStatusInProgress
		}
		return h.emptied(of, acpv2.NewSessionUpdateCompactionUpdate(acpv2.CompactionUpdate{
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
func (h *history) emptied(i item, update acpv2.SessionUpdate) []acpv2.SessionUpdate {
	if h.whole[i] {
		return nil
	}
	h.whole[i] = true
	return []acpv2.SessionUpdate{update}
}

// goesOn records an item that has not ended.
func (h *history) goesOn(i item) {
	if _, ok := h.open[i]; !ok {
		h.open[i] = len(h.whole)
	}
}

func (h *history) ended(i item) { delete(h.open, i) }

// ends returns updates which show that nothing is in progress any more.
func (h *history) ends() (updates []acpv2.SessionUpdate) {
	items := slices.SortedFunc(maps.Keys(h.open), func(a, b item) int {
		return cmp.Or(h.open[a]-h.open[b], cmp.Compare(a.kind, b.kind), strings.Compare(a.id, b.id))
	})
	for _, i := range items {
		switch i.kind {
		case toolCall:
			updates = append(updates, acpv2.UpdateToolCall(acpv2.ToolCallID(i.id), acpv2.WithStatus(acpv2.ToolCallStatusFailed)))
		case terminal:
			updates = append(updates, acpv2.NewSessionUpdateTerminalUpdate(acpv2.TerminalUpdate{
				TerminalID: acpv2.TerminalID(i.id), ExitStatus: acpv2.Some(acpv2.TerminalExitStatus{}),
			}))
		case compaction:
			updates = append(updates, acpv2.NewSessionUpdateCompactionUpdate(acpv2.CompactionUpdate{
				CompactionID: acpv2.CompactionID(i.id), Status: acpv2.CompactionStatusFailed,
			}))
		}
	}
	return updates
}
