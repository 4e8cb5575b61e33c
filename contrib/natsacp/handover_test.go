package natsacp_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/contrib/natsacp"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// The tests of this file walk at random through the states of a session's handover, and compare with a model who owns
// the session, who may write, and what a client that attaches gets. TestNodeModel has nodes, and plays the gateways;
// TestGatewayModel has a gateway, and plays the nodes. So they also fix what is on the wire.

// packet is a frame as it is on the wire.
type packet struct {
	kind          byte
	gen, seq, arg uint64
	data          string
}

func (p packet) encode() []byte {
	b := []byte{p.kind}
	for _, n := range []uint64{p.gen, p.seq, p.arg} {
		b = binary.AppendUvarint(b, n)
	}
	return append(b, p.data...)
}

func readPacket(tb testing.TB, b []byte) (p packet) {
	tb.Helper()
	r := bytes.NewReader(b)
	p.kind = must.Get(r.ReadByte())(tb)
	for _, n := range []*uint64{&p.gen, &p.seq, &p.arg} {
		*n = must.Get(binary.ReadUvarint(r))(tb)
	}
	p.data = string(b[len(b)-r.Len():])
	return p
}

// brief describes a message: its method or "answer" or "error", its id, and what tells it from others.
func brief(tb testing.TB, line string) string {
	tb.Helper()
	var m struct {
		ID     json.RawMessage
		Method string
		Error  *struct{ Message string }
		Params struct{ Text string }
	}
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		tb.Fatalf("%q is not a message: %v", line, err)
	}
	words := []string{cmp.Or(m.Method, "answer"), string(m.ID), m.Params.Text}
	if m.Error != nil {
		words = []string{"error", string(m.ID), m.Error.Message}
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}

// wantBrief checks the description of a message, or its beginning.
func wantBrief(tb testing.TB, who, line, want string) {
	tb.Helper()
	if got := brief(tb, line); !strings.HasPrefix(got, want) {
		tb.Fatalf("%s has got %q, want %q", who, got, want)
	}
}

func note(method, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":{"sessionId":"s","text":%q}}`, method, text)
}

func ask(id, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params)
}

