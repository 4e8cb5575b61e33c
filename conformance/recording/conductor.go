package recording

import (
	"strconv"
	"strings"
	"time"

	"github.com/acpgo/sdk/conformance"
)

// conductor is the state of reading a trace of the conductor.
type conductor struct {
	// mcp has the open MCP requests, because their answers are not marked as MCP.
	mcp map[string]bool
}

// place returns the position of a component in the chain, starting at the client.
func place(component string) (n int, ok bool) {
	switch component {
	case "client":
		return -1, true
	case "agent", "successor": // of a chain within a chain
		return 1 << 30, true
	}
	number, isProxy := strings.CutPrefix(component, "proxy:")
	n, err := strconv.Atoi(number)
	return n, isProxy && err == nil && n >= 0
}

// take reads an event of a trace.
func (c *conductor) take(r *Reader, m members) {
	at := r.timeSince(m["ts"], time.Second)
	kind := text(m["type"])
	if kind == "trace" {
		if text(m["component"]) == "agent" {
			r.add(Entry{Kind: KindStderr, Time: at, Direction: conformance.ToClient, Line: []byte(text(m["message"]))})
		} else {
			r.skip("log lines of the proxy chain")
		}
		return
	}
	from, to := text(m["from"]), text(m["to"])
	if from == "conductor" || to == "conductor" {
		r.skip("messages that the conductor refused")
		r.messages++ // so that the file counts as a recording
		return
	}
	sender, known := place(from)
	receiver, alsoKnown := place(to)
	if !known || !alsoKnown || sender == receiver {
		r.bad(ErrLine, "from and to do not name two components of a proxy chain")
		return
	}
	e := Entry{Time: at, Direction: conformance.ToAgent}
	upstream := from
	if sender > receiver {
		e.Direction, upstream = conformance.ToClient, to
	}
	if r.options.Hop != upstream {
		r.skip("messages of other hops")
		r.messages++ // so that the file counts as a recording
		return
	}
	rebuilt := envelope{id: m["id"], method: m["method"], params: m["params"]}
	if string(m["id"]) == "null" {
		rebuilt.id = nil
	}
	if string(m["params"]) == "null" {
		rebuilt.params = nil
	}
	switch kind {
	case "request", "notification":
		if kind == "notification" {
			rebuilt.id = nil
		}
		if text(m["protocol"]) == "mcp" {
			if kind == "request" && len(c.mcp) < maxOpen {
				if c.mcp == nil {
					c.mcp = map[string]bool{}
				}
				c.mcp[from+" "+idKey(m["id"])] = true
			}
			r.skip("messages of MCP")
			return
		}
		// The sender does not know what its successor is; the conductor renamed its request.
		if name := text(m["method"]); name == "proxy/initialize" || name == "_proxy/initialize" {
			rebuilt.method = []byte(`"initialize"`)
		}
	case "response":
		if key := to + " " + idKey(m["id"]); c.mcp[key] {
			delete(c.mcp, key)
			r.skip("messages of MCP")
			return
		}
		rebuilt = envelope{id: m["id"]}
		payload := m["payload"]
		if payload == nil {
			payload = []byte("null")
		}
		if string(m["is_error"]) == "true" {
			rebuilt.failure = payload
		} else {
			rebuilt.result = payload
		}
	default:
		r.bad(ErrLine, "unknown type of event")
		return
	}
	r.addRebuilt(e, &rebuilt)
}
