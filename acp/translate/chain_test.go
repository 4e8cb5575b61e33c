package translate_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/internal/test/must"
)

// chain is a client, translations and an agent. Both ends speak one version, and the wire between two translations the
// other one.
type chain struct {
	t       testing.TB
	version int                // at the ends
	states  []*translate.State // from the client to the agent
	wires   []*wire
	got     [3][]string // what has arrived at each end, by side
	sent    [3][]string // what each end has sent
}

// wire is a connection between two of them, with the messages that have not arrived.
type wire struct {
	name     string
	judge    *conformance.Judge
	transit  [3][][]byte // by receiver
	findings []string
	log      []string
}

// newChain returns a chain whose ends speak version.
func newChain(t testing.TB, version int) *chain {
	c := &chain{t: t, version: version, states: []*translate.State{
		translate.New(translate.ClientSide, version, &translate.Options{Unique: "y", Only: 3 - version}),
		translate.New(translate.AgentSide, version, &translate.Options{Unique: "x"}),
	}}
	for _, name := range []string{"client", "between", "agent"} {
		c.wires = append(c.wires, &wire{name: name, judge: conformance.NewJudge(nil, nil)})
	}
	return c
}

func (c *chain) put(at int, to translate.Side, line []byte) {
	w := c.wires[at]
	direction, arrow := conformance.ToAgent, "-> "
	if to == translate.ClientSide {
		direction, arrow = conformance.ToClient, "<- "
	}
	w.log = append(w.log, arrow+string(line))
	w.found(w.judge.Message(conformance.Message{Direction: direction, Line: line}))
	w.transit[to] = append(w.transit[to], slices.Clone(line))
}

func (w *wire) found(findings []conformance.Finding) {
	for _, f := range findings {
		w.findings = append(w.findings, f.Rule+" "+f.Side.String()+" "+f.Definition+" "+f.Pointer+": "+f.Message+"\n      "+w.log[len(w.log)-1])
	}
}

// send sends a message from an end.
func (c *chain) send(from translate.Side, line string) {
	c.sent[from] = append(c.sent[from], line)
	if from == translate.ClientSide {
		c.put(0, translate.AgentSide, []byte(line))
	} else {
		c.put(len(c.wires)-1, translate.ClientSide, []byte(line))
	}
}

// settle delivers messages until none is on its way.
func (c *chain) settle() {
	for c.step() {
	}
}

// step delivers one message, and reports whether there was one.
func (c *chain) step() bool {
	for at, w := range c.wires {
		for _, to := range []translate.Side{translate.ClientSide, translate.AgentSide} {
			if len(w.transit[to]) > 0 {
				line := w.transit[to][0]
				w.transit[to] = w.transit[to][1:]
				c.deliver(at, to, line)
				return true
			}
		}
	}
	return false
}

// deliver gives a message on a wire to the state or the end that it is for.
func (c *chain) deliver(at int, to translate.Side, line []byte) {
	node := at - 1 // the state at the wire's client side
	if to == translate.AgentSide {
		node = at
	}
	if node < 0 || node == len(c.states) {
		c.got[to] = append(c.got[to], string(line))
		return
	}
	c.emit(node, c.states[node].Message(translate.ClientSide+translate.AgentSide-to, line))
}

func (c *chain) emit(node int, messages []translate.Message) {
	for _, m := range messages {
		if m.To == translate.ClientSide {
			c.put(node, m.To, m.Line)
		} else {
			c.put(node+1, m.To, m.Line)
		}
	}
}

// accept lets the time pass for which answers to prompts are held.
func (c *chain) accept() {
	for i, s := range c.states {
		if s.Waiting() {
			c.emit(i, s.Tick())
			c.emit(i, s.Tick())
		}
	}
}

// envelope is the part of a message that a replay needs.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
	Params struct {
		SessionID string `json:"sessionId"`
	} `json:"params"`
}

func opened(t testing.TB, line string) (e envelope) {
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		t.Fatal(err, line)
	}
	return e
}

var asked = regexp.MustCompile(`"protocolVersion": *\d+`)

