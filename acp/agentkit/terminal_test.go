package agentkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
)

var terminalID = regexp.MustCompile(`term_[A-Z0-9]+`)

// A command of the agent's is a terminal for clients that show those, and text for others. The history has its output as text.
func TestTerminal(t *testing.T) {
	const begun = `{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"in_progress","content":[`
	update := func(members string) string {
		return `{"sessionUpdate":"tool_call_update","toolCallId":"c",` + members + `}`
	}
	text := func(text string) string { return `{"type":"content","content":{"type":"text","text":"` + text + `"}}` }
	const fence = "```"
	first := text(fence + `\n$ go test\none\né�.\n[exit status 3]\n` + fence)
	for name, test := range map[string]struct {
		shows        bool
		want, stored []string
	}{
		"terminals": {true, []string{
			update(`"_meta":{"terminal_info":{"command":"go test","cwd":"/w","terminal_id":"T"}}`),
			begun + `{"type":"terminal","terminalId":"T"}]}`,
			update(`"_meta":{"terminal_output":{"data":"one\n","terminal_id":"T"}}`),
			update(`"_meta":{"terminal_output":{"data":"é","terminal_id":"T"}}`),
			update(`"_meta":{"terminal_output":{"data":"�.","terminal_id":"T"}}`),
			update(`"_meta":{"terminal_exit":{"exit_code":3,"signal":null,"terminal_id":"T"}}`),
			update(`"_meta":{"terminal_info":{"command":"sleep","cwd":"/w","terminal_id":"T"}}`),
			update(`"content":[{"type":"terminal","terminalId":"T"},{"type":"terminal","terminalId":"T"}]`),
			update(`"_meta":{"terminal_exit":{"exit_code":null,"signal":null,"terminal_id":"T"}}`),
			update(`"status":"completed"`),
		}, []string{text(fence + `\none\né�.\n[exit status 3]\n` + fence), text(fence + `\n\n` + fence)}},
		"text": {false, []string{
			begun + text(fence+`\n$ go test\n`+fence) + `]}`,
			update(`"content":[` + text(fence+`\n$ go test\none\n`+fence) + `]`),
			update(`"content":[` + text(fence+`\n$ go test\none\né\n`+fence) + `]`),
			update(`"content":[` + text(fence+`\n$ go test\none\né�.\n`+fence) + `]`),
			update(`"content":[` + first + `]`),
			update(`"content":[` + first + `,` + text(fence+`\n$ sleep\n`+fence) + `]`),
			update(`"status":"completed"`),
		}, []string{first, text(fence + `\n$ sleep\n` + fence)}},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var heard []string
			var last acp.ToolCall
			theirs, ours := acp.Pipe()
			sessions := agentkit.NewSessions(agentkit.Config[state]{Store: open(t, t.TempDir()), Prompt: func(
				ctx context.Context, turn *agentkit.Turn[state], _ *acp.PromptRequest,
			) (*acp.PromptResponse, error) {
				call, err := turn.StartToolCall(ctx, "Test", agentkit.WithToolCallID("c"))
				if err != nil {
					return nil, err
				}
				terminal, err := call.StartTerminal("go test", "/w")
				if err != nil {
					return nil, err
				}
				for _, p := range []string{"one\n", "\xc3", "\xa9", "\xff."} {
					if n, err := terminal.Write([]byte(p)); n != len(p) || err != nil {
						t.Errorf("writing %q: %d, %v", p, n, err)
					}
				}
				if err := terminal.Exited(3); err != nil {
					t.Error(err)
				}
				if _, err := terminal.Write([]byte("x")); !errors.Is(err, agentkit.ErrEnded) || terminal.Close() != nil {
					t.Errorf("after the end: %v", err)
				}
				open, err := call.StartTerminal("sleep", "/w")
				if err != nil {
					return nil, err
				}
				if err := call.Done(); err != nil { // which ends the terminal
					t.Error(err)
				}
				if _, err := open.Write([]byte("x")); !errors.Is(err, agentkit.ErrEnded) {
					t.Errorf("after the end of the call: %v", err)
				}
				return nil, nil
			}})
			agent := must.Get(acp.StartAgent(t.Context(), theirs, sessions.Handlers(), sessions.Options(nil)))(t)
			conn, err := acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, ours, nil), acp.ClientHandlers{
				SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
					mu.Lock()
					defer mu.Unlock()
					switch u := n.Update.Variant.(type) {
					case *acp.SessionUpdateToolCall:
						last = acp.ToolCall(*u)
					case *acp.SessionUpdateToolCallUpdate:
						last.Apply(acp.ToolCallUpdate(*u))
						line, err := json.Marshal(n.Update)
						heard = append(heard, terminalID.ReplaceAllString(string(line), "T"))
						return err
					}
					return nil
				},
			}, &acp.ClientOptions{Initialize: func(req *acp.InitializeRequest) {
				if test.shows {
					_ = req.ClientCapabilities.Meta.Set("terminal_output", true)
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			s := must.Get(conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/w"}))(t)
			must.Get(s.Prompt(t.Context(), acp.TextBlock("go")))(t)
			mu.Lock()
			if !reflect.DeepEqual(heard, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(heard, "\n"), strings.Join(test.want, "\n"))
			}
			mu.Unlock()
			must.Get(conn.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: "/w"}))(t)
			stored, err := json.Marshal(last.Content)
			if want := "[" + strings.Join(test.stored, ",") + "]"; err != nil || string(stored) != want {
				t.Errorf("stored %s, %v, want %s", stored, err, want)
			}
			if err := errors.Join(conn.Close(), agent.Wait()); err != nil {
				t.Error(err)
			}
			sessions.Close()
		})
	}
}

// Of much output, the text has the last 64 KiB, and it is not sent again for each line.
func TestTerminalOutputIsBounded(t *testing.T) {
	sessions := agentkit.NewSessions(agentkit.Config[state]{Prompt: func(
		ctx context.Context, turn *agentkit.Turn[state], _ *acp.PromptRequest,
	) (*acp.PromptResponse, error) {
		return nil, turn.Tool(ctx, acp.ToolKindExecute, "Print", func(call *agentkit.ToolCall) error {
			terminal, err := call.StartTerminal("print", "/w")
			if err != nil {
				return err
			}
			for range 10_000 {
				if _, err := terminal.Write([]byte("0123456789abcdef\n")); err != nil {
					return err
				}
			}
			_, err = terminal.Write([]byte("last"))
			if err = errors.Join(err, terminal.Close()); err != nil {
				return err
			}
			text := call.State().Content[0].Text()
			if len(text) > 65<<10 || !strings.HasPrefix(text, "```\n(Earlier output is not shown.)\n") || !strings.HasSuffix(text, "\nlast\n```") {
				t.Errorf("%d bytes of text, from %.60q", len(text), text)
			}
			if terminal, err = call.StartTerminal("cut", "/w"); err != nil {
				return err
			}
			if _, err = terminal.Write([]byte("\xc3")); errors.Join(err, terminal.Exited(0)) != nil {
				return err
			}
			if text := call.State().Content[1].Text(); text != "```\n$ cut\n\uFFFD\n```" {
				t.Errorf("output that ends within a character: %q", text)
			}
			return nil
		})
	}})
	c := connect(t, sessions, nil, nil)
	ask(t, begin(t, c, "/w"), "go")
	if n := len(c.heard()); n < 100 || n > 400 {
		t.Errorf("%d updates", n)
	}
}
