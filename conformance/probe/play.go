package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/internal/player"
	"github.com/acpgo/sdk/conformance/internal/requirement"
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
	steps      []step // one after the other; steps.go has the common ones
}

// step is a part of a scenario. It ends the scenario early with stop.
type step func(*play)

// do plays steps one after the other.
func (p *play) do(steps ...step) {
	for _, do := range steps {
		do(p)
	}
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
	*player.Conn // to the latest launch
	target       *Target
	ctx          context.Context
	options      *Options
	launch       Launch
	name         string
	dir          string
	limits       limits

	client *client           // serves the latest launch
	states []*player.Message // the state updates of the latest launch, in version 2; guarded by the lock of the connection
	caps   string            // the name of the advertised capabilities
	init   *player.Message
	// authenticated is set if the latest launch is authenticated, or the scenario itself does that.
	authenticated bool
	session       string          // the latest session, which most steps are about
	made          *player.Message // the answer that created it
	promptID      string          // of the latest prompt
	from          int             // the number of the last message before it
	fake          *fakeAgent      // for a client under test
	taken         *player.Message // the latest prompt of the client under test
	introduce     string          // the beginning of the answer to the next prompt, for a person

	tmu      sync.Mutex
	evidence // of launches that are over, and of the scenario itself
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
	p.failAt(id, requirement.LevelOf(id), format, args...)
}

// failAt is like fail, with a level that is milder than that of the requirement.
func (p *play) failAt(id string, level conformance.Level, format string, args ...any) {
	p.addFinding(player.Finding{Finding: conformance.Finding{Rule: id, Level: level,
		Message: fmt.Sprintf(format, args...)}})
}

// fatal is like failAt, and ends the scenario.
func (p *play) fatal(id string, level conformance.Level, format string, args ...any) {
	p.failAt(id, level, format, args...)
	panic(stop{})
}

// broken is like fail, and ends the scenario.
func (p *play) broken(id, format string, args ...any) {
	p.fail(id, format, args...)
	panic(stop{})
}

// doubt reports that the program may break a requirement, if a program that meets it could behave the same.
func (p *play) doubt(id, format string, args ...any) {
	p.addFinding(player.Finding{Finding: conformance.Finding{Rule: id, Level: requirement.LevelOf(id),
		Message: fmt.Sprintf(format, args...)}, Doubt: true})
}

// addFinding adds a finding of the scenario itself.
func (p *play) addFinding(f player.Finding) {
	if requirement.Find(f.Rule) == nil {
		panic(fmt.Sprintf("probe: scenario %s: there is no requirement %s", p.name, f.Rule)) // the tests play all scenarios
	}
	p.markExercised(f.Rule)
	f.Late, p.unanswered = p.unanswered, false
	if p.Conn != nil {
		f.Number = p.LastNumber()
	}
	p.tmu.Lock()
	defer p.tmu.Unlock()
	p.Findings = append(p.Findings, f)
}

// markExercised records that the scenario has checked requirements.
func (p *play) markExercised(ids ...string) { p.record(p.Ran, ids) }

// trait records an event that exercises requirements; see rows.txt.
func (p *play) trait(names ...string) { p.record(p.Traits, names) }

func (p *play) record(in map[string]bool, names []string) {
	p.tmu.Lock()
	defer p.tmu.Unlock()
	for _, name := range names {
		in[name] = true
	}
}

// saw reports whether a trait was recorded.
func (p *play) saw(trait string) bool {
	p.tmu.Lock()
	defer p.tmu.Unlock()
	return p.Traits[trait]
}

// check marks a requirement as exercised, and reports it as broken unless ok.
func (p *play) check(id string, ok bool, format string, args ...any) bool {
	p.markExercised(id)
	if !ok {
		p.fail(id, format, args...)
	}
	return ok
}

// end ends the program if it is running, and keeps its findings.
func (p *play) end() {
	c := p.Conn
	if c == nil {
		return
	}
	if p.client != nil {
		p.client.close()
	}
	byItself := c.Close(p.limits.rung)
	if p.options.subject.side == conformance.Client {
		byItself = true // clients decide themselves when they end
	} else {
		p.markExercised("TRN-10")
	}
	if !byItself && p.target.Process {
		p.trait("survived")
		p.failAt("TRN-10", conformance.Should, "the agent kept running for %v after the end of its input", p.limits.rung)
	}
	p.tmu.Lock()
	defer p.tmu.Unlock()
	found, log := c.Take()
	p.Findings = append(p.Findings, found...)
	p.log = append(p.log, log...)
	if p.target.Stderr != nil {
		p.stderr = p.target.Stderr.String()
	}
	p.Conn = nil
}

