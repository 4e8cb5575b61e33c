package stress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/internal/ledger"
)

// books are the accounts of one side of a connection. Events that must never happen, such as a second answer to one
// request, are reported to wrong.
type books struct {
	wrong func(format string, args ...any) // standard error if nil

	mu       sync.Mutex
	ledger   ledger.Ledger[struct{}]
	sent     flow // without the numbers in the ledger
	received flow
	updates  map[string]int // read, by session
	invalid  int            // the number of calls to Hooks.Invalid
	calls    calls
	ending   bool          // the peer may fail calls that it cannot finish
	change   chan struct{} // closed and replaced when an answer was sent
}

// read returns the number of updates of a session that were read.
func (b *books) read(session acp.SessionID) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return int64(b.updates[string(session)])
}

// flow counts the traffic in one direction.
type flow struct {
	Messages, Bytes int
	Requests        int
	Answers         int
	Open            int // requests that have no answer
}

// calls counts how calls ended.
type calls struct {
	Answered int // with a result, or with an error of the peer's
	GivenUp  int // because their context ended
	Closed   int // because the connection ended
}

func (b *books) hooks() acp.Hooks {
	return acp.Hooks{
		Message: b.message,
		Invalid: func([]byte, error) { b.mu.Lock(); b.invalid++; b.mu.Unlock() },
		Panic:   func(method string, v any, stack []byte) { b.fault("panic in %s: %v\n%s", method, v, stack) },
	}
}

// wrongPrefix is the prefix of agents' reports.
const wrongPrefix = "wrong: "

// fault reports an event that must not happen.
func (b *books) fault(format string, args ...any) {
	if b.wrong != nil {
		b.wrong(format, args...)
		return
	}
	fmt.Fprintf(os.Stderr, wrongPrefix+format+"\n", args...)
}

// message records a message. It is called for every message.
func (b *books) message(sent bool, line []byte) {
	m, err := ledger.Read(line)
	b.mu.Lock()
	defer b.mu.Unlock()
	flow := &b.received
	if sent {
		flow = &b.sent
	}
	flow.Messages++
	flow.Bytes += len(line)
	switch {
	case err != nil: // noise
	case m.IsRequest():
		b.ledger.Request(sent, string(m.ID), struct{}{})
		if n := b.ledger.Of(sent).Get(string(m.ID)).Asked; n > 1 {
			b.fault("the id %s was used %d times", m.ID, n)
		}
	case m.IsAnswer():
		if _, asked := b.ledger.Answer(sent, string(m.ID)); !asked {
			b.fault("an answer too many to request %s", m.ID)
		}
		if sent {
			b.changed()
		}
	case m.Method == acp.MethodSessionUpdate && !sent:
		var params struct {
			SessionID string
			Update    struct{ Content struct{ Text string } }
		}
		if err := json.Unmarshal(m.Params, &params); err != nil {
			b.fault("an update: %v", err)
			return
		}
		b.update(params.SessionID, numberIn(params.Update.Content.Text))
	}
}

func (b *books) update(session string, number int) {
	if b.updates == nil {
		b.updates = map[string]int{}
	}
	if want := b.updates[session]; number != want {
		b.fault("update %d of %s was read where %d was due", number, session, want)
	}
	b.updates[session]++
}

// changed wakes settled; mu is held.
func (b *books) changed() {
	if b.change != nil {
		close(b.change)
		b.change = nil
	}
}

// settled waits until no more than n of the peer's requests are unanswered.
func (b *books) settled(ctx context.Context, n int) error {
	for {
		b.mu.Lock()
		if b.ledger.Received.Open() <= n {
			b.mu.Unlock()
			return nil
		}
		if b.change == nil {
			b.change = make(chan struct{})
		}
		change := b.change
		b.mu.Unlock()
		select {
		case <-change:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// errGivenUp is the cause of the contexts that the tests end, except by Turn.Cancel.
var errGivenUp = errors.New("given up")

// note records how a call ended. An error of a kind that callers cannot act on is wrong. It reports whether there may
// be more calls.
func (b *books) note(err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	refused, ok := errors.AsType[*acp.CallError](err)
	expected := ok && (refused.Err.Is(acp.ErrRequestCancelled) || b.ending)
	switch {
	case err == nil, expected:
		b.calls.Answered++
	case errors.Is(err, acp.ErrClosed):
		b.calls.Closed++
		return false
	case errors.Is(err, errGivenUp), errors.Is(err, context.Canceled), errors.Is(err, acp.ErrTurnCancelled), errors.Is(err, acp.ErrRequestCancelled):
		b.calls.GivenUp++
	default:
		b.fault("a call ended with %T: %v", err, err)
		return false
	}
	return true
}

// report is an agent's report on its side when nothing is in progress any more.
type report struct {
	Sent, Received flow
	Invalid        int
	Calls          calls
	Noise          int // lines that it sent that are not messages
}

func (b *books) report(f *faults) *report {
	b.mu.Lock()
	defer b.mu.Unlock()
	sent, received := b.flowsLocked()
	return &report{sent, received, b.invalid, b.calls, f.noise()}
}

// flows returns the traffic that was sent and received so far.
func (b *books) flows() (sent, received flow) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.flowsLocked()
}

func (b *books) flowsLocked() (sent, received flow) {
	sent, received = b.sent, b.received
	ours, theirs := &b.ledger.Sent, &b.ledger.Received
	sent.Requests, sent.Open, sent.Answers = ours.Asked(), ours.Open(), theirs.Answered()
	received.Requests, received.Open, received.Answers = theirs.Asked(), theirs.Open(), ours.Answered()
	return sent, received
}
