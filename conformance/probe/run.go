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
	"github.com/acpgo/sdk/conformance/internal/player"
	"github.com/acpgo/sdk/conformance/internal/requirement"
)

// Options configures a probe. The zero value of each field means its default.
type Options struct {
	// Protocol is the version of the protocol that is used with agents: 1, or 2, which is in Preview. The default is 1.
	Protocol int
	// Target is the name of the program in the report.
	Target string
	// Version is the version of the tool, for the report.
	Version string
	// Scratch is the directory in which each scenario gets its own. It must exist, and nothing else may use it.
	Scratch string
	// Prompts has the texts of prompts by kind. They replace those of DefaultPrompts.
	Prompts map[string]string
	// Auth is the id of the method with which the probe authenticates if the agent requires it.
	Auth string
	// Only and Skip select scenarios by name, and requirements by id ("SES-7") or page ("SES").
	Only, Skip []string
	// Baseline maps requirements whose failures are known to the reasons.
	Baseline map[string]string
	// Jobs is the number of scenarios that are played concurrently. The default is 1.
	Jobs int
	// Runs is how often everything is played. The default is 1.
	Runs int
	// Answer is the time limit of the start and of each answer; the default is 30 s. Quiet is the silence after which
	// nothing more is expected; the default is a tenth of Answer. Rung is the time limit of each step of ending a
	// program; the default is 2 s.
	Answer, Quiet, Rung time.Duration
	// ScenarioTime is the time limit of a scenario; the default is four times Answer. Time is the limit of the whole
	// probe; the default is no limit.
	ScenarioTime, Time time.Duration
	// MCP returns a command that serves MCP over standard input and output, and writes a line to the file when a client
	// uses it. If MCP is nil, requirements that need such a server are not exercised.
	MCP func(file string) (command string, args []string)
	// Repeat returns a command that plays a single scenario, for the report. The scenario may be the word SCENARIO.
	Repeat func(scenario string) string
	// Progress is called when a scenario has ended. Calls are not concurrent.
	Progress func(done, all int, outcome *Outcome)

	subject      *subject
	requirements []string // of Only
	scenarios    []string // of Only
}

// subject describes the kind of program under test.
type subject struct {
	side               conformance.Side
	version            int    // of the protocol that it is played in, 0 for 1
	capabilities, info string // the members of initialize in which it states them
	rows               map[string]exercise
	scenarios          func() []Scenario
	script             func(*play, *Scenario)
	// request and result record the traits of a message of the program other than its method.
	request, result func(p *play, m *player.Message, add func(...string))
}

// applies reports whether a requirement binds the program, and why not.
func (about *subject) applies(r conformance.Requirement) (why string) {
	_, listed := about.rows[r.ID]
	switch {
	case listed:
		return ""
	case about.version == 2:
		return "not of version 2, or not played in it"
	case r.Page == "version-2":
		return "of version 2, which is probed apart"
	case r.Side == conformance.Client && about.side == conformance.Agent, about.side == conformance.Agent &&
		slices.Contains(onlyAtClients, r.ID):
		return "binds clients"
	case about.side == conformance.Client && (r.Side == conformance.Agent || slices.Contains(onlyAtAgents, r.ID)):
		return "binds agents"
	}
	return ""
}

// onlyAtClients are requirements of both sides that show at clients alone.
var onlyAtClients = []string{"AUT-4"}

// onlyAtAgents are requirements of both sides that show at agents alone.
var onlyAtAgents = []string{"OVW-2"}

// run plays the scenarios for a subject.
func run(ctx context.Context, launch Launch, options *Options, about *subject) (*Report, error) {
	o, err := options.complete(about)
	if err != nil {
		return nil, err
	}
	if o.Time > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Time, errors.New("the time limit of the whole probe was reached"))
		defer cancel()
	}
	began := time.Now()
	chosen := o.choose(about.scenarios())
	r := o.newReport(len(o.Only)+len(o.Skip) > 0)
	r.Protocol = max(1, about.version)
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
	return r, ctx.Err()
}

// newReport returns a report without results.
func (o *Options) newReport(partial bool) *Report {
	return &Report{Tool: "acp", Version: o.Version, Target: o.Target, Side: o.subject.side.String(), Rows: []Row{},
		Scenarios: []*Outcome{}, partial: partial}
}

// complete sets the defaults and checks the names.
func (options *Options) complete(about *subject) (*Options, error) {
	o := new(*cmp.Or(options, &Options{}))
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
			return nil, fmt.Errorf("no scenario or requirement is called %q", name)
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
		if requirement.Find(id) == nil {
			return nil, fmt.Errorf("baseline: unknown requirement %q", id)
		}
	}
	for kind := range o.Prompts {
		if _, ok := DefaultPrompts[kind]; !ok {
			return nil, fmt.Errorf("unknown kind of prompt %q", kind)
		}
	}
	return o, nil
}

