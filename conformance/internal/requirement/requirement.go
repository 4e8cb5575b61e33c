// Package requirement has the table of the requirements in the protocol's pages: their severity, which side they bind,
// what can judge them and who enforces them.
package requirement

import (
	_ "embed" // requirements.txt
	"strings"

	"github.com/acpgo/sdk/conformance/internal/finding"
)

// Requirement is one requirement of a page.
type Requirement struct {
	ID   string
	Word string       // the page's keyword, or one of the substitutes in levels if the page uses none
	Side finding.Side // who must comply; 0 for both
	How  Method
	As   string // the id of another requirement that says the same, whose rule judges this one too
	Kept string // see conformance.Requirement.KeptBy
	Text string
}

// Method is the means by which a violation of a requirement can be found.
type Method int

// The methods.
const (
	ByRule     Method = iota + 1 // by a rule that only watches the messages
	BySchema                     // by the schema or JSON-RPC, in a single message
	ByScenario                   // by a probe, which sends messages or looks at files and processes
	ByPeople                     // only by people
)

// levels maps the keywords of the pages to levels. The pages write binding keywords in capitals; keywords in lower case
// and requirements without a keyword are one step milder.
var levels = map[string]finding.Level{
	"MUST":       finding.Must,
	"MUST NOT":   finding.MustNot,
	"SHOULD":     finding.Should,
	"SHOULD NOT": finding.ShouldNot,
	"must":       finding.Should,
	"should":     finding.Advice,
	"implied":    finding.Should,
	"MAY-only":   finding.Advice,
	// The pages use no keyword, but the official compatibility kit counts a violation as a failure.
	"kit": finding.Must,
	// The pages refer to JSON-RPC, which says MUST NOT.
	"JSON-RPC": finding.MustNot,
}

// Level returns the level of the requirement. A message that the schema or JSON-RPC refuses is not a message of the
// agreed version, which is a MUST (INI-6) however the page words it.
func (r *Requirement) Level() finding.Level {
	if capital := strings.ToUpper(r.Word) == r.Word; r.How == BySchema && !capital {
		return finding.Must
	}
	return levels[r.Word]
}

// Matches reports whether name, which is a requirement or the prefix of a page, includes a requirement.
func Matches(name, id string) bool {
	page, _, _ := strings.Cut(id, "-")
	return strings.EqualFold(name, id) || strings.EqualFold(name, page)
}

// Page is a page of the protocol with its requirements.
type Page struct {
	Name         string
	Requirements []Requirement
}

// Find returns the requirement with the given id and the name of its page, or nil if there is none.
func Find(id string) (r *Requirement, page string) {
	at, ok := byID[id]
	if !ok {
		return nil, ""
	}
	return at.Requirement, at.page
}

// entry is a requirement with the name of its page.
type entry struct {
	*Requirement
	page string
}

var byID = func() map[string]entry {
	all := map[string]entry{}
	for i := range Pages {
		for j := range Pages[i].Requirements {
			r := &Pages[i].Requirements[j]
			all[r.ID] = entry{r, Pages[i].Name}
		}
	}
	return all
}()

// LevelOf returns the level of a requirement, or Advice if the id is unknown.
func LevelOf(id string) finding.Level {
	if r, _ := Find(id); r != nil {
		return r.Level()
	}
	return finding.Advice
}

//go:embed requirements.txt
var text string

// Pages has all requirements, in the order of the protocol's pages.
var Pages = parse(text)

var (
	sides   = map[string]finding.Side{"both": 0, "agent": finding.Agent, "client": finding.Client}
	methods = map[string]Method{"rule": ByRule, "schema": BySchema, "scenario": ByScenario, "people": ByPeople}
)

// parse reads requirements.txt. It panics if there is a mistake in it.
func parse(text string) (pages []Page) {
	for _, section := range strings.Split(text, "\n== ")[1:] {
		rows := strings.Split(strings.TrimSpace(section), "\n\n")
		page := Page{Name: rows[0]}
		for _, row := range rows[1:] {
			head, text, _ := strings.Cut(row, "\n")
			fields := append(strings.Split(head, " | "), "") // the last one may be absent
			how, as, _ := strings.Cut(fields[3], ", as ")
			side, known := sides[fields[2]]
			r := Requirement{ID: fields[0], Word: fields[1], Side: side, How: methods[how], As: as, Kept: fields[4], Text: text}
			if _, ok := levels[r.Word]; !ok || !known || r.How == 0 || strings.Contains(text, "\n") {
				panic("conformance: requirements.txt: " + row)
			}
			page.Requirements = append(page.Requirements, r)
		}
		pages = append(pages, page)
	}
	return pages
}
