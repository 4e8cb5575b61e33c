package probe

import (
	"fmt"
	"slices"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/internal/requirement"
)

// CheckRows returns the problems in the tables of requirements.
func CheckRows() (problems []string) {
	return slices.Concat(
		agents.checkRows("SES-24", "CAN-2"),
		clients.checkRows(),
		drafts.checkRows("TRN-10", "CAN-1", "V2-14"),
	)
}

// checkRows is CheckRows for one table. The probe cannot exercise the requirements in unreachable.
func (about *subject) checkRows(unreachable ...string) (problems []string) {
	exercised := map[string]bool{}
	for _, s := range about.scenarios() {
		for _, id := range s.Exercises {
			if requirement.Find(id) == nil {
				problems = append(problems, fmt.Sprintf("the scenario %s: there is no requirement %s", s.Name, id))
			}
			exercised[id] = true
		}
	}
	for id := range about.rows {
		if requirement.Find(id) == nil {
			problems = append(problems, fmt.Sprintf("there is no requirement %s", id))
		}
	}
	for _, r := range conformance.Requirements() {
		x, listed := about.rows[r.ID]
		switch {
		case about.applies(r) != "" || r.Method == conformance.ByPeople:
		case !listed:
			problems = append(problems, fmt.Sprintf("%s binds %ss, and is not in the table", r.ID, about.side))
		case len(x.on) == 0 && !exercised[r.ID] && !slices.Contains(unreachable, r.ID):
			problems = append(problems, fmt.Sprintf("nothing exercises %s", r.ID))
		}
	}
	return problems
}
