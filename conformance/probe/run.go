// The runner: which scenarios are played, at most so many at a time, each in a folder and on a launch of its own.

package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/acpgo/sdk/conformance"
)

// Options configure a probe. The zero value of each field means its default.
type Options struct {
	// Protocol is the version of the protocol that agents are probed in: 1, or 2, which is a draft. Default 1.
	Protocol int
	// Target is how the program is named in the report.
	Target string
	// Version is that of the tool, for the report.
	Version string
	// Scratch is the folder in which each scenario gets its own; it must exist. It may not be in use by others.
	Scratch string
	// Prompts are the texts of prompts by their kind, in place of DefaultPrompts.
	Prompts map[string]string
	// Auth is the id of the method by which the probe authenticates when the agent asks for it.
	Auth string
	// Only and Skip are scenarios by their name, requirements by their id ("SES-7"), or pages ("SES").
	Only, Skip []string
	// Baseline are requirements whose failures are known, with the reason.
	Baseline map[string]string
	// Jobs is how many scenarios are played at a time. Default 1.
	Jobs int
	// Runs is how often everything is played. Default 1.
	Runs int
	// Answer bounds the start and each answer; default 30 s. Quiet is the silence after which nothing more is expected;
	// default a tenth of Answer. Rung is each step of ending a program; default 2 s.
	Answer, Quiet, Rung time.Duration
	// ScenarioTime bounds a scenario, default four times Answer; Time bounds all of them, default none.
	ScenarioTime, Time time.Duration
	// MCP returns a command that serves MCP over its standard files, and writes a line into the file when it is spoken
	// to. Nil: what needs one is not exercised.
	MCP func(file string) (command string, args []string)
	// Repeat returns the command that plays one scenario alone.
	Repeat func(scenario string) string
	// Progress is called, by one goroutine at a time, when a scenario has ended.
	Progress func(done, all int, outcome *Outcome)

	subject      *subject
	requirements []string // of Only
	scenarios    []string // of Only
}

// subject is what a probe is about.
type subject struct {
	side               conformance.Side
	version            int    // of the protocol that it is played in, 0 for 1
	word               string // for it
	capabilities, info string // the members of initialize in which it states them
	rows               map[string]exercise
	scenarios          func() []Scenario
	script             func(*play, *Scenario)
	// request and result note what a message of the program shows beside its method.
	request, result func(p *play, m *message, add func(...string))
}

// Agent puts an agent through the protocol.
func Agent(ctx context.Context, launch Launch, options *Options) (*Report, error) {
	about := &agents
	switch {
	case options == nil || options.Protocol == 0 || options.Protocol == 1:
	case options.Protocol == 2:
		about = &drafts
	default:
		return nil, fmt.Errorf("version %d of the protocol cannot be probed", options.Protocol)
	}
	return run(ctx, launch, options, about)
}

// agents are what [Agent] is about.
var agents = subject{
	side: conformance.Agent, word: "agent", capabilities: "agentCapabilities", info: "agentInfo",
	rows: agentRows, scenarios: agentScenarios, script: func(p *play, s *Scenario) { s.run(p) },
	request: (*play).observeRequest, result: (*play).observeResult,
}

// run plays the scenarios for a subject.
func run(ctx context.Context, launch Launch, options *Options, about *subject) (*Report, error) {
	o, err := options.complete(about)
	if err != nil {
		return nil, err
	}
	if o.Time > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Time, errors.New("the time of the whole probe is over"))
		defer cancel()
	}
	began := time.Now()
	chosen := o.choose(about.scenarios())
	r := &Report{
		Tool: "acp", Version: o.Version, Target: o.Target, Side: about.word, Protocol: max(1, about.version), Rows: []Row{}, Scenarios: []*Outcome{},
		partial: len(o.Only)+len(o.Skip) > 0,
	}
	var runs [][]*Outcome
	all := len(chosen) * o.Runs
	done := 0
	for run := range o.Runs {
		runs = append(runs, o.playAll(ctx, launch, chosen, run+1, func(out *Outcome) {
			done++
			if o.Progress != nil {
				o.Progress(done, all, out)
			}
		}))
	}
	r.Seconds = time.Since(began).Seconds()
	r.makeRows(o, runs)
	if o.Repeat != nil {
		for i := range r.Rows {
			for j := range r.Rows[i].Failures {
				r.Rows[i].Failures[j].Repeat = o.Repeat(r.Rows[i].Failures[j].Scenario)
			}
		}
	}
	return r, ctx.Err()
}

