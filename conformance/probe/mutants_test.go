package probe_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance/probe"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// mutant is the example agent with one fault, and the requirements that a scenario must find broken.
type mutant struct {
	scenario string
	rules    string // exactly the requirements that are found broken
	fault    fault
}

// fault changes the traffic. It may return any number of lines in place of one, and answer the client itself.
type fault struct {
	// toAgent receives each line of the client, and returns the lines for the agent and those for the client.
	toAgent func(s *state, m *line) (lines []string, reply []string)
	// toClient receives each line of the agent, and returns the lines for the client.
	toClient func(s *state, m *line) []string
	// deaf hides the end of the input from the agent.
	deaf bool
	// logs writes each line of the client to standard error before the agent gets it.
	logs bool
}

// line is a parsed message.
type line struct {
	text          string
	method        string // of an answer, that of its request
	id            string
	params        json.RawMessage // of an answer, those of its request
	request       bool
	answer, error bool
	outcome       json.RawMessage // the result or the error
}

// state is the state of a fault.
type state struct {
	asked map[string]*line // by the client
	count map[string]int   // for faults that happen once
	all   []*line          // of the client
	held  []string
}

// nth returns how often it was called with a name.
func (s *state) nth(name string) int {
	s.count[name]++
	return s.count[name]
}

func readLine(text []byte) *line {
	var e struct {
		ID, Params, Result, Error json.RawMessage
		Method                    *string
	}
	m := &line{text: string(text)}
	if json.Unmarshal(text, &e) != nil {
		return m
	}
	m.id, m.params = string(e.ID), e.Params
	switch {
	case e.Method != nil:
		m.method, m.request = *e.Method, e.ID != nil
	case e.Error != nil:
		m.answer, m.error, m.outcome = true, true, e.Error
	case e.Result != nil:
		m.answer, m.outcome = true, e.Result
	}
	return m
}

// mutate adds a fault to a launch function.
func mutate(launch probe.Launch, f fault) probe.Launch {
	return func(ctx context.Context, dir string) (*probe.Target, error) {
		target, err := launch(ctx, dir)
		if err != nil {
			return nil, err
		}
		if f.logs {
			target.Stderr = &probe.Stderr{}
		}
		inner := target.Stream
		var mu sync.Mutex
		s := &state{asked: map[string]*line{}, count: map[string]int{}}
		type read struct {
			text []byte
			err  error
		}
		lines := make(chan read, 1024)
		closed := make(chan struct{})
		send := func(r read) {
			select {
			case lines <- r:
			case <-closed:
			}
		}
		var reading sync.WaitGroup
		reading.Go(func() {
			for {
				text, err := inner.Read()
				if err != nil {
					send(read{nil, err})
					if _, long := errors.AsType[*rpc.TooLongError](err); long {
						continue
					}
					return
				}
				mu.Lock()
				m := readLine(text)
				if m.answer {
					if asked := s.asked[m.id]; asked != nil {
						m.method, m.params = asked.method, asked.params
					}
				}
				out := []string{m.text}
				if f.toClient != nil {
					out = f.toClient(s, m)
				}
				mu.Unlock()
				for _, text := range out {
					send(read{[]byte(text), nil})
				}
			}
		})
		var once sync.Once
		wrapper := rpc.Wrapper{
			Read: func(_ func() ([]byte, error), _ func()) ([]byte, error) {
				select {
				case r := <-lines:
					return r.text, r.err
				case <-closed:
					return nil, io.EOF
				}
			},
			Write: func(text []byte) ([]byte, error) {
				if f.logs {
					if _, err := target.Stderr.Write(text); err != nil {
						return nil, err
					}
				}
				mu.Lock()
				defer mu.Unlock()
				m := readLine(text)
				if m.request {
					s.asked[m.id] = m
				}
				s.all = append(s.all, m)
				if f.toAgent == nil {
					return text, nil
				}
				out, reply := f.toAgent(s, m)
				for _, text := range reply {
					send(read{[]byte(text), nil})
				}
				return []byte(strings.Join(out, "\n")), nil
			},
			Close: func() error {
				once.Do(func() { close(closed) })
				err := inner.Close()
				reading.Wait()
				return err
			},
		}
		if f.deaf {
			wrapper.CloseWrite = func() error { return nil }
		}
		target.Stream = rpc.Wrap(inner, wrapper)
		return target, nil
	}
}

