package probe

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/acpgo/sdk/conformance"
)

// Scenario is a short script that is played against a fresh launch of the program.
type Scenario struct {
	Name string // "cancel-in-permission"
	Text string // what it does, one sentence
	// Exercises lists the requirements that the scenario itself can find broken, in addition to those that the judge
	// checks in every scenario.
	Exercises []string
	// Needs lists the capabilities of the program ("loadSession", "sessionCapabilities.list") without which it is not
	// played.
	Needs []string
	// Prompts lists the kinds of prompt that it uses.
	Prompts []string

	persona persona  // of the fake agent, for a client
	ends    bool     // the client ends in it, so it is not for clients that a person controls
	ignore  []string // requirements that do not apply here, because the scenario itself breaks the protocol
	quiet   bool     // it takes long, because it waits for silence or sends much
	bare    bool     // it needs no session
	// anyVersion is set if it is also played to agents that do not support version 1.
	anyVersion bool
	run        func(*play)
}

// limits has time limits.
type limits struct {
	answer time.Duration // the start, and each answer
	quiet  time.Duration // the silence after which nothing more is expected
	rung   time.Duration // each step of ending a program
	grace  time.Duration // additional time for answers, when the scenario is played again
}

// play is a run of a scenario.
type play struct {
	*conn   // to the latest launch
	ctx     context.Context
	options *Options
	launch  Launch
	name    string
	dir     string
	limits  limits

	client *client    // serves the latest launch
	states []*message // the state updates of the latest launch, in version 2; guarded by the lock of the connection
	caps   string     // the name of the advertised capabilities
	init   *message
	// authenticated is set if the latest launch is authenticated, or the scenario itself does that.
	authenticated bool
	itself        json.RawMessage // the program's part of initialize, from the last launch that had it
	fake          *fakeAgent      // for a client under test
	latest        string          // the session of its latest prompt
	introduce     string          // the beginning of the answer to the next prompt, for a person
	traits        map[string]bool // the events, for the table of requirements
	granted       map[string]bool // the sets of capabilities that were advertised when they happened

	tmu      sync.Mutex
	findings []finding // of launches that are over, and of the scenario itself
	ran      map[string]bool
	log      []string
	stderr   string
	skipped  string // the reason why it was not finished, if neither side is at fault
	cut      bool   // the reason is lack of time

	commands bool // the agent sent its commands in the first scenario
	stays    bool // the client did not end with its turns in the first scenario
	// mayRefuse is set if the client may answer a question with an error although its user could decide.
	mayRefuse bool

	endless    bool          // a turn lasted until the scenario's time was over
	unanswered bool          // the next finding is about an answer that did not arrive in time
	overdrawn  time.Duration // the used part of the grace
	slow       []string      // the answers that used it
}

// stop is the value of the panic that ends a scenario early.
type stop struct{}

// stopf ends the scenario because it cannot continue. Either the fault is reported elsewhere, or neither side is at
// fault.
func (p *play) stopf(format string, args ...any) {
	p.skipped = fmt.Sprintf(format, args...)
	panic(stop{})
}

// fail reports that the program breaks a requirement.
func (p *play) fail(id, format string, args ...any) {
	r, ok := requirement(id)
	if !ok {
		panic(fmt.Sprintf("probe: scenario %s: there is no requirement %s", p.name, id)) // the tests play all scenarios
	}
	p.failAt(id, r.Level, format, args...)
}

// failAt is like fail, with a level that is milder than that of the requirement.
func (p *play) failAt(id string, level conformance.Level, format string, args ...any) {
	p.addFinding(finding{Finding: conformance.Finding{Rule: id, Level: level, Message: fmt.Sprintf(format, args...)}})
}

// doubt reports that the program may break a requirement, if a program that meets it could behave the same.
func (p *play) doubt(id, format string, args ...any) {
	p.addFinding(finding{Finding: conformance.Finding{Rule: id, Level: mustRequirement(id).Level,
		Message: fmt.Sprintf(format, args...)}, doubt: true})
}

// addFinding adds a finding of the scenario itself.
func (p *play) addFinding(f finding) {
	p.markExercised(f.Rule)
	f.late, p.unanswered = p.unanswered, false
	if p.conn != nil {
		p.conn.mu.Lock()
		f.Number = p.conn.number
		p.conn.mu.Unlock()
	}
	p.tmu.Lock()
	defer p.tmu.Unlock()
	p.findings = append(p.findings, f)
}

