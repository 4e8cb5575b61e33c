package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/probe"
	"github.com/acpgo/sdk/internal/gen/text"
	"github.com/acpgo/sdk/internal/plain"
)

// WriteProbe writes the report of a probe. Options are for Text, and may be nil.
func WriteProbe(w io.Writer, r *probe.Report, format Format, options *TextOptions) error {
	switch format {
	case Text:
		return probeText(w, r, options)
	case JSON:
		return WriteJSON(w, r)
	case JUnit:
		return probeJUnit(w, r)
	case SARIF:
		return probeSARIF(w, r)
	case Markdown:
		return probeMarkdown(w, r)
	}
	return fmt.Errorf("report: unknown format %q", format)
}

// probePages returns the rows by page.
func probePages(r *probe.Report) (names []string, rows map[string][]*probe.Row) {
	rows = map[string][]*probe.Row{}
	for i := range r.Rows {
		row := &r.Rows[i]
		if rows[row.Page] == nil {
			names = append(names, row.Page)
		}
		rows[row.Page] = append(rows[row.Page], row)
	}
	return names, rows
}

// verdictColors has the colours of verdicts.
var verdictColors = map[probe.Verdict]string{
	probe.Pass: green, probe.Fail: red, probe.Flaky: red, probe.Warn: yellow, probe.Doubtful: yellow,
	probe.TooSlow:      yellow,
	probe.NotExercised: cyan, probe.DidNotRun: cyan, probe.NotApplicable: dim,
}

// verdictOf returns the verdict of a row for display.
func verdictOf(row *probe.Row) string {
	if row.Known != "" {
		return "known " + string(row.Verdict)
	}
	return string(row.Verdict)
}

// reasonOf returns the reason for the verdict of a row, or "" if it needs none.
func reasonOf(row *probe.Row) string {
	reason := row.Reason
	if row.Known != "" {
		reason = row.Known
	}
	if len(row.Runs) > 0 {
		reason = "in its runs: " + strings.Join(row.Runs, ", ")
	}
	return reason
}

// firstOf lists at most the given number of items.
func firstOf(list []string, most int) string {
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s, +%d", strings.Join(list[:most], ", "), len(list)-most)
}

func probeText(w io.Writer, r *probe.Report, options *TextOptions) error {
	p := newPainter(w, options)
	fmt.Fprintf(p, "%s\n\n", p.paint(dim,
		"In brackets: the capabilities that the probe advertised when the requirement was exercised."))
	names, rows := probePages(r)
	for _, name := range names {
		fmt.Fprintln(p, p.paint(bold, name))
		folded := map[string][]string{} // the ids of rows that do not apply to this program, by reason
		var reasons []string
		for _, row := range rows[name] {
			if row.Verdict == probe.NotApplicable || row.Reason == "only people can judge it" {
				reason := string(row.Verdict) + ", " + row.Reason
				if folded[reason] == nil {
					reasons = append(reasons, reason)
				}
				folded[reason] = append(folded[reason], row.ID)
				continue
			}
			verdict := verdictOf(row)
			fmt.Fprintf(p, "  %s%s  %-6s  %-11s  %s", p.paint(verdictColors[row.Verdict], verdict),
				strings.Repeat(" ", max(0, 13-len(verdict))),
				row.ID, row.Class, plain.Line(cut(row.Text, 76)))
			if row.Verdict == probe.Pass && len(row.Granted) > 0 {
				fmt.Fprint(p, "  ", p.paint(dim, "["+firstOf(row.Granted, 3)+"]"))
			}
			fmt.Fprintln(p)
			if reason := reasonOf(row); reason != "" {
				fmt.Fprintf(p, "  %s%s\n", strings.Repeat(" ", 36), p.paint(dim, plain.Line(reason)))
			}
		}
		for _, reason := range reasons {
			for i, line := range wrap(reason+": "+strings.Join(folded[reason], " "), textWidth-4) {
				fmt.Fprintf(p, "  %s%s\n", strings.Repeat("  ", min(i, 1)), p.paint(dim, plain.Line(line)))
			}
		}
		fmt.Fprintln(p)
	}
	shown := map[string]bool{}
	for i := range r.Rows {
		if row := &r.Rows[i]; len(row.Failures) > 0 {
			p.failures(r, row, shown)
		}
	}
	p.probeSummary(r)
	return p.Flush()
}

