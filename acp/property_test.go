// The properties of cancellation in the protocol's own terms, over pipes of the operating system. Package rpc has those
// of order.

package acp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// cancels is how many prompts are cancelled at once.
func cancels() int { return tier.Pick(120, 300, 2000, 100_000) }

// filePipes returns the ends of a connection over pipes of the operating system.
func filePipes(t *testing.T) (r1, r2, w1, w2 *os.File) {
	t.Helper()
	r1, w1, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r2, w2, err = os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r1, r2, w1, w2
}

// untilCancelled is an agent's prompt that works until it is cancelled, and fails then.
func untilCancelled(ctx context.Context, _ *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func startAgent(t *testing.T, transport acp.Transport, prompt func(
	context.Context, *acp.AgentSession, *acp.PromptRequest,
) (*acp.PromptResponse, error)) *acp.AgentConn {
	t.Helper()
	agent := must.Get(acp.StartAgent(t.Context(), transport, acp.AgentHandlers{NewSession: newSession, Prompt: prompt}, nil))(t)
	t.Cleanup(func() {
		if err := agent.Close(); err != nil {
			t.Error(err)
		}
	})
	return agent
}

// PRM-11, PRM-12: a cancellation that stands right behind its prompt, in the same write, is never lost,
// and each prompt is answered once.
func TestCancelBehindPrompt(t *testing.T) {
	const sessions = 8 // at a time
	r1, r2, w1, w2 := filePipes(t)
	agent := startAgent(t, conformance.Tap(t, conformance.Agent, rpc.IO(r1, w2, 0), sentBy(conformance.Agent)), untilCancelled)
	defer r2.Close()

	round, read := make(chan struct{}, 1), make(chan error, 1)
	seen := map[string]int{}
	go func() {
		for in := bufio.NewReader(r2); ; {
			line, err := in.ReadString('\n')
			if errors.Is(err, io.EOF) {
				read <- nil
				return
			}
			var m struct {
				ID     json.RawMessage
				Result struct{ StopReason acp.StopReason }
			}
			if err == nil {
				err = json.Unmarshal([]byte(line), &m)
			}
			id := string(m.ID)
			if err == nil && m.Result.StopReason != acp.StopReasonCancelled && id != `"i"` {
				err = fmt.Errorf("got %s", line)
			}
			if err != nil {
				read <- err
				return
			}
			if id == `"i"` {
				continue
			}
			if seen[id]++; seen[id] == 1 && len(seen)%sessions == 0 {
				round <- struct{}{}
			}
		}
	}()

	write := func(lines ...string) {
		if _, err := io.WriteString(w1, strings.Join(lines, "\n")+"\n"); err != nil {
			t.Error(err)
		}
	}
	write(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":1}}`)
	for i := 0; i < cancels(); i += sessions {
		var lines []string
		for j := range sessions {
			session := fmt.Sprint("s", j)
			lines = append(lines, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":"x"}]}}`, i+j, session),
				fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, session))
		}
		write(lines...)
		select {
		case <-round:
		case err := <-read:
			t.Fatalf("after %d answers: %v", len(seen), err)
		case <-time.After(time.Minute):
			t.Fatalf("prompts %d to %d are not all answered", i, i+sessions-1)
		}
	}
	w1.Close()
	must.Do(t, errors.Join(<-read, agent.Wait()))
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s was answered %d times", id, n)
		}
	}
	t.Logf("%d prompts, each answered as cancelled once", len(seen))
}

// PRM-9, TOL-4: a user's answer and a cancellation at the same time. Behind session/cancel no question is
// answered but as cancelled, and none is asked about a tool call that was not shown.
func TestPermissionWhileCancelled(t *testing.T) {
	turns := tier.Pick(20, 60, 150, 3000)
	r1, r2, w1, w2 := filePipes(t)
	calls := 0
	agent := startAgent(t, conformance.Tap(t, conformance.Agent, rpc.IO(r1, w2, 0), nil), func(
		ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest,
	) (*acp.PromptResponse, error) {
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
	})

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
	conn, err := acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, rpc.IO(r2, w1, 0), nil), acp.ClientHandlers{
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
	}, &acp.ClientOptions{Conn: acp.ConnOptions{Hooks: acp.Hooks{Message: record}}})
	if err != nil {
		t.Fatal(err)
	}
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