// why adds to a text what happened instead of an answer, for the next finding.
func (p *play) why(text string) string {
	if err := p.Ending(); err != nil {
		return fmt.Sprintf("%s: the %s has ended: %v", text, p.options.subject.side, err)
	}
	// The first scenario is short and played alone, so an endless turn in it is certain.
	p.unanswered = !p.endless || p.name != startScenario
	if p.endless {
		return fmt.Sprintf("%s within %v, the time of the scenario", text, p.options.ScenarioTime+p.limits.grace)
	}
	return fmt.Sprintf("%s within %v", text, p.patience()+p.limits.grace)
}

// patience returns the time limit of an answer. The first answer of a launch also has the time of the start.
func (p *play) patience() time.Duration {
	if !p.HasSpoken() {
		return 2 * p.limits.answer
	}
	return p.limits.answer
}

// can reports whether the program advertises a capability.
func (p *play) can(capability string) bool {
	return p.init != nil && p.options.subject.advertises(p.init.Params, capability)
}

// advertises reports whether the program's part of initialize has a capability.
func (about *subject) advertises(said json.RawMessage, capability string) bool {
	v := player.Member(said, append([]string{about.capabilities}, strings.Split(capability, ".")...)...)
	return v != nil && string(v) != "null" && string(v) != "false"
}

// call sends a request and waits for its answer. It returns nil if there is none in time. It authenticates first if the
// agent requires it and the user has chosen a method.
func (p *play) call(method, params string) *player.Message {
	m := p.await(p.Ask(method, params, ""))
	if m.Code() == codeAuth && p.options.Auth != "" && p.init != nil && !p.authenticated {
		p.authenticate()
		m = p.await(p.Ask(method, params, ""))
	}
	return m
}

// authenticate authenticates with the chosen method. If that fails, the scenario ends.
func (p *play) authenticate() {
	p.authenticated = true
	method := "authenticate"
	if p.options.subject.version == 2 {
		method = "auth/login"
	}
	m := p.await(p.Ask(method, `{"methodId":`+player.Quote(p.options.Auth)+`}`, ""))
	if m == nil || m.Kind == conformance.ErrorReply {
		p.stopf("authentication with %s failed: %s", p.options.Auth, player.AnswerText(m))
	}
}

// Error codes: authentication is required, a request was cancelled.
const (
	codeAuth      = -32000
	codeCancelled = -32800
)

// await waits for the answer to a request.
func (p *play) await(id string) (m *player.Message) {
	if late := p.patiently(p.answerTo(id, &m)); m != nil && late > 0 {
		p.slow = append(p.slow, fmt.Sprintf("%s was answered after %v", m.Method, late))
	}
	if m == nil {
		p.checkTime()
	}
	return m
}

// awaitWithin waits for the answer to a request, with a time limit.
func (p *play) awaitWithin(id string, limit time.Duration) (m *player.Message) {
	p.Wait(p.ctx, limit, p.answerTo(id, &m))
	return m
}

// awaitTurn waits for the answer to a prompt for as long as updates come.
func (p *play) awaitTurn(id string) (m *player.Message) {
	p.awaitEnd("session/prompt was answered", p.answerTo(id, &m))
	return m
}

// answerTo is the condition that a request is answered. It sets m to the first answer.
func (p *play) answerTo(id string, m **player.Message) func() bool {
	return func() bool {
		*m = p.AnswerOf(id)
		return *m != nil
	}
}

// patiently waits until done returns true, at most for the time of an answer and then for what is left of the grace. It
// returns how long it waited if it used the grace.
func (p *play) patiently(done func() bool) (late time.Duration) {
	limit := p.patience()
	rest := p.limits.grace - p.overdrawn
	if p.Wait(p.ctx, limit, done) || rest <= 0 || p.ctx.Err() != nil {
		return 0
	}
	began := time.Now()
	p.Wait(p.ctx, rest, done)
	took := time.Since(began)
	p.overdrawn += took
	return (limit + took).Round(time.Millisecond)
}

// checkTime ends the scenario if its time limit is reached, because the absence of an event within a shorter time than
// the program may take proves nothing.
func (p *play) checkTime() {
	if p.ctx.Err() != nil {
		p.cut = true
		p.stopf("%v", context.Cause(p.ctx))
	}
}