// cut truncates a text.
func cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return strings.TrimRight(string(runes[:most-1]), " ") + "…"
	}
	return text
}

// maxTranscript is the number of lines shown from the end of a transcript.
const maxTranscript = 25

// failures shows how a requirement was broken. It shows the transcript of each scenario only once.
func (p *painter) failures(r *probe.Report, row *probe.Row, shown map[string]bool) {
	heading, class := strings.ToUpper(verdictOf(row)), string(row.Class)
	if row.Verdict == probe.Pass {
		heading, class = "NOTE", conformance.Advice.String() // it does not change the verdict
	}
	fmt.Fprintf(p, "%s  %s  %s, %s\n", p.paint(verdictColors[row.Verdict], heading), p.paint(bold, row.ID), class,
		row.Page)
	for _, line := range wrap(row.Text, textWidth-2) {
		fmt.Fprintf(p, "  %s\n", line)
	}
	for i, f := range row.Failures {
		if p.Max > 0 && i == p.Max {
			fmt.Fprintf(p, "  and %d more\n", len(row.Failures)-i)
			break
		}
		level := ""
		if f.Level != row.Failures[0].Level {
			level = f.Level + ": "
		}
		fmt.Fprintf(p, "  %s: %s%s\n", p.paint(bold, f.Scenario), level, plain.Line(f.String()))
		if f.Excerpt != "" {
			fmt.Fprintf(p, "      %s\n", plain.Line(f.Excerpt))
		}
		for _, e := range f.Evidence {
			fmt.Fprintf(p, "      %s\n", plain.Line(e))
		}
		if out := outcomeOf(r, f.Scenario); out != nil && !shown[f.Scenario] {
			shown[f.Scenario] = true
			from := max(0, len(out.Transcript)-maxTranscript)
			if from > 0 {
				fmt.Fprintf(p, "      %s\n", p.paint(dim, fmt.Sprintf("… %d earlier lines", from)))
			}
			for _, line := range out.Transcript[from:] {
				fmt.Fprintf(p, "      %s\n", p.paint(dim, plain.Line(cut(line, 200))))
			}
			for _, line := range lastLines(out.Stderr, 10) {
				fmt.Fprintf(p, "      %s %s\n", p.paint(dim, "stderr:"), plain.Line(cut(line, 200)))
			}
		}
	}
	fmt.Fprintln(p)
}

// outcomeOf returns the outcome of a scenario that found a failure.
func outcomeOf(r *probe.Report, name string) *probe.Outcome {
	for _, out := range r.Scenarios {
		if out.Name == name && len(out.Failed) > 0 {
			return out
		}
	}
	return nil
}

// lastLines returns the last lines of a text.
func lastLines(text string, most int) []string {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	return lines[max(0, len(lines)-most):]
}