// replay sends a recording's messages from both ends, with the ids under which the requests arrived.
func (c *chain) replay(messages []conformance.Message) {
	arrived := [3]map[string]json.RawMessage{{}, {}, {}} // at each side: recorded ids to actual ones
	byMethod := [3]map[string][]string{{}, {}, {}}       // recorded ids of requests that have not arrived
	seen := [3]int{}
	look := func() {
		for _, side := range []translate.Side{translate.ClientSide, translate.AgentSide} {
			for ; seen[side] < len(c.got[side]); seen[side]++ {
				e := opened(c.t, c.got[side][seen[side]])
				if ids := byMethod[side][e.Method]; e.Method != "" && e.ID != nil && len(ids) > 0 {
					arrived[side][ids[0]] = e.ID
					byMethod[side][e.Method] = ids[1:]
				}
			}
		}
	}
	for _, m := range messages {
		side := translate.ClientSide
		if m.Direction.Sender() == conformance.Agent {
			side = translate.AgentSide
		}
		e := opened(c.t, string(m.Line))
		other := translate.ClientSide + translate.AgentSide - side
		c.settle()
		look()
		line := string(m.Line)
		if e.Method == "initialize" { // some asked for a newer version, which the agent did not have
			line = asked.ReplaceAllString(line, fmt.Sprintf(`"protocolVersion":%d`, c.version))
		}
		switch {
		case e.Method != "" && e.ID != nil:
			byMethod[other][e.Method] = append(byMethod[other][e.Method], string(e.ID))
		case e.Method == "":
			id := arrived[side][string(e.ID)]
			if id == nil {
				continue // the request never arrived, or it was answered on the way
			}
			var all map[string]json.RawMessage
			if err := json.Unmarshal(m.Line, &all); err != nil {
				c.t.Fatal(err)
			}
			all["id"] = id
			text, err := json.Marshal(all)
			if err != nil {
				c.t.Fatal(err)
			}
			line = string(text)
		}
		c.send(side, line)
	}
	c.settle()
	c.accept()
	c.settle()
	if mode := c.states[1].Version(); mode != 3-c.version {
		c.t.Errorf("version %d between translations", mode)
	}
	for _, w := range c.wires {
		w.judge.Closed(conformance.Client)
		w.found(w.judge.End())
	}
}

// seeds returns the recorded conversations by name.
func seeds(t testing.TB) map[string][]conformance.Message {
	files, err := filepath.Glob("../../conformance/testdata/clean/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatal("no recordings", err)
	}
	if shared := os.Getenv("ACP_SHARED"); shared != "" {
		more, _ := filepath.Glob(filepath.Join(shared, "traces/*/*.jsonl"))
		files = append(files, more...)
	}
	all := map[string][]conformance.Message{}
	for _, file := range files {
		f := must.Get(os.Open(file))(t)
		read, err := recording.ReadAll(f)
		if err != nil {
			t.Fatal(file, err)
		}
		f.Close()
		messages := read.Messages()
		for i, m := range messages {
			// Version 2 has no such servers.
			messages[i].Line = bytes.ReplaceAll(m.Line, []byte(`"type":"sse"`), []byte(`"type":"http"`))
		}
		all[strings.TrimSuffix(filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file), ".jsonl")] = messages
	}
	return all
}

// version returns the version that a recording's agent chose.
func version(t testing.TB, messages []conformance.Message) int {
	for _, m := range messages {
		var answer struct{ Result struct{ ProtocolVersion int } }
		if m.Direction == conformance.ToClient && json.Unmarshal(m.Line, &answer) == nil && answer.Result.ProtocolVersion > 0 {
			return answer.Result.ProtocolVersion
		}
	}
	t.Fatal("no version")
	return 0
}

// ownFaults are the rules that replays break by themselves: a recorded agent uses the client's files and terminals, which
// are not offered to it here, the agent of version 2 does not replay a turn that changed only options, and the schema
// lacks replay_complete.
var ownFaults = []string{"FS-2", "TRM-2", "TOL-8", "SES-6", "SES-27", "SCH-11"}

// faults returns the findings that translation is to blame for: not those of rules that the recorded sides break
// themselves.
func (c *chain) faults() (all []string) {
	known := slices.Clone(ownFaults)
	for _, at := range []int{0, len(c.wires) - 1} {
		for _, f := range c.wires[at].findings {
			rule, rest, _ := strings.Cut(f, " ")
			if side, _, _ := strings.Cut(rest, " "); side == "client" && at == 0 || side == "agent" && at > 0 {
				known = append(known, rule)
			}
		}
	}
	for _, w := range c.wires {
		for _, f := range w.findings {
			if rule, _, _ := strings.Cut(f, " "); !slices.Contains(known, rule) {
				all = append(all, w.name+": "+f)
			}
		}
	}
	return all
}

