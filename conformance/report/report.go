// Package report collects the findings of a [conformance.Judge] in recordings, and writes them for people and for CI
// systems: as text, Markdown, JSON, JUnit XML and SARIF.
//
// A [Report] covers any number of sources, each of which is the recording of one or more connections. Its options
// select the findings that count: by level, by requirement, and by a file of accepted findings ([Accepted]). Its size
// is bounded: it keeps a limited number of findings of each requirement, and only counts the others.
//
// Text from recordings is untrusted. All writers make it safe for their output: no escape sequence reaches a terminal,
// and no text is interpreted as XML or Markdown.
package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/internal/requirement"
)

// Options configures a Report.
type Options struct {
	// Tool is the name of the judging program, and Version its version. An empty Tool means "acp".
	Tool, Version string
	// Level is the mildest level that counts. Zero means [conformance.ShouldNot]: requirements and recommendations, but
	// not advice.
	Level conformance.Level
	// Side is the side whose findings count. Zero means both.
	Side conformance.Side
	// Only lists the requirements that count, if it is not empty, and Ignore those that do not. "SES-7" is a
	// requirement, and "SES" stands for all requirements of that page.
	Only, Ignore []string
	// Accepted has findings that do not count, each with a reason.
	Accepted *Accepted
	// Keep is the number of findings of each requirement that are kept for the writers. The others are only counted.
	// Zero means DefaultKeep, and a negative value no limit.
	Keep int
}

// DefaultKeep is the default of Options.Keep.
const DefaultKeep = 1000

// Report collects findings. Its methods must not be called concurrently.
type Report struct {
	options Options
	rules   []conformance.Rule
	sources []*Source
	groups  map[string]*group
	levels  [conformance.Advice + 1]int // findings that count, by level
	hidden  int                         // findings of milder levels
	others  int                         // findings about the other side
}

// group has the findings of one requirement.
type group struct {
	rule     *conformance.Rule
	order    int                         // the index of the rule
	levels   [conformance.Advice + 1]int // findings that count, by level
	count    int                         // the number of findings that count
	accepted int
	kept     []*Entry
}

// Entry is a finding with its location.
type Entry struct {
	conformance.Finding
	Source *Source
	// Line is the line number of the message in the source, or 0 if it has none.
	Line int
	// Excerpt is the beginning of the message.
	Excerpt string
	// Lines has the line numbers of the finding's evidence. A line is 0 if unknown.
	Lines []int
	// Accepted is the reason why the finding does not count, or "".
	Accepted string
}

// kind is equal for findings that differ only in their location or in the ids that a rule's message quotes.
func (e *Entry) kind() kind {
	message := e.Message
	if e.Definition == "" {
		message = quoted.ReplaceAllString(message, `""`)
	}
	return kind{e.Level, e.Direction, e.Kind, e.Method, index.ReplaceAllString(e.Pointer, "/0"), message, e.Definition}
}

// quoted matches a quoted part of a message, and index an array index in a pointer.
var (
	quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	index  = regexp.MustCompile(`/[0-9]+`)
)

type kind struct {
	level                                conformance.Level
	direction                            conformance.Direction
	kind                                 conformance.Kind
	method, pointer, message, definition string
}

// describe returns the finding on one line, without its rule and level.
func (e *Entry) describe() string {
	_, text, _ := strings.Cut(e.Finding.String(), ": ")
	return text
}

// Problem is a part of a source that could not be read.
type Problem struct {
	Line int    `json:"line,omitempty"` // 0 if it is about the source as a whole
	Text string `json:"text"`
}

