package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/probe"
)

// WriteRules writes a list of requirements by page, as Text, JSON (one array) or Markdown. Options are for Text, and
// may be nil.
func WriteRules(w io.Writer, rules []conformance.Rule, format Format, options *TextOptions) error {
	switch format {
	case Text:
		return rulesText(w, rules, options)
	case JSON:
		return rulesJSON(w, rules)
	case Markdown:
		return rulesMarkdown(w, rules)
	}
	return fmt.Errorf("report: rules cannot be written as %q", format)
}

// byPage calls a function for the rules of each page.
func byPage(rules []conformance.Rule, each func(page string, rules []conformance.Rule)) {
	for len(rules) > 0 {
		page := rules[0].Page
		n := slices.IndexFunc(rules, func(r conformance.Rule) bool { return r.Page != page })
		if n < 0 {
			n = len(rules)
		}
		each(page, rules[:n])
		rules = rules[n:]
	}
}

func rulesText(w io.Writer, rules []conformance.Rule, options *TextOptions) error {
	p := newPainter(w, options)
	const indent = 30 // of the texts
	byPage(rules, func(page string, rules []conformance.Rule) {
		fmt.Fprintln(p, p.paint(bold, page))
		for _, rule := range rules {
			for i, line := range wrap(rule.Text, textWidth-indent) {
				if i > 0 {
					fmt.Fprintf(p, "%*s%s\n", indent, "", line)
					continue
				}
				fmt.Fprintf(p, "  %s%s%-8s%s\n", p.paint(bold, fmt.Sprintf("%-8s", rule.ID)),
					p.paint(colorOf(rule.Level), fmt.Sprintf("%-12s", rule.Level)), SideName(rule.Side), line)
			}
		}
		fmt.Fprintln(p)
	})
	fmt.Fprintln(p, plural(len(rules), "requirement"))
	return p.Flush()
}

// jsonRule is an element of the array.
type jsonRule struct {
	ID       string `json:"id"`
	Level    string `json:"level"`
	Side     string `json:"side"`
	Page     string `json:"page"`
	URL      string `json:"url"`
	Versions []int  `json:"versions"`
	Text     string `json:"text"`
	Breaks   string `json:"breaks,omitempty"`
	Right    string `json:"right,omitempty"`
	Wrong    string `json:"wrong,omitempty"`
}

func rulesJSON(w io.Writer, rules []conformance.Rule) error {
	all := []jsonRule{}
	for _, r := range rules {
		all = append(all, jsonRule{r.ID, r.Level.String(), SideName(r.Side), r.Page, PageURL(r), r.Versions, r.Text,
			r.Breaks, r.Right, r.Wrong})
	}
	return WriteJSON(w, all)
}

func rulesMarkdown(w io.Writer, rules []conformance.Rule) error {
	p := newPainter(w, nil)
	byPage(rules, func(page string, rules []conformance.Rule) {
		fmt.Fprintf(p, "## [%s](%s)\n\n", page, PageURL(rules[0]))
		fmt.Fprintln(p, "| id | level | side | versions | requirement |\n| --- | --- | --- | --- | --- |")
		for _, r := range rules {
			fmt.Fprintf(p, "| %s | %s | %s | %s | %s |\n", r.ID, r.Level, SideName(r.Side), versions(r), strings.ReplaceAll(r.Text, "|", `\|`))
		}
		fmt.Fprintln(p)
	})
	fmt.Fprintf(p, "%s.\n", plural(len(rules), "requirement"))
	return p.Flush()
}

// versions returns the versions of a rule as "1, 2".
func versions(r conformance.Rule) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(r.Versions), "[]"), " ", ", ")
}

// published maps pages to the name under which they are published, if it differs.
var published = map[string]string{
	"schema-reference": "schema",
	"additions":        "overview", // found by running programs
	"version-2":        "prompt-lifecycle",
}