// complete fills in the defaults and checks the names.
func (options *Options) complete(about *subject) (*Options, error) {
	o := &Options{}
	if options != nil {
		*o = *options
	}
	o.subject = about
	o.Jobs, o.Runs = max(1, o.Jobs), max(1, o.Runs)
	o.Answer = cmp.Or(o.Answer, 30*time.Second)
	o.Quiet = cmp.Or(o.Quiet, o.Answer/10)
	o.Rung = cmp.Or(o.Rung, 2*time.Second)
	o.ScenarioTime = cmp.Or(o.ScenarioTime, 4*o.Answer)
	known := map[string]bool{}
	for _, s := range about.scenarios() {
		known[s.Name] = true
	}
	for _, name := range slices.Concat(o.Only, o.Skip) {
		if !known[name] && !isRequirement(name) {
			return nil, fmt.Errorf("there is no scenario and no requirement %q", name)
		}
	}
	for _, name := range o.Only {
		if known[name] {
			o.scenarios = append(o.scenarios, name)
		} else {
			o.requirements = append(o.requirements, name)
		}
	}
	for id := range o.Baseline {
		if _, ok := requirement(id); !ok {
			return nil, fmt.Errorf("the baseline: there is no requirement %q", id)
		}
	}
	for kind := range o.Prompts {
		if _, ok := DefaultPrompts[kind]; !ok {
			return nil, fmt.Errorf("there is no kind of prompt %q", kind)
		}
	}
	return o, nil
}

// isRequirement reports whether a name is a requirement's or a page's.
func isRequirement(name string) bool {
	for id := range requirements() {
		if matches(name, id) {
			return true
		}
	}
	return false
}

// matches reports whether an id or the prefix of a page is about a requirement.
func matches(name, id string) bool {
	page, _, _ := strings.Cut(id, "-")
	return strings.EqualFold(name, id) || strings.EqualFold(name, page)
}

func (o *Options) selects(id string) bool {
	return slices.ContainsFunc(o.requirements, func(name string) bool { return matches(name, id) })
}

func (o *Options) skips(id string) bool {
	return slices.ContainsFunc(o.Skip, func(name string) bool { return matches(name, id) })
}

// choose are the scenarios to play. Which requirements a scenario exercises by what passes shows only when it is played;
// so requirements alone choose all scenarios that may say something of them.
func (o *Options) choose(all []Scenario) []Scenario {
	return slices.DeleteFunc(slices.Clone(all), func(s Scenario) bool {
		if slices.Contains(o.Skip, s.Name) {
			return true
		}
		if len(o.Only) == 0 || slices.Contains(o.scenarios, s.Name) {
			return false
		}
		if len(o.requirements) == 0 {
			return true
		}
		for id, x := range o.subject.rows {
			if o.selects(id) && (len(x.on) > 0 || slices.Contains(s.Exercises, id)) {
				return false
			}
		}
		return true
	})
}

