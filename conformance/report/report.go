// Package report collects what a [conformance.Judge] finds in recordings, and writes it for people and for the programs
// that show results in CI: as text, Markdown, JSON, JUnit's XML and SARIF.
//
// A [Report] is about any number of sources, each the recording of one or more connections. It says which findings
// count: those of a level, of some requirements, and those that are not in a file of accepted ones ([Accepted]). It is
// bounded: of each requirement it keeps some findings, and counts the others.
//
// What comes from recordings is text of others. All writers make it safe for where it goes: no escape sequence reaches a
// terminal, and nothing of it is taken for XML or Markdown.
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
)

// Options configure a Report.
type Options struct {
	// Tool is the name of the program that judges, and Version is its version. The zero value is "acp".
	Tool, Version string
	// Level is the mildest level that counts. Zero is [conformance.ShouldNot]: requirements and recommendations, no
	// advice.
	Level conformance.Level
	// Side is the side whose findings count. Zero is both.
	Side conformance.Side
	// Only are the requirements that count, if there are any, and Ignore are those that do not: "SES-7" is one, "SES"
	// are all of a page.
	Only, Ignore []string
	// Accepted are findings that do not count, each with a reason.
	Accepted *Accepted
	// Keep is how many findings of each requirement are kept for the writers; the others are only counted. Zero is
	// DefaultKeep, and less is no limit.
	Keep int
}

// DefaultKeep is how many findings of each requirement a Report keeps.
const DefaultKeep = 1000

// Report is what was found. Its methods must not be called at the same time.
type Report struct {
	options Options
	rules   []conformance.Rule
	sources []*Source
	groups  map[string]*group
	levels  [conformance.Advice + 1]int // findings that count, by level
	hidden  int                         // findings of milder levels
	others  int                         // findings about the other side
}

// group is the findings of one requirement.
type group struct {
	rule     *conformance.Rule
	order    int // among the rules
	count    int // that count
	accepted int
	kept     []*Entry
}

// Entry is a finding with its place.
type Entry struct {
	conformance.Finding
	Source *Source
	// Line is the number of the message's line in the source, or 0 if there is none.
	Line int
	// Excerpt is the beginning of the message.
	Excerpt string
	// Lines are the lines of the finding's evidence, 0 where it is not known.
	Lines []int
	// Accepted is the reason why the finding does not count, or "".
	Accepted string
}

// kind is what findings have in common that differ in their place alone, or in the ids that a rule's message quotes.
func (e *Entry) kind() kind {
	message := e.Message
	if e.Definition == "" {
		message = quoted.ReplaceAllString(message, `""`)
	}
	return kind{e.Direction, e.Kind, e.Method, index.ReplaceAllString(e.Pointer, "/0"), message, e.Definition}
}

// quoted is a quoted part of a message, and index that of an array in a pointer.
var (
	quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	index  = regexp.MustCompile(`/[0-9]+`)
)

type kind struct {
	direction                            conformance.Direction
	kind                                 conformance.Kind
	method, pointer, message, definition string
}

// describe is one line: the message, the place in it, and what is wrong.
func (e *Entry) describe() string {
	text := cmp.Or(e.Method, "message")
	switch e.Kind {
	case conformance.Request:
		text += " request " + e.ID
	case conformance.Response:
		text += " response " + e.ID
	case conformance.ErrorReply:
		text += " error " + e.ID
	}
	if e.Pointer != "" {
		text += ": " + e.Pointer
	}
	text += ": " + e.Message
	if e.Definition != "" {
		text += " (" + e.Definition + ")"
	}
	return text
}

// Problem is something in a source that could not be read.
type Problem struct {
	Line int // 0 if it is about the source as a whole
	Text string
}

// New returns an empty report. It is an error if an option names a requirement that there is not.
func New(options Options) (*Report, error) {
	options.Tool = cmp.Or(options.Tool, "acp")
	options.Level = cmp.Or(options.Level, conformance.ShouldNot)
	options.Keep = cmp.Or(options.Keep, DefaultKeep)
	r := &Report{options: options, rules: conformance.Rules(), groups: map[string]*group{}}
	for _, id := range slices.Concat(options.Only, options.Ignore) {
		if !slices.ContainsFunc(r.rules, func(rule conformance.Rule) bool { return matches(id, rule.ID) }) {
			return nil, fmt.Errorf("there is no requirement %q that is judged", id)
		}
	}
	if options.Accepted != nil {
		for _, e := range options.Accepted.entries {
			if !slices.ContainsFunc(r.rules, func(rule conformance.Rule) bool { return rule.ID == e.Rule }) {
				return nil, fmt.Errorf("%s: there is no requirement %q that is judged", e.place(), e.Rule)
			}
		}
	}
	return r, nil
}

