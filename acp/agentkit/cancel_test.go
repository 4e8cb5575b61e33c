package agentkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
)

// A client with the extension cancels one tool call, or the command of a terminal; the turn continues. One without it
// gets nothing of it, and cannot.
func TestCancellable(t *testing.T) {
	update := func(members string) string {
		return `{"sessionUpdate":"tool_call_update","toolCallId":"c",` + members + `}`
	}
	const running = `"status":"in_progress","content":[{"type":"terminal","terminalId":"T"}]`
	offer, info := update(`"_meta":{"tool_call_cancel":{"supported":true}}`), update(`"_meta":{"terminal_info":{"command":"sleep","cwd":"/w","terminal_id":"T"}}`)
	may, exit := update(`"_meta":{"terminal_info":{"cancel":true,"terminal_id":"T"}}`), update(`"_meta":{"terminal_exit":{"exit_code":null,"signal":null,"terminal_id":"T"}}`)
	failed := func(text, meta string) string {
		return update(`"status":"failed","content":[{"type":"terminal","terminalId":"T"},{"type":"content","content":{"type":"text","text":"` + text + `"}}]` + meta)
	}
	marked, shown := failed("cancelled", `,"_meta":{"k":1,"tool_call_cancel":{"cancelled":true}}`), failed("The tool failed.", "")
	for _, test := range []struct {
		name     string
		has      any
		cancel   string // terminal, call or turn
		done     bool   // the tool finishes nevertheless
		terminal error  // the cause of its context
		call     error
		want     []string
	}{
		{"call", true, "call", false, agentkit.ErrCallCancelled, agentkit.ErrCallCancelled, []string{offer, info, update(running), may, exit, marked}},
		{"terminal", true, "terminal", true, agentkit.ErrCallCancelled, nil, []string{offer, info, update(running), may, exit, update(`"status":"completed"`)}},
		{"finished first", true, "call", true, agentkit.ErrCallCancelled, agentkit.ErrCallCancelled,
			[]string{offer, info, update(running), may, exit, update(`"status":"completed"`)}},
		{"turn", true, "turn", false, acp.ErrTurnCancelled, acp.ErrTurnCancelled, []string{offer, info, update(running), may, exit, shown}},
		{"without the extension", "yes", "turn", false, acp.ErrTurnCancelled, acp.ErrTurnCancelled, []string{info, update(running), exit, shown}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var mu sync.Mutex
			var heard []string
			var shownID string
			var last acp.ToolCall
			waits := make(chan struct{})
			sessions := agentkit.NewSessions(agentkit.Config[state]{Store: open(t, t.TempDir()), Prompt: func(
				ctx context.Context, turn *agentkit.Turn[state], _ *acp.PromptRequest,
			) (*acp.PromptResponse, error) {
				call, err1 := turn.StartToolCall(ctx, "Wait", agentkit.WithToolCallID("c"), func(u *acp.ToolCallUpdate) {
					u.Meta = acp.Meta{"k": json.RawMessage("1")}
				})
				work, err2 := call.Cancellable()
				again, err3 := call.Cancellable()
				terminal, err4 := call.StartTerminal("sleep", "/w")
				command, err5 := terminal.Cancellable()
				if err := errors.Join(err1, err2, err3, err4, err5); err != nil || again != work {
					return nil, errors.Join(err, errors.New("not the same context"))
				}
				close(waits)
				<-command.Done()
				if err := terminal.Close(); err != nil {
					t.Error(err)
				}
				if got := context.Cause(command); !errors.Is(got, test.terminal) {
					t.Errorf("the terminal: %v, want %v", got, test.terminal)
				}
				if got := context.Cause(work); !errors.Is(got, test.call) {
					t.Errorf("the call: %v, want %v", got, test.call)
				}
				var failed error
				if !test.done {
					failed = errors.New("signal: killed")
				}
				if err := call.End(failed); (err != nil) != (test.cancel == "turn") {
					t.Errorf("the end of the call: %v", err)
				}
				if work.Err() == nil {
					t.Error("the call has ended, and its context has not")
				}
				if _, err := call.Cancellable(); ctx.Err() == nil && !errors.Is(err, agentkit.ErrEnded) {
					t.Errorf("after the end of the call: %v", err)
				}
				return nil, ctx.Err()
			}})
			theirs, ours := acp.Pipe()
			agent := must.Get(acp.StartAgent(t.Context(), theirs, sessions.Handlers(), sessions.Options(nil)))(t)
			conn, err := acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, ours, nil), acp.ClientHandlers{
				SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
					if call, ok := n.Update.Variant.(*acp.SessionUpdateToolCall); ok {
						last = acp.ToolCall(*call)
					}
					u, ok := n.Update.Variant.(*acp.SessionUpdateToolCallUpdate)
					if !ok {
						return nil
					}
					last.Apply(acp.ToolCallUpdate(*u))
					mu.Lock()
					defer mu.Unlock()
					line, err := json.Marshal(n.Update)
					heard = append(heard, terminalID.ReplaceAllString(string(line), "T"))
					if id := terminalID.FindString(string(line)); id != "" {
						shownID = id
					}
					return err
				},
			}, &acp.ClientOptions{Initialize: func(req *acp.InitializeRequest) {
				_ = req.ClientCapabilities.Meta.Set("terminal_output", true)
				_ = req.ClientCapabilities.Meta.Set("tool_call_cancel", test.has)
			}})
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := conn.Initialized().Meta["tool_call_cancel"]; ok != (test.has == true) {
				t.Errorf("the answer to initialize has %v", conn.Initialized().Meta)
			}
			s := must.Get(conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/w"}))(t)
			cancel := func(what string, session acp.SessionID, id string) error {
				_, err := rpc.Call[struct{}](t.Context(), conn.RPC(), "_"+what+"/cancel", map[string]any{
					"sessionId": session, map[string]string{"tool_call": "toolCallId", "terminal": "terminalId"}[what]: id,
				})
				return err
			}
			terminal := func() string {
				mu.Lock()
				defer mu.Unlock()
				return shownID
			}
			ended := make(chan error)
			go func() {
				_, err := s.Prompt(t.Context(), acp.TextBlock("go"))
				ended <- err
			}()
			<-waits
			wantError(t, "an unknown session", cancel("tool_call", "nobody", "c"), acp.ErrResourceNotFound)
			wantError(t, "an unknown call", cancel("tool_call", s.ID(), "d"), acp.ErrInvalidParams)
			wantError(t, "a call as a terminal", cancel("terminal", s.ID(), "c"), acp.ErrInvalidParams)
			switch test.cancel {
			case "call":
				err = cancel("tool_call", s.ID(), "c")
			case "terminal":
				err = cancel("terminal", s.ID(), terminal())
			case "turn":
				if test.has != true {
					wantError(t, "without the extension", cancel("tool_call", s.ID(), "c"), acp.ErrInvalidParams)
				}
				err = s.Cancel(t.Context())
			}
			if err := errors.Join(err, <-ended); err != nil {
				t.Error(err)
			}
			wantError(t, "a call that has ended", cancel("tool_call", s.ID(), "c"), acp.ErrInvalidParams)
			wantError(t, "a terminal that has ended", cancel("terminal", s.ID(), terminal()), acp.ErrInvalidParams)
			mu.Lock()
			if !reflect.DeepEqual(heard, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(heard, "\n"), strings.Join(test.want, "\n"))
			}
			mu.Unlock()
			must.Get(conn.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: "/w"}))(t)
			if _, ok := last.Meta["tool_call_cancel"]; ok != (test.want[len(test.want)-1] == marked) || last.Meta["k"] == nil {
				t.Errorf("the history has %v", last.Meta)
			}
			if err := errors.Join(conn.Close(), agent.Wait()); err != nil {
				t.Error(err)
			}
			sessions.Close()
		})
	}
}
