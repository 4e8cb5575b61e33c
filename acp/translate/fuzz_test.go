package translate

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/acpgo/sdk"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/sample"
	"github.com/acpgo/sdk/internal/test/tier"
)

// player plays the sides of a connection with random messages, and keeps accounts of what comes out.
type player struct {
	tb        testing.TB
	random    *rand.Rand
	state     *State
	sides     []Side           // a client of version 2 has a host
	makers    [4]*sample.Maker // by side
	methods   [4][]method      // that a side sends
	judges    [4]*conformance.Validator
	requests  [4]map[string]string // by sender: its requests without answers, by id
	delivered [4]map[string]string // by receiver: requests that it has not answered, by id, with their methods
	next      int
	log       []string
	lenient   bool // the messages are not all valid
}

var (
	v1, v2             = sync.OnceValue(conformance.V1Unstable), sync.OnceValue(conformance.V2Unstable)
	samples1, samples2 = samples(sdk.SchemaV1Unstable()), samples(sdk.SchemaV2Unstable())
)

func samples(text string) func() *sample.Schema {
	return sync.OnceValue(func() *sample.Schema {
		s, err := sample.Load(text)
		if err != nil {
			panic(err)
		}
		return s
	})
}

type method struct {
	name, definition, response string
	notification               bool
}

// newPlayer returns a player whose agent speaks the given version, and whose client the other one. The connection is
// initialized, and has sessions.
func newPlayer(tb testing.TB, agent int, seed uint64) *player {
	p := &player{tb: tb, random: rand.New(rand.NewPCG(seed, 1))}
	p.state = New(AgentSide, agent, &Options{Unique: "x", Host: &Host{ReadFiles: true, WriteFiles: true, Terminals: true}})
	version := [4]int{0, 3 - agent, agent, 1}
	if p.sides = []Side{ClientSide, AgentSide}; agent == 1 {
		p.sides = append(p.sides, HostSide)
	}
	for _, side := range p.sides {
		text, judge, schema := sdk.SchemaV1Unstable(), v1(), samples1
		if version[side] == 2 {
			text, judge, schema = sdk.SchemaV2Unstable(), v2(), samples2
		}
		p.makers[side] = sample.NewKnownMaker(schema(), seed)
		p.methods[side] = methodsOf(tb, text, side)
		p.judges[side] = conformance.NewValidator(judge)
		p.requests[side], p.delivered[side] = map[string]string{}, map[string]string{}
	}
	info := `"info":{"name":"n","version":"1"}`
	p.send(ClientSide, "initialize", map[int]string{
		1: `{"protocolVersion":2,` + info + `,"capabilities":{}}`,
		2: `{"protocolVersion":1,"clientCapabilities":{"plan":{},"subagents":{},"session":{"notices":{},"compaction":{},"configOptions":{"boolean":{}}}}}`,
	}[agent])
	result := `{"protocolVersion":2,` + info + `,"capabilities":{"session":{}}}`
	if agent == 1 {
		result = `{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"list":{},"close":{}},"auth":{"logout":{}}}` + []string{"", `,"_meta":{"steering":{"supported":true}}`}[seed%2] + `}`
	}
	p.answer(AgentSide, "1", result)
	for _, id := range []string{"s", "t"} {
		p.send(ClientSide, "session/new", `{"cwd":"/w","mcpServers":[]}`)
		p.answer(AgentSide, fmt.Sprint(p.next), `{"sessionId":"`+id+`"}`)
	}
	return p
}

// methodsOf returns the methods that a side sends.
func methodsOf(tb testing.TB, schema string, side Side) (all []method) {
	var s struct {
		Defs map[string]struct {
			Method string `json:"x-method"`
			Side   string `json:"x-side"`
		} `json:"$defs"`
	}
	must.Do(tb, json.Unmarshal([]byte(schema), &s))
	receiver := map[Side]string{ClientSide: "agent", AgentSide: "client", HostSide: "client"}[side]
	for name, d := range s.Defs {
		stem, request := strings.CutSuffix(name, "Request")
		if d.Method == "" || d.Method == "initialize" || strings.HasPrefix(d.Method, "proxy/") || strings.HasPrefix(d.Method, "$") || strings.HasSuffix(name, "Response") || d.Side != receiver && d.Side != "both" || side == HostSide && d.Method != "session/request_permission" && d.Method != "session/update" {
			continue
		}
		all = append(all, method{d.Method, name, stem + "Response", !request})
	}
	slices.SortFunc(all, func(a, b method) int { return strings.Compare(a.definition, b.definition) })
	return all
}

