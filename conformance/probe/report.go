package probe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/internal/player"
	"github.com/acpgo/sdk/conformance/internal/requirement"
	"github.com/acpgo/sdk/conformance/recording"
)

// Verdict is the result of a probe for one requirement.
type Verdict string

// The verdicts.
const (
	Pass          Verdict = "pass"           // it was exercised, and kept
	Fail          Verdict = "fail"           // a MUST, or what was advertised, is broken; or a MUST never ran
	Warn          Verdict = "warn"           // a SHOULD is not followed
	Doubtful      Verdict = "doubtful"       // it seems to be broken, and a program that keeps it may look the same
	TooSlow       Verdict = "too slow"       // the required message arrived, but after the time limit of an answer
	DidNotRun     Verdict = "did not run"    // the scenarios that would show it were not finished for lack of time
	NotApplicable Verdict = "not applicable" // it binds the other side, or needs a capability that is not advertised
	NotExercised  Verdict = "not exercised"  // nothing happened that shows it
	Flaky         Verdict = "flaky"          // it differs between runs
)

// Class is the way in which a requirement counts.
type Class string

// The classes.
const (
	Mandatory   Class = "MUST"       // also a SHOULD that is broken in a way that breaks a MUST, such as by ending
	Capability  Class = "capability" // a MUST for those who advertise something
	Recommended Class = "SHOULD"
	Information Class = "information"
)

// Row is the verdict on one requirement.
type Row struct {
	ID      string   `json:"id"`
	Page    string   `json:"page"`
	Class   Class    `json:"class"` // how the verdict counts
	Level   string   `json:"level"` // of the requirement
	Text    string   `json:"text"`
	Verdict Verdict  `json:"verdict"`
	Reason  string   `json:"reason,omitempty"` // why it is not applicable, was not exercised, or never ran
	Known   string   `json:"known,omitempty"`  // the reason in the baseline why its failure does not count
	Runs    []string `json:"runs,omitempty"`   // the verdict of each run, where they differ
	// Exercised lists the scenarios that exercised it, and Granted the sets of capabilities that the probe advertised
	// in them.
	Exercised []string `json:"exercised,omitempty"`
	Granted   []string `json:"granted,omitempty"`
	// Failures lists the ways in which it was broken. Failures of the level advice are for information and do not
	// change the verdict.
	Failures []Failure `json:"failures,omitempty"`
}

// Failure is one way in which a requirement was broken.
type Failure struct {
	Scenario string   `json:"scenario"`
	Level    string   `json:"level"`
	Method   string   `json:"method,omitempty"`
	Pointer  string   `json:"pointer,omitempty"`
	Message  string   `json:"message"`
	Number   int      `json:"number,omitempty"` // of the message on its connection
	Excerpt  string   `json:"excerpt,omitempty"`
	Evidence []string `json:"evidence,omitempty"`
	Doubtful bool     `json:"doubtful,omitempty"`
	Slow     bool     `json:"slow,omitempty"`

	level conformance.Level
}

// String returns the method, the pointer and the message on one line.
func (f *Failure) String() string {
	text := f.Message
	if f.Pointer != "" {
		text = f.Pointer + ": " + text
	}
	if f.Method != "" {
		text = f.Method + ": " + text
	}
	return text
}

// gravity orders failures so that the one that decides the verdict is first.
func (f *Failure) gravity() int {
	switch {
	case f.Slow:
		return 2*int(conformance.MustNot) + 1
	case f.Doubtful:
		return 2*int(conformance.ShouldNot) + 1
	}
	return 2 * int(f.level)
}

// breaks reports whether a MUST is certainly broken.
func (f *Failure) breaks() bool { return f.gravity() <= 2*int(conformance.MustNot) }