// isRequirement reports whether a name is that of a requirement or a page.
func isRequirement(name string) bool {
	return slices.ContainsFunc(requirement.All, func(r requirement.Requirement) bool {
		return requirement.Matches(name, r.ID)
	})
}

func (o *Options) selects(id string) bool {
	return slices.ContainsFunc(o.requirements, func(name string) bool { return requirement.Matches(name, id) })
}

func (o *Options) skips(id string) bool {
	return slices.ContainsFunc(o.Skip, func(name string) bool { return requirement.Matches(name, id) })
}

// choose returns the scenarios to play. The requirements that a scenario exercises through its messages are known only
// after it was played. So if only requirements are selected, all scenarios that may exercise them are played.
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

// playAll plays scenarios. It plays the first one alone, because the others make no sense if the program does not even
// start.
func (o *Options) playAll(ctx context.Context, launch Launch, scenarios []Scenario, run int,
	done func(*Outcome)) []*Outcome {
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
	for _, quiet := range []bool{true, false} { // those that wait for silence take the longest, so they are started first
		for i := 1; i < len(scenarios); i++ {
			if scenarios[i].quiet == quiet {
				next <- i
			}
		}
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
	// graceFactor times Answer is the additional time for all answers of a scenario when it is played again.
	graceFactor = 3
	// maxStuck is the maximum number of scenarios that are played again without success. After that, the program is
	// assumed not to answer, however much time it gets.
	maxStuck = 3
)

// playAgain plays a scenario that ran out of time again, alone and with more time. This distinguishes a program that is
// slow, or runs on a busy machine, from one that does not answer. It reports whether that failed too.
func (o *Options) playAgain(ctx context.Context, launch Launch, s *Scenario, run int, first *Outcome,
	out **Outcome) (stuck bool) {
	if ctx.Err() != nil || !(*out).outOfTime() {
		return false
	}
	next := o.play(ctx, launch, s, run, first, graceFactor*o.Answer)
	stuck = next.outOfTime()
	next.merge(*out)
	*out = next
	return stuck
}

// startScenario is the first one. What the program advertises in it decides which others are played.
const startScenario = "start"

// Traits of an agent that speaks version 2, of one that does not speak version 1, and of one that does not speak
// version 2 although that is probed.
const (
	version2     = "version 2"
	onlyVersion2 = "version 2 alone"
	noVersion1   = "the agent does not speak version 1"
	otherVersion = "no version 2"
	noVersion2   = "the agent does not speak version 2"
)

// staysThere is the trait of a client that does not end with its turns.
const staysThere = "stays"

var errScenarioTime = errors.New("the time limit of the scenario was reached")

// outOfTime reports whether a scenario might have had another result with more time.
func (out *Outcome) outOfTime() bool {
	return out.cut || slices.ContainsFunc(out.seen.Findings, func(f player.Finding) bool { return f.Late })
}

// merge adds the findings of an earlier run of the same scenario, which had less time.
func (out *Outcome) merge(before *Outcome) {
	for _, f := range before.seen.Findings {
		switch {
		case slices.ContainsFunc(out.seen.Findings, func(g player.Finding) bool { return g.Rule == f.Rule }):
			continue // in the same way, or a clearer one
		case f.Late && len(out.slow) == 0:
			delete(before.seen.Ran, f.Rule)
			continue // alone, it was in time, or the scenario did not reach it
		case f.Late:
			f.Late, f.Slow = false, true
			f.Message += "; alone, " + strings.Join(out.slow, ", ")
		}
		out.seen.Findings = append(out.seen.Findings, f)
	}
	if out.cut {
		maps.Copy(out.seen.Ran, before.seen.Ran)
		maps.Copy(out.seen.Traits, before.seen.Traits)
		maps.Copy(out.seen.Granted, before.seen.Granted)
	}
	out.Time += before.Time
	out.Seconds = out.Time.Seconds()
	out.fail()
	if len(out.Failed) > 0 && len(out.Transcript) == 0 {
		out.Transcript, out.Stderr = before.Transcript, before.Stderr
	}
}

// play plays one scenario. The outcome of the first scenario, if any, has the capabilities of the program. All answers
// together may take longer than usual by grace.
func (o *Options) play(ctx context.Context, launch Launch, s *Scenario, run int, first *Outcome,
	grace time.Duration) *Outcome {
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
	ctx, cancel := context.WithTimeoutCause(ctx, o.ScenarioTime+grace, errScenarioTime)
	defer cancel()
	dir, remove, err := o.folders(s.Name)
	if err != nil {
		out.Skipped = fmt.Sprintf("the scratch folder could not be created: %v", err)
		return out
	}
	defer remove()
	p := o.newPlay(ctx, launch, s.Name, dir)
	p.limits.grace = grace
	if first != nil {
		p.commands, p.stays = first.seen.Traits["update available_commands_update"], first.seen.Traits[staysThere]
	}
	p.script(s)
	out.Time = time.Since(began)
	out.Seconds = out.Time.Seconds()
	if p.skipped != "" {
		out.Skipped = p.skipped
	}
	out.cut, out.slow = p.cut, p.slow
	if p.cut {
		p.Ran = map[string]bool{} // a requirement is marked before the message that shows whether it is met
	}
	out.take(s, p, p.Findings, p.log)
	return out
}

// folders creates the directories of a scenario: its working directory and the program's home.
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
	return dir, func() { os.RemoveAll(dir); os.RemoveAll(Home(dir)) }, err // the caller removes the scratch directory
}

