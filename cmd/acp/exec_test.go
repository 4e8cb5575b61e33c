package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// example is the reference agent, built once for the tests.
var example = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "example.exe")
	build := exec.Command("go", "build", "-o", name, "../../examples/agent")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return name, nil
})

// oddAgent is a program of its own: an agent whose prompts say what it does.
func oddAgent() {
	in := bufio.NewReader(os.Stdin)
	var mu sync.Mutex
	send := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf(format+"\n", args...)
	}
	update := func(text string) {
		send(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"odd","update":%s}}`, text)
	}
	say := func(text string) {
		update(fmt.Sprintf(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}`, text))
	}
	caps := `{"loadSession":true,"promptCapabilities":{"image":true,"embeddedContext":true}}`
	if len(os.Args) > 1 && os.Args[1] == "--poor" {
		caps = `{}`
	}
	var prompt json.RawMessage // the one that hangs
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				SessionID string
				Prompt    []map[string]any
			}
		}
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		switch m.Method {
		case "initialize":
			send(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentInfo":{"name":"odd","version":"1"},"agentCapabilities":%s}}`, m.ID, caps)
		case "session/new":
			send(`{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"odd"}}`, m.ID)
		case "session/load":
			if os.Getenv("ODD_FORGETS") != "" {
				send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32002,"message":"no such session"}}`, m.ID)
				continue
			}
			say("history of " + m.Params.SessionID)
			send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
		case "session/cancel":
			if prompt != nil {
				send(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"cancelled"}}`, prompt)
			}
		case "session/prompt":
			stop := "end_turn"
			text, _ := m.Params.Prompt[0]["text"].(string)
			if file := os.Getenv("ODD_CHILD"); file != "" {
				child := exec.Command("sleep", "1000")
				if err := child.Start(); err != nil {
					panic(err)
				}
				if err := os.WriteFile(file, fmt.Appendf(nil, "%d %d", os.Getpid(), child.Process.Pid), 0o600); err != nil {
					panic(err)
				}
			}
			switch word, _, _ := strings.Cut(text, " "); word {
			case "die":
				say("so long")
				fmt.Fprintln(os.Stderr, "out of \x1b[31mmemory")
				os.Exit(7)
			case "hang", "deaf":
				if word == "hang" {
					prompt = m.ID
				}
				if word == "deaf" {
					signal.Ignore(syscall.SIGTERM)
				}
				say("hanging")
				continue
			case "flood":
				for range 20_000 {
					say(strings.Repeat("flood ", 20))
				}
			case "controls":
				say(`a\u001b[31mb\u0007c\u009bd\u202ee\r\nf\tg`)
			case "utf8":
				say("before \xff\xfe after")
			case "huge":
				say(strings.Repeat("x", 100<<20))
			case "unknown":
				update(`{"sessionUpdate":"dance","steps":[1, 2],"_meta":{"a":"b"}}`)
				update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"smell"},"extra":"kept"}`)
				say("known")
			case "members":
				update(`{"sessionUpdate":"agent_message_chunk",  "content":{"type":"text","text":"\u0061"}, "own":{"b":1.50}}`)
			case "noise":
				fmt.Println("Loading the model...")
				say("done")
			case "eof":
				say("bye")
				os.Stdout.Close()
				io.Copy(io.Discard, os.Stdin)
				return
			case "error":
				send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"the model is \u001b[1mdown"}}`, m.ID)
				continue
			case "login":
				send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"log in"}}`, m.ID)
				continue
			case "stop":
				stop = strings.TrimPrefix(text, "stop ")
			case "prompt":
				for _, block := range m.Params.Prompt {
					text, _ := json.Marshal(block)
					quoted, _ := json.Marshal(string(text))
					say(strings.Trim(string(quoted), `"`) + `\n`)
				}
			case "env":
				quoted, _ := json.Marshal(strings.Join(os.Args[1:], " "))
				say(strings.Trim(string(quoted), `"`))
			case "ask":
				send(`{"jsonrpc":"2.0","id":"ask","method":"session/request_permission","params":{"sessionId":"odd","toolCall":{"toolCallId":"t","title":"Run rm -rf /","kind":"execute","rawInput":{"command":"rm -rf /"}},"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]}}`)
				prompt = m.ID
				continue
			}
			send(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"%s","_meta":{"own":1}}}`, m.ID, stop)
		case "":
			if string(m.ID) == `"ask"` {
				answer, _ := json.Marshal(string(bytes.TrimSpace(line)))
				say(strings.Trim(string(answer), `"`))
				send(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, prompt)
			}
		}
	}
}