// Outcome is the result of a scenario.
type Outcome struct {
	Name    string        `json:"name"`
	Text    string        `json:"text"`
	Run     int           `json:"run"`
	Time    time.Duration `json:"-"`
	Seconds float64       `json:"seconds"`
	Skipped string        `json:"skipped,omitempty"` // why it was not played, or not to its end
	Failed  []string      `json:"failed,omitempty"`  // the requirements that it found broken
	// Transcript has the messages, and Stderr the end of the program's standard error. Both are bounded, and set only
	// if the scenario found a failure.
	Transcript []string `json:"transcript,omitempty"`
	Stderr     string   `json:"stderr,omitempty"`

	seen evidence
	cut  bool     // it was not finished for lack of time
	slow []string // the answers that needed more time
}

// Summary has the counts of a report.
type Summary struct {
	Verdicts map[Verdict]int `json:"verdicts"` // of all requirements
	// Must lists the MUSTs that fail, Broken the requirements for advertised capabilities that fail, Should the
	// recommendations that are not followed, and Unstable the requirements whose verdict differs between runs.
	Must, Broken, Should, Unstable []string
	NeverRan                       []string // the requirements in Must and Broken that never ran
	Known                          []string // failures that are in the baseline
	Stale                          []string // entries of the baseline that did not fail
	// Doubtful, TooSlow and DidNotRun list the requirements with these verdicts.
	Doubtful, TooSlow, DidNotRun []string
}

// Report is the result of a probe.
type Report struct {
	Tool         string          `json:"tool"`
	Version      string          `json:"version,omitempty"`
	Target       string          `json:"target"`         // the command
	Side         string          `json:"side"`           // what it is: "agent" or "client"
	Info         json.RawMessage `json:"info,omitempty"` // agentInfo or clientInfo
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
	Protocol     int             `json:"protocol"` // the version that was probed
	// Version2 is set if an agent supports version 2, and OnlyVersion2 if it does not support version 1.
	Version2     bool    `json:"version2,omitempty"`
	OnlyVersion2 bool    `json:"onlyVersion2,omitempty"`
	Seconds      float64 `json:"seconds"`
	Conforms     bool    `json:"conforms"`
	Badge        string  `json:"badge"`
	// Repeat is the command that plays the scenario that found failures alone, with the word SCENARIO in its place if
	// there are several. It is empty if there are no failures.
	Repeat    string     `json:"repeat,omitempty"`
	Summary   Summary    `json:"summary"`
	Rows      []Row      `json:"requirements"`
	Scenarios []*Outcome `json:"scenarios"`

	partial bool // only some scenarios were played
}

// maxFailures is the maximum number of failures of a requirement that are shown.
const maxFailures = 10

// makeRows computes the rows from the outcomes of all runs.
func (r *Report) makeRows(o *Options, runs [][]*Outcome) {
	for _, outcomes := range runs {
		for _, out := range outcomes {
			r.Scenarios = append(r.Scenarios, out)
			if out.seen.Itself != nil && r.Capabilities == nil {
				r.Info = player.Member(out.seen.Itself, o.subject.info)
				r.Capabilities = player.Member(out.seen.Itself, o.subject.capabilities)
			}
			r.Version2 = r.Version2 || out.seen.Traits[version2]
			r.OnlyVersion2 = r.OnlyVersion2 || out.seen.Traits[onlyVersion2]
		}
	}
	for _, req := range conformance.Requirements() {
		if len(o.requirements) > 0 && !o.selects(req.ID) || o.skips(req.ID) {
			continue
		}
		var row Row
		for i, outcomes := range runs {
			next := r.row(o.subject, req, outcomes)
			if i == 0 {
				row = next
				row.Runs = []string{string(next.Verdict)}
				continue
			}
			if next.Verdict == Fail || next.Verdict == Warn && !slices.Contains(row.Runs, string(Fail)) {
				row.Class = next.Class
			}
			row.Runs = append(row.Runs, string(next.Verdict))
			if next.Verdict != row.Verdict && row.Verdict != Flaky {
				if row.Failures == nil {
					row.Failures = next.Failures
				}
				row.Verdict = Flaky
			}
		}
		if row.Verdict != Flaky {
			row.Runs = nil
		}
		r.Rows = append(r.Rows, row)
	}
	r.follow()
	r.summarize(o)
	r.repeat(o)
	r.mask()
}