func (p *painter) probeSummary(r *probe.Report) {
	skipped := map[string][]string{}
	var reasons []string
	for _, out := range r.Scenarios {
		if out.Skipped != "" {
			if skipped[out.Skipped] == nil {
				reasons = append(reasons, out.Skipped)
			}
			skipped[out.Skipped] = append(skipped[out.Skipped], out.Name)
		}
	}
	for _, reason := range reasons {
		for i, line := range wrap("not played, "+plain.Line(reason)+": "+strings.Join(skipped[reason], " "), textWidth-2) {
			fmt.Fprintf(p, "%s%s\n", strings.Repeat("  ", min(i, 1)), line)
		}
	}
	if len(reasons) > 0 {
		fmt.Fprintln(p)
	}
	list := func(color, what string, ids []string) {
		if len(ids) > 0 {
			fmt.Fprintf(p, "%s %s\n", p.paint(color, what+":"), strings.Join(ids, " "))
		}
	}
	s := &r.Summary
	ran := func(ids []string) []string {
		return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return slices.Contains(s.NeverRan, id) })
	}
	list(red, "MUSTs that fail", ran(s.Must))
	list(red, "advertised but broken", ran(s.Broken))
	list(red, "MUSTs that never ran", s.NeverRan)
	list(yellow, "recommendations that are not followed", s.Should)
	list(yellow, "possibly broken", s.Doubtful)
	list(yellow, "too slow, even when played alone", s.TooSlow)
	list(cyan, "did not run for lack of time", s.DidNotRun)
	list(red, "differ between runs", s.Unstable)
	list(dim, "known from the baseline", s.Known)
	list(yellow, "in the baseline, but no longer found", s.Stale)
	var counts []string
	for _, verdict := range probeVerdicts {
		if n := s.Verdicts[verdict]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, verdict))
		}
	}
	of := ""
	if r.Repeat != "" { // which has the command
		fmt.Fprintf(p, "%s %s\n", p.paint(dim, "one scenario alone:"), plain.Line(r.Repeat))
	} else {
		of = " of " + plain.Line(r.Target)
	}
	fmt.Fprintf(p, "%s%s in %.1f s: %s\n", plural(len(r.Scenarios), "scenario"), of, r.Seconds, strings.Join(counts, ", "))
	if version := probedVersion(r); version != "" {
		fmt.Fprintln(p, p.paint(dim, version))
	}
	color := green
	if !r.Conforms {
		color = red
	}
	fmt.Fprintln(p, p.paint(color, r.Badge))
}

// probedVersion describes the version of the protocol that was probed.
func probedVersion(r *probe.Report) string {
	switch {
	case r.Protocol == 2 && !r.Version2:
		return "The agent does not support version 2 of the protocol, so nothing was probed."
	case r.Protocol == 2:
		return "Version 2 of the protocol, which is in Preview, was probed."
	case r.OnlyVersion2:
		return "The agent does not support version 1 of the protocol. It supports version 2 (Preview), which --protocol " +
			"2 probes."
	case r.Version2:
		return "Version 1 of the protocol was probed. The agent also supports version 2 (Preview), which --protocol 2 probes."
	case r.Side != "": // an entry of the registry has none
		return "Version 1 of the protocol was probed, and not version 2, which is in Preview."
	}
	return ""
}

// probeVerdicts lists all verdicts.
var probeVerdicts = []probe.Verdict{probe.Pass, probe.Fail, probe.Flaky, probe.Warn, probe.Doubtful, probe.TooSlow,
	probe.NotExercised, probe.DidNotRun, probe.NotApplicable}

func probeMarkdown(w io.Writer, r *probe.Report) error {
	b := bufio.NewWriter(w)
	verdict := "conforms"
	if !r.Conforms {
		verdict = fmt.Sprintf("%s, %s broken", plural(len(r.Summary.Must), "MUST"),
			plural(len(r.Summary.Broken), "advertised thing"))
	}
	fmt.Fprintf(b, "## Agent Client Protocol: %s\n\n%s\n\n%s, %s, %.1f s\n", verdict, text.Markdown(r.Badge),
		text.Code(r.Target), plural(len(r.Scenarios), "scenario"), r.Seconds)
	if version := probedVersion(r); version != "" {
		fmt.Fprintf(b, "\n%s\n", version)
	}
	names, rows := probePages(r)
	for _, name := range names {
		fmt.Fprintf(b, "\n### %s\n\n| id | class | verdict | requirement | |\n|---|---|---|---|---|\n", name)
		var other []string
		for _, row := range rows[name] {
			if row.Verdict == probe.NotApplicable {
				other = append(other, row.ID)
				continue
			}
			verdict := verdictOf(row)
			if row.Verdict == probe.Fail || row.Verdict == probe.Flaky {
				verdict = "**" + verdict + "**"
			}
			detail := reasonOf(row)
			if len(row.Failures) > 0 && row.Known == "" {
				detail = row.Failures[0].Scenario + ": " + row.Failures[0].String()
			}
			fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", row.ID, row.Class, verdict, cell(row.Text), cell(cut(detail, 300)))
		}
		if len(other) > 0 {
			fmt.Fprintf(b, "\nNot applicable: %s\n", strings.Join(other, ", "))
		}
	}
	return b.Flush()
}

