// Package requirement has the table of the requirements in the protocol's pages: their severity, which side they bind,
// what can judge them and who enforces them.
package requirement

import (
	_ "embed" // requirements.txt
	"strings"

	"github.com/acpgo/sdk/conformance/internal/finding"
)

// Requirement is one requirement of a page; see conformance.Requirement.
type Requirement struct {
	ID    string
	Level finding.Level
	// Word is the page's keyword, or one of the substitutes in levels if the page uses none.
	Word   string
	Side   finding.Side // who must comply; 0 for both
	Page   string
	Text   string
	Method Method
	As     []string
	KeptBy string
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

// Matches reports whether name, which is a requirement or the prefix of a page, includes a requirement.
func Matches(name, id string) bool {
	page, _, _ := strings.Cut(id, "-")
	return strings.EqualFold(name, id) || strings.EqualFold(name, page)
}

// Find returns the requirement with the given id, or nil if there is none.
func Find(id string) *Requirement {
	if at, ok := Places[id]; ok {
		return &All[at]
	}
	return nil
}

// LevelOf returns the level of a requirement, or Advice if the id is unknown.
func LevelOf(id string) finding.Level {
	if r := Find(id); r != nil {
		return r.Level
	}
	return finding.Advice
}

//go:embed requirements.txt
var text string

// All has all requirements, in the order of the protocol's pages. Places has the index of each.
var (
	All    = parse(text)
	Places = func() map[string]int {
		places := map[string]int{}
		for i, r := range All {
			places[r.ID] = i
		}
		return places
	}()
)

var (
	sides   = map[string]finding.Side{"both": 0, "agent": finding.Agent, "client": finding.Client}
	methods = map[string]Method{"rule": ByRule, "schema": BySchema, "scenario": ByScenario, "people": ByPeople}
)

// parse reads requirements.txt. It panics if there is a mistake in it.
func parse(text string) (all []Requirement) {
	for _, section := range strings.Split(text, "\n== ")[1:] {
		rows := strings.Split(strings.TrimSpace(section), "\n\n")
		for _, row := range rows[1:] {
			head, text, _ := strings.Cut(row, "\n")
			fields := append(strings.Split(head, " | "), "") // the last one may be absent
			how, as, _ := strings.Cut(fields[3], ", as ")
			side, known := sides[fields[2]]
			r := Requirement{ID: fields[0], Level: levels[fields[1]], Word: fields[1], Side: side, Page: rows[0], Text: text,
				Method: methods[how], As: strings.Fields(as), KeptBy: fields[4]}
			if r.Level == 0 || !known || r.Method == 0 || text == "" || strings.Contains(text, "\n") {
				panic("conformance: requirements.txt: " + row)
			}
			// A message that the schema or JSON-RPC refuses is not a message of the agreed version, which is a MUST (INI-6)
			// however the page words it.
			if capital := strings.ToUpper(r.Word) == r.Word; r.Method == BySchema && !capital {
				r.Level = finding.Must
			}
			all = append(all, r)
		}
	}
	return all
}
