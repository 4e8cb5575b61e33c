package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/must"
)

// client2 is a client of version 2 that talks to an agent through acp translate.
type client2 struct {
	t       *testing.T
	conn    *rpc.Conn
	dir     string
	outcome func(question json.RawMessage) string // JSON

	mu        sync.Mutex
	changed   chan struct{} // gets a value after each update
	states    []string
	asked     []string
	text      string
	output    map[string][]byte // by terminal
	exits     map[string]string
	commands  []string
	received  int // bytes of output
	toolCalls string
}

const allows, rejects = `{"outcome":"selected","optionId":"allow"}`, `{"outcome":"selected","optionId":"reject"}`

// newClient2 runs hosted behind acp translate with flags.
func newClient2(t *testing.T, outcome string, flags ...string) *client2 {
	return startClient2(t, outcome, slices.Concat([]string{must.Get(exec.LookPath("acp"))(t), "translate"}, flags, []string{"--", must.Get(exec.LookPath("hosted"))(t)})...)
}

func startClient2(t *testing.T, outcome string, command ...string) *client2 {
	c := &client2{t: t, dir: t.TempDir(), changed: make(chan struct{}, 1), output: map[string][]byte{}, exits: map[string]string{}}
	c.outcome = func(json.RawMessage) string { return outcome }
	ext := &rpc.Extensions[rpc.Conn]{}
	rpc.HandleNotification(ext, "session/update", func(_ context.Context, _ *rpc.Conn, n *struct{ Update json.RawMessage }) error {
		c.updated(n.Update)
		return nil
	})
	rpc.Handle(ext, "session/request_permission", func(_ context.Context, _ *rpc.Conn, q *json.RawMessage) (*json.RawMessage, error) {
		c.mu.Lock()
		c.asked = append(c.asked, string(*q))
		c.mu.Unlock()
		outcome := c.outcome(*q)
		if outcome == "" {
			return nil, errors.New("no answer")
		}
		res := json.RawMessage(`{"outcome":` + outcome + `}`)
		return &res, nil
	})
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = t.Output()
	var err error
	if c.conn, err = rpc.Connect(t.Context(), rpc.Command(cmd), ext, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.conn.Close() })
	c.call("initialize", `{"protocolVersion":2,"info":{"name":"c","version":"1"},"capabilities":{}}`)
	c.call("session/new", `{"cwd":`+strconv.Quote(c.dir)+`}`)
	return c
}

func (c *client2) call(method, params string) {
	c.t.Helper()
	if _, err := rpc.Call[json.RawMessage](c.t.Context(), c.conn, method, json.RawMessage(params)); err != nil {
		c.t.Fatal(method, err)
	}
}