// The faults that many mutants have.

// changing replaces the agent's lines for which a condition is true.
func changing(when func(*state, *line) bool, lines func(*state, *line) []string) fault {
	return fault{toClient: func(s *state, m *line) []string {
		if when(s, m) {
			return lines(s, m)
		}
		return []string{m.text}
	}}
}

// serving answers the client's requests for which a condition is true. The agent never sees them.
func serving(method, outcome string, when func(*state, *line) bool) fault {
	return fault{toAgent: func(s *state, m *line) ([]string, []string) {
		if m.request && m.method == method && when(s, m) {
			return nil, []string{`{"jsonrpc":"2.0","id":` + m.id + `,` + outcome + `}`}
		}
		return []string{m.text}, nil
	}}
}

func nothing(*state, *line) []string { return nil }

// failing replaces a result with an error.
func failing(method string, when func(*state, *line) bool) fault {
	return changing(all(resultOf(method), when), func(_ *state, m *line) []string {
		return []string{`{"jsonrpc":"2.0","id":` + m.id + `,"error":{"code":-32603,"message":"Mutant"}}`}
	})
}

// silent does not answer.
func silent(method string, when func(*state, *line) bool) fault {
	return changing(all(answerTo(method), when), nothing)
}

// refusing answers the client's request with an error, and granting with a result.
func refusing(method, code string, when func(*state, *line) bool) fault {
	return serving(method, `"error":{"code":`+code+`,"message":"Mutant"}`, when)
}

func granting(method, result string, when func(*state, *line) bool) fault {
	return serving(method, `"result":`+result, when)
}

// recoding changes the code of an error.
func recoding(method, from, to string) fault {
	return changing(answerTo(method), func(_ *state, m *line) []string {
		if !m.error {
			return []string{m.text}
		}
		return []string{strings.Replace(m.text, `"code":`+from, `"code":`+to, 1)}
	})
}

// answering answers messages of the client that must not be answered.
func answering(text string, when func(*state, *line) bool) fault {
	return fault{toAgent: func(s *state, m *line) ([]string, []string) {
		if when(s, m) {
			return []string{m.text}, []string{text}
		}
		return []string{m.text}, nil
	}}
}

// before sends lines before the answer to a request, and after sends them after it.
func before(method string, lines func(s *state, m *line) []string) fault {
	return changing(resultOf(method), func(s *state, m *line) []string { return append(lines(s, m), m.text) })
}

func after(method string, lines func(s *state, m *line) []string) fault {
	return changing(resultOf(method), func(s *state, m *line) []string { return append([]string{m.text}, lines(s, m)...) })
}

// dropping does not send updates of a kind, or requests of a method.
func dropping(what string) fault {
	return changing(func(_ *state, m *line) bool { return strings.Contains(m.text, what) && !m.answer }, nothing)
}

// unmoved opens a session in its old directory when the client names another one.
var unmoved = fault{toAgent: func(_ *state, m *line) ([]string, []string) {
	return []string{strings.Replace(m.text, `/elsewhere"`, `"`, 1)}, nil
}}

// holding sends updates of a kind just before the first answer to a request.
func holding(kind, method string) fault {
	return fault{toClient: func(s *state, m *line) []string {
		if m.answer && m.method == method && s.nth(method) == 1 {
			return append(s.held, m.text)
		}
		if s.count[method] > 0 || !afterA(method)(s, m) || !strings.Contains(m.text, kind) {
			return []string{m.text}
		}
		s.held = append(s.held, m.text)
		return nil
	}}
}

// asking sends a request to the client in the first turn, and hides the answer from the agent.
func asking(request func(session string) string) fault {
	f := before("session/prompt", func(s *state, m *line) []string {
		if s.nth("asked") > 1 {
			return nil
		}
		return []string{request(sessionOf(m))}
	})
	f.toAgent = hidesAnswer
	return f
}

