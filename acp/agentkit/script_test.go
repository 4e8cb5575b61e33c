package agentkit_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
)

var update = flag.Bool("update", false, "replace what the conversations in testdata expect by what comes of them")

// TestConversations plays the conversations in testdata, in simulated time, between a client and an agent whose turns do
// what the texts of their prompts say: see actions. A section of a file begins with settings of the agent (see settings),
// one a line. The client's actions follow, and what comes of each before nothing more happens:
//
//	> ACTION     an action of the client, or of the world around the agent: see requests and player.act
//	>& ACTION    one that the next action follows at once
//	- NOTE       what the agent's author has noted
//	< MESSAGE    what the client has received, in the order of the wire
//
// An action is a word and its arguments, which may end with JSON for members that it has not set. A word may have a
// connection, a session, and a name for its answer: "2: prompt.f#x hello" prompts the session f with the second client,
// and its answer is "x". $f in an argument is the id of that session.
func TestConversations(t *testing.T) {
	files := must.Get(filepath.Glob("testdata/*.txtar"))(t)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive := must.Get(txtar.ParseFile(file))(t)
			for i := range archive.Files {
				section := &archive.Files[i]
				t.Run(section.Name, func(t *testing.T) {
					dir := t.TempDir()
					synctest.Test(t, func(t *testing.T) {
						got := perform(t, dir, string(section.Data))
						if *update {
							section.Data = []byte(got)
						}
						if diff := cmp.Diff(strings.Split(string(section.Data), "\n"), strings.Split(got, "\n")); diff != "" {
							t.Errorf("(-want +got)\n%s", diff)
						}
					})
				})
			}
			if *update {
				must.Do(t, os.WriteFile(file, txtar.Format(archive), 0o644))
			}
		})
	}
}

// player plays a section.
type player struct {
	t        *testing.T
	agent    author
	store    *disk // nil if sessions are not stored
	sessions *agentkit.Sessions[state]
	clients  map[string]*wire
	client   map[string]any // its answer to initialize

	mu    sync.Mutex
	notes []string
	ids   map[string]acp.SessionID
	gates map[string]chan struct{}
	kept  map[string]any // what turns have made: tool calls, texts, terminals
}

func perform(t *testing.T, dir, text string) string {
	t.Helper()
	p := &player{
		t: t, clients: map[string]*wire{}, client: map[string]any{}, ids: map[string]acp.SessionID{},
		gates: map[string]chan struct{}{}, kept: map[string]any{},
	}
	p.agent.player, p.agent.accept = p, map[string]string{"PRM-1": "sessions that are not open are asked for on purpose"}
	var whole strings.Builder
	begun := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		action, is := strings.CutPrefix(line, "> ")
		quick, isQuick := strings.CutPrefix(line, ">& ")
		if !is && !isQuick && begun {
			continue // what came of the action before
		}
		fmt.Fprintln(&whole, line)
		if !is && !isQuick {
			p.agent.set(line, dir)
			continue
		}
		if !begun {
			begun = true
			p.agent.finish()
		}
		if isQuick {
			p.act(quick)
			continue
		}
		p.act(action)
		time.Sleep(time.Millisecond) // of the bubble: so that sessions differ in age
		synctest.Wait()
		for _, said := range p.said() {
			fmt.Fprintln(&whole, said)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.clients)) {
		p.clients[name].end()
	}
	if p.sessions != nil {
		p.sessions.Close()
	}
	return whole.String()
}

// said returns what has happened since the last call.
func (p *player) said() (lines []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, note := range p.notes {
		lines = append(lines, "- "+p.named(note))
	}
	p.notes = nil
	sorted(lines, func(line string) bool { return strings.HasPrefix(line, "- close of ") })
	for _, name := range slices.Sorted(maps.Keys(p.clients)) {
		w := p.clients[name]
		sorted(w.heard, func(line string) bool {
			label, _, _ := strings.Cut(line, ":")
			return slices.ContainsFunc(w.sent, func(r request) bool { return r.word == "prompt" && r.label == label })
		})
		for _, line := range w.heard {
			lines = append(lines, "<"+name+" "+p.named(line))
		}
		w.heard = nil
	}
	return lines
}

