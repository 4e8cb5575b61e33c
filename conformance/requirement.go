package conformance

import (
	"strings"

	"github.com/acpgo/sdk/conformance/internal/requirement"
)

// Requirement is one requirement of the protocol's pages.
type Requirement struct {
	ID    string // "SES-7"
	Level Level
	// Word is the page's keyword: "MUST", or "must" if it is in lower case. Without a keyword it is "implied";
	// "MAY-only" if the page allows something under a condition; "kit" if the official compatibility kit counts a
	// violation as a failure; and "JSON-RPC" if the page refers to that.
	Word string
	Side Side   // who must comply; 0 for both
	Page string // "session-setup"
	Text string // in our own words
	// Method is the means by which a violation can be found.
	Method Method
	// As has the ids of requirements that say the same. Their rules judge this one too.
	As []string
	// KeptBy says who meets the requirement in a program that is built on this module: "runtime" if the packages under
	// acp enforce it, prevent breaking it, or do it; "author" if only the program can; "" if the table does not say.
	KeptBy string
}

// Method is the means by which a violation of a requirement can be found.
type Method int

// The methods.
const (
	ByRule     Method = Method(requirement.ByRule)     // by a rule of this package, which only watches the messages
	BySchema   Method = Method(requirement.BySchema)   // by the schema or JSON-RPC, in a single message
	ByScenario Method = Method(requirement.ByScenario) // by a probe, which sends messages or looks at files and processes
	ByPeople   Method = Method(requirement.ByPeople)   // only by people
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
