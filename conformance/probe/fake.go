// The fake agent: what a client under test is answered, beside what its scenario does.

package probe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/internal/player"
)

// persona is what a fake agent says of itself, and how it answers. The zero value answers as a plain agent.
type persona struct {
	name         string // of one that several scenarios share
	version      string // of the protocol, as JSON; "" is 1
	capabilities string // as JSON; "" leaves the member out
	methods      string // the authMethods, as JSON
	more         string // more members of the answer to initialize, such as `,"x":1`
	modes        string // of each session, as JSON
	options      string // likewise
	locked       bool   // sessions need authentication
	// answer answers a request in place of the fake agent, if it returns an outcome: "result" or "error", and its JSON
	// text, or "none" for no answer at all.
	answer func(f *fakeAgent, m *player.Message) (outcome, text string)
}

// allAgentCapabilities are those of an agent that supports everything.
const allAgentCapabilities = `{"loadSession":true,"promptCapabilities":{"image":true,"audio":true,"embeddedContext":true},"mcpCapabilities":{"http":true,"sse":true},"sessionCapabilities":{"list":{},"delete":{},"resume":{},"close":{},"additionalDirectories":{}},"auth":{"logout":{}}}`

const (
	fakeModes   = `{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"},{"id":"code","name":"Code"}]}`
	fakeOptions = `[{"id":"mode","name":"Mode","category":"mode","type":"select","currentValue":"ask","options":[{"value":"ask","name":"Ask"},{"value":"code","name":"Code"}]},` +
		`{"id":"model","name":"Model","category":"model","type":"select","currentValue":"small","options":[{"value":"small","name":"Small"},{"value":"large","name":"Large"}]}]`
	fakeMethods = `[{"id":"probe-login","name":"Log in to the probe"}]`
)

// fakeSession is a session of the fake agent.
type fakeSession struct {
	id, cwd string
	roots   json.RawMessage // additionalDirectories
	mode    string
	options json.RawMessage
	deleted bool
}

// fakeAgent answers a client, for one connection. Prompts are the scenario's to answer.
type fakeAgent struct {
	play *play
	persona

	mu            sync.Mutex // may be locked while the connection's is, not the other way round
	authenticated bool
	sessions      []*fakeSession
	prompts       []*player.Message // that no scenario has taken yet
	free          bool              // prompts are answered at once
	prompted      chan struct{}     // closed and made anew when a prompt comes
}

// serve answers a request, in the goroutine that the connection gives it.
func (f *fakeAgent) serve(c *player.Conn, m *player.Message) {
	if m.Kind != conformance.Request {
		return
	}
	if f.persona.answer != nil {
		switch outcome, text := f.persona.answer(f, m); outcome {
		case "none":
			return
		case "result", "error":
			c.Answer(m, outcome, text)
			return
		}
	}
	if id := m.Text("sessionId"); m.Method == "session/load" && slices.Contains(f.sessionIDs(), id) {
		c.Notify("session/update", `{"sessionId":`+player.Quote(id)+`,"update":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"Hello"}}}`)
		c.Notify("session/update", `{"sessionId":`+player.Quote(id)+`,"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Hello again"}}}`)
	}
	if outcome, text := f.usual(m); outcome != "" {
		c.Answer(m, outcome, text)
	}
	c.Wake()
}

// take returns the first prompt that no scenario has taken yet, or nil.
func (f *fakeAgent) take() *player.Message {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.prompts) == 0 {
		return nil
	}
	m := f.prompts[0]
	f.prompts = f.prompts[1:]
	return m
}

// failure is the JSON text of an error.
func failure(code int, text string) (outcome, body string) {
	return "error", fmt.Sprintf(`{"code":%d,"message":%s}`, code, player.Quote(text))
}

