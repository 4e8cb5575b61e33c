package acp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/tier"
)

// TestWhatOthersGetWrong runs, over real processes and pipes, what other libraries of the protocol were
// seen to get wrong, and prints the table.
func TestWhatOthersGetWrong(t *testing.T) {
	rows := []struct {
		name string
		run  func(t *testing.T)
	}{
		{"updates arrive in order, all before Prompt returns", func(t *testing.T) { clientCounts(t, 500) }},
		{"burst of 5,000 updates", func(t *testing.T) { clientCounts(t, 5000) }},
		{"call the peer from inside the update handler", clientCallsBack},
		{"cancel reaches a blocked prompt, with 16 prompts", cancelReachesPrompts},
		{"cancel sent right after prompt is not lost", cancelAtOnce},
		{"request_permission nested in prompt", nestedPermission},
		{"16 blocked client requests, then fs/read", blockedRequests},
		{"handler panics or fails", handlerPanics},
		{"$/cancel_request received", cancelRequestReceived},
		{"malformed JSON line", func(t *testing.T) { refused(t, `{"jsonrpc":"2.0","id":1,`, "null", -32700) }},
		{"invalid UTF-8", func(t *testing.T) {
			refused(t, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/new\",\"params\":{\"cwd\":\"/\xff\",\"mcpServers\":[]}}", "null", -32700)
		}},
		{"string id", func(t *testing.T) { refused(t, `{"jsonrpc":"2.0","id":"x","method":"nope"}`, `"x"`, -32601) }},
		{"null id", func(t *testing.T) { refused(t, `{"jsonrpc":"2.0","id":null,"method":"nope"}`, "null", -32601) }},
		{"batch array", func(t *testing.T) { refused(t, `[{"jsonrpc":"2.0","id":1,"method":"nope"}]`, "null", -32600) }},
		{"lines of 1 MB, 12 MB and 50 MB", longLines},
		{"missing required member", func(t *testing.T) {
			refused(t, `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"mcpServers":[]}}`, "1", -32602)
		}},
		{`"CWD" is not cwd`, func(t *testing.T) {
			refused(t, `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"CWD":"/x","mcpServers":[]}}`, "1", -32602)
		}},
		{"mcpServers: null", func(t *testing.T) {
			d, _ := drive(t)
			d.send(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/x","mcpServers":null}}`)
			if m := d.answer(1); m.Result["sessionId"] == nil {
				t.Error(m.line)
			}
		}},
		{"unknown content block", unknownBlock},
		{`write_text_file with content ""`, emptyFile},
		{"request, then end of input", requestThenEnd},
		{"end of input with a blocked prompt", endWithBlockedPrompt},
		{"what a caller sees on disconnect", callerSeesExit},
		{"data of a peer's error", errorData},
		{"result: null for prompt is an error, for set_mode it is not", nullResults},
		{"an empty stop reason is not sent", emptyStopReason},
		{"nil slices, and numbers beyond 2^53", exactValues},
	}
	results := make([]string, 0, len(rows))
	for _, row := range rows[:tier.Pick(1, len(rows), len(rows), len(rows))] {
		verdict := "FAILED"
		if t.Run(row.name, row.run) {
			verdict = "ok"
		}
		results = append(results, fmt.Sprintf("%-60s %s", row.name, verdict))
	}
	t.Logf("%d rows\n%s", len(rows), strings.Join(results, "\n"))
}

// connectRaw connects a client to the raw agent.
func connectRaw(t *testing.T, kind string, handlers acp.ClientHandlers) *acp.ClientSession {
	t.Helper()
	transport := acp.Command(childCommand(kind))
	transport.Cmd.Stderr = t.Output()
	conn, err := acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, transport, sentBy(conformance.Client)), handlers, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return start(t, conn)
}

func clientCounts(t *testing.T, n int) {
	next := 0
	session := connectRaw(t, fmt.Sprintf("updates:%d", n), acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acp.ClientSession, u *acp.SessionNotification) error {
			chunk, _ := u.Update.Variant.(*acp.SessionUpdateAgentMessageChunk)
			if text := chunk.Content.Text(); text != strconv.Itoa(next) {
				t.Errorf("update %s, want %d", text, next)
			}
			next++
			return nil
		},
	})
	if _, err := session.Prompt(t.Context(), acp.TextBlock("go")); err != nil {
		t.Fatal(err)
	}
	if next != n {
		t.Errorf("%d of %d updates before Prompt returned", next, n)
	}
}

