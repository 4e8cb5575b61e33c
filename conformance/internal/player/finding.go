package player

import (
	"sync"

	"github.com/acpgo/sdk/conformance"
)

// Finding is a finding of the judge or of a scenario, with the message that it is about.
type Finding struct {
	conformance.Finding `json:"Finding"`
	Excerpt             string
	// Doubt is set if a fault is likely but a correct program could behave the same.
	Doubt bool `json:",omitempty"`
	Late  bool `json:"-"` // an answer did not arrive in time
	Slow  bool `json:"-"` // it arrived when the scenario was played again, alone and with more time
}

// Requirements returns all requirements by id.
var Requirements = sync.OnceValue(func() map[string]conformance.Requirement {
	all := map[string]conformance.Requirement{}
	for _, r := range conformance.Requirements() {
		all[r.ID] = r
	}
	return all
})

// Requirement returns the requirement with an id.
func Requirement(id string) (conformance.Requirement, bool) {
	r, ok := Requirements()[id]
	return r, ok
}

// MustRequirement is like Requirement, for an id that exists.
func MustRequirement(id string) conformance.Requirement {
	r, ok := Requirement(id)
	if !ok {
		panic("probe: there is no requirement " + id)
	}
	return r
}