// hidesAnswer hides the client's answer to a request that a fault has made.
func hidesAnswer(_ *state, m *line) ([]string, []string) {
	if m.answer && m.id == `"mutant"` {
		return nil, nil
	}
	return []string{m.text}, nil
}

func sessionOf(m *line) string {
	var p struct{ SessionID string }
	if json.Unmarshal(m.params, &p) != nil {
		return ""
	}
	return p.SessionID
}

func request(method, members string) func(string) string {
	return func(session string) string {
		return `{"jsonrpc":"2.0","id":"mutant","method":"` + method + `","params":{"sessionId":"` + session + `",` + members + `}}`
	}
}

func chunk(session string) string {
	return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"` + session + `","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"mutant"}}}}`
}

// lateChunk sends the end of a message after the answer to the first prompt.
var lateChunk = changing(all(resultOf("session/prompt"), once("late")), func(_ *state, m *line) []string {
	part := strings.Replace(chunk(sessionOf(m)), `"content"`, `"messageId":"late","content"`, 1)
	return []string{part, m.text, part}
})

// answersTwice answers the first prompt twice.
var answersTwice = changing(all(resultOf("session/prompt"), once("again")),
	func(_ *state, m *line) []string { return []string{m.text, m.text} })

// The conditions for faults.

func always(*state, *line) bool { return true }

// all is true if all conditions are, which are tried in order.
func all(conditions ...func(*state, *line) bool) func(*state, *line) bool {
	return func(s *state, m *line) bool {
		for _, holds := range conditions {
			if !holds(s, m) {
				return false
			}
		}
		return true
	}
}

func answerTo(method string) func(*state, *line) bool {
	return func(_ *state, m *line) bool { return m.answer && m.method == method }
}

func resultOf(method string) func(*state, *line) bool {
	return func(_ *state, m *line) bool { return m.answer && !m.error && m.method == method }
}

// once is true for the first call.
func once(name string) func(*state, *line) bool {
	return func(s *state, _ *line) bool { return s.nth(name) == 1 }
}

func has(text string) func(*state, *line) bool {
	return func(_ *state, m *line) bool { return strings.Contains(m.text, text) }
}

func params(text string) func(*state, *line) bool {
	return func(_ *state, m *line) bool { return strings.Contains(string(m.params), text) }
}

// nthTime is true from the nth call on.
func nthTime(n int) func(*state, *line) bool {
	return func(s *state, _ *line) bool { return s.nth("nth") >= n }
}

// afterA is true after the client has sent a text.
func afterA(text string) func(*state, *line) bool {
	return func(s *state, _ *line) bool {
		return slices.ContainsFunc(s.all, func(m *line) bool { return strings.Contains(m.text, text) })
	}
}

// replacing replaces one text with another in the agent's messages.
func replacing(from, to string) fault {
	return fault{toClient: func(_ *state, m *line) []string { return []string{strings.ReplaceAll(m.text, from, to)} }}
}

// editing changes the members of a result.
func editing(method string, edit func(result map[string]json.RawMessage)) fault {
	return editingEach(method, func(_ *state, _ *line, result map[string]json.RawMessage) { edit(result) })
}

// editingEach is like editing, for changes that depend on the traffic.
func editingEach(method string, edit func(s *state, m *line, result map[string]json.RawMessage)) fault {
	return changing(resultOf(method), func(s *state, m *line) []string {
		return []string{m.edited("result", func(result map[string]json.RawMessage) { edit(s, m, result) })}
	})
}

// edited returns the message with other members in its params or result, if that is an object.
func (m *line) edited(part string, edit func(members map[string]json.RawMessage)) string {
	var e, members map[string]json.RawMessage
	if json.Unmarshal([]byte(m.text), &e) != nil || json.Unmarshal(e[part], &members) != nil {
		return m.text
	}
	edit(members)
	e[part] = encoded(members)
	return string(encoded(e))
}