// markExercised records that the scenario has checked requirements.
func (p *play) markExercised(ids ...string) {
	p.tmu.Lock()
	defer p.tmu.Unlock()
	for _, id := range ids {
		p.ran[id] = true
	}
}

// check marks a requirement as exercised, and reports it as broken unless ok.
func (p *play) check(id string, ok bool, format string, args ...any) bool {
	p.markExercised(id)
	if !ok {
		p.fail(id, format, args...)
	}
	return ok
}

// trait records an event that exercises requirements; see rows.go.
func (p *play) trait(names ...string) {
	p.tmu.Lock()
	defer p.tmu.Unlock()
	for _, name := range names {
		p.traits[name] = true
	}
}

func (p *play) saw(trait string) bool {
	p.tmu.Lock()
	defer p.tmu.Unlock()
	return p.traits[trait]
}

// start launches the program. If it is already running, it is ended first.
func (p *play) start() {
	p.end()
	ctx, cancel := context.WithTimeout(p.ctx, p.limits.answer)
	defer cancel()
	target, err := p.launch(ctx, p.dir)
	if err != nil {
		p.unanswered = ctx.Err() != nil
		p.failAt("INI-4", conformance.Must, "the agent does not start: %v", err)
		panic(stop{})
	}
	p.client = newClient(p)
	p.init, p.caps, p.authenticated, p.states = nil, "", false, nil
	p.conn = newConn(target, conformance.Client, &p.limits, p.client.serve, p.observe)
}

// end ends the program if it is running, and keeps its findings.
func (p *play) end() {
	c := p.conn
	if c == nil {
		return
	}
	if p.client != nil {
		p.client.close()
	}
	byItself := c.close()
	if p.options.subject.side == conformance.Client {
		byItself = true // clients decide themselves when they end
	} else {
		p.markExercised("TRN-10")
	}
	if !byItself && c.target.Process {
		p.trait("survived")
		p.failAt("TRN-10", conformance.Should, "the agent kept running for %v after the end of its input", p.limits.rung)
	}
	p.tmu.Lock()
	defer p.tmu.Unlock()
	p.findings = append(p.findings, c.findings...)
	p.log = append(p.log, c.transcript()...)
	if c.target.Stderr != nil {
		p.stderr = c.target.Stderr.String()
	}
	p.conn = nil
}

// Capabilities that clients advertise.
const (
	allCapabilities = `{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true,"elicitation":{"form":{},"url":{}},"session":{"configOptions":{"boolean":{}},"notices":{},"compaction":{}},"auth":{"terminal":true}}`
	noCapabilities  = `{}`
	leftOut         = ""
	clientInfo      = `{"name":"acp-probe","title":"acp probe","version":"1"}`
	noSession       = "acp-probe-no-such-session"
)

// initialize starts the program and initializes with capabilities, which are "" for a request without them. If the
// program does not answer correctly, the scenario ends.
func (p *play) initialize(name, capabilities string) {
	p.start()
	params := `{"protocolVersion":1`
	if capabilities != leftOut {
		params += `,"clientCapabilities":` + capabilities
	}
	p.initializeWith(name, capabilities, params+`,"clientInfo":`+clientInfo+`}`)
}

// initializeWith initializes a running program with the given params.
func (p *play) initializeWith(name, capabilities, params string) {
	p.grant(name, capabilities)
	m := p.call("initialize", params)
	if m == nil {
		p.failAt("INI-4", conformance.Must, "%s", p.why("initialize was not answered"))
		panic(stop{})
	}
	if m.code() == codeVersion || m.kind == conformance.Response && versionOf(m) == 2 && isSet(m.params, "info") {
		p.trait(version2, onlyVersion2)
		p.stopf("%s", noVersion1)
	}
	if m.kind == conformance.ErrorReply {
		p.failAt("INI-4", conformance.Must, "initialize was answered with an error: %s", clip(string(m.params)))
		panic(stop{})
	}
	p.markExercised("INI-4")
	p.init, p.itself = m, m.params
}

// grant sets the capabilities that the client serves from now on.
func (p *play) grant(name, capabilities string) {
	p.caps = name
	p.tmu.Lock()
	p.granted[name] = true
	p.tmu.Unlock()
	p.client.grant(capabilities)
}

