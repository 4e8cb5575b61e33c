package conformance

import (
	"slices"
	"sync"

	"github.com/acpgo/sdk/conformance/internal/rules"
)

// Rule is a requirement of the protocol whose violation can be seen in a stream of messages.
type Rule struct {
	ID    string // "SES-7"
	Level Level
	Side  Side   // who must comply; 0 for both
	Page  string // of the protocol's documents: "session-setup"
	Text  string // the requirement, in our own words
	// Breaks describes the messages that break it.
	Breaks string
	// Right and Wrong are examples with one message per line: "->" marks messages of the client, "<-" those of the
	// agent. They leave out earlier messages that they need, such as initialize, and everything else that does not
	// matter.
	Right, Wrong string
	// Versions has the versions of the protocol that the rule applies to.
	Versions []int
}

// Rules returns all rules in the order of the pages, including the requirements that the schema and JSON-RPC judge.
func Rules() []Rule { return slices.Clone(publicRules()) }

var publicRules = sync.OnceValue(func() []Rule {
	var all []Rule
	for _, r := range rules.All() {
		all = append(all, Rule{r.ID, r.Level, r.Side, r.Page, r.Text, r.Breaks, r.Right, r.Wrong, r.Versions})
	}
	return all
})