func encoded(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// listing changes each list of sessions; n is its number. The agent gets no cursors but the made-up one.
func listing(edit func(n int, m *line, result map[string]json.RawMessage)) fault {
	f := editingEach("session/list", func(s *state, m *line, result map[string]json.RawMessage) { edit(s.nth("list"), m, result) })
	cursor := regexp.MustCompile(`,?"cursor":"mutant[^"]*"`)
	f.toAgent = func(_ *state, m *line) ([]string, []string) {
		return []string{cursor.ReplaceAllString(m.text, "")}, nil
	}
	return f
}

// listed changes one member of each listed session.
func listed(name, value string) fault {
	return listing(func(n int, m *line, result map[string]json.RawMessage) {
		var sessions []map[string]json.RawMessage
		if err := json.Unmarshal(result["sessions"], &sessions); err != nil {
			panic(err)
		}
		for _, session := range sessions {
			session[name] = json.RawMessage(fmt.Sprintf(value, n%60))
		}
		result["sessions"] = encoded(sessions)
	})
}

// lists are faults of session/list, in both versions, with the requirement that each breaks.
var lists = map[string]struct {
	rules string
	fault fault
}{
	"the first page again and again": {"LST-5", listing(func(_ int, _ *line, result map[string]json.RawMessage) {
		result["nextCursor"] = json.RawMessage(`"mutant"`)
	})},
	"the same under new cursors": {"LST-5", listing(func(n int, _ *line, result map[string]json.RawMessage) {
		result["nextCursor"] = json.RawMessage(fmt.Sprintf(`"mutant %d"`, n))
	})},
	"no end of sessions": {"LST-5", listing(func(n int, m *line, result map[string]json.RawMessage) {
		var p struct{ Cwd json.RawMessage }
		if json.Unmarshal(m.params, &p) == nil && p.Cwd != nil && !strings.Contains(string(p.Cwd), "never used") {
			result["sessions"] = json.RawMessage(fmt.Sprintf(`[{"sessionId":"mutant %d","cwd":%s}]`, n, p.Cwd))
			result["nextCursor"] = json.RawMessage(fmt.Sprintf(`"mutant %d"`, n))
		}
	})},
	"no end of empty pages": {"LST-5", listing(func(n int, _ *line, result map[string]json.RawMessage) {
		result["sessions"], result["nextCursor"] = json.RawMessage(`[]`), json.RawMessage(fmt.Sprintf(`"mutant %d"`, n))
	})},
	"titles that change": {"LST-14", listed("title", `"Session %d"`)},
	"times that change":  {"LST-14", listed("updatedAt", `"2026-01-01T00:00:%02dZ"`)},
	"all but the first are empty": {"LST-14", listing(func(n int, _ *line, result map[string]json.RawMessage) {
		if n > 1 {
			result["sessions"] = json.RawMessage(`[]`)
		}
	})},
	"every second is empty": {"LST-14", listing(func(n int, _ *line, result map[string]json.RawMessage) {
		if n%2 == 0 {
			result["sessions"] = json.RawMessage(`[]`)
		}
	})},
}

// cancelledNext ends the turn after a session/cancel as cancelled.
var cancelledNext = changing(all(answerTo("session/prompt"), has("end_turn"), afterA("session/cancel")),
	func(_ *state, m *line) []string { return []string{strings.Replace(m.text, "end_turn", "cancelled", 1)} })

const readAnywhere = `"path":"/etc/hosts"`

const fsRead = "fs/read_text_file"

var mutants = []mutant{
	{"start", "PRM-5", failing("session/prompt", always)},
	{"start", "INI-5", editing("initialize", func(result map[string]json.RawMessage) { delete(result, "agentInfo") })},
	{"start", "TRN-5", before("session/prompt", func(*state, *line) []string { return []string{"Loading the model..."} })},
	{"start", "PRM-13", lateChunk},
	{"start", "SCH-2", after("session/new", func(_ *state, m *line) []string { return []string{m.text} })},
	{"version-newer", "ADD-7", granting("initialize", `{"protocolVersion":65535,"capabilities":{},"info":{"name":"mutant","version":"1"}}`, always)},
	{"version-older", "INI-9 ADD-7", replacing(`"protocolVersion":1`, `"protocolVersion":0`)},
	{"version-2", "INI-9", refusing("initialize", "-32602", params(`"protocolVersion":2`))},
	{"version-of-wrong-type", "OVW-3", silent("initialize", func(_ *state, m *line) bool { return m.error })},
	{"before-initialize", "ERR-6", granting("session/new", `{"sessionId":"early"}`, func(s *state, _ *line) bool { return s.nth("new") == 1 })},
	{"initialize-twice", "OVW-3", silent("initialize", nthTime(2))},
	{"authentication", "ERR-4", granting("authenticate", `{}`, params("acp-probe-no-such-method"))},
	{"capabilities-left-out", "FS-2", asking(request(fsRead, readAnywhere))},
	{"capabilities-none", "FS-2", asking(request("fs/write_text_file", readAnywhere+`,"content":""`))},
	{"capabilities-all-off", "TRM-2", asking(request("terminal/create", `"command":"true"`))},
	{"capabilities-null", "FS-2", asking(request(fsRead, readAnywhere))},
	{"capabilities-wrong-types", "SCH-17", refusing("initialize", "-32602", always)},
	{"capabilities-read-only", "FS-2", asking(request("fs/write_text_file", readAnywhere+`,"content":""`))},
	{"capabilities-write-only", "FS-2", asking(request(fsRead, readAnywhere))},
	{"capabilities-terminal-only", "FS-2", asking(request(fsRead, readAnywhere))},
	{"capabilities-form-only", "ELI-5", asking(request("elicitation/create", `"mode":"url","message":"Open it","url":"https://example.com/","elicitationId":"e"`))},
	{"capabilities-url-only", "ELI-5", asking(request("elicitation/create", `"mode":"form","message":"Who are you?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}`))},
	{"capabilities-empty-elicitation", "ELI-5", asking(request("elicitation/create", `"mode":"form","message":"Who are you?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}`))},
	{"capabilities-unknown", "ELI-5", asking(request("elicitation/create", `"mode":"form","message":"Who are you?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}`))},
	{"ids", "SCH-2", replacing(`"id":9007199254740993`, `"id":9007199254740992`)},
	{"ids", "EXT-4", dropping(`nothing`).and(silent("_acp.probe/id", func(_ *state, m *line) bool { return m.id == "-1" }))},
	{"ids-of-strings", "SCH-2", replacing(`"id":"init-ä"`, `"id":"INIT"`)},
	{"unknown-methods", "OVW-4", answering(`{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found"}}`, has(`"_acp.probe/note"`))},
	{"unknown-methods", "EXT-5", recoding("_acp.probe/unknown", "-32601", "-32603")},
	{"unknown-methods", "ERR-3", recoding("rpc.discover", "-32601", "-32603")},
	{"not-advertised", "INI-14", replacing(`"close":{}`, `"close":null`)},
	{"garbage", "ERR-7", dead(func(m *line) bool { return m.text == "42" })},
	{"batch", "TRN-3", answering(`{"jsonrpc":"2.0","id":901,"error":{"code":-32601,"message":"Method not found"}}`, has(`"id":901`))},
	{"batch", "TRN-3", answering(`{"jsonrpc":"2.0","id":903,"result":{"sessionId":"batched"}}`, has(`"id":903`))},
	{"batch", "TRN-3", dead(func(m *line) bool { return m.text == "[1,2,3]" })},
	{"invalid-utf8", "ERR-7", dead(func(m *line) bool { return strings.HasPrefix(m.text, "\xff") })},
	{"deep-nesting", "ADD-1", dead(func(m *line) bool { return strings.Count(m.text, "[") > 1000 })},
	{"long-lines", "EXT-4", dead(func(m *line) bool { return len(m.text) > 4<<20 })},
	{"answers-to-nobody", "ADD-9", answering(`{"jsonrpc":"2.0","id":4711,"error":{"code":-32600,"message":"Nobody asked"}}`, has(`"id":4711,"result"`))},
	{"stderr-unread", "TRN-7", fault{logs: true}},
	{"end-at-once", "TRN-10", fault{deaf: true}},
	{"end-in-a-turn", "TRN-10", fault{deaf: true}},
	{"slow-reader", "PRM-12", failing("session/prompt", has("cancelled"))},
	{"exotic-client", "SCH-1", refusing("session/new", "-32602", params("traceparent"))},
	{"types-session-new", "ERR-4", recoding("session/new", "-32602", "-32000")},
	{"types-session-prompt", "ERR-4", recoding("session/prompt", "-32602", "-32603")},
	{"types-session-set-mode", "ERR-4", recoding("session/set_mode", "-32602", "-32603")},
	{"types-session-set-config-option", "ERR-4", recoding("session/set_config_option", "-32602", "-32603")},
	{"types-authenticate", "ERR-4", recoding("authenticate", "-32602", "-32603")},
	{"types-session-load", "ERR-4", recoding("session/load", "-32602", "-32603")},
	{"types-session-resume", "ERR-4", recoding("session/resume", "-32602", "-32603")},
	{"types-session-list", "ERR-4", recoding("session/list", "-32602", "-32603")},
	{"types-session-close", "ERR-4", recoding("session/close", "-32602", "-32603")},
	{"types-session-delete", "ERR-4", recoding("session/delete", "-32602", "-32603")},
	{"types-notifications", "OVW-4", answering(`{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"Invalid params"}}`, has(`{"sessionId":7}`))},
	{"sessions", "SES-2", fault{toClient: func(s *state, m *line) []string {
		if m.answer && m.method == "session/new" {
			return []string{`{"jsonrpc":"2.0","id":` + m.id + `,"result":{"sessionId":"the only one"}}`}
		}
		return dropping("session/update").toClient(s, m)
	}}},
	{"working-directory", "SES-21", replacing("/a folder, with ä and spaces/notes.txt", "/notes.txt")},
	{"bad-directories", "ERR-4", granting("session/new", `{"sessionId":"relative"}`, params("relative/path"))},
	{"additional-directories", "ADD-3", refusing("session/new", "-32602", params("additionalDirectories"))},
	{"unknown-session", "ERR-5", recoding("session/prompt", "-32002", "-32603")},
	{"load", "SES-6", dropping("user_message_chunk")},
	{"load", "SES-6", holding("user_message_chunk", "session/load")},
	{"load", "SES-6", holding("agent_message_chunk", "session/load")},
	{"load", "SES-7", after("session/load", func(_ *state, m *line) []string { return []string{chunk(sessionOf(m))} })},
	{"load-here", "OVW-3", silent("session/load", always)},
	{"resume", "SES-11", before("session/resume", func(_ *state, m *line) []string { return []string{chunk(sessionOf(m))} })},
	{"resume", "SES-21", unmoved},
	{"load", "SES-21", unmoved},
	{"resume-terse", "SES-11", refusing("session/resume", "-32602", func(_ *state, m *line) bool { return !strings.Contains(m.text, "mcpServers") })},
	{"list", "LST-11", granting("session/list", `{"sessions":[]}`, params("bogus"))},
	{"list", "LST-8", refusing("session/list", "-32602", params("never used"))},
	{"delete", "DEL-5", refusing("session/delete", "-32602", params("no-such-session"))},
	{"close", "SES-15", granting("session/prompt", `{"stopReason":"end_turn"}`, func(s *state, m *line) bool { return afterA("session/close")(s, m) })},
	{"close-in-a-turn", "SES-15", failing("session/prompt", has("cancelled"))},
	{"close-in-a-turn", "SES-15", replacing(`"stopReason":"cancelled"`, `"stopReason":"end_turn"`)},
	{"modes", "ERR-4", granting("session/set_mode", `{}`, params("no-such-mode"))},
	{"options", "ERR-4", recoding("session/set_config_option", "-32602", "-32603")},
	{"mcp-stdio", "SES-25", withoutMCP},
	{"mcp-http", "SES-26", withoutMCP},
	{"mcp-unknown", "OVW-3", dead(func(m *line) bool { return strings.Contains(m.text, "pigeon") }).only("session/new")},
	{"content", "INI-15", refusing("session/prompt", "-32602", func(_ *state, m *line) bool { return strings.Contains(m.text, `"prompt":[{"type":"resource_link"`) })},
	{"scripts", "INI-15", refusing("session/prompt", "-32602", params(`\ud83d`))},
	{"content-advertised", "ADD-3", refusing("session/prompt", "-32602", params("image/png"))},
	{"content-odd", "PRM-5", silent("session/prompt", params("hologram"))},
	{"tools", "TOL-1", dropping(`"sessionUpdate":"tool_call",`)},
	{"outside", "SES-24", asking(func(session string) string { return request(fsRead, readAnywhere)(session) })},
	{"missing-file", "PRM-5", silent("session/prompt", params("no-such-file.txt"))},
	{"client-errors", "ERR-1", silent("session/prompt", params("notes.txt"))},
	{"client-positive-errors", "ERR-1", silent("session/prompt", params("notes.txt"))},
	{"client-internal-errors", "ERR-1", silent("session/prompt", params("notes.txt"))},
	{"permission", "PRM-6", dropping(`"status":"in_progress"`)},
	{"permission-rejected", "PRM-5", silent("session/prompt", always)},
	{"permission-forever", "PRM-5", silent("session/prompt", always)},
	{"permission-unknown", "ADD-14", deletesAt(`acp-probe-no-such-option`)},
	{"permission-unknown", "PRM-5", silent("session/prompt", always)},
	{"permission-error", "PRM-5", silent("session/prompt", always)},
	{"permission-dismissed", "PRM-5", silent("session/prompt", always)},
	{"permission-odd", "PRM-5", silent("session/prompt", always)},
	{"permission-empty", "ADD-9", fault{toAgent: func(_ *state, m *line) ([]string, []string) {
		if !m.answer && m.method == "" && m.id != "" {
			return []string{m.text}, []string{`{"jsonrpc":"2.0","id":` + m.id + `,"error":{"code":-32600,"message":"Invalid request"}}`}
		}
		return []string{m.text}, nil
	}}},
	{"plan", "PLN-3", changedEntryAlone},
	{"other-turns", "PRM-13", lateChunk},
	{"elicitation", "ELI-21", replacing(`"elicitation/complete","params":{"elicitationId":"`, `"elicitation/complete","params":{"elicitationId":"other`)},
	{"elicitation-declined", "ELI-18", failing("session/prompt", params("form"))},
	{"elicitation-dismissed", "ELI-18", failing("session/prompt", params("form"))},
	{"elicitation-failed", "ELI-18", failing("session/prompt", params("form"))},
	{"elicitation-unknown", "SCH-9", failing("session/prompt", params("form"))},
	{"elicitation-wrong", "ELI-9", failing("session/prompt", params("form"))},
	{"prompts-at-once", "PRM-5", silent("session/prompt", nthTime(1))},
	{"sessions-at-once", "ADD-2", before("session/prompt", func(*state, *line) []string { return []string{chunk("a session of somebody else")} })},
	{"cancel-at-once", "PRM-12", failing("session/prompt", has("cancelled"))},
	{"cancel-in-the-stream", "PRM-12", failing("session/prompt", has("cancelled"))},
	{"cancel-in-the-stream", "PRM-11", silent("session/prompt", has("cancelled"))},
	{"cancel-in-the-stream", "PRM-11", replacing(`"stopReason":"cancelled"`, `"stopReason":"end_turn"`)},
	{"cancel-twice", "PRM-16", cancelledNext},
	{"cancel-after-load", "PRM-11", silent("session/prompt", afterA(`"session/load"`))},
	{"cancel-in-a-permission", "PRM-11", replacing(`"stopReason":"cancelled"`, `"stopReason":"end_turn"`)},
	{"cancel-in-a-terminal", "TRM-7 TRM-8", replacing(`"terminal/release"`, `"terminal/output"`)},
	{"terminal-that-lasts", "PRM-12", failing("session/prompt", has("cancelled"))},
	{"cancel-idle", "OVW-4", answering(`{"jsonrpc":"2.0","id":null,"error":{"code":-32002,"message":"No turn"}}`, has(`"session/cancel"`))},
	{"cancel-behind-the-end", "PRM-16", cancelledNext},
	{"cancel-and-prompt", "PRM-7", cancelledNext},
	{"cancel-one-of-two", "PRM-12", failing("session/prompt", has("cancelled"))},
	{"cancel-request", "CAN-1", changing(all(answerTo("session/prompt"), once("prompt")), func(_ *state, m *line) []string {
		return []string{`{"jsonrpc":"2.0","id":` + m.id + `,"error":{"code":-32603,"message":"Aborted"}}`}
	})},
	{"cancel-request-unknown", "OVW-4", answering(`{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found"}}`, has("$/cancel_request"))},
}

// dead stops reading at a line.
func dead(when func(*line) bool) fault {
	return fault{toAgent: func(s *state, m *line) ([]string, []string) {
		if s.count["dead"] > 0 || when(m) {
			s.count["dead"]++
			return nil, nil
		}
		return []string{m.text}, nil
	}}
}

// only makes a dead agent one that does not answer the first request of a method for which it died.
func (f fault) only(method string) fault {
	inner := f.toAgent
	f.toAgent = func(s *state, m *line) ([]string, []string) {
		before := s.count["dead"]
		lines, reply := inner(s, m)
		if before > 0 || m.method != method {
			return []string{m.text}, nil
		}
		return lines, reply
	}
	return f
}

// and also applies another fault to the messages for the client.
func (f fault) and(other fault) fault {
	f.toClient = other.toClient
	return f
}

// withoutMCP does not pass on the MCP servers of a session.
var withoutMCP = fault{toAgent: func(_ *state, m *line) ([]string, []string) {
	if m.method != "session/new" {
		return []string{m.text}, nil
	}
	return []string{m.edited("params", with("mcpServers", `[]`))}, nil
}}

// TestMutants plays each scenario against an agent with one fault, and requires exactly the matching findings. Below
// tier Full, it plays a sample of the mutants.
func TestMutants(t *testing.T) {
	t.Parallel()
	var launch probe.Launch
	every := tier.Pick(len(mutants), 23, 1, 1)
	if tier.Current() > tier.Short {
		launch = exampleAgent(t)
	}
	played := map[string]bool{}
	var right atomic.Int32
	t.Cleanup(func() {
		t.Logf("%d scenarios, %d with a mutant; one in %d of %d mutants played, %d caught by exactly the requirement that they break",
			len(probe.AgentScenarios()), len(played), every, len(mutants), right.Load())
	})
	for i, m := range mutants {
		if played[m.scenario] = true; i%every != every-1 || launch == nil {
			continue
		}
		t.Run(m.scenario+"/"+m.rules, func(t *testing.T) {
			t.Parallel()
			if caught(t, m.rules, func(o *probe.Options) (*probe.Report, error) {
				o.Only, o.MCP = []string{m.scenario}, mcp
				return probe.Agent(t.Context(), mutate(launch, m.fault), o)
			}) {
				right.Add(1)
			}
		})
	}
	for _, s := range probe.AgentScenarios() {
		if !played[s.Name] {
			t.Errorf("the scenario %s has no mutant", s.Name)
		}
	}
}

// caught runs a probe that must find exactly these requirements broken, and reports whether it does. On a slow machine,
// the time limit for an answer matters, so a wrong result counts only with twenty-five times the limit.
func caught(t *testing.T, rules string, run func(*probe.Options) (*probe.Report, error)) bool {
	t.Helper()
	for _, times := range []time.Duration{1, 5, 25} {
		r := must.Get(run(&probe.Options{
			Scratch: t.TempDir(), Answer: times * 2 * time.Second, Quiet: times * 200 * time.Millisecond,
			Rung: times * time.Second, ScenarioTime: times * 30 * time.Second,
		}))(t)
		var found []string
		for _, row := range r.Rows {
			if len(row.Failures) > 0 {
				found = append(found, row.ID)
			}
		}
		got := strings.Join(found, " ")
		if got == rules {
			return true
		}
		for _, row := range r.Rows {
			for _, f := range row.Failures {
				t.Logf("%s %s: %s %s", row.ID, f.Method, f.Message, f.Excerpt)
			}
		}
		for _, out := range r.Scenarios {
			t.Logf("%s: skipped %q\n%s", out.Name, out.Skipped, strings.Join(out.Transcript, "\n"))
		}
		if t.Logf("found %q, want %q", got, rules); times == 25 {
			t.Fail()
		}
	}
	return false
}