// repeat sets Repeat.
func (r *Report) repeat(o *Options) {
	var names []string
	for _, row := range r.Rows {
		for _, f := range row.Failures {
			names = append(names, f.Scenario)
		}
	}
	slices.Sort(names)
	switch names = slices.Compact(names); {
	case o.Repeat == nil || len(names) == 0:
	case len(names) == 1:
		r.Repeat = o.Repeat(names[0])
	default:
		r.Repeat = o.Repeat("SCENARIO")
	}
}

// mask masks the secrets in what the report shows of the program, as in recordings.
func (r *Report) mask() {
	m := recording.NewMasker()
	text := func(shown *string) {
		if i := strings.IndexByte(*shown, '{'); i >= 0 { // a message after an arrow
			*shown = string(m.Mask([]byte((*shown)[:i]))) + string(m.Mask([]byte((*shown)[i:])))
			return
		}
		*shown = string(m.Mask([]byte(*shown)))
	}
	r.Info, r.Capabilities = m.Mask(r.Info), m.Mask(r.Capabilities)
	text(&r.Target)
	text(&r.Repeat)
	for i := range r.Rows {
		for k := range r.Rows[i].Failures {
			f := &r.Rows[i].Failures[k]
			for _, shown := range []*string{&f.Message, &f.Excerpt} {
				text(shown)
			}
			for e := range f.Evidence {
				text(&f.Evidence[e])
			}
		}
	}
	for _, out := range r.Scenarios {
		text(&out.Stderr)
		for i := range out.Transcript {
			text(&out.Transcript[i])
		}
	}
}

// row returns the row of one run for one requirement.
func (r *Report) row(about *subject, req conformance.Requirement, outcomes []*Outcome) Row {
	x, listed := about.rows[req.ID]
	row := Row{ID: req.ID, Page: req.Page, Level: req.Level.String(), Text: req.Text}
	switch {
	case req.Level <= conformance.MustNot && x.need != "":
		row.Class = Capability
	case req.Level <= conformance.MustNot:
		row.Class = Mandatory
	case req.Level <= conformance.ShouldNot:
		row.Class = Recommended
	default:
		row.Class = Information
	}
	traits := map[string]bool{}
	granted := map[string]bool{}
	for _, out := range outcomes {
		exercised := out.seen.Ran[req.ID]
		for trait := range out.seen.Traits {
			traits[trait] = true
			exercised = exercised || slices.Contains(x.on, trait)
		}
		if exercised {
			row.Exercised = append(row.Exercised, out.Name)
			for name := range out.seen.Granted {
				granted[name] = true
			}
		}
		for _, f := range out.seen.Findings {
			if f.Rule == req.ID {
				row.Failures = append(row.Failures, out.failure(f))
			}
		}
	}
	if x.trait != "" && r.has(x.capability, traits) && !traits[x.trait] {
		row.Exercised = nil
	}
	for name := range granted {
		row.Granted = append(row.Granted, name)
	}
	slices.Sort(row.Granted)
	slices.SortStableFunc(row.Failures, func(a, b Failure) int { return cmp.Compare(a.gravity(), b.gravity()) })
	if len(row.Failures) > maxFailures {
		row.Failures = row.Failures[:maxFailures]
	}
	cut := slices.ContainsFunc(outcomes, func(out *Outcome) bool { return out.cut })
	switch why := about.applies(req); {
	case len(row.Failures) > 0 && row.Failures[0].breaks():
		row.Verdict = Fail
		if row.Class != Capability {
			row.Class = Mandatory // a milder requirement, broken in a way that breaks a MUST
		}
	case len(row.Failures) > 0 && row.Failures[0].Slow:
		row.Verdict = TooSlow
	case len(row.Failures) > 0 && row.Failures[0].Doubtful:
		row.Verdict = Doubtful
	case len(row.Failures) > 0 && row.Failures[0].level <= conformance.ShouldNot:
		row.Verdict, row.Class = Warn, Recommended // whatever the requirement is, no MUST is broken
	case why != "":
		row.Verdict, row.Reason = NotApplicable, why
	case !listed && req.Method == conformance.ByPeople:
		row.Verdict, row.Reason = NotExercised, "only people can judge it"
	case cut && r.Capabilities == nil && len(row.Exercised) == 0:
		row.Verdict, row.Reason = DidNotRun, about.whyNot(req.ID, x.need, outcomes)
	case x.need != "" && !r.has(x.need, traits):
		row.Verdict, row.Reason = NotApplicable, "the "+about.side.String()+" does not advertise "+x.need
		if x.need == "modes" || x.need == "options" {
			row.Reason = "the agent has no " + x.need
		}
	case len(row.Exercised) > 0:
		row.Verdict = Pass
	case r.OnlyVersion2:
		row.Verdict, row.Reason = NotApplicable, noVersion1
	case traits[otherVersion]:
		row.Verdict, row.Reason = NotApplicable, noVersion2
	case x.reach != "":
		row.Verdict, row.Reason = NotExercised, x.reach
	case cut:
		row.Verdict, row.Reason = DidNotRun, about.whyNot(req.ID, x.need, outcomes)
	case req.Level <= conformance.MustNot && !r.partial:
		row.Verdict, row.Reason = Fail, neverRan+about.whyNot(req.ID, x.need, outcomes)
	default:
		row.Verdict, row.Reason = NotExercised, about.whyNot(req.ID, x.need, outcomes)
	}
	return row
}

