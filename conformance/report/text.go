package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/plain"
)

// TextOptions configures WriteText and Live.
type TextOptions struct {
	Colors bool // escape sequences for colours
	// Max is the number of different findings shown for each requirement. Zero means DefaultMax, and a negative value
	// no limit.
	Max int
}

// DefaultMax is the default of TextOptions.Max.
const DefaultMax = 10

// textWidth is the width at which the report's own sentences are wrapped.
const textWidth = 100

// painter writes text with or without colours.
type painter struct {
	*bufio.Writer
	TextOptions
}

func newPainter(w io.Writer, options *TextOptions) *painter {
	p := &painter{Writer: bufio.NewWriter(w), TextOptions: *cmp.Or(options, &TextOptions{})}
	p.Max = cmp.Or(p.Max, DefaultMax)
	return p
}

// The escape sequences for colours.
const (
	red    = "\x1b[1;31m"
	yellow = "\x1b[1;33m"
	cyan   = "\x1b[1;36m"
	green  = "\x1b[1;32m"
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	reset  = "\x1b[0m"
)

func (p *painter) paint(color, text string) string {
	if !p.Colors {
		return text
	}
	return color + text + reset
}

func colorOf(level conformance.Level) string {
	switch level {
	case conformance.Must, conformance.MustNot:
		return red
	case conformance.Should, conformance.ShouldNot:
		return yellow
	}
	return cyan
}

// WriteText writes the report for people: the findings by requirement, the most severe first, and a summary. Options
// may be nil.
func (r *Report) WriteText(w io.Writer, options *TextOptions) error {
	p := newPainter(w, options)
	for _, g := range r.sortedGroups() {
		if g.count == 0 {
			continue
		}
		p.heading(g)
		p.entries(g)
		fmt.Fprintln(p)
	}
	r.summarize(p)
	return p.Flush()
}

// heading writes a line of the form "MUST  PRM-9  agent  prompt-turn", and the requirement below it.
func (p *painter) heading(g *group) {
	fmt.Fprintf(p, "%s  %s  %s", p.paint(colorOf(g.level()), g.level().String()), p.paint(bold, g.rule.ID),
		SideName(g.rule.Side))
	if g.rule.Page != "" {
		fmt.Fprintf(p, ", %s", g.rule.Page)
	}
	fmt.Fprintln(p)
	for _, line := range wrap(g.rule.Text, textWidth-2) {
		fmt.Fprintf(p, "  %s\n", line)
	}
}

// entries writes the findings of a requirement that count.
func (p *painter) entries(g *group) {
	rest := g.count
	for _, alike := range g.kinds(p.Max) {
		rest -= len(alike)
		p.entry(alike[0], g.level())
		if len(alike) > 1 {
			fmt.Fprintf(p, "      %s\n", plain.Line(also(alike[1:])))
		}
	}
	if rest > 0 {
		fmt.Fprintf(p, "  and %d more\n", rest)
	}
}

// kinds groups the entries that count, so that those that differ only in their location are together. If there are very
// many kinds, it returns only the first ones.
func (g *group) kinds(most int) [][]*Entry {
	var kinds [][]*Entry
	at := map[kind]int{}
	for _, e := range g.entries() {
		of := e.kind()
		i, ok := at[of]
		if !ok {
			if most > 0 && len(kinds) == most {
				continue
			}
			i = len(kinds)
			at[of] = i
			kinds = append(kinds, nil)
		}
		kinds[i] = append(kinds[i], e)
	}
	return kinds
}

// also returns "also at a.jsonl:5, a.jsonl:7 and 3 other places".
func also(entries []*Entry) string {
	const most = 5
	var places []string
	for _, e := range entries[:min(len(entries), most)] {
		places = append(places, strings.TrimSuffix(e.place(), ":"))
	}
	text := "also at " + strings.Join(places, ", ")
	if more := len(entries) - most; more > 0 {
		text += " and " + plural(more, "other place")
	}
	return text
}

// entry writes a finding: its location and subject, the fault, the message and the evidence, and its level if that is
// not the one of the heading.
func (p *painter) entry(e *Entry, heading conformance.Level) {
	level := ""
	if e.Level != heading {
		level = p.paint(colorOf(e.Level), e.Level.String()+":") + " "
	}
	fmt.Fprintf(p, "  %s %s%s\n", p.paint(bold, plain.Line(e.place())), level, plain.Line(e.describe()))
	if e.Excerpt != "" {
		fmt.Fprintf(p, "      %s\n", p.paint(dim, plain.Line(e.Excerpt)))
	}
	for i, evidence := range e.Evidence {
		fmt.Fprintf(p, "    %s: %s\n", e.where(i), plain.Line(evidence.Why))
		if evidence.Excerpt != "" {
			fmt.Fprintf(p, "      %s\n", p.paint(dim, plain.Line(evidence.Excerpt)))
		}
	}
}

// place returns "FILE:LINE:", as compilers print it.
func (e *Entry) place() string {
	if e.Line == 0 {
		return e.Source.Name + ":"
	}
	return fmt.Sprintf("%s:%d:", e.Source.Name, e.Line)
}