// plain returns a message without its id, in one form, and what kind of message it is.
func plain(t testing.TB, line string) (text, kind string) {
	var m map[string]any
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		t.Fatal(err, line)
	}
	delete(m, "id")
	if params, ok := m["params"].(map[string]any); ok {
		if update, ok := params["update"].(map[string]any); ok {
			delete(update, "messageId")
		}
	}
	kind, _ = m["method"].(string)
	if params, ok := m["params"].(map[string]any); ok {
		if update, ok := params["update"].(map[string]any); ok {
			kind, _ = update["sessionUpdate"].(string)
		}
	} else if kind == "" {
		kind = "answer"
	}
	b := must.Get(json.Marshal(m))(t)
	return string(b), kind
}

// compare returns how many of the messages that the ends of a chain have sent arrived as they were, and the kinds of the
// others.
func (c *chain) compare() (same int, others map[string]int) {
	others = map[string]int{}
	for side, sent := range c.sent {
		arrived := map[string]int{}
		for _, line := range c.got[(3-side)%3] {
			text, _ := plain(c.t, line)
			arrived[text]++
		}
		for _, line := range sent {
			if text, kind := plain(c.t, line); arrived[text] > 0 {
				arrived[text]--
				same++
			} else {
				others[kind]++
			}
		}
	}
	return same, others
}

// explained are the kinds of messages that do not return as they were, with the reason.
var explained = map[int]map[string]string{
	1: {
		"initialize": "has what version 2 requires", "answer": "to initialize has other capabilities, to session/new modes as an option",
		"fs/": "refused", "terminal/": "refused", "plan": "is a plan_update for a client that knows it",
		"available_commands_update": "without names with white space, and without null",
		"session/set_mode":          "sets the option that stands for it", "session/resume": "mcpServers is required",
		"session/request_permission": "null is left out, and the title is the question", "config_option_update": "booleans only for clients that know them",
		"tool_call": "null is left out, and a terminal is text", "tool_call_update": "null is left out, and the first one is a tool_call",
	},
	2: {
		"initialize": "has no version 1 for some", "answer": "to session/prompt has another messageId, to initialize other capabilities", "auth/logout": "is logout, if the agent has that",
		"user_message": "is chunks", "agent_message": "is chunks", "agent_thought": "is chunks", "state_update": "is the answer to the prompt",
		"plan_update": "has the planId plan", "session/new": "mcpServers is required", "session/resume": "mcpServers is required",
		"session/request_permission": "has a tool call with the question as its title", "terminal_": "is text of a tool call",
		"tool_call_content_chunk": "is a tool_call_update", "tool_call_update": "has a title, and what is null is left out",
	},
}

// TestConversations translates the recordings to the other version and back. Both judges accept what comes out, and what
// does not return as it was is of a kind that the table says something about.
func TestConversations(t *testing.T) {
	same, others := [3]int{}, [3]map[string]int{1: {}, 2: {}}
	for name, messages := range seeds(t) {
		c := newChain(t, version(t, messages))
		c.replay(messages)
		faults := c.faults()
		for _, f := range faults[:min(len(faults), 3)] {
			t.Errorf("%s: %.400s", name, f)
		}
		n, kinds := c.compare()
		same[c.version] += n
		for kind, n := range kinds {
			others[c.version][kind] += n
		}
	}
	for v := 1; v <= 2; v++ {
		t.Logf("version %d: %d messages return as they were, and not %v", v, same[v], others[v])
		for kind := range others[v] {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(explained[v])), func(name string) bool {
				return kind == name || strings.HasSuffix(name, "/") && strings.HasPrefix(kind, name) || strings.HasSuffix(name, "_") && strings.HasPrefix(kind, name)
			}) {
				t.Errorf("version %d: %s changes, and nothing explains it", v, kind)
			}
		}
		if same[v] < 200 {
			t.Errorf("version %d: only %d messages return as they were", v, same[v])
		}
	}
}
