package translate_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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
	random  *rand.Rand  // nil: every message arrives before the next one is sent
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
func newChain(t testing.TB, version int, random *rand.Rand) *chain {
	c := &chain{t: t, version: version, random: random, states: []*translate.State{
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

// step delivers one message, and reports whether there was one.
func (c *chain) step() bool {
	type choice struct {
		at int
		to translate.Side
	}
	var choices []choice
	for at, w := range c.wires {
		for _, to := range []translate.Side{translate.ClientSide, translate.AgentSide} {
			if len(w.transit[to]) > 0 {
				choices = append(choices, choice{at, to})
			}
		}
	}
	if len(choices) == 0 {
		return false
	}
	one := choices[0]
	if c.random != nil {
		one = choices[c.random.IntN(len(choices))]
	}
	line := c.wires[one.at].transit[one.to][0]
	c.wires[one.at].transit[one.to] = c.wires[one.at].transit[one.to][1:]
	node := one.at - 1 // the state at the wire's client side
	if one.to == translate.AgentSide {
		node = one.at
	}
	if node < 0 || node == len(c.states) {
		c.got[one.to] = append(c.got[one.to], string(line))
		return true
	}
	from := translate.ClientSide
	if one.to == translate.ClientSide {
		from = translate.AgentSide
	}
	c.emit(node, c.states[node].Message(from, line))
	return true
}

// transit returns how many messages for a side have not arrived.
func (c *chain) transit(to translate.Side) (n int) {
	for _, w := range c.wires {
		n += len(w.transit[to])
	}
	return n
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

func (c *chain) settle() {
	for c.step() {
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
		// The agent has everything that the client had sent. A client makes a request when it has everything of the agent;
		// its answers and notifications cross the agent's messages.
		ready := func() bool {
			look()
			switch {
			case e.Method == "" && arrived[side][string(e.ID)] == nil:
				return false
			case side == translate.ClientSide && (e.Method == "" || e.ID == nil):
				return true
			}
			return c.transit(translate.AgentSide) == 0 && (side == translate.AgentSide || c.transit(translate.ClientSide) == 0)
		}
		for more := true; more && (c.random == nil || !ready() || c.random.IntN(3) == 0); {
			more = c.step()
		}
		look()
		if c.random != nil && c.random.IntN(4) == 0 {
			c.accept()
		}
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

// TestConversations translates the recordings to the other version and back, in order and with messages that cross. Both
// judges accept what comes out.
func TestConversations(t *testing.T) {
	times := 1
	if n, err := strconv.Atoi(os.Getenv("TIMES")); err == nil {
		times = n
	}
	for name, messages := range seeds(t) {
		if only := os.Getenv("ONLY"); !strings.Contains(name, only) {
			continue
		}
		for i := range times {
			var random *rand.Rand
			if i > 0 {
				random = rand.New(rand.NewPCG(uint64(i), 0))
			}
			c := newChain(t, version(t, messages), random)
			c.replay(messages)
			faults := c.faults()
			for _, f := range faults[:min(len(faults), 3)] {
				t.Errorf("%s, seed %d: %.400s", name, i, f)
			}
			if os.Getenv("ONLY") != "" && i == times-1 {
				for _, w := range c.wires {
					t.Logf("%s:\n%s", w.name, strings.Join(w.log, "\n"))
				}
			}
		}
	}
}
