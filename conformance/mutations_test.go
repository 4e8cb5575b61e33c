package conformance_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/acpgo/sdk/conformance"
)

// line is a message in a conversation that is being changed.
type line struct {
	to   conformance.Direction
	text []byte
}

// decode returns the message as an object, or nil if it is not one.
func (l line) decode() map[string]any {
	d := json.NewDecoder(bytes.NewReader(l.text))
	d.UseNumber()
	var m map[string]any
	if d.Decode(&m) != nil {
		return nil
	}
	return m
}

// talkOf returns a recording as lines.
func talkOf(messages []conformance.Message) []line {
	var lines []line
	for _, m := range messages {
		lines = append(lines, line{m.Direction, m.Line})
	}
	return lines
}

// encode returns a value as JSON.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // of a decoded value
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// parseJSON returns a JSON value written by a mutant's author.
func parseJSON(text string) any {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		panic(fmt.Sprintf("%s: %v", text, err))
	}
	return v
}

// summary holds the properties that distinguish messages.
type summary struct {
	arrow  string // "->" of the client, "<-" of the agent
	method string // its own, or that of the request that it answers
	update string // of session/update
	kind   conformance.Kind
	id     string // as JSON
	peer   int    // the index of the request that it answers, or -1
}

// summaries describes all messages of a conversation.
func summaries(lines []line) []summary {
	all := make([]summary, len(lines))
	type key struct {
		to conformance.Direction
		id string
	}
	open := map[key]int{}
	for i, l := range lines {
		s := &all[i]
		s.arrow, s.peer = "->", -1
		back := conformance.ToClient
		if l.to == conformance.ToClient {
			s.arrow, back = "<-", conformance.ToAgent
		}
		m := l.decode()
		if id, ok := m["id"]; ok {
			s.id = string(encode(id))
		}
		s.method, _ = m["method"].(string)
		switch {
		case s.method != "" && s.id == "":
			s.kind = conformance.Notification
		case s.method != "":
			s.kind = conformance.Request
			open[key{l.to, s.id}] = i
		case s.id != "":
			s.kind = conformance.Response
			if m["error"] != nil {
				s.kind = conformance.ErrorReply
			}
			if at, ok := open[key{back, s.id}]; ok {
				s.method, s.peer = all[at].method, at
				delete(open, key{back, s.id})
			}
		}
		if s.method == "session/update" {
			s.update, _ = at(m, "/params/update/sessionUpdate").(string)
		}
	}
	return all
}