// awaitEnd waits for the end of a turn for as long as messages come, and reports whether it has come. It calls ended
// with the lock of the connection held. A turn that fills most of the scenario's time is endless: its missing end is
// not due to a lack of time.
func (p *play) awaitEnd(what string, ended func() bool) bool {
	began := time.Now()
	for {
		seen := p.LastNumber()
		over, alive := false, false
		late := p.patiently(func() bool {
			over = ended()
			alive = over || p.HasMore(seen)
			return alive
		})
		if over && late > 0 {
			p.slow = append(p.slow, fmt.Sprintf("%s after %v of silence", what, late))
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
func (p *play) must(id, method, params string) *player.Message {
	p.markExercised(id)
	m := p.call(method, params)
	switch {
	case m == nil:
		p.fail(id, "%s", p.why(method+" was not answered"))
	case m.Kind == conformance.ErrorReply:
		p.fail(id, "%s was answered with an error: %s", method, player.AnswerText(m))
		return nil
	}
	return m
}

// isAnswered reports whether there is an answer to a request, whichever, and reports it as missing otherwise.
func (p *play) isAnswered(m *player.Message, what string) bool {
	if m == nil {
		p.failAt("OVW-3", conformance.Must, "%s", p.why(what+" was not answered"))
	}
	return m != nil
}

// requireError checks that the answer to a wrong request is an error, with one of the codes if any are given. The
// argument what describes the request.
func (p *play) requireError(id string, m *player.Message, what string, codes ...int) {
	p.markExercised(id)
	switch {
	case m == nil:
		p.failAt("OVW-3", conformance.Must, "%s", p.why(what+": no answer"))
	case m.Kind != conformance.ErrorReply:
		p.fail(id, "%s was answered with a result: %s", what, player.AnswerText(m))
	case len(codes) > 0 && !slices.Contains(codes, m.Code()):
		want := strings.ReplaceAll(strings.Trim(fmt.Sprint(codes), "[]"), " ", " or ")
		p.failAt(id, max(conformance.Should, requirement.LevelOf(id)),
			"%s was answered with the error %d, want %s: %s", what, m.Code(), want, player.AnswerText(m))
	}
}

// needs ends the scenario with a finding if there is no answer. The text says what did not happen.
func (p *play) needs(m *player.Message, id string, level conformance.Level, format string,
	args ...any) *player.Message {
	if m == nil {
		p.fatal(id, level, "%s", p.why(fmt.Sprintf(format, args...)))
	}
	return m
}

// requireAnswer waits for an answer, and reports the requirement as broken if there is none.
func (p *play) requireAnswer(id, request, what string) *player.Message {
	m := p.await(request)
	p.markExercised(id)
	// Every request must be answered, so the level is at least SHOULD.
	return p.needs(m, id, min(requirement.LevelOf(id), conformance.Should), "%s was not answered", what)
}

// checkAlive checks that the program serves the next request. The request is an unknown one, so that the answer does
// not depend on the program's state.
func (p *play) checkAlive(id, after string) {
	m := p.call(alive, "{}")
	p.markExercised(id)
	p.needs(m, id, conformance.Must, "the next request was not served after %s", after)
}

// alive is the method of requests that only show that the program still answers.
const alive = "_acp.probe/alive"

// fill replaces {dir} and {session} in the text of params by the directory and the session of the scenario, as JSON.
func (p *play) fill(text string) string { return p.fillFor(p.session, text) }

// fillFor is like fill, for another session.
func (p *play) fillFor(session, text string) string {
	return strings.NewReplacer("{dir}", player.Quote(p.dir), "{session}", player.Quote(session)).Replace(text)
}

// Params of requests about sessions, for fill.
const (
	newParams      = `{"cwd":{dir},"mcpServers":[]}`
	openParams     = `{"sessionId":{session},"cwd":{dir},"mcpServers":[]}`
	sessionParams  = `{"sessionId":{session}}`
	unknownSession = `{"sessionId":"` + noSession + `"}`
	noSession      = "acp-probe-no-such-session"
)

// file writes a file to the scratch directory and returns its path.
func (p *play) file(name, text string) string {
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.stopf("the scratch folder could not be used: %v", err)
	}
	return path
}

// folder makes a folder in the scratch folder.
func (p *play) folder(name string) string {
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(path, 0o700); err != nil {
		p.stopf("the scratch folder could not be used: %v", err)
	}
	return path
}

// sleep waits for a while.
func (p *play) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-p.ctx.Done():
	}
}

// silence waits until the program has sent nothing for a while, or has ended.
func (p *play) silence(d time.Duration) { p.Conn.Quiet(p.ctx, d) }

// serveHTTP starts a web server that answers all requests with a status, and counts them until end is called.
func (p *play) serveHTTP(status int) (url string, hits func() int64, end func()) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.stopf("the web server could not be started: %v", err)
	}
	var count atomic.Int64
	handler := func(w http.ResponseWriter, _ *http.Request) {
		count.Add(1)
		w.WriteHeader(status)
	}
	server := &http.Server{ReadHeaderTimeout: p.limits.answer, Handler: http.HandlerFunc(handler)}
	served := make(chan struct{})
	go func() { // ends by Close
		defer close(served)
		server.Serve(listener)
	}()
	return "http://" + listener.Addr().String(), count.Load, func() { server.Close(); <-served }
}