// matches reports whether an id or the prefix of a page is about a requirement.
func matches(id, rule string) bool {
	page, _, _ := strings.Cut(rule, "-")
	return strings.EqualFold(id, rule) || strings.EqualFold(id, page)
}

// Source is what was read from one place.
type Source struct {
	Name string // of the file
	// Connections, Messages and Versions are what was judged; Versions are those of the protocol, in ascending order.
	Connections, Messages int
	Versions              []int
	Problems              []Problem
	// MoreProblems is how many there were beyond those in Problems.
	MoreProblems int
	// Notes are what else is to be said of how it was read.
	Notes []Problem

	report   *Report
	findings int
}

// maxProblems is how many problems a source keeps.
const maxProblems = 20

// Source begins another source.
func (r *Report) Source(name string) *Source {
	s := &Source{Name: name, report: r}
	r.sources = append(r.sources, s)
	return s
}

// Problem notes that something could not be read. The line is 0 if it is about the source as a whole.
func (s *Source) Problem(line int, text string) {
	if len(s.Problems) == maxProblems {
		s.MoreProblems++
		return
	}
	s.Problems = append(s.Problems, Problem{line, text})
}

// Version notes that a connection is of a version of the protocol.
func (s *Source) Version(version int) {
	if i, found := slices.BinarySearch(s.Versions, version); !found {
		s.Versions = slices.Insert(s.Versions, i, version)
	}
}

// Add takes a finding with its place, and reports whether it counts. The entry's Source and Accepted are filled in.
func (s *Source) Add(e *Entry) bool {
	r := s.report
	e.Source = s
	if e.Rule == "" { // the judge speaks of its own bounds
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
		r.levels[min(e.Level, conformance.Advice)]++
	}
	if r.options.Keep < 0 || len(g.kept) < r.options.Keep {
		g.kept = append(g.kept, e)
	} else if e.Accepted == "" {
		// Findings that count take the place of accepted ones.
		if i := slices.IndexFunc(g.kept, func(kept *Entry) bool { return kept.Accepted != "" }); i >= 0 {
			g.kept = append(slices.Delete(g.kept, i, i+1), e)
		}
	}
	return e.Accepted == ""
}

// selects reports whether findings of a requirement count, by the options Only and Ignore.
func (r *Report) selects(rule string) bool {
	is := func(id string) bool { return matches(id, rule) }
	return (len(r.options.Only) == 0 || slices.ContainsFunc(r.options.Only, is)) && !slices.ContainsFunc(r.options.Ignore, is)
}

// Findings is the number of findings that count.
func (r *Report) Findings() int {
	n := 0
	for _, at := range r.levels {
		n += at
	}
	return n
}

// Accepted is the number of findings that are accepted.
func (r *Report) Accepted() int {
	n := 0
	for _, g := range r.groups {
		n += g.accepted
	}
	return n
}

// Readable reports whether everything could be read.
func (r *Report) Readable() bool {
	return !slices.ContainsFunc(r.sources, func(s *Source) bool { return len(s.Problems) > 0 })
}

// messages is the number of messages in all sources.
func (r *Report) messages() int {
	n := 0
	for _, s := range r.sources {
		n += s.Messages
	}
	return n
}

// sortedGroups are the groups, the gravest first, and as the pages have them.
func (r *Report) sortedGroups() []*group {
	return slices.SortedFunc(maps.Values(r.groups), func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.rule.Level, b.rule.Level), cmp.Compare(a.order, b.order), cmp.Compare(a.rule.ID, b.rule.ID))
	})
}

// entries are those of the group that count.
func (g *group) entries() []*Entry {
	return slices.DeleteFunc(slices.Clone(g.kept), func(e *Entry) bool { return e.Accepted != "" })
}

// Format is a form in which a report is written.
type Format string

// The formats.
const (
	Text     Format = "text"     // for people
	JSON     Format = "json"     // one document
	JUnit    Format = "junit"    // XML, with a test for each requirement
	SARIF    Format = "sarif"    // 2.1.0
	Markdown Format = "markdown" // for the summary of a job
)

// Formats are all formats.
func Formats() []Format { return []Format{Text, JSON, JUnit, SARIF, Markdown} }

// Write writes the report. Text is without colours; WriteText has them.
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

// counts is the number of findings that count of each level, such as "2 MUST, 1 SHOULD NOT".
func (r *Report) counts() string {
	var parts []string
	for level := conformance.Must; level <= conformance.Advice; level++ {
		if n := r.levels[level]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, level))
		}
	}
	return strings.Join(parts, ", ")
}

// unmatched says what was found and is not shown.
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

// plural is "1 message", "2 messages".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
