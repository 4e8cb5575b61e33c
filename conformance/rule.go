package conformance

import (
	"slices"
	"sync"

	"github.com/acpgo/sdk/conformance/internal/rules"
)

// Rule is one requirement of the protocol that a stream of messages can show to be broken.
type Rule struct {
	ID    string // "SES-7"
	Level Level
	Side  Side   // who must comply; 0 for both
	Page  string // of the protocol's documents: "session-setup"
	Text  string // the requirement, in our own words
	// Breaks says what breaks it.
	Breaks string
	// Right and Wrong are examples: a message a line, with "->" before what the client writes and "<-" before
	// what the agent writes. They begin after what they need, such as initialize, and leave out what does not matter.
	Right, Wrong string
	// Versions are the versions of the protocol that it is for.
	Versions []int
}

// Rules returns all rules, in the order of the pages, with the requirements that the schema and JSON-RPC judge.
func Rules() []Rule { return slices.Clone(publicRules()) }

var publicRules = sync.OnceValue(func() []Rule {
	var all []Rule
	for _, r := range rules.All() {
		all = append(all, Rule{r.ID, r.Level, r.Side, r.Page, r.Text, r.Breaks, r.Right, r.Wrong, r.Versions})
	}
	return all
})
