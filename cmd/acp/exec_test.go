package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/tools/txtar"
)

//go:embed testdata/oddagent.txtar
var oddLines []byte

// oddAgent is a program of its own: an agent whose prompts say what it does. What it only writes is in testdata.
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
		quoted, _ := json.Marshal(text) // a text can always be encoded
		update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":` + string(quoted) + `}}`)
	}
	caps := `{"loadSession":true,"promptCapabilities":{"image":true,"embeddedContext":true}}`
	if len(os.Args) > 1 && os.Args[1] == "--poor" {
		caps = `{}`
	}
	if len(os.Args) > 1 && os.Args[1] == "--http" {
		caps = `{"mcpCapabilities":{"http":true}}`
	}
	written := map[string]string{}
	for _, file := range txtar.Parse(oddLines).Files {
		written[file.Name] = string(file.Data)
	}
	var servers, prompt json.RawMessage // prompt is the one that hangs
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				SessionID  string
				Prompt     []map[string]any
				MCPServers json.RawMessage
			}
		}
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		switch m.Method {
		case "initialize":
			send(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentInfo":{"name":"odd","version":"1"},"agentCapabilities":%s}}`, m.ID, caps)
		case "session/new":
			servers = m.Params.MCPServers
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
			if os.Getenv("ODD_CHILD") != "" {
				if err := exec.Command("sleep", "1000").Start(); err != nil {
					panic(err)
				}
			}
			word, _, _ := strings.Cut(text, " ")
			if lines, ok := written[word]; ok {
				if strings.Contains(lines, `"id":"ask"`) {
					prompt = m.ID
				}
				send("%s", strings.TrimSpace(strings.ReplaceAll(lines, `"id":ID`, `"id":`+string(m.ID))))
				continue
			}
			switch word {
			case "die":
				say("so long")
				fmt.Fprintln(os.Stderr, "out of \x1b[31mmemory")
				os.Exit(7)
			case "hang":
				prompt = m.ID
				say("hanging")
				continue
			case "deaf":
				signal.Ignore(syscall.SIGTERM)
				say("hanging")
				continue
			case "flood":
				for range 20_000 {
					say(strings.Repeat("flood ", 20))
				}
			case "utf8":
				update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"before ` + "\xff\xfe" + ` after"}}`)
			case "huge":
				say(strings.Repeat("x", 100<<20))
			case "servers":
				say(string(servers))
			case "eof":
				say("bye")
				os.Stdout.Close()
				io.Copy(io.Discard, os.Stdin)
				return
			case "stop":
				stop = strings.TrimPrefix(text, "stop ")
			case "prompt":
				for _, block := range m.Params.Prompt {
					text, _ := json.Marshal(block)
					say(string(text) + "\n")
				}
			case "env":
				say(strings.Join(os.Args[1:], " "))
			case "late": // the text comes after the answer, in pieces
				update(`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}`)
				send(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, m.ID)
				say("The file exists.")
				time.Sleep(40 * time.Millisecond)
				say(" Nothing to do.")
				continue
			case "mute":
				update(`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"the answer is 4"}}`)
				say("\n ")
				fmt.Fprint(os.Stderr, "the key is invalid\n\n")
			case "blanks": // in several chunks; the message of the text's second word begins with one
				_, last, _ := strings.Cut(text, " ")
				for i, part := range []string{"4", "", ` `, `\t\n`, "", `\u200b`, "", `\n`, last} {
					if part == "" {
						update(`{"sessionUpdate":"tool_call","toolCallId":"t` + fmt.Sprint(i) + `","title":"Look","status":"completed"}`)
						continue
					}
					id := []string{"a", "", "b", "b", "", "c", "", "d", "d"}[i]
					update(`{"sessionUpdate":"agent_message_chunk","messageId":"` + id + `","content":{"type":"text","text":"` + part + `"}}`)
				}
			}
			send(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"%s","_meta":{"own":1}}}`, m.ID, stop)
		case "":
			if string(m.ID) == `"ask"` {
				say(string(bytes.TrimSpace(line)))
				send(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, prompt)
			}
		}
	}
}