// sorted sorts lines that follow one another in any order.
func sorted(lines []string, racing func(line string) bool) {
	for i := 0; i < len(lines); i++ {
		n := i
		for n < len(lines) && racing(lines[n]) {
			n++
		}
		slices.Sort(lines[i:max(i, n)])
		i = max(i, n)
	}
}

func (p *player) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}

// named returns a text on one line, with names for ids that differ from run to run.
func (p *player) named(text string) string {
	for name, id := range p.ids {
		text = strings.ReplaceAll(text, string(id), "$"+name)
	}
	return strings.NewReplacer("\n", `\n`, "\x00", `\0`).Replace(random.ReplaceAllString(text, "$1"))
}

var random = regexp.MustCompile(`\b(sess|term|call|msg|compaction)_[A-Za-z0-9]{26}`)

// id returns the id of the session with a name; a name that nobody has given is an id.
func (p *player) id(name string) acp.SessionID {
	p.mu.Lock()
	defer p.mu.Unlock()
	if id, ok := p.ids[name]; ok {
		return id
	}
	return acp.SessionID(name)
}

func (p *player) gate(name string) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gates[name] == nil {
		p.gates[name] = make(chan struct{})
	}
	return p.gates[name]
}

// requests are the client's requests: their methods, their parameters, and the member that their argument is.
var requests = map[string]struct{ method, params, member string }{
	"new":          {acp.MethodNewSession, `{"cwd":"/w","mcpServers":[]}`, "cwd"},
	"load":         {acp.MethodLoadSession, `{"sessionId":"$","cwd":"/w","mcpServers":[]}`, "cwd"},
	"resume":       {acp.MethodResumeSession, `{"sessionId":"$","cwd":"/w","mcpServers":[]}`, "cwd"},
	"fork":         {acp.MethodForkSession, `{"sessionId":"$s","cwd":"/fork","mcpServers":[]}`, "cwd"},
	"close":        {acp.MethodCloseSession, `{"sessionId":"$"}`, ""},
	"delete":       {acp.MethodDeleteSession, `{"sessionId":"$"}`, ""},
	"list":         {acp.MethodListSessions, `{}`, "cwd"},
	"mode":         {acp.MethodSetSessionMode, `{"sessionId":"$"}`, "modeId"},
	"option":       {acp.MethodSetSessionConfigOption, `{"sessionId":"$"}`, "configId"}, // its value is JSON
	"prompt":       {acp.MethodPrompt, `{"sessionId":"$"}`, "prompt"},
	"steer":        {"_session/steering", `{"sessionId":"$"}`, "prompt"},
	"login":        {acp.MethodAuthenticate, `{}`, "methodId"},
	"logout":       {acp.MethodLogout, `{}`, ""},
	"cancel":       {acp.MethodCancel, `{"sessionId":"$"}`, ""}, // a notification
	"cancelcall":   {"_tool_call/cancel", `{"sessionId":"$"}`, "toolCallId"},
	"cancelscreen": {"_terminal/cancel", `{"sessionId":"$"}`, "terminalId"},
}

var actionForm = regexp.MustCompile(`^(?:(\d): )?([a-z]+)(?:\.([\w/.]*))?(?:#(\w+))?(?: (.*))?$`)

