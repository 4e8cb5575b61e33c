package conformance_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/cleantest"
	"github.com/acpgo/sdk/internal/test/must"
)

// decode returns a message as an object, or nil if it is not one.
func decode(line []byte) map[string]any {
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	var m map[string]any
	if d.Decode(&m) != nil {
		return nil
	}
	return m
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
func summaries(lines []conformance.Message) []summary {
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
		if l.Direction == conformance.ToClient {
			s.arrow, back = "<-", conformance.ToAgent
		}
		m := decode(l.Line)
		if id, ok := m["id"]; ok {
			s.id = string(encode(id))
		}
		s.method, _ = m["method"].(string)
		switch {
		case s.method != "" && s.id == "":
			s.kind = conformance.Notification
		case s.method != "":
			s.kind = conformance.Request
			open[key{l.Direction, s.id}] = i
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

// find returns the index of the message with a name, as testdata/mutants/README.md explains it.
func find(lines []conformance.Message, name string) int {
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

// mutant is a section of testdata/mutants, whose README.md explains the notation.
type mutant struct {
	clean    string                // the recording
	what     string                // the requirement that it breaks, or why it breaks none
	lines    []conformance.Message // the changed recording
	also     []string
	closedBy conformance.Side
}

// readMutants reads the files whose names match a pattern.
func readMutants(t *testing.T, pattern string) (mutants []mutant) {
	t.Helper()
	files := cleantest.Files(t, "testdata/mutants/"+pattern)
	for _, file := range files {
		text := must.Get(os.ReadFile(file))(t)
		for section := range strings.SplitSeq(strings.TrimPrefix(string(text), "== "), "\n== ") {
			head, body, _ := strings.Cut(section, "\n")
			m := mutant{closedBy: conformance.Client}
			m.clean, m.what, _ = strings.Cut(head, ": ")
			m.lines = readClean(t, m.clean)
			for text := range strings.SplitSeq(strings.ReplaceAll(strings.TrimSpace(body), "\n\t", "\t"), "\n") {
				if other, ok := strings.CutPrefix(text, "also "); ok {
					id, _, _ := strings.Cut(other, ":")
					m.also = append(m.also, id)
				} else if text == "closed by the agent" {
					m.closedBy = conformance.Agent
				} else {
					m.lines = change(m.lines, text)
				}
			}
			mutants = append(mutants, m)
		}
	}
	return mutants
}

// change makes one change. It panics if the text is wrong.
func change(lines []conformance.Message, text string) []conformance.Message {
	text, inserted, _ := strings.Cut(text, "\t")
	words := strings.SplitN(text, " ", 4)
	switch words[0] {
	case "insert":
		at := place(lines, text)
		for i, message := range strings.Split(inserted, "\t") {
			lines = slices.Insert(lines, at+i, written(message))
		}
		return lines
	case "cut":
		return lines[:place(lines, text)]
	case "drop":
		dropped, left := map[int]bool{}, []conformance.Message(nil)
		for names := strings.Fields(text)[1:]; len(names) > 0; names = names[2:] {
			dropped[find(lines, names[0]+" "+names[1])] = true
		}
		for i, l := range lines {
			if !dropped[i] {
				left = append(left, l)
			}
		}
		return left
	}
	at := find(lines, words[1]+" "+words[2])
	old := lines[at]
	if words[0] == "turn" {
		lines[at].Direction = conformance.ToAgent + conformance.ToClient - old.Direction
		return lines
	}
	rest := words[3]
	edit := func(at int, name string, value any) {
		m := decode(lines[at].Line)
		lines[at].Line = encode(setAt(m, tokens(name), value))
	}
	switch pointer, value, _ := strings.Cut(rest, " "); words[0] {
	case "set":
		edit(at, pointer, parseJSON(value))
	case "remove":
		edit(at, pointer, removed{})
	case "fail":
		lines[at].Line = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%s,"message":"It failed"}}`, encode(decode(old.Line)["id"]), rest)
	case "succeed":
		lines[at].Line = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, encode(decode(old.Line)["id"]), rest)
	case "number":
		for i, s := range summaries(lines) {
			if i == at || s.peer == at {
				edit(i, "/id", parseJSON(rest))
			}
		}
	case "repeat":
		return slices.Insert(lines, place(lines, rest), old)
	case "move":
		to := place(lines, rest)
		lines = slices.Delete(lines, at, at+1)
		if to > at {
			to--
		}
		return slices.Insert(lines, to, old)
	default:
		panic("unknown change: " + text)
	}
	return lines
}

// place returns the index that the end of a text names.
func place(lines []conformance.Message, text string) int {
	if _, name, ok := strings.Cut(text, "before "); ok {
		return find(lines, name)
	}
	if _, name, ok := strings.Cut(text, "after "); ok {
		return find(lines, name) + 1
	}
	if strings.HasSuffix(text, "at the end") {
		return len(lines)
	}
	if !strings.HasSuffix(text, "at the start") {
		panic("no place: " + text)
	}
	return 0
}

// written returns a message that is written as an arrow and a text.
func written(message string) conformance.Message {
	arrow, text, _ := strings.Cut(message, " ")
	if plain, err := strconv.Unquote(text); err == nil {
		text = plain
	}
	if strings.HasPrefix(text, "{") && !strings.Contains(text, `"jsonrpc"`) {
		text = `{"jsonrpc":"2.0",` + text[1:]
	}
	return conformance.Message{Direction: directions[arrow], Line: []byte(text)}
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

// show formats a conversation around its findings, for people.
func show(lines []conformance.Message, findings []conformance.Finding) string {
	var text strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&text, "\n%s %s: %s", f.Rule, f.Level, f)
		for i := max(0, f.Number-4); i < min(len(lines), f.Number+2); i++ {
			mark := " "
			if i+1 == f.Number {
				mark = "*"
			}
			fmt.Fprintf(&text, "\n  %s%3d %s %.300s", mark, i+1, lines[i].Direction, lines[i].Line)
		}
		for _, e := range f.Evidence {
			fmt.Fprintf(&text, "\n    see %d: %s", e.Number, e.Why)
		}
	}
	return text.String()
}
