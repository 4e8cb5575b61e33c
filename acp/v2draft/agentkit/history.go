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
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/acp/v2draft"
	"github.com/acpgo/sdk/internal/turns"
)

const (
	waitingBytes = 64 << 10    // how much waits to be stored
	waitingTime  = time.Second // how long it waits
	updateBytes  = 64          // about what an update takes beside its text
)

// recorder writes the updates of a session into the store. Its owner holds out.
type recorder struct {
	store  Store
	id     acp.SessionID
	failed func(error) // is told what the timer's function returns

	waiting []v2draft.SessionUpdate // chunks
	kind    item                    // of the text that waits behind them; the zero value is none
	text    []byte
	size    int // of both
	due     turns.Timer
}

// kind says what an id is of.
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

// messageChunk takes a chunk of a message apart.
func messageChunk(update v2draft.SessionUpdate) (item, *v2draft.ContentChunk) {
	switch u := update.Variant.(type) {
	case *v2draft.SessionUpdateUserMessageChunk:
		return item{userMessage, string(u.MessageID)}, (*v2draft.ContentChunk)(u)
	case *v2draft.SessionUpdateAgentMessageChunk:
		return item{agentMessage, string(u.MessageID)}, (*v2draft.ContentChunk)(u)
	case *v2draft.SessionUpdateAgentThoughtChunk:
		return item{thought, string(u.MessageID)}, (*v2draft.ContentChunk)(u)
	}
	return item{}, nil
}

// plainText is the text of a chunk that has nothing else, which can be joined with others.
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

// add stores an update, or has it wait, if it is about more than the moment.
func (r *recorder) add(ctx context.Context, update v2draft.SessionUpdate) error {
	switch update.Variant.(type) {
	case *v2draft.SessionUpdateStateUpdate, *v2draft.SessionUpdateAvailableCommandsUpdate, *v2draft.SessionUpdateConfigOptionUpdate,
		*v2draft.SessionUpdateSessionInfoUpdate, *v2draft.SessionUpdateUsageUpdate, *v2draft.SessionUpdateNotice:
		return nil
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
		if output == nil || output.Meta != nil { // its author may change what it holds
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

// join makes one update of the text that waits.
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

// flush stores what waits. The store does not wait for long: what was sent is stored although a turn was cancelled.
func (r *recorder) flush() error {
	r.due.Stop()
	r.join()
	if len(r.waiting) == 0 {
		return nil
	}
	err := r.store.Append(context.Background(), r.id, r.waiting...)
	if len(r.waiting) > 1 && errors.Is(err, sessionstore.ErrTooLarge) { // that is no reason to leave the others out
		err = nil
		for _, update := range r.waiting {
			err = errors.Join(err, r.store.Append(context.Background(), r.id, update))
		}
	}
	clear(r.waiting)
	r.waiting, r.size = r.waiting[:0], 0
	return err
}

// flushLater has flush called after a time, unless that was set already.
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

// history is what a client was shown of one that is replayed.
type history struct {
	whole    map[item]bool // what was shown, and whether it was replaced as a whole
	open     map[item]int  // what has not ended, in the order in which it was shown
	statuses map[string]v2draft.CompactionStatus
}

func newHistory() *history {
	return &history{whole: map[item]bool{}, open: map[item]int{}, statuses: map[string]v2draft.CompactionStatus{}}
}

// ahead takes note of the next update, and returns what must be shown ahead of it: the client may have what a chunk is
// added to already, and would have the chunk twice.
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
	}
	return nil
}

// isNew reports whether an item was not shown before.
func (h *history) isNew(i item) bool {
	_, known := h.whole[i]
	return !known
}

// replaced takes note of an item, which may have been replaced as a whole.
func (h *history) replaced(i item, whole bool) { h.whole[i] = h.whole[i] || whole }

// emptied returns what empties an item, if it was not replaced as a whole before.
func (h *history) emptied(i item, update v2draft.SessionUpdate) []v2draft.SessionUpdate {
	if h.whole[i] {
		return nil
	}
	h.whole[i] = true
	return []v2draft.SessionUpdate{update}
}

// goesOn takes note of an item that has not ended.
func (h *history) goesOn(i item) {
	if _, ok := h.open[i]; !ok {
		h.open[i] = len(h.whole)
	}
}

func (h *history) ended(i item) { delete(h.open, i) }

// ends returns what shows that nothing goes on any more.
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