// act does an action.
func (p *player) act(text string) {
	m := actionForm.FindStringSubmatch(text)
	if m == nil {
		p.t.Fatalf("the action %q cannot be read", text)
	}
	client, word, session, label, arg := m[1], m[2], m[3], m[4], m[5]
	if session == "" {
		session = "s"
	}
	if label == "" {
		if label = word; session != "s" {
			label += "." + session
		}
	}
	switch word {
	case "sleep", "disk":
		p.agent.late(text)
		return
	case "open": // lets turns go on that wait for it
		close(p.gate(arg))
		return
	case "stored": // what the store has of a session
		for u, err := range p.store.Store.Updates(p.t.Context(), p.id(session)) {
			must.Do(p.t, err)
			p.note("%s", line(u))
		}
		return
	case "append": // by another process: updates as JSON
		var updates []acp.SessionUpdate
		must.Do(p.t, json.Unmarshal([]byte(arg), &updates))
		p.ids[session] = acp.SessionID("of another process")
		record := p.agent.record(p.ids[session])
		must.Do(p.t, errors.Join(p.store.Create(p.t.Context(), record), p.store.Append(p.t.Context(), record.ID, updates...)))
		return
	case "author": // does something with the last session after Config.Open
		p.agent.late(arg)
		return
	case "shut":
		p.sessions.Close()
		return
	}
	w := p.clients[client]
	if w == nil {
		w = p.connect(client)
	}
	switch word {
	case "connect":
		p.mu.Lock()
		w.heard = append(w.heard, w.first)
		p.mu.Unlock()
	case "end":
		w.end()
	case "answer": // questions from now on, one after the other
		w.answers = strings.Fields(arg)
	case "back": // takes a request back
		w.send(acp.MethodCancelRequest, map[string]any{"requestId": w.number(arg)}, "", "")
	case "call": // any method
		method, params, _ := strings.Cut(arg, " ")
		w.send(method, json.RawMessage(p.filled(params, session)), word, label)
	default:
		r, ok := requests[word]
		if !ok {
			p.t.Fatalf("the action %q is unknown", text)
		}
		var params map[string]any
		must.Do(p.t, json.Unmarshal([]byte(p.filled(r.params, session)), &params))
		arg, more := split(word, p.filled(arg, session))
		switch word {
		case "prompt", "steer":
			params["prompt"] = []acp.ContentBlock{acp.TextBlock(arg)}
		case "option":
			arg, value, _ := strings.Cut(arg, " ")
			params["configId"], params["value"] = arg, value
			if value == "true" || value == "false" {
				params["type"], params["value"] = "boolean", value == "true"
			}
		default:
			if arg != "" {
				params[r.member] = arg
			}
		}
		if more != "" {
			must.Do(p.t, json.Unmarshal([]byte(more), &params))
		}
		if word == "cancel" {
			word = "" // is a notification
		}
		w.naming = session
		w.send(r.method, params, word, label)
	}
}

// split splits an argument from JSON at its end; a prompt may have JSON in its text.
func split(word, arg string) (plain, more string) {
	if i := strings.Index(" "+arg, " {\""); i == 0 || i > 0 && word != "prompt" {
		return strings.TrimSpace(arg[:max(0, i-1)]), arg[i:]
	}
	return arg, ""
}

var dollar = regexp.MustCompile(`\$\w*`)

// filled replaces the names of sessions by their ids.
func (p *player) filled(text, session string) string {
	return dollar.ReplaceAllStringFunc(text, func(name string) string {
		if name == "$" {
			return string(p.id(session))
		}
		return string(p.id(name[1:]))
	})
}

// wire is the client's side of a connection.
type wire struct {
	*player
	stream  rpc.Stream
	ended   chan error // has the end of the agent
	reading sync.WaitGroup
	first   string // the answer to initialize
	naming  string // the name for the session of the next answer

	writing sync.Mutex

	// These are guarded by player.mu.
	sent    []request // by id
	heard   []string
	answers []string
	asked   []json.RawMessage // the ids of questions that wait
}

type request struct{ word, label, session string }

func (p *player) connect(name string) *wire {
	near, far := acp.Pipe()
	w := &wire{player: p, ended: make(chan error, 1)}
	p.agent.start(far, w.ended)
	tap := &conformance.TapOptions{
		Schema: conformance.V1Unstable(), Accept: p.agent.accept,
		Ignore: func(f conformance.Finding) bool { return f.Side == conformance.Client },
	}
	w.stream = must.Get(conformance.Tap(p.t, conformance.Client, near, tap).Connect(p.t.Context()))(p.t)
	p.clients[name] = w
	w.reading.Go(w.read)
	w.send(acp.MethodInitialize, map[string]any{
		"protocolVersion": 1, "clientCapabilities": p.client, "clientInfo": map[string]any{"name": "client", "version": "1"},
	}, "initialize", "initialize")
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	w.first, w.heard = w.heard[0], nil
	return w
}