func reply(id, result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

const (
	canResume = `{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"resume":{}}}}`
	promptOfS = `{"sessionId":"s","prompt":[]}`
	resumeOfS = `{"sessionId":"s","cwd":"/w","mcpServers":[]}`
)

// next receives from a channel.
func next[T any](tb testing.TB, from <-chan T, what string) (v T) {
	tb.Helper()
	select {
	case v = <-from:
	case <-time.After(patience):
		tb.Fatalf("it never came: %s", what)
	}
	return v
}

func want[T comparable](tb testing.TB, what string, got, want T) {
	tb.Helper()
	if got != want {
		tb.Fatalf("%s is %v, want %v", what, got, want)
	}
}

// puppet is an agent that does what the test makes it do, and ends when it may.
type puppet struct {
	stream    rpc.Stream
	may, gone chan struct{}
}

func (w *walk) agent() natsacp.Agent {
	agent := natsacp.InProcess(func(ctx context.Context, t rpc.Transport) error {
		stream, err := t.Connect(ctx)
		if err != nil {
			return err
		}
		p := &puppet{stream, make(chan struct{}), make(chan struct{})}
		defer close(p.gone)
		defer stream.Close()
		w.started <- p
		select {
		case <-p.may:
		case <-w.Context().Done():
		}
		return nil
	})
	return func(principal string) rpc.Transport {
		return wrapped{agent(principal), func(stream rpc.Stream) rpc.Wrapper {
			return rpc.Wrapper{CloseWrite: func() error { // takes as long as leaves wants
				let := make(chan struct{})
				w.closing <- let
				select {
				case <-let:
				case <-w.Context().Done():
				}
				return stream.(rpc.HalfCloser).CloseWrite()
			}}
		}}
	}
}

// walk is a walk through the states of one session, and the model of it.
type walk struct {
	*rig
	*rand.Rand
	started chan *puppet
	closing chan chan struct{} // an agent's input is being closed, which ends with the channel
	count   int
	nodes   []string // that take sessions

	owner *place // nil if no agent has the session
	last  *place
	epoch uint64
	turn  natsacp.Turn
}

// place is an agent on a node, and the link to it.
type place struct {
	*walk
	node, link string
	agent      *puppet
	gen, seq   uint64 // of the client that is attached
	attached   bool
	draining   bool
	log        []string // what it must have
	running    string   // the agent's id of the prompt that runs
	prompt     string   // the client's id of it
	promptGen  uint64
	asked      []string // what the agent has asked, and withdrawn
	answered   []byte
}

func newWalk(t *testing.T, seed uint64) *walk {
	w := &walk{rig: newRig(t), Rand: rand.New(rand.NewPCG(seed, 1)), started: make(chan *puppet, 10), closing: make(chan chan struct{}, 100)}
	w.opts.Lease = time.Hour
	w.own()
	return w
}

func (w *walk) name(prefix string) string {
	w.count++
	return fmt.Sprint(prefix, w.count)
}

// ready returns a node that takes sessions.
func (w *walk) ready() string {
	w.Helper()
	if len(w.nodes) < 2 || w.IntN(4) == 0 {
		writes := func() uint64 {
			return must.Get(w.js().Stream(w.Context(), "KV_acp_members"))(w).CachedInfo().State.LastSeq
		}
		before := writes()
		n := must.Get(w.own().StartNode(w.Context(), w.agent(), &natsacp.NodeOptions{
			Name: w.name("n"), Logger: quiet, CloseTime: time.Hour,
		}))(w)
		eventually(w, "the node has renewed its lease, and does not look again", func() bool { return writes() > before+1 })
		w.Cleanup(func() { must.Do(w, n.Close()) })
		w.nodes = append(w.nodes, n.Name())
	}
	return w.nodes[w.IntN(len(w.nodes))]
}

// place starts an agent.
func (w *walk) place() *place {
	w.Helper()
	p := &place{walk: w, node: w.ready(), link: w.name("L"), gen: 1, attached: true}
	m := must.Get(w.nc.Request("acp.open."+p.node, fmt.Appendf(nil, `{"link":%q,"gateway":"a"}`, p.link), patience))(w)
	want(w, "the answer of the node", string(m.Data), fmt.Sprintf(`{"node":%q}`, p.node))
	p.agent = next(w, w.started, "an agent")
	p.send(ask(`"i"`, "initialize", `{"protocolVersion":1}`))
	p.gets("initialize 1")
	p.say(reply("1", canResume), `answer "i"`)
	return p
}

func (p *place) request(f packet) string {
	p.Helper()
	return next(p, p.requesting(f), "an answer of the node")
}

func (p *place) requesting(f packet) <-chan string {
	answer := make(chan string, 1)
	go func() {
		m, err := p.nc.Request("acp.up."+p.node+"."+p.link, f.encode(), patience)
		if err != nil {
			m = &nats.Msg{Data: []byte(err.Error())}
		}
		answer <- string(m.Data)
	}()
	return answer
}

// send sends what a client does, sometimes twice, as a gateway does that has got no answer.
func (p *place) send(line string) {
	p.Helper()
	p.seq++
	f := packet{kind: 'd', gen: p.gen, seq: p.seq, data: line + "\n"}
	want(p, "the answer of the node", p.request(f), "+")
	if p.IntN(3) == 0 {
		want(p, "the answer of the node to the same", p.request(f), "+")
	}
}

// gets checks what the agent gets next.
func (p *place) gets(what string) string {
	p.Helper()
	line := string(must.Get(p.agent.stream.Read())(p))
	wantBrief(p, "the agent", line, what)
	return line
}

// ends checks that the agent gets nothing more.
func (p *place) ends() {
	p.Helper()
	if line, err := p.agent.stream.Read(); err == nil {
		p.Fatalf("the agent has got %q", line)
	}
}

// say makes the agent say something, which is in the log then, or not if known is empty.
func (p *place) say(line, known string) {
	p.Helper()
	must.Do(p, p.agent.stream.Write([]byte(line)))
	if known != "" {
		p.logs(known)
	}
}

// logs waits until the log has a message for the client that is attached.
func (p *place) logs(known string) {
	p.Helper()
	p.log = append(p.log, fmt.Sprintf("%d %s", p.gen, known))
	p.check()
}

// check compares the log with what it must have.
func (p *place) check() (stored, frames uint64) {
	p.Helper()
	var got []string
	read := func() bool {
		log := must.Get(p.js().Stream(p.Context(), "acp_log"))(p)
		got, stored, frames = nil, 0, 0
		for {
			m, err := log.GetMsg(p.Context(), stored+1, jetstream.WithGetMsgSubject("acp.log."+p.link))
			if err != nil {
				return len(got) >= len(p.log)
			}
			stored = m.Sequence
			f := readPacket(p, m.Data)
			if f.kind == 'F' {
				got = append(got, "F")
				continue
			}
			frames++
			want(p, "the number of a frame", f.seq, frames)
			if f.kind != 'd' {
				got = append(got, string(f.kind))
				continue
			}
			for line := range strings.Lines(f.data) {
				got = append(got, fmt.Sprintf("%d %s", f.gen, brief(p, line)))
			}
		}
	}
	eventually(p, fmt.Sprintf("the log has %q", p.log[max(0, len(p.log)-2):]), read)
	if !slices.Equal(got, p.log) {
		p.Fatalf("the log of %s is\n%q, want\n%q", p.link, got, p.log)
	}
	return stored, frames
}

// checkRecord compares the record with the model.
func (w *walk) checkRecord() {
	w.Helper()
	model := natsacp.Session{Epoch: w.epoch, Turn: w.turn}
	if w.owner != nil {
		model.Node, model.Link = w.owner.node, w.owner.link
	} else {
		model.Last = w.last.link
	}
	eventually(w, fmt.Sprintf("the record is %+v", model), func() bool {
		got := must.Get(w.own().Sessions(w.Context()))(w)[0]
		return got.Epoch == model.Epoch && got.Turn == model.Turn && got.Node == model.Node && got.Link == model.Link &&
			got.Last == model.Last
	})
}

// released says that the agent has given up the session.
func (w *walk) released(p *place) {
	if w.owner != p {
		return
	}
	w.owner, w.last = nil, p
	if w.turn.State == natsacp.TurnRunning {
		w.turn.State = natsacp.TurnInterrupted
	}
}

// leaves says that the agent ends, and the session may continue elsewhere. What clients send meanwhile is not accepted,
// but whoever asks hears that the agent runs, even while its input cannot be closed.
func (p *place) leaves() {
	p.Helper()
	let := next(p, p.closing, "the closing of the agent's input")
	for _, gen := range []uint64{0, p.gen} {
		want(p, "the answer to who asks for the agent", p.request(packet{kind: 't', gen: gen}), "+")
	}
	close(let)
	p.ends()
	if p.IntN(2) == 0 {
		p.say(note("session/update", "last"), "session/update last")
	}
	var held <-chan string
	if p.attached {
		held = p.requesting(packet{kind: 'd', gen: p.gen, seq: p.seq + 1, data: note("_late", "") + "\n"})
	}
	close(p.agent.may)
	next(p, p.agent.gone, "the end of the agent")
	if held != nil {
		if answer := next(p, held, "the answer to a late frame"); answer != "m" && answer != "-" { // it may come after the end
			p.Fatalf("the answer to a late frame is %q", answer)
		}
	}
	p.log = append(p.log, "m")
	p.released(p)
}

// take makes another agent take the session, with session/resume.
func (w *walk) take() {
	w.Helper()
	p := w.place()
	p.send(ask(`"r"`, "session/resume", resumeOfS))
	p.gets("session/resume 2")
	p.say(reply("2", "{}"), `answer "r"`)
	old := w.owner
	if old == nil {
		old = w.last
	} else if w.turn.State == natsacp.TurnRunning {
		w.turn.State = natsacp.TurnInterrupted
	}
	old.log = append(old.log, "F")
	w.owner = p
	w.epoch++
	old.check()
}

// steps are what can happen while an agent has the session, and take if none has it. Each changes the model.
var steps = map[string]struct {
	when func(p *place) bool
	do   func(w *walk, p *place)
}{
	"take": {always, func(w *walk, p *place) {
		w.take()
	}},
	"refused": {always, func(w *walk, p *place) { // another one has the session
		other := w.place()
		other.send(ask(`"r"`, "session/resume", resumeOfS))
		other.logs(`error "r" the session is at another node`)
		want(w, "the answer", other.request(packet{kind: 'x', gen: 1}), "+")
		other.attached = false
		other.leaves()
		other.check()
	}},
	"prompt": {func(p *place) bool { return p.running == "" && p.attached }, func(w *walk, p *place) {
		p.prompt, p.promptGen = w.name("c"), p.gen
		p.send(ask(`"`+p.prompt+`"`, "session/prompt", promptOfS))
		line := p.gets("session/prompt")
		p.running = strings.Fields(brief(w, line))[1]
		w.turn = natsacp.Turn{Number: w.turn.Number + 1, State: natsacp.TurnRunning}
	}},
	"say": {always, func(w *walk, p *place) {
		text := w.name("u")
		p.say(note("session/update", text), "session/update "+text)
	}},
	"ask": {func(p *place) bool { return p.running != "" && p.asked == nil }, func(w *walk, p *place) {
		id := w.name("q")
		known := fmt.Sprintf(`session/request_permission %q`, fmt.Sprintf("acp:%s:%q", p.link, id))
		p.say(ask(`"`+id+`"`, "session/request_permission", `{"sessionId":"s"}`), known)
		p.asked = []string{known}
		if w.IntN(4) == 0 {
			p.say(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"`+id+`"}}`, "$/cancel_request")
			p.asked = append(p.asked, "$/cancel_request")
		}
		p.answered = []byte(id)
	}},
	"answer": {func(p *place) bool { return p.asked != nil && p.attached }, func(w *walk, p *place) { // the second one is dropped
		outward, _ := json.Marshal(fmt.Sprintf("acp:%s:%q", p.link, p.answered))
		for range 2 {
			p.send(reply(string(outward), "{}"))
		}
		p.send(note("_after", ""))
		p.gets(fmt.Sprintf("answer %q", p.answered))
		p.gets("_after")
		p.asked = nil
	}},
	"cancel": {func(p *place) bool { return p.running != "" && p.attached }, func(w *walk, p *place) { // a cancellation waits for nothing but what it names
		lines := p.seq // each frame has one
		for text, after := range map[string]uint64{"late": lines + 1, "now": lines} {
			f := packet{kind: 'c', gen: p.gen, arg: after, data: note("session/cancel", text)}
			want(w, "the answer", p.request(f), "+")
		}
		p.gets("session/cancel now")
		p.send(note("_before", ""))
		p.gets("_before")
		p.gets("session/cancel late")
	}},
	"finish": {func(p *place) bool { return p.running != "" }, func(w *walk, p *place) {
		w.turn = natsacp.Turn{Number: w.turn.Number, State: natsacp.TurnDone, StopReason: "end_turn"}
		known := fmt.Sprintf("answer %q", p.prompt)
		if p.promptGen != p.gen {
			known = "" // the client that has asked has gone
		}
		p.say(reply(p.running, `{"stopReason":"end_turn"}`), known)
		p.running = ""
		if p.draining || !p.attached {
			p.leaves()
		}
	}},
	"attach": {always, func(w *walk, p *place) {
		if p.running == "" {
			answer := p.requesting(packet{kind: 'a', data: "b"})
			p.leaves()
			want(w, "the answer to who attaches", next(w, answer, "an answer"), "m")
			return
		}
		stored, frames := p.check()
		got := readPacket(w, []byte(p.request(packet{kind: 'a', data: "b"})))
		want(w, "the answer to who attaches", got, packet{kind: '+', gen: p.gen + 1, seq: frames, arg: stored})
		stale := packet{kind: 'd', gen: p.gen, seq: p.seq + 1, data: note("_stale", "") + "\n"}
		p.gen, p.seq, p.attached = p.gen+1, 0, true
		for _, known := range p.asked {
			p.log = append(p.log, fmt.Sprintf("%d %s", p.gen, known))
		}
		p.check()
		want(w, "the answer to who was attached", p.request(stale), "-")
	}},
	"detach": {func(p *place) bool { return p.attached }, func(w *walk, p *place) {
		want(w, "the answer", p.request(packet{kind: 'x', gen: p.gen}), "+")
		p.attached = false
		if p.running == "" {
			p.leaves()
		}
	}},
	"drain": {func(p *place) bool { return !p.draining }, func(w *walk, p *place) {
		must.Do(w, w.own().Drain(w.Context(), p.node))
		w.nodes = slices.DeleteFunc(w.nodes, func(name string) bool { return name == p.node })
		if p.draining = true; p.running == "" {
			p.leaves()
		}
	}},
	"crash": {always, func(w *walk, p *place) {
		must.Do(w, p.agent.stream.Close())
		close(p.agent.may)
		p.log = append(p.log, "e")
		p.released(p)
		eventually(w, "the node has no such link", func() bool { return p.request(packet{kind: 't'}) == "-" })
	}},
	"lost": {func(p *place) bool { return p.IntN(2) != 0 }, func(w *walk, p *place) { // its node was believed dead, and does not know it
		members := must.Get(w.js().KeyValue(w.Context(), "acp_members"))(w)
		must.Do(w, members.Delete(w.Context(), "node."+p.node))
		w.nodes = slices.DeleteFunc(w.nodes, func(name string) bool { return name == p.node })
		w.take()
		switch {
		case p.attached && p.running == "" && w.IntN(2) == 0: // it does not begin a prompt
			f := packet{kind: 'd', gen: p.gen, seq: p.seq + 1, data: ask(`"lost"`, "session/prompt", promptOfS) + "\n"}
			want(w, "the answer of the node", p.request(f), "+")
		case w.IntN(2) == 0:
			p.say(reply("99", "{}"), "") // to nothing: nobody gets it
			fallthrough
		default:
			p.say(note("session/update", "lost"), "")
			_ = p.agent.stream.Write([]byte(note("session/update", "lost, too"))) // if the agent was not ended already
		}
		p.ends()
		close(p.agent.may)
		next(w, p.agent.gone, "the end of an agent that was lost")
		eventually(w, "the node has no such link", func() bool { return p.request(packet{kind: 't'}) == "-" })
	}},
}

func always(*place) bool { return true }

// Whatever happens to a session on nodes, one agent has it at a time, what others say is not stored, a prompt is
// recorded before the agent has it, and whoever attaches gets what is open.
func TestNodeModel(t *testing.T) {
	names := []string{"take", "take", "refused", "prompt", "prompt", "say", "ask", "ask", "answer", "cancel", "finish", "finish",
		"attach", "detach", "drain", "crash", "lost"}
	for range tier.Pick(4, 8, 20, 200) {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWalk(t, seed)
			p := w.place()
			p.send(ask(`"n"`, "session/new", `{"cwd":"/w","mcpServers":[]}`))
			p.gets("session/new 2")
			w.owner, w.epoch = p, 1
			p.say(reply("2", `{"sessionId":"s"}`), `answer "n"`)
			for taken := 0; taken < 30; {
				name := names[w.IntN(len(names))]
				was := w.owner
				if (was == nil) != (name == "take") || !steps[name].when(was) {
					continue
				}
				if steps[name].do(w, was); was != nil {
					was.check()
				}
				w.checkRecord()
				taken++
				t.Log(name)
			}
		})
	}
}

// front is a gateway with one client, and this test in place of nodes.
type front struct {
	*walk
	*raw     // the client
	opens    chan *nats.Msg
	ups      chan *nats.Msg
	answers  map[string][]byte // to frames
	node     string
	link     string // the newest one
	gen      uint64
	up, down uint64 // frames
	last     uint64 // of the sent ones, that with the last prompt
	prompt   string // that runs
	opened   bool   // the link has the session
}

func newFront(t *testing.T, seed uint64) *front {
	f := &front{walk: newWalk(t, seed), opens: make(chan *nats.Msg, 100), ups: make(chan *nats.Msg, 100), node: "f1",
		answers: map[string][]byte{}}
	members := must.Get(f.js().KeyValue(t.Context(), "acp_members"))(f)
	for _, name := range []string{"f1", "f2"} {
		must.Get(members.Put(t.Context(), "node."+name, fmt.Appendf(nil, `{"name":%q,"max":10}`, name)))(f)
	}
	for subject, to := range map[string]chan *nats.Msg{"acp.open.*": f.opens, "acp.up.*.*": f.ups} {
		must.Get(f.nc.ChanSubscribe(subject, to))(f)
	}
	_, url := f.gateway("g")
	f.raw = f.walk.raw(url)
	return f
}

// reads checks what the client gets next.
func (f *front) reads(what string) {
	f.Helper()
	wantBrief(f, "the client", string(must.Get(f.stream.Read())(f)), what)
}

// opensLink lets the gateway start an agent.
func (f *front) opensLink() {
	f.Helper()
	m := next(f, f.opens, "a request for an agent")
	var o struct{ Link string }
	must.Do(f, json.Unmarshal(m.Data, &o))
	f.node = strings.TrimPrefix(m.Subject, "acp.open.")
	f.link, f.gen, f.up, f.down, f.opened = o.Link, 1, 0, 0, false
	must.Do(f, m.Respond(fmt.Appendf(nil, `{"node":%q}`, f.node)))
}

// takes checks what the gateway sends next, and answers if answer is not empty.
func (f *front) takes(what, answer string) *nats.Msg {
	f.Helper()
	m, p := f.arrives(what)
	want(f, "the subject", m.Subject, "acp.up."+f.node+"."+f.link)
	want(f, "who the frame is from", p.gen, f.gen)
	want(f, "the kind of a frame", string(rune(p.kind)), what[:1])
	wantBrief(f, "the node", p.data, what[2:])
	switch {
	case p.kind == 'd': // each has one message
		f.up++
		want(f, "the number of a frame", p.seq, f.up)
		if strings.HasPrefix(what, "d session/prompt") {
			f.last = f.up
		}
	case strings.Contains(p.data, "$/cancel_request"): // of the message before it
		want(f, "what a cancellation waits for", p.arg, f.up)
	case p.kind == 'c':
		want(f, "what a cancellation waits for", p.arg, f.last)
	}
	if answer != "" {
		f.respond(m, answer)
	}
	return m
}

// respond answers a frame.
func (f *front) respond(m *nats.Msg, answer string) {
	f.Helper()
	f.answers[m.Subject+string(m.Data)] = []byte(answer)
	must.Do(f, m.Respond([]byte(answer)))
}

// arrives returns what the gateway sends next, except for what it says of the window, and to agents that it has left.
func (f *front) arrives(what string) (*nats.Msg, packet) {
	f.Helper()
	for {
		m := next(f, f.ups, what)
		p := readPacket(f, m.Data)
		if again, ok := f.answers[m.Subject+string(m.Data)]; ok { // the answer was late
			must.Do(f, m.Respond(again))
		} else if p.kind == 'x' && !strings.HasSuffix(m.Subject, "."+f.link) {
			f.respond(m, "-")
		} else if p.kind != 't' {
			return m, p
		}
	}
}

// logs writes a frame to the log.
func (f *front) logs(kind byte, data string) {
	f.Helper()
	if kind != 'F' {
		f.down++
	}
	if kind == 'd' {
		data += "\n"
	}
	p := packet{kind: kind, gen: f.gen, seq: f.down, data: data}
	for range 1 + f.IntN(2) { // the second one is known
		must.Get(f.js().Publish(f.Context(), "acp.log."+f.link, p.encode()))(f)
	}
}

// writeRecord writes what nodes record. node is empty if no agent has the session.
func (f *front) writeRecord(node, link string) {
	f.Helper()
	records := must.Get(f.js().KeyValue(f.Context(), "acp_sessions"))(f)
	f.epoch++
	text := must.Get(json.Marshal(natsacp.Session{ID: "s", Cwd: "/w", Node: node, Link: link, Epoch: f.epoch}))(f)
	key := sha256.Sum256([]byte("\x00s"))
	must.Get(records.Put(f.Context(), hex.EncodeToString(key[:]), text))(f)
}

// leaves ends the client, whose agent hears of it.
func (f *front) leaves() {
	f.Helper()
	must.Do(f, f.stream.Close())
	m, p := f.arrives("a client detaches")
	want(f, "the frame", p, packet{kind: 'x', gen: f.gen})
	f.respond(m, "+")
}

// over says that the link is over: the prompt that it has fails.
func (f *front) over(why string) {
	f.Helper()
	if f.opened = false; f.prompt != "" {
		f.reads(fmt.Sprintf("error %q interrupted: %s", f.prompt, why))
		f.prompt = ""
	}
}

// restores checks how a session continues at another agent, without the client.
func (f *front) restores() {
	f.Helper()
	f.opensLink()
	f.takes(`d initialize "acp-fleet:1"`, "+")
	f.logs('d', reply(`"acp-fleet:1"`, canResume))
	f.takes(`d session/resume "acp-fleet:2"`, "+")
	f.logs('d', note("session/update", "the client has it"))
	f.logs('d', reply(`"acp-fleet:2"`, "{}")+"\n"+note("session/update", "the client does not"))
	f.reads("session/update the client does not")
	f.writeRecord(f.node, f.link)
	f.opened = true
}

// joins checks how a session continues at an agent that another client has had.
func (f *front) joins(link string, answer func(m *nats.Msg)) {
	f.Helper()
	m, p := f.arrives("a client attaches")
	want(f, "the subject", m.Subject, "acp.up."+f.node+"."+link)
	want(f, "the frame", p, packet{kind: 'a', data: "g"})
	answer(m)
}

// goes sends a prompt, and lets the session continue wherever it is. The node answers with answer.
func (f *front) goes(answer string) *nats.Msg {
	f.Helper()
	f.prompt = f.name("c")
	f.send(ask(`"`+f.prompt+`"`, "session/prompt", promptOfS))
	if !f.opened {
		f.restores()
	}
	return f.takes(fmt.Sprintf("d session/prompt %q", f.prompt), answer)
}

func (f *front) idle() bool     { return f.prompt == "" }
func (f *front) busy() bool     { return f.prompt != "" }
func (f *front) isOpened() bool { return f.opened }

// falls are what can happen at a gateway. What a link has heard cannot be seen while it is idle.
var falls = map[string]struct {
	when func(f *front) bool
	do   func(f *front)
}{
	"prompt": {(*front).idle, func(f *front) {
		f.goes("+")
	}},
	"refused": {(*front).idle, func(f *front) { // the node surely has not got the prompt
		m := f.goes("")
		f.writeRecord("", "")
		f.respond(m, "-")
		f.restores()
		f.takes(fmt.Sprintf("d session/prompt %q", f.prompt), "+")
	}},
	"unsure": {(*front).idle, func(f *front) { // the node may have got it
		f.goes("")
		f.up--
		f.writeRecord("", "")
		f.takes("d session/prompt", "-")
		f.over("the node has lost the session")
	}},
	"moved": {(*front).idle, func(f *front) { // nothing is lost
		f.goes("")
		f.writeRecord("", "")
		f.logs('m', "")
		f.up--
		f.takes("d session/prompt", "m")
		f.restores()
		f.takes(fmt.Sprintf("d session/prompt %q", f.prompt), "+")
	}},
	"say": {(*front).isOpened, func(f *front) {
		text := f.name("u")
		f.logs('d', note("session/update", text))
		f.reads("session/update " + text)
	}},
	"parts": {(*front).isOpened, func(f *front) { // of one message
		text := f.name("u")
		line := note("session/update", text)
		for _, part := range []string{line[:10], line[10:20], line[20:] + "\n"} {
			f.down++
			p := packet{kind: 'd', gen: f.gen, seq: f.down, data: part}
			must.Get(f.js().Publish(f.Context(), "acp.log."+f.link, p.encode()))(f)
		}
		f.reads("session/update " + text)
	}},
	"ask": {(*front).busy, func(f *front) {
		id, _ := json.Marshal(fmt.Sprintf("acp:%s:%q", f.link, f.name("q")))
		f.logs('d', ask(string(id), "session/request_permission", `{"sessionId":"s"}`))
		f.reads("session/request_permission " + string(id))
		f.send(reply(string(id), "{}"))
		f.takes("d answer "+string(id), "+")
	}},
	"cancel": {(*front).busy, func(f *front) {
		text := f.name("c")
		f.send(note("session/cancel", text))
		f.takes("c session/cancel "+text, "+")
	}},
	"cancel another": {(*front).busy, func(f *front) { // a request that comes after the prompt
		id := fmt.Sprintf("%q", f.name("c"))
		f.send(ask(id, "session/set_mode", `{"sessionId":"s","modeId":"m"}`))
		f.takes("d session/set_mode "+id, "+")
		f.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":` + id + `}}`)
		f.takes("c $/cancel_request", "+")
		f.logs('d', reply(id, "{}"))
		f.reads("answer " + id)
	}},
	"finish": {(*front).busy, func(f *front) {
		f.logs('d', reply(`"`+f.prompt+`"`, `{"stopReason":"end_turn"}`))
		f.reads(fmt.Sprintf("answer %q", f.prompt))
		f.prompt = ""
	}},
	"end": {(*front).busy, func(f *front) {
		f.writeRecord("", "")
		f.logs('e', "the agent has ended")
		f.over("the agent has ended")
	}},
	"taken": {(*front).busy, func(f *front) { // another node has the session, or another client this agent
		if f.IntN(2) == 0 {
			f.logs('F', "")
			f.over("another node has taken the session")
		} else {
			f.gen++
			f.logs('d', note("session/update", "of the other client"))
			f.over("another connection has taken the session")
		}
		// The next prompt goes to an agent that runs, and may be about to end.
		old := f.link
		link := f.name("X")
		f.node = []string{"f1", "f2"}[f.IntN(2)]
		f.writeRecord(f.node, link)
		f.prompt = f.name("c")
		f.send(ask(`"`+f.prompt+`"`, "session/prompt", promptOfS))
		if f.IntN(3) == 0 {
			f.joins(link, func(m *nats.Msg) {
				f.writeRecord("", "")
				f.respond(m, "m")
			})
			f.restores()
		} else {
			f.joins(link, func(m *nats.Msg) {
				f.link, f.gen, f.up = link, uint64(2+f.IntN(5)), 0
				f.down = 1
				before := packet{kind: 'd', gen: f.gen - 1, seq: 1, data: note("session/update", "before") + "\n"}
				ack := must.Get(f.js().Publish(f.Context(), "acp.log."+link, before.encode()))(f)
				f.respond(m, string(packet{kind: '+', gen: f.gen, seq: 1, arg: ack.Sequence}.encode()))
				f.opened = true
			})
		}
		f.takes(fmt.Sprintf("d session/prompt %q", f.prompt), "+")
		if f.link == old {
			f.Fatal("the gateway uses a link again that is over")
		}
	}},
}

