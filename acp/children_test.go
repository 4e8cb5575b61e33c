package acp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/conformance"
)

// childEnv makes the test binary be one of the subprocesses.
const childEnv = "ACP_TEST_CHILD"

func child(kind string) int {
	var err error
	switch kind {
	case "agent":
		err = acp.ServeAgent(context.Background(), acp.Stdio(), (&childAgent{}).handlers(), nil)
	case "patient agent": // which has time to answer after the end of its input, on any machine
		opts := &acp.AgentOptions{Conn: acp.ConnOptions{DrainTime: time.Minute}}
		err = acp.ServeAgent(context.Background(), acp.Stdio(), (&childAgent{}).handlers(), opts)
	default:
		err = rawAgent(kind)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func childCommand(kind string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	// The race detector would delay each exit by a second.
	cmd.Env = append(os.Environ(), childEnv+"="+kind, "GORACE=atexit_sleep_ms=0")
	return cmd
}

// childAgent does what the text of a prompt says.
type childAgent struct{ sessions int }

func (a *childAgent) handlers() acp.AgentHandlers {
	return acp.AgentHandlers{
		NewSession: func(_ context.Context, _ *acp.AgentConn, req *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			a.sessions++
			return &acp.NewSessionResponse{SessionID: acp.SessionID(fmt.Sprintf("s%d:%s", a.sessions, req.Cwd))}, nil
		},
		Prompt: func(ctx context.Context, session *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			reason, err := a.prompt(ctx, session, req.Prompt)
			if err != nil {
				return nil, err
			}
			return &acp.PromptResponse{StopReason: reason}, nil
		},
	}
}

var errSecret = errors.New("cannot reach db.internal:5432 as root")

func (a *childAgent) prompt(ctx context.Context, s *acp.AgentSession, prompt []acp.ContentBlock) (acp.StopReason, error) {
	text := prompt[0].Text()
	if text == "" {
		if unknown, is := prompt[0].Variant.(*acp.ContentBlockUnknown); is {
			return acp.StopReasonEndTurn, s.Update(ctx, acp.AgentMessageText("unknown block "+string(unknown.Raw)))
		}
		return acp.StopReasonRefusal, nil
	}
	word, rest, _ := strings.Cut(text, " ")
	switch word {
	case "updates":
		n, err := strconv.Atoi(rest)
		if err != nil {
			return "", err
		}
		for i := range n {
			if err := s.Update(ctx, acp.AgentMessageText(strconv.Itoa(i))); err != nil {
				return "", err
			}
		}
		return acp.StopReasonEndTurn, nil
	case "block":
		<-ctx.Done()
		return "", ctx.Err()
	case "panic":
		panic(errSecret)
	case "fail":
		return "", errSecret
	case "empty":
		return "", nil // a stop reason that must not be sent
	case "ask":
		outcome, err := s.RequestPermission(ctx, acp.ToolCallUpdate{ToolCallID: "c"}, options("Yes", "No")...)
		if err != nil {
			return "", err
		}
		option, _ := outcome.Selected()
		return acp.StopReasonEndTurn, s.Update(ctx, acp.AgentMessageText("chose "+string(option)))
	default:
		return acp.StopReasonEndTurn, s.Update(ctx, acp.AgentMessageText(fmt.Sprintf("%d bytes", len(text))))
	}
}

// driver writes lines to the child agent and reads its answers, which it validates.
type driver struct {
	t         *testing.T
	in        io.WriteCloser
	out       *bufio.Reader
	validator *conformance.Validator
}

// drive starts the child agent, initialized and with a session.
func drive(t *testing.T) (d *driver, session string) {
	t.Helper()
	return driveKind(t, "agent")
}

func driveKind(t *testing.T, kind string) (d *driver, session string) {
	t.Helper()
	cmd := childCommand(kind)
	cmd.Stderr = t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// Whatever happens, no test waits forever. On a busy machine, the validator needs a minute for a line of 12 MB.
	watchdog := time.AfterFunc(10*time.Minute, func() { cmd.Process.Kill() })
	d = &driver{t, in, bufio.NewReaderSize(out, 1<<20), conformance.NewValidator(conformance.V1())}
	t.Cleanup(func() {
		in.Close()
		io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the agent ended with %v", err)
		}
		watchdog.Stop()
	})
	d.send(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true}}}}`)
	d.answer("i")
	return d, d.newSession()
}

func (d *driver) newSession() string {
	d.t.Helper()
	d.send(`{"jsonrpc":"2.0","id":"n","method":"session/new","params":{"cwd":"/home/ada","mcpServers":[]}}`)
	return d.answer("n").Result["sessionId"].(string)
}

func (d *driver) send(lines ...string) {
	d.t.Helper()
	for _, line := range lines {
		for one := range strings.Lines(line) {
			d.validator.Message(conformance.ToAgent, []byte(one)) // which may be wrong
		}
		if _, err := io.WriteString(d.in, line+"\n"); err != nil {
			d.t.Fatal(err)
		}
	}
}

// prompt sends a prompt of one text block.
func (d *driver) prompt(id any, session, text string) {
	d.t.Helper()
	d.send(promptLine(id, session, map[string]any{"type": "text", "text": text}))
}

func promptLine(id any, session string, block any) string {
	return jsonLine(map[string]any{
		"jsonrpc": "2.0", "id": id, "method": "session/prompt",
		"params": map[string]any{"sessionId": session, "prompt": []any{block}},
	})
}

func jsonLine(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// message is a line as the tests look at it.
type message struct {
	ID     json.RawMessage
	Method string
	Params struct {
		SessionID string
		Update    struct {
			SessionUpdate string
			Content       struct{ Text string }
		}
	}
	Result map[string]any
	Error  *struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
	line string
}

func (d *driver) read() message {
	d.t.Helper()
	line, err := d.out.ReadString('\n')
	if err != nil {
		d.t.Fatalf("the agent ended: %v", err)
	}
	for _, f := range d.validator.Message(conformance.ToClient, []byte(line)) {
		d.t.Errorf("%s: %.300s", f, line)
	}
	m := message{line: line}
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		d.t.Fatalf("%v in %.200s", err, line)
	}
	return m
}

// answer reads until the answer to a request comes.
func (d *driver) answer(id any) message {
	d.t.Helper()
	want := jsonLine(id)
	for {
		if m := d.read(); m.Method == "" && string(m.ID) == want {
			return m
		}
	}
}

// alive asks for a session, which shows that nothing broke.
func (d *driver) alive() {
	d.t.Helper()
	if d.newSession() == "" {
		d.t.Error("no session")
	}
}

// rawAgent is an agent that speaks by printing lines.
func rawAgent(kind string) error {
	in := bufio.NewReader(os.Stdin)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	say := func(format string, args ...any) error {
		if _, err := fmt.Fprintf(out, format+"\n", args...); err != nil {
			return err
		}
		return out.Flush()
	}
	next := func() (m message, err error) {
		if m.line, err = in.ReadString('\n'); err != nil {
			return m, err
		}
		return m, json.Unmarshal([]byte(m.line), &m)
	}
	for {
		m, err := next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		switch m.Method {
		case "initialize":
			err = say(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1}}`, m.ID)
		case "session/new":
			err = say(`{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s"}}`, m.ID)
		case "session/set_mode":
			err = say(`{"jsonrpc":"2.0","id":%s,"result":null}`, m.ID)
		case "session/prompt":
			err = rawTurn(kind, m.ID, say, next)
		}
		if err != nil {
			return err
		}
	}
}