func (w *wire) end() {
	_ = w.stream.Close()
	w.reading.Wait()
	if err := <-w.ended; err != nil {
		w.t.Errorf("the agent's connection: %v", err)
	}
	w.ended <- nil
}

// send sends a request; without a word, a notification.
func (w *wire) send(method string, params any, word, label string) {
	w.writing.Lock()
	defer w.writing.Unlock()
	message := map[string]any{"jsonrpc": "2.0", "method": method, "params": params}
	if word != "" {
		w.mu.Lock()
		message["id"] = len(w.sent)
		w.sent = append(w.sent, request{word, label, w.naming})
		w.mu.Unlock()
	}
	must.Do(w.t, w.stream.Write(must.Get(json.Marshal(message))(w.t)))
}

func (w *wire) answer(id json.RawMessage, member string, value any) {
	w.writing.Lock()
	defer w.writing.Unlock()
	line := must.Get(json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, member: value}))(w.t)
	if err := w.stream.Write(line); err != nil {
		w.t.Error(err)
	}
}

func (w *wire) number(label string) int {
	return slices.IndexFunc(w.sent, func(r request) bool { return r.label == label })
}

func (w *wire) read() {
	for {
		line, err := w.stream.Read()
		if err != nil {
			return
		}
		var m message
		w.decode(line, &m)
		w.hear(m)
	}
}

func (w *wire) decode(data []byte, to any) {
	if err := json.Unmarshal(data, to); err != nil {
		w.t.Error(err)
	}
}

type message struct {
	ID             json.RawMessage
	Method         string
	Params, Result json.RawMessage
	Error          *struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
}

// hear notes a message of the agent, and answers it.
func (w *wire) hear(m message) {
	text := ""
	switch m.Method {
	case "":
		text = w.result(m)
	case acp.MethodSessionUpdate:
		var n acp.SessionNotification
		w.decode(m.Params, &n)
		if u, ok := n.Update.Variant.(*acp.SessionUpdateSubagentUpdate); ok {
			w.name("child", u.SessionID)
		}
		text = w.of(n.SessionID) + line(n.Update)
	case acp.MethodRequestPermission:
		var req acp.RequestPermissionRequest
		w.decode(m.Params, &req)
		options := make([]string, 0, len(req.Options))
		for _, o := range req.Options {
			options = append(options, fmt.Sprintf("%s (%s)", o.OptionID, o.Kind))
		}
		asked := line(acp.NewSessionUpdateToolCallUpdate(req.ToolCall))
		text = w.of(req.SessionID) + "asked about " + asked + ": " + strings.Join(options, ", ")
	case acp.MethodCreateElicitation:
		var asked struct {
			SessionID acp.SessionID
			Message   string
		}
		w.decode(m.Params, &asked)
		text = w.of(asked.SessionID) + "asked " + asked.Message
	default:
		text = m.Method
	}
	w.mu.Lock()
	w.heard = append(w.heard, text)
	w.mu.Unlock()
	switch {
	case m.Method == acp.MethodRequestPermission:
		w.mu.Lock()
		w.asked = append(w.asked, m.ID)
		answer := "dismissed"
		if len(w.answers) > 0 {
			answer, w.answers = w.answers[0], w.answers[min(1, len(w.answers)-1):]
		}
		w.mu.Unlock()
		if answer != "later" {
			w.reply(answer)
		}
	case m.Method == acp.MethodCancelRequest:
		w.mu.Lock()
		waits := len(w.asked) > 0
		w.mu.Unlock()
		if waits {
			w.reply("dismissed")
		}
	case m.Method == acp.MethodCreateElicitation:
		w.answer(m.ID, "result", map[string]any{"action": "decline"})
	case strings.HasPrefix(m.Method, "terminal/"):
		w.reading.Go(func() { w.terminal(m) })
	case m.Method != "" && m.ID != nil:
		w.answer(m.ID, "error", map[string]any{"code": -32601, "message": "Method not found"})
	}
}