// make makes a value of a definition, about one of few sessions, tool calls and so on, so that messages meet.
func (p *player) make(side Side, definition string) string {
	v, ok := p.makers[side].Valid(definition)
	if !ok {
		return "{}"
	}
	var few func(v any)
	few = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, x := range v {
				if _, ok := x.(string); ok && name != "optionId" && name != "configId" && strings.HasSuffix(name, "Id") && name != "terminalId" || name == "terminalId" {
					v[name] = []string{"s", "t", "u"}[p.random.IntN(3)]
				}
				few(x)
			}
		case []any:
			for _, x := range v {
				few(x)
			}
		}
	}
	few(v)
	text, err := json.Marshal(v)
	if err != nil {
		p.tb.Fatal(err)
	}
	return string(text)
}

func (p *player) send(from Side, method, params string) {
	id := ""
	if !strings.HasPrefix(method, "!") {
		p.next++
		p.requests[from][fmt.Sprint(p.next)] = method
		id = fmt.Sprintf(`"id":%d,`, p.next)
	}
	p.put(from, fmt.Sprintf(`{"jsonrpc":"2.0",%s"method":%q,"params":%s}`, id, strings.TrimPrefix(method, "!"), params))
}

func (p *player) answer(from Side, id, result string) {
	delete(p.delivered[from], id)
	member := "result"
	if strings.HasPrefix(result, `{"code"`) {
		member = "error"
	}
	p.put(from, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%q:%s}`, id, member, result))
}

func (p *player) put(from Side, line string) {
	p.log = append(p.log, fmt.Sprintf("%d: %s", from, line))
	p.judges[from].Message(direction(from, ClientSide, line), []byte(line))
	p.got(p.state.Message(from, []byte(line)))
}

// direction returns the direction of a message of one side, or to the other one. The host gets what is for clients, and
// asks like an agent.
func direction(side, toAgent Side, line string) conformance.Direction {
	if side == HostSide && !strings.Contains(line, `"method":`) || side == toAgent {
		return conformance.ToAgent
	}
	return conformance.ToClient
}

// got checks what comes out: valid messages of the receiver's version, each request answered once.
func (p *player) got(messages []Message) {
	for _, m := range messages {
		p.log = append(p.log, fmt.Sprintf("   to %d: %s", m.To, m.Line))
		about := m.To == HostSide && strings.Contains(string(m.Line), `"method":"session/`) // a session
		for _, f := range p.judges[m.To].Message(direction(m.To, AgentSide, string(m.Line)), m.Line) {
			if !p.lenient && !passes(f) && !about {
				p.fail("%s %s %s", f.Definition, f.Pointer, f.Message)
			}
		}
		all, ok := parse(m.Line)
		if !json.Valid(m.Line) || !ok {
			if !p.lenient {
				p.fail("not an object")
			}
			continue
		}
		id := string(all.get("id"))
		switch {
		case all.has("method") && id != "":
			if _, twice := p.delivered[m.To][id]; twice && !p.lenient {
				p.fail("a second request %s", id)
			}
			p.delivered[m.To][id] = all.str("method")
		case id != "":
			if _, asked := p.requests[m.To][id]; !asked && !p.lenient {
				p.fail("an answer to nothing")
			}
			delete(p.requests[m.To], id)
		}
	}
}

// passes reports whether the table says that something passes although the receiver's schema is stricter.
func passes(f conformance.Finding) bool {
	return slices.ContainsFunc([]string{
		"unknown member", "want uri", "want date-time", "/priority must be", "/size must be", "/size got", "/requestId got null", "enum minimum 1",
		"oneOf minimum 1", "anyOf minimum 1", "/update/sessionUpdate unknown value", "McpServer /mcpServers/",
	}, func(text string) bool {
		return strings.Contains(f.Definition+" "+f.Pointer+" "+f.Message, text)
	})
}

func (p *player) fail(format string, args ...any) {
	p.tb.Fatalf("%s\n%.3000s", fmt.Sprintf(format, args...), strings.Join(p.log[max(0, len(p.log)-6):], "\n"))
}

// step sends a random message.
func (p *player) step() {
	side := p.sides[p.random.IntN(len(p.sides))]
	switch p.random.IntN(8) {
	case 0:
		p.got(p.state.Tick())
	case 1, 2, 3:
		p.reply(side)
	default:
		m := p.methods[side][p.random.IntN(len(p.methods[side]))]
		if p.random.IntN(2) == 0 {
			m = p.methods[side][slices.IndexFunc(p.methods[side], func(m method) bool {
				return m.name == map[Side]string{ClientSide: "session/prompt", AgentSide: "session/update", HostSide: "session/update"}[side]
			})]
		}
		if side == HostSide && m.notification {
			p.send(side, "!session/update", []string{
				`{"sessionId":"s","update":{"sessionUpdate":"terminal_update","terminalId":"t","exitStatus":{"exitCode":1}}}`,
				`{"sessionId":"t","update":{"sessionUpdate":"terminal_output_chunk","terminalId":"t","data":"YQ=="}}`,
			}[p.random.IntN(2)])
			return
		}
		name := m.name
		if m.notification {
			name = "!" + name
		} else if ids := keys(p.requests[side]); len(ids) > 0 && p.random.IntN(4) == 0 {
			p.put(side, `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":`+ids[p.random.IntN(len(ids))]+`}}`)
		}
		p.send(side, name, p.make(side, m.definition))
	}
}

