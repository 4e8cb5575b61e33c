package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/report"
)

// newExplainCommand returns the command acp explain.
func newExplainCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "explain ID...",
		Short: "Explain a requirement, with a right and a wrong example",
		Long: `Explain requirements: what the protocol says and on which page, how serious it is, how acp check judges it and the
probes try it, what breaks it, and an example of each.`,
		Example: "  acp explain PRM-9",
		Args:    cobra.MinimumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var ids []string
			for _, r := range conformance.Requirements() {
				ids = append(ids, r.ID+"\t"+r.Text)
			}
			return ids, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			all := conformance.Requirements()
			var chosen []conformance.Requirement
			for _, id := range args {
				i := slices.IndexFunc(all, func(r conformance.Requirement) bool { return strings.EqualFold(r.ID, id) })
				if i < 0 {
					return usagef("no requirement matches %q%s", id, similar(all, id))
				}
				chosen = append(chosen, all[i])
			}
			for i, r := range chosen {
				if i > 0 {
					if _, err := p.stdout.Write([]byte("\n\n")); err != nil {
						return err
					}
				}
				if err := report.Explain(p.stdout, r, &report.TextOptions{Colors: p.colors}); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// similar names the requirements on the page of an id that does not exist.
func similar(all []conformance.Requirement, id string) string {
	prefix, _, _ := strings.Cut(strings.ToUpper(id), "-")
	var ids []string
	for _, r := range all {
		if p, _, _ := strings.Cut(r.ID, "-"); p == prefix {
			ids = append(ids, r.ID)
		}
	}
	if len(ids) == 0 {
		return "; docs/reference/requirements.md lists all of them"
	}
	return "; that page has " + strings.Join(ids, ", ")
}