// where returns the location of a piece of evidence, such as "line 7".
func (e *Entry) where(i int) string {
	if i < len(e.Lines) && e.Lines[i] > 0 {
		return fmt.Sprintf("line %d", e.Lines[i])
	}
	return fmt.Sprintf("message %d", e.Evidence[i].Number)
}

// summarize writes the problems and the counts.
func (r *Report) summarize(p *painter) {
	for _, s := range r.sources {
		for _, problem := range s.Problems {
			fmt.Fprintf(p, "%s %s\n", p.paint(red, "problem:"), plain.Line(s.placeOf(problem)+" "+problem.Text))
		}
		if s.MoreProblems > 0 {
			fmt.Fprintf(p, "%s %s\n", p.paint(red, "problem:"), plain.Sprintf("%s: %d more lines", s.Name, s.MoreProblems))
		}
	}
	for _, s := range r.sources {
		for _, note := range s.Notes {
			fmt.Fprintf(p, "%s %s\n", p.paint(cyan, "note:"), plain.Line(s.placeOf(note)+" "+note.Text))
		}
	}
	for _, e := range r.options.Accepted.Stale() {
		fmt.Fprintf(p, "%s %s\n", p.paint(yellow, "stale:"), plain.Sprintf("%s: no finding matches %s", e.place(), e))
	}
	for _, s := range r.sources {
		color := green
		if s.findings > 0 {
			color = red
		} else if s.Messages == 0 || len(s.Problems) > 0 {
			color = yellow
		}
		fmt.Fprintf(p, "%s: %s (%s)\n", plain.Line(s.Name), p.paint(color, s.verdict()), s.summary())
	}
	if n := len(r.sources); n > 1 {
		fmt.Fprintf(p, "%d sources: %s in %s\n", n, plural(r.Findings(), "finding"), plural(r.messages(), "message"))
	}
	if counts := r.counts(); counts != "" {
		fmt.Fprintf(p, "%s\n", counts)
	}
	for _, line := range r.unmatched() {
		fmt.Fprintln(p, line)
	}
}

// verdict returns "conforms", "2 findings" or "nothing to judge", with a remark if not everything was readable.
func (s *Source) verdict() string {
	switch {
	case s.Messages == 0:
		return "nothing to judge"
	case s.findings > 0 && len(s.Problems) > 0:
		return plural(s.findings, "finding") + " in the readable part"
	case s.findings > 0:
		return plural(s.findings, "finding")
	case len(s.Problems) > 0:
		return "the readable part conforms"
	}
	return "conforms"
}

func (s *Source) placeOf(problem Problem) string {
	if problem.Line == 0 {
		return s.Name + ":"
	}
	return fmt.Sprintf("%s:%d:", s.Name, problem.Line)
}

// summary returns a text such as "12 messages, 2 connections, version 1".
func (s *Source) summary() string {
	parts := []string{plural(s.Messages, "message")}
	if s.Connections > 1 {
		parts = append(parts, plural(s.Connections, "connection"))
	}
	if len(s.Versions) > 0 {
		parts = append(parts, "version "+strings.ReplaceAll(strings.Trim(fmt.Sprint(s.Versions), "[]"), " ", " and "))
	}
	return strings.Join(parts, ", ")
}

// Live writes findings for people as soon as they are found.
type Live struct {
	report *Report
	p      *painter
	told   map[string]bool // the requirements whose text was written
}

// Live returns a writer for findings. Options may be nil.
func (r *Report) Live(w io.Writer, options *TextOptions) *Live {
	return &Live{r, newPainter(w, options), map[string]bool{}}
}

// Write writes a finding, with the text of its requirement if it is the first one.
func (l *Live) Write(e *Entry) error {
	if l.told[e.Rule] {
		fmt.Fprintf(l.p, "%s  %s\n", l.p.paint(colorOf(e.Level), e.Level.String()), l.p.paint(bold, e.Rule))
	} else {
		l.told[e.Rule] = true
		l.p.heading(l.report.groups[e.Rule])
	}
	l.p.entry(e, e.Level)
	return l.p.Flush()
}

// End writes the summary.
func (l *Live) End() error {
	if l.report.Findings() > 0 {
		fmt.Fprintln(l.p)
		for _, g := range l.report.sortedGroups() {
			for i, n := range g.levels {
				if level := conformance.Level(i); n > 0 {
					fmt.Fprintf(l.p, "%s  %s  %d\n", l.p.paint(colorOf(level), level.String()), l.p.paint(bold, g.rule.ID), n)
				}
			}
		}
	}
	l.report.summarize(l.p)
	return l.p.Flush()
}

// wrap breaks a text into lines.
func wrap(text string, width int) []string {
	var lines []string
	line, length := "", 0
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		if line != "" && length+1+n > width {
			lines = append(lines, line)
			line, length = "", 0
		}
		if line != "" {
			line, length = line+" ", length+1
		}
		line, length = line+word, length+n
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
