// The requirements, for those who judge by other means than a stream of messages: probes.

package conformance

import (
	"strings"

	"github.com/acpgo/sdk/conformance/internal/requirement"
)

// Requirement is one requirement of the protocol's pages.
type Requirement struct {
	ID    string // "SES-7"
	Level Level
	// Word is the page's keyword: "MUST", or "must" if it is in lower case. Without a keyword it is "implied"; "MAY-only" if
	// the page allows something under a condition; "kit" if the official compatibility kit counts a violation as a failure;
	// and "JSON-RPC" if the page refers to that.
	Word string
	Side Side   // who must comply; 0 for both
	Page string // "session-setup"
	Text string // in our own words
	// Method is what can show that it is broken.
	Method Method
	// As are the ids of requirements that say the same, by whose rules this one is judged too.
	As []string
	// KeptBy says who keeps it in a program that is built on this module: "runtime" if the packages under acp enforce it,
	// prevent breaking it, or do it; "author" if only the program can; "" if the table does not say.
	KeptBy string
}

// Method says what can show that a requirement is broken.
type Method int

// The methods.
const (
	ByRule     Method = Method(requirement.ByRule)     // a rule of this package, over a stream that is only watched
	BySchema   Method = Method(requirement.BySchema)   // the schema, or JSON-RPC: one message shows it
	ByScenario Method = Method(requirement.ByScenario) // a probe: somebody must send something, or look at files and processes
	ByPeople   Method = Method(requirement.ByPeople)   // only people
)

// Requirements returns all requirements, in the order of the pages.
func Requirements() []Requirement {
	var all []Requirement
	for _, p := range requirement.Pages {
		for i := range p.Requirements {
			r := &p.Requirements[i]
			all = append(all, Requirement{
				r.ID, r.Level(), r.Word, r.Side, p.Name, r.Text, Method(r.How), strings.Fields(r.As), r.Kept,
			})
		}
	}
	return all
}