// why adds to a text what happened instead of an answer, for the next finding.
func (p *play) why(text string) string {
	p.conn.mu.Lock()
	defer p.conn.mu.Unlock()
	if p.ended != nil {
		return fmt.Sprintf("%s: the %s has ended: %v", text, p.options.subject.word, p.ended)
	}
	// The first scenario is short and played alone, so an endless turn in it is certain.
	p.unanswered = !p.endless || p.name != startScenario
	if p.endless {
		return fmt.Sprintf("%s within %v, the time of the scenario", text, p.options.ScenarioTime+p.limits.grace)
	}
	return fmt.Sprintf("%s within %v", text, p.patience()+p.limits.grace)
}

// patience returns the time limit of an answer. The first answer of a launch also has the time of the start. The lock
// of the connection is held.
func (p *play) patience() time.Duration {
	if !p.heard {
		return 2 * p.limits.answer
	}
	return p.limits.answer
}

// can reports whether the program advertises a capability.
func (p *play) can(capability string) bool {
	if p.init == nil {
		return false
	}
	return p.options.subject.advertises(p.init.params, capability)
}

// advertises reports whether the program's part of initialize has a capability.
func (about *subject) advertises(said json.RawMessage, capability string) bool {
	v := member(said, append([]string{about.capabilities}, strings.Split(capability, ".")...)...)
	return v != nil && string(v) != "null" && string(v) != "false"
}

// call sends a request and waits for its answer. It returns nil if there is none in time. It authenticates first if the
// agent requires it and the user has chosen a method.
func (p *play) call(method, params string) *message {
	m := p.await(p.ask(method, params, ""))
	if m.code() == codeAuth && p.options.Auth != "" && p.init != nil && !p.authenticated {
		p.authenticate()
		m = p.await(p.ask(method, params, ""))
	}
	return m
}

// Error codes: authentication is required, a request was cancelled.
const (
	codeAuth      = -32000
	codeCancelled = -32800
)

// await waits for the answer to a request.
func (p *play) await(id string) *message {
	p.conn.mu.Lock()
	limit := p.patience()
	p.conn.mu.Unlock()
	m := p.awaitWithin(id, limit)
	if rest := p.limits.grace - p.overdrawn; m == nil && rest > 0 {
		began := time.Now()
		m = p.awaitWithin(id, rest)
		took := time.Since(began)
		p.overdrawn += took
		if m != nil {
			p.slow = append(p.slow, fmt.Sprintf("%s was answered after %v", m.method, (limit+took).Round(time.Millisecond)))
		}
	}
	if m == nil {
		p.checkTime()
	}
	return m
}

// awaitWithin waits for the answer to a request, with a time limit.
func (p *play) awaitWithin(id string, limit time.Duration) (m *message) {
	p.wait(p.ctx, limit, func() bool {
		if answers := p.answers[id]; len(answers) > 0 {
			m = answers[0]
		}
		return m != nil
	})
	return m
}

// checkTime ends the scenario if its time limit is reached, because the absence of an event within a shorter time than
// the program may take proves nothing.
func (p *play) checkTime() {
	if p.ctx.Err() != nil {
		p.cut = true
		p.stopf("%v", context.Cause(p.ctx))
	}
}

// awaitTurn waits for the answer to a prompt for as long as updates come.
func (p *play) awaitTurn(id string) (m *message) {
	p.awaitEnd("session/prompt was answered", func() bool {
		if answers := p.answers[id]; len(answers) > 0 {
			m = answers[0]
		}
		return m != nil
	})
	return m
}

// awaitEnd waits for the end of a turn for as long as messages come, and reports whether it has come. It calls ended
// with the lock of the connection held. A turn that fills most of the scenario's time is endless: its missing end is
// not due to a lack of time.
func (p *play) awaitEnd(what string, ended func() bool) bool {
	began := time.Now()
	for {
		p.conn.mu.Lock()
		seen, limit := p.number, p.patience()
		p.conn.mu.Unlock()
		over := false
		more := func() bool {
			over = ended()
			return over || p.number != seen
		}
		alive := p.wait(p.ctx, limit, more)
		if rest := p.limits.grace - p.overdrawn; !alive && rest > 0 && p.ctx.Err() == nil {
			silent := time.Now()
			alive = p.wait(p.ctx, rest, more)
			took := time.Since(silent)
			p.overdrawn += took
			if over {
				p.slow = append(p.slow, fmt.Sprintf("%s after %v of silence", what, (limit+took).Round(time.Millisecond)))
			}
		}
		switch {
		case over:
			return true
		case errors.Is(context.Cause(p.ctx), errScenarioTime) &&
			time.Since(began) > (p.options.ScenarioTime+p.limits.grace)/2:
			p.endless = true
			return false
		case p.ctx.Err() != nil:
			p.checkTime()
		case !alive:
			return false
		}
	}
}