// Work returns the directory in the scratch directory that contains the scenarios' working directories, but not their
// homes.
const Work = "work"

// Home returns the home directory for a program that is launched in the directory dir of a scenario. It is initially
// empty, and all launches of the scenario share it.
func Home(dir string) string {
	return filepath.Join(filepath.Dir(filepath.Dir(dir)), "home", filepath.Base(dir))
}

// newPlay prepares a run of a scenario.
func (o *Options) newPlay(ctx context.Context, launch Launch, name, dir string) *play {
	return &play{
		ctx: ctx, options: o, launch: launch, name: name, dir: dir,
		limits:   limits{answer: o.Answer, quiet: o.Quiet, rung: o.Rung},
		evidence: newEvidence(),
	}
}

// rulesOut returns the reason why a scenario is not played after the outcome of the first one. What fails in the first
// one fails in all, and as slowly each time.
func (about *subject) rulesOut(first *Outcome, s *Scenario) string {
	if first.seen.Traits[onlyVersion2] {
		if s.anyVersion {
			return ""
		}
		return noVersion1
	}
	if first.seen.Traits[otherVersion] {
		return noVersion2
	}
	if len(first.slow) > 0 {
		return "the " + about.side.String() + " was too slow: " + strings.Join(first.slow, ", ")
	}
	if first.seen.Itself == nil {
		if about.side == conformance.Client {
			return "the client did not send initialize"
		}
		return "the agent did not answer initialize"
	}
	for _, need := range s.Needs {
		if !about.advertises(first.seen.Itself, need) {
			return "the " + about.side.String() + " does not advertise " + need
		}
	}
	switch client := about.side == conformance.Client; {
	case s.bare:
		return ""
	case client && !first.seen.Traits["-> session/new"]:
		return "the client created no session"
	case client && !first.seen.Traits["prompted"]:
		return "the client sent no prompt"
	case client:
		return ""
	case first.Skipped != "":
		return first.Skipped
	case !first.seen.Traits["result session/new"]:
		return "the agent did not create a session"
	case len(s.Prompts) > 0 && !first.seen.Traits["turn"]:
		return "the agent did not end a turn without an error"
	}
	return ""
}

// script runs the scenario's script and ends the program, whatever happens.
func (p *play) script(s *Scenario) {
	defer func() {
		if p.ctx.Err() != nil && p.skipped == "" && !p.endless {
			p.skipped, p.cut = context.Cause(p.ctx).Error(), true
		}
		p.end()
	}()
	p.safely(func() { p.options.subject.script(p, s) })
}

// safely calls a function, which may end early with stop. A bug in the probe ends only the scenario, and is reported as
// such.
func (p *play) safely(f func()) {
	defer func() {
		what := recover()
		if _, ok := what.(stop); what != nil && !ok {
			p.skipped = fmt.Sprintf("a bug in the probe: %v\n%s", what, debug.Stack())
		}
	}()
	f()
}

// take keeps the result of a scenario.
func (out *Outcome) take(s *Scenario, p *play, found []player.Finding, log []string) {
	out.seen = p.evidence
	out.seen.Findings = slices.DeleteFunc(found, func(f player.Finding) bool { return slices.Contains(s.ignore, f.Rule) })
	out.fail()
	if len(out.seen.Findings) > 0 {
		out.Transcript, out.Stderr = log, p.stderr
	}
}

// fail lists the requirements of the findings.
func (out *Outcome) fail() {
	out.Failed = nil
	for _, f := range out.seen.Findings {
		if !slices.Contains(out.Failed, f.Rule) {
			out.Failed = append(out.Failed, f.Rule)
		}
	}
	slices.Sort(out.Failed)
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
