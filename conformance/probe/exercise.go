package probe

import (
	"encoding/json"
	"strings"

	"github.com/acpgo/sdk/conformance/internal/player"
)

// evidence is what a scenario has shown of the program.
type evidence struct {
	Ran      map[string]bool  // the requirements that the scenario itself has exercised
	Traits   map[string]bool  // the events, for the table of requirements
	Granted  map[string]bool  // the sets of capabilities that were advertised when they happened
	Findings []player.Finding `json:",omitempty"`
	Itself   json.RawMessage  `json:",omitempty"` // the program's part of initialize, from the last launch that had it
}

func newEvidence() evidence {
	return evidence{Ran: map[string]bool{}, Traits: map[string]bool{}, Granted: map[string]bool{}}
}

// exercise says when a requirement counts as exercised, beside the scenarios that say so themselves.
type exercise struct {
	// need is a capability that the agent must advertise for the requirement to apply, or "modes" or "options", which
	// it must have.
	need string
	// on has the traits that exercise the requirement; any one of them is enough.
	on []string
	// reach says how to exercise the requirement. If it is empty, every agent must exercise it, so a MUST that never
	// ran is a failure.
	reach string
	// trait must show too if the program has the capability.
	trait, capability string
}

func anyTrait(traits ...string) exercise { return exercise{on: traits} }

func (x exercise) needs(capability string) exercise { x.need = capability; return x }

func (x exercise) shows(trait, capability string) exercise {
	x.trait, x.capability = trait, capability
	return x
}

func (x exercise) reachedBy(reach string) exercise { x.reach = reach; return x }

// rows are requirements, by what exercises them.
type rows []struct {
	ids string // of the requirements, with spaces between them
	exercise
}

// byID returns the exercise of each requirement.
func (list rows) byID() map[string]exercise {
	all := map[string]exercise{}
	for _, row := range list {
		for id := range strings.FieldsSeq(row.ids) {
			all[id] = row.exercise
		}
	}
	return all
}
