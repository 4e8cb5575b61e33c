package conformance

import (
	"slices"

	"github.com/acpgo/sdk/conformance/internal/requirement"
)

// Requirement is one requirement of the protocol's pages. ID is its name, such as "SES-7", Page that of its page, such
// as "session-setup", and Text says what it demands in our own words. Side is who must comply, or 0 for both.
//
// Word is the page's keyword: "MUST", or "must" if it is in lower case. Without a keyword it is "implied"; "MAY-only"
// if the page allows something under a condition; "kit" if the official compatibility kit counts a violation as a
// failure; and "JSON-RPC" if the page refers to that. Level follows from it, and Method is the means by which a
// violation can be found. As has the ids of requirements that say the same; their rules judge this one too.
//
// KeptBy says who meets the requirement in a program that is built on this module: "runtime" if the packages under acp
// enforce it, prevent breaking it, or do it; "author" if only the program can; "" if the table does not say.
type Requirement = requirement.Requirement

// Method is the means by which a violation of a requirement can be found.
type Method = requirement.Method

// The methods.
const (
	ByRule     = requirement.ByRule     // by a rule of this package, which only watches the messages
	BySchema   = requirement.BySchema   // by the schema or JSON-RPC, in a single message
	ByScenario = requirement.ByScenario // by a probe, which sends messages or looks at files and processes
	ByPeople   = requirement.ByPeople   // only by people
)

// Requirements returns all requirements, in the order of the pages.
func Requirements() []Requirement { return slices.Clone(requirement.All) }
