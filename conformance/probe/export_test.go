package probe

import (
	"fmt"
	"slices"

	"github.com/acpgo/sdk/conformance"
)

// CheckRows says what is wrong with the table of requirements.
func CheckRows() (problems []string) {
	exercised := map[string]bool{}
	for _, s := range agentScenarios() {
		for _, id := range s.Exercises {
			if _, ok := requirement(id); !ok {
				problems = append(problems, fmt.Sprintf("the scenario %s: there is no requirement %s", s.Name, id))
			}
			exercised[id] = true
		}
	}
	for id := range agentRows {
		if _, ok := requirement(id); !ok {
			problems = append(problems, fmt.Sprintf("there is no requirement %s", id))
		}
	}
	for _, r := range conformance.Requirements() {
		x, listed := agentRows[r.ID]
		switch {
		case applies(r) != "" || r.Method == conformance.ByPeople:
		case !listed:
			problems = append(problems, fmt.Sprintf("%s binds agents, and is not in the table", r.ID))
		case len(x.on) == 0 && !exercised[r.ID] && !slices.Contains([]string{"SES-24", "CAN-2"}, r.ID):
			problems = append(problems, fmt.Sprintf("nothing exercises %s", r.ID))
		}
	}
	return problems
}