// begins opens a session at a new agent.
func (f *front) begins() {
	f.Helper()
	f.send(ask("0", "initialize", `{"protocolVersion":1}`))
	f.opensLink()
	f.takes("d initialize 0", "+")
	f.logs('d', reply("0", canResume))
	f.reads("answer 0")
	f.send(ask("1", "session/new", `{"cwd":"/w","mcpServers":[]}`))
	f.takes("d session/new 1", "+")
	f.writeRecord(f.node, f.link)
	f.logs('d', reply("1", `{"sessionId":"s"}`))
	f.reads("answer 1")
	f.opened = true
}

// A cancellation stays behind its request, and a request behind its prompt, while the session is restored.
func TestCancelledWhileRestored(t *testing.T) {
	f := newFront(t, 1)
	f.begins()
	f.goes("+")
	f.writeRecord("", "")
	f.logs('e', "the agent has ended")
	f.over("the agent has ended")
	messages := []string{
		ask("2", "session/prompt", promptOfS), ask("3", "session/set_mode", `{"sessionId":"s","modeId":"m"}`),
		`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":3}}`,
	}
	for _, m := range messages {
		f.send(m)
	}
	f.send(ask("4", "session/fork", `{"sessionId":"s"}`)) // answered at once
	f.reads("error 4")
	f.restores()
	m, p := f.arrives("what is queued")
	want(t, "the messages", p.data, strings.Join(messages, "\n")+"\n")
	f.respond(m, "+")
	f.leaves()
}