// neverRan is the beginning of the reason of a MUST that fails because no scenario reached it.
const neverRan = "mandatory, but never ran: "

// whyNot returns the reason why a requirement was not exercised, based on the scenarios that name it, or else on those
// that need the same capability, or else on all scenarios.
func (about *subject) whyNot(id, need string, outcomes []*Outcome) string {
	named, needing := map[string]bool{}, map[string]bool{}
	for _, s := range about.scenarios() {
		named[s.Name] = slices.Contains(s.Exercises, id)
		needing[s.Name] = need != "" && slices.Contains(s.Needs, need)
	}
	for _, group := range []map[string]bool{named, needing, nil} {
		counts := map[string]int{}
		best := ""
		for _, out := range outcomes {
			why := out.Skipped
			switch {
			case group == nil: // that something else was broken in one of all says nothing
			case !group[out.Name]:
				continue
			case why == "":
				why = out.broke()
			}
			if why == "" {
				continue
			}
			if counts[why]++; best == "" || counts[why] > counts[best] {
				best = why
			}
		}
		if best != "" {
			return best
		}
	}
	return "no scenario reached it"
}

// broke names the MUSTs that a scenario found broken. It returns "" if there are none.
func (o *Outcome) broke() string {
	var ids []string
	for _, f := range o.seen.Findings {
		if f.Level <= conformance.MustNot && !f.Doubt && !slices.Contains(ids, f.Rule) {
			ids = append(ids, f.Rule)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	slices.Sort(ids)
	return "the scenario " + o.Name + " did not reach it: see " + strings.Join(ids, ", ")
}

// has reports whether the program advertises a capability, or shows it by its traits.
func (r *Report) has(need string, traits map[string]bool) bool {
	if need == "modes" || need == "options" {
		return traits[need]
	}
	v := player.Member(r.Capabilities, strings.Split(need, ".")...)
	return v != nil && string(v) != "null" && string(v) != "false"
}

// failure converts a finding to a Failure.
func (o *Outcome) failure(f player.Finding) Failure {
	shown := Failure{
		Scenario: o.Name, Level: f.Level.String(), level: f.Level, Method: f.Method, Pointer: f.Pointer, Message: f.Message,
		Number: f.Number, Excerpt: f.Excerpt, Doubtful: f.Doubt, Slow: f.Slow,
	}
	if f.Definition != "" {
		shown.Message += " (" + f.Definition + ")"
	}
	for _, e := range f.Evidence {
		shown.Evidence = append(shown.Evidence, fmt.Sprintf("%s: message %d: %s", e.Why, e.Number, e.Excerpt))
	}
	return shown
}

// about maps requirements that repeat a more general one for some methods to these methods.
var about = map[string][]string{
	"LST-4": {"session/list"}, "LST-6": {"session/list"}, "TOL-7": {"session/update", "session/request_permission"},
	"FS-4": {"fs/read_text_file", "fs/write_text_file"}, "TRM-3": {"terminal/create"},
}

// follow gives requirements that repeat other ones the verdict of those.
func (r *Report) follow() {
	at := map[string]*Row{}
	for i := range r.Rows {
		at[r.Rows[i].ID] = &r.Rows[i]
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Verdict != Pass {
			continue
		}
		req := requirement.Find(row.ID)
		for _, id := range req.As {
			other := at[id]
			if other == nil || other.Verdict != Fail && other.Verdict != Warn ||
				!slices.ContainsFunc(other.Failures, func(f Failure) bool {
					return about[row.ID] == nil || slices.Contains(about[row.ID], f.Method)
				}) {
				continue
			}
			row.Reason = "see " + id
			if req.Method == conformance.BySchema {
				break // one of the many ways to break the other, and which one it was is reported there
			}
			if other.Verdict == Fail && req.Level <= conformance.MustNot {
				row.Verdict = Fail
			} else {
				row.Verdict, row.Class = Warn, Recommended
			}
			break
		}
	}
}

// summarize computes the summary and compares it with the baseline.
func (r *Report) summarize(o *Options) {
	s := &r.Summary
	s.Verdicts = map[Verdict]int{}
	lists := map[Verdict]*[]string{Fail: &s.Must, Warn: &s.Should, Flaky: &s.Unstable, Doubtful: &s.Doubtful,
		TooSlow: &s.TooSlow, DidNotRun: &s.DidNotRun}
	failed := map[string]bool{}
	for i := range r.Rows {
		row := &r.Rows[i]
		s.Verdicts[row.Verdict]++
		if reason, ok := o.Baseline[row.ID]; ok &&
			slices.Contains([]Verdict{Fail, Warn, Flaky, Doubtful, TooSlow}, row.Verdict) {
			row.Known = cmp.Or(reason, "known")
			failed[row.ID] = true
			s.Known = append(s.Known, row.ID)
			continue
		}
		if row.Verdict == Fail && strings.HasPrefix(row.Reason, neverRan) {
			s.NeverRan = append(s.NeverRan, row.ID)
		}
		list := lists[row.Verdict]
		if row.Verdict == Fail && row.Class == Capability {
			list = &s.Broken
		}
		if list != nil {
			*list = append(*list, row.ID)
		}
	}
	for id := range o.Baseline {
		if !failed[id] {
			s.Stale = append(s.Stale, id)
		}
	}
	slices.Sort(s.Stale)
	r.Conforms = len(s.Must)+len(s.Broken) == 0 && !r.flakyMust()
	r.Badge = r.badge()
}

// flakyMust reports whether a MUST failed in one of the runs.
func (r *Report) flakyMust() bool {
	return slices.ContainsFunc(r.Rows, func(row Row) bool {
		return row.Verdict == Flaky && row.Known == "" && slices.Contains(row.Runs, string(Fail))
	})
}

// badge returns a line for a README.
func (r *Report) badge() string {
	exercised, must := 0, 0
	for _, row := range r.Rows {
		if row.Class == Mandatory || row.Class == Capability {
			switch row.Verdict {
			case Pass:
				must++
				exercised++
			case Fail, Flaky:
				exercised++
			}
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "ACP probe: %d of %d MUSTs", must, exercised)
	if n := r.Summary.Verdicts[Warn]; n > 0 {
		fmt.Fprintf(&text, ", %d SHOULD not followed", n)
	}
	for _, verdict := range []Verdict{Doubtful, TooSlow, NotExercised, DidNotRun} {
		if n := r.Summary.Verdicts[verdict]; n > 0 {
			fmt.Fprintf(&text, ", %d %s", n, verdict)
		}
	}
	return text.String()
}
