package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/report"
)

// newRulesCommand returns the command acp rules.
func newRulesCommand(p *program) *cobra.Command {
	format := oneOf{value: "table", values: []string{"table", "json", "markdown"}}
	level := newLevelFlag(conformance.Advice)
	var page string
	side := newSideFlag()
	c := &cobra.Command{
		Use:   "rules [FLAGS]",
		Short: "List the requirements that are judged",
		Long: `List the requirements that acp check judges, by page of the protocol's documentation: the id, the level, who
must comply, and the requirement in our own words.`,
		Example: `  acp rules --side agent --level must   what agents must comply with
  acp rules --format json               one array, for programs`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			rules := conformance.Rules()
			if page != "" && !slices.ContainsFunc(rules, func(r conformance.Rule) bool { return r.Page == page }) {
				return usagef("there is no page %q; there are %s", page, strings.Join(pages(rules), ", "))
			}
			rules = slices.DeleteFunc(rules, func(r conformance.Rule) bool {
				return r.Level > level.level || page != "" && r.Page != page ||
					side.side != 0 && r.Side == side.side.Peer()
			})
			form := report.Format(format.value)
			if format.value == "table" {
				form = report.Text
			}
			return report.WriteRules(p.stdout, rules, form, &report.TextOptions{Colors: p.colors})
		},
	}
	c.Flags().Var(&format, "format", "table, json or markdown")
	c.Flags().Var(&level, "level", "only those of `LEVEL` or above: must, should or advice")
	c.Flags().Var(&side, "side", "only those that this `SIDE` must comply with: client or agent")
	c.Flags().StringVar(&page, "page", "", "only those of this `PAGE`, such as session-setup")
	complete(c, "format", format.values...)
	complete(c, "level", levelNames...)
	complete(c, "side", side.values...)
	complete(c, "page", pages(conformance.Rules())...)
	return c
}

// pages returns the names of the pages.
func pages(rules []conformance.Rule) []string {
	var names []string
	for _, r := range rules {
		if !slices.Contains(names, r.Page) {
			names = append(names, r.Page)
		}
	}
	return names
}