// PageURL returns the URL of the page of a rule.
func PageURL(r conformance.Rule) string {
	version := 1
	if len(r.Versions) > 0 {
		version = slices.Min(r.Versions)
	}
	page := cmp.Or(published[r.Page], r.Page)
	return fmt.Sprintf("https://agentclientprotocol.com/protocol/v%d/%s", version, page)
}

// Explain writes one requirement for people: its level, page and text, how it is judged and how the probes try it, what
// breaks it, and examples. Options may be nil.
func Explain(w io.Writer, req conformance.Requirement, options *TextOptions) error {
	r := conformance.Rule{Page: req.Page}
	if req.Page == "version-2" {
		r.Versions = []int{2}
	}
	rules := conformance.Rules()
	i := slices.IndexFunc(rules, func(r conformance.Rule) bool { return r.ID == req.ID })
	if i >= 0 {
		r = rules[i]
	}
	p := newPainter(w, options)
	fmt.Fprintf(p, "%s  %s  %s\n", p.paint(bold, req.ID), p.paint(colorOf(req.Level), req.Level.String()),
		SideName(req.Side))
	fmt.Fprintf(p, "%s\n", PageURL(r))
	section := func(title, text string, indent string) {
		if text == "" {
			return
		}
		fmt.Fprintln(p)
		if title != "" {
			fmt.Fprintln(p, p.paint(bold, title))
		}
		for paragraph := range strings.Lines(text) {
			for _, line := range wrap(paragraph, textWidth-len(indent)) {
				fmt.Fprintf(p, "%s%s\n", indent, line)
			}
		}
	}
	example := func(title, color, text string) {
		if text == "" {
			return
		}
		fmt.Fprintf(p, "\n%s\n", p.paint(color, title))
		for line := range strings.Lines(text) {
			fmt.Fprintf(p, "  %s\n", strings.TrimRight(line, "\n"))
		}
	}
	section("", req.Text, "")
	section("Why this level", whyLevel(req), "  ")
	section("How it is judged", howJudged(req, i >= 0), "  ")
	section("How the probe tries it", cmp.Or(strings.Join(probe.Trials(req.ID), "\n"), "No probe tries it."), "  ")
	if i >= 0 {
		section("Versions of the protocol", versions(r), "  ")
	}
	section("What breaks it", r.Breaks, "  ")
	example("Right", green, r.Right)
	example("Wrong", red, r.Wrong)
	if r.Right != "" || r.Wrong != "" {
		fmt.Fprintln(p, p.paint(dim, "\n  -> the client writes, <- the agent writes"))
	}
	return p.Flush()
}

// whyLevel explains a level that is not the page's keyword.
func whyLevel(r conformance.Requirement) string {
	switch {
	case r.Word == r.Level.String():
		return ""
	case r.Word == "kit":
		return "The page has no keyword, but the official compatibility kit counts a violation as a failure."
	case r.Word == "JSON-RPC":
		return "The page refers to JSON-RPC, which says MUST NOT."
	case r.Level == conformance.Must:
		return "A message that breaks it is not a message of the agreed version, however the page puts it."
	case r.Word == "MAY-only":
		return "The page allows something under a condition, and does not forbid it otherwise."
	case r.Word == "implied":
		return "The page has no keyword, so it is one level milder than a MUST."
	}
	return fmt.Sprintf("The page has the keyword in lower case, %q, so it is one level milder.", r.Word)
}

// howJudged says what can find a violation. Known is set if the requirement has a rule of its own.
func howJudged(r conformance.Requirement, known bool) string {
	switch {
	case len(r.As) > 1:
		return "acp check, by " + strings.Join(r.As, ", ") + ", which say the same."
	case len(r.As) == 1:
		return "acp check, by " + r.As[0] + ", which says the same."
	case r.Method == conformance.ByPeople:
		return "Only people can judge it."
	case !known:
		return "Watching a connection is not enough: a probe sends messages, and looks at files and processes."
	case r.Method == conformance.BySchema:
		return "acp check, by the schema and JSON-RPC, in a single message."
	}
	return "acp check, by watching the messages of a connection."
}
