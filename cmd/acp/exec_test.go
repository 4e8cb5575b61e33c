package main

import (
	"bufio"
	"bytes"
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
)

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
	if len(os.Args) > 1 && os.Args[1] == "--http" {
		caps = `{"mcpCapabilities":{"http":true}}`
	}
	var servers json.RawMessage
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
			case "messages":
				piece := func(kind, id, text string) {
					update(fmt.Sprintf(`{"sessionUpdate":"agent_%s_chunk","content":{"type":"text","text":"%s"}%s}`, kind, text, id))
				}
				piece("message", `,"messageId":"a"`, "one")
				piece("message", `,"messageId":"b"`, "two")
				piece("thought", "", "hm")
				piece("message", `,"messageId":"b"`, " too")
				piece("thought", "", "hm")
				piece("message", "", "three")
				piece("thought", "", "hm")
				update(`{"sessionUpdate":"tool_call","toolCallId":"t","title":"Look","kind":"read"}`)
				piece("message", "", "last")
				update(`{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"}`)
				piece("message", "", " of all")
			case "noise":
				fmt.Println("Loading the model...")
				say("done")
			case "servers":
				quoted, err := json.Marshal(string(servers))
				if err != nil {
					panic(err)
				}
				say(string(quoted[1 : len(quoted)-1]))
			case "eof":
				say("bye")
				os.Stdout.Close()
				io.Copy(io.Discard, os.Stdin)
				return
			case "error":
				send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"the model is \u001b[1mdown"}}`, m.ID)
				continue
			case "gone":
				send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32002,"message":"Resource not found"}}`, m.ID)
				continue
			case "internal":
				send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"Internal error"}}`, m.ID)
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
			case "tool": // that comes with its end
				send(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"odd","update":{"sessionUpdate":"tool_call","toolCallId":"t","title":"Look","kind":"read","status":"completed"}}}`)
			case "late": // the text comes after the answer, in pieces
				update(`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}`)
				send(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, m.ID)
				say("The file exists.")
				time.Sleep(40 * time.Millisecond)
				say(" Nothing to do.")
				continue
			case "titled": // the title comes after the answer
				say("4")
				send(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, m.ID)
				update(`{"sessionUpdate":"session_info_update","title":"Sum"}`)
				continue
			case "mute":
				update(`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"the answer is 4"}}`)
				say(`\n `)
				fmt.Fprint(os.Stderr, "the key is invalid\n\n")
			case "blank": // follows the answer, after a tool call without a kind and one without a title
				say("4")
				update(`{"sessionUpdate":"tool_call","toolCallId":"t","title":"Look","status":"completed"}`)
				update(`{"sessionUpdate":"tool_call_update","toolCallId":"u","status":"completed"}`)
				say(`\n`)
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
			case "notice":
				update(`{"sessionUpdate":"notice","severity":"warning","title":"docs did not start","description":"it sent an invalid message"}`)
				say("done")
			case "forge":
				send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"no\\npermission: allowed"}}`, m.ID)
				continue
			case "always": // is asked for only
				send(`{"jsonrpc":"2.0","id":"ask","method":"session/request_permission","params":{"sessionId":"odd","toolCall":{"toolCallId":"t","title":"ls","kind":"execute","rawInput":{"command":"ls"}},"options":[{"optionId":"yes","name":"Yes","kind":"allow_always"},{"optionId":"no","name":"No","kind":"reject_once"}]}}`)
				prompt = m.ID
				continue
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
