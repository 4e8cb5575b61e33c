package mcpacp_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// misbehave is an MCP server on stdio that does one thing wrong. Its tool "ask" does what the mode says; "echo" answers.
func misbehave(mode string) {
	switch mode {
	case "exit":
		fmt.Fprintln(os.Stderr, "no configuration file")
		os.Exit(3)
	case "banner":
		fmt.Printf("Welcome!\n\n[info] listening\n{\"level\":\"info\",\"msg\":\"listening\"}\n")
	case "noise":
		for {
			if _, err := fmt.Println("a line of a log"); err != nil {
				return
			}
		}
	}
	object := `{"type":"object"}`
	tools := []string{tool("ask", object), tool("echo", object)}
	if mode == "utf8" {
		tools[1] = "{\"name\":\"echo\",\"title\":\"\xff\",\"inputSchema\":{\"type\":\"object\"}}"
	}
	if mode == "schema" {
		wrong := tool("wrong", `{"type":"object","properties":7}`)
		tools = append(tools, tool("number", "7"), tool("text", `{"type":"string"}`), wrong, tool("", object), tool("echo", object))
	}
	var raw map[string]string // results by their methods, and what precedes them
	if text, ok := strings.CutPrefix(mode, "raw "); ok {
		if err := json.Unmarshal([]byte(text), &raw); err != nil {
			panic(err)
		}
	}
	var asked json.RawMessage // the id of a call that was not answered
	cancelled, refused := 0, 0
	var early func() // answers a call that has come before the cancellation of an earlier one
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Result json.RawMessage `json:"result"`
			Params struct {
				Name   string          `json:"name"`
				Cursor string          `json:"cursor"`
				Args   json.RawMessage `json:"arguments"`
				Meta   struct {
					Token string `json:"progressToken"`
				} `json:"_meta"`
			} `json:"params"`
		}
		if err := json.Unmarshal(in.Bytes(), &m); err != nil {
			panic(err)
		}
		reply := func(id json.RawMessage, result string) {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, result)
		}
		text := func(text string) string { return fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, text) }
		if line, ok := raw["before "+m.Method]; ok {
			fmt.Println(line)
		}
		result, replaced := raw[m.Method]
		switch {
		case mode == "never":
		case replaced && m.ID != nil:
			reply(m.ID, result)
		case m.Method == "initialize" && mode == "bare":
			reply(m.ID, `{"protocolVersion":"2025-06-18"}`)
		case m.Method == "initialize":
			reply(m.ID, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"test","version":"1"}}`)
		case m.Method == "tools/list" && mode == "circle":
			reply(m.ID, `{"tools":[`+tool(fmt.Sprint("page", m.Params.Cursor), object)+`],"nextCursor":"x"}`)
		case m.Method == "tools/list":
			if mode == "deaf" { // before the client knows the tools and could write a call
				if err := os.Stdin.Close(); err != nil {
					panic(err)
				}
			}
			reply(m.ID, `{"tools":[`+strings.Join(tools, ",")+`]}`)
			if mode == "deaf" {
				time.Sleep(time.Hour)
			}
			if mode == "rename" && asked != nil {
				reply(asked, text("renamed"))
			}
		case m.Method == "notifications/cancelled" && mode == "asks late":
			fmt.Println(`{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object"}}}`)
		case m.Method == "" && mode == "asks late": // the answer
			reply(asked, text("after the answer "+string(m.Result)))
			cancelled++
			if early != nil {
				early()
			}
		case m.Method == "notifications/cancelled":
			cancelled++
			if mode == "late" {
				reply(asked, text("the late answer"))
			}
			if early != nil {
				early()
				early = nil
			}
		case m.Method == "" && mode == "asks": // the answer to a question; 16 are not answered
			if refused++; refused == 84 {
				reply(asked, text(fmt.Sprint(refused, " were refused")))
			}
		case m.Method == "" && mode == "batch": // the answer to its ping
			fmt.Printf(`[{"jsonrpc":"2.0","id":%s,"result":%s}, {"level":"info"}]`+"\n", asked, text("fine"))
		case m.Method == "tools/call" && m.Params.Name == "echo" && cancelled == 0 && slices.Contains([]string{"progress", "late", "silent", "asks late"}, mode):
			// The MCP SDK sends a cancellation in the background, so the next call may come first.
			early = func() { reply(m.ID, text(fmt.Sprintf("%s after %d cancellations", m.Params.Args, cancelled))) }
		case m.Method == "tools/call" && m.Params.Name == "echo":
			reply(m.ID, text(fmt.Sprintf("%s after %d cancellations", m.Params.Args, cancelled)))
		case m.Method == "tools/call" && m.Params.Name == "ask":
			asked = m.ID
			switch mode {
			case "die":
				fmt.Fprintln(os.Stderr, "out of memory")
				os.Exit(1)
			case "twice":
				reply(m.ID, text("first"))
				reply(m.ID, text("second"))
			case "json":
				fmt.Printf("{\"jsonrpc\":\"2.0\",\"id\":%s,oops\n", m.ID)
			case "version":
				fmt.Printf("{\"id\":%s,\"result\":%s}\n", m.ID, text("fine"))
			case "batch":
				fmt.Println(`[7, [], {"jsonrpc":"2.0","id":"p","method":"ping"}]` + "\n[]")
			case "pings":
				for i := 0; ; i++ {
					if _, err := fmt.Printf(`{"jsonrpc":"2.0","id":"p%d","method":"ping"}`+"\n", i); err != nil {
						return
					}
				}
			case "asks":
				for i := range 100 {
					fmt.Printf(`{"jsonrpc":"2.0","id":"e%d","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object"}}}`+"\n", i)
				}
			case "utf8":
				fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":1,"message":"%s"}}`+"\n", m.ID, "\xff\xc0")
			case "answer":
				fmt.Printf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":7}\n", m.ID)
			case "huge":
				reply(m.ID, text(strings.Repeat("x", 64<<20)))
			case "flood":
				for range 1200 {
					fmt.Printf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%q,"progress":1}}`+"\n", m.Params.Meta.Token)
				}
				reply(m.ID, text("after the flood"))
			case "rename":
				tools[1] = tool("sing", object)
				fmt.Println(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`) // the call is answered after the new list
			case "stubborn":
				reply(m.ID, text(fmt.Sprint(os.Getpid())))
			case "progress", "late", "silent", "asks late":
				fmt.Printf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%q,"progress":1,"total":2,"message":"half"}}`+"\n", m.Params.Meta.Token)
			default:
				reply(m.ID, text("fine"))
			}
		case m.ID != nil:
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no %s"}}`+"\n", m.ID, m.Method)
		}
	}
	if mode == "stubborn" {
		signal.Ignore(syscall.SIGTERM)
		time.Sleep(time.Hour)
	}
}

func tool(name, schema string) string {
	return fmt.Sprintf(`{"name":%q,"inputSchema":%s}`, name, schema)
}