// odd starts acp exec with the odd agent, and returns when it has printed something. What it returns are the processes
// of the agent.
func odd(t *testing.T, prompt, first string, args ...string) (c *exec.Cmd, out io.ReadCloser, pids []int) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs signals")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "pids")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	c = exec.CommandContext(ctx, "acp", append(append([]string{"exec"}, args...), prompt, "--", "oddagent")...)
	c.Dir = dir
	c.Env = append(os.Environ(), "ODD_CHILD="+file, "XDG_STATE_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	c.Stderr = &strings.Builder{}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var seen []byte
	for one := make([]byte, 1); !bytes.HasSuffix(seen, []byte(first)); seen = append(seen, one[0]) {
		if _, err := out.Read(one); err != nil {
			t.Fatalf("%q, %v\n%s", seen, err, c.Stderr)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for word := range strings.FieldsSeq(string(text)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return c, out, pids
}

// ended checks how acp exec has ended, and that it has left nothing behind.
func ended(t *testing.T, c *exec.Cmd, out io.Reader, pids []int, status int) {
	t.Helper()
	_, err := io.Copy(io.Discard, out)
	expectExit(t, errors.Join(err, c.Wait()), status)
	if t.Failed() {
		t.Log(c.Stderr)
	}
	for _, pid := range pids {
		// A process that was killed may be a zombie until its new parent has waited for it.
		for range 200 {
			if !lives(pid) {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if lives(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
}

// lives reports whether a process runs.
func lives(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return runtime.GOOS != "linux"
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}

// Signals cancel the turn, and the status is that of the signal.
func TestExecSignals(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			c, out, pids := odd(t, "hang", "hanging")
			if err := c.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
			ended(t, c, out, pids, 128+int(s))
		})
	}
}

// An agent that hears nothing is killed by the second signal.
func TestExecSecondSignal(t *testing.T) {
	c, out, pids := odd(t, "deaf", "hanging")
	begun := time.Now()
	for range 20 {
		// The second one that is seen kills.
		if err := c.Process.Signal(syscall.SIGINT); err != nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	ended(t, c, out, pids, 130)
	if took := time.Since(begun); took > cancelGrace-time.Second {
		t.Errorf("it took %v", took)
	}
}

// A signal while the agent starts.
func TestExecSignalAtStart(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs signals")
	}
	c := exec.CommandContext(t.Context(), "acp", "exec", "--verbose", "Hello", "--", "sh", "-c", "echo started >&2; cat >&2")
	c.Env = append(os.Environ(), "XDG_CONFIG_HOME="+t.TempDir())
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	for lines.Scan() && lines.Text() != "agent: started" {
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
	}
	expectExit(t, c.Wait(), 143)
}

// Somebody closes standard output, or does not read it.
func TestExecClosedOutput(t *testing.T) {
	for format, first := range map[string]string{"text": "flood ", "json": `"flood `} {
		t.Run(format, func(t *testing.T) {
			c, out, pids := odd(t, "flood", first, "--format", format)
			if err := out.Close(); err != nil {
				t.Fatal(err)
			}
			ended(t, c, strings.NewReader(""), pids, statusPipe)
		})
	}
	t.Run("stuck", func(t *testing.T) {
		c, _, pids := odd(t, "flood", "flood ")
		if err := c.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		ended(t, c, strings.NewReader(""), pids, 130)
	})
}

// The time passes, in an agent that answers and in one that does not.
func TestExecTimeout(t *testing.T) {
	c, out, pids := odd(t, "hang", "hanging", "--timeout", "1s")
	ended(t, c, out, pids, statusTimeout)
	if text := fmt.Sprint(c.Stderr); !strings.Contains(text, "not done within 1s") {
		t.Error(text)
	}
}