// New returns an empty report. It returns an error if an option names an unknown requirement.
func New(options Options) (*Report, error) {
	options.Tool = cmp.Or(options.Tool, "acp")
	options.Level = cmp.Or(options.Level, conformance.ShouldNot)
	options.Keep = cmp.Or(options.Keep, DefaultKeep)
	r := &Report{options: options, rules: conformance.Rules(), groups: map[string]*group{}}
	for _, id := range slices.Concat(options.Only, options.Ignore) {
		if !slices.ContainsFunc(r.rules, func(rule conformance.Rule) bool { return requirement.Matches(id, rule.ID) }) {
			return nil, fmt.Errorf("no judged requirement matches %q", id)
		}
	}
	if options.Accepted != nil {
		for _, e := range options.Accepted.entries {
			if !slices.ContainsFunc(r.rules, func(rule conformance.Rule) bool { return rule.ID == e.Rule }) {
				return nil, fmt.Errorf("%s: no judged requirement matches %q", e.place(), e.Rule)
			}
		}
	}
	return r, nil
}

// Source is one input of a report, such as a file.
type Source struct {
	Name string // of the file
	// Connections and Messages count what was judged. Versions has the protocol versions, in ascending order.
	Connections, Messages int
	Versions              []int
	Problems              []Problem
	// MoreProblems is the number of problems beyond those in Problems.
	MoreProblems int
	// Notes has remarks on how the source was read.
	Notes []Problem

	report   *Report
	findings int
}

// maxProblems is the maximum number of problems that a source keeps.
const maxProblems = 20

// Source adds a source to the report.
func (r *Report) Source(name string) *Source {
	s := &Source{Name: name, report: r}
	r.sources = append(r.sources, s)
	return s
}

// Problem records that something could not be read. The line is 0 if the problem concerns the whole source.
func (s *Source) Problem(line int, text string) {
	if len(s.Problems) == maxProblems {
		s.MoreProblems++
		return
	}
	s.Problems = append(s.Problems, Problem{line, text})
}

// Version records the protocol version of a connection.
func (s *Source) Version(version int) {
	if i, found := slices.BinarySearch(s.Versions, version); !found {
		s.Versions = slices.Insert(s.Versions, i, version)
	}
}

// Add adds a finding with its location, and reports whether it counts. It sets the Source and Accepted of the entry.
func (s *Source) Add(e *Entry) bool {
	r := s.report
	e.Source = s
	if e.Rule == "" { // a remark of the judge about its own limits
		s.Notes = append(s.Notes, Problem{e.Line, e.Message})
		return false
	}
	if !r.selects(e.Rule) {
		return false
	}
	if r.options.Side != 0 && e.Side == r.options.Side.Peer() {
		r.others++
		return false
	}
	if e.Level > r.options.Level {
		r.hidden++
		return false
	}
	g := r.groups[e.Rule]
	if g == nil {
		g = &group{order: len(r.rules)}
		if i := slices.IndexFunc(r.rules, func(rule conformance.Rule) bool { return rule.ID == e.Rule }); i >= 0 {
			g.rule, g.order = &r.rules[i], i
		} else {
			g.rule = &conformance.Rule{ID: e.Rule, Level: e.Level}
		}
		r.groups[e.Rule] = g
	}
	if r.options.Accepted != nil {
		e.Accepted = r.options.Accepted.reason(e.Finding)
	}
	if e.Accepted != "" {
		g.accepted++
	} else {
		g.count++
		s.findings++
		g.levels[min(e.Level, conformance.Advice)]++
		r.levels[min(e.Level, conformance.Advice)]++
	}
	if r.options.Keep < 0 || len(g.kept) < r.options.Keep {
		g.kept = append(g.kept, e)
	} else if e.Accepted == "" {
		// Findings that count replace accepted ones, and milder ones.
		i := slices.IndexFunc(g.kept, func(kept *Entry) bool { return kept.Accepted != "" })
		if i < 0 {
			i = slices.IndexFunc(g.kept, func(kept *Entry) bool { return kept.Level > e.Level })
		}
		if i >= 0 {
			g.kept = append(slices.Delete(g.kept, i, i+1), e)
		}
	}
	return e.Accepted == ""
}

