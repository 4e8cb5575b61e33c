package inspect

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/acpgo/sdk/conformance"
)

// capabilityOf maps the methods that need a capability of their receiver to its path. In version 2 some paths differ.
var capabilityOf = [3]map[string]string{
	1: {
		"logout": "auth.logout", "auth/status": "auth.status",
		"providers/list": "providers", "providers/set": "providers", "providers/disable": "providers",
		"session/load": "loadSession", "session/list": "sessionCapabilities.list",
		"session/delete": "sessionCapabilities.delete",
		"session/resume": "sessionCapabilities.resume", "session/close": "sessionCapabilities.close",
		"session/fork":    "sessionCapabilities.fork",
		"session/archive": "sessionCapabilities.archive", "session/unarchive": "sessionCapabilities.archive",
		"session/status": "sessionCapabilities.status", "session/set_title": "sessionCapabilities.title",
		"fs/read_text_file": "fs.readTextFile", "fs/write_text_file": "fs.writeTextFile",
		"terminal/create": "terminal", "terminal/output": "terminal", "terminal/release": "terminal",
		"terminal/wait_for_exit": "terminal", "terminal/kill": "terminal",
		"elicitation/create": "elicitation",
	},
	2: {
		"auth/status": "auth.status", "providers/list": "providers", "providers/set": "providers",
		"providers/disable": "providers",
		"session/new":       "session", "session/list": "session", "session/resume": "session", "session/close": "session",
		"session/prompt": "session", "session/delete": "session.delete", "session/fork": "session.fork",
		"session/archive": "session.archive", "session/unarchive": "session.archive", "session/status": "session.status",
		"session/set_title": "session.title", "elicitation/create": "elicitation",
	},
}

// capabilities is what the two sides of a connection claim and what is used of it.
type capabilities struct {
	version int // of the protocol; 0 if unknown
	sides   [3]struct{ info, claimed json.RawMessage }
	used    map[use]int
}

// use is a method that a side has used.
type use struct {
	by     conformance.Side
	method string
}

// maxUses bounds the number of methods that are counted.
const maxUses = 1000

// initialized has the members of the params or the result of initialize.
type initialized struct {
	Version            int             `json:"protocolVersion"`
	ClientInfo         json.RawMessage `json:"clientInfo"`
	ClientCapabilities json.RawMessage `json:"clientCapabilities"`
	AgentInfo          json.RawMessage `json:"agentInfo"`
	AgentCapabilities  json.RawMessage `json:"agentCapabilities"`
	Info               json.RawMessage `json:"info"` // of version 2
	Capabilities       json.RawMessage `json:"capabilities"`
}

// maxClaim bounds the size of what a side says about itself.
const maxClaim = 64 << 10

// add notes a message.
func (c *capabilities) add(by conformance.Side, kind conformance.Kind, method string, content json.RawMessage) {
	if c.used == nil {
		c.used = map[use]int{}
	}
	if kind == conformance.Request || kind == conformance.Notification {
		key := use{by, method}
		if c.used[key] > 0 || len(c.used) < maxUses && len(method) <= 200 {
			c.used[key]++
		}
	}
	if method != "initialize" || kind != conformance.Request && kind != conformance.Response || len(content) > maxClaim {
		return
	}
	var told initialized
	if json.Unmarshal(content, &told) != nil {
		return // the judge reports it
	}
	if kind == conformance.Response {
		c.version = told.Version
	}
	side := &c.sides[by]
	side.info, side.claimed = first(told.AgentInfo, told.Info), first(told.AgentCapabilities, told.Capabilities)
	if by == conformance.Client {
		side.info, side.claimed = first(told.ClientInfo, told.Info), first(told.ClientCapabilities, told.Capabilities)
	}
}

// first returns a copy of the first value that is there.
func first(values ...json.RawMessage) json.RawMessage {
	for _, v := range values {
		if v != nil {
			return slices.Clone(v)
		}
	}
	return nil
}

// state returns what is known about both sides.
func (c *capabilities) state() []sideState {
	var states []sideState
	for _, side := range []conformance.Side{conformance.Client, conformance.Agent} {
		s := sideState{Side: side.String(), Info: c.sides[side].info, Claimed: c.sides[side].claimed, Observed: []observed{}}
		for _, key := range slices.SortedFunc(maps.Keys(c.used),
			func(a, b use) int { return cmp.Compare(a.method, b.method) }) {
			if key.by == side {
				continue
			}
			path := capabilityOf[min(max(c.version, 1), 2)][key.method]
			s.Observed = append(s.Observed, observed{
				Method: key.method, Capability: path, By: key.by.String(), Count: c.used[key], Claimed: claims(s.Claimed, path),
			})
		}
		states = append(states, s)
	}
	return states
}

// claims reports whether capabilities contain a path, as true or as an object.
func claims(capabilities json.RawMessage, path string) bool {
	if path == "" {
		return true
	}
	for name := range strings.SplitSeq(path, ".") {
		var members map[string]json.RawMessage
		if json.Unmarshal(capabilities, &members) != nil {
			return false
		}
		capabilities = members[name]
	}
	text := string(capabilities)
	return text == "true" || strings.HasPrefix(text, "{")
}