// at returns the value at a JSON pointer, or nil if there is no value.
func at(v any, pointer string) any {
	for _, token := range tokens(pointer) {
		switch in := v.(type) {
		case map[string]any:
			v = in[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}

func tokens(pointer string) []string {
	if pointer == "" {
		return nil
	}
	list := strings.Split(pointer[1:], "/")
	for i, token := range list {
		list[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
	}
	return list
}

// find returns the index of the message that a text describes. The text has an arrow, "->" for messages of the client
// and "<-" for those of the agent; a method, its own or that of the request that it answers; the kind of a
// session/update after a colon; and a number after a "#", counted from 1: the first if it is left out, and the last if
// it is "last".
//
//	<- session/update:tool_call#2    the agent's second tool_call
//	-> fs/read_text_file             the client's answer to the first fs/read_text_file
func find(lines []line, name string) int {
	arrow, rest, ok := strings.Cut(name, " ")
	rest, count, counted := strings.Cut(rest, "#")
	method, update, _ := strings.Cut(rest, ":")
	var found []int
	for i, s := range summaries(lines) {
		if s.arrow == arrow && s.method == method && (update == "" || s.update == update) {
			found = append(found, i)
		}
	}
	n := 1
	if count == "last" {
		n = len(found)
	} else if counted {
		n, _ = strconv.Atoi(count)
	}
	if !ok || n < 1 || n > len(found) {
		panic(fmt.Sprintf("there is no message %q, but %d like it", name, len(found)))
	}
	return found[n-1]
}

// mutation changes a conversation.
type mutation func(lines []line) []line

// all applies several mutations, one after the other.
func all(mutations ...mutation) mutation {
	return func(lines []line) []line {
		for _, m := range mutations {
			lines = m(lines)
		}
		return lines
	}
}

// drop leaves messages out.
func drop(names ...string) mutation {
	return func(lines []line) []line {
		var left []line
		dropped := map[int]bool{}
		for _, name := range names {
			dropped[find(lines, name)] = true
		}
		for i, l := range lines {
			if !dropped[i] {
				left = append(left, l)
			}
		}
		return left
	}
}

// number gives a request and its answer another id, written as JSON.
func number(name, id string) mutation {
	return func(lines []line) []line {
		request := find(lines, name)
		for i, s := range summaries(lines) {
			if i == request || s.peer == request {
				m := lines[i].decode()
				m["id"] = parseJSON(id)
				lines[i].text = encode(m)
			}
		}
		return lines
	}
}

// place is the position of a message.
type place func(lines []line) int

func before(name string) place { return func(lines []line) int { return find(lines, name) } }
func after(name string) place  { return func(lines []line) int { return find(lines, name) + 1 } }
func atEnd(lines []line) int   { return len(lines) }
func atStart([]line) int       { return 0 }

// again writes a message once more.
func again(name string, where place) mutation {
	return func(lines []line) []line {
		return slices.Insert(lines, where(lines), lines[find(lines, name)])
	}
}

// repeat writes a message twice.
func repeat(name string) mutation { return again(name, after(name)) }

// move moves a message to another place.
func move(name string, where place) mutation {
	return func(lines []line) []line {
		from, to := find(lines, name), where(lines)
		l := lines[from]
		lines = slices.Delete(lines, from, from+1)
		if to > from {
			to--
		}
		return slices.Insert(lines, to, l)
	}
}

// insert adds a message, written as an arrow and JSON; the text after the arrow need not be JSON.
func insert(where place, messages ...string) mutation {
	return func(lines []line) []line {
		at := where(lines)
		for i, text := range messages {
			arrow, text, _ := strings.Cut(text, " ")
			to := conformance.ToAgent
			if arrow == "<-" {
				to = conformance.ToClient
			}
			if strings.HasPrefix(text, "{") && !strings.Contains(text, `"jsonrpc"`) {
				text = `{"jsonrpc":"2.0",` + text[1:]
			}
			lines = slices.Insert(lines, at+i, line{to, []byte(text)})
		}
		return lines
	}
}

// change changes a decoded message.
func change(name string, f func(m map[string]any)) mutation {
	return func(lines []line) []line {
		i := find(lines, name)
		m := lines[i].decode()
		f(m)
		lines[i].text = encode(m)
		return lines
	}
}

// set puts a value at a JSON pointer of a message; "-" at the end of the pointer appends to an array.
func set(name, pointer, value string) mutation {
	return change(name, func(m map[string]any) { setAt(m, tokens(pointer), parseJSON(value)) })
}

// remove removes the value at a JSON pointer from a message.
func remove(name, pointer string) mutation {
	return change(name, func(m map[string]any) { setAt(m, tokens(pointer), removed{}) })
}

// removed makes setAt remove the value.
type removed struct{}

// setAt returns the value with a new one at the path.
func setAt(v any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	switch in := v.(type) {
	case map[string]any:
		changed := setAt(in[path[0]], path[1:], value)
		if changed == (removed{}) {
			if _, ok := in[path[0]]; !ok {
				panic("nothing to remove at " + path[0])
			}
			delete(in, path[0])
		} else {
			in[path[0]] = changed
		}
		return in
	case []any:
		if path[0] == "-" {
			return append(in, setAt(nil, path[1:], value))
		}
		i, err := strconv.Atoi(path[0])
		if err != nil || i >= len(in) {
			panic("no item " + path[0])
		}
		changed := setAt(in[i], path[1:], value)
		if changed == (removed{}) {
			return slices.Delete(in, i, i+1)
		}
		in[i] = changed
		return in
	case nil:
		return map[string]any{path[0]: setAt(nil, path[1:], value)}
	}
	panic(fmt.Sprintf("no member %s in %v", path[0], v))
}

// turn reverses the direction of a message.
func turn(name string) mutation {
	return func(lines []line) []line {
		l := &lines[find(lines, name)]
		l.to = conformance.ToAgent + conformance.ToClient - l.to
		return lines
	}
}

// cut ends the conversation after a message.
func cut(name string) mutation {
	return func(lines []line) []line { return lines[:find(lines, name)+1] }
}

// judgeTalk runs a judge over a conversation that one side ends.
func judgeTalk(schema *conformance.Schema, lines []line, closedBy conformance.Side) []conformance.Finding {
	judge := conformance.NewJudge(schema, nil)
	var findings []conformance.Finding
	for _, l := range lines {
		findings = append(findings, judge.Message(conformance.Message{Direction: l.to, Line: l.text})...)
	}
	judge.Closed(closedBy)
	return append(findings, judge.End()...)
}

// show formats a conversation around its findings, for people.
func show(lines []line, findings []conformance.Finding) string {
	var text strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&text, "\n%s %s: %s", f.Rule, f.Level, f)
		for i := max(0, f.Number-4); i < min(len(lines), f.Number+2); i++ {
			mark := " "
			if i+1 == f.Number {
				mark = "*"
			}
			fmt.Fprintf(&text, "\n  %s%3d %s %.300s", mark, i+1, lines[i].to, lines[i].text)
		}
		for _, e := range f.Evidence {
			fmt.Fprintf(&text, "\n    see %d: %s", e.Number, e.Why)
		}
	}
	return text.String()
}

func TestMutations(t *testing.T) {
	lines := talkOf(readClean(t, "v1-together"))
	if at := find(lines, "-> session/request_permission#2"); string(lines[at].text) != `{"jsonrpc":"2.0","id":2,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}` {
		t.Errorf("found %s", lines[at].text)
	}
	changed := all(
		drop("<- session/update:agent_message_chunk"),
		repeat("-> session/new"),
		move("<- session/update:tool_call#last", atStart),
		set("<- session/update:tool_call#last", "/params/update/locations/-", `{"path":"x"}`),
		remove("<- session/update:tool_call#last", "/params/update/locations/0"),
		insert(after("<- initialize"), `<- {"method":"_x"}`, "-> no JSON"),
		turn("<- _x"),
		cut("-> session/prompt#2"),
	)(slices.Clone(lines))
	var got []string
	for _, s := range summaries(changed) {
		got = append(got, strings.TrimSpace(s.arrow+" "+s.method+" "+s.update))
	}
	want := []string{
		"<- session/update tool_call", "-> initialize", "<- initialize", "-> _x", "->", "-> session/new", "-> session/new",
		"<- session/new", "-> session/new", "<- session/new", "-> session/prompt", "-> session/prompt",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if got := string(encode(at(changed[0].decode(), "/params/update/locations/0/path"))); got != `"/home/ada/shop/cart.go"` && got != `"x"` {
		t.Errorf("got %s", got)
	}
}
