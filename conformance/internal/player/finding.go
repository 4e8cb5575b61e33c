package player

import "github.com/acpgo/sdk/conformance"

// Finding is a finding of the judge or of a scenario, with the message that it is about.
type Finding struct {
	conformance.Finding `json:"Finding"`
	Excerpt             string
	// Doubt is set if a fault is likely but a correct program could behave the same.
	Doubt bool `json:",omitempty"`
	Late  bool `json:"-"` // an answer did not arrive in time
	Slow  bool `json:"-"` // it arrived when the scenario was played again, alone and with more time
}