// playAll plays scenarios. The first one alone: if the program does not even start, there is no sense in the others.
func (o *Options) playAll(ctx context.Context, launch Launch, scenarios []Scenario, run int, done func(*Outcome)) []*Outcome {
	outcomes := make([]*Outcome, len(scenarios))
	if len(scenarios) == 0 {
		return outcomes
	}
	again := func(i int, first *Outcome) bool {
		return o.playAgain(ctx, launch, &scenarios[i], run, first, &outcomes[i])
	}
	outcomes[0] = o.play(ctx, launch, &scenarios[0], run, nil, 0)
	again(0, nil)
	done(outcomes[0])
	var first *Outcome
	if scenarios[0].Name == startScenario {
		first = outcomes[0]
	}
	var mu sync.Mutex
	var workers sync.WaitGroup
	next := make(chan int)
	for range o.Jobs {
		workers.Go(func() {
			for i := range next {
				out := o.play(ctx, launch, &scenarios[i], run, first, 0)
				mu.Lock()
				outcomes[i] = out
				done(out)
				mu.Unlock()
			}
		})
	}
	// Those that wait for silence last longest: they go first.
	order := make([]int, 0, len(scenarios))
	for i := range scenarios[1:] {
		order = append(order, i+1)
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(boolean(scenarios[b].quiet), boolean(scenarios[a].quiet))
	})
	for _, i := range order {
		next <- i
	}
	close(next)
	workers.Wait()
	for i, stuck := 1, 0; i < len(outcomes) && stuck < maxStuck; i++ {
		if again(i, first) {
			stuck++
		}
	}
	return outcomes
}

const (
	// graceFactor is how many times Answer the answers of a scenario may take beyond it when that is played again.
	graceFactor = 3
	// maxStuck is how many scenarios are played again in vain: then the program does not answer, however long it is given.
	maxStuck = 3
)

// playAgain plays a scenario again, alone and with more time, if it ran out of time, so that a program that is slow or that
// shares its machine is told apart from one that does not answer. It reports whether that was in vain.
func (o *Options) playAgain(ctx context.Context, launch Launch, s *Scenario, run int, first *Outcome, out **Outcome) (stuck bool) {
	if ctx.Err() != nil || !(*out).outOfTime() {
		return false
	}
	next := o.play(ctx, launch, s, run, first, graceFactor*o.Answer)
	stuck = next.outOfTime()
	next.merge(*out)
	*out = next
	return stuck
}

// outOfTime reports whether a scenario might have gone otherwise with more time.
func (out *Outcome) outOfTime() bool {
	return out.cut || slices.ContainsFunc(out.findings, func(f finding) bool { return f.late })
}

// merge adds what the same scenario found before, when it had less time.
func (out *Outcome) merge(before *Outcome) {
	for _, f := range before.findings {
		switch {
		case slices.ContainsFunc(out.findings, func(g finding) bool { return g.Rule == f.Rule }):
			continue // in the same way, or a clearer one
		case f.late && len(out.slow) == 0:
			continue // alone, it was in time
		case f.late:
			f.late, f.slow = false, true
			f.Message += "; alone, " + strings.Join(out.slow, ", ")
		}
		out.findings = append(out.findings, f)
	}
	if out.cut {
		for _, seen := range []struct{ now, before map[string]bool }{{out.ran, before.ran}, {out.traits, before.traits}, {out.granted, before.granted}} {
			maps.Copy(seen.now, seen.before)
		}
	}
	out.Time += before.Time
	out.Seconds = out.Time.Seconds()
	out.fail()
	if len(out.Failed) > 0 && len(out.Transcript) == 0 {
		out.Transcript, out.Stderr = before.Transcript, before.Stderr
	}
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// play plays one scenario. The first one, if it was played, says what the program advertises. Answers may take a grace
// longer than usual, all of them together.
func (o *Options) play(ctx context.Context, launch Launch, s *Scenario, run int, first *Outcome, grace time.Duration) *Outcome {
	out := &Outcome{Name: s.Name, Text: s.Text, Run: run}
	if err := context.Cause(ctx); err != nil {
		out.Skipped, out.cut = err.Error(), true
		return out
	}
	if first != nil {
		if out.Skipped = o.subject.rulesOut(first, s); out.Skipped != "" {
			out.cut = first.cut || len(first.slow) > 0
			return out
		}
	}
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, o.ScenarioTime+grace, errors.New("the time of the scenario is over"))
	defer cancel()
	dir, remove, err := o.folders(s.Name)
	if err != nil {
		out.Skipped = fmt.Sprintf("the scratch folder: %v", err)
		return out
	}
	defer remove()
	p := o.newPlay(ctx, launch, s.Name, dir)
	p.limits.grace, p.commands = grace, first != nil && first.traits["update available_commands_update"]
	p.script(s)
	out.Time = time.Since(began)
	out.Seconds = out.Time.Seconds()
	if p.skipped != "" {
		out.Skipped = p.skipped
	}
	out.cut, out.slow = p.cut, p.slow
	out.take(s, p, p.findings, p.log)
	return out
}