func (c *client2) updated(text json.RawMessage) {
	var u struct {
		SessionUpdate, State, Data, TerminalID, Command, Cwd, StopReason string
		Output                                                           *struct{ Data []byte }
		ExitStatus                                                       json.RawMessage
		Content                                                          json.RawMessage
	}
	if err := json.Unmarshal(text, &u); err != nil {
		c.t.Error(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch u.SessionUpdate {
	case "state_update":
		c.states = append(c.states, u.State+u.StopReason)
	case "terminal_output_chunk":
		data, err := base64.StdEncoding.DecodeString(u.Data)
		if _, known := c.output[u.TerminalID]; !known || err != nil {
			c.t.Errorf("output of an unknown terminal, or %v", err)
		}
		c.output[u.TerminalID] = append(c.output[u.TerminalID], data...)
		c.received += len(data)
	case "terminal_update":
		c.output[u.TerminalID] = append(c.output[u.TerminalID], nil...)
		if u.Command != "" {
			c.commands = append(c.commands, u.Command+" in "+u.Cwd)
		}
		if u.Output != nil {
			c.output[u.TerminalID] = u.Output.Data
			c.received += len(u.Output.Data)
		}
		if u.ExitStatus != nil {
			c.exits[u.TerminalID] = string(u.ExitStatus)
		}
	case "agent_message_chunk":
		var block struct{ Text string }
		_ = json.Unmarshal(u.Content, &block) // what is missing fails the test
		c.text += block.Text
	case "tool_call_update":
		c.toolCalls += string(text)
	}
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// await waits until what the client has satisfies a condition.
func (c *client2) await(what string, done func() bool) {
	c.t.Helper()
	for timeout := time.After(time.Minute); ; {
		c.mu.Lock()
		ok := done()
		c.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-c.changed:
		case <-timeout:
			c.t.Fatalf("no %s: states %v, text %q, exits %v", what, c.states, c.text, c.exits)
		}
	}
}

func (c *client2) start(prompt string) {
	c.t.Helper()
	c.mu.Lock()
	c.states, c.asked, c.text, c.toolCalls = nil, nil, "", ""
	c.mu.Unlock()
	params, _ := json.Marshal(map[string]any{"sessionId": "one", "prompt": []map[string]string{{"type": "text", "text": prompt}}})
	c.call("session/prompt", string(params))
}

// play plays a turn, and returns what the agent says.
func (c *client2) play(prompt string) string {
	c.t.Helper()
	c.start(prompt)
	c.idle("end_turn")
	return c.text
}

func (c *client2) idle(reason string) {
	c.t.Helper()
	c.await("idle", func() bool { return slices.Contains(c.states, "idle"+reason) })
}

// TestTranslateHostAllows lets an agent of version 1 write a file and run a command through a client of version 2.
func TestTranslateHostAllows(t *testing.T) {
	t.Parallel()
	near, far := filepath.Join(t.TempDir(), "near.jsonl"), filepath.Join(t.TempDir(), "far.jsonl")
	c := startClient2(t, allows, must.Get(exec.LookPath("acp"))(t), "record", "-o", near, "--", must.Get(exec.LookPath("acp"))(t), "translate", "--files", "--terminals", "--",
		must.Get(exec.LookPath("acp"))(t), "record", "-o", far, "--", must.Get(exec.LookPath("hosted"))(t))
	if got := c.play("offered"); got != "true true true" {
		t.Errorf("offered: %s", got)
	}
	file := filepath.Join(c.dir, "a.txt")
	if got := c.play("write " + file + " Grüße\n"); got != "" {
		t.Errorf("write: %s", got)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "Grüße\n" {
		t.Errorf("the file has %q, %v", text, err)
	}
	if len(c.asked) != 1 || !strings.Contains(c.asked[0], `"subject":{"type":"tool_call","toolCall":{`) || !strings.Contains(c.asked[0], `+Grüße`) {
		t.Errorf("asked %s", c.asked)
	}
	if !strings.Contains(c.toolCalls, `"status":"completed"`) {
		t.Errorf("tool calls %s", c.toolCalls)
	}
	if got := c.play("read " + file); got != "Grüße\n" || len(c.asked) != 0 {
		t.Errorf("read: %s, asked %s", got, c.asked)
	}
	if got := c.play(`run printf '\303'; sleep 0.1; printf '\244\n'; pwd; exit 3`); got != "3: ä\n"+c.dir+"\n" {
		t.Errorf("run: %s", got)
	}
	if want := `"subject":{"type":"command","command":"sh -c 'printf '\\''\\303'\\'';`; len(c.asked) != 1 || !strings.Contains(c.asked[0], strings.ReplaceAll(want, `\`, `\\`)) && !strings.Contains(c.asked[0], `"cwd":"`+c.dir+`","toolCallId":"t"`) {
		t.Errorf("asked %s", c.asked)
	}
	if want := []string{"running", "requires_action", "running", "idleend_turn"}; !slices.Equal(c.states, want) {
		t.Errorf("states %v, want %v", c.states, want)
	}
	for id, output := range c.output {
		if string(output) != "ä\n"+c.dir+"\n" || !strings.Contains(c.exits[id], `"exitCode":3`) {
			t.Errorf("%s: %q, %s", id, output, c.exits[id])
		}
		if !strings.Contains(c.toolCalls, `"content":[{"type":"terminal","terminalId":"`+id+`"}]`) {
			t.Errorf("tool calls %s", c.toolCalls)
		}
	}
	must.Do(t, c.conn.Close())
	conforms(t, "client", near, "--level", "should")
	conforms(t, "agent", far, "--level", "should")
	if len(c.output) != 1 || len(c.commands) != 1 || !strings.HasPrefix(c.commands[0], "sh -c 'printf ") || !strings.HasSuffix(c.commands[0], " in "+c.dir) {
		t.Errorf("%d terminals: %s", len(c.output), c.commands)
	}
}

// TestTranslateHostRefuses requires that only the option that allows it allows anything, and that nothing is asked about what
// cannot be.
func TestTranslateHostRefuses(t *testing.T) {
	t.Parallel()
	c := newClient2(t, rejects, "--files", "--terminals")
	file := filepath.Join(c.dir, "a.txt")
	for _, outcome := range []string{rejects, `{"outcome":"cancelled"}`, `{"outcome":"_yes","optionId":"allow"}`, `{"outcome":"selected","optionId":"x"}`, `{"outcome":"selected"}`, `"allow"`, `null`, ""} {
		c.outcome = func(json.RawMessage) string { return outcome }
		for _, prompt := range []string{"write " + file + " x", "run touch a.txt"} {
			if got := c.play(prompt); !strings.Contains(got, "not permitted by the client or its user") {
				t.Errorf("%s: %s: %s", outcome, prompt, got)
			}
			if len(c.asked) != 1 {
				t.Errorf("%s: %s: asked %s", outcome, prompt, c.asked)
			}
		}
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the file was written")
	}
	must.Do(t, os.Symlink("/etc", filepath.Join(c.dir, "out")))
	c.outcome = func(json.RawMessage) string { return allows }
	for _, prompt := range []string{"write /etc/x x", "write " + c.dir + "/../x x", "write " + c.dir + "/out/x x", "read /etc/passwd", "read " + c.dir + "/out/passwd"} {
		if got := c.play(prompt); !strings.Contains(got, "outside the directories of the session") {
			t.Errorf("%s: %s", prompt, got)
		}
	}
}

// TestTranslateHostIsOff requires that nothing is offered without flags, and to an agent whose client speaks its version.
func TestTranslateHostIsOff(t *testing.T) {
	t.Parallel()
	for flags, want := range map[string]string{"": "false false false", "--files": "true true false", "--terminals": "false false true"} {
		c := newClient2(t, allows, strings.Fields(flags)...)
		if got := c.play("offered"); got != want {
			t.Errorf("%s: %s, want %s", flags, got, want)
		}
		if got := c.play("write " + c.dir + "/a x"); flags != "--files" && !strings.HasPrefix(got, "error: ") {
			t.Errorf("%s: wrote: %s", flags, got)
		}
	}
	out, err := exec.Command(must.Get(exec.LookPath("acp"))(t), "exec", "--protocol", "1", "--no-terminals", "offered", "--", must.Get(exec.LookPath("acp"))(t), "translate", "--files", "--terminals", "--", must.Get(exec.LookPath("hosted"))(t)).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "true true false") {
		t.Errorf("version 1: %s, %v", out, err)
	}
}

// runs plays a turn that runs a command until it is cancelled, and returns the command's process.
func (c *client2) runs() int {
	c.t.Helper()
	c.start("run echo $$; trap '' TERM; sleep 1000 & echo $!; wait")
	var pid int
	c.await("output", func() bool {
		for _, output := range c.output {
			if lines := strings.Split(string(output), "\n"); len(lines) == 3 {
				pid, _ = strconv.Atoi(lines[1])
				return true
			}
		}
		return false
	})
	if err := syscall.Kill(pid, 0); err != nil || pid == 0 {
		c.t.Fatalf("process %d: %v", pid, err)
	}
	return pid
}

func (c *client2) dead(pid int) {
	c.t.Helper()
	for range 500 {
		if syscall.Kill(pid, 0) != nil {
			return
		}
		time.Sleep(10 * time.Millisecond) // until init has reaped it
	}
	c.t.Errorf("process %d is still running", pid)
}

// TestTranslateHostCancels cancels a turn, closes a session, and ends a client while a command runs: its process group ends.
func TestTranslateHostCancels(t *testing.T) {
	t.Parallel()
	c := newClient2(t, allows, "--terminals")
	pid := c.runs()
	must.Do(t, rpc.Notify(t.Context(), c.conn, "session/cancel", map[string]string{"sessionId": "one"}))
	c.idle("cancelled")
	c.dead(pid)
	c.await("exit status", func() bool { return len(c.exits) == 1 })

	c = newClient2(t, allows, "--terminals")
	pid = c.runs()
	c.call("session/close", `{"sessionId":"one"}`)
	c.dead(pid)

	c = newClient2(t, allows, "--terminals")
	pid = c.runs()
	must.Do(t, c.conn.Close())
	c.dead(pid)

	// A question that is open when the turn is cancelled, and is answered later, allows nothing.
	c = newClient2(t, allows, "--files")
	cancelled := make(chan struct{})
	c.outcome = func(json.RawMessage) string {
		<-cancelled
		return allows
	}
	c.start("write " + c.dir + "/a x")
	c.await("question", func() bool { return slices.Contains(c.states, "requires_action") })
	must.Do(t, rpc.Notify(t.Context(), c.conn, "session/cancel", map[string]string{"sessionId": "one"}))
	c.idle("cancelled")
	close(cancelled)
	if got := c.play("offered"); got != "true true false" {
		t.Error(got)
	}
	if _, err := os.Stat(c.dir + "/a"); err == nil {
		t.Error("the file was written")
	}
}

// TestTranslateHostHostile lets an agent use terminals that there are not, ask for thousands of them, and print without end.
func TestTranslateHostHostile(t *testing.T) {
	t.Parallel()
	c := newClient2(t, rejects, "--terminals")
	if got := c.play("unknown"); got != strings.Repeat("true\n", 4) {
		t.Errorf("unknown terminals: %s", got)
	}
	if got := c.play("many"); got != "" {
		t.Error(got)
	}
	c.outcome = func(json.RawMessage) string { return allows }
	got := c.play("run head -c 50000000 /dev/zero | tr '\\0' x; echo end")
	for id, output := range c.output {
		if !bytes.HasSuffix(output, []byte("xend\n")) || !strings.Contains(c.exits[id], `"exitCode":0`) {
			t.Errorf("%d bytes, %s, %.100s", len(output), c.exits[id], got)
		}
	}
	if c.received > 4<<20 || len(c.output) != 1 {
		t.Errorf("%d bytes of %d terminals", c.received, len(c.output))
	}
}
