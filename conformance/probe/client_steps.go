// The steps of which most scenarios for clients consist. Each acts on the latest prompt of the client.

package probe

import (
	"cmp"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/internal/player"
	"github.com/acpgo/sdk/conformance/internal/requirement"
)

// Steps without arguments.
var (
	prompted step = (*play).awaitPrompt // take the next prompt of the client
	quits    step = (*play).quits       // have the user end the client
)

// turn takes the next prompt of the client, plays steps and ends the turn. Without a prompt the scenario ends.
func turn(steps ...step) step {
	return func(p *play) {
		p.awaitPrompt()
		p.inTurn(steps)
	}
}

// nextTurn is like turn, but does nothing without a prompt.
func nextTurn(steps ...step) step {
	return func(p *play) {
		if p.nextPrompt() != nil {
			p.inTurn(steps)
		}
	}
}

func (p *play) inTurn(steps []step) {
	p.do(steps...)
	p.endTurn("end_turn")
}

// endTurn ends the turn with a stop reason.
func endTurn(reason string) step { return func(p *play) { p.endTurn(reason) } }

func (p *play) endTurn(reason string) {
	p.Conn.Answer(p.taken, "result", `{"stopReason":`+player.Quote(reason)+`}`)
}

// failingTurn answers the next prompt of the client with an error.
func failingTurn(text string) step {
	return func(p *play) {
		p.awaitPrompt()
		p.Conn.Answer(p.taken, "error", text)
	}
}

// updates sends updates of the prompt's session.
func updates(texts ...string) step {
	return func(p *play) {
		for _, text := range texts {
			p.update(text)
		}
	}
}

// says sends a text of the agent, and saysOften sends it many times.
func says(text string) step { return saysOften(1, text) }

// saysLong sends so many bytes of text, which exist only then.
func saysLong(length int) step {
	return func(p *play) { p.sendText(strings.Repeat("long ", length/5)) }
}

func saysOften(times int, text string) step {
	return func(p *play) {
		for range times {
			p.sendText(text)
		}
	}
}

// tool announces a tool call.
func tool(id, kind string) step { return func(p *play) { p.tool(id, kind) } }

func (p *play) tool(id, kind string) {
	p.update(`{"sessionUpdate":"tool_call","toolCallId":` + player.Quote(id) + `,"title":"A call of the probe","kind":` + player.Quote(kind) + `,"status":"pending"}`)
}

const permissionOptions = `[{"optionId":"yes","name":"Allow","kind":"allow_once"},{"optionId":"no","name":"Reject","kind":"reject_once"}]`

// askPermission asks for permission for a tool call, and returns the request's id.
func (p *play) askPermission(call string) string {
	return p.Ask("session/request_permission", p.turnParams(`,"toolCall":{"toolCallId":`+player.Quote(call)+`,"title":"A call of the probe"},"options":`+permissionOptions), "")
}

// decided has the user decide about a tool call t1.
func decided(a Action) step {
	return func(p *play) {
		p.tool("t1", "edit")
		if p.decides(p.askPermission("t1"), a) == nil {
			p.stopf("the permission request was not answered")
		}
	}
}

// prompting has the user prompt, and waits for a message that follows from it. Without it the scenario ends.
func prompting(method, otherwise string) step {
	return func(p *play) {
		done, _ := p.act(ActPrompt)
		if p.arrives(method, 0, done) == nil {
			p.stopf("%s", otherwise)
		}
	}
}

// does has the user do something, and waits for a message that follows from it. Without it the scenario ends.
func does(a Action, method, otherwise string) step {
	return func(p *play) {
		if p.does(a, method) == nil {
			p.stopf("%s", otherwise)
		}
	}
}

// promptsDespite checks that the client prompts in a session although there is something odd about it, and continues.
func promptsDespite(id, what string, exercised ...string) step {
	return func(p *play) {
		m := p.nextPrompt()
		p.markExercised(exercised...)
		p.needs(m, id, requirement.LevelOf(id), "the client sent no prompt to a session with %s", what)
		p.checkAlive(id, what)
		p.endTurn("end_turn")
	}
}