// folders makes the folders of a scenario: the one that it works in, and the program's home.
func (o *Options) folders(name string) (dir string, remove func(), err error) {
	work := filepath.Join(o.Scratch, Work)
	if err = os.MkdirAll(work, 0o700); err == nil {
		dir, err = os.MkdirTemp(work, name+"-")
	}
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err == nil {
		err = os.MkdirAll(Home(dir), 0o700)
	}
	return dir, func() { os.RemoveAll(dir); os.RemoveAll(Home(dir)) }, err // the scratch folder is the caller's to remove
}

// Work is the folder in the scratch folder in which the scenarios have theirs. The homes are not in it.
const Work = "work"

// Home is the home of a program that is launched in the folder dir of a scenario. It is empty at first, and the launches of
// the scenario share it.
func Home(dir string) string {
	return filepath.Join(filepath.Dir(filepath.Dir(dir)), "home", filepath.Base(dir))
}

// newPlay is a scenario that is about to run.
func (o *Options) newPlay(ctx context.Context, launch Launch, name, dir string) *play {
	return &play{
		ctx: ctx, options: o, launch: launch, name: name, dir: dir,
		limits: limits{answer: o.Answer, quiet: o.Quiet, rung: o.Rung},
		traits: map[string]bool{}, granted: map[string]bool{}, ran: map[string]bool{},
	}
}

// rulesOut says why a scenario is not played after how the first one went: what fails there fails everywhere, each time
// as slowly.
func (about *subject) rulesOut(first *Outcome, s *Scenario) string {
	if first.traits[onlyVersion2] {
		if s.anyVersion {
			return ""
		}
		return noVersion1
	}
	if first.traits[otherVersion] {
		return noVersion2
	}
	if len(first.slow) > 0 {
		return "the " + about.word + " is too slow for the time that an answer may take: " + strings.Join(first.slow, ", ")
	}
	if first.itself == nil {
		if about.side == conformance.Client {
			return "the client does not send initialize"
		}
		return "the agent does not answer initialize"
	}
	for _, need := range s.Needs {
		if !about.advertises(first.itself, need) {
			return "the " + about.word + " does not advertise " + need
		}
	}
	if about.side == conformance.Client {
		return first.missing(s)
	}
	switch {
	case s.bare:
		return ""
	case first.Skipped != "":
		return first.Skipped
	case !first.traits["result session/new"]:
		return "the agent makes no session"
	case len(s.Prompts) > 0 && !first.traits["turn"]:
		return "the agent does not end a turn without an error"
	}
	return ""
}

// script runs the scenario's script and ends the program, whatever happens.
func (p *play) script(s *Scenario) {
	defer func() {
		what := recover()
		if p.ctx.Err() != nil && p.skipped == "" {
			p.skipped, p.cut = context.Cause(p.ctx).Error(), true
		}
		p.end()
		if _, ok := what.(stop); what != nil && !ok {
			// A defect of the probe ends this scenario, not the others, and is told as what it is.
			p.skipped = fmt.Sprintf("a defect of the probe: %v\n%s", what, debug.Stack())
		}
	}()
	p.options.subject.script(p, s)
}
