// The properties of cancellation in the protocol's own terms. Package rpc has those of order.

package acp_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// PRM-11, PRM-12: a cancellation that stands right behind its prompt, in the same write, is never lost,
// and each prompt is answered once.
func TestCancelBehindPrompt(t *testing.T) {
	const sessions, rounds = 8, 40
	for range tier.Pick(1, 1, 6, 300) {
		synctest.Test(t, func(t *testing.T) {
			tr := tryAgent(t, true)
			for i := range rounds {
				var lines strings.Builder
				for session := range sessions {
					fmt.Fprintf(&lines, `{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":"%d","prompt":[{"type":"text","text":"x"}]}}`+"\n"+
						`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"%[2]d"}}`+"\n", 1000+i*sessions+session, session)
				}
				tr.write(lines.String(), nil)
				synctest.Wait()
			}
			for i := range rounds * sessions {
				a := tr.peer.Answers(fmt.Sprint(1000 + i))
				if len(a) != 1 || !strings.Contains(string(a[0].Result), `"stopReason":"cancelled"`) {
					t.Fatalf("prompt %d: %v", i, a)
				}
			}
			tr.finish(true)
		})
	}
}

// PRM-9, TOL-4: a user's answer and a cancellation at the same time. Behind session/cancel no question is
// answered but as cancelled, and none is asked about a tool call that was not shown.
func TestPermissionWhileCancelled(t *testing.T) {
	turns := tier.Pick(20, 60, 150, 3000)
	a, c := osPipes(t)
	calls := 0
	work := func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
		for range 20 {
			calls++
			call := acp.ToolCallID(fmt.Sprint("c", calls))
			if err := s.Update(ctx, acp.NewSessionUpdateToolCall(acp.ToolCall{ToolCallID: call, Title: "x"})); err != nil {
				return nil, err
			}
			if _, err := s.RequestPermission(ctx, acp.ToolCallUpdate{ToolCallID: call}, options("Yes", "No")...); err != nil {
				return nil, err
			}
		}
		return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
	}
	agent := must.Get(acp.StartAgent(t.Context(), conformance.Tap(t, conformance.Agent, a, nil), complete(acp.AgentHandlers{Prompt: work}), nil))(t)

	var sent struct {
		sync.Mutex
		cancelled               bool // in this turn
		inTime, moot, afterward int  // answers
	}
	record := func(out bool, message []byte) {
		if !out {
			return
		}
		sent.Lock()
		defer sent.Unlock()
		switch text := string(message); {
		case strings.Contains(text, `"method":"session/prompt"`):
			sent.cancelled = false
		case strings.Contains(text, `"method":"session/cancel"`):
			sent.cancelled = true
		case strings.Contains(text, `"outcome":"cancelled"`):
			sent.moot++
		case strings.Contains(text, `"outcome":"selected"`) && sent.cancelled:
			sent.afterward++
		case strings.Contains(text, `"outcome":"selected"`):
			sent.inTime++
		}
	}
	var shown sync.Map // the tool calls
	var turn struct {
		sync.Mutex
		asked, last int // its questions, and the one at which it is cancelled
		cancel      context.CancelFunc
	}
	conn := must.Get(acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, c, nil), acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
			shown.Store(n.Update.Variant.(*acp.SessionUpdateToolCall).ToolCallID, true)
			return nil
		},
		RequestPermission: func(
			ctx context.Context, _ *acp.ClientSession, req *acp.RequestPermissionRequest,
		) (*acp.RequestPermissionResponse, error) {
			if _, ok := shown.Load(req.ToolCall.ToolCallID); !ok {
				t.Errorf("asked about %s, which was not shown", req.ToolCall.ToolCallID)
			}
			turn.Lock()
			turn.asked++
			now, last, cancel := turn.asked == turn.last, turn.last, turn.cancel
			turn.Unlock()
			if now {
				go cancel()
				if last%2 == 0 { // a user who looks up
					<-ctx.Done()
				}
				time.Sleep(rand.N(200 * time.Microsecond)) // and one who does not
			}
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(req.Options[0].OptionID)}, nil
		},
	}, &acp.ClientOptions{Conn: acp.ConnOptions{Hooks: acp.Hooks{Message: record}}}))(t)
	session := start(t, conn)
	reasons := map[acp.StopReason]int{}
	for range turns {
		ctx, cancel := context.WithCancel(t.Context())
		turn.Lock()
		turn.asked, turn.last, turn.cancel = 0, 2+rand.N(19), cancel
		turn.Unlock()
		res, err := session.Prompt(ctx, acp.TextBlock("x"))
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		reasons[res.StopReason]++
	}
	must.Do(t, errors.Join(conn.Close(), agent.Wait()))
	t.Logf("turns: %v; questions: %d answered in time, %d as cancelled", reasons, sent.inTime, sent.moot)
	if sent.afterward != 0 {
		t.Errorf("%d questions were answered by the user after the cancellation", sent.afterward)
	}
	if sent.inTime == 0 || sent.moot == 0 {
		t.Error("nothing happened at the same time")
	}
}