// A message that a node surely does not have goes to another one, also before there is a session; and a node may say why
// there is no agent.
func TestRefusedAtFirst(t *testing.T) {
	f := newFront(t, 1)
	f.send(ask("0", "initialize", `{"protocolVersion":1}`))
	f.opensLink()
	f.takes("d initialize 0", "-")
	f.opensLink()
	f.takes("d initialize 0", "+")
	f.logs('d', reply("0", canResume))
	f.reads("answer 0")
	f.send(ask("1", "session/new", `{"cwd":"/w","mcpServers":[]}`))
	f.takes("d session/new 1", "+")
	f.send(ask("2", "session/new", `{"cwd":"/w","mcpServers":[]}`))
	must.Do(t, next(t, f.opens, "a request for an agent").Respond([]byte(`{"error":"that is enough"}`)))
	f.reads("error 2 that is enough")
	f.leaves()
}

// A frame that is lost is sent again soon, however busy this machine is most of the time.
func TestLostFrame(t *testing.T) {
	f := newFront(t, 1)
	f.begins()
	for range 10 {
		f.goes("")
		begun := time.Now()
		f.up--
		f.takes("d session/prompt", "+")
		took := time.Since(begun)
		falls["finish"].do(f)
		if took < time.Second {
			f.leaves()
			return
		}
	}
	t.Error("a lost frame always costs more than a second")
}