// must is like call, for a request that has to be served. If it is not, must reports the requirement as broken and
// returns nil.
func (p *play) must(id, method, params string) *message {
	p.markExercised(id)
	m := p.call(method, params)
	switch {
	case m == nil:
		p.fail(id, "%s", p.why(method+" was not answered"))
	case m.kind == conformance.ErrorReply:
		p.fail(id, "%s was answered with an error: %s", method, clip(string(m.params)))
		return nil
	}
	return m
}

// requireError checks that the answer to a wrong request is an error, with one of the codes if any are given. The
// argument what describes the request.
func (p *play) requireError(id string, m *message, what string, codes ...int) {
	p.markExercised(id)
	switch {
	case m == nil:
		p.failAt("OVW-3", conformance.Must, "%s", p.why(what+": no answer"))
	case m.kind != conformance.ErrorReply:
		p.fail(id, "%s was answered with a result: %s", what, clip(string(m.params)))
	case len(codes) > 0 && !slices.Contains(codes, m.code()):
		p.failAt(id, max(conformance.Should, mustRequirement(id).Level), "%s was answered with the error %d, want %s: %s",
			what, m.code(), orList(codes), clip(string(m.params)))
	}
}

func orList(codes []int) string {
	var parts []string
	for _, code := range codes {
		parts = append(parts, strconv.Itoa(code))
	}
	return strings.Join(parts, " or ")
}

// checkAlive checks that the program serves the next request. The request is an unknown one, so that the answer does
// not depend on the program's state.
func (p *play) checkAlive(id, after string) {
	m := p.call("_acp.probe/alive", "{}")
	p.markExercised(id)
	if m == nil {
		p.failAt(id, conformance.Must, "%s", p.why("the next request was not served after "+after))
		panic(stop{})
	}
}

// newSession creates a session in the scratch directory. If that fails, or needs authentication for which no method was
// chosen, the scenario ends.
func (p *play) newSession() string { return p.newSessionWith("") }

// newSessionWith is like newSession, with additional members such as `,"additionalDirectories":[]`.
func (p *play) newSessionWith(more string) string {
	params := `{"cwd":` + quote(p.dir) + `,"mcpServers":[]` + more + `}`
	m := p.call("session/new", params)
	switch {
	case m == nil:
		p.failAt("INI-16", conformance.Must, "%s", p.why("session/new was not answered"))
		panic(stop{})
	case m.code() == codeAuth:
		p.stopf("the agent requires authentication: use --auth METHOD with one of %s", orNone(p.authMethods()))
	case m.kind == conformance.ErrorReply:
		p.failAt("INI-16", conformance.Must, "session/new was answered with an error: %s", clip(string(m.params)))
		panic(stop{})
	}
	id := m.text("sessionId")
	if id == "" {
		p.failAt("SES-2", conformance.Must, "session/new was answered without a session id: %s", clip(string(m.params)))
		panic(stop{})
	}
	p.client.session(id, p.dir)
	return id
}

// authenticate authenticates with the chosen method. If that fails, the scenario ends.
func (p *play) authenticate() {
	p.authenticated = true
	method := "authenticate"
	if p.options.subject.version == 2 {
		method = "auth/login"
	}
	m := p.await(p.ask(method, `{"methodId":`+quote(p.options.Auth)+`}`, ""))
	if m == nil || m.kind == conformance.ErrorReply {
		p.stopf("authentication with %s failed: %s", p.options.Auth, answerText(m))
	}
}