// survives checks that the client continues after an error: it takes another request, or it has ended by itself, as a
// program for one prompt may that ends with any turn.
func survives(id, after string) step {
	return func(p *play) {
		m := p.await(p.Ask(alive, "{}", ""))
		p.markExercised(id)
		level := max(conformance.Should, requirement.LevelOf(id))
		switch {
		case m != nil:
		case !p.HasEnded():
			p.fatal(id, level, "the client served no request after %s", after)
		case p.stays:
			p.failAt(id, level, "the client ended at %s; it does not end with other turns", after)
		}
	}
}

// refuses sends a request that has to be answered with an error.
func (p *play) refuses(id, method, params, what string, codes ...int) {
	p.requireError(id, p.requireAnswer(id, p.Ask(method, params, ""), what), what, codes...)
}

// cancels plays steps in a turn, which the user then cancels. A client without a user may cancel a later one of its own
// accord, so several are tried. The turn is not ended.
func cancels(steps ...step) step {
	return func(p *play) {
		for range maxTurns {
			if p.nextPrompt() == nil {
				break
			}
			from := p.LastNumber()
			p.do(steps...)
			saysOften(3, "On and on it goes. ")(p)
			idle, can := p.act(ActCancel)
			limit := p.limits.answer
			if !can {
				limit = p.limits.quiet
			}
			if c := p.arrivesWithin("session/cancel", from, idle, limit); c != nil && c.Text("sessionId") == p.session {
				return
			}
			p.endTurn("end_turn")
		}
		p.stopf("the client did not cancel a turn")
	}
}

// maxTurns is how many turns are tried.
const maxTurns = 8

// quits has the user end the client, which closes the connection.
func (p *play) quits() {
	if _, can := p.act(ActQuit); !can {
		p.stopf("the client's user did not end it")
	}
	p.markExercised("TRN-10")
	if !p.ends(p.limits.answer) {
		p.checkTime()
		p.failAt("TRN-10", conformance.Should, "the client did not close the connection when its user ended it")
	}
}

// place is a folder in the directory of the prompt's session, for files; remove takes it away.
func (p *play) place() (dir string, remove func()) {
	p.fake.mu.Lock()
	cwd := p.dir
	if s := p.fake.session(p.session); s != nil {
		cwd = cmp.Or(s.cwd, cwd)
	}
	p.fake.mu.Unlock()
	dir, err := os.MkdirTemp(cwd, ".acp-probe-")
	if err != nil {
		p.stopf("no folder could be created in the session's directory: %v", err)
	}
	return dir, func() { os.RemoveAll(dir) }
}

// readFile has the client read a file.
func (p *play) readFile(path, more string) *player.Message {
	return p.requireAnswer("FS-6", p.Ask("fs/read_text_file", p.turnParams(`,"path":`+player.Quote(path)+more), ""), "fs/read_text_file")
}

// terminal starts a command of the shell, and returns its id.
func (p *play) terminal(script, more string) string {
	shell, err := exec.LookPath("sh")
	if err != nil {
		p.stopf("this machine has no sh")
	}
	began := time.Now()
	m := p.requireAnswer("TRM-6", p.Ask("terminal/create", p.turnParams(`,"command":`+player.Quote(shell)+`,"args":["-c",`+player.Quote(script)+`]`+more), ""), "terminal/create")
	if m.Kind == conformance.ErrorReply {
		p.broken("TRM-6", "terminal/create was answered with an error: %s", player.AnswerText(m))
	}
	if took := time.Since(began); took > p.limits.answer/2 {
		p.fail("TRM-6", "terminal/create took %v", took)
	}
	return m.Text("terminalId")
}

// ofTerminal sends a request about a terminal, whose answer is due.
func (p *play) ofTerminal(id, method, terminal string) *player.Message {
	return p.requireAnswer(id, p.Ask("terminal/"+method, p.turnParams(`,"terminalId":`+player.Quote(terminal)), ""), "terminal/"+method)
}

// elicit has the user answer an elicitation. Without an answer the scenario ends.
func (p *play) elicit(params string, a Action) *player.Message {
	m := p.decides(p.Ask("elicitation/create", p.turnParams(params), ""), a)
	if m == nil {
		p.stopf("the elicitation was not answered")
	}
	return m
}
