package stress

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/tier"
)

// A thousand turns of one connection at a time: each is answered once, its updates arrive in order and before the
// answer, and each question is asked after the updates that were sent before it.
func TestThousandSessions(t *testing.T) {
	const updates, asks = 20, 2
	sessions := tier.Pick(50, 200, 1000, 1000)
	books := &books{wrong: t.Errorf}
	var handled sync.Map // session to *atomic.Int32
	of := func(id acp.SessionID) *atomic.Int32 {
		n, _ := handled.LoadOrStore(id, new(atomic.Int32))
		return n.(*atomic.Int32)
	}
	var asked meeting
	agent := start(t, "agent", acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
			if want, got := of(n.SessionID).Add(1)-1, numberOf(&n.Update); got != int(want) {
				t.Errorf("%s: update %d arrived instead of %d", n.SessionID, got, want)
			}
			return nil
		},
		RequestPermission: func(ctx context.Context, _ *acp.ClientSession, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			if got := of(req.SessionID).Load(); fmt.Sprint(got) != string(req.ToolCall.ToolCallID) {
				t.Errorf("%s: asked after %d updates, want %s", req.SessionID, got, req.ToolCall.ToolCallID)
			}
			if err := asked.wait(ctx, sessions); err != nil { // all at once
				return nil, err
			}
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected("yes")}, nil
		},
	}, acp.ConnOptions{Hooks: books.hooks()}, 0)
	memory := watchMemory(agent)

	begin := time.Now()
	p := plan{Together: sessions, Updates: updates, Size: 100, AskEvery: updates / asks}
	errs := make(chan error, sessions)
	for range sessions {
		go func() {
			errs <- func() error {
				session, err := agent.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/home/ada"})
				if err != nil {
					return err
				}
				if _, err = session.Prompt(t.Context(), p.block()); err != nil {
					return err
				}
				if n := of(session.ID()).Load(); n != updates {
					return fmt.Errorf("%s: the answer came after %d of %d updates", session.ID(), n, updates)
				}
				return nil
			}()
		}()
	}
	for range sessions {
		if err := receive(t, "a turn", errs); err != nil {
			t.Error(err)
		}
	}
	took := time.Since(begin)
	sent, received := books.flows()
	if sent.Open != 0 || received.Open != 0 || sent.Requests != 1+2*sessions || received.Requests != asks*sessions {
		t.Errorf("requests and answers sent: %d and %d, received: %d and %d", sent.Requests, sent.Answers, received.Requests, received.Answers)
	}
	cells := memory.cells(t, 64<<20, 64<<20)
	newTable(t, "sessions with a turn at a time", "updates", "questions at a time", "all answered once in", "peak of the client", "peak of the agent").
		row(append([]string{strconv.Itoa(sessions), strconv.Itoa(sessions * updates), strconv.Itoa(sessions), took.Round(time.Millisecond).String()}, cells...)...)
}

// How much more memory a process may take for a byte of a message that it sends or receives: buffers that
// double, the value, and the garbage collector's share.
const messageFactor = 10

// A message of exactly the limit passes in either direction; one more byte is refused, and nothing else changes (rule
// 10).
func TestMessageLimit(t *testing.T) {
	limit := *loadMessage
	var text, sent, received atomic.Int64 // the length of the last update's text, and of the longest lines
	longest := func(n *atomic.Int64, line []byte) { n.Store(max(n.Load(), int64(len(line)))) }
	invalid := make(chan error, 1)
	agent := start(t, strconv.Itoa(limit), acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
			s := n.Update.Variant.(*acp.SessionUpdateAgentMessageChunk).Content.Text()
			text.Store(int64(len(s)))
			return nil
		},
	}, acp.ConnOptions{Hooks: acp.Hooks{
		Message: func(out bool, line []byte) {
			if out {
				longest(&sent, line)
			} else {
				longest(&received, line)
			}
		},
		Invalid: func(_ []byte, reason error) { invalid <- reason },
	}}, limit)
	session := newSession(t, agent.ClientConn)
	// exchange sends a prompt with a text of the given length, which asks for an update with a text of the given
	// length.
	exchange := func(prompt, update int) error {
		sent.Store(0)
		received.Store(0)
		ask := plan{Updates: 1, Size: update}.block()
		_, err := session.Prompt(bounded(t, 0), ask, acp.TextBlock(strings.Repeat("x", prompt)))
		return err
	}
	const small = 1000
	if err := exchange(small, small); err != nil {
		t.Fatal(err)
	}
	aroundPrompt, aroundUpdate := int(sent.Load())-small, int(received.Load())-small
	memory := watchMemory(agent)
	tab := newTable(t, "limit", "message", "result", "time", "peak of the client", "peak of the agent")
	for _, c := range []struct {
		name           string
		prompt, update int // the lengths of their lines
		err            error
	}{
		{"prompt as long", limit, small, nil},
		{"prompt one byte longer", limit + 1, small, acp.ErrInvalidRequest},
		{"update as long", small, limit, nil},
		{"update one byte longer", small, limit + 1, nil},
		{"both short", small, small, nil},
	} {
		result := "it passed"
		text.Store(0)
		begin := time.Now()
		// A larger update needs more digits in the plan, which is in the prompt.
		digits := len(strconv.Itoa(c.update-aroundUpdate)) - len(strconv.Itoa(small))
		if err := exchange(c.prompt-aroundPrompt-digits, c.update-aroundUpdate); !errors.Is(err, c.err) {
			t.Errorf("%s: %v", c.name, err)
		}
		took := time.Since(begin)
		want := c.update - aroundUpdate
		if c.err != nil {
			result, want = c.err.Error(), 0
		}
		if c.update > limit {
			want = 0
			tooLong, ok := errors.AsType[*rpc.TooLongError](receive(t, "the refusal", invalid))
			if !ok || tooLong.Limit != limit {
				t.Errorf("%s: refused with %v", c.name, tooLong)
			}
			result = tooLong.Error()
		}
		if got := int(text.Load()); got != want || int(sent.Load()) != c.prompt {
			t.Errorf("%s: the text has %d bytes, want %d; the prompt's line %d, want %d", c.name, got, want, sent.Load(), c.prompt)
		}
		tab.row(append([]string{mib(limit), c.name, result, took.Round(time.Millisecond).String()},
			memory.cells(t, messageFactor*limit+smallGrowth, messageFactor*limit+smallGrowth)...)...)
	}
}
