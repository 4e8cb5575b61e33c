package natsacp

import (
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/wire"
)

// A queue sends messages in order, but a cancellation directly after what it cancels; what an agent does not have, or
// has not answered, is left for another one.
func TestQueue(t *testing.T) {
	messages := map[string]item{
		"prompt":  {method: acp.MethodPrompt, request: true, id: rpc.IntID(1)},
		"mode":    {method: acp.MethodSetSessionMode, request: true, id: rpc.IntID(2)},
		"cancel":  {method: acp.MethodCancel},
		"cancel1": {method: wire.MethodCancelRequest, id: rpc.IntID(1)},
		"cancel2": {method: wire.MethodCancelRequest, id: rpc.IntID(2)},
		"note":    {method: "_note"},
		"long":    {method: "_long"},
	}
	for _, test := range []struct {
		name, add  string
		urging     int
		sent, left string // by take, and by rest after it
		answered   int    // the id of a request
		retried    string // by rest if what was sent is unsure
	}{
		{"in order", "note prompt mode note", 0, "note prompt mode note", "", 0, "note prompt mode note"},
		{"a prompt is cancelled", "prompt note mode cancel", 0, "prompt cancel note mode", "", 0, "prompt cancel note mode"},
		{"requests are cancelled", "mode prompt note cancel2 cancel1", 0, "mode cancel2 prompt cancel1 note", "", 0,
			"mode cancel2 prompt cancel1 note"},
		{"nothing to cancel", "note cancel2 cancel", 0, "note cancel2 cancel", "", 0, "note cancel2 cancel"},
		{"a cancellation is on its way", "note prompt mode", 1, "note", "prompt mode", 0, "note prompt mode"},
		{"more than a frame", "note long note", 0, "note", "long note", 0, "note long note"},
		{"longer than a frame", "long note", 0, "long", "note", 0, "long note"},
		{"one is answered", "mode prompt", 0, "mode prompt", "", 2, "prompt"},
	} {
		t.Run(test.name, func(t *testing.T) {
			q := newQueue()
			q.urging = test.urging
			for name := range strings.FieldsSeq(test.add) {
				it := messages[name]
				if it.line = []byte(name + " "); name == "long" {
					it.line = append(it.line, strings.Repeat(" ", maxPayload)...)
				}
				q.add(it)
			}
			words := func(text []byte) string { return strings.Join(strings.Fields(string(text)), " ") }
			names := func(items []item) (all string) {
				for _, it := range items {
					all += string(it.line)
				}
				return words([]byte(all))
			}
			if got := words(q.take()); got != test.sent {
				t.Errorf("%q is sent, want %q", got, test.sent)
			}
			if want := uint64(len(strings.Fields(test.sent))); q.sent != want || (q.size == 0) != (test.left == "") {
				t.Errorf("%d messages were sent, want %d; %d bytes are left", q.sent, want, q.size)
			}
			if it := q.pending[rpc.IntID(1)]; it.number != q.prompt {
				t.Errorf("the prompt has the number %d, and the last prompt %d", it.number, q.prompt)
			}
			delete(q.pending, rpc.IntID(int64(test.answered)))
			if got := names(q.rest(false)); got != test.left {
				t.Errorf("%q is left, want %q", got, test.left)
			}
			if got := names(q.rest(true)); got != test.retried {
				t.Errorf("%q is sent again, want %q", got, test.retried)
			}
		})
	}
}
