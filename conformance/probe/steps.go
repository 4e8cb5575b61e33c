// The steps of which most scenarios for agents consist. Each acts on the latest session and the latest prompt.

package probe

import (
	"slices"

	"github.com/acpgo/sdk/conformance/internal/player"
)

// Steps without arguments.
var (
	ready         step = (*play).ready // initialize with all capabilities of a client, and create a session
	newSession    step = func(p *play) { p.newSession() }
	launched      step = (*play).start
	ended         step = (*play).end
	settled       step = (*play).settle
	silence       step = func(p *play) { p.silence(p.limits.quiet) }
	accepted      step = func(p *play) { p.await(p.promptID) }
	cancelTurn    step = (*play).cancel
	endsCancelled step = func(p *play) { p.endCancelled() }
	nextPrompt    step = (*play).promptAfterCancel
	afterCancel   step = (*play).checkAfterCancel
	released      step = (*play).checkReleased
)

// initialized launches the agent and initializes with capabilities.
func initialized(name, capabilities string) step {
	return func(p *play) { p.initialize(name, capabilities) }
}

// files writes files to the session's directory.
func files(names ...string) step {
	return func(p *play) {
		for _, name := range names {
			p.file(name, fileTexts[name])
		}
	}
}

// fileTexts are the files that prompts are about.
var fileTexts = map[string]string{
	"notes.txt": "Notes of the probe.\n", "demo.txt": "A file of the probe.\n", "old.txt": "Old.\n",
}

// prompts plays a turn for each kind of prompt.
func prompts(kinds ...string) step {
	return func(p *play) {
		for _, kind := range kinds {
			p.prompt(kind)
		}
	}
}

// begin sends a prompt.
func begin(kind string) step { return func(p *play) { p.begin(kind) } }

// streaming begins a long turn, and waits for its first n updates. If they do not arrive, the scenario ends.
func streaming(n int) step {
	return func(p *play) {
		if p.begin("long"); !p.streams(n) {
			panic(stop{})
		}
	}
}

// asked waits for a request of the agent. If it does not arrive in the turn, the turn is cancelled and the scenario
// ends.
func asked(method string) step {
	return func(p *play) {
		if p.awaitRequest(method) == nil || p.isDone() {
			p.cancel()
			panic(stop{})
		}
	}
}

// tries marks requirements as exercised.
func tries(ids ...string) step { return func(p *play) { p.markExercised(ids...) } }

// happens records a trait.
func happens(trait string) step { return func(p *play) { p.trait(trait) } }

// notify sends a notification.
func notify(method string, params ...string) step {
	return func(p *play) {
		for _, text := range params {
			p.Notify(method, p.fill(text))
		}
	}
}

// line sends lines, which need not be messages.
func line(texts ...string) step {
	return func(p *play) {
		for _, text := range texts {
			p.Line([]byte(text))
		}
	}
}

// continues checks that the agent serves the next request.
func continues(id, after string) step { return func(p *play) { p.checkAlive(id, after) } }

// serves sends a request that has to be served. The scenario ends if it is not.
func serves(id, method, params string) step {
	return func(p *play) {
		if p.must(id, method, p.fill(params)) == nil {
			panic(stop{})
		}
	}
}

// answers sends a request that has to be answered, with a result or an error. The scenario ends if it is not.
func answers(method, params, what string) step {
	return func(p *play) {
		if !p.isAnswered(p.call(method, p.fill(params)), what) {
			panic(stop{})
		}
	}
}

// refuses sends a wrong request. The answer has to be an error, with one of the codes if any are given.
func refuses(id, method, params, what string, codes ...int) step {
	return func(p *play) { p.requireError(id, p.call(method, p.fill(params)), what, codes...) }
}

// wrongParams are the codes for params that are wrong.
var wrongParams = []int{-32602, -32600}

// unanswered sends notifications by steps, and checks that the agent then answers a request and nothing else. If it
// does answer, that breaks the requirement id as what says.
func unanswered(id, what string, steps ...step) step {
	return func(p *play) {
		before := p.LastNumber()
		p.do(steps...)
		p.markExercised(id)
		answers := slices.DeleteFunc(p.Since(before), func(m *player.Message) bool { return !p.IsTheirs(m) || !m.IsReply() })
		if len(answers) > 1 {
			p.fail(id, "%s: id %s: %s", what, answers[0].ID, player.AnswerText(answers[0]))
		}
	}
}