// cell returns a text for a cell of a Markdown table.
func cell(s string) string { return strings.ReplaceAll(text.Markdown(s), "|", "\\|") }

func probeJUnit(w io.Writer, r *probe.Report) error {
	doc := junitSuites{Name: cmp.Or(r.Tool, "acp") + " probe"}
	names, rows := probePages(r)
	for _, name := range names {
		s := &junitSuite{Name: name}
		for _, row := range rows[name] {
			c := junitCase{Classname: "acp." + name, Name: strings.TrimSpace(row.ID + " " + row.Text)}
			switch {
			case row.Known != "":
				c.Skipped = message("skipped", "known: "+plain.Line(row.Known), "", "")
			case row.Verdict == probe.Fail, row.Verdict == probe.Flaky,
				slices.Contains([]probe.Verdict{probe.Warn, probe.Doubtful, probe.TooSlow}, row.Verdict) && len(row.Failures) > 0:
				var b strings.Builder
				p := newPainter(&b, nil)
				p.failures(r, row, map[string]bool{})
				p.Flush() // to a strings.Builder: it cannot fail
				about := reasonOf(row)
				if len(row.Failures) > 0 {
					about = row.Failures[0].String()
				}
				switch row.Verdict {
				case probe.Warn:
					c.Skipped = message("skipped", "SHOULD: "+plain.Line(about), "", b.String())
				case probe.Doubtful, probe.TooSlow:
					c.Skipped = message("skipped", string(row.Verdict)+": "+plain.Line(about), "", b.String())
				default:
					c.Failure = message("failure", plain.Line(about), string(row.Class), "\n"+b.String())
				}
			case row.Verdict == probe.NotApplicable, row.Verdict == probe.NotExercised, row.Verdict == probe.DidNotRun:
				c.Skipped = message("skipped", string(row.Verdict)+": "+plain.Line(row.Reason), "", "")
			}
			s.add(c)
		}
		doc.Suites = append(doc.Suites, s)
	}
	return doc.write(w)
}

// probeSARIF writes the failures as results whose locations are scenarios.
func probeSARIF(w io.Writer, r *probe.Report) error {
	findings, err := New(Options{Tool: cmp.Or(r.Tool, "acp"), Version: r.Version, Level: conformance.Advice, Keep: -1})
	if err != nil {
		return err
	}
	sources := map[string]*Source{}
	for _, row := range r.Rows {
		if !slices.ContainsFunc(findings.rules, func(rule conformance.Rule) bool { return rule.ID == row.ID }) {
			findings.rules = append(findings.rules,
				conformance.Rule{ID: row.ID, Level: levelNamed(row.Level), Page: row.Page, Text: row.Text})
		}
		for _, f := range row.Failures {
			if sources[f.Scenario] == nil {
				sources[f.Scenario] = findings.Source("acp-probe/" + f.Scenario)
			}
			sources[f.Scenario].Add(&Entry{
				Finding: conformance.Finding{Rule: row.ID, Level: levelNamed(f.Level), Number: f.Number, Method: f.Method,
					Pointer: f.Pointer, Message: f.Message},
				Line: f.Number, Excerpt: f.Excerpt, Accepted: row.Known,
			})
		}
	}
	return findings.writeSARIF(w)
}

// levelNamed returns the level with the given name.
func levelNamed(name string) conformance.Level {
	for level := conformance.Must; level < conformance.Advice; level++ {
		if level.String() == name {
			return level
		}
	}
	return conformance.Advice
}
