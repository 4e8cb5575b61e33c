package repo_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/report"
)

// TestRequirementsTable compares docs/reference/requirements.md with the judge's table; -update writes it.
func TestRequirementsTable(t *testing.T) {
	expectTable(t, "docs/reference/requirements.md", requirementsTable())
}

// requirementsTable returns the table of requirements as Markdown, with a section for each page of the protocol.
func requirementsTable() string {
	versions := map[string][]int{} // of the rules
	for _, rule := range conformance.Rules() {
		versions[rule.ID] = rule.Versions
	}
	var b strings.Builder
	page := ""
	for _, r := range conformance.Requirements() {
		if page != r.Page {
			page = r.Page
			url := report.PageURL(conformance.Rule{Page: page, Versions: versions[r.ID]})
			fmt.Fprintf(&b, "\n## [%s](%s)\n\n| id | level | who | judged by | kept by | requirement |\n"+
				"| --- | --- | --- | --- | --- | --- |\n", page, url)
		}
		level := r.Level.String()
		if r.Word != level {
			level += " (" + r.Word + ")"
		}
		judge := "people"
		switch {
		case len(r.As) > 0:
			judge = "as " + strings.Join(r.As, ", ")
		case r.Method == conformance.ByScenario:
			judge = "probe"
		case r.Method != conformance.ByPeople:
			judge = "check (" + strings.Trim(strings.ReplaceAll(fmt.Sprint(versions[r.ID]), " ", ", "), "[]") + ")"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n",
			r.ID, level, report.SideName(r.Side), judge, cmp.Or(r.KeptBy, "–"), r.Text)
	}
	return b.String() + "\n"
}