func clientCallsBack(t *testing.T) {
	session := connectRaw(t, "callback", acp.ClientHandlers{
		SessionUpdate: func(ctx context.Context, session *acp.ClientSession, n *acp.SessionNotification) error {
			if err := session.Conn().Session("of another").SetMode(ctx, "x"); err != nil {
				t.Error(err)
			}
			return nil
		},
	})
	if _, err := session.Prompt(t.Context(), acp.TextBlock("go")); err != nil {
		t.Error(err)
	}
}

func cancelReachesPrompts(t *testing.T) {
	d, first := drive(t)
	sessions := []string{first}
	for range 15 {
		sessions = append(sessions, d.newSession())
	}
	for i, s := range sessions {
		d.prompt(i, s, "block")
	}
	for i, s := range sessions {
		d.send(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":` + jsonLine(s) + `}}`)
		if m := d.answer(i); m.Result["stopReason"] != "cancelled" {
			t.Error(m.line)
		}
	}
}

func cancelAtOnce(t *testing.T) {
	d, s := drive(t)
	cancel := `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":` + jsonLine(s) + `}}`
	for i := range tier.Pick(30, 100, 300, 300) {
		d.send(promptLine(i, s, map[string]any{"type": "text", "text": "block"}) + "\n" + cancel)
		if m := d.answer(i); m.Result["stopReason"] != "cancelled" {
			t.Fatal(m.line)
		}
	}
}

func nestedPermission(t *testing.T) {
	d, s := drive(t)
	d.prompt(1, s, "ask")
	ask := d.read()
	if ask.Method != acp.MethodRequestPermission {
		t.Fatal(ask.line)
	}
	d.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"no"}}}`, ask.ID))
	if u := d.read(); u.Params.Update.Content.Text != "chose no" {
		t.Error(u.line)
	}
	d.answer(1)
}

func blockedRequests(t *testing.T) {
	session := connectRaw(t, "blocked", acp.ClientHandlers{
		RequestPermission: func(ctx context.Context, _ *acp.ClientSession, _ *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		ReadTextFile: func(context.Context, *acp.ClientSession, *acp.ReadTextFileRequest) (*acp.ReadTextFileResponse, error) {
			return &acp.ReadTextFileResponse{Content: "x"}, nil
		},
	})
	if _, err := session.Prompt(t.Context(), acp.TextBlock("go")); err != nil {
		t.Error(err)
	}
}

func handlerPanics(t *testing.T) {
	d, s := drive(t)
	for i, word := range []string{"panic", "fail"} {
		d.prompt(i, s, word)
		m := d.answer(i)
		if m.Error == nil || m.Error.Code != -32603 || strings.Contains(m.line, "db.internal") || strings.Contains(m.line, "goroutine") {
			t.Error(m.line)
		}
	}
	d.alive()
}

func cancelRequestReceived(t *testing.T) {
	d, s := drive(t)
	d.prompt("p", s, "block")
	d.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"p"}}`)
	if m := d.answer("p"); m.Error == nil || m.Error.Code != -32800 {
		t.Error(m.line)
	}
	d.alive()
}

func refused(t *testing.T, line, id string, code int) {
	d, _ := drive(t)
	d.send(line)
	if m := d.read(); string(m.ID) != id || m.Error == nil || m.Error.Code != code {
		t.Errorf("got %s, want id %s and code %d", m.line, id, code)
	}
	d.alive()
}

func longLines(t *testing.T) {
	d, s := drive(t)
	for i, n := range []int{1 << 20, 12 << 20, 50 << 20}[:tier.Pick(1, 1, 2, 3)] {
		d.prompt(i, s, strings.Repeat("x", n))
		if m := d.read(); m.Params.Update.Content.Text != fmt.Sprintf("%d bytes", n) {
			t.Errorf("%.200s", m.line)
		}
		d.answer(i)
	}
}

