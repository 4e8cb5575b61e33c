package probe

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/acpgo/sdk/conformance/internal/player"
	"io"
	"os"
	"slices"
	"time"
)

// Serve plays an agent to a client that a person operates. Each prompt of the person begins the next scenario; if the
// person has to do something, the agent says so in the conversation. Scenarios with the standard agent follow each
// other until the client ends the connection. A scenario with a special agent, such as one of another version, needs
// its own launch. Scenarios in done are not played again. Serve calls ended for each scenario that was played.
func Serve(ctx context.Context, target *Target, options *Options, done map[string]bool,
	ended func(*Outcome) error) error {
	o, err := options.complete(&clients)
	if err != nil {
		return err
	}
	var all []Scenario
	for _, s := range o.choose(ClientScenarios()) {
		if !done[s.Name] && !s.ends {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		all = []Scenario{ClientScenarios()[0]} // everything was played, but it continues as an agent
	}
	batch := slices.DeleteFunc(slices.Clone(all), func(s Scenario) bool { return s.persona.name != full.name })
	if len(batch) == 0 {
		batch = all[:1]
	}
	dir, err := os.MkdirTemp(o.Scratch, "client-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p := o.newPlay(ctx, func(context.Context, string) (*Target, error) { return target, nil }, "", dir)
	target.User, target.person = p.person, true
	var failed error
	p.script(&Scenario{persona: batch[0].persona, steps: []step{func(p *play) {
		for i := range batch {
			out, over := p.serveOne(&batch[i], len(all)-i)
			if failed = errors.Join(failed, ended(out)); over || failed != nil {
				return
			}
		}
		p.fake.mu.Lock()
		p.fake.free = true
		p.fake.mu.Unlock()
		p.ends(o.ScenarioTime)
	}}})
	return failed
}

// person asks a person to do something, with a message in the current turn.
func (p *play) person(a Action) <-chan struct{} {
	text := map[Action]string{
		ActCancel: "Please cancel this turn now.", ActAllow: "Please grant what is asked for.",
		ActReject: "Please refuse what is asked for.",
		ActNew:    "Please make another session.", ActList: "Please list the sessions.",
		ActLoad:   "Please load this session again.",
		ActResume: "Please resume this session.", ActClose: "Please close this session.",
		ActDelete: "Please delete this session.",
		ActMode:   "Please change the mode.", ActOption: "Please change an option.",
		ActToggle: "Please switch the option on or off.", ActLogout: "Please log out.",
	}[a]
	p.fake.mu.Lock()
	done := p.fake.prompted // at the latest when they send the next prompt
	p.fake.mu.Unlock()
	session := p.session
	if session == "" || text == "" {
		return done // a prompt needs no explanation
	}
	if a != ActCancel && a != ActAllow && a != ActReject {
		text += " If there is no way to do that, send another prompt."
	}
	p.Notify("session/update", `{"sessionId":`+player.Quote(session)+`,"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":`+player.Quote("\n"+text+"\n")+`}}}`)
	return done
}

// serveOne plays one scenario over the existing connection, and returns its findings.
func (p *play) serveOne(s *Scenario, left int) (out *Outcome, over bool) {
	began := time.Now()
	p.name, p.skipped = s.Name, ""
	p.introduce = fmt.Sprintf("Scenario %s (%d to go): %s\n", s.Name, left-1, s.Text)
	p.safely(func() { p.do(s.steps...) })
	found, log := p.Conn.Take()
	over = p.HasEnded()
	p.tmu.Lock()
	defer p.tmu.Unlock()
	if over {
		// The person has left, so missing messages prove nothing.
		p.Findings, p.Ran = nil, map[string]bool{}
		p.skipped = cmp.Or(p.skipped, "the client ended during it")
	}
	out = &Outcome{Name: s.Name, Text: s.Text, Run: 1, Skipped: p.skipped, Time: time.Since(began)}
	out.Seconds = out.Time.Seconds()
	out.take(s, p, append(p.Findings, found...), log)
	itself := p.Itself
	p.evidence = newEvidence()
	p.Itself = itself // the connection is still the same
	return out, over || p.ctx.Err() != nil
}

// savedOutcome is an outcome in a file.
type savedOutcome struct {
	*Outcome
	evidence
}

// WriteOutcome writes an outcome as a line for [ReadOutcomes].
func WriteOutcome(w io.Writer, out *Outcome) error {
	line, err := json.Marshal(savedOutcome{out, out.seen})
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// ReadOutcomes reads the outcomes that [WriteOutcome] has written. If a scenario was played several times, the last run
// that was finished counts.
func ReadOutcomes(r io.Reader) ([]*Outcome, error) {
	lines := json.NewDecoder(r)
	var all []*Outcome
	for number := 1; ; number++ {
		var saved savedOutcome
		if err := lines.Decode(&saved); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("outcome %d: %w", number, err)
		}
		out := saved.Outcome
		if out == nil || out.Name == "" {
			return nil, fmt.Errorf("outcome %d has no scenario", number)
		}
		out.seen = saved.evidence
		out.Time = time.Duration(out.Seconds * float64(time.Second))
		i := slices.IndexFunc(all, func(other *Outcome) bool { return other.Name == out.Name })
		switch {
		case i < 0:
			all = append(all, out)
		case out.Skipped == "" || all[i].Skipped != "":
			all[i] = out
		}
	}
}

// ClientReport returns the report on a client whose scenarios [Serve] has played. Requirements whose scenarios were not
// played are not exercised.
func ClientReport(outcomes []*Outcome, options *Options) (*Report, error) {
	o, err := options.complete(&clients)
	if err != nil {
		return nil, err
	}
	r := o.newReport(true)
	r.Target = cmp.Or(r.Target, "a client")
	outcomes = slices.Clone(outcomes)
	for _, s := range o.choose(ClientScenarios()) {
		if !s.ends && !slices.ContainsFunc(outcomes, func(out *Outcome) bool { return out.Name == s.Name }) {
			outcomes = append(outcomes,
				&Outcome{Name: s.Name, Text: s.Text, Run: 1,
					Skipped: "not played yet: send more prompts, and restart the client if no other one follows"})
		}
	}
	for _, out := range outcomes {
		r.Seconds += out.Seconds
		if o.Target == "" {
			r.Target = cmp.Or(player.TextOf(out.seen.Itself, "clientInfo", "name"), r.Target)
		}
	}
	r.makeRows(o, [][]*Outcome{outcomes})
	return r, nil
}