// reply answers a request that a side has, and reports whether there was one.
func (p *player) reply(side Side) bool {
	ids := keys(p.delivered[side])
	if len(ids) == 0 {
		return false
	}
	id := ids[p.random.IntN(len(ids))]
	name := p.delivered[side][id]
	result := `{"code":-32603,"message":"no"}`
	asker := AgentSide
	if side == AgentSide {
		asker = ClientSide
	}
	if i := slices.IndexFunc(p.methods[asker], func(m method) bool { return m.name == name }); i >= 0 && p.random.IntN(4) > 0 {
		result = p.make(side, p.methods[asker][i].response)
	} else if name == "_session/steering" && p.random.IntN(2) == 0 {
		result = `{"outcome":"injected"}`
	}
	p.answer(side, id, result)
	return true
}

func keys(m map[string]string) (all []string) {
	for k := range m {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

// end answers everything, and requires that nothing is left without an answer.
func (p *player) end() {
	for range 10_000 {
		p.got(p.state.Tick())
		if !slices.ContainsFunc(p.sides, p.reply) {
			break
		}
	}
	// An agent of version 2 ends its work; then nobody waits.
	for _, id := range []string{"s", "t", "u"} {
		if p.state.mode == agent2 {
			for _, state := range []string{"running", "idle"} {
				p.send(AgentSide, "!session/update", `{"sessionId":"`+id+`","update":{"sessionUpdate":"state_update","state":"`+state+`"}}`)
			}
		}
	}
	for _, side := range p.sides {
		if len(p.requests[side]) > 0 && !p.lenient {
			p.fail("requests of side %d without answers: %v", side, p.requests[side])
		}
	}
	for _, sess := range p.state.sessions.values {
		if len(sess.hosted) > 0 && !p.lenient {
			p.fail("requests of the host are remembered: %v", sess.hosted)
		}
	}
	if p.state.pending < 0 || p.state.queued < 0 || p.state.settings < 0 || p.state.accounts.size < 0 || p.state.opening < 0 {
		p.fail("a negative size: %d %d %d %d %d", p.state.pending, p.state.queued, p.state.settings, p.state.accounts.size, p.state.opening)
	}
}

// FuzzInterleavings plays random conversations between both versions. Messages that are valid in the sender's version
// become messages that are valid in the receiver's.
func FuzzInterleavings(f *testing.F) {
	for seed := range uint64(12) {
		f.Add(seed, uint8(150))
	}
	f.Fuzz(func(t *testing.T, seed uint64, steps uint8) {
		for _, agent := range []int{1, 2} {
			p := newPlayer(t, agent, seed)
			for range steps {
				p.step()
			}
			p.end()
		}
	})
}

// FuzzHostile changes bytes of messages, and sends lines that are no messages. Nothing panics, and what is remembered
// stays bounded.
func FuzzHostile(f *testing.F) {
	f.Add(uint64(1), []byte(`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text"}]}}`))
	f.Add(uint64(2), []byte(`{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","content":[{"type":"diff","patch":{"format":"git_patch","text":"@@ -1 +1 @@\n"}}]}}}`))
	f.Add(uint64(3), []byte(`[{}]`))
	f.Add(uint64(4), []byte(`{"method":"session/update","params":{"sessionId":"s","update":`+strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+`}}`))
	f.Fuzz(func(t *testing.T, seed uint64, line []byte) {
		for _, agent := range []int{1, 2} {
			p := newPlayer(t, agent, seed)
			p.lenient = true
			for range 20 {
				p.step()
				spoilt := slices.Clone(line)
				if last := p.log[len(p.log)-1]; len(line) == 0 || p.random.IntN(2) == 0 {
					spoilt = []byte(last[strings.Index(last, "{"):])
				}
				if len(spoilt) > 0 {
					spoilt[p.random.IntN(len(spoilt))] = byte(p.random.IntN(256))
				}
				p.state.Message(p.sides[p.random.IntN(len(p.sides))], spoilt)
			}
		}
	})
}

// heap returns how many bytes are in use.
func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestBounded lets a peer send as much as it can of everything that is remembered.
func TestBounded(t *testing.T) {
	tier.Need(t, tier.Full)
	newPlayer(t, 1, 1) // which reads the schemas
	for _, agent := range []int{1, 2} {
		before := heap()
		p := newPlayer(t, agent, 1)
		p.lenient = true
		big, long := strings.Repeat("x", 40<<10), strings.Repeat("i", 40<<10)
		for i := range 500 {
			id := fmt.Sprintf("%s%d", long[:[]int{0, 900, 40 << 10}[i%3]], i)
			p.log = nil
			for _, side := range []Side{ClientSide, AgentSide} {
				for name, params := range map[string]string{
					"session/prompt":   `{"sessionId":"` + id + `","idempotencyKey":"` + id[:min(len(id), 250)] + `","prompt":[{"type":"text","text":"` + big[:i] + `"}]}`,
					"session/load":     `{"sessionId":"` + id + `","cwd":"/` + big + `"}`,
					"session/resume":   `{"sessionId":"` + id + `","cwd":"/` + big + `","replayFrom":{"type":"start"}}`,
					"!session/update":  `{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"` + id + `","title":"` + big + `","content":[{"type":"terminal","terminalId":"` + id + `"}]}}`,
					"!session/update ": `{"sessionId":"s","update":{"sessionUpdate":"terminal_output_chunk","terminalId":"` + id + `","data":"` + strings.Repeat("AAAA", i) + `"}}`,
					"!session/update!": `{"sessionId":"` + id + `","update":{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"` + id + `","entries":[{"content":"` + big + `"}]}}}`,
					"!session/update?": `{"sessionId":"` + id + `","update":{"sessionUpdate":"config_option_update","configOptions":[{"id":"` + id + `","configId":"` + id + `","type":"select","category":"mode","currentValue":"` + id + `","options":[{"value":"` + big + `"}]}]}}`,
					"!session/update_": `{"sessionId":"s","update":{"sessionUpdate":"user_message_chunk","messageId":"` + id + `","content":{"type":"text","text":"` + big + `"}}}`,
				} {
					if side == ClientSide && name == "session/prompt" || side == AgentSide && strings.HasPrefix(name, "!") || side == ClientSide && i%8 == 0 && name[0] != '!' {
						p.state.Message(side, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"%s%d","method":%q,"params":%s}`, name, i, strings.Trim(name, "! ?_"), params))
					}
				}
			}
		}
		for i := range 20_000 { // most of these are too many
			p.state.Message(AgentSide, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"h%d","method":"terminal/create","params":{"sessionId":"s","command":"%s"}}`, i, big[:100]))
			p.state.Message(HostSide, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"%d","title":"%s"},"options":[{"optionId":"y","kind":"allow_once"}]}}`, i, i, big[:100]))
		}
		p.log = nil
		size := heap() - before
		runtime.KeepAlive(p)
		t.Logf("agent of version %d: %d MB after 500 rounds", agent, size>>20)
		if size > 40<<20 {
			t.Errorf("agent of version %d: %d MB are remembered", agent, size>>20)
		}
	}
}

// TestOutputGrows requires that output in many pieces is not sent anew with each of them, and that the client has all of it
// at the next message that is not output, or at a tick.
func TestOutputGrows(t *testing.T) {
	for _, piece := range []string{
		`{"sessionUpdate":"terminal_output_chunk","terminalId":"x","data":"` + strings.Repeat("YWFh", 64) + `"}`,
		`{"sessionUpdate":"tool_call_content_chunk","toolCallId":"t","content":{"type":"content","content":{"type":"text","text":"` + strings.Repeat("a", 192) + `"}}}`,
	} {
		p := newPlayer(t, 2, 1)
		update := func(update string) { p.send(AgentSide, "!session/update", `{"sessionId":"s","update":`+update+`}`) }
		update(`{"sessionUpdate":"terminal_update","terminalId":"x","output":{"data":""}}`)
		update(`{"sessionUpdate":"tool_call_update","toolCallId":"t","title":"T","content":[{"type":"terminal","terminalId":"x"}]}`)
		const want = 150_000 // of 192,000: content in pieces has a name for each
		last := func() int { return strings.Count(p.log[len(p.log)-1], "a") }
		p.log = nil
		for range 1000 {
			update(piece)
		}
		sent := 0
		for _, line := range p.log {
			if strings.HasPrefix(line, "   to 1") {
				sent += len(line)
			}
		}
		if sent > 10<<20 {
			t.Errorf("%d MB for 192 kB of output", sent>>20)
		}
		if p.got(p.state.Tick()); last() < want {
			t.Errorf("at the tick: %d bytes", last())
		}
		update(piece)
		if p.state.Waiting() {
			update(`{"sessionUpdate":"state_update","state":"running"}`) // which a client of version 1 does not get
		}
		if last() < want {
			t.Errorf("before the next message: %d bytes", last())
		}
		if p.state.Waiting() {
			t.Error("there is more")
		}
	}
}