// usual is the answer of a plain agent; "" is none as yet.
func (f *fakeAgent) usual(m *player.Message) (outcome, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch m.Method {
	case "initialize":
		return "result", f.initialize()
	case "authenticate":
		if id := m.Text("methodId"); id == "" || !strings.Contains(f.methods, player.Quote(id)) {
			return failure(-32602, "no such method")
		}
		f.authenticated = true
		return "result", "{}"
	case "logout":
		f.authenticated = false
		return "result", "{}"
	case "session/new":
		if f.locked && !f.authenticated {
			return failure(codeAuth, "authentication required")
		}
		s := &fakeSession{id: "probe-" + strconv.Itoa(len(f.sessions)+1), cwd: m.Text("cwd"),
			roots: player.Member(m.Params, "additionalDirectories"), mode: "ask"}
		if f.options != "" {
			s.options = json.RawMessage(f.options)
		}
		f.sessions = append(f.sessions, s)
		return "result", `{"sessionId":` + player.Quote(s.id) + f.state(s) + `}`
	case "session/list":
		return "result", f.list(m)
	}
	s := f.session(m.Text("sessionId"))
	if s == nil && strings.HasPrefix(m.Method, "session/") && m.Method != "session/delete" {
		return "error", `{"code":-32002,"message":"Resource not found","data":{"sessionId":` + player.Quote(m.Text("sessionId")) + `}}`
	}
	switch m.Method {
	case "session/load", "session/resume":
		return "result", `{` + strings.TrimPrefix(f.state(s), ",") + `}`
	case "session/close":
		return "result", "{}"
	case "session/delete":
		if s != nil {
			s.deleted = true
		}
		return "result", "{}"
	case "session/set_mode":
		s.mode = m.Text("modeId")
		return "result", "{}"
	case "session/set_config_option":
		return f.setOption(s, m)
	case "session/prompt":
		if f.free {
			return "result", endOfTurn
		}
		f.prompts = append(f.prompts, m)
		close(f.prompted)
		f.prompted = make(chan struct{})
		return "", ""
	}
	return failure(-32601, "Method not found")
}

// initialize is the answer to it.
func (f *fakeAgent) initialize() string {
	version := cmp.Or(f.version, "1")
	text := `{"protocolVersion":` + version + `,"agentInfo":{"name":"acp-fake-agent","title":"The probe's agent","version":"1"}`
	if f.capabilities != "" {
		text += `,"agentCapabilities":` + f.capabilities
	}
	if f.methods != "" {
		text += `,"authMethods":` + f.methods
	}
	return text + f.more + "}"
}

// state are the members of a session's answers that say how it is, each after a comma. The lock is held.
func (f *fakeAgent) state(s *fakeSession) string {
	text := ""
	if f.modes != "" {
		text += `,"modes":` + strings.Replace(f.modes, `"currentModeId":"ask"`, `"currentModeId":`+player.Quote(s.mode), 1)
	}
	if s.options != nil {
		text += `,"configOptions":` + string(s.options)
	}
	return text
}

// session finds a session. The lock is held.
func (f *fakeAgent) session(id string) *fakeSession {
	i := slices.IndexFunc(f.sessions, func(s *fakeSession) bool { return s.id == id && !s.deleted })
	if i < 0 {
		return nil
	}
	return f.sessions[i]
}

// fakeCursor is the cursor of the second page: nothing that a client can understand.
const fakeCursor = "\u00e9\u20ac\U0001F600 +/=%20\"\\ \u2028 next"

// list is the answer to session/list, in two pages. The lock is held.
func (f *fakeAgent) list(m *player.Message) string {
	var sessions []string
	add := func(s *fakeSession) {
		if filter := m.Text("cwd"); !s.deleted && (filter == "" || filter == s.cwd) {
			text := `{"sessionId":` + player.Quote(s.id) + `,"cwd":` + player.Quote(s.cwd)
			if s.roots != nil && string(s.roots) != "null" {
				text += `,"additionalDirectories":` + string(s.roots)
			}
			sessions = append(sessions, text+`,"title":null}`)
		}
	}
	second := m.Text("cursor") == fakeCursor
	for i, s := range f.sessions {
		if (i > 0) == second {
			add(s)
		}
	}
	text := `{"sessions":[` + strings.Join(sessions, ",") + `]`
	if !second {
		text += `,"nextCursor":` + player.Quote(fakeCursor)
	}
	return text + "}"
}

// setOption changes an option. The lock is held.
func (f *fakeAgent) setOption(s *fakeSession, m *player.Message) (outcome, text string) {
	var options []map[string]json.RawMessage
	if json.Unmarshal(s.options, &options) != nil {
		return failure(-32602, "the session has no options")
	}
	found := false
	for _, option := range options {
		if string(option["id"]) == string(player.Member(m.Params, "configId")) {
			option["currentValue"], found = player.Member(m.Params, "value"), true
		}
	}
	if !found {
		return failure(-32602, "no such option")
	}
	all, err := json.Marshal(options)
	if err != nil {
		return failure(-32602, "the value is not JSON")
	}
	s.options = all
	return "result", `{"configOptions":` + string(all) + `}`
}

// sessionIDs returns the ids of the sessions.
func (f *fakeAgent) sessionIDs() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ids []string
	for _, s := range f.sessions {
		ids = append(ids, s.id)
	}
	return ids
}

// full is an agent with everything that clients can use.
var full = persona{name: "full", capabilities: allAgentCapabilities, modes: fakeModes, options: fakeOptions,
	methods: fakeMethods}

// endOfTurn is the result of a prompt whose turn has ended by itself.
const endOfTurn = `{"stopReason":"end_turn"}`