// authMethods returns the ids of the authentication methods that the program offers.
func (p *play) authMethods() []string {
	var ids []string
	if p.init != nil {
		for _, m := range elements(member(p.init.params, "authMethods")) {
			var id string
			if json.Unmarshal(member(m, "id"), &id) == nil || json.Unmarshal(member(m, "methodId"), &id) == nil {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// ready is the usual beginning of a scenario: it initializes with all capabilities of a client and creates a session.
func (p *play) ready() string {
	p.initialize("all", allCapabilities)
	return p.newSession()
}

// promptParams returns the params of a prompt of the given kind.
func (p *play) promptParams(session, kind string) string {
	return `{"sessionId":` + quote(session) + `,"prompt":[{"type":"text","text":` + quote(p.text(session, kind)) + `}]}`
}

// text returns the prompt of the given kind: the chosen one, a slash command that the agent offers for it, or plain
// words. Before it uses a command, it waits until the agent has sent the commands of the session.
func (p *play) text(session, kind string) string {
	p.trait("prompt " + kind)
	chosen := p.options.Prompts[kind]
	if p.client == nil { // a client is probed
		return cmp.Or(chosen, DefaultPrompts[kind])
	}
	told := func() bool { return p.client.offers(session, "") }
	if p.commands {
		p.wait(p.ctx, p.limits.answer, told)
	} else if strings.HasPrefix(chosen, "/") {
		p.wait(p.ctx, p.limits.quiet, told)
	}
	if p.client.offers(session, "probe-"+kind) {
		return cmp.Or(chosen, "/probe-"+kind)
	}
	return cmp.Or(chosen, DefaultPrompts[kind])
}

// certain reports whether the agent will certainly do what a kind of prompt asks for, because it offers a command for
// it or the user has chosen the prompt.
func (p *play) certain(session, kind string) bool {
	return p.options.Prompts[kind] != "" || p.client.offers(session, "probe-"+kind)
}

// begin sends a prompt and does not wait for its answer.
func (p *play) begin(session, kind string) string {
	return p.ask("session/prompt", p.promptParams(session, kind), "")
}

// prompt plays a turn. If the prompt is not answered, or is answered with an error, it reports a failure.
func (p *play) prompt(session, kind string) *message {
	return p.turn(p.begin(session, kind))
}

// turn waits for the end of a turn.
func (p *play) turn(id string) *message {
	p.markExercised("PRM-5")
	m := p.awaitTurn(id)
	switch {
	case m == nil:
		p.fail("PRM-5", "%s", p.why("session/prompt was not answered"))
		panic(stop{})
	case m.kind == conformance.ErrorReply:
		if m.code() == codeAuth {
			p.stopf("the agent requires authentication for prompts: %s", clip(m.text("message")))
		}
		// An agent may have reasons, such as a model that it cannot reach.
		p.failAt("PRM-5", conformance.Should, "session/prompt was answered with an error: %s", clip(string(m.params)))
	default:
		p.trait("turn")
	}
	return m
}

// streaming begins a long turn in a new session, and waits for its first n updates. It returns false if they do not
// arrive.
func (p *play) streaming(n int) (session, id string, ok bool) {
	session = p.ready()
	id = p.begin(session, "long")
	return session, id, p.updates(id, "", n)
}

// updates waits until n updates of a kind have arrived. The kind "" means any kind that belongs to a turn.
func (p *play) updates(id string, kind string, n int) bool {
	return p.wait(p.ctx, p.limits.answer, func() bool {
		if len(p.answers[id]) > 0 {
			return true
		}
		count := 0
		asked := false
		for _, m := range p.kept {
			if m.id == id && m.direction == p.toPeer() && m.kind == conformance.Request {
				asked = true
			}
			if !asked || m.method != "session/update" {
				continue
			}
			if k := m.text("update", "sessionUpdate"); k == kind || kind == "" && ofTurn(k) {
				count++
			}
		}
		return count >= n
	}) && !p.hasAnswer(id)
}

// hasEnded reports whether the program has ended its output.
func (p *play) hasEnded() bool {
	p.conn.mu.Lock()
	defer p.conn.mu.Unlock()
	return p.ended != nil
}

// hasAnswer reports whether a request is answered.
func (p *play) hasAnswer(id string) bool {
	p.conn.mu.Lock()
	defer p.conn.mu.Unlock()
	return len(p.answers[id]) > 0
}

// ofTurn reports whether updates of this kind belong to a turn.
func ofTurn(kind string) bool {
	switch kind {
	case "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan":
		return true
	}
	return false
}

// awaitRequest waits for a request of the program.
func (p *play) awaitRequest(turn, method string) *message {
	var found *message
	p.wait(p.ctx, p.limits.answer, func() bool {
		for _, m := range p.kept {
			if m.kind == conformance.Request && m.direction == p.fromPeer() && m.method == method {
				found = m
			}
		}
		return found != nil || len(p.answers[turn]) > 0
	})
	return found
}

// awaitCommand waits until the agent follows a command that it has started, by waiting for its end or reading its
// output. An agent that does neither gets the time of several quiet periods.
func (p *play) awaitCommand(turn string) {
	p.wait(p.ctx, 5*p.limits.quiet, func() bool {
		return len(p.answers[turn]) > 0 || slices.ContainsFunc(p.kept, func(m *message) bool {
			return m.method == "terminal/wait_for_exit" || m.method == "terminal/output"
		})
	})
}

// cancel cancels the turn of a session.
func (p *play) cancel(session string) {
	p.client.cancel(session, func() { p.notify("session/cancel", `{"sessionId":`+quote(session)+`}`) })
}

// checkCancelled checks that a turn that was cancelled in the middle ended with the stop reason cancelled. If the
// program may have ended the turn before it read the cancellation, another stop reason is correct, and exercises
// nothing.
func (p *play) checkCancelled(id string) *message {
	m := p.awaitTurn(id)
	switch {
	case m == nil:
		p.fail("PRM-11", "%s", p.why("the cancelled session/prompt was not answered"))
		panic(stop{})
	case m.kind == conformance.ErrorReply:
		p.fail("PRM-12", "the cancelled turn ended with an error: %s", clip(string(m.params)))
	case m.text("stopReason") == "cancelled":
		p.trait("cancelled")
	}
	return m
}

// file writes a file to the scratch directory and returns its path.
func (p *play) file(name, text string) string {
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.stopf("the scratch folder could not be used: %v", err)
	}
	return path
}

// quote returns a string as JSON text.
func quote(s string) string {
	text, _ := json.Marshal(s) // a string can always be encoded
	return string(text)
}

// requirements maps ids to requirements.
var requirements = sync.OnceValue(func() map[string]conformance.Requirement {
	all := map[string]conformance.Requirement{}
	for _, r := range conformance.Requirements() {
		all[r.ID] = r
	}
	return all
})

func requirement(id string) (conformance.Requirement, bool) {
	r, ok := requirements()[id]
	return r, ok
}

func mustRequirement(id string) conformance.Requirement {
	r, ok := requirement(id)
	if !ok {
		panic("probe: there is no requirement " + id)
	}
	return r
}

// DefaultPrompts has a prompt of each kind that scenarios need, in words that any agent understands.
var DefaultPrompts = map[string]string{
	"text":       "Reply with the single word OK. Use no tools.",
	"long":       "Write a very long story of at least five thousand words. Use no tools.",
	"read":       "Please read the file notes.txt in the working directory, and tell me what is in it.",
	"missing":    "Please read the file no-such-file.txt in the working directory, and tell me what is in it.",
	"edit":       "Please edit the file demo.txt in the working directory: append the line \"The probe was here.\"",
	"terminal":   "Please run the command `echo acp-probe` and tell me what it prints.",
	"wait":       "Please run the command `sleep 30`, and tell me when it has ended.",
	"permission": "Please delete the file old.txt in the working directory. Ask for my permission first.",
	"plan":       "Please make a plan of three steps, and follow it: read the file notes.txt, and tell me what is in it.",
	"think":      "Please think step by step: which is larger, 9.9 or 9.11?",
	"refusal":    "Please refuse to answer this prompt.",
	"form":       "Please ask me for my name with a form.",
	"link":       "Please ask me to open a link to https://example.com/ in my browser.",
	"mode":       "Please switch your mode.",
	"notice":     "Please send me a notice.",
	"compact":    "Please compact the context of this conversation.",
	"mcp":        "Please list the tools of the MCP servers of this session.",
}

// PromptKinds lists the kinds of prompts in alphabetical order.
func PromptKinds() []string { return slices.Sorted(maps.Keys(DefaultPrompts)) }

// AgentScenarios returns the scenarios for agents, in the order in which they are reported.
func AgentScenarios() []Scenario { return agentScenarios() }