// terminal answers a request about a terminal. Its command prints its name and ends at once: "sleep" only when it is
// killed, "late" after a second's start, and the terminal of "stuck" is never released.
func (w *wire) terminal(m message) {
	var params struct {
		Command    string
		TerminalID string
	}
	w.decode(m.Params, &params)
	command, id, _ := strings.Cut(params.TerminalID, "-")
	result := any(struct{}{})
	switch m.Method {
	case acp.MethodCreateTerminal:
		if params.Command == "late" {
			time.Sleep(time.Second) // of the bubble
		}
		w.mu.Lock()
		result = map[string]string{"terminalId": fmt.Sprintf("%s-%d", params.Command, len(w.heard))}
		w.mu.Unlock()
	case acp.MethodWaitForTerminalExit:
		if command == "sleep" || command == "late" {
			<-w.gate("killed " + id)
		}
		result = map[string]int{"exitCode": 0}
	case acp.MethodKillTerminal:
		close(w.gate("killed " + id))
	case acp.MethodTerminalOutput:
		result = map[string]any{"output": command + "\n", "truncated": false, "exitStatus": map[string]int{"exitCode": 0}}
	case acp.MethodReleaseTerminal:
		if command == "stuck" {
			return
		}
	}
	w.answer(m.ID, "result", result)
}

// reply answers the question that waits: with the id of an option, or with "dismissed".
func (w *wire) reply(choice string) {
	outcome := map[string]any{"outcome": "selected", "optionId": choice}
	if choice == "dismissed" {
		outcome = map[string]any{"outcome": "cancelled"}
	}
	w.mu.Lock()
	id := w.asked[0]
	w.asked = w.asked[1:]
	w.mu.Unlock()
	w.answer(id, "result", map[string]any{"outcome": outcome})
}

func (p *player) name(name string, id acp.SessionID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ids[name] = id
}

// of is what stands before messages about another session than s.
func (p *player) of(id acp.SessionID) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if id == p.ids["s"] {
		return ""
	}
	return "of " + string(id) + " " // which named replaces
}

// result is an answer of the agent.
func (w *wire) result(m message) string {
	var id int
	w.decode(m.ID, &id)
	w.mu.Lock()
	r := w.sent[id]
	w.mu.Unlock()
	if m.Error != nil {
		text := fmt.Sprintf("%s: error %d %s %s", r.label, m.Error.Code, m.Error.Message, m.Error.Data)
		return strings.TrimSuffix(text, " ")
	}
	var res struct {
		SessionID     acp.SessionID
		StopReason    string
		Modes         *acp.SessionModeState
		ConfigOptions []acp.SessionConfigOption
		Sessions      []acp.SessionInfo
		NextCursor    string
		Meta          acp.Meta `json:"_meta"`
	}
	w.decode(m.Result, &res)
	var parts []string
	switch r.word {
	case "new", "fork", "load", "resume", "option":
		if res.SessionID != "" {
			w.name(r.session, res.SessionID)
		}
		if res.Modes != nil {
			var mode strings.Builder
			mode.WriteString(fmt.Sprint("mode ", res.Modes.CurrentModeID, " of"))
			for _, m := range res.Modes.AvailableModes {
				mode.WriteString(fmt.Sprint(" ", m.ID))
			}
			parts = append(parts, mode.String())
		}
		if res.ConfigOptions != nil {
			parts = append(parts, line(acp.ConfigUpdate(res.ConfigOptions...)))
		}
	case "list":
		if len(res.Sessions) == 0 {
			parts = append(parts, "none")
		}
		for _, s := range res.Sessions {
			parts = append(parts, strings.TrimSpace(fmt.Sprint(s.SessionID, " ", s.Cwd, " ", s.AdditionalDirectories, " ", short(s.Title.Value()))))
		}
		if res.NextCursor != "" {
			parts = append(parts, "and more")
		}
	case "prompt":
		parts = append(parts, res.StopReason)
		for key, value := range res.Meta {
			parts = append(parts, fmt.Sprint(key, "=", string(value)))
		}
	default:
		parts = append(parts, string(m.Result))
	}
	if len(parts) == 0 {
		parts = []string{"ok"}
	}
	return r.label + ": " + strings.Join(parts, "; ")
}
