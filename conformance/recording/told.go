package recording

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/conformance"
)

// envelope has the JSON texts of the members of a JSON-RPC message. A member is nil if it is absent.
type envelope struct {
	id, method, params, result, failure []byte
}

// isMessage reports whether these are the members of a message.
func (e *envelope) isMessage() bool {
	return e.method != nil || e.id != nil && (e.result != nil || e.failure != nil) || e.failure != nil
}

// teller determines the senders of messages. It tracks the open requests.
type teller struct {
	open [2]map[string]string // methods by ids, of the client and of the agent
}

// maxOpen bounds the number of open requests of one side that a teller remembers.
const maxOpen = 1 << 16

func (t *teller) openRequests(d conformance.Direction) map[string]string {
	return t.open[d-conformance.ToAgent]
}

// receiver returns the side that has a method, or 0 if that is unclear, as for extensions and methods that both sides
// have.
func receiver(method string) conformance.Side {
	switch method {
	case "session/update", "session/request_permission",
		"terminal/create", "terminal/output", "terminal/release", "terminal/kill", "terminal/wait_for_exit",
		"elicitation/create", "elicitation/complete", "auth/status_update":
		return conformance.Client
	case "initialize", "authenticate", "logout", "terminal/cancel", "tool_call/cancel":
		return conformance.Agent
	}
	switch group, _, _ := strings.Cut(method, "/"); group {
	case "fs":
		return conformance.Client
	case "session", "auth", "providers":
		return conformance.Agent
	}
	return 0
}

func reverse(d conformance.Direction) conformance.Direction { return d.Sender().Peer().Direction() }

// tell returns the direction of a message, or 0 and the reason why it cannot be determined.
func (t *teller) tell(m *envelope) (d conformance.Direction, why string) {
	if m.method != nil {
		method := text(m.method)
		if side := receiver(method); side != 0 {
			return side.Peer().Direction(), ""
		}
		if method == "$/cancel_request" {
			return t.asker(find(m.params, "requestId"))
		}
		return 0, "both sides can have the method " + method
	}
	d, why = t.asker(m.id)
	if d == 0 && why == ambiguous {
		d = t.byResult(m)
	}
	if d == 0 {
		return 0, why
	}
	return reverse(d), ""
}

const (
	unasked   = "no open request has this id: lines are out of order, or earlier ones are missing"
	ambiguous = "both sides have an open request with this id"
)

// asker returns the direction of the open request with an id.
func (t *teller) asker(id []byte) (d conformance.Direction, why string) {
	key := idKey(id)
	_, client := t.open[0][key]
	_, agent := t.open[1][key]
	switch {
	case client && agent:
		return 0, ambiguous
	case client:
		return conformance.ToAgent, ""
	case agent:
		return conformance.ToClient, ""
	}
	return 0, unasked
}

// results has the required members of results by method. Methods without required members are not listed.
var results = map[string][]string{
	"initialize":                 {"protocolVersion"},
	"session/new":                {"sessionId"},
	"session/fork":               {"sessionId"},
	"session/prompt":             {"stopReason"},
	"session/list":               {"sessions"},
	"session/set_config_option":  {"configOptions"},
	"session/request_permission": {"outcome"},
	"fs/read_text_file":          {"content"},
	"terminal/create":            {"terminalId"},
	"terminal/output":            {"output"},
	"terminal/wait_for_exit":     {"exitCode", "signal"},
	"elicitation/create":         {"action"},
}

// byResult returns the direction of that one of two requests with the same id that an answer fits better, or 0.
func (t *teller) byResult(m *envelope) conformance.Direction {
	if m.result == nil {
		return 0
	}
	fits := func(method string) int {
		names, ok := results[method]
		if !ok {
			return 1
		}
		if slices.ContainsFunc(names, func(name string) bool { return find(m.result, name) != nil }) {
			return 2
		}
		return 0
	}
	key := idKey(m.id)
	switch client, agent := fits(t.open[0][key]), fits(t.open[1][key]); {
	case client > agent:
		return conformance.ToAgent
	case client < agent:
		return conformance.ToClient
	}
	return 0
}

// see records a message whose direction is known.
func (t *teller) see(d conformance.Direction, m *envelope) {
	switch {
	case m.method != nil && m.id != nil:
		open := t.openRequests(d)
		if open == nil {
			open = map[string]string{}
			t.open[d-conformance.ToAgent] = open
		}
		if len(open) < maxOpen {
			open[idKey(m.id)] = text(m.method[:min(len(m.method), 256)])
		}
	case m.method == nil && m.id != nil:
		delete(t.openRequests(reverse(d)), idKey(m.id))
	}
}

// idKey returns a short key for an id.
func idKey(id []byte) string {
	if len(id) > 2*sha256.Size {
		sum := sha256.Sum256(id)
		return string(sum[:])
	}
	return string(id)
}

// text returns the value of a JSON string, or the JSON text of any other value.
func text(value []byte) string {
	if len(value) >= 2 && value[0] == '"' && bytes.IndexByte(value, '\\') < 0 {
		return string(bytes.TrimSuffix(value[1:], []byte(`"`)))
	}
	if len(value) > 0 && value[0] == '"' {
		d := codec.NewDecoder(value)
		if s := d.Str(); d.End() == nil {
			return s
		}
	}
	return string(value)
}

// find returns a member of an object, or nil.
func find(object []byte, name string) []byte {
	if len(object) == 0 || object[0] != '{' {
		return nil
	}
	d := codec.NewDecoder(object)
	for o := d.Object(); o.Next(); {
		at, this := d.Offset(), string(o.Name()) == name
		if d.Skip(); this && d.Err() == nil {
			return d.Slice(at)
		}
	}
	return nil
}

// appendText appends the value of a JSON string.
func appendText(to, quoted []byte) ([]byte, bool) {
	d := codec.NewDecoder(quoted)
	s := d.Str()
	return append(to, s...), d.End() == nil
}
