package report

import (
	"bufio"
	"fmt"
	"io"

	"github.com/acpgo/sdk/internal/gen/text"
)

func (r *Report) writeMarkdown(w io.Writer) error {
	b := bufio.NewWriter(w)
	verdict := "conforms"
	if n := r.Findings(); n > 0 {
		verdict = fmt.Sprintf("%s: %s", plural(n, "finding"), r.counts())
	} else if !r.Readable() {
		verdict = "the readable part conforms"
	} else if r.messages() == 0 {
		verdict = "nothing to judge"
	}
	fmt.Fprintf(b, "## Agent Client Protocol: %s\n\n", verdict)
	for _, s := range r.sources {
		fmt.Fprintf(b, "- %s: %s (%s)\n", text.Code(s.Name), s.verdict(), s.summary())
	}
	for _, g := range r.sortedGroups() {
		if g.count == 0 {
			continue
		}
		fmt.Fprintf(b, "\n### %s %s\n\n%s\n\n", g.level(), g.rule.ID, g.rule.Text)
		rest := g.count
		for _, alike := range g.kinds(DefaultMax) {
			rest -= len(alike)
			e := alike[0]
			level := ""
			if e.Level != g.level() {
				level = e.Level.String() + ": "
			}
			fmt.Fprintf(b, "- %s %s%s\n", text.Code(e.place()), level, text.Code(e.describe()))
			if e.Excerpt != "" {
				fmt.Fprintf(b, "  <br>%s\n", text.Code(e.Excerpt))
			}
			for i, evidence := range e.Evidence {
				fmt.Fprintf(b, "  - %s: %s\n", e.where(i), text.Markdown(evidence.Why))
				if evidence.Excerpt != "" {
					fmt.Fprintf(b, "    <br>%s\n", text.Code(evidence.Excerpt))
				}
			}
			if len(alike) > 1 {
				fmt.Fprintf(b, "  - %s\n", text.Code(also(alike[1:])))
			}
		}
		if rest > 0 {
			fmt.Fprintf(b, "- and %d more\n", rest)
		}
	}
	list := func(title string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintf(b, "\n### %s\n\n", title)
			for _, line := range lines {
				fmt.Fprintf(b, "- %s\n", line)
			}
		}
	}
	var problems, stale []string
	for _, s := range r.sources {
		for _, p := range s.Problems {
			problems = append(problems, text.Code(s.placeOf(p))+" "+text.Markdown(p.Text))
		}
		if s.MoreProblems > 0 {
			problems = append(problems, fmt.Sprintf("%s %d more lines", text.Code(s.Name), s.MoreProblems))
		}
	}
	for _, e := range r.options.Accepted.Stale() {
		stale = append(stale, fmt.Sprintf("%s no finding matches %s", text.Code(e.place()), text.Code(e.String())))
	}
	list("Problems of the recordings", problems)
	list("Stale entries of accepted findings", stale)
	for _, line := range r.unmatched() {
		fmt.Fprintf(b, "\n%s.\n", line)
	}
	return b.Flush()
}
