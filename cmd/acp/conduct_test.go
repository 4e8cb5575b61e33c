package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// passer is a proxy that changes nothing, and does not use this module. Its arguments, which it says on standard error,
// have it end or hang at its first message.
func passer() {
	if err := passOn(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "passer:", err)
		os.Exit(1)
	}
}

func passOn(args []string) error {
	if len(args) > 0 {
		fmt.Fprintf(os.Stderr, "passer: %q\n", args)
	}
	type inner struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params,omitempty"`
	}
	type message struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id,omitempty"`
		Method  string          `json:"method,omitempty"`
		Params  json.RawMessage `json:"params,omitempty"`
		Result  json.RawMessage `json:"result,omitempty"`
		Error   json.RawMessage `json:"error,omitempty"`
	}
	senders := map[string]json.RawMessage{} // the ids of their senders, by our own ids
	last := 0
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		switch {
		case slices.Contains(args, "die"):
			os.Exit(7)
		case slices.Contains(args, "hang"):
			continue
		}
		var m message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return err
		}
		out := message{JSONRPC: "2.0"}
		switch m.Method {
		case "": // an answer
			out.ID, out.Result, out.Error = senders[string(m.ID)], m.Result, m.Error
			delete(senders, string(m.ID))
			if bytes.Contains(lines.Bytes(), []byte(`"result":null`)) {
				out.Result = json.RawMessage("null") // which encoding/json takes for none
			}
		case "$/cancel_request":
			for own, sender := range senders {
				if strings.Contains(string(m.Params), `"requestId":`+string(sender)+"}") {
					out.Method, out.Params = m.Method, json.RawMessage(`{"requestId":`+own+`}`)
				}
			}
			if out.Method == "" {
				continue
			}
		case "proxy/successor":
			var from inner
			if err := json.Unmarshal(m.Params, &from); err != nil {
				return err
			}
			out.Method, out.Params = from.Method, from.Params
		default:
			to := inner{strings.TrimPrefix(m.Method, "proxy/"), m.Params}
			text, err := json.Marshal(to)
			if err != nil {
				return err
			}
			out.Method, out.Params = "proxy/successor", text
		}
		if m.Method != "" && m.ID != nil {
			last++
			out.ID = json.RawMessage(fmt.Sprint(last))
			senders[fmt.Sprint(last)] = m.ID
		}
		if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
			return err
		}
	}
	return lines.Err()
}