// rawTurn plays one turn of the raw agent.
func rawTurn(kind string, id json.RawMessage, say func(string, ...any) error, next func() (message, error)) error {
	const update = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%d"}}}}`
	end := func(reason string) error {
		return say(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":%q}}`, id, reason)
	}
	kind, arg, _ := strings.Cut(kind, ":")
	switch kind {
	case "updates":
		n, err := strconv.Atoi(arg)
		if err != nil {
			return err
		}
		lines := make([]string, n)
		for i := range lines {
			lines[i] = fmt.Sprintf(update, i)
		}
		if err := say("%s", strings.Join(lines, "\n")); err != nil {
			return err
		}
		return end("end_turn")
	case "callback": // an update whose handler calls us
		if err := say(update, 0); err != nil {
			return err
		}
		m, err := next()
		if err != nil {
			return err
		}
		if err := say(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID); err != nil {
			return err
		}
		return end("end_turn")
	case "blocked": // 16 requests that are not answered, and one that must be
		for i := range 16 {
			if err := say(`{"jsonrpc":"2.0","id":%d,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[]}}`, i); err != nil {
				return err
			}
		}
		if err := say(`{"jsonrpc":"2.0","id":"read","method":"fs/read_text_file","params":{"sessionId":"s","path":"/x"}}`); err != nil {
			return err
		}
		m, err := next()
		if err != nil {
			return err
		}
		if string(m.ID) != `"read"` {
			return fmt.Errorf("got %s", m.line)
		}
		return end("end_turn")
	case "write": // a file's content may be empty
		if err := say(`{"jsonrpc":"2.0","id":1,"method":"fs/write_text_file","params":{"sessionId":"s","path":"/x","content":""}}`); err != nil {
			return err
		}
		m, err := next()
		if err != nil {
			return err
		}
		if m.Error != nil || m.Result == nil {
			return fmt.Errorf("got %s", m.line)
		}
		return end("end_turn")
	case "die":
		fmt.Fprintln(os.Stderr, "segmentation fault")
		os.Exit(7)
	case "error":
		return say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"no","data":{"n":12345678901234567890}}}`, id)
	case "null":
		return say(`{"jsonrpc":"2.0","id":%s,"result":null}`, id)
	}
	return errors.New("no such kind")
}
