package natsacp

import (
	"slices"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/wire"
)

// item is a message of a client.
type item struct {
	line    []byte // with newline
	request bool
	id      rpc.ID // canonical, of a request, or of the one that a $/cancel_request names
	number  uint64 // among the messages that were sent
	method  string
	session string
	since   time.Time         // when it was first queued
	answer  chan wire.Message // of a request of the gateway's own
}

// queue is what a client says to one agent: what waits, what is being sent, and what is not answered. Its client's mu
// guards it.
type queue struct {
	items   []item
	size    int             // bytes in items
	sending []item          // the node may have them
	sent    uint64          // messages
	prompt  uint64          // the number of the last prompt that was sent
	urging  int             // cancellations on their way, which later prompts must not overtake
	pending map[rpc.ID]item // requests
}

func newQueue() queue { return queue{pending: map[rpc.ID]item{}} }

// add adds a message at the end, or a cancellation directly after what it cancels.
func (q *queue) add(it item) {
	if it.since.IsZero() {
		it.since = time.Now()
	}
	at := len(q.items)
	if target := q.target(it); target >= 0 {
		at = target + 1
	}
	q.items = slices.Insert(q.items, at, it)
	q.size += len(it.line)
	if it.request {
		q.pending[it.id] = it
	}
}

// target returns where the item waits that a cancellation must follow, or -1: the request that it names, or else the
// last prompt.
func (q *queue) target(cancel item) int {
	for i, it := range slices.Backward(q.items) {
		if cancel.method == wire.MethodCancelRequest && it.request && it.id == cancel.id ||
			cancel.method == acp.MethodCancel && it.method == acp.MethodPrompt {
			return i
		}
	}
	return -1
}

// take removes what is to be sent next, as long as it fits into a frame.
func (q *queue) take() (data []byte) {
	n := 0
	for _, it := range q.items {
		if n > 0 && len(data)+len(it.line) > maxPayload/2 || q.urging > 0 && it.method == acp.MethodPrompt {
			break
		}
		n++
		data = append(data, it.line...)
		if q.sent++; it.method == acp.MethodPrompt {
			q.prompt = q.sent
		}
		if it.request {
			it.number = q.sent
			q.pending[it.id] = it
		}
	}
	q.sending, q.items = q.items[:n:n], q.items[n:]
	if q.size -= len(data); len(q.items) == 0 {
		q.items = nil
	}
	return data
}

// rest returns what another agent can get: what waits, and what is being sent, if this one does not have it.
func (q *queue) rest(unsent bool) []item {
	if !unsent {
		return q.items
	}
	answered := func(it item) bool { return it.request && q.pending[it.id].line == nil }
	return append(slices.DeleteFunc(q.sending, answered), q.items...)
}