// A client that leaves while it is attached to an agent is detached, so that the agent does not wait for it.
func TestLeavesAttaching(t *testing.T) {
	f := newFront(t, 1)
	f.begins()
	f.goes("+")
	f.logs('F', "")
	f.over("another node has taken the session")
	f.writeRecord(f.node, "X")
	f.send(ask("9", "session/prompt", promptOfS))
	f.joins("X", func(m *nats.Msg) {
		must.Do(f, f.stream.Close())
		time.Sleep(100 * time.Millisecond) // so that the gateway notices; if it is slower, it sends the prompt
		f.respond(m, string(packet{kind: '+', gen: 7}.encode()))
	})
	f.link = "X"
	m, p := f.arrives("the client detaches")
	if p.kind == 'd' {
		f.respond(m, "+")
		m, p = f.arrives("the client detaches")
	}
	want(t, "the frame", p, packet{kind: 'x', gen: 7})
	f.respond(m, "+")
}

// Whatever happens to the agent of a client, each of its messages is sent once, or fails with an error if a node may
// have it; what the agent says arrives once and in order; and the session continues where its record says.
func TestGatewayModel(t *testing.T) {
	names := []string{"prompt", "refused", "unsure", "moved", "say", "say", "parts", "ask", "cancel",
		"cancel another", "finish", "end", "taken", "taken"}
	for range tier.Pick(4, 8, 20, 200) {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			f := newFront(t, seed)
			f.begins()
			for taken := 0; taken < 30; {
				if name := names[f.IntN(len(names))]; falls[name].when(f) {
					falls[name].do(f)
					taken++
					t.Log(name)
				}
			}
			if f.opened {
				f.leaves()
			}
		})
	}
}