func unknownBlock(t *testing.T) {
	d, s := drive(t)
	d.send(promptLine(1, s, json.RawMessage(`{"type":"hologram","depth":3}`)))
	if m := d.read(); m.Params.Update.Content.Text != `unknown block {"type":"hologram","depth":3}` {
		t.Error(m.line)
	}
	d.answer(1)
}

func emptyFile(t *testing.T) {
	written := "not written"
	session := connectRaw(t, "write", acp.ClientHandlers{
		WriteTextFile: func(_ context.Context, _ *acp.ClientSession, req *acp.WriteTextFileRequest) (*acp.WriteTextFileResponse, error) {
			written = req.Content
			return nil, nil
		},
	})
	if _, err := session.Prompt(t.Context(), acp.TextBlock("go")); err != nil || written != "" {
		t.Errorf("%q, %v", written, err)
	}
}

func requestThenEnd(t *testing.T) {
	d, s := driveKind(t, "patient agent")
	d.prompt(1, s, "updates 100")
	d.in.Close()
	for i := range 100 {
		if m := d.read(); m.Params.Update.Content.Text != strconv.Itoa(i) {
			t.Fatal(m.line)
		}
	}
	if m := d.read(); m.Result["stopReason"] != "end_turn" {
		t.Error(m.line)
	}
}

func endWithBlockedPrompt(t *testing.T) {
	d, s := drive(t)
	d.prompt(1, s, "block")
	d.in.Close()
	// The agent ends by itself; the driver's watchdog would make that an error.
	if _, err := io.Copy(io.Discard, d.out); err != nil {
		t.Error(err)
	}
}

func callerSeesExit(t *testing.T) {
	session := connectRaw(t, "die", acp.ClientHandlers{})
	_, err := session.Prompt(t.Context(), acp.TextBlock("go"))
	exit, ok := errors.AsType[*acp.ExitError](err)
	if !ok || !errors.Is(err, acp.ErrClosed) || exit.State.ExitCode() != 7 || exit.Stderr != "segmentation fault\n" {
		t.Errorf("got %v", err)
	}
}

func errorData(t *testing.T) {
	session := connectRaw(t, "error", acp.ClientHandlers{})
	_, err := session.Prompt(t.Context(), acp.TextBlock("go"))
	e, ok := errors.AsType[*acp.Error](err)
	if !ok || e.Code != -32603 || e.Message != "no" || !bytes.Equal(e.Data, []byte(`{"n":12345678901234567890}`)) {
		t.Errorf("got %v", err)
	}
}

func nullResults(t *testing.T) {
	session := connectRaw(t, "null", acp.ClientHandlers{})
	if err := session.Conn().Session("of another").SetMode(t.Context(), "x"); err != nil {
		t.Errorf("set_mode: %v", err)
	}
	if res, err := session.Prompt(t.Context(), acp.TextBlock("go")); err == nil {
		t.Errorf("prompt: %+v", res)
	}
}

func emptyStopReason(t *testing.T) {
	d, s := drive(t)
	d.prompt(1, s, "empty")
	if m := d.answer(1); m.Error == nil || m.Error.Code != -32603 {
		t.Error(m.line)
	}
	d.alive()
}

func exactValues(t *testing.T) {
	req := acp.NewSessionRequest{Cwd: "/"}
	if got := jsonLine(req); got != `{"cwd":"/","mcpServers":[]}` {
		t.Error(got)
	}
	const in = `{"sessionId":"s","prompt":[],"_meta":{"n":12345678901234567890}}`
	var p acp.PromptRequest
	if err := json.Unmarshal([]byte(in), &p); err != nil {
		t.Fatal(err)
	}
	if got := jsonLine(p); got != in {
		t.Error(got)
	}
	const max = `{"sessionUpdate":"usage_update","used":18446744073709551615,"size":18446744073709551615}`
	var u acp.SessionUpdate
	if err := json.Unmarshal([]byte(max), &u); err != nil {
		t.Fatal(err)
	}
	if got := jsonLine(u); got != max {
		t.Error(got)
	}
}