// selects reports whether the options Only and Ignore let findings of a requirement count.
func (r *Report) selects(rule string) bool {
	is := func(id string) bool { return requirement.Matches(id, rule) }
	return (len(r.options.Only) == 0 || slices.ContainsFunc(r.options.Only, is)) &&
		!slices.ContainsFunc(r.options.Ignore, is)
}

// Findings returns the number of findings that count.
func (r *Report) Findings() int {
	n := 0
	for _, at := range r.levels {
		n += at
	}
	return n
}

// Accepted returns the number of accepted findings.
func (r *Report) Accepted() int {
	n := 0
	for _, g := range r.groups {
		n += g.accepted
	}
	return n
}

// Readable reports whether all sources could be read completely.
func (r *Report) Readable() bool {
	return !slices.ContainsFunc(r.sources, func(s *Source) bool { return len(s.Problems) > 0 })
}

// messages returns the number of messages in all sources.
func (r *Report) messages() int {
	n := 0
	for _, s := range r.sources {
		n += s.Messages
	}
	return n
}

// sortedGroups returns the groups by severity, the most severe first, and then in the order of the pages.
func (r *Report) sortedGroups() []*group {
	return slices.SortedFunc(maps.Values(r.groups), func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.level(), b.level()), cmp.Compare(a.order, b.order), cmp.Compare(a.rule.ID, b.rule.ID))
	})
}

// level returns the most severe level of the findings that count, or of the accepted ones if none counts. A finding may
// be milder than its requirement.
func (g *group) level() conformance.Level {
	if i := slices.IndexFunc(g.levels[:], func(n int) bool { return n > 0 }); i >= 0 {
		return conformance.Level(i)
	}
	return slices.MinFunc(g.kept, func(a, b *Entry) int { return cmp.Compare(a.Level, b.Level) }).Level
}

// entries returns the entries of the group that count, the most severe first.
func (g *group) entries() []*Entry {
	count := slices.DeleteFunc(slices.Clone(g.kept), func(e *Entry) bool { return e.Accepted != "" })
	slices.SortStableFunc(count, func(a, b *Entry) int { return cmp.Compare(a.Level, b.Level) })
	return count
}

// Format is a format in which a report can be written.
type Format string

// The formats.
const (
	Text     Format = "text"     // for people
	JSON     Format = "json"     // one document
	JUnit    Format = "junit"    // XML with a test for each requirement
	SARIF    Format = "sarif"    // 2.1.0
	Markdown Format = "markdown" // for the summary of a CI job
)

// Formats lists all formats.
func Formats() []Format { return []Format{Text, JSON, JUnit, SARIF, Markdown} }

// Write writes the report. Text is written without colours; use WriteText for colours.
func (r *Report) Write(w io.Writer, format Format) error {
	switch format {
	case Text:
		return r.WriteText(w, nil)
	case JSON:
		return r.writeJSON(w)
	case JUnit:
		return r.writeJUnit(w)
	case SARIF:
		return r.writeSARIF(w)
	case Markdown:
		return r.writeMarkdown(w)
	}
	return fmt.Errorf("report: unknown format %q", format)
}

// counts returns the numbers of findings that count by level, such as "2 MUST, 1 SHOULD NOT".
func (r *Report) counts() string {
	var parts []string
	for level := conformance.Must; level <= conformance.Advice; level++ {
		if n := r.levels[level]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, level))
		}
	}
	return strings.Join(parts, ", ")
}

// unmatched describes the findings that are not shown.
func (r *Report) unmatched() []string {
	var lines []string
	if n := r.Accepted(); n > 0 {
		lines = append(lines, plural(n, "finding")+" accepted")
	}
	if r.others > 0 {
		lines = append(lines, fmt.Sprintf("%s about the %s not shown", plural(r.others, "finding"), r.options.Side.Peer()))
	}
	if r.hidden > 0 {
		lines = append(lines, plural(r.hidden, "finding")+" of milder levels not shown")
	}
	return lines
}

// plural returns "1 message", "2 messages" and so on.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
